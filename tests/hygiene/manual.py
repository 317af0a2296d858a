#!/usr/bin/env python3
"""manual.py LOCKSTEP LOCKSTEP.1 - every option that a command's --help lists stands in the man page, in the part of
that command (or in the one of options that every run takes)."""
import re
import subprocess
import sys

tool, page = sys.argv[1], sys.argv[2]
with open(page) as f:
    text = f.read().replace("\\-", "-")
parts = dict(re.findall(r"\n\.TP\n\.(?:BI|BR|B) \"?(info|run|verify|bench|calibrate|probe|explain|demo|import|ranks)\b(.*?)"
                        r"(?=\n\.TP\n\.(?:BI|BR|B) \"?(?:info|run|verify|bench|calibrate|probe|explain|demo|import|ranks)\b|\n\.SH)", text, re.S))
parts["export"] = parts["import"]
shared = text[text.index(".SH OPTIONS OF EVERY RUN"):text.index(".SH FILES IN")]
ops = ["transpose", "permute", "square_sum", "reduce", "stencil", "shuffle"]
missing, options = [], 0
# A command of builds with -Dranks=enabled.
ranks = [["ranks", part] for part in ("verify", "plan", "bench")
         if subprocess.run([tool, "ranks", part, "--help"], capture_output=True).returncode == 0]
for command in [["info"], ["verify"], ["bench"], ["calibrate"], ["probe"], ["explain"], ["demo"], ["import"], ["export"]] + [["run", op] for op in ops] + ranks:
    said = subprocess.run([tool, *command, "--help"], capture_output=True, text=True, check=True).stdout
    for option in re.findall(r"^  (?:-\w,)?(--[a-z][a-z0-9-]*)", said, re.M):
        if option == "--help":
            continue
        options += 1
        where = parts.get(command[0], "") + shared + (text[:text.index(".SH DESCRIPTION")] if command[0] == "info" else "")
        if not re.search(re.escape(option) + r"(?![\w-])", where):
            missing.append(f"lockstep {' '.join(command)} {option}: not in lockstep.1")
print("\n".join(missing + [f"{options} options, {len(missing)} of them missing"]))
sys.exit(1 if missing or options < 80 else 0)
