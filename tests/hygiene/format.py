#!/usr/bin/env python3
"""format.py ROOT - fails when clang-format would change a C, C++ or CUDA source. Each release of clang-format
breaks lines in its own way, so another than RELEASE is skipped (exit code 77)."""
import pathlib
import re
import shutil
import subprocess
import sys

RELEASE = "14"


def main(root):
    program = shutil.which(f"clang-format-{RELEASE}") or shutil.which("clang-format")
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout if program else ""
    if f"version {RELEASE}." not in version:
        print(f"SKIP: no clang-format {RELEASE}")
        return 77
    sources = [p for room in ("lib", "backends", "tests", "tools") for p in sorted((root / room).rglob("*"))
               if p.suffix in (".h", ".hpp", ".c", ".cpp", ".cu", ".cuh")]
    found = subprocess.run([program, "--dry-run", *sources], capture_output=True, text=True).stderr
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning: code should be", found, re.M)))
    print("\n".join([*wrong, f"{len(wrong)} of {len(sources)} files are not as clang-format {RELEASE} has them"]))
    if wrong:
        print(f"fix: {program} -i FILE")
    return 1 if wrong or len(sources) < 100 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
