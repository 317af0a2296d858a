"""What test_ranks.py runs by mpirun, and with --torch test_ranks_torch.py as processes of torch.distributed: everything beside the one call on the whole
array, then errors. Ends with "passed"."""
import itertools
import os
import sys
import time
from math import prod

import numpy as np

import lockstep as ls
import lockstep.ranks as lr

RNG = np.random.default_rng(5)  # the same on every rank
by_torch = "--torch" in sys.argv
if by_torch:
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="file://" + os.environ["LOCKSTEP_TEST_STORE"], rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
    rank, size, barrier = dist.get_rank(), dist.get_world_size(), dist.barrier
else:
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    rank, size, barrier = world.Get_rank(), world.Get_size(), world.Barrier


def make(**options):
    return lr.Comm.from_torch(**options) if by_torch else lr.Comm(world, **options)


def alone():
    """A communicator of this process only."""
    if not by_torch:
        return lr.Comm(MPI.COMM_SELF)
    return lr.Comm.from_torch([dist.new_group([k]) for k in range(size)][rank])


def same(a, b, *what):
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), (rank, *what, a, b)


def grids(shape):
    yield lr.Grid(shape, (size,) + (1,) * (len(shape) - 1))
    yield lr.Grid(shape, (1,) * (len(shape) - 1) + (size,))
    yield lr.Grid(shape, (1,) * len(shape))  # all on rank 0
    uneven = np.sort(RNG.integers(0, shape[0] + 1, size - 1)).tolist()
    yield lr.Grid(shape, (size,) + (1,) * (len(shape) - 1), cuts=[[0, *uneven, shape[0]], *[None] * (len(shape) - 1)],
                  order=list(reversed(range(size))))


def operations(comm):
    every = ("sum", "max", "argmin", "norm", "square_sum", "min", "argmax")
    later = ("count_nonzero", "any", "all", "prod", "nansum", "nanmin", "nanmax")
    reduced = {"f4": every + later, "f8": every, "i4": every, "i8": every, "f2": every + later, "u1": ("sum", "max", "norm", "any"), "?": ("sum", "all")}
    for dtype, names in reduced.items():
        whole = (RNG.standard_normal((37, 50, 6)) * 9).astype(dtype)
        for grid in grids(whole.shape):
            block = whole[comm.box(grid).slices]  # a view, with the whole array's strides
            for name, axis in itertools.product(names, (None, 0, (0, 1), (2,), (0, 2), -1)):
                want = getattr(ls, name)(whole, axis=axis)
                same(comm.reduce(name, block, grid, axis), want, dtype, name, axis, grid)
                if axis == (2,):
                    kept = lr.Grid(want.shape, (1, size))
                    same(comm.reduce(name, block, grid, axis, to=kept), want[comm.box(kept).slices], dtype, name, "blocks")
            if dtype[0] == "f":
                same(comm.reduce("square_sum", block, grid, 1, dtype="float64"), ls.square_sum(whole, 1, dtype="float64"))
            for axes in ((2, 0, 1), (0, 1, 2), (-1, 1, 0)):
                turned = ls.permute(whole, axes)
                for to in grids(turned.shape):
                    same(comm.permute(block, grid, axes, to), turned[comm.box(to).slices], dtype, axes)
            to = next(grids(whole.shape))
            same(comm.redistribute(block, grid, to), whole[comm.box(to).slices], "redistribute")
    for dtype in ("f4", "i8", "f2"):
        x, y = ((RNG.standard_normal((37, 50, 6)) * 9).astype(dtype) for _ in range(2))
        for grid, axis in itertools.product(grids(x.shape), (None, 0, (0, 2), -1)):
            mine = comm.box(grid).slices
            for name in ("dot", "squared_distance", "l1_distance"):
                same(comm.reduce(name, x[mine], grid, axis, other=y[mine]), getattr(ls, name)(x, y, axis), dtype, name, axis, grid)
            same(comm.reduce("l1_norm", x[mine], grid, axis), ls.l1_norm(x, axis), dtype, "l1_norm", axis, grid)
    for dtype in ("f4", "f8", "f2", "i4", "u1", "?"):
        whole = (RNG.standard_normal((37, 50, 6)) * 9 + 50).astype(dtype)
        for grid in grids(whole.shape):
            block = whole[comm.box(grid).slices]
            assert comm.digest(block, grid) == ls.digest(whole), (rank, dtype, grid)
            for axis in (None, 0, (0, 2), -1) if dtype[0] == "f" else ():
                want = ls.mean_var(whole, axis, correction=1)
                for got, wanted in zip(comm.mean_var(block, grid, axis, correction=1), want):
                    same(got, wanted, dtype, "mean_var", axis, grid)
            if dtype[0] == "f":
                kept = lr.Grid((37, 50), (1, size))
                for got, wanted in zip(comm.mean_var(block, grid, 2, dtype=float, to=kept), ls.mean_var(whole, 2, dtype=float)):
                    same(got, wanted[comm.box(kept).slices], dtype, "mean_var", "blocks")
    long = RNG.standard_normal(100_003).astype("f4")  # cuts within leaves
    grid = lr.Grid(long.shape, (size,))
    same(comm.reduce("sum", long[comm.box(grid).slices], grid, dtype=float), ls.sum(long, dtype=float))


