#!/usr/bin/env python3
"""docs.py ROOT TOOL - checks the documentation: every program on its pages is a file of tools/examples, which other tests
build and run; every command on them succeeds; each language has the same programs, commands and pictures; every exported
function is in the reference; and Sphinx builds the site without a warning (exit code 77 if there is no Sphinx)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\S*)(.*?)\n(.*?)^```", re.S | re.M)


def blocks(page):
    return [(kind, argument.strip(), body) for kind, argument, body in FENCE.findall(page.read_text())]


def main(root, tool):
    docs, failures = root / "tools/docs", []
    sys.path.insert(0, str(docs))
    import reference

    pages = {language: {p.name: p for p in sorted((docs / language).glob("*.md"))} for language in ("en", "zh")}
    if list(pages["en"]) != list(pages["zh"]):
        failures.append(f"other pages in zh than in en: {sorted(set(pages['en']) ^ set(pages['zh']))}")
    commands = []
    for name, page in pages["en"].items():
        for kind, argument, body in blocks(page):
            if kind in ("c", "cpp", "python"):
                failures.append(f"{page}: a program of its own; put it into tools/examples and include it")
            if kind == "{literalinclude}" and not (root / "tools" / argument).is_file():
                failures.append(f"{page}: there is no tools/{argument}")
            if kind == "console":
                commands += [(page, line[2:]) for line in body.splitlines() if line.startswith("$ ")]
        shown = {language: [(kind, argument, body if kind == "console" else "") for kind, argument, body in
                            blocks(pages[language][name])] + re.findall(r"\]\((pictures/\S+)\)", pages[language][name].read_text())
                 for language in pages if name in pages[language]}
        if len(shown) == 2 and shown["en"] != shown["zh"]:
            failures.append(f"{name}: the programs, commands or pictures in zh are not those in en")

    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}", "LOCKSTEP_BACKEND": "cpu"}
        for page, command in commands:
            run = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
            if run.returncode != 0:
                failures.append(f"{page}: `{command}` exits with {run.returncode}: {run.stderr.strip()[:200]}")
    if len(commands) < 10:
        failures.append(f"only {len(commands)} commands were found on the pages")

    made = "\n".join(reference.all_pages(root / "lib/include/lockstep")[1].values())
    exported = [name for table in ("exported.txt", "exported_ranks.txt") for name in (root / "tests/hygiene" / table).read_text().split()]
    for function in exported:
        if f"{function}(" not in made:
            failures.append(f"{function} is not in the reference")

    if shutil.which("sphinx-build") and not failures:
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([docs / "build", folder, "--tool", tool], capture_output=True, text=True)
            if run.returncode != 0:
                failures.append(run.stdout + run.stderr)
    print("\n".join(failures + [f"{len(commands)} commands, {len(pages['en'])} pages in {len(pages)} languages, "
                                f"{len(failures)} failures"]))
    if failures:
        return 1
    if not shutil.which("sphinx-build"):
        print("SKIP: no sphinx-build; the site was not built")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()))
