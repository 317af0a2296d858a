"""The operations on arrays that are divided among the processes of an MPI job, by mpi4py, or of torch.distributed: the bits of one call on the whole
array, for any number of ranks and any division. Blocks are NumPy arrays, or arrays of PyTorch, CuPy or numba on the GPU that a rank computes with.

Every process makes the same calls in the same order. What fails on one rank is an exception on all: its own there, and
`RankFailed`, whose text names that rank, on the others. Needs liblockstep_ranks (Meson's ``-Dranks=enabled``), and mpi4py or, by `Comm.from_torch`, PyTorch.

>>> from mpi4py import MPI  # doctest: +SKIP
>>> import lockstep.ranks as lr  # doctest: +SKIP
>>> with lr.Comm(MPI.COMM_WORLD) as comm:  # doctest: +SKIP
...     grid = lr.Grid((1000, 768), parts=(comm.size, 1))
...     total = comm.reduce("sum", np.ones(comm.box(grid).shape), grid)
"""
from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from . import _kinds
from . import _ranks_c as c
from ._contexts import Context
from ._errors import BY_STATUS, Error, InvalidArgument, Unsupported, UnsupportedDtype, whole_numbers
from ._ranks_blocks import Block, last_axis, of_device, of_host, on_host, where
from ._ranks_plan import Call, Plan, Prepared, described, operation

__all__ = ["Box", "Comm", "Grid", "Mismatch", "Plan", "RankFailed", "RankLost"]


class RankFailed(Error, RuntimeError):
    """Another rank's part of the call failed; the text names that rank and its reason."""
    status: int = 11


class RankLost(Error, RuntimeError):
    """A rank did not answer in time, has left, or MPI failed: the communicator is closed."""
    status: int = 12


class Mismatch(Error, ValueError):
    """The ranks described different things, or made different calls."""
    status: int = 13


_ERRORS = (*BY_STATUS, RankFailed, RankLost, Mismatch)
_REDUCTIONS = {"sum": 0, "min": 1, "max": 2, "argmin": 3, "argmax": 4, "square_sum": 5, "norm": 6, "count_nonzero": 7, "any": 8, "all": 9,
               "prod": 10, "nansum": 11, "nanmin": 12, "nanmax": 13}
_SUMS = {"dot": 0, "squared_distance": 1, "l1_distance": 2, "l1_norm": 3}  # all but the last of two arrays
_TERMS = {"sum": (3, 0), "nansum": (3, 11), "square_sum": (2, 5), **{name: (8, kind) for name, kind in _SUMS.items()}}  # op and what of it
_PAIRS = {"mean_var": 4, "digest": 5}  # two results for each sequence: methods of their own
_ROWS = {"l2": 0, "rms": 1, "layer": 2, "softmax": 3, "log_softmax": 4, "logsumexp": 5, "picked": 6}
_EPS = {"l2": 1e-12, "rms": 1e-6, "layer": 1e-5}
_MOST_PLANS = 32  # that a communicator keeps
_MODES = {"nearest": 0, "mirror": 1, "reflect": 2, "wrap": 3, "constant": 4, "valid": 5, "grid-mirror": 2, "grid-wrap": 3, "grid-constant": 4}


@dataclass(frozen=True)
class Box:
    """A rank's part of an array: where it begins and how long it is, on each axis."""

    low: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def slices(self) -> tuple[slice, ...]:
        """The part as an index of the whole array."""
        return tuple(slice(a, a + n) for a, n in zip(self.low, self.shape))


def _numbers(values: Any, name: str, bits: int = 64) -> tuple[int, ...]:
    """Ints that C's numbers hold: of others ctypes would take the lower bits."""
    found = whole_numbers(values, name)
    for n in found:
        if not -(1 << bits - 1) <= n < 1 << bits - 1:
            raise InvalidArgument(f"{name} has {n}, which is not an int of {bits} bits")
    return found