def rows(comm):
    for dtype in ("f4", "f8", "f2"):
        x, other = (RNG.standard_normal((7, 5, 4100)).astype(dtype) for _ in range(2))
        weight, bias = (RNG.standard_normal(4100).astype("f4") for _ in range(2))
        labels = RNG.integers(0, 4100, (7, 5))
        for grid in grids(x.shape):
            mine = comm.box(grid).slices
            own = (mine[:-1], mine[-1])
            for kind, whole in (("l2", ls.normalize), ("rms", ls.rms_norm), ("layer", ls.layer_norm)):
                same(comm.normalize(kind, x[mine], grid), whole(x)[mine], dtype, kind, grid)
                got, added = comm.normalize(kind, x[mine], grid, weight=weight[own[1]], bias=bias[own[1]], residual=other[mine], eps=1e-3, dtype="f4")
                total = np.empty_like(x)
                same(got, whole(x, weight=weight, bias=bias, residual=other, residual_out=total, eps=1e-3, dtype="f4")[mine], dtype, kind, grid)
                same(added, total[mine], dtype, kind, grid)
            for kind, whole in (("softmax", ls.softmax), ("log_softmax", ls.log_softmax)):
                same(comm.normalize(kind, x[mine], grid, scale=-0.5), whole(x, scale=-0.5)[mine], dtype, kind, grid)
            if 0 in comm.box(grid).shape:
                comm.normalize("logsumexp", x[mine], grid, dtype="f8"), comm.normalize("picked", x[mine], grid, labels=labels[own[0]])
                continue
            same(comm.normalize("logsumexp", x[mine], grid, dtype="f8"), ls.logsumexp(x, dtype="f8")[own[0]], dtype, "logsumexp", grid)
            same(comm.normalize("picked", x[mine], grid, labels=labels[own[0]]), ls.picked(x, labels)[own[0]], dtype, "picked", grid)
    line = RNG.standard_normal(10_001).astype("f4")
    grid = lr.Grid(line.shape, (size,))
    same(comm.normalize("logsumexp", line[comm.box(grid).slices], grid), np.array([ls.logsumexp(line)]), "a row")
    block = line[comm.box(grid).slices]
    fails(comm, lambda broken: comm.normalize("soft" if broken else "softmax", block, grid), ls.InvalidArgument, lr.RankFailed, "kind is 'soft'")
    fails(comm, lambda broken: comm.normalize("rms", block, grid, weight=block[:-1] if broken else block), ls.InvalidArgument, lr.RankFailed, "weight has")
    fails(comm, lambda broken: comm.normalize("picked", block, grid, labels=np.zeros(2 if broken else 1, int)), ls.InvalidArgument, lr.RankFailed, "labels holds")


