"""Gradients of several processes, added in the order of their ranks: the same bits whatever carries them. Leaves with 77 where there is no PyTorch."""
import importlib.util
import sys
import tempfile
import warnings

if importlib.util.find_spec("torch") is None:
    print("SKIP: no PyTorch")
    sys.exit(77)
warnings.simplefilter("ignore")  # PyTorch's own
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

import lockstep as ls
import lockstep.distributed as ld

RANKS = 3


def gradient(rank):
    return torch.randn(1000, generator=torch.Generator().manual_seed(rank))


def work(rank, folder):
    # With "nccl" and tensors on a GPU for each process the rest stays as it is.
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    x = gradient(rank)
    ld.all_reduce(x, "mean")
    assert ls.digest(x) == ls.digest(ls.mean(torch.stack([gradient(k) for k in range(RANKS)]), axis=0))

    handle = ld.all_reduce(x, async_op=True)  # what does not need x goes on here
    handle.wait()

    digests = []
    for megabytes in (25, 0.01):  # buckets of two sizes
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Linear(50, 5)), bucket_cap_mb=megabytes)
        model.register_comm_hook(None, ld.ddp_hook)
        model(torch.randn(8, 20, generator=torch.Generator().manual_seed(rank))).square().mean().backward()
        digests.append([ls.digest(p.grad) for p in model.parameters()])
    assert digests[0] == digests[1]
    if rank == 0:
        print("gradients of", RANKS, "processes:", digests[0][0])
    dist.destroy_process_group()


if __name__ == "__main__":
    if not dist.is_available() or not dist.is_gloo_available():
        print("SKIP: a PyTorch without gloo")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (folder,), RANKS, start_method="fork")
