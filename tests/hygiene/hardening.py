#!/usr/bin/env python3
"""hardening.py FILE... - fails unless each library or program is linked with RELRO and BIND_NOW, has no executable stack
and, where its code has arrays on the stack, checks it. CET is asked for where the first file has it."""
import re
import subprocess
import sys


def read(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], capture_output=True, text=True, check=True).stdout


def lacks(path, cet):
    headers, dynamic, symbols, notes = read("-l", path), read("-d", path), read("-s", path), read("-n", path)
    stack = re.search(r"GNU_STACK .* (\S+) +0x", headers)
    return [what for what, there in (
        ("GNU_RELRO", "GNU_RELRO" in headers),
        ("BIND_NOW", re.search(r"BIND_NOW|FLAGS_1.*NOW", dynamic)),
        ("a stack without code", stack and "E" not in stack.group(1)),
        ("a stack protector", "__stack_chk_fail" in symbols),
        ("CET (IBT, SHSTK)", not cet or ("IBT" in notes and "SHSTK" in notes))) if not there]


def main(paths):
    cet = "IBT" in read("-n", paths[0])
    # The CUDA runtime that is linked into a module has no such marks.
    missing = {path: lacks(path, cet and "cuda" not in path.rsplit("/", 1)[-1]) for path in paths}
    for path, what in missing.items():
        print(f"{path}: {'lacks ' + ', '.join(what) if what else 'hardened'}{'' if cet else ' (no CET here)'}")
    return 1 if any(missing.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