def scans(comm):
    for dtype in ("f4", "f8", "f2", "i4", "i8"):
        x = (RNG.standard_normal((4100, 3, 5)) * 9).astype(dtype)
        for grid, exclusive in itertools.product(grids(x.shape), (False, True)):
            mine = comm.box(grid).slices
            for axis in (0, 1, -1):
                for name, whole in (("sum", ls.cumsum), ("min", ls.cummin), ("max", ls.cummax)):
                    stored = {"dtype": dtype} if name == "sum" and dtype[0] == "f" else {}
                    same(comm.scan(name, x[mine], grid, axis, exclusive=exclusive), whole(x, axis, exclusive=exclusive, **stored)[mine], dtype, name, axis, grid)
    grid = lr.Grid((30, 3), (size, 1))
    block = np.ones(comm.box(grid).shape, "f4")
    same(comm.scan("sum", block, grid, 0, dtype="f8"), np.cumsum(np.ones((30, 3)), 0)[comm.box(grid).slices])
    fails(comm, lambda broken: comm.scan("prod" if broken else "sum", block, grid, 0), ls.InvalidArgument, lr.RankFailed, "reduction is 'prod'")
    fails(comm, lambda broken: comm.scan("sum", block, grid, 2 if broken else 0), ls.InvalidArgument, lr.RankFailed, "axis is 2")


def stencils(comm):
    for shape, weights in (((61,), [1, -2, 0.5]), ((40, 17), ls.star(0.5, [1, 2, 3, 4], [5, 6, 7, 8])), ((21, 9, 8), ls.laplace_weights(3))):
        whole = RNG.standard_normal(shape).astype("f4")
        for mode, sweeps in itertools.product(("reflect", "mirror", "nearest", "wrap", "constant", "valid"), (1, 2)):
            want = ls.stencil(whole, weights, mode=mode, cval=1.5, sweeps=sweeps)
            for grid in grids(shape):
                box = comm.box(grid)
                got = comm.stencil(whole[box.slices], grid, weights, mode=mode, cval=1.5, sweeps=sweeps)
                reach = (whole.shape[0] - want.shape[0]) // 2
                inside = tuple(slice(max(0, a - reach), max(0, min(a + n - reach, m))) for a, n, m in zip(box.low, box.shape, want.shape))
                if 0 not in got.shape:
                    same(got, want[inside], mode, sweeps, grid)
    column = RNG.standard_normal((12, 1))
    grid = lr.Grid(column.shape, (size, 1))
    block = np.empty(comm.box(grid).shape, order="F")
    block[...] = column[comm.box(grid).slices]
    same(comm.stencil(block, grid, [1, 2, 3, 4, 5]), ls.stencil(column, [1, 2, 3, 4, 5])[comm.box(grid).slices])
    columns = np.asfortranarray(RNG.standard_normal((4, 12, 1)))
    grid = lr.Grid(columns.shape, (1, size, 1))
    block = columns[comm.box(grid).slices]
    same(comm.stencil(block, grid, [1, 2, 3, 4, 5], batch=True), ls.stencil(columns, [1, 2, 3, 4, 5], axes=(1, 2))[comm.box(grid).slices])
    many = RNG.standard_normal((4, 30))
    grid = lr.Grid(many.shape, (1, size))
    same(comm.stencil(many[comm.box(grid).slices], grid, [1, 2, 3], batch=True), ls.stencil(many, [1, 2, 3], axes=1)[comm.box(grid).slices])


def kept(comm):
    """Plans are kept by what they describe: more of them than are kept, and mistakes in between."""
    wholes = {n: RNG.standard_normal(n) for n in range(30, 75)}
    many = {n: lr.Grid((n,), (size,)) for n in wholes}
    for n in (*wholes, *wholes, 74, 74, 31, 74):
        mine = comm.box(many[n]).slices
        same(comm.reduce("sum", wholes[n][mine], many[n]), ls.sum(wholes[n]), "kept", n)
        assert len(comm._plans) <= 32
    grid, other = many[74], lr.Grid((74,), (size,), order=list(reversed(range(size))))
    block, elsewhere = (wholes[74][comm.box(g).slices] for g in (grid, other))
    same(comm.reduce("sum", elsewhere, other), ls.sum(wholes[74]))
    fails(comm, lambda broken: comm.reduce("sum", block[:-1] if broken else block, grid), ls.InvalidArgument, lr.RankFailed, "has the shape")
    if size > 1:  # one rank executes another kept plan, or makes a new one: all are told, and the plans stay
        for first, rest in (((elsewhere, other), (block, grid)), ((block.astype("f4"), grid), (block, grid))):
            try:
                comm.reduce("sum", *(first if rank == 0 else rest))
                raise AssertionError("different plans went through")
            except lr.Mismatch as e:
                assert "order" in str(e) or "dtype" in str(e), str(e)
    same(comm.reduce("sum", block, grid), ls.sum(wholes[74]))


