#!/usr/bin/env python3
"""hardening.py [--without PART]... --compiler COMMAND FILE... - fails unless each library or program has RELRO, BIND_NOW,
no executable stack, a stack protector, checked calls (fortify), and CET's mark at every function that others may call.
A part is required if the compiler supports it. A test file is built with all of them, and once without each, which this
program must detect. --without: a part that this build leaves out (fortify, cet)."""
import argparse
import os
import re
import subprocess
import sys
import tempfile

PROBE = """#include <string.h>
int lockstep_probe(char* to, const char* from, size_t n);
int lockstep_probe(char* to, const char* from, size_t n) {
  char between[64];
  memcpy(between, from, n);
  memcpy(to, between, n);
  return between[0];
}
"""
# part: the flags that make it, and those that leave it out
PARTS = {
    "relro": (["-Wl,-z,relro"], ["-Wl,-z,norelro"]),
    "now": (["-Wl,-z,now"], ["-Wl,-z,lazy"]),
    "noexecstack": (["-Wl,-z,noexecstack"], ["-Wl,-z,execstack"]),
    "stack": (["-fstack-protector-strong"], ["-fno-stack-protector"]),
    "fortify": (["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"], ["-U_FORTIFY_SOURCE"]),
    "cet": (["-fcf-protection"], ["-fcf-protection=none"]),
}
ENDBR64 = b"\xf3\x0f\x1e\xfa"
# Of external linkage, so that GCC cannot know all callers; a clone or a lambda is called directly.
OURS = re.compile(r"(_ZNK?8lockstep|lockstep_)(?!.*(_GLOBAL__N_|UlR?|UlvE|\.))")


def read(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], capture_output=True, text=True, check=True).stdout


def unmarked(path, symbols):
    """Functions of ours that do not begin with endbr64, as the note of the whole file cannot tell: it is missing as soon
    as one object of the distribution's (crti.o) lacks it."""
    text = re.search(r" \.text +PROGBITS +(\w+) (\w+) (\w+)", read("-S", path))
    address, offset, size = (int(number, 16) for number in text.groups())
    with open(path, "rb") as file:
        file.seek(offset)
        code = file.read(size)
    entries = {fields[7]: int(fields[1], 16) - address for fields in map(str.split, symbols.splitlines())
               if len(fields) > 7 and fields[3] == "FUNC" and fields[6] != "UND"
               and fields[4:6] != ["LOCAL", "DEFAULT"] and OURS.match(fields[7])}  # (such are a file's own)
    missing = [name for name, at in entries.items() if not code.startswith(ENDBR64, at)]
    return missing if entries else ["lockstep_*, of which there is none"]


def lacks(path):
    """{part: what is missing}"""
    headers, dynamic, symbols = read("-l", path), read("-d", path), read("-s", path)
    stack = re.search(r"GNU_STACK .* (\S+) +0x", headers)
    bare = unmarked(path, symbols)
    return {part: what for part, there, what in (
        ("relro", "GNU_RELRO" in headers, "GNU_RELRO"),
        ("now", re.search(r"BIND_NOW|FLAGS_1.*NOW", dynamic), "BIND_NOW"),
        ("noexecstack", stack and "E" not in stack.group(1), "a stack without code"),
        ("stack", "__stack_chk_fail" in symbols, "a stack protector"),
        ("fortify", re.search(r"\b__\w+_chk\b", symbols), "checked calls (__memcpy_chk)"),
        ("cet", not bare, f"endbr64 at {len(bare)} functions ({', '.join(bare[:3])})")) if not there}


def probe(compiler, folder, flags):
    """What a library lacks that was built so; None where the compiler does not know the flags."""
    source, library = os.path.join(folder, "probe.c"), os.path.join(folder, "probe.so")
    with open(source, "w") as file:
        file.write(PROBE)
    made = subprocess.run([*compiler, "-O2", "-fPIC", "-shared", *flags, source, "-o", library], capture_output=True)
    return lacks(library) if made.returncode == 0 else None


def expected(compiler, without):
    """The parts to ask for; leaves the program where one of them could be left out unseen."""
    with tempfile.TemporaryDirectory() as folder:
        able = [part for part, (made, _) in PARTS.items() if (found := probe(compiler, folder, made)) is not None and part not in found]
        every = [flag for part in able for flag in PARTS[part][0]]
        for part in able:
            found = probe(compiler, folder, every + PARTS[part][1])
            if found is None or set(found) & set(able) != {part}:
                sys.exit(f"a probe without {part} ({' '.join(PARTS[part][1])}) is said to lack {found}")
    return [part for part in able if part not in without]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without", action="append", default=[], choices=PARTS)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    asked = expected(options.compiler.split(), options.without)
    bad = False
    for path in options.files:
        missing = [what for part, what in lacks(path).items() if part in asked]
        print(f"{path}: {'lacks ' + ', '.join(missing) if missing else 'hardened'} (asked: {', '.join(asked)})")
        bad = bad or bool(missing)
    return bad


if __name__ == "__main__":
    sys.exit(main())
