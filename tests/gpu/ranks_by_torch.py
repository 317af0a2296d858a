#!/usr/bin/env python3
"""ranks_by_torch.py [side ...] - lockstep.ranks over NCCL's process group, a process a GPU as torchrun starts them (RANK, WORLD_SIZE): transposes of squares of f32, in
place and not, beside their definition; then a sum and a halo. Prints what ranks use to exchange, and the median times of the transposes."""
import os
import statistics
import sys

import torch
import torch.distributed as dist

import lockstep.ranks as lr

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))


def elements(rows, columns, n):
    """Of a matrix of n columns, which no two elements share."""
    return (rows[:, None].to(torch.int64) * n + columns[None, :]).to(torch.int32).view(torch.float32)


def median_ms(run):
    times = []
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        dist.barrier()
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[1:])


with lr.Comm.from_torch(timeout=60) as comm:
    assert (comm.rank, comm.size) == (rank, size)
    for n in map(int, sys.argv[1:] or ["1000", "8192"]):
        grid = lr.Grid((n, n), (size, 1))
        low, length = comm.box(grid).low[0], comm.box(grid).shape[0]
        mine, all_ = (torch.arange(a, a + k, device="cuda") for a, k in ((low, length), (0, n)))
        x, want = elements(mine, all_, n), elements(all_, mine, n).T.contiguous()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):  # in the order of the current stream
            torch.cuda._sleep(10_000_000)
            y = x.clone()
            got = comm.permute(y, grid, (1, 0), grid)
        assert torch.equal(got.view(torch.int32), want.view(torch.int32)), "transpose"
        assert comm.permute(y, grid, (1, 0), grid, out=y) is y
        assert torch.equal(y.view(torch.int32), want.view(torch.int32)), "in place"
        u = torch.full((length + 4, n + 4), -1.0, device="cuda")
        comm.permute(x, grid, (1, 0), grid, out=u[2:-2, 2:-2])
        inner = u[2:-2, 2:-2].clone().view(torch.int32)
        u[2:-2, 2:-2] = -1
        assert torch.equal(inner, want.view(torch.int32)) and bool((u == -1).all()), "within ghosts"
        away, here = comm.plan("permute", x, grid, (1, 0), grid), comm.plan("permute", y, grid, (1, 0), grid, out=y)
        times = median_ms(away), median_ms(here)
        away.close(), here.close()
        if rank == 0:
            print(f"transpose {n}x{n} over {size} GPUs: {times[0]:.3f} ms, in place {times[1]:.3f} ms", flush=True)
    ones = torch.ones(comm.box(lr.Grid((1 << 20,), (size,))).shape[0], device="cuda")
    assert float(comm.reduce("sum", ones, lr.Grid((1 << 20,), (size,)))) == 1 << 20
    if rank == 0:
        print(*comm.planes, sep="; ")
print(f"rank {rank} passed", flush=True)
dist.destroy_process_group()
