"""lockstep.ranks between threads of this process (threads_mpi.py stands in for mpi4py): arrays of the host, and of a device where one is."""
import importlib.util
import itertools

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
    assert type(got) is kind or kind is np.ndarray and isinstance(got, np.generic) or np.shape(want) == (), (what, type(got))
    got = back(got)
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
