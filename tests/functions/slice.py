#!/usr/bin/env python3
"""slice.py [PROOF] - for each function of map a slice of all floats, by functions_proof: every 4,093rd bit pattern from a first one that
changes with the day, and neighbours around places where the programs change. LOCKSTEP_FUNCTIONS_FIRST=N repeats a day; exit code 77
without MPFR, or where the CPU lacks what the program was compiled for."""
import os
import subprocess
import sys
import time

FUNCTIONS = ("exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "erf", "softplus")
STEP = 4093
# Bit patterns of 0, 2^-149, 2^-40, 2^-20, 2^-12, 0.5, 1, 6.5, 7.5, 14.8, 20, 30, 40, 88.7, 104 and infinity.
EDGES = (0, 1, 0x2B800000, 0x35800000, 0x39800000, 0x3F000000, 0x3F800000, 0x40D00000, 0x40F00000, 0x416CCCCD, 0x41A00000, 0x41F00000, 0x42200000,
         0x42B17218, 0x42D00000, 0x7F800000)
# Arguments whose values in double are middles of two f32: all there are, found by tests/functions/all.
HARD = {"log": (0x1F116AB8,), "log1p": (0x35400003, 0x3710001B, 0x3EFD81AD, 0x41078FEB, 0x65D890D3, 0x6F31A8EC, 0xB53FFFFD, 0xB70FFFE5, 0xBB0EC8C4),
        "sigmoid": (0xBA928601,), "softplus": (0x39EA41D0,), "gelu_tanh": (0xB7B0A46F,), "gelu": (0x37B0A46F, 0xB7B0A46F)}

if len(sys.argv) < 2:
    print("SKIP: no MPFR (libmpfr-dev)")
    sys.exit(77)
if os.path.exists("/proc/cpuinfo") and "x86_64" in os.uname().machine and " fma " not in open("/proc/cpuinfo").read():
    print("SKIP: the program needs AVX2 and FMA")
    sys.exit(77)
first = int(os.environ.get("LOCKSTEP_FUNCTIONS_FIRST", int(time.time() // 86400) * 1009 % STEP))
print(f"LOCKSTEP_FUNCTIONS_FIRST={first}")
failed = 0
for function in FUNCTIONS:
    spans = [(first, (2**32 - first - 1) // STEP + 1, STEP)]
    spans += [(pattern, 1, 1) for pattern in HARD.get(function, ())]
    spans += [((edge + sign - 500) % 2**32, 1000, 1) for edge in EDGES for sign in (0, 1 << 31)]
    for span in spans:
        done = subprocess.run([sys.argv[1], function, *map(str, span)], capture_output=True, text=True)
        failed += done.returncode != 0
        if done.returncode or span[2] == STEP:
            print(done.stdout + done.stderr, end="")
sys.exit(1 if failed else 0)
