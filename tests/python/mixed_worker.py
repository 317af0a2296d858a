"""A rank in Python of a job that has ranks in C too: tests/ranks/mixed.c, which says what happens."""
import numpy as np
from mpi4py import MPI

import lockstep as ls
import lockstep.ranks as lr

world = MPI.COMM_WORLD
rank, grid = world.Get_rank(), lr.Grid((6,), (3,))


def told(call):
    try:
        call()
    except ls.Error as e:
        if isinstance(e, ls.InvalidArgument if rank < 2 else lr.RankFailed) and (rank < 2 or str(e).startswith("rank 0: ")):
            return
        print(f"rank {rank}, in Python: {type(e).__name__}: {e}", flush=True)
    else:
        print(f"rank {rank}, in Python: two wrong ranks went through", flush=True)
    world.Abort(1)


told(lambda: lr.Comm(world, backend="gpu" if rank < 2 else None, timeout=20))
with lr.Comm(world, timeout=20) as comm:
    told(lambda: comm.reduce("average" if rank < 2 else "sum", np.ones(2), grid))
    if comm.reduce("sum", np.ones(2), grid) != 6:
        world.Abort(1)
print(f"rank {rank} passed", flush=True)
