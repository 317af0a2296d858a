#!/usr/bin/env python3
"""tidy.py ROOT BUILD [FILE ...] - clang-tidy (.clang-tidy) finds nothing in the sources of the library and of the CPU
backend (a third of them each day; LOCKSTEP_DAY=all takes all), or in the named files. Exit code 77 (skipped) where there is no clang-tidy 14: each version finds other
things."""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

# GCC's own options, which stop clang before it reads the file.
UNKNOWN_TO_CLANG = {"-fno-gnu-unique"}

os.nice(10)  # other tests run beside this one
root, build, named = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
tidy = os.environ.get("CLANG_TIDY") or shutil.which("clang-tidy")
if not tidy:
    print("no clang-tidy: apt-get install clang-tidy")
    sys.exit(77)
if not os.environ.get("CLANG_TIDY") and "version 14." not in subprocess.run([tidy, "--version"], capture_output=True, text=True).stdout:
    print(f"{tidy} is not version 14; CLANG_TIDY=PROGRAM runs another one")
    sys.exit(77)
commands = json.loads((build / "compile_commands.json").read_text())
for one in commands:
    one["command"] = shlex.join(word for word in shlex.split(one["command"]) if word not in UNKNOWN_TO_CLANG)
# Sources that are compiled together stand in a file that includes them.
for one in [one for one in commands if re.search(r"-unity\d+\.cpp$", one["file"])]:
    for source in re.findall(r"#include\s*[<\"](.+)[>\"]", pathlib.Path(one["directory"], one["file"]).read_text()):
        commands.append({**one, "file": source, "command": one["command"].replace(one["file"], shlex.quote(source))})
known = {pathlib.Path(one["directory"], one["file"]).resolve() for one in commands}
if named:
    files = [pathlib.Path(name).resolve() for name in named]
    if missing := [str(file) for file in files if file not in known]:
        sys.exit(f"not compiled in {build}: {', '.join(missing)}")
else:
    files = sorted(f for pattern in ("lib/*.cpp", "lib/ops/*.cpp", "lib/ranks/*.cpp", "backends/cpu/*.cpp")
                   for f in root.glob(pattern) if f in known)
    day = os.environ.get("LOCKSTEP_DAY") or str(int(time.time()) // 86400)
    if day != "all":
        files = files[int(day) % 3::3]


def found(file, database):
    r = subprocess.run([tidy, "-p", database, "--quiet", "--warnings-as-errors=*", file], capture_output=True, text=True)
    # Failing without a finding means that clang-tidy itself did not start: then stderr says why.
    return r.returncode, "\n".join(line for line in (r.stdout or r.stderr).splitlines() if line) if r.returncode else ""


with tempfile.TemporaryDirectory() as database, concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
    pathlib.Path(database, "compile_commands.json").write_text(json.dumps(commands))
    results = list(pool.map(lambda file: found(file, database), files))
for file, (code, text) in zip(files, results):
    if code:
        print(f"{file.relative_to(root)}:\n{text}")
wrong = sum(code != 0 for code, _ in results)
print(f"{len(files)} files, {wrong} with findings")
sys.exit(1 if wrong or not files else 0)
