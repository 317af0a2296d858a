#!/usr/bin/env python3
"""packaging.py ROOT - what tools/packaging makes without a compiler: the checks before a release, the Debian source tree, Meson's
wrap in a small project, and what the recipes for other packagers name: the version, options and files. Exit code 77 where ROOT is
no git checkout."""
import contextlib
import datetime
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
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
    def faults(self, version=None, newest=None, tags="", changes="", unreleased=False):
        release = load("release")
        now, answers = release.version(), {"tag": tags, "status": changes}
        with mock.patch.multiple(release, version=lambda: version or now, changelog=lambda: newest or (now, str(TODAY)), unreleased=lambda: unreleased,
                                 stale=lambda number: number != now, said=lambda git, command, *_: answers[command]):
            return list(release.faults(TODAY))

    def test_what_is_in_the_way_is_said(self):
        now = load("release").version()
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.faults(tags=f"v{now}\nmilestone"), [])
        for words, change in (("make them one", {"newest": ("9.9.9", "2030-05-06")}), ("write the day", {"newest": (now, "unreleased")}),
                              ("to come", {"newest": (now, "2030-05-07")}), (f"tag v{now}", {"tags": "v9.9.9"}), ("not committed", {"changes": " M README.md"}),
                              ("of no version", {"unreleased": True})):
            found = self.faults(**change)
            self.assertEqual(len(found), 1, found)
            self.assertIn(words, found[0])
        table, header, *parts = self.faults(version="9.9.9", newest=("9.9.9", "2030-05-06"))
        self.assertEqual(len(parts), 3)
        self.assertIn("9.9.9.txt is not there", table)
        self.assertIn(f'LOCKSTEP_VERSION "{now}"', header)

    def test_changes_of_no_version(self):
        import version
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(version, "ROOT", pathlib.Path(folder)):
            for text, wanted in (("# Changelog\n\n## Unreleased\n- a\n\n## 1.0.0 - 2026-01-02\n", True), ("# Changelog\n\n## 1.0.0 - 2026-01-02\n\n## Unreleased\n", False)):
                (version.ROOT / "CHANGELOG.md").write_text(text)
                self.assertEqual((version.unreleased(), version.changelog()), (wanted, ("1.0.0", "2026-01-02")))
                self.assertEqual(version.changelog_date() is None, wanted)

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
            packages = [f"debian/{pattern}" for pattern in release.PACKAGES]
            for pattern in release.MADE + packages:
                (out / pattern.format(number).replace("*", "12")).write_text("same")
            (lacking,) = release.checked(out, cuda=True)
            self.assertIn("1cu*", lacking)
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
            tree = load("deb").source(self.out, ("ubuntu", "24.04", "noble"))
        version = load("release").version()
        self.assertTrue((self.out / f"lockstep_{version}.orig.tar.gz").exists() and (tree / "debian/rules").stat().st_mode & 0o100)
        self.assertRegex((tree / "debian/changelog").read_text(), rf"^lockstep \({re.escape(version)}-1~ubuntu24\.04\) noble;[\s\S]* -- .+ <.+@.+>  \w+, ")
        self.assertNotIn("@", re.search(r"Maintainer: (.*?) <", (tree / "debian/control").read_text())[1])
        abi = load("release").abi()
        node = f"LOCKSTEP_{abi}"
        self.assertTrue((tree / f"debian/liblockstep{abi}.install").exists())
        symbols = re.findall(rf"^ (\w+)@{node} ", (tree / f"debian/liblockstep{abi}.symbols").read_text(), re.M)
        self.assertEqual(sorted(symbols), sorted([node, *(ROOT / "tests/hygiene/exported.txt").read_text().split()]))
        for test in re.findall(r"^Tests: (\w+)$", (tree / "debian/tests/control").read_text(), re.M):
            self.assertTrue((tree / "debian/tests" / test).stat().st_mode & 0o100)

    def test_a_later_system_has_the_later_version(self):
        deb = load("deb")
        self.assertEqual(deb.revision((*deb.RELEASES["trixie"], "trixie")), "1~deb13")
        if shutil.which("dpkg"):
            subprocess.run(["dpkg", "--compare-versions", "0.2.0-1~deb12", "lt", "0.2.0-1~deb13"], check=True)

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


