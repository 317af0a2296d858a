#!/usr/bin/env python3
"""README.md: its code is the code that the tests compile, its links exist, it is short, it has the sections that a
newcomer needs, and its tables name every build option and every setting of the environment."""
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

lines, words = len(text.splitlines()), len(text.split())
if lines > 250 or words > 3000:
    failures.append(f"README.md has {lines} lines and {words} words; at most 250 and 3,000")
for title in ("Two commands", "When to use it", "When not to use it", "What is supported", "Install", "Versions", "The map"):
    if f"\n## {title}\n" not in text:
        failures.append(f'README.md has no section "{title}"')

options = re.findall(r"^option\('(\w+)'.*?value: ('[^']*'|\w+)", (root / "meson_options.txt").read_text(), re.M)
shown = dict(re.findall(r"^\| `-D(\w+)` \| `?([^|`]+?)`? \|", text, re.M))
for name, value in options:
    if shown.pop(name, None) != value.strip("'"):
        failures.append(f"README.md's table of options lacks -D{name} with its default {value}")
shown.pop("default_library", None)  # Meson's own
failures += [f"README.md names -D{name}, which meson_options.txt does not have" for name in shown]

used = set()
for source in [*root.glob("lib/**/*.?pp"), *root.glob("backends/**/*.?pp")]:
    used |= set(re.findall(r'(?:environment|getenv|text|kept_path)\([^()"]*"(LOCKSTEP_[A-Z_]+)"', source.read_text()))
known = set(re.findall(r"^\| `(LOCKSTEP_[A-Z_]+)` \|", text, re.M))
failures += [f"README.md's table of settings lacks {name}" for name in sorted(used - known)]
failures += [f"README.md names {name}, which nothing reads" for name in sorted(known - used)]
print("\n".join(failures) or f"{len(blocks)} code blocks, all links resolve")
sys.exit(1 if failures else 0)
