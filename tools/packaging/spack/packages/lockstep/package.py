import pathlib

from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import *


class Lockstep(MesonPackage, CudaPackage):
    """Memory-bound array operations whose results have the same bits on every backend, thread
    count and instruction set, and on a GPU."""

    # The repository that this recipe lies in.
    git = pathlib.Path(__file__).resolve().parents[5].as_uri()

    license("Apache-2.0")

    version("main", branch="main")
    version("0.2.0", tag="v0.2.0")

    variant("tools", default=True, description="Build the program lockstep")
    variant("ranks", default=False, description="Build liblockstep_ranks (many ranks)")
    variant(
        "mpi", default=False, description="The program runs ranks over MPI", when="+ranks+tools"
    )

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("meson@1.0.1:", type="build")
    depends_on("fmt@9:")
    depends_on("cli11", when="+tools")
    depends_on("nlohmann-json", when="+tools")
    depends_on("libpng", when="+tools")
    depends_on("jpeg", when="+tools")
    depends_on("mpi", when="+mpi")
    depends_on("cuda@12.0:", when="+cuda")

    conflicts("platform=darwin", msg="lockstep runs on Linux")
    conflicts("platform=windows", msg="lockstep runs on Linux")

    def meson_args(self):
        def feature(name):
            return f"-D{name}={'enabled' if self.spec.satisfies(f'+{name}') else 'disabled'}"

        args = [feature(name) for name in ("cuda", "tools", "ranks", "mpi")]
        args += ["-Dtests=disabled", "-Dpython=disabled"]
        # Machine code for each architecture of the spec, and PTX of the newest for later GPUs.
        if self.spec.satisfies("+cuda") and "none" not in self.spec.variants["cuda_arch"].value:
            names = sorted(
                self.spec.variants["cuda_arch"].value, key=lambda name: int(name.rstrip("af"))
            )
            args.append(f"-Dgpu_arch={','.join(names)}-ptx")
        return args

    def check(self):
        with working_dir(self.build_directory):
            if self.spec.satisfies("+tools"):
                Executable("tools/lockstep")("verify")