class Grid:
    """How an array is divided: each axis into parts, the blocks in row-major order to rank 0, 1 ...

    Parameters
    ----------
    shape : tuple of int
        Of the whole array, 1 to 8 axes.
    parts : tuple of int
        Parts of each axis; their product is at most the number of ranks. Ranks beyond the last block hold nothing.
    cuts : sequence of (sequence of int or None), optional
        For each axis ``parts[k] + 1`` ascending numbers from 0 to ``shape[k]``; None cuts evenly, the longer parts first.
    order : sequence of int, optional
        The rank of each block.
    """

    def __init__(self, shape: Sequence[int], parts: Sequence[int], *, cuts: Sequence[Sequence[int] | None] | None = None,
                 order: Sequence[int] | None = None) -> None:
        self.shape, self.parts = _numbers(shape, "shape"), _numbers(parts, "parts", 32)
        if not 1 <= len(self.shape) <= c.MAX_RANK or len(self.parts) != len(self.shape):
            raise InvalidArgument(f"shape is {self.shape} and parts is {self.parts}; give 1 to {c.MAX_RANK} axes, and parts for each")
        if cuts is None:
            cuts = [None] * len(self.shape)
        if len(cuts) != len(self.shape):
            raise InvalidArgument(f"cuts has {len(cuts)} axes; give one entry for each of the {len(self.shape)}")
        for k, cut in enumerate(cuts):
            if cut is not None and len(cut) != self.parts[k] + 1:
                raise InvalidArgument(f"cuts[{k}] has {len(cut)} numbers; {self.parts[k]} parts have {self.parts[k] + 1}")
        self._cuts = [None if cut is None else (ctypes.c_int64 * len(cut))(*_numbers(cut, f"cuts[{k}]")) for k, cut in enumerate(cuts)]
        blocks = prod(self.parts)
        if order is not None and len(order) != blocks:
            raise InvalidArgument(f"order has {len(order)} ranks; there are {blocks} blocks")
        self._order = None if order is None else (ctypes.c_int32 * blocks)(*_numbers(order, "order", 32))
        self._key = (self.shape, self.parts, tuple(None if cut is None else tuple(cut) for cut in self._cuts), None if self._order is None else tuple(self._order))

    def _as_c(self, element_bytes: int) -> Any:
        grid = c.Grid(element_bytes=element_bytes, rank=len(self.shape))
        for k, n in enumerate(self.shape):
            grid.shape[k], grid.parts[k] = n, self.parts[k]
            cut = self._cuts[k]
            if cut is not None:
                grid.cuts[k] = ctypes.addressof(cut)
        if self._order is not None:
            grid.order = ctypes.addressof(self._order)
        return grid

    def _with_pairs(self) -> Grid:
        """The same blocks, whose elements are pairs along one more axis."""
        order = None if self._order is None else list(self._order)
        return Grid((*self.shape, 2), (*self.parts, 1), cuts=[*(None if cut is None else list(cut) for cut in self._cuts), None], order=order)

    def __repr__(self) -> str:
        return f"Grid({self.shape}, parts={self.parts})"


def _why(e: Exception) -> bytes:
    return (str(e) or type(e).__name__).encode()