def recorder(calls, name):
    return lambda *given, **named: calls.append((name, given, named))


class Spec:
    """A Spack spec with the variants that are set."""
    def __init__(self, on, arch):
        self.on, self.variants = on, {"cuda_arch": types.SimpleNamespace(value=arch)}

    def satisfies(self, wanted):
        return wanted.lstrip("+") in self.on


class Recipes(unittest.TestCase):
    """The recipes, run without the programs that they are for."""
    def setUp(self):
        self.version = load("release").version()
        self.options = dict(re.findall(r"option\('(\w+)', type: '(\w+)'", (ROOT / "meson_options.txt").read_text()))

    def check_options(self, words):
        given = dict(re.findall(r"-D(\w+)=(\S+)", " ".join(words)))
        self.assertTrue(given)
        for name, value in given.items():
            self.assertIn(name, self.options)
            if self.options[name] == "feature":
                self.assertIn(value, ("enabled", "disabled", "auto"), name)
        return given

    def test_each_names_this_version(self):
        for name, pattern in (("tools/packaging/conda/recipe.yaml", r'version: "(.*)"'), ("tools/packaging/vcpkg/lockstep/vcpkg.json", r'"version": "(.*)"'),
                              ("tools/packaging/spack/packages/lockstep/package.py", r'version\("([\d.]+)", tag="v\1"\)'),
                              ("tools/examples/lockstep.cmake", r"LOCKSTEP_TAG v(\S+) "), ("tools/docs/en/install.md", r"GIT_TAG v(\S+) "),
                              ("tools/docs/zh/install.md", r"GIT_TAG v(\S+) ")):
            self.assertEqual(re.findall(pattern, (ROOT / name).read_text()), [self.version], name)

    def test_the_readme_has_each(self):
        rows = re.findall(r"^\| \[?`(\w+)`", (PACKAGING / "README.md").read_text(), re.M)
        present = [p.name for p in PACKAGING.iterdir() if p.name not in ("README.md", "version.py", "debian", "__pycache__")]
        self.assertEqual(sorted(rows), sorted(present))

    def test_conan(self):
        copied = []
        modules = {name: mock.MagicMock() for name in ("conan", "conan.errors", "conan.tools", "conan.tools.files", "conan.tools.gnu",
                                                       "conan.tools.layout", "conan.tools.meson")}
        modules["conan"].ConanFile = object
        modules["conan.tools.files"].copy = recorder(copied, "copy")
        with mock.patch.dict(sys.modules, modules):
            made = load("conan/conanfile.py").Lockstep()
            made.recipe_folder, made.export_sources_folder = str(PACKAGING / "conan"), "there"
            made.set_version()
            made.export_sources()
            toolchain = modules["conan.tools.meson"].MesonToolchain.return_value
            toolchain.project_options, made.options = {}, types.SimpleNamespace(cuda=False)
            made.generate()
        self.assertEqual(made.version, self.version)
        self.check_options(f"-D{name}={value}" for name, value in toolchain.project_options.items())
        for _, (_, pattern, source, _), _ in copied:
            self.assertTrue(list(pathlib.Path(source).glob(pattern)), pattern)
        example = (PACKAGING / "conan/test_package/CMakeLists.txt").read_text()
        self.assertTrue((PACKAGING / "conan/test_package" / re.search(r"\S+example\.c", example)[0]).exists())

    @unittest.skipUnless(shutil.which("cmake"), "no cmake")
    def test_vcpkg(self):
        port = PACKAGING / "vcpkg/lockstep"
        manifest = json.loads((port / "vcpkg.json").read_text())
        functions = set(re.findall(r"^ *(vcpkg_\w+)\(", (port / "portfile.cmake").read_text(), re.M))
        with tempfile.TemporaryDirectory() as folder:
            stubs = "".join(f"function({name})\n  message(NOTICE \"{name} ${{ARGV}}\")\nendfunction()\n" for name in functions)
            (pathlib.Path(folder) / "run.cmake").write_text(f"cmake_minimum_required(VERSION 3.18)\n{stubs}set(CURRENT_PORT_DIR {port})\nset(CURRENT_PACKAGES_DIR {folder}/packages)\n"
                                                            f"include({port}/portfile.cmake)\n")
            for features in ("", *manifest["features"]):
                said = subprocess.run(["cmake", f"-DFEATURES=core;{features}", "-P", f"{folder}/run.cmake"], capture_output=True, text=True, check=True).stderr
                calls = dict(line.split(" ", 1) for line in said.splitlines())
                self.assertEqual("vcpkg_check_linkage" in calls, features == "cuda")
                given = self.check_options(calls["vcpkg_configure_meson"].split(";"))
                self.assertEqual(given["cuda"], "enabled" if features == "cuda" else "disabled")
                self.assertEqual(calls["vcpkg_configure_meson"].split(";")[:2], ["SOURCE_PATH", str(ROOT)])
                self.assertEqual(calls["vcpkg_replace_string"].split(";")[1:], ["/" + "/".join([".."] * len("lib/cmake/lockstep".split("/"))), "/../.."])
                for path in calls["vcpkg_install_copyright"].split(";")[1:]:
                    self.assertTrue(pathlib.Path(path).exists(), path)

    def test_spack(self):
        calls, package = [], types.ModuleType("spack.package")
        for name in ("license", "version", "variant", "depends_on", "conflicts"):
            setattr(package, name, recorder(calls, name))
        modules = {name: types.ModuleType(name) for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems")}
        modules |= {"spack.package": package, "spack_repo.builtin.build_systems.cuda": mock.Mock(CudaPackage=type("CudaPackage", (), {})),
                    "spack_repo.builtin.build_systems.meson": mock.Mock(MesonPackage=type("MesonPackage", (), {}))}
        with mock.patch.dict(sys.modules, modules):
            made = load("spack/packages/lockstep/package.py").Lockstep()
        self.assertEqual(made.git, ROOT.as_uri())
        variants = {given[0] for name, given, _ in calls if name == "variant"} | {"cuda"}
        for _, _, named in calls:
            self.assertLessEqual(set(re.findall(r"\+(\w+)", named.get("when", ""))), variants)
        made.spec = Spec({"tools"}, ["none"])
        self.assertEqual(self.check_options(made.meson_args())["cuda"], "disabled")
        made.spec = Spec({"cuda", "ranks"}, ["90", "80", "100a"])
        given = self.check_options(made.meson_args())
        self.assertEqual((given["gpu_arch"], given["cuda"], given["ranks"], given["tools"]), ("80,90,100a-ptx", "enabled", "enabled", "disabled"))

    def test_presets(self):
        examples = ROOT / "tools/examples"
        presets = json.loads((examples / "CMakePresets.json").read_text())
        known = "".join((ROOT / name).read_text() for name in ("tools/examples/CMakeLists.txt", "tools/packaging/cmake/CMakeLists.txt"))
        configured = {p["name"] for p in presets["configurePresets"]}
        for preset in presets["configurePresets"]:
            for name, value in preset.get("cacheVariables", {}).items():
                self.assertRegex(known, rf"(option|set)\({name} ")
                if name == "LOCKSTEP_MESON_OPTIONS":
                    self.check_options(value.split(";"))
        for kind in ("buildPresets", "testPresets"):
            self.assertEqual({p["configurePreset"] for p in presets[kind]}, configured)

    def test_conda(self):
        recipe = (PACKAGING / "conda/recipe.yaml").read_text()
        for line in re.findall(r"^ *- (meson setup .*)$", recipe, re.M):
            self.check_options(line.split())
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
