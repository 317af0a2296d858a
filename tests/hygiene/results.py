#!/usr/bin/env python3
"""results.py ROOT - results files have one result on each line, as the program writes them, so that a change of one result
is a change of one line."""
import json
import pathlib
import sys

files = sorted(pathlib.Path(sys.argv[1], "tests/results").glob("*.json"))
wrong = []
for file in files:
    text = file.read_text()
    lines = 2
    for member in json.loads(text).values():
        lines += len(member) + 2 if isinstance(member, list) and member else 1
    if any(key in json.loads(text) for key in ("benchmarks", "readings")) and text.count("\n") > lines:
        wrong.append(f"{file.name}: {text.count(chr(10))} lines hold what {lines} would; write it anew with --from {file.name} --json")
print("\n".join(wrong) or f"{len(files)} files")
sys.exit(1 if wrong or len(files) < 10 else 0)
