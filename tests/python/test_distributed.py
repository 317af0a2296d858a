"""lockstep.distributed between processes, by gloo. Skipped without PyTorch; GPUs and nccl are tests/gpu/several_gpus' work."""
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("no PyTorch", allow_module_level=True)
import torch.distributed as dist

if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("a PyTorch without gloo", allow_module_level=True)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_the_bits_of_one_call(ranks):
    done = subprocess.run([sys.executable, "-W", "ignore", str(pathlib.Path(__file__).with_name("distributed_worker.py")), str(ranks)], capture_output=True, text=True,
                          timeout=300, env={**os.environ, "LOCKSTEP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo")})
    assert done.returncode == 0 and f"{ranks} passed" in done.stdout, done.stderr[-5000:]
