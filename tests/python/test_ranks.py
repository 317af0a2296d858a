"""lockstep.ranks over mpi4py, by mpirun at one, two and three ranks. Skipped without mpi4py, mpirun or liblockstep_ranks."""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

WORKER = pathlib.Path(__file__).parent / "ranks_worker.py"
if importlib.util.find_spec("mpi4py") is None or not shutil.which("mpirun"):
    pytest.skip("no mpi4py or no mpirun", allow_module_level=True)
from lockstep import _ranks_c

try:
    _ranks_c.library()
except ImportError as e:
    pytest.skip(str(e), allow_module_level=True)
if subprocess.run([sys.executable, "-c", "from mpi4py import MPI"], capture_output=True).returncode:
    pytest.skip("mpi4py finds no MPI", allow_module_level=True)


def run_job(ranks, *words):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                   "OMPI_MCA_hwloc_base_binding_policy": "none", "LOCKSTEP_NUM_THREADS": "1"}
    done = subprocess.run(["mpirun", *words], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"rank \d+ passed", done.stdout)) == [f"rank {k} passed" for k in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_have_the_bits_of_the_whole(ranks):
    run_job(ranks, "-n", str(ranks), sys.executable, "-W", "error", str(WORKER))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_ranks_in_c_and_in_python(place):
    """Of three ranks one is in Python: where two are wrong at once, the third is told."""
    program = os.environ.get("LOCKSTEP_TEST_MIXED")
    if program is None:
        pytest.skip("built without MPI")
    ask = [sys.executable, "-c", "from mpi4py import MPI; print(MPI.Get_library_version())"]
    here, there = (subprocess.run(words, capture_output=True, text=True).stdout.strip("\0\n ") for words in ([program, "--version"], ask))
    if here != there:
        pytest.skip("mpi4py has another MPI than the build")
    jobs = [[program], [program], [program]]
    jobs[place] = [sys.executable, "-W", "error", str(WORKER.with_name("mixed_worker.py"))]
    run_job(3, *(word for k, job in enumerate(jobs) for word in ([":"] if k else []) + ["-n", "1", *job]))


def test_what_is_no_grid():
    import lockstep as ls
    import lockstep.ranks as lr
    for wrong in (lambda: lr.Grid((3, 4), (2,)), lambda: lr.Grid((), ()), lambda: lr.Grid((3,), (2,), cuts=[[0, 3]]), lambda: lr.Grid((3,), (2,), order=[0])):
        with pytest.raises(ls.InvalidArgument):
            wrong()
    for wrong, text in ((lambda: lr.Grid((3.5,), (1,)), "shape is 3.5"), (lambda: lr.Grid((3,), (2,), cuts=[[0, 1.5, 3]]), "cuts.0. is 1.5")):
        with pytest.raises(TypeError, match=text):
            wrong()
    for wrong, text in ((lambda: lr.Grid((2**64 + 3,), (1,)), "shape has .* not an int of 64 bits"), (lambda: lr.Grid((3,), (2**32 + 1,)), "parts has"),
                        (lambda: lr.Grid((3,), (2,), cuts=[[0, 2**64, 3]]), "cuts.0. has"), (lambda: lr.Grid((3,), (2,), order=[0, 2**32]), "order has")):
        with pytest.raises(ls.InvalidArgument, match=text):
            wrong()
    assert repr(lr.Grid(np.int64(3), 2, cuts=np.array([[0, 1, 3]]), order=np.array([1, 0]))) == "Grid((3,), parts=(2,))"
    with pytest.raises(ls.InvalidArgument, match="communicator of mpi4py"):
        lr.Comm(3)