def solvers(comm):
    x, y = (RNG.standard_normal((37, 50)) for _ in range(2))
    for grid in grids(x.shape):
        mine = comm.box(grid).slices
        got = comm.reduce_several([("dot", x[mine], y[mine]), ("square_sum", x[mine]), ("sum", y[mine]), ("l1_norm", y[mine])], grid)
        blocks = sorted(range(size), key=lambda r: (comm.box(grid, r).shape == (0, 0), comm.box(grid, r).low))
        parts = [(x[comm.box(grid, r).slices], y[comm.box(grid, r).slices]) for r in blocks if comm.box(grid, r).shape != (0, 0)]
        if 0 in (min(a.shape) for a, _ in parts) or len(parts) != prod(grid.parts):
            continue  # which empty block stands where cannot be told from its box
        for k, value in enumerate((ls.vdot, lambda a, b: ls.square_sum(a), lambda a, b: ls.sum(b), lambda a, b: ls.l1_norm(b))):
            sums = [value(a, b) for a, b in parts]
            same(got[k], (sums[0] + sums[1]) + sums[2] if len(sums) == 3 else sums[0] + sums[1] if len(sums) == 2 else sums[0], "several", k, grid)
        for mode, padding in (("wrap", "wrap"), ("mirror", "reflect"), ("nearest", "edge")):
            fields, width = [], (2, 3)
            for field in (x, y):
                fields.append(np.full([n + 2 * w for n, w in zip(comm.box(grid).shape, width)], -1.0))
                fields[-1][2:-2, 3:-3] = field[mine]
            comm.halo(fields, grid, width, mode=mode)
            comm.halo(fields[0], grid, width, mode=mode)
            for got, field in zip(fields, (x, y)):
                if 0 not in comm.box(grid).shape:
                    same(got, np.pad(field, [(w, w) for w in width], padding)[tuple(slice(s.start, s.stop + 2 * w) for s, w in zip(mine, width))], mode, grid)
    grid = lr.Grid((6, 5), (size, 1))
    block = np.ones(comm.box(grid).shape)
    fails(comm, lambda broken: comm.reduce_several([("dot", block)] if broken else [("sum", block)], grid), ls.InvalidArgument, lr.RankFailed, "terms[0] has 1 arrays")
    fails(comm, lambda broken: comm.reduce_several([("norm" if broken else "sum", block)], grid), ls.InvalidArgument, lr.RankFailed, "terms[0] is 'norm'")
    ghosts = np.ones((block.shape[0] + 2, 7))
    fails(comm, lambda broken: comm.halo(ghosts[1:] if broken else ghosts, grid, (1, 1)), ls.InvalidArgument, lr.RankFailed, "field 0 has the shape")


def plans(comm):
    """A halo, a transpose and sums go on while the program computes."""
    x = RNG.standard_normal((37, 50))
    for grid in grids(x.shape):
        mine, turned = comm.box(grid).slices, lr.Grid((50, 37), (size, 1))
        u = np.pad(x[mine], ((2, 2), (3, 3)))
        planned = halo, turn, total = comm.plan("halo", u, grid, (2, 3)), comm.plan("permute", x[mine], grid, (1, 0), turned), comm.plan("reduce", "sum", x[mine], grid, 0)
        for times in range(3):
            for plan in planned:
                plan.start()
            while not turn.test():
                pass
            same(total.wait(), ls.sum(x, axis=0), "plans", grid)
            same(turn.wait(), x.T[comm.box(turned).slices], "plans", grid)
            halo.wait()
            if 0 not in comm.box(grid).shape:
                same(u, np.pad(x, ((2, 2), (3, 3)), "wrap")[tuple(slice(s.start, s.stop + 2 * w) for s, w in zip(mine, (2, 3)))], "plans", grid)
        for plan in planned:
            plan.close()


