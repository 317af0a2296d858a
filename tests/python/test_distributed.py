"""lockstep.distributed between processes, by gloo. Skipped without PyTorch; GPUs and nccl are tests/gpu/several_gpus' work."""
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("no PyTorch", allow_module_level=True)
import torch
import torch.distributed as dist

if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("a PyTorch without gloo", allow_module_level=True)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_the_bits_of_one_call(ranks):
    done = subprocess.run([sys.executable, "-W", "ignore", str(pathlib.Path(__file__).with_name("distributed_worker.py")), str(ranks)], capture_output=True, text=True,
                          timeout=300, env={**os.environ, "LOCKSTEP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo")})
    assert done.returncode == 0 and f"{ranks} passed" in done.stdout, done.stderr[-5000:]


def test_the_definition_is_that_of_ranks():
    import numpy as np
    from threads_mpi import on_ranks

    import lockstep as ls
    from lockstep import _ranks_c
    try:
        _ranks_c.library()
    except ImportError as e:
        pytest.skip(str(e))
    import lockstep.ranks as lr
    xs = (np.random.default_rng(4).standard_normal((3, 5000)) * 10.0 ** np.random.default_rng(5).integers(-3, 4, (3, 5000))).astype("f4")
    want = ls.sum(torch.stack(list(torch.from_numpy(xs))), axis=0, dtype=torch.float32).numpy()

    def work(mpi):
        with lr.Comm(mpi) as comm:
            assert comm.reduce("sum", xs[comm.rank:comm.rank + 1], lr.Grid(xs.shape, (3, 1)), 0).tobytes() == want.tobytes()

    on_ranks(3, work)
