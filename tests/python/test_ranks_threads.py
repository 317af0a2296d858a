"""lockstep.ranks between threads of this process (threads_mpi.py stands in for mpi4py): arrays of the host, and of a device where one is."""
import importlib.util
import itertools
import threading

import numpy as np
import pytest
from threads_mpi import on_ranks

import lockstep as ls
from lockstep import _ranks_c

try:
    _ranks_c.library()
except ImportError as e:
    pytest.skip(str(e), allow_module_level=True)
import lockstep.ranks as lr

GPU = any(b.name == "cuda" and b.usable for b in ls.backends())
RNG = np.random.default_rng(9)
SMALL = RNG.standard_normal((6, 5))
WHOLE = {dtype: (RNG.standard_normal((37, 50, 6)) * 9).astype(dtype) for dtype in ("f4", "f8", "i4")}


def present(name):
    return importlib.util.find_spec(name) is not None


def on_torch(x):
    import torch
    return torch.from_numpy(np.array(x)).cuda()


def on_cupy(x):
    import cupy
    return cupy.asarray(x)


def on_numba(x):
    from numba import cuda
    return cuda.to_device(np.array(x))


DEVICE = {"torch": on_torch, "cupy": on_cupy, "numba": on_numba}
PLACES = ["numpy", *[name if GPU and present(name) else pytest.param(name, marks=pytest.mark.skip("no GPU or library")) for name in DEVICE]]


def back(a):
    for name in ("copy_to_host", "get"):
        if hasattr(a, name):
            return getattr(a, name)()
    return a.cpu().numpy() if hasattr(a, "cpu") else np.asarray(a)


def same(got, want, kind, *what):
    there = type(got)
    got, want = back(got), back(want)
    assert there is kind or kind is np.ndarray and issubclass(there, np.generic) or np.shape(want) == (), (what, there)
    assert got.dtype == want.dtype and got.shape == np.shape(want) and got.tobytes() == want.tobytes(), what


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("place", PLACES)
def test_blocks_have_the_bits_of_the_whole(place, ranks):
    to_place = DEVICE.get(place, lambda x: x)
    backend = None if place == "numpy" else "cuda"

    def work(mpi):
        with lr.Comm(mpi, backend=backend) as comm:
            for dtype, whole in WHOLE.items():
                for grid in (lr.Grid(whole.shape, (ranks, 1, 1)), lr.Grid(whole.shape, (1, ranks, 1)), lr.Grid(whole.shape, (1, 1, 1))):
                    # A view with the strides of something larger.
                    block = to_place(np.pad(whole[comm.box(grid).slices], 1))[1:-1, 1:-1, 1:-1]
                    kind = type(block)
                    for name, axis in itertools.product(("sum", "argmin", "norm"), (None, 0, (0, 2), -1)):
                        same(comm.reduce(name, block, grid, axis), getattr(ls, name)(whole, axis=axis), kind, dtype, name, axis)
                    turned, to = ls.permute(whole, (2, 0, 1)), lr.Grid((6, 37, 50), (1, ranks, 1))
                    same(comm.permute(block, grid, (2, 0, 1), to), turned[comm.box(to).slices], kind, dtype, "permute")
                    if dtype != "i4" and grid.parts != (1, 1, 1):
                        want = ls.stencil(whole, [1, -2, 3], axes=-1)
                        line = lr.Grid((37 * 50, 6), (ranks, 1))
                        lines = to_place(whole.reshape(-1, 6)[comm.box(line).slices])
                        same(comm.stencil(lines, line, [1, -2, 3], batch=True), want.reshape(-1, 6)[comm.box(line).slices], kind, dtype, "stencil")

    on_ranks(ranks, work)


