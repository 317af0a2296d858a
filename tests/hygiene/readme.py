#!/usr/bin/env python3
"""The README's code is the code that the tests compile, and its links lead somewhere."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
text = (root / "README.md").read_text()
blocks = re.findall(r"```(\w+)\n(.*?)```", text, re.S)
failures = []
for language, name in (("c", "example.c"), ("cpp", "example.cpp")):
    source = (root / "tests" / "api" / name).read_text()
    if not any(kind == language and body == source for kind, body in blocks):
        failures.append(f"README.md has no ```{language} block equal to tests/api/{name}")
    if len(source.splitlines()) > 17:
        failures.append(f"tests/api/{name} has grown beyond an example")
for target in re.findall(r"\]\(([^)#]+)\)", text):
    if "://" not in target and not (root / target).exists():
        failures.append(f"README.md links to {target}, which does not exist")
print("\n".join(failures) or f"{len(blocks)} code blocks, all links resolve")
sys.exit(1 if failures else 0)