def places(comm):
    """Results go where the caller says: into arrays with ghosts, or in place."""
    for dtype in ("f4", "i8", "u1"):
        x = (RNG.standard_normal((30, 30)) * 9).astype(dtype)
        for grid in grids(x.shape):
            shape, mine = comm.box(grid).shape, comm.box(grid).slices
            u, v = (np.full(tuple(n + 4 for n in shape), 7, dtype) for _ in range(2))
            inner = u[2:-2, 2:-2], v[2:-2, 2:-2]
            inner[0][...] = x[mine]
            if 0 not in shape:
                assert comm.permute(inner[0], grid, (1, 0), grid, out=inner[1]) is inner[1]
                same(v, np.pad(x.T[mine], 2, constant_values=7), dtype, "ghosts", grid)
                comm.permute(inner[0], grid, (1, 0), grid, out=inner[0])  # swapped
                same(u, v, dtype, "in place", grid)
            else:
                comm.permute(inner[0], grid, (1, 0), grid, out=inner[1]), comm.permute(inner[0], grid, (1, 0), grid, out=inner[0])
            to = lr.Grid(x.shape, (1, size))  # a copy first
            memory = np.zeros(max(x[mine].size, x[comm.box(to).slices].size), dtype)
            block, other = memory[:x[mine].size].reshape(shape), memory[:prod(comm.box(to).shape)].reshape(comm.box(to).shape)
            block[...] = x[mine]
            plan = comm.plan("redistribute", block, grid, to, out=other)
            assert plan() is other
            same(other, x[comm.box(to).slices], dtype, "redistributed in place", grid)
            later = np.empty_like(other)
            block[...] = x[mine]
            assert plan(out=later) is later
            same(later, x[comm.box(to).slices], dtype, "elsewhere", grid)
            plan.close()
    grid = lr.Grid((size, 6), (size, 1))
    row, to = np.ones((1, 6)), lr.Grid((6, size), (1, size))
    for wrong in (np.ones((6, 2)), np.ones((6, 1), "f4"), np.broadcast_to(np.ones(1), (6, 1)), [[1.0]] * 6):
        fails(comm, lambda broken, wrong=wrong: comm.permute(row, grid, (1, 0), to, out=wrong if broken else None), ls.InvalidArgument, lr.RankFailed, "out has the shape")
    line, columns = np.ones(7), lr.Grid((size, 6), (1, size))
    fails(comm, lambda broken: comm.redistribute(line[:6].reshape(1, 6), grid, columns, out=line[1:].reshape(size, -1) if broken else None), ls.InvalidArgument, lr.RankFailed,
          "overlap; give dst memory of its own")


def fails(comm, call, local, others, *texts):
    """call(broken) fails on the last rank, and on the others because of it."""
    broken = rank == size - 1
    try:
        call(broken)
    except (local if broken else others) as e:
        for text in texts if broken else [f"rank {size - 1}: ", *texts[1:]]:
            assert text in str(e), (rank, str(e))
    else:
        raise AssertionError(f"rank {rank}: no exception")