class Comm:
    """A communicator over one of mpi4py's: one rank a process. Collective, as every method but `box` is.

    Parameters
    ----------
    mpi : mpi4py.MPI.Comm
        It is duplicated, and stays the caller's.
    context : Context, optional
        What this rank computes with; by default one of `backend`, or of the CPU.
    backend : str, optional
        Of this rank, "cpu" or "cuda:1"; by default the context's. With "cuda" named, blocks may be arrays of PyTorch, CuPy or numba on that
        device: they are read where they lie, on their library's current stream. The result has the same array type, and the call waits for it. `planes`
        says whether what other ranks need of them goes from GPU to GPU or by way of the host.
    timeout : float, optional
        Seconds after which a rank that does not answer counts as lost, also in this call; a minute by default, or LOCKSTEP_RANKS_TIMEOUT. math.inf waits for ever.
        After `RankLost` MPI may wait for that rank at the program's end: end the job with ``mpi.Abort()``.
    data : str, optional
        How ranks on GPUs exchange data: "nccl" or "staged" (by way of the host), which is then used or `Unsupported`; by default the best for each pair.
    """

    def __init__(self, mpi: Any, *, context: Context | None = None, backend: str | None = None, timeout: float | None = None, data: str | None = None) -> None:
        c.check_communicator(mpi)
        self._open(lambda deadline: c.MpiEngine(mpi, deadline), context, backend, timeout, data)

    @classmethod
    def from_torch(cls, group: Any = None, *, context: Context | None = None, backend: str | None = None, timeout: float | None = None, data: str | None = None) -> Comm:
        """Make a communicator over a process group of torch.distributed: one rank a process. Collective among its members.

        Parameters
        ----------
        group : torch.distributed.ProcessGroup, optional
            By default the one of all processes. The communicator makes a gloo group of the same members for its messages, which needs
            ``GLOO_SOCKET_IFNAME`` where gloo does; `group` stays the caller's.
        backend : str, optional
            By default "cuda:N" with PyTorch's current device where the group's backend for CUDA is NCCL: blocks are then tensors on that device, in the order
            of the current stream. Else the context's, or the CPU. With several CUDA ranks on one device, `planes` is "staged".
        context, timeout, data
            As for `Comm`.

        Returns
        -------
        Comm
            Close it, or leave its ``with``, before ``destroy_process_group``.
        """
        from . import _ranks_torch
        group = _ranks_torch.group_of(group)
        if backend is None and context is None and _ranks_torch.has_gpus(group):
            import torch
            backend = f"cuda:{torch.cuda.current_device()}"
        self = cls.__new__(cls)
        self._open(lambda deadline: _ranks_torch.TorchEngine(group, deadline), context, backend, timeout, data)
        return self

    def _open(self, engine: Callable[[int], Any], context: Context | None, backend: str | None, timeout: float | None, data: str | None) -> None:
        self._handle = ctypes.c_void_p()
        options, local = c.CommOptions(seats=1), None  # (made here: a later library's defaults may be longer)
        try:
            self._begin(context, backend, timeout, data, options)
        except Exception as e:
            local = e
        try:
            self._engine = engine(c.library().lockstep_comm_timeout(ctypes.byref(options)))
        except TimeoutError as e:
            raise RankLost(str(e)) from None
        # A process that cannot begin says so: else the others would wait for it until their deadline.
        if local is not None:
            c.library().lockstep_comm_refuse(ctypes.byref(self._engine.table), ctypes.byref(options), _why(local))
            self._engine.close(0)
            raise local
        backends = (ctypes.c_char_p * 1)(backend.encode() if backend else None)
        options.backends = ctypes.addressof(backends)
        status = c.library().lockstep_comm_create(self._context.handle, ctypes.byref(self._engine.table), ctypes.byref(options), ctypes.byref(self._handle))
        if status:
            self._engine.close(0)
            self._raise(status)

    def _begin(self, context: Context | None, backend: str | None, timeout: float | None, data: str | None, options: Any) -> None:
        c.library()
        name, _, index = (backend or "cpu").partition(":")
        if name not in ("cpu", "cuda") or (index and not index.isdigit()):
            raise InvalidArgument(f"backend is {backend!r}; give cpu, cuda or cuda:N")
        if timeout is not None and not timeout > 0:
            raise InvalidArgument(f"timeout is {timeout}; give seconds, more than 0, or math.inf")
        if timeout is not None:  # the longest outlives every job
            options.timeout_ms = max(1, int(min(timeout, 1 << 32) * 1000))
        if not isinstance(data, str | None):
            raise InvalidArgument(f"data is {data!r}; give nccl or staged")
        options.data = None if data is None else data.encode()
        if not isinstance(context, Context | None):
            raise InvalidArgument(f"context is {context!r}; give a lockstep.Context")
        self._device = int(index or 0) if name == "cuda" else None
        self._plans: dict[Any, Any] = {}
        # Plans share one workspace, because one is executed at a time. Those of a GPU have page-locked memory of their own.
        self._promise = None if name == "cuda" or not (backend is not None or context is None) else c.Options(workspace=256)
        self._workspace: Any = None
        self._own_memory = False  # while a plan is made that has a workspace of its own
        self._held: list[Plan] = []
        self._lost = False
        self._context = context or Context(backend or "cpu")
        self._in_use = self._context._use()  # closing it meanwhile must not take it from C

    def _raise(self, status: int) -> None:
        self._lost = self._lost or status == RankLost.status
        raise _ERRORS[status](c.last_error())

    @property
    def rank(self) -> int:
        """This process's number."""
        return int(self._engine.process)

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return int(self._engine.processes)

    @property
    def planes(self) -> tuple[str, str]:
        """How ranks exchange data: "nccl", from GPU to GPU, "staged", by way of the host, or both; and why not otherwise."""
        self._require_open()
        info = c.CommInfo()
        status = c.library().lockstep_comm_get(self._handle, ctypes.byref(info))
        if status:
            self._raise(status)
        return info.data.decode(), info.why.decode()

    def box(self, grid: Grid, rank: int | None = None) -> Box:
        """The part of a rank, by default this one's."""
        low, length = (ctypes.c_int64 * c.MAX_RANK)(), (ctypes.c_int64 * c.MAX_RANK)()
        whose = self.rank if rank is None else _numbers(rank, "rank", 32)[0]
        status = c.library().lockstep_grid_box(ctypes.byref(grid._as_c(1)), whose, low, length)
        if status:
            self._raise(status)
        n = len(grid.shape)
        return Box(tuple(low[:n]), tuple(length[:n]))

    def close(self) -> None:
        """Give the communicator back; collective unless a failure has closed it. Waits at most the timeout for the others."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            for held in list(self._held):
                held.close()
            for plan in self._plans.values():
                c.library().lockstep_ranks_plan_destroy(plan)
            self._plans.clear()
            if self._lost:
                c.keep(self._workspace)
            c.library().lockstep_comm_destroy(handle)
            self._in_use = None

    def __enter__(self) -> Comm:
        return self

    def __exit__(self, kind: Any, value: object, _: object) -> None:
        if kind is not None and self._handle:  # the others may still be in a call: they are told
            c.library().lockstep_comm_leave(self._handle, f"{kind.__name__}: {value}".encode())
        self.close()

    # ---- operations ----------------------------------------------------------
    def _run(self, call: Call) -> Any:
        """Checks this rank's arguments, makes the plan with the others, or takes the one that is kept, and executes it."""
        key, src, dst, make = self._prepared(call)
        self._execute(self._plan_of(key, make), src, dst)
        return call.after(dst)

    def _prepared(self, call: Call) -> Prepared:
        """A rank whose arguments are wrong tells the others: else they would wait for it."""
        self._require_open()
        try:
            return call.prepare()
        except Exception as e:
            c.library().lockstep_ranks_refuse(self._handle, _why(e))
            raise

    def _require_open(self) -> None:
        if not self._handle:
            raise InvalidArgument("the communicator is closed; make another")

    def plan(self, name: str, *arguments: Any, **keywords: Any) -> Plan:
        """Plan a call that is made many times, or that runs while the program computes; collective.

        Parameters
        ----------
        name : str
            Of a method: "halo", "permute", "redistribute", "reduce", "mean_var", "digest", "reduce_several", "normalize", "scan" or "stencil".
        *arguments, **keywords
            Those of the method. The arrays are what the plan reads and writes, unless `Plan.start` gets others.

        Returns
        -------
        Plan
        """
        self._require_open()
        try:
            if name not in described:
                raise InvalidArgument(f"name is {name!r} on rank {self.rank}; give {', '.join(described)}")
            bound = inspect.signature(described[name]).bind(self, *arguments, **keywords)
        except Exception as e:
            c.library().lockstep_ranks_refuse(self._handle, _why(e))
            raise
        return Plan(self, name, bound.arguments)

    def synchronize(self) -> None:
        """Finish the plans that were started, on all ranks, and raise the first failure of any that was not raised before; collective."""
        self._require_open()
        status = c.library().lockstep_ranks_synchronize(self._handle)
        if status:
            self._raise(status)

    def _plan_of(self, key: Any, make: Callable[[Any], int]) -> Any:
        """All ranks make, keep and drop the same plans, because they make the same calls."""
        plan = self._plans.pop(key, None)
        kept = plan is not None
        if plan is None:
            plan = ctypes.c_void_p()
        status = c.library().lockstep_ranks_agree(plan) if kept else make(ctypes.byref(plan))
        if kept or not status:
            self._plans[key] = plan  # the last is the one used last
        if status:
            self._raise(status)
        if len(self._plans) > _MOST_PLANS:
            c.library().lockstep_ranks_plan_destroy(self._plans.pop(next(iter(self._plans))))
        return plan

    def _execute(self, plan: Any, src: Sequence[Block], dst: Sequence[Block], flags: int = 0, own_memory: bool = False) -> None:
        options = c.Options(stream=(src or dst)[0].stream, flags=flags)
        if self._promise is not None and not own_memory:
            need = ctypes.c_size_t()
            c.library().lockstep_ranks_workspace(plan, ctypes.byref(need))
            if self._workspace is None or self._workspace.size < need.value + 256:
                self._workspace = np.empty(need.value + 256, np.uint8)
            address = self._workspace.ctypes.data
            options.workspace, options.workspace_bytes = address + -address % 256, need.value
        parts, into = ((c.Part * len(blocks))(*(block.as_c() for block in blocks)) for blocks in (src, dst))
        status = c.library().lockstep_ranks_execute(plan, parts if src else None, into, ctypes.byref(options))
        if status:
            self._raise(status)

    def _promised(self) -> Any:
        return None if self._promise is None or self._own_memory else ctypes.byref(self._promise)

    def _take(self, x: Any) -> Block:
        """An array of the host or of this rank's device."""
        device = where(x)
        if device is None:
            return of_host(x)
        kind = f"{type(x).__module__}.{type(x).__qualname__}"
        if self._device is None:
            raise Unsupported(f"x is a {kind} in device memory, and rank {self.rank} computes on the CPU; make the communicator with backend=\"cuda\", or "
                              "copy x to the host")
        if device not in (-1, self._device):
            raise InvalidArgument(f"x is a {kind} on CUDA device {device}, and rank {self.rank} computes on device {self._device}; give both the same device")
        return of_device(x, self._device)

    def _block(self, x: Any, grid: Grid, rows: bool = False) -> Block:
        """This rank's block, copied only where its strides are none of C's."""
        block, want = self._take(x), self.box(grid).shape
        if block.shape != want and not (block.size == 0 and 0 in want):
            raise InvalidArgument(f"x has the shape {block.shape} on rank {self.rank}; its block of {grid!r} has {want}")
        if block.size and not (block.fits() and (not rows or block.has_rows())):
            block = self._take(_kinds.packed(block.array, "x"))
        return block if block.size else replace(block, shape=want, strides=(1,) * len(want))

    def _out(self, out: Any, shape: Sequence[int], like: Block) -> Block:
        """Memory that the caller gives for a result."""
        block, shape = self._take(out), tuple(shape)
        address = getattr(out, "data_ptr", None)  # of PyTorch, on the host too
        written = block.stream is not None or (block.address == address() if address else block.array is out and out.flags.writeable)
        if not written or not block.fits() or block.dtype != like.dtype or (block.shape != shape and not (block.size == 0 and 0 in shape)):
            raise InvalidArgument(f"out has the shape {block.shape}, strides {block.strides} and {block.dtype} on rank {self.rank}; give an array of {shape} and "
                                  f"{like.dtype} that can be written, with strides of 1 or more")
        return block if block.size else replace(block, shape=shape, strides=(1,) * len(shape))

    def _empty(self, like: Block, shape: Sequence[int], dtype: str) -> Block:
        """Memory for a result, of the kind of a block and where it lies."""
        if like.stream is None:
            return of_host(np.empty(tuple(shape), _kinds.numpy_dtype(dtype)))
        assert self._device is not None
        return of_device(_kinds.empty(like.array, tuple(shape), dtype), self._device)

    @operation
    def permute(self, x: Any, grid: Grid, axes: Sequence[int], to: Grid, *, out: Any = None) -> Any:
        """Move an array to another grid, with its axes in another order.

        Parameters
        ----------
        x : array
            This rank's block of `grid`.
        grid : Grid
        axes : sequence of int
            Axis k of the result is axis ``axes[k]`` of `grid`.
        to : Grid
            Of the result: ``to.shape[k] == grid.shape[axes[k]]``.
        out : array, optional
            Memory for this rank's block of `to`, such as the block within an array with ghosts, ``u[1:-1, 1:-1]``. It may be `x` itself: where `to` is
            `grid` and `axes` undoes itself, blocks are swapped piece by piece; else a copy of the block is kept. It must not overlap `x` otherwise.

        Returns
        -------
        array
            This rank's block of `to`, `out` if that is given: else a NumPy array or, for a block on a device, the block's array type.
        """
        def prepare() -> Prepared:
            rank = len(grid.shape)
            order = [k + rank * (k < 0) for k in whole_numbers(axes, "axes")]
            if sorted(order) != list(range(rank)):
                raise InvalidArgument(f"axes is {axes} on rank {self.rank}; name each of the grid's {rank} axes once")
            as_c = (ctypes.c_int32 * c.MAX_RANK)(*order)
            block = self._block(x, grid)
            size = block.itemsize
            into = self._empty(block, self.box(to).shape, block.dtype) if out is None else self._out(out, self.box(to).shape, block)
            return ("permute", grid._key, tuple(order), to._key, size), [block], [into], lambda plan: c.library().lockstep_ranks_permute(
                self._handle, ctypes.byref(grid._as_c(size)), as_c, ctypes.byref(to._as_c(size)), self._promised(), plan)

        return Call(prepare, lambda written: written[0].array if out is None else out)

    @operation
    def redistribute(self, x: Any, grid: Grid, to: Grid, *, out: Any = None) -> Any:
        """Move an array to another grid: slabs to pencils, other cuts, everything to one rank; see `permute`."""
        return described["permute"](self, x, grid, range(len(grid.shape)), to, out=out)

    @operation
    def reduce(self, reduction: str, x: Any, grid: Grid, axis: int | Sequence[int] | None = None, *, other: Any = None,
               dtype: Any = None, to: Grid | None = None) -> Any:
        """Reduce over axes, with the bits of the one call on the whole array.

        Parameters
        ----------
        reduction : {"sum", "square_sum", "norm", "max", "min", "argmax", "argmin", "count_nonzero", "any", "all", "prod", "nansum", "nanmin", "nanmax",
            "dot", "squared_distance", "l1_distance", "l1_norm"}
        x : array
            This rank's block of `grid`.
        grid : Grid
        axis : int or tuple of int, optional
            Axes to reduce; all by default.
        other : array, optional
            This rank's block of the second array of "dot", "squared_distance" and "l1_distance", of x's dtype.
        dtype : dtype, optional
            As for `lockstep.sum`.
        to : Grid, optional
            Of the kept axes: each rank gets its block. By default every rank gets the whole result.

        Returns
        -------
        array
            A NumPy array, or a scalar if no axis is kept; for a block on a device the block's array type.
        """
        def after(results: Any) -> Any:
            keeps_none = axis is None or len(whole_numbers(axis)) == len(grid.shape)
            return results[0] if to is None and keeps_none else results

        return self._reduce(reduction, x, grid, axis, other, dtype, to, after)

    @operation
    def mean_var(self, x: Any, grid: Grid, axis: int | Sequence[int] | None = None, *, correction: int = 0, dtype: Any = None,
                 to: Grid | None = None) -> tuple[Any, Any]:
        """Mean and variance over axes, with the bits of `lockstep.mean_var` on the whole array.

        Parameters
        ----------
        x : array of floats
            This rank's block of `grid`.
        grid, axis, to
            As for `reduce`.
        correction, dtype
            As for `lockstep.mean_var`.

        Returns
        -------
        tuple
            The means and the variances, as `reduce` returns its results.
        """
        pair: tuple[Any, Any] = self._reduce("mean_var", x, grid, axis, None, dtype, to, lambda pairs: (last_axis(pairs, 0), last_axis(pairs, 1)), correction)
        return pair

    @operation
    def digest(self, x: Any, grid: Grid) -> str:
        """The digest of the whole array, as `lockstep.digest` gives it: 32 hexadecimal digits, the same for any number of ranks and any cuts.

        Parameters
        ----------
        x : array
            This rank's block of `grid`.
        grid : Grid

        Returns
        -------
        str
        """
        text: str = self._reduce("digest", x, grid, None, None, None, None, lambda words: "".join(f"{int(word):016x}" for word in on_host(words)))
        return text

    @operation
    def reduce_several(self, terms: Sequence[tuple[Any, ...]], grid: Grid, *, dtype: Any = None) -> Any:
        """Several sums of whole arrays in one reduction, each in the order of the grid: the dot products and norms of a solver's step cost the messages of one.
        Each block is summed in the fixed order, then the blocks' sums by the same tree: the same bits for the same grid, others for other cuts.

        Parameters
        ----------
        terms : sequence of tuple
            A name of "sum", "nansum", "square_sum", "dot", "squared_distance", "l1_distance" and "l1_norm", and this rank's block of each of its arrays:
            ``[("dot", r, z), ("square_sum", r)]``. All are of one dtype, of floats.
        grid : Grid
            Of every array.
        dtype : dtype, optional
            float64 by default, or float32, float16.

        Returns
        -------
        array
            One result for each term.
        """
        def prepare() -> Prepared:
            blocks: list[Block] = []
            for k, (name, *arrays) in enumerate(terms):
                if name not in _TERMS:
                    raise InvalidArgument(f"terms[{k}] is {name!r} on rank {self.rank}; give {', '.join(_TERMS)}")
                wanted = 2 if name in _SUMS and name != "l1_norm" else 1
                if len(arrays) != wanted:
                    raise InvalidArgument(f"terms[{k}] has {len(arrays)} arrays on rank {self.rank}; {name} is of {wanted}")
                blocks += (self._block(x, grid) for x in arrays)
            if not blocks:
                raise InvalidArgument(f"terms is empty on rank {self.rank}; give one or more")
            types = {block.dtype for block in blocks}
            if len(types) != 1:
                raise InvalidArgument(f"terms hold {' and '.join(sorted(types))} on rank {self.rank}; give all the same dtype")
            first, names = blocks[0], tuple(name for name, *_ in terms)
            as_c = (c.Term * len(names))(*(c.Term(*_TERMS[name]) for name in names))
            name = "float64" if dtype is None else _kinds.dtype_name(dtype)
            if name not in c.DTYPES:
                raise UnsupportedDtype(f"dtype is {dtype} on rank {self.rank}; give float64, float32 or float16")
            into = self._empty(first, (len(names),), name)
            return ("several", names, grid._key, first.dtype, name), blocks, [into], lambda plan: c.library().lockstep_ranks_reduce_several(
                self._handle, ctypes.byref(grid._as_c(first.itemsize)), as_c, len(names), c.DTYPES[first.dtype], c.DTYPES[name], self._promised(), plan)

        return Call(prepare)

    @operation
    def halo(self, blocks: Any, grid: Grid, width: Sequence[int], *, mode: str = "wrap", cval: float = 0.0) -> Any:
        """Fill the ghosts around this rank's block of one field or of several, in the messages of one.

        Parameters
        ----------
        blocks : array, or list of arrays
            Each field's block of `grid` with ``width[k]`` elements more on both sides of axis k; those are written. All are of one dtype.
        grid : Grid
            Of every field.
        width : sequence of int
        mode, cval
            Beyond the whole array, as for `lockstep.stencil`; "valid" leaves those elements as they are.
        """
        def prepare() -> Prepared:
            fields = list(blocks) if isinstance(blocks, (list, tuple)) else [blocks]
            widths = _numbers(width, "width")
            if mode not in _MODES:
                raise InvalidArgument(f"mode is {mode!r} on rank {self.rank}; give {', '.join(_MODES)}")
            if not fields or len(widths) != len(grid.shape):
                raise InvalidArgument(f"blocks has {len(fields)} arrays and width {len(widths)} numbers on rank {self.rank}; give one or more, and one for each axis")
            own, taken = self.box(grid).shape, [self._take(x) for x in fields]
            around = tuple(n + 2 * w for n, w in zip(own, widths))
            for k, block in enumerate(taken):
                here = block.stream is not None or (block.array is fields[k] and block.array.flags.writeable)
                if not here or block.shape != around or not block.fits() or block.dtype != taken[0].dtype:
                    raise InvalidArgument(f"field {k} has the shape {block.shape}, strides {block.strides} and {block.dtype} on rank {self.rank}; give an array of "
                                          f"{around} and {taken[0].dtype} that can be written, with strides of 1 or more")
            steps = [tuple(s if n > 1 else 1 for s, n in zip(b.strides, around)) for b in taken]
            inner = [replace(b, address=b.address + b.itemsize * sum(w * s for w, s in zip(widths, step)), shape=own, strides=step, ghosts=True)
                     for b, step in zip(taken, steps)]
            as_c, size = (ctypes.c_int64 * c.MAX_RANK)(*widths), taken[0].itemsize
            return ("halo", grid._key, widths, mode, float(cval), size, len(fields)), [], inner, lambda plan: c.library().lockstep_ranks_halo_fields(
                self._handle, ctypes.byref(grid._as_c(size)), as_c, _MODES[mode], float(cval), len(fields), self._promised(), plan)

        return Call(prepare, lambda written: None)

    def _reduce(self, reduction: str, x: Any, grid: Grid, axis: int | Sequence[int] | None, other: Any, dtype: Any, to: Grid | None,
                after: Callable[[Any], Any], correction: int = 0) -> Any:
        """The results are an array, one of an element if no axis is kept; two results of a sequence are one more axis. after makes of it what is returned."""
        two = reduction in _PAIRS
        kinds = {**_REDUCTIONS, **_SUMS, **_PAIRS}

        def prepare() -> Prepared:
            if reduction not in kinds:
                raise InvalidArgument(f"reduction is {reduction!r} on rank {self.rank}; give {', '.join((*_REDUCTIONS, *_SUMS))}")
            pairs = reduction in _SUMS and reduction != "l1_norm"
            if pairs != (other is not None):
                raise InvalidArgument(f"other is {'missing' if pairs else 'given'} on rank {self.rank}; {reduction} is of {'two arrays' if pairs else 'one array'}")
            rank = len(grid.shape)
            given = range(rank) if axis is None else whole_numbers(axis)
            if not given or any(not -rank <= k < rank for k in given) or len({k % rank for k in given}) != len(given):
                raise InvalidArgument(f"axis is {axis} on rank {self.rank}; name one or more of the grid's {rank} axes, each once")
            axes = sum(1 << k % rank for k in given)
            kept = tuple(n for k, n in enumerate(grid.shape) if not axes >> k & 1)
            block = self._block(x, grid)
            second: tuple[Block, ...] = (self._block(other, grid),) if pairs else ()
            if pairs and second[0].dtype != block.dtype:
                raise InvalidArgument(f"other holds {second[0].dtype} on rank {self.rank} and x {block.dtype}; give both the same dtype")
            number = c.DTYPES[block.dtype]
            less, = _numbers(correction, "correction")
            result = c.library().lockstep_default_result(_REDUCTIONS.get(reduction, 0), number)
            if reduction == "digest":
                result = c.DTYPES["uint64"]
            if dtype is not None:
                result = c.DTYPES.get(_kinds.dtype_name(dtype), 0)
            elif result == c.DTYPES["float64"] and block.dtype in ("float16", "bfloat16", "float32"):
                result = c.DTYPES["float32"]
            name = next((n for n, k in c.DTYPES.items() if k == result), None)
            if name is None:
                raise UnsupportedDtype(f"dtype is {dtype} on rank {self.rank}; give one of {', '.join(c.DTYPES)}")
            pair = (2,) if two else ()
            shape = (*kept, *pair) or (1,) if to is None else (*self.box(to).shape, *pair)
            into = to._with_pairs() if to is not None and two else to

            def make(plan: Any) -> int:
                dst = None if into is None else ctypes.byref(into._as_c(c.library().lockstep_dtype_bytes(result)))
                src = ctypes.byref(grid._as_c(block.itemsize))
                if reduction == "mean_var":
                    return int(c.library().lockstep_ranks_mean_variance(self._handle, src, number, result, axes, less, dst, self._promised(), plan))
                call = c.library().lockstep_ranks_reduce if reduction in _REDUCTIONS else c.library().lockstep_ranks_sums
                return int(call(self._handle, src, kinds[reduction], number, result, axes, dst, self._promised(), plan))

            key = (reduction, grid._key, axes, block.dtype, result, less, to and to._key)
            return key, [block, *second], [self._empty(block, shape, name)], make

        return Call(prepare, lambda written: after(written[0].array))

    @operation
    def normalize(self, kind: str, x: Any, grid: Grid, *, weight: Any = None, bias: Any = None, labels: Any = None, residual: Any = None,
                  eps: float | None = None, scale: float = 1.0, dtype: Any = None) -> Any:
        """Normalize rows, or take their softmax; a row lies along the last axis, which may be cut among ranks.

        Parameters
        ----------
        kind : {"l2", "rms", "layer", "softmax", "log_softmax", "logsumexp", "picked"}
            As `lockstep.normalize`, `rms_norm`, `layer_norm`, `softmax`, `log_softmax`, `logsumexp` and `picked` of the whole array.
        x : array of float16, bfloat16, float32 or float64
            This rank's block of `grid`.
        grid : Grid
        weight, bias : array, optional
            Of l2, rms and layer, and of one dtype: the part of this rank's columns, those of the last axis of its block.
        labels : array of int64
            Of picked: for each row of this rank's block a column of the whole array.
        residual : array, optional
            This rank's block of an array that is added first.
        eps : float, optional
            Of l2, rms and layer; by default 1e-12, 1e-6 and 1e-5.
        scale : float, default 1.0
            Of the other kinds: what the elements are multiplied by.
        dtype : dtype, optional
            Of the result, by default that of `x`.

        Returns
        -------
        array, or tuple of two
            This rank's block of the result; of logsumexp and picked the results of its rows, which each rank gets that has a part of them. With
            `residual` a tuple: the result, then this rank's block of ``x + residual``.
        """
        def prepare() -> Prepared:
            if kind not in _ROWS:
                raise InvalidArgument(f"kind is {kind!r} on rank {self.rank}; give {', '.join(_ROWS)}")
            if (labels is None) == (kind == "picked"):
                raise InvalidArgument(f"labels is {'missing' if labels is None else 'given'} on rank {self.rank}; only picked has labels")
            if kind not in _EPS and eps is not None:
                raise InvalidArgument(f"eps is {eps} on rank {self.rank}; {kind} has none")
            if kind in _EPS and scale != 1.0:
                raise InvalidArgument(f"scale is {scale} on rank {self.rank}; {kind} has none")
            block = self._block(x, grid, rows=True)
            own = self.box(grid).shape
            rows = (own[:-1] or (1,)) if 0 not in own else (0,) * max(len(own) - 1, 1)
            blocks, arrays, vectors = [block], 0, []
            if residual is not None:
                blocks.append(self._block(residual, grid, rows=True))
                arrays |= 4
            for bit, name, vector in ((1, "weight", weight), (2, "bias", bias)):
                if vector is None:
                    continue
                taken, wanted = self._take(vector), (own[-1],)
                if taken.shape != wanted and taken.size and 0 not in own:
                    raise InvalidArgument(f"{name} has the shape {taken.shape} on rank {self.rank}; the columns of its block are {wanted}")
                arrays |= bit
                vectors.append(taken if taken.fits() else self._take(_kinds.packed(taken.array, name)))
            if len({v.dtype for v in vectors}) > 1:
                raise InvalidArgument(f"weight holds {vectors[0].dtype} and bias {vectors[1].dtype} on rank {self.rank}; give both the same dtype")
            blocks += vectors
            if labels is not None:
                taken = self._take(labels)
                if taken.dtype != "int64" or (taken.size and taken.shape != rows and 0 not in own):
                    raise InvalidArgument(f"labels holds {taken.dtype} of the shape {taken.shape} on rank {self.rank}; give int64 of {rows}, one for each row")
                blocks.append(taken if taken.fits() else self._take(_kinds.packed(taken.array, "labels")))
            if residual is not None and blocks[1].dtype != block.dtype:
                raise InvalidArgument(f"residual holds {blocks[1].dtype} on rank {self.rank} and x {block.dtype}; give both the same dtype")
            name = _kinds.dtype_name(dtype) if dtype is not None else block.dtype
            if name not in c.DTYPES:
                raise UnsupportedDtype(f"dtype is {dtype} on rank {self.rank}; give float16, float32 or float64")
            number = c.DTYPES[block.dtype]
            factor = float(scale) if kind not in _EPS else _EPS[kind] if eps is None else float(eps)
            desc = c.Normalize(kind=_ROWS[kind], dtype=number, result=c.DTYPES[name], weight_dtype=c.DTYPES[vectors[0].dtype] if vectors else number, eps=factor)
            results = [self._empty(block, rows if kind in ("logsumexp", "picked") else own, name)]
            if residual is not None:
                results.append(self._empty(block, own, block.dtype))
            key = ("rows", kind, grid._key, block.dtype, name, arrays, desc.weight_dtype, factor)
            return key, blocks, results, lambda plan: c.library().lockstep_ranks_normalize(
                self._handle, ctypes.byref(grid._as_c(block.itemsize)), ctypes.byref(desc), arrays, self._promised(), plan)

        return Call(prepare, lambda written: written[0].array if residual is None else (written[0].array, written[1].array))

    @operation
    def scan(self, reduction: str, x: Any, grid: Grid, axis: int, *, exclusive: bool = False, dtype: Any = None) -> Any:
        """Running sums, minima or maxima along an axis that may be cut among ranks, as `lockstep.cumsum`, `cummin` and `cummax` of the whole array.

        Parameters
        ----------
        reduction : {"sum", "min", "max"}
        x : array of float16, bfloat16, float32, float64, int32 or int64
            This rank's block of `grid`.
        grid : Grid
        axis : int
        exclusive : bool, default False
            Of the elements before each, without itself.
        dtype : dtype, optional
            Of sums of floats, by default that of `x`; sums of integers are int64.

        Returns
        -------
        array
            This rank's block of the result.
        """
        def prepare() -> Prepared:
            if reduction not in ("sum", "min", "max"):
                raise InvalidArgument(f"reduction is {reduction!r} on rank {self.rank}; give sum, min or max")
            along, = _numbers(axis, "axis", 32)
            if not -len(grid.shape) <= along < len(grid.shape):
                raise InvalidArgument(f"axis is {axis} on rank {self.rank}; name one of the grid's {len(grid.shape)} axes")
            at = along % len(grid.shape)
            block = self._block(x, grid)
            name = "int64" if reduction == "sum" and block.dtype in ("int32", "int64") else block.dtype
            if dtype is not None:
                name = _kinds.dtype_name(dtype)
            if name not in c.DTYPES:
                raise UnsupportedDtype(f"dtype is {dtype} on rank {self.rank}; give one of {', '.join(c.DTYPES)}")
            key = ("scan", reduction, grid._key, at, bool(exclusive), block.dtype, name)
            return key, [block], [self._empty(block, self.box(grid).shape, name)], lambda plan: c.library().lockstep_ranks_scan(
                self._handle, ctypes.byref(grid._as_c(block.itemsize)), _REDUCTIONS[reduction], c.DTYPES[block.dtype], c.DTYPES[name], at, int(exclusive),
                self._promised(), plan)

        return Call(prepare)

    @operation
    def stencil(self, x: Any, grid: Grid, weights: Sequence[float], *, mode: str = "reflect", cval: float = 0.0, sweeps: int = 1,
                batch: bool = False) -> Any:
        """Apply a star of general form, as `lockstep.stencil` does to the whole array.

        Parameters
        ----------
        x : array of float32 or float64
            This rank's block of `grid`.
        grid : Grid
            One to three axes; with `batch` one more in front.
        weights, mode, cval, sweeps
            As for `lockstep.stencil`.
        batch : bool, default False
            Whether the first axis counts independent arrays.

        Returns
        -------
        array
            This rank's block of the result: a NumPy array or, for a block on a device, the block's array type. Under "valid" it is smaller.
        """
        def prepare() -> Prepared:
            rank = len(grid.shape) - batch
            if mode not in _MODES:
                raise InvalidArgument(f"mode is {mode!r} on rank {self.rank}; give {', '.join(_MODES)}")
            if not 1 <= rank <= 3 or len(weights) < 1 + 2 * rank or (len(weights) - 1) % (2 * rank):
                raise InvalidArgument(f"weights has {len(weights)} elements on rank {self.rank}; {rank} axes take 1 + {2 * rank} * radius")
            block = self._block(x, grid, rows=True)
            if block.dtype not in ("float32", "float64"):
                raise UnsupportedDtype(f"x holds {block.dtype} on rank {self.rank}; stencils take float32 and float64")
            radius, (times,) = (len(weights) - 1) // (2 * rank), _numbers(sweeps, "sweeps", 32)
            as_c = (ctypes.c_double * len(weights))(*map(float, weights))
            desc = c.Stencil(dtype=c.DTYPES[block.dtype], boundary=_MODES[mode], rank=rank, radius=radius, coefficient_count=len(weights),
                             sweeps=times, coefficients=ctypes.addressof(as_c), value=float(cval))
            box, reach = self.box(grid), radius * times
            shape = list(box.shape)
            for k in range(len(shape)):
                if mode == "valid" and k >= batch:
                    shape[k] = max(0, min(box.low[k] + shape[k], grid.shape[k] - reach) - max(box.low[k], reach))
            key = ("stencil", grid._key, block.dtype, mode, float(cval), rank, radius, times, tuple(as_c))

            def make(plan: Any, of: Any = as_c) -> int:  # desc has its address
                return int(c.library().lockstep_ranks_stencil(self._handle, ctypes.byref(grid._as_c(block.itemsize)), ctypes.byref(desc), self._promised(), plan))

            return key, [block], [self._empty(block, shape, block.dtype)], make

        return Call(prepare)
