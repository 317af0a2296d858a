#!/usr/bin/env python3
"""docs.py ROOT TOOL - checks the documentation: every program on its pages is a file of tools/examples, which other tests
build and run; every command on them succeeds; each language has the same headings, tables, programs, commands and pictures; every exported
function is in the reference; and Sphinx builds the site without a warning, with an index of every symbol, a way from each page
to the other language's and a search that knows Chinese words (exit code 77 if there is no Sphinx)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Folders that pages include from, and where they are (tools/docs/build links them).
INCLUDED = {"examples": "tools/examples", "cuda": "backends/cuda", "probe": "tools/probe/cuda"}
FENCE = re.compile(r"^```(\S*)(.*?)\n(.*?)^```", re.S | re.M)


def outline(page):
    """The levels of a page's headings and its tables, in their order."""
    text = re.sub(r"^(`{3,}).*?^\1\s*$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return " ".join("table" if line.startswith("|") else str(len(line.split()[0])) for line in
                    re.findall(r"^(?:#+ .*|\|[-: |]+\|)$", text, flags=re.MULTILINE))


def blocks(page):
    return [(kind, argument.strip(), body) for kind, argument, body in FENCE.findall(page.read_text())]


def why_not_included(root, argument, body):
    """Why a {literalinclude} cannot be made, or None."""
    folder, _, rest = argument.partition("/")
    path = root / INCLUDED.get(folder, "-") / rest
    if not path.is_file():
        return f"there is no {path.relative_to(root)}"
    text = path.read_text()
    for option, words in re.findall(r'^:(start-at|end-before): "?(.*?)"?$', body, re.M):
        if words not in text:
            return f"{path.relative_to(root)} has no `{words}`"
        text = text[text.index(words) + len(words):]
    return None


def site_failures(root, site, exported):
    """What the built site lacks: a page in the other language and the way to it, symbols in the index, Chinese words in the search."""
    failures = []
    pages = {language: {p.relative_to(site / language) for p in (site / language).rglob("*.html")} for language in ("en", "zh")}
    if pages["en"] != pages["zh"]:
        failures.append(f"pages of one language only: {sorted(map(str, pages['en'] ^ pages['zh']))}")
    for language, other in (("en", "zh"), ("zh", "en")):
        for name in ("index.html", "reference/transpose.html"):
            found = re.search(rf'<a lang="{other}" href="([^"]+)"', (site / language / name).read_text())
            if not found or not (site / language / name).parent.joinpath(found.group(1)).resolve().samefile(site / other / name):
                failures.append(f"{language}/{name} has no link to its page in {other}")
        told = (site / language / "figures.html").read_text()
        failures += [f"{language}/figures.html has no {p.name}" for p in (root / "tests/results").glob("readme-*.json")
                     if not p.stem.endswith("-cold") and p.name not in told]
        index = (site / language / "genindex.html").read_text()
        headers = "".join((root / "lib/include/lockstep" / h).read_text() for h in ("lockstep.h", "group.h", "backend_peer.h", "ranks.h"))
        constants = re.findall(r"^  (LOCKSTEP_[A-Z0-9_]+) = ", headers, re.M)
        lacking = [name for name in exported + constants if f">{name}<" not in index]
        if lacking or len(constants) < 80:
            failures.append(f"the index of {language} lacks {', '.join(lacking)}; {len(constants)} constants")
    words = (site / "zh/searchindex.js").read_text()
    for word in ("转置", "归约", "步长", "通道"):
        escaped = word.encode("ascii", "backslashreplace").decode()
        if not re.search(rf'"({word}|{re.escape(escaped)})":', words):
            failures.append(f"the search of the Chinese pages does not know {word}")
    if "function splitQuery" not in (site / "zh/_static/language_data.js").read_text():
        failures.append("the search of the Chinese pages does not divide what is looked for into words")
    if shutil.which("chromium"):  # a reader's search, of a word in the middle of a longer one
        found = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom",
                                f"{(site / 'zh/search.html').as_uri()}?q=%E5%AD%98%E5%82%A8%E4%BD%93"], capture_output=True, text=True).stdout
        if "lesson-transpose.html" not in found:
            failures.append("the search of the Chinese pages does not find 存储体 on the page about transposes")
    han = "[\u4e00-\u9fff，。；：、（）]"
    for page in sorted((site / "zh").glob("*.html")):
        paragraphs = "\0".join(re.findall(r"<p>(.*?)</p>", page.read_text(), re.S))
        broken = re.findall(rf"{han}{{4}}\n{han}{{4}}", re.sub(r"<[^>]+>", "", paragraphs))
        if broken:
            failures.append(f"zh/{page.name}: a line ends within Chinese text, which shows as a space: {broken[0]!r}")
    return failures


def lacks_sphinx():
    """What the site's builder lacks here, or ""."""
    program = shutil.which("sphinx-build")
    if not program:
        return "no sphinx-build"
    with open(program, errors="replace") as file:
        first = file.readline()
    python = first[2:].split() if first.startswith("#!") else [sys.executable]
    for module in ("myst_parser", "furo"):
        if subprocess.run([*python, "-c", f"import {module}"], capture_output=True).returncode != 0:
            return f"sphinx-build has no {module}"
    return ""


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
            if kind == "{literalinclude}" and why_not_included(root, argument, body):
                failures.append(f"{page}: {why_not_included(root, argument, body)}")
            if kind == "console":
                commands += [(page, line[2:]) for line in body.splitlines() if line.startswith("$ ")]
        shown = {language: [(kind, argument, body if kind == "console" else "") for kind, argument, body in
                            blocks(pages[language][name])] + re.findall(r"\]\((pictures/\S+)\)", pages[language][name].read_text())
                 for language in pages if name in pages[language]}
        if len(shown) == 2 and shown["en"] != shown["zh"]:
            failures.append(f"{name}: the programs, commands or pictures in zh are not those in en")
        outlines = {language: outline(pages[language][name]) for language in pages if name in pages[language]}
        if len(outlines) == 2 and outlines["en"] != outlines["zh"]:
            failures.append(f"{name}: the headings (by level) or tables in zh, {outlines['zh']}, are not those in en, {outlines['en']}")

    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/tests")
        os.symlink(root / "tests/results", f"{folder}/tests/results")  # recorded runs, which commands read
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

    if (run := subprocess.run([sys.executable, docs / "first_picture.py", tool], capture_output=True, text=True)).returncode != 0:
        failures.append(run.stderr.strip())
    missing = lacks_sphinx()
    if not missing and not failures:
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([docs / "build", folder, "--tool", tool], capture_output=True, text=True)
            if run.returncode != 0:
                failures.append(run.stdout + run.stderr)
            else:
                failures += site_failures(root, pathlib.Path(folder), exported)
    print("\n".join(failures + [f"{len(commands)} commands, {len(pages['en'])} pages in {len(pages)} languages, "
                                f"{len(failures)} failures"]))
    if failures:
        return 1
    if missing:
        print(f"SKIP: {missing}; the site was not built")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()))