@pytest.mark.parametrize("ranks", [1, 3])
def test_rows_and_scans_have_the_bits_of_the_whole(ranks):
    x, other = (RNG.standard_normal((3, 4100)).astype("f4") for _ in range(2))
    weight, labels = RNG.standard_normal(4100).astype("f4"), np.array([0, 4099, 7])

    def work(world):
        with lr.Comm(world) as comm:
            grid = lr.Grid(x.shape, (1, ranks))
            mine = comm.box(grid).slices
            same(comm.normalize("softmax", x[mine], grid, scale=0.5), ls.softmax(x, scale=0.5)[mine], np.ndarray, "softmax")
            got, total = comm.normalize("layer", x[mine], grid, weight=weight[mine[1]], residual=other[mine])
            same(got, ls.layer_norm(x, weight=weight, residual=other)[mine], np.ndarray, "layer")
            same(total, (x + other)[mine], np.ndarray, "sum")
            same(comm.normalize("picked", x[mine], grid, labels=labels), ls.picked(x, labels), np.ndarray, "picked")
            for axis, exclusive in ((0, False), (1, True)):
                same(comm.scan("sum", x[mine], grid, axis, exclusive=exclusive), ls.cumsum(x, axis, exclusive=exclusive)[mine], np.ndarray, "cumsum", axis)
            plan = comm.plan("scan", "max", x[mine], grid, 1)
            plan.start()
            same(plan.wait(), ls.cummax(x, 1)[mine], np.ndarray, "cummax")

    on_ranks(ranks, work)


def test_device_arrays_want_a_rank_of_the_device():
    class OnDevice:
        def __init__(self, device=0, kind=2):
            self.where = kind, device

        def __dlpack_device__(self):
            return self.where

    class Old:
        __cuda_array_interface__ = {"data": (1, False), "shape": (2,), "typestr": "<f4", "version": 3}

    def work(mpi):
        grid = lr.Grid((2,), (1,))
        with lr.Comm(mpi) as comm:
            for x in (OnDevice(), Old()):
                with pytest.raises(ls.Unsupported, match='in device memory, and rank 0 computes on the CPU; make the communicator with backend="cuda"'):
                    comm.reduce("sum", x, grid)
            with pytest.raises(ls.Unsupported, match="device of DLPack's type 10"):
                comm.reduce("sum", OnDevice(kind=10), grid)
            comm._device = 1  # as if it were one of the device's
            with pytest.raises(ls.InvalidArgument, match="on CUDA device 0, and rank 0 computes on device 1"):
                comm.reduce("sum", OnDevice(), grid)
            with pytest.raises(ls.Unsupported, match="give an array of PyTorch, CuPy or numba"):
                comm.reduce("sum", OnDevice(1), grid)
            with pytest.raises(ls.InvalidArgument, match="masked"):
                comm.reduce("sum", np.ma.masked_array([1.0, 2.0], [True, False]), grid)
            assert comm.reduce("sum", np.ones(2), grid) == 2  # a host's array is welcome everywhere
        for wrong in ("gpu", "cuda:x", "cuda:-1"):
            with pytest.raises(ls.InvalidArgument, match="backend is"):
                lr.Comm(mpi, backend=wrong)
        if not GPU:
            with pytest.raises(ls.NoBackend):
                lr.Comm(mpi, backend="cuda")

    on_ranks(1, work)


@pytest.mark.skipif(not GPU or not present("torch"), reason="no GPU or no PyTorch")
def test_device_blocks_come_in_their_streams_order():
    import torch

    def work(mpi):
        with lr.Comm(mpi, backend="cuda") as comm, torch.cuda.stream(torch.cuda.Stream()):
            x = torch.zeros(1 << 20, device="cuda")
            torch.cuda._sleep(200_000_000)
            x.fill_(1)
            assert comm.reduce("sum", x, lr.Grid(x.shape, (1,))).item() == 1 << 20
            with pytest.raises(ls.InvalidArgument, match="gradient"):
                comm.reduce("sum", x.requires_grad_(), lr.Grid(x.shape, (1,)))

    on_ranks(1, work)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("place", PLACES)
