#!/usr/bin/env python3
"""manual.py LOCKSTEP LOCKSTEP.1 - every option in a command's --help is in the man page, in the part of that command
or in the part of options of every run; and every line that begins with a dot is a macro, for others are not shown."""
import re
import subprocess
import sys

tool, page = sys.argv[1], sys.argv[2]
with open(page) as f:
    text = f.read().replace("\\-", "-")
parts = dict(re.findall(r"\n\.TP\n\.(?:BI|BR|B) \"?(info|run|verify|bench|calibrate|tune|probe|explain|demo|import|ranks)\b(.*?)"
                        r"(?=\n\.TP\n\.(?:BI|BR|B) \"?(?:info|run|verify|bench|calibrate|tune|probe|explain|demo|import|ranks)\b|\n\.SH)", text, re.S))
parts["export"] = parts["import"]
shared = text[text.index(".SH OPTIONS OF EVERY RUN"):text.index(".SH FILES IN")]
ops = ["transpose", "permute", "square_sum", "reduce", "stencil", "shuffle", "normalize", "scan", "sums", "reduce_axes", "convert", "map"]
missing, options = [], 0
macros = {"B", "BI", "BR", "I", "IP", "IR", "RB", "RE", "RI", "RS", "SH", "TH", "TP", "br", "fi", "nf"}
missing += [f"lockstep.1 shows no line that begins with .{name}; write \\&.{name}" for name in re.findall(r"^\.(\w+)", text, re.M) if name not in macros]
names = subprocess.run([tool, "bench", "--help"], capture_output=True, text=True, check=True).stdout.partition("Names of cases")[2]
written = [line.split()[0] for line in names.splitlines() if re.match(r"  \S", line)]
missing += [f"lockstep bench --help has {name}: not in lockstep.1" for name in written if f"\n.B {name}\n" not in text]
# A command of builds with -Dranks=enabled.
there = re.search(r"^  ranks ", subprocess.run([tool, "--help"], capture_output=True, text=True, check=True).stdout, re.M)
ranks = [["ranks", part] for part in ("verify", "plan", "bench")] if there else []
for command in [["info"], ["verify"], ["bench"], ["calibrate"], ["tune"], ["probe"], ["explain"], ["demo"], ["import"], ["export"]] + [["run", op] for op in ops] + ranks:
    said = subprocess.run([tool, *command, "--help"], capture_output=True, text=True, check=True).stdout
    for option in re.findall(r"^  (?:-\w,)?(--[a-z][a-z0-9-]*)", said, re.M):
        if option == "--help":
            continue
        options += 1
        where = parts.get(command[0], "") + shared + (text[:text.index(".SH DESCRIPTION")] if command[0] == "info" else "")
        if not re.search(re.escape(option) + r"(?![\w-])", where):
            missing.append(f"lockstep {' '.join(command)} {option}: not in lockstep.1")
print("\n".join(missing + [f"{options} options, {len(missing)} of them missing"]))
sys.exit(1 if missing or options < 80 or len(written) < 10 else 0)
