#!/usr/bin/env python3
"""README.md: its code is the code that the tests compile, its links and pictures exist, it is short, its first screen shows
pictures, and it has the sections that a newcomer needs. The pages install.md and settings.md name every build option and
every setting of the environment, in both languages."""
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
if lines > 170 or words > 1800:
    failures.append(f"README.md has {lines} lines and {words} words; at most 170 and 1,800")
if len(re.findall(r"!\[[^]]+\]\([^)]+\.svg\)", text[: text.index("\n## ")])) < 2:
    failures.append("README.md shows no two pictures before its first section")
for title in ("Two commands", "First steps", "Install", "Performance", "When to use it", "When not to use it", "What is supported", "Documentation",
              "Versions"):
    if f"\n## {title}\n" not in text:
        failures.append(f'README.md has no section "{title}"')

options = re.findall(r"^option\('(\w+)'.*?value: ('[^']*'|\w+)", (root / "meson_options.txt").read_text(), re.M)
used = set()
for source in [*root.glob("lib/**/*.?pp"), *root.glob("backends/**/*.?pp")]:
    used |= set(re.findall(r'(?:environment|getenv|text|kept_path)\([^()"]*"(LOCKSTEP_[A-Z_]+)"', source.read_text()))
for language in ("en", "zh"):
    page = root / "tools/docs" / language / "install.md"
    shown = dict(re.findall(r"^\| `-D(\w+)` \| `?([^|`]+?)`? \|", page.read_text(), re.M))
    for name, value in options:
        if shown.pop(name, None) != value.strip("'"):
            failures.append(f"{page}: its table of options lacks -D{name} with its default {value}")
    shown.pop("default_library", None)  # Meson's own
    failures += [f"{page} names -D{name}, which meson_options.txt does not have" for name in shown]
    page = root / "tools/docs" / language / "settings.md"
    known = set(re.findall(r"^\| `(LOCKSTEP_[A-Z_]+)` \|", page.read_text(), re.M))
    failures += [f"{page}: its table of settings lacks {name}" for name in sorted(used - known)]
    failures += [f"{page} names {name}, which nothing reads" for name in sorted(known - used)]
print("\n".join(failures) or f"{len(blocks)} code blocks, all links resolve")
sys.exit(1 if failures else 0)
