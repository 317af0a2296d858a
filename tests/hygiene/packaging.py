#!/usr/bin/env python3
"""packaging.py ROOT - what tools/packaging makes without a compiler: the checks before a release, the Debian source tree, Meson's
wrap in a small project, and the conda recipe's names. Exit code 77 where ROOT is no git checkout."""
import contextlib
import datetime
import importlib.machinery
import importlib.util
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
PACKAGING = ROOT / "tools/packaging"
TODAY = datetime.date(2030, 5, 6)


def load(name):
    loader = importlib.machinery.SourceFileLoader(f"packaging_{name}", str(PACKAGING / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Release(unittest.TestCase):
    def faults(self, version="0.1.0", newest=("0.1.0", "2030-05-06"), tags="", changes=""):
        release = load("release")
        answers = {"tag": tags, "status": changes}
        with mock.patch.multiple(release, version=lambda: version, changelog=lambda: newest, said=lambda git, command, *_: answers[command]):
            return list(release.faults(TODAY))

    def test_what_is_in_the_way_is_said(self):
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.faults(tags="v0.1.0\nmilestone"), [])
        for words, change in (("make them one", {"newest": ("0.2.0", "2030-05-06")}), ("write the day", {"newest": ("0.1.0", "unreleased")}),
                              ("to come", {"newest": ("0.1.0", "2030-05-07")}), ("tag v0.1.0", {"tags": "v0.2.0"}), ("not committed", {"changes": " M README.md"}),
                              ("9.9.9.txt is not there", {"version": "9.9.9", "newest": ("9.9.9", "2030-05-06")})):
            found = self.faults(**change)
            self.assertEqual(len(found), 1, found)
            self.assertIn(words, found[0])

    def test_an_abi_that_is_not_the_written_one(self):
        release = load("release")
        with tempfile.TemporaryDirectory() as folder:
            release.HYGIENE = pathlib.Path(folder)
            (release.HYGIENE / "released").mkdir()
            for name, text in (("layout.txt", "struct a: 8 bytes\n"), ("exported.txt", "f\ng\n"),
                               ("released/0.1.0.txt", "struct a: 8 bytes\nsymbol f@@LOCKSTEP_0\nsymbol g@@LOCKSTEP_0\nsymbol LOCKSTEP_0\n")):
                (release.HYGIENE / name).write_text(text)
            self.assertFalse(release.stale("0.1.0"))
            self.assertTrue(release.stale("0.2.0"))
            for name, text in (("layout.txt", "struct a: 16 bytes\n"), ("exported.txt", "f\n"), ("exported.txt", "f\ng\nh\n")):
                kept = (release.HYGIENE / name).read_text()
                (release.HYGIENE / name).write_text(text)
                self.assertTrue(release.stale("0.1.0"), text)
                (release.HYGIENE / name).write_text(kept)

    def test_what_was_made_is_checked(self):
        release = load("release")
        number = release.version()
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            (out / "debian").mkdir()
            self.assertIn("begin with an empty folder", next(release.checked(out)))
            for pattern in release.MADE:
                (out / pattern.format(number).replace("*", "12")).write_text("same")
            with mock.patch.object(release, "run", lambda *_: (out / f"liblockstep.so.{number}").write_text("")), \
                    mock.patch.object(release.tempfile, "TemporaryDirectory", lambda: contextlib.nullcontext(folder)), \
                    mock.patch.object(release.subprocess, "run", side_effect=lambda command, **_: mock.Mock(returncode=1)):
                (out / "lockstep.wrap").write_text("another hash")
                (out / f"debian/lockstep_{number}.orig.tar.gz").write_text("another")
                self.assertEqual(len(list(release.checked(out))), 4)

    def test_the_versions_are_read(self):
        release = load("release")
        self.assertRegex(release.version(), r"^\d+\.\d+\.\d+$")
        self.assertEqual(release.changelog()[0], release.version())

    def test_the_citation_is_of_this_version(self):
        citation = ROOT / ".github/CITATION.cff"
        if not citation.exists():
            self.skipTest("this tree has no .github")
        self.assertEqual(re.findall(r"^(?:version|date-released): (.+)$", citation.read_text(), re.M), list(load("release").changelog()))


class Sources(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def test_debian(self):
        self.assertFalse((ROOT / "debian").exists())
        with contextlib.redirect_stdout(io.StringIO()):
            tree = load("deb").source(self.out)
        version = load("release").version()
        self.assertTrue((self.out / f"lockstep_{version}.orig.tar.gz").exists() and (tree / "debian/rules").stat().st_mode & 0o100)
        self.assertRegex((tree / "debian/changelog").read_text(), rf"^lockstep \({re.escape(version)}-1\) [\s\S]* -- .+ <.+@.+>  \w+, ")
        self.assertNotIn("@", re.search(r"Maintainer: (.*?) <", (tree / "debian/control").read_text())[1])
        symbols = re.findall(r"^ (\w+)@LOCKSTEP_0 ", (tree / "debian/liblockstep0.symbols").read_text(), re.M)
        self.assertEqual(sorted(symbols), sorted(["LOCKSTEP_0", *(ROOT / "tests/hygiene/exported.txt").read_text().split()]))
        for test in re.findall(r"^Tests: (\w+)$", (tree / "debian/tests/control").read_text(), re.M):
            self.assertTrue((tree / "debian/tests" / test).stat().st_mode & 0o100)

    @unittest.skipUnless(shutil.which("meson"), "no meson")
    def test_wrap(self):
        project = self.out / "project"
        (project / "subprojects/packagefiles").mkdir(parents=True)
        subprocess.run([PACKAGING / "wrap", self.out], check=True, capture_output=True)
        shutil.copy(self.out / "lockstep.wrap", project / "subprojects")
        shutil.copy(ROOT / "tests/api/example.c", project)
        (project / "meson.build").write_text("project('user', 'c', 'cpp', default_options: 'cpp_std=c++20')\n"
                                             "executable('example', 'example.c', dependencies: dependency('lockstep'))\n")
        setup = ["meson", "setup", project / "build", project, "--force-fallback-for=lockstep"]
        self.assertNotEqual(subprocess.run(setup, capture_output=True).returncode, 0)  # no archive yet
        (archive,) = self.out.glob("lockstep-*.tar.gz")
        shutil.rmtree(project / "build")
        (project / "subprojects/packagefiles" / archive.name).write_bytes(archive.read_bytes() + b"\0")
        self.assertNotEqual(subprocess.run(setup, capture_output=True).returncode, 0)  # another archive
        shutil.rmtree(project / "build")
        shutil.copy(archive, project / "subprojects/packagefiles")
        done = subprocess.run(setup, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        targets = subprocess.run(["ninja", "-C", project / "build", "-t", "query", "example"], capture_output=True, text=True, check=True).stdout
        self.assertIn("subprojects/lockstep", targets)

    def test_conda(self):
        recipe = (PACKAGING / "conda/recipe.yaml").read_text()
        self.assertEqual(re.search(r'version: "(.*)"', recipe)[1], load("release").version())
        options = re.findall(r"option\('(\w+)'", (ROOT / "meson_options.txt").read_text())
        self.assertFalse(set(re.findall(r"-D(\w+)=", recipe)) - set(options))
        for name in re.findall(r"^    - (\S+)$", recipe[recipe.index("license_file"):], re.M):
            self.assertTrue((ROOT / name).exists(), name)
        source = (PACKAGING / "conda" / re.search(r"path: (\S+)", recipe)[1]).resolve()
        self.assertEqual(source, ROOT)

    @unittest.skipIf(importlib.util.find_spec("rattler_build") is None, "no py-rattler-build")
    def test_conda_renders(self):
        import rattler_build
        recipe = rattler_build.Stage0Recipe.from_file(str(PACKAGING / "conda/recipe.yaml"))
        variants = rattler_build.VariantConfig.from_yaml("c_compiler: [gcc]\ncxx_compiler: [gxx]\nc_stdlib: [sysroot]\nc_stdlib_version: ['2.28']\npython: ['3.12']\n")
        self.assertEqual(sorted(r.recipe.package.name for r in recipe.render(variants)), ["liblockstep", "lockstep-arrays"])


if __name__ == "__main__":
    if shutil.which("git") is None or subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True).returncode != 0:
        print("SKIP: no git checkout")
        sys.exit(77)
    unittest.main()
