"""A sum, a transpose and a step of the heat equation over MPI processes, from Python:
mpirun -n 3 python3 ranks_mpi4py.py (needs mpi4py and a library built with -Dranks=enabled)."""
import sys

import numpy as np

try:
    from mpi4py import MPI

    import lockstep.ranks as lr
except ImportError as e:
    print(f"SKIP: {e}")
    sys.exit(77)
import lockstep as ls


def end_the_job(*failure):
    """At the program's end MPI would wait for ranks that are lost."""
    sys.__excepthook__(*failure)
    MPI.COMM_WORLD.Abort(1)


sys.excepthook = end_the_job
with lr.Comm(MPI.COMM_WORLD) as comm:
    # All ranks describe the whole array; each has its rows.
    rows = lr.Grid((600, 400), parts=(comm.size, 1))
    box = comm.box(rows)
    i, j = np.meshgrid(*(np.arange(a, a + n) for a, n in zip(box.low, box.shape)), indexing="ij")
    mine = np.sin(i * 0.01 + j).astype(np.float32)

    total = comm.reduce("sum", mine, rows, dtype="float64")
    turned = comm.permute(mine, rows, (1, 0), to=lr.Grid((400, 600), parts=(comm.size, 1)))
    warmer = comm.stencil(mine, rows, [0.1, 0.1, 0.6, 0.1, 0.1], mode="nearest", sweeps=4)

    # A plan is made once. Between start and wait the program computes what needs no ghosts, here the differences of its own rows.
    around = np.pad(mine, ((1, 1), (0, 0)))
    halo = comm.plan("halo", around, rows, (1, 0), mode="nearest")
    steps = np.empty((mine.shape[0] + 1, 400), np.float32)
    for step in range(3):
        halo.start()
        steps[1:-1] = np.diff(mine, axis=0)
        halo.wait()
        steps[[0, -1]] = around[[1, -1]] - around[[0, -2]]

    # The bits of one call on the whole array, for any number of ranks: rank 0 fetches it and looks.
    everything = lr.Grid((600, 400), parts=(1, 1))
    whole, warm = comm.redistribute(mine, rows, everything), comm.redistribute(warmer, rows, everything)
    if comm.rank == 0:
        assert total == ls.sum(whole, dtype="float64")
        assert np.array_equal(warm, ls.stencil(whole, [0.1, 0.1, 0.6, 0.1, 0.1], mode="nearest", sweeps=4))
        assert np.array_equal(turned, whole[:, :turned.shape[0]].T)
        assert np.array_equal(steps, np.diff(np.pad(whole, ((1, 1), (0, 0)), "edge"), axis=0)[:len(steps)])
        print(f"{comm.size} ranks, sum {total:.17g}")

    # What fails on one rank is an exception on all: its own there, RankFailed, which names it, on the others.
    try:
        comm.reduce("sum", mine[:-1] if comm.rank == comm.size - 1 else mine, rows)
    except (ls.InvalidArgument, lr.RankFailed) as e:
        print(f"rank {comm.rank}: {type(e).__name__}: {e}", flush=True)
