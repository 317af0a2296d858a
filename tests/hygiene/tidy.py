#!/usr/bin/env python3
"""tidy.py ROOT BUILD [FILE ...] - clang-tidy (.clang-tidy) finds nothing in the sources of the library and of the CPU
backend, or in the files that are named (6 seconds of a core each). Run by hand. Exit code 77 where there is no clang-tidy."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

root, build, named = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
tidy = os.environ.get("CLANG_TIDY") or shutil.which("clang-tidy")
if not tidy:
    print("no clang-tidy: apt-get install clang-tidy")
    sys.exit(77)
known = {pathlib.Path(one["directory"], one["file"]).resolve() for one in json.loads((build / "compile_commands.json").read_text())}
if named:
    files = [pathlib.Path(name).resolve() for name in named]
else:
    files = sorted(f for pattern in ("lib/*.cpp", "lib/ops/*.cpp", "backends/cpu/*.cpp") for f in root.glob(pattern) if f.resolve() in known)


def found(file):
    r = subprocess.run([tidy, "-p", build, "--quiet", "--warnings-as-errors=*", file], capture_output=True, text=True)
    return r.returncode, "\n".join(line for line in r.stdout.splitlines() if line) if r.returncode else ""


with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
    results = list(pool.map(found, files))
for file, (code, text) in zip(files, results):
    if code:
        print(f"{file.relative_to(root)}:\n{text}")
wrong = sum(code != 0 for code, _ in results)
print(f"{len(files)} files, {wrong} with findings")
sys.exit(1 if wrong or not files else 0)
