#!/usr/bin/env python3
"""old_cpp.py COMPILER INCLUDE - before C++20 lockstep.hpp is one error, which says what to do, and lockstep.h works."""
import subprocess
import sys

compiler, include = sys.argv[1].split(), sys.argv[2]


def compiled(header, standard):
    return subprocess.run([*compiler, f"-std={standard}", "-I", include, "-fsyntax-only", "-x", "c++", "-"], input=f"#include <lockstep/{header}>\n",
                          capture_output=True, text=True)


failed = []
old = compiled("lockstep.hpp", "c++17")
if old.returncode == 0 or old.stderr.count("error:") != 1 or "lockstep.hpp needs C++20: compile with -std=c++20" not in old.stderr:
    failed.append(f"lockstep.hpp as C++17: {old.stderr}")
for header, standard in (("lockstep.h", "c++11"), ("lockstep.h", "c++17"), ("lockstep.hpp", "c++20")):
    if (r := compiled(header, standard)).returncode != 0:
        failed.append(f"{header} as {standard}: {r.stderr}")
print("\n".join(failed) or "ok")
sys.exit(1 if failed else 0)
