#!/usr/bin/env python3
"""Fused and plain floating-point instructions of every CUDA kernel against a committed table.

sass.py [--write] TABLE CUOBJDUMP NVCC_RELEASE GPU_ARCH OBJECT...

The order of every sum says which operations are fused; a compiler that fuses others, or
stops fusing, changes bits. Counts hold for one nvcc release; under another one only their
zeros are compared: an instruction that a kernel did not have, or no longer has.
Exits 77 without cuobjdump or without sm_90 code. --write makes the table anew."""
import collections
import pathlib
import re
import shutil
import subprocess
import sys

KINDS = ("FFMA", "FADD", "FMUL", "DFMA", "DADD", "DMUL", "HFMA2")
KIND = {name: name for name in KINDS} | {"FFMA2": "FFMA", "FADD2": "FADD", "FMUL2": "FMUL"}


def counted(cuobjdump, objects):
    """{kernel: {kind: count}}, kernels by their readable names."""
    counts = collections.defaultdict(collections.Counter)
    for path in objects:
        dump = subprocess.run([cuobjdump, "--dump-sass", "-arch", "sm_90", path], capture_output=True, text=True, check=True)
        kernel = None
        for line in dump.stdout.splitlines():
            if "Function : " in line:
                kernel = counts[line.split("Function : ")[1].strip()]
            elif kernel is not None:
                found = re.match(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9]+)", line)
                # HFMA2 that writes a constant is a move: its sources are -RZ or RZ and immediates.
                if found and found[1] in KIND and not (found[1] == "HFMA2" and "-RZ, RZ" in line):
                    kernel[KIND[found[1]]] += 1
    plain = subprocess.run(["c++filt"], input="\n".join(counts), capture_output=True, text=True, check=True).stdout.splitlines()
    readable = collections.defaultdict(collections.Counter)
    for name, (_, count) in zip(plain, counts.items()):
        name = re.sub(r"\(anonymous namespace\)::|lockstep::cuda::|_GLOBAL__N__\w+::|^void ", "", name)
        name = re.sub(r"(CUB|THRUST)_\d+_SM_[\d_]+", r"\1", name)  # the library's release and the list of architectures
        while name in readable:  # of another object
            name += " again"
        readable[name] = count
    return readable


def line_of(name, count):
    return " ".join([f"{count[k]:5d}" for k in KINDS] + [" " + name])


def main(arguments):
    write = "--write" in arguments
    table, cuobjdump, release, architectures, *objects = [a for a in arguments if a != "--write"]
    if not shutil.which(cuobjdump) or not any(a in ("90", "90-ptx") for a in architectures.split(",")):
        print("no cuobjdump beside nvcc, or no sm_90 code in this build: skipped")
        return 77
    found = counted(cuobjdump, objects)
    if not found:
        print("no kernel found in the objects")
        return 1
    if write:
        head = [f"nvcc {release} sm_90", " ".join(f"{k:>5}" for k in KINDS) + "  kernel"]
        pathlib.Path(table).write_text("\n".join(head + [line_of(n, found[n]) for n in sorted(found)]) + "\n")
        print(f"{len(found)} kernels written")
        return 0
    made_with, _, *lines = pathlib.Path(table).read_text().splitlines()
    same_release = made_with.split()[1] == release
    wanted = {}
    for line in lines:
        *numbers, name = line.split(maxsplit=len(KINDS))
        wanted[name] = collections.Counter(dict(zip(KINDS, map(int, numbers))))
    wrong = [f"unknown kernel (add it with --write): {n}" for n in sorted(found.keys() - wanted.keys())]
    wrong += [f"vanished kernel: {n}" for n in sorted(wanted.keys() - found.keys())]
    for name in sorted(found.keys() & wanted.keys()):
        for kind in KINDS:
            has, should = found[name][kind], wanted[name][kind]
            if (has != should) if same_release else (bool(has) != bool(should)):
                wrong.append(f"{kind}: {has}, not {should}, in {name}")
    print("\n".join(wrong) or f"{len(found)} kernels as in the table, {'counts' if same_release else 'zeros only: ' + made_with}")
    return 1 if wrong else 0


sys.exit(main(sys.argv[1:]))