def errors(comm):
    x, grid = np.ones((6, 5), "f4"), lr.Grid((6, 5), (size, 1))
    block = x[comm.box(grid).slices]
    fails(comm, lambda broken: comm.reduce("sum", block[:, :-1] if broken else block, grid), ls.InvalidArgument, lr.RankFailed, f"on rank {rank}", f"on rank {size - 1}; its block")
    fails(comm, lambda broken: comm.reduce("average" if broken else "sum", block, grid), ls.InvalidArgument, lr.RankFailed, "give sum")
    fails(comm, lambda broken: comm.reduce("dot", block, grid, other=None if broken else block), ls.InvalidArgument, lr.RankFailed, "other is missing")
    fails(comm, lambda broken: comm.reduce("dot", block, grid, other=block.astype("f8") if broken else block), ls.InvalidArgument, lr.RankFailed, "give both the same dtype")
    fails(comm, lambda broken: comm.reduce("sum", block, grid, other=block if broken else None), ls.InvalidArgument, lr.RankFailed, "other is given")
    fails(comm, lambda broken: comm.permute(block, grid, (0, 0) if broken else (1, 0), lr.Grid((5, 6), (1, size))), ls.InvalidArgument, lr.RankFailed, "once")
    same(comm.reduce("sum", block, grid), ls.sum(x))
    turned = lr.Grid((5, 6), (1, size))
    fails(comm, lambda broken: comm.permute(block, grid, (3, 2) if broken else (1, 0), turned), ls.InvalidArgument, lr.RankFailed, "axes is (3, 2)")
    fails(comm, lambda broken: comm.permute(block, grid, (1.2, 0.9) if broken else (1, 0), turned), TypeError, lr.RankFailed, "axes is 1.2; give an int")
    fails(comm, lambda broken: comm.stencil(block, grid, [1] * 5, sweeps=1.5 if broken else 1), TypeError, lr.RankFailed, "sweeps is 1.5; give an int")
    fails(comm, lambda broken: comm.stencil(block, grid, [1] * 5, sweeps=2**32 + 1 if broken else 1), ls.InvalidArgument, lr.RankFailed, "not an int of 32 bits")
    same(comm.reduce("sum", block, grid, np.int64(0)), ls.sum(x, 0))
    same(comm.stencil(block, grid, [1] * 5, mode="grid-wrap"), comm.stencil(block, grid, [1] * 5, mode="wrap"))
    odd = np.zeros(block.nbytes + 1, "u1")[1:].view("f4").reshape(block.shape)
    odd[...] = block
    same(comm.reduce("sum", odd, grid), ls.sum(x), "a block that is not aligned")
    try:
        comm.reduce("max", block, grid, dtype="float64")
        raise AssertionError("a rounded maximum went through")
    except ls.InvalidArgument as e:
        assert "set result to LOCKSTEP_F32" in str(e)
    fails(comm, lambda broken: comm.stencil(block.astype("i4") if broken else block, grid, [1] * 5), ls.UnsupportedDtype, lr.RankFailed, "float32 and float64")
    same(comm.reduce("sum", block, grid), ls.sum(x), "after errors the communicator works")
    if size > 1:
        try:
            comm.reduce("max" if rank == 0 else "min", block, grid)
            raise AssertionError("different reductions went through")
        except lr.Mismatch as e:
            assert "rank" in str(e), str(e)

    class OnDevice:
        def __dlpack_device__(self):
            return 2, 0

    fails(comm, lambda broken: comm.reduce("sum", OnDevice() if broken else block, grid), ls.Unsupported, lr.RankFailed, "in device memory")
    huge = np.full((6, 1), 2**62)
    try:
        comm.reduce("sum", huge[comm.box(lr.Grid(huge.shape, (size, 1))).slices], lr.Grid(huge.shape, (size, 1)))
        raise AssertionError("no overflow")
    except ls.Overflow:
        pass
    nothing = lr.Grid((0, 5), (size, 1))
    try:
        comm.reduce("max", np.zeros(comm.box(nothing).shape), nothing, 0)
        raise AssertionError("the greatest of nothing")
    except ls.Empty:
        pass


def beginnings():
    """A communicator begins on all ranks or on none."""
    closed = ls.Context("cpu")
    closed.close()
    for wrong, error, text in (({"backend": "gpu"}, ls.InvalidArgument, "backend is 'gpu'"), ({"timeout": 0}, ls.InvalidArgument, "timeout is 0"),
                               ({"context": closed}, ls.InvalidArgument, "context is closed"), ({"context": 5}, ls.InvalidArgument, "context is 5")):
        fails(None, lambda broken, wrong=wrong: make(**wrong if broken else {}), error, lr.RankFailed, text)
    if size > 2:  # two ranks at once, one wrong for Python, one for C; for Python alone on both
        for second in ({"backend": "cuda:99"}, {"timeout": -1}):
            try:
                make(**({"backend": "gpu"} if rank == 0 else second if rank == 1 else {}))
                raise AssertionError("two wrong ranks went through")
            except ls.Error as e:
                assert rank < 2 or isinstance(e, lr.RankFailed) and "rank 0: backend is 'gpu'" in str(e), (rank, str(e))
    for timeout in (float("inf"), 1e30):
        make(timeout=timeout).close()
    grid, context = lr.Grid((6,), (size,)), ls.Context("cpu")
    with make(context=context) as comm:
        context.close()  # the communicator has it still
        same(comm.reduce("sum", np.ones(comm.box(grid).shape), grid), 6.0)
    assert context.handle == 0


