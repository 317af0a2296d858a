"""lockstep.ranks over process groups of torch.distributed, by gloo. Skipped without PyTorch or liblockstep_ranks."""
import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("no PyTorch", allow_module_level=True)
import torch.distributed as dist

from lockstep import _ranks_c

if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("a PyTorch without gloo", allow_module_level=True)
try:
    _ranks_c.library()
except ImportError as e:
    pytest.skip(str(e), allow_module_level=True)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_have_the_bits_of_the_whole(ranks, tmp_path):
    def environment(rank):
        return {**os.environ, "LOCKSTEP_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo"), "RANK": str(rank),
                "WORLD_SIZE": str(ranks), "LOCKSTEP_TEST_STORE": str(tmp_path / "store")}

    words = [sys.executable, "-W", "ignore", str(pathlib.Path(__file__).with_name("ranks_worker.py")), "--torch"]
    jobs = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(k)) for k in range(ranks)]
    try:
        for rank, job in enumerate(jobs):
            out, errors = job.communicate(timeout=300)
            assert job.returncode == 0 and f"rank {rank} passed" in out, errors[-5000:]
    finally:
        for job in jobs:
            job.kill()


def test_what_is_no_group():
    import lockstep as ls
    import lockstep.ranks as lr
    with pytest.raises(ls.InvalidArgument, match="call torch.distributed.init_process_group first"):
        lr.Comm.from_torch()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(ls.InvalidArgument, match="group is a builtins.int"):
            lr.Comm.from_torch(3)
        x = np.arange(12.0).reshape(3, 4)
        with lr.Comm.from_torch(dist.group.WORLD) as comm:
            assert comm.planes[0] == "staged" and comm.permute(x, lr.Grid((3, 4), (1, 1)), (1, 0), lr.Grid((4, 3), (1, 1))).tolist() == x.T.tolist()
    finally:
        dist.destroy_process_group()