def test_plans_run_while_the_program_computes(place, ranks):
    to_place = DEVICE.get(place, lambda x: x)

    def work(mpi):
        with lr.Comm(mpi, backend=None if place == "numpy" else "cuda") as comm:
            whole, other = WHOLE["f8"], WHOLE["f8"][::-1].copy()
            grid, to = lr.Grid(whole.shape, (ranks, 1, 1)), lr.Grid((6, 37, 50), (1, ranks, 1))
            mine, width = comm.box(grid).slices, (2, 0, 1)
            x, y = to_place(whole[mine]), to_place(other[mine])
            fields = [to_place(np.pad(whole[mine], [(w, w) for w in width])) for _ in range(2)]
            halo, turn = comm.plan("halo", fields, grid, width), comm.plan("permute", x, grid, axes=(2, 0, 1), to=to)
            total, dot = comm.plan("reduce", "sum", x, grid, 0), comm.plan("reduce", "dot", x, grid, other=y)
            moments, digest = comm.plan("mean_var", x, grid, (0, 2), correction=1), comm.plan("digest", x, grid)
            several = comm.plan("reduce_several", [("dot", x, y), ("square_sum", x)], grid)
            plans = [halo, turn, total, dot, moments, digest, several]
            for times in range(3):
                here, a, b = (x, whole, other) if times < 2 else (y, other, whole)
                for plan in plans:  # all at once, with the arrays of the plan or others
                    if times < 2 or plan is halo:
                        plan.start()
                    elif plan is several:
                        plan.start(terms=[("dot", y, x), ("square_sum", y)])
                    else:
                        plan.start(x=here, **({"other": x} if plan is dot else {}))
                while not several.test():
                    pass
                order = plans if times else reversed(plans)
                results = {id(plan): plan.wait() for plan in order}
                kind = type(x)
                assert results[id(halo)] is None
                padded = np.pad(whole, [(w, w) for w in width], "wrap")[tuple(slice(s.start, s.stop + 2 * w) for s, w in zip(mine, width))]
                for field in fields:
                    same(field, padded, kind, "halo")
                same(results[id(turn)], ls.permute(a, (2, 0, 1))[comm.box(to).slices], kind, "permute")
                same(results[id(total)], ls.sum(a, axis=0), kind, "sum")
                same(results[id(dot)], ls.dot(a, b), kind, "dot")
                for got, want in zip(results[id(moments)], ls.mean_var(a, (0, 2), correction=1)):
                    same(got, want, kind, "mean_var")
                assert results[id(digest)] == ls.digest(a)
                same(results[id(several)], comm.reduce_several([("dot", here, y if times < 2 else x), ("square_sum", here)], grid), kind, "several")
            same(total(x=y), ls.sum(other, axis=0), kind, "start and wait")
            total.start()
            same(comm.reduce("sum", x, grid), ls.sum(whole), kind, "a call while a plan runs")
            same(total.wait(), ls.sum(other, axis=0), kind, "the arrays that were given last")
            turn.close()
            turn.close()
            total.start()  # and the communicator ends

    on_ranks(ranks, work)


def test_ghosts_around_a_single_row():
    def work(mpi):
        with lr.Comm(mpi) as comm:
            whole = np.arange(10.0).reshape(2, 5)
            for parts, width in ((2, 1), (1, 2)), ((1, 2), (1, 0)), ((2, 1), (0, 1)):
                grid = lr.Grid(whole.shape, parts)
                around = [(w, w) for w in width]
                u = np.pad(whole[comm.box(grid).slices], around)
                comm.halo(u, grid, width)
                want = np.pad(whole, around, "wrap")
                same(u, want[tuple(slice(s.start, s.stop + 2 * w) for s, w in zip(comm.box(grid).slices, width))], np.ndarray, parts, width)

    on_ranks(2, work)


def test_a_plan_waits_for_no_other_rank():
    asked, came = threading.Event(), threading.Event()

    def work(mpi):
        with lr.Comm(mpi) as comm:
            rank, grid = comm.rank, lr.Grid((8,), (2,))
            u = np.full(6, -1.0)
            u[1:5] = np.arange(4.0) + 4 * rank
            halo = comm.plan("halo", u, grid, (1,))
            if rank == 0:
                halo.start()
                assert not halo.test() and not halo.test()
                asked.set()
                assert came.wait(60)
                while not halo.test():
                    pass
            else:
                assert asked.wait(60)
                halo.start()
                halo.test()
                came.set()
            halo.wait()
            assert u.tolist() == ([7, 0, 1, 2, 3, 4] if rank == 0 else [3, 4, 5, 6, 7, 0])

    on_ranks(2, work)


