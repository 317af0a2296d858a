#!/usr/bin/env python3
"""agree_test.py TOOL RESULTS - what a page would say of the committed results (bench --from FILE) is what README's
tables say, for these are made from the verdicts that stand in the files."""
import glob
import json
import os
import subprocess
import sys

tool, results = sys.argv[1:3]


def verdicts(text):
    found = {}
    for row in json.loads(text)["benchmarks"]:
        if row.get("verdict"):
            found[row["name"], row["backend"], row["source"], row["cold"]] = row["verdict"]
    return found


wrong = judged = 0
for path in sorted(glob.glob(os.path.join(results, "readme-*.json"))):
    with open(path) as file:
        told = verdicts(file.read())
    run = subprocess.run([tool, "bench", "--from", path, "--json", "-"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{path}: {run.stderr}")
    anew = verdicts(run.stdout)
    judged += len(anew)
    for row in sorted(set(told) | set(anew)):
        if told.get(row) != anew.get(row):
            wrong += 1
            print(f"{os.path.basename(path)}: {' '.join(map(str, row))}: the file says {told.get(row)}, the page {anew.get(row)}")
print(f"{judged} verdicts, {wrong} that differ")
sys.exit(wrong != 0 or judged == 0)
