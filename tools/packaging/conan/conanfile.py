"""The library, its headers and, where asked for, its CUDA module, from the tree that this file lies in:
conan create tools/packaging/conan --build=missing [-o "&:cuda=True"]
"""
import pathlib
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy
from conan.tools.gnu import PkgConfigDeps
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain

# What Meson reads; figures, pictures and build folders stay behind.
SOURCES = ("meson.build", "meson_options.txt", "LICENSE", "lib/*", "backends/*", "tools/*", "tests/*")


class Lockstep(ConanFile):
    name = "lockstep"
    description = "Memory-bound array operations with the same bits on every machine"
    license = "Apache-2.0"
    topics = ("transpose", "reduction", "stencil", "reproducible", "cuda", "simd")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "cuda": [True, False]}
    default_options = {"shared": True, "cuda": False}  # the module needs nvcc on the machine that builds

    @property
    def _tree(self):
        return pathlib.Path(self.recipe_folder).parents[2]

    def set_version(self):
        self.version = re.search(r"version: '([\d.]+)'", (self._tree / "meson.build").read_text())[1]

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, str(self._tree), self.export_sources_folder, excludes=("tests/results/*", "tools/docs/pictures/*", "*/__pycache__/*"))

    def configure(self):
        # Users see a C ABI: their C++ standard is not that of the build, which is C++20.
        self.settings.rm_safe("compiler.cppstd")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"os is {self.settings.os}; lockstep runs on Linux")

    def requirements(self):
        self.requires("fmt/[>=9 <13]", visible=False)  # its headers alone, compiled in

    def layout(self):
        basic_layout(self)

    def generate(self):
        PkgConfigDeps(self).generate()
        toolchain = MesonToolchain(self)
        for name in ("tools", "tests", "python", "ranks"):
            toolchain.project_options[name] = "disabled"
        toolchain.project_options["cuda"] = "enabled" if self.options.cuda else "disabled"
        toolchain.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        Meson(self).install()
        licenses = str(pathlib.Path(self.package_folder) / "licenses")
        copy(self, "LICENSE", self.source_folder, licenses)
        copy(self, "NOTICES.md", str(pathlib.Path(self.source_folder) / "tools"), licenses)

    def package_info(self):
        self.cpp_info.libs = ["lockstep"]
        self.cpp_info.set_property("pkg_config_name", "lockstep")
        self.cpp_info.set_property("cmake_file_name", "lockstep")
        self.cpp_info.set_property("cmake_target_name", "lockstep::lockstep")
        if not self.options.shared:
            self.cpp_info.sharedlinkflags = self.cpp_info.exelinkflags = ["-fopenmp", "-Wl,-z,nodelete"]
            self.cpp_info.system_libs = ["stdc++", "m", "pthread", "dl"]