def test_what_fails_in_a_plan_is_told():
    def work(mpi):
        with lr.Comm(mpi) as comm:
            rank, grid = comm.rank, lr.Grid((6, 5), (3, 1))
            whole = SMALL
            block = whole[comm.box(grid).slices]
            with pytest.raises(ls.InvalidArgument if rank == 1 else lr.RankFailed, match="name is 'average'"):
                comm.plan("average" if rank == 1 else "reduce", "sum", block, grid)
            with pytest.raises(TypeError if rank == 1 else lr.RankFailed, match="missing a required argument"):
                comm.plan("reduce", "sum", block, **({} if rank == 1 else {"grid": grid}))
            with pytest.raises(ls.InvalidArgument if rank == 1 else lr.RankFailed, match="has the shape"):
                comm.plan("reduce", "sum", block[:, 1:] if rank == 1 else block, grid)
            plan = comm.plan("reduce", "sum", block, grid)
            with pytest.raises(ls.InvalidArgument, match="has not been started"):
                plan.wait()
            with pytest.raises(ls.InvalidArgument, match="has not been started"):
                plan.test()
            plan.start()
            with pytest.raises(ls.InvalidArgument, match="was started before; call wait first"):
                plan.start()
            same(plan.wait(), ls.sum(whole), np.ndarray)
            for wrong, text in ({"x": block[:, 1:]}, "has the shape"), ({"x": block.astype("f4")}, "are not those of the plan"), ({"blocks": block}, "was planned with x"):
                with pytest.raises(ls.InvalidArgument if rank == 1 else lr.RankFailed, match=text if rank == 1 else "rank 1: "):
                    plan.start(**wrong if rank == 1 else {"x": block})
                    plan.wait()
                with pytest.raises(ls.InvalidArgument if rank == 1 else lr.RankFailed):
                    comm.synchronize()
                same(plan(x=block), ls.sum(whole), np.ndarray, "after a failure")
            comm.synchronize()
            huge = comm.plan("reduce", "sum", np.full(block.shape, 2**62), grid)
            huge.start()
            with pytest.raises(ls.Overflow):
                huge.wait()
            with pytest.raises(ls.Overflow):
                huge()
        with pytest.raises(ls.InvalidArgument, match="communicator is closed"):
            plan.start()
        with pytest.raises(ls.InvalidArgument, match="communicator is closed"):
            comm.plan("reduce", "sum", block, grid)

    on_ranks(3, work)


def gpus():
    if not GPU or not present("torch"):
        return 0
    import torch
    return torch.cuda.device_count()


@pytest.mark.skipif(gpus() < 2, reason="fewer than two GPUs, or no PyTorch")
@pytest.mark.parametrize("data", ["nccl", "staged"])
def test_blocks_of_several_gpus(data):
    """By nccl nothing of a block goes through the host."""
    import torch
    ranks = min(4, gpus())

    def work(mpi):
        device = torch.device("cuda", mpi.Get_rank())
        torch.cuda.set_device(device)
        with lr.Comm(mpi, backend=f"cuda:{device.index}", data=data) as comm:
            assert comm.planes[0] == data, comm.planes
            for dtype, whole in WHOLE.items():
                grid, to = lr.Grid(whole.shape, (ranks, 1, 1)), lr.Grid((6, 37, 50), (1, ranks, 1))
                x = torch.from_numpy(whole[comm.box(grid).slices].copy()).to(device)
                turn, total = comm.plan("permute", x, grid, (2, 0, 1), to), comm.plan("reduce", "sum", x, grid, 0)
                turn.start()
                total.start()
                same(turn.wait(), ls.permute(whole, (2, 0, 1))[comm.box(to).slices], torch.Tensor, data, dtype)
                same(total.wait(), ls.sum(whole, axis=0), torch.Tensor, data, dtype)

    on_ranks(ranks, work)


def test_how_data_goes():
    def work(mpi):
        with lr.Comm(mpi) as comm:
            assert comm.planes[0] == "staged" and isinstance(comm.planes[1], str)
        with pytest.raises(ls.InvalidArgument if comm.rank == 0 else lr.RankFailed, match="data is 5"):
            lr.Comm(mpi, data=5 if comm.rank == 0 else None)
        for wrong, error in ("carrier pigeon", ls.InvalidArgument), ("nccl", ls.Unsupported):
            with pytest.raises(error):
                lr.Comm(mpi, data=wrong)

    on_ranks(2, work)