def wrong_twice(comm):
    """One rank's mistake is found in Python, another's in C: the third hears of the first."""
    grid = lr.Grid((6,), (size,))
    block = np.ones(comm.box(grid).shape)
    for a, b in ((0, 1), (1, 0)):
        try:
            comm.reduce("average" if rank == a else "sum", block, lr.Grid((6,), (size,), order=[0] * size) if rank == b else grid)
            raise AssertionError("two wrong ranks went through")
        except ls.Error as e:
            assert rank < 2 or isinstance(e, lr.RankFailed) and ("give sum" if a == 0 else "two blocks") in str(e), (rank, str(e))
    same(comm.reduce("sum", block, grid), 6.0)


def left():
    """Who leaves by an exception tells the others at once, and has no messages of theirs in its next communicator."""
    grid, begin = lr.Grid((6,), (size,)), time.monotonic()
    try:
        with make(timeout=60) as comm:
            if rank == 0:
                raise KeyError(7)
            comm.reduce("sum", np.ones(comm.box(grid).shape), grid)
            raise AssertionError("rank 0 was not missed")
    except KeyError:
        pass
    except lr.RankLost as e:
        assert "rank 0: it has left: KeyError: 7" in str(e), str(e)
    try:
        with make(timeout=60) as comm:
            if rank != 0:
                comm.reduce("sum", np.ones(comm.box(grid).shape), grid)
                raise AssertionError("rank 0 was not missed")
    except lr.RankLost as e:
        assert "rank 0: it has destroyed its communicator" in str(e), str(e)
    assert time.monotonic() - begin < 20
    with alone() as comm:
        same(comm.reduce("sum", np.ones(6), lr.Grid((6,), (1,))), 6.0)
    barrier()


def late():
    """A rank that does not come to make its communicator is missed, too."""
    begin = time.monotonic()
    if rank == 0:
        time.sleep(1.5)
    try:
        make(timeout=0.5)
        raise AssertionError("rank 0 was not missed")
    except lr.RankLost as e:
        assert rank == 0 or "before the deadline" in str(e), str(e)
    assert rank == 0 or time.monotonic() - begin < 1.4
    barrier()
    with make() as comm:
        same(comm.reduce("sum", np.ones(comm.box(lr.Grid((6,), (size,))).shape), lr.Grid((6,), (size,))), 6.0)


def lost():
    """A rank that stays away is lost, and the communicator is closed."""
    comm = make(timeout=1.0)
    if rank != 0:
        grid = lr.Grid((6,), (size,))
        for closed in (False, True):
            try:
                comm.reduce("sum", np.ones(comm.box(grid).shape), grid)
                raise AssertionError("rank 0 was not missed")
            except lr.RankLost as e:
                assert closed or "rank 0" in str(e), str(e)
    barrier()
    comm.close()


with make() as comm:
    assert (comm.rank, comm.size) == (rank, size)
    operations(comm)
    rows(comm)
    scans(comm)
    stencils(comm)
    kept(comm)
    solvers(comm)
    plans(comm)
    places(comm)
    errors(comm)
    if size > 2:
        wrong_twice(comm)
try:
    comm.reduce("sum", np.ones(1), lr.Grid((1,), (1,)))
    sys.exit("a closed communicator was used")
except ls.InvalidArgument:
    pass
beginnings()
if size > 1:
    late()
    lost()
    left()
barrier()
print(f"rank {rank} passed", flush=True)
if by_torch:
    os._exit(0)  # groups that were left behind when ranks were lost have threads that still wait
