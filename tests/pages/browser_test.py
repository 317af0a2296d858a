#!/usr/bin/env python3
"""browser_test.py LOCKSTEP - pages in a real browser engine, light and dark, from a
phone's width to a wall's: nothing overflows, no text is cut or lies across other text,
contrasts hold, nothing is fetched, nothing runs, nothing is said on the console.
Exit code 77 where there is no browser that runs. Pictures stay in $PAGES_OUT."""
import html
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)
HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE.parent / "results"
OUT = pathlib.Path(os.environ.get("PAGES_OUT", tempfile.gettempdir()))
LIGHT, DARK = 1, 0  # Blink's numbers


def browser(*arguments, scheme=LIGHT, patience=120):
    """Output goes to files, and a browser that is late is ended with all of its processes: they would hold a pipe open,
    and whoever reads it would wait for ever. A busy machine gets a second try."""
    for last in (False, True):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                       "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-sync",
                       "--disable-dev-shm-usage", "--enable-logging=stderr", f"--user-data-dir={folder}/profile",
                       f"--blink-settings=preferredColorScheme={scheme}", *arguments]
            with open(f"{folder}/out", "w+b") as out, open(f"{folder}/err", "w+b") as err:
                started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
                try:
                    started.wait(patience)
                    late = False
                except subprocess.TimeoutExpired:
                    late = True
                finally:
                    try:
                        os.killpg(started.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                    started.wait()
                texts = []
                for file in (out, err):
                    file.seek(0)
                    texts.append(file.read().decode("utf-8", "replace"))
            if not late:
                return subprocess.CompletedProcess(command, started.returncode, *texts)
            if last:
                raise AssertionError(f"the browser did not end within {patience} s, twice: {texts[1][-2000:]}")


def find_browser():
    # Ubuntu's chromium-browser only says that there is a snap; a snap sees no /tmp.
    global BROWSER
    for name in (os.environ.get("CHROMIUM"), "chromium", "google-chrome", "google-chrome-stable", "chromium-browser"):
        BROWSER = name and shutil.which(name)
        if not BROWSER:
            continue
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.html")
            page.write_text("<p>it works</p>")
            try:
                if "<p>it works</p>" in browser("--dump-dom", page.as_uri(), patience=60).stdout:
                    return True
            except (OSError, AssertionError):
                pass
    return False


def console(run):
    return [line for line in run.stderr.splitlines() if "CONSOLE" in line]


def findings(page, scheme=LIGHT):
    """What measure.js finds about a page, and what was said on the console meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        outer = pathlib.Path(folder, "outer.html")
        outer.write_text("<!doctype html><meta charset=utf-8><pre id=found></pre><textarea id=page>" + html.escape(page) + "</textarea><script>"
                         + (HERE / "measure.js").read_text() + "</script>", encoding="utf-8")
        run = browser("--dump-dom", "--virtual-time-budget=20000", outer.as_uri(), scheme=scheme)
    match = re.search(r'<pre id="found">(.*?)</pre>', run.stdout, re.S)
    if not match or not match.group(1):
        raise AssertionError(f"the browser gave no findings: {run.stderr[-2000:]}")
    return json.loads(html.unescape(match.group(1))), console(run)


def tool(*arguments):
    run = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    if run.returncode != 0:
        raise AssertionError((arguments, run.stderr))


class Bench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = OUT / "bench.html"
        names = ["readme-h200", "ladder-h200", "host-pinned-h200", "crossover-h200", "readme-cascadelake-1-thread", "readme-cascadelake-2-threads"]
        cls.files = [RESULTS / f"{name}.json" for name in names]
        tool("bench", "--html", cls.path, *(word for f in cls.files for word in ("--from", f)))
        cls.page = cls.path.read_text(encoding="utf-8")

    def test_reads_well(self):
        for scheme in (LIGHT, DARK):
            with self.subTest(dark=scheme == DARK):
                found, said = findings(self.page, scheme)
                self.assertEqual(found["errors"], [])
                self.assertEqual(said, [])
                self.assertGreater(found["drawings"], 15)
                self.assertGreaterEqual(found["tables"], found["drawings"])
                (self.assertLess if scheme == DARK else self.assertGreater)(found["ground"], 0.5)
                for text in ("Method", "Roofline", "The ladder", "CPU or GPU", "CPU, GPU and auto", "Peers", "The limits", "NVIDIA H200", "driver 580.159.04"):
                    self.assertIn(text, found["text"])

    def test_shows_every_result(self):
        dom = browser("--dump-dom", self.path.as_uri())
        self.assertEqual(console(dom), [])
        text = html.unescape(dom.stdout)
        for file in self.files:
            for row in json.loads(file.read_text())["benchmarks"]:
                self.assertIn(row["name"].split("/", 1)[1], text)
                if row["source"] != "lockstep":
                    self.assertIn(row["source"], text)

    def test_pictures(self):
        for name, scheme, size in (("light", LIGHT, "1400,1800"), ("dark", DARK, "1400,1800"), ("narrow", LIGHT, "500,1800")):
            picture = OUT / f"bench-{name}.png"
            picture.unlink(missing_ok=True)
            run = browser(f"--screenshot={picture}", f"--window-size={size}", self.path.as_uri(), scheme=scheme)
            self.assertTrue(picture.exists(), run.stderr[-500:])
            self.assertGreater(picture.stat().st_size, 20000)

    def test_prints(self):
        paper = OUT / "bench.pdf"
        paper.unlink(missing_ok=True)
        browser(f"--print-to-pdf={paper}", "--no-pdf-header-footer", self.path.as_uri(), scheme=DARK)
        self.assertTrue(paper.read_bytes().startswith(b"%PDF"))

    def test_hostile_names(self):
        result = json.loads(self.files[0].read_text())
        evil = "<script>document.title='taken'</script><img src=x onerror=alert(1)>\"'&"
        result["meta"]["note"] = evil
        for row in result["benchmarks"]:
            row["variant"] = row["device"] = row["checked"] = evil
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "evil.json"), pathlib.Path(folder, "evil.html")
            source.write_text(json.dumps(result))
            tool("bench", "--html", target, "--from", source)
            found, said = findings(target.read_text(encoding="utf-8"))
        self.assertEqual([e for e in found["errors"] if "script" in e and "px" not in e or "fetched" in e], [])
        self.assertEqual(said, [])
        self.assertIn(evil, found["text"])


class Explain(unittest.TestCase):
    PAGES = {
        "classic": ["transpose", "--classic"],
        "conflict": ["transpose", "--variant", "tiled"],
        "levels": ["square_sum", "--variant", "conflicting"],
        "butterfly": ["square_sum", "--variant", "shuffle"],
        "halo": ["stencil", "--variant", "shared_constant_32"],
        "exchange": ["shuffle", "--kind", "up", "--width", "8", "--operand", "3"],
    }
    SAYS = {"classic": "50 %", "conflict": "32-way conflict", "levels": "Threads at work", "butterfly": "B10",
            "halo": "C2", "exchange": "D1-D4"}

    @staticmethod
    def lessons():
        listed = subprocess.run([TOOL, "explain", "--list"], capture_output=True, text=True, check=True).stdout
        return [line.split()[1:] for line in listed.splitlines()]

    def test_reads_well(self):
        for name, arguments in self.PAGES.items():
            path = OUT / f"explain-{name}.html"
            tool("explain", *arguments, "--html", path)
            page = path.read_text(encoding="utf-8")
            for scheme in (LIGHT, DARK):
                with self.subTest(name, dark=scheme == DARK):
                    found, said = findings(page, scheme)
                    self.assertEqual(found["errors"], [])
                    self.assertEqual(said, [])
                    self.assertGreater(found["drawings"], 0)
                    (self.assertLess if scheme == DARK else self.assertGreater)(found["ground"], 0.5)
                    for text in ("The whole grid, counted, beside the rule", self.SAYS[name]):
                        self.assertIn(text, found["text"])

    def test_text_of_pictures(self):
        """Of every lesson's --svg, on the usual machine and on the textbook's: no text is cut or lies across other text."""
        pictures = []
        with tempfile.TemporaryDirectory() as folder:
            for op, variant in self.lessons():
                for more in ([], ["--classic"]):
                    path = pathlib.Path(folder, "picture.svg")
                    tool("explain", op, "--variant", variant, *more, "--svg", path)
                    text = path.read_text(encoding="utf-8")
                    self.assertTrue(text.startswith("<svg"))
                    pictures.append(text)
        self.assertGreater(len(pictures), 60)
        found, said = findings("<!doctype html><meta charset=utf-8><body>" + "".join(pictures))
        self.assertEqual(found["drawings"], len(pictures))
        self.assertEqual([e for e in found["errors"] if "lies across" in e or "leaves \"" in e], [])
        self.assertEqual(said, [])

    def test_pictures(self):
        path = OUT / "explain.svg"
        tool("explain", "transpose", "--variant", "tiled", "--svg", path)
        grounds = []
        for name, scheme in (("light", LIGHT), ("dark", DARK)):
            picture = OUT / f"explain-{name}.png"
            picture.unlink(missing_ok=True)
            run = browser(f"--screenshot={picture}", "--window-size=1200,1200", path.as_uri(), scheme=scheme)
            self.assertTrue(picture.exists(), run.stderr[-500:])
            self.assertGreater(picture.stat().st_size, 20000)
            grounds.append(picture.read_bytes())
        self.assertNotEqual(*grounds)


class Probe(unittest.TestCase):
    PAGES = {"probe-h200": ["Bandwidth by stride", "Conflict ways by stride", "Constant cache by distinct addresses", "Latency by working set",
                            "Copies over the link", "Shared memory", "What the predictions rest on"],
             "probe-zen5": ["Latency by working set", "Bandwidth by working set", "What the predictions rest on"]}

    def test_reads_well(self):
        for name, says in self.PAGES.items():
            path = OUT / f"{name}.html"
            tool("probe", "--from", RESULTS / f"{name}.json", "--html", path)
            for scheme in (LIGHT, DARK):
                with self.subTest(name, dark=scheme == DARK):
                    found, said = findings(path.read_text(encoding="utf-8"), scheme)
                    self.assertEqual(found["errors"], [])
                    self.assertEqual(said, [])
                    self.assertGreater(found["drawings"], 5)
                    (self.assertLess if scheme == DARK else self.assertGreater)(found["ground"], 0.5)
                    for text in says:
                        self.assertIn(text, found["text"])


class Test(unittest.TestCase):
    """The measuring itself: a page with every fault has each of them found."""

    def test_faults_are_seen(self):
        with tempfile.TemporaryDirectory() as folder:  # one file's page: the faults are found as well on a short one
            path = pathlib.Path(folder, "page.html")
            tool("bench", "--html", path, "--from", RESULTS / "host-pinned-h200.json")
            page = path.read_text(encoding="utf-8")
        faults = {
            "is cut": ("<main>", "<main><div class=scroll><div style='width:900px'>wide</div></div>"),
            "too wide": ("<main>", "<main><div style='width:2500px'>wide</div>"),
            "leaves the page": ("<main>", "<main><p style='width:2500px;max-width:none'>wide</p>"),
            "text colour soft": ("--soft:#50585f", "--soft:#b0b8bf"),
            "series colour c3": ("--c3:#a8478a", "--c3:#f5b0dd"),
            "a script": ("<main>", "<main><script>1</script>"),
            "fetched": ("<main>", "<main><img src='http://127.0.0.1:9/nowhere.png'>"),
            "lies across": ('<text x="', '<text x="300" y="100">across</text><text x="302" y="101">across</text><text x="'),
            "leaves \"": ('<text x="', '<text x="-40" y="100">outside</text><text x="'),
            "ids are not unique": ("<main>", "<main><p id=s1>twice</p>"),
        }
        for fault, (before, after) in faults.items():
            with self.subTest(fault):
                self.assertIn(before, page)
                broken = page.replace(before, after, 1)
                if fault == "fetched":
                    broken = re.sub(r"<meta http-equiv[^>]*>", "", broken)
                found, _ = findings(broken)
                self.assertTrue(any(fault in e for e in found["errors"]), (fault, found["errors"][:5]))

    def test_console_is_heard(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.html")
            page.write_text("<script>console.error('heard')</script>")
            self.assertTrue(console(browser("--dump-dom", page.as_uri())))


if __name__ == "__main__":
    if not find_browser():
        print("no browser that runs: on Debian, apt-get install chromium; or name one with CHROMIUM")
        sys.exit(77)
    unittest.main()
