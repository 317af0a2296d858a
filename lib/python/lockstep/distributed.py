"""All-reduce and reduce-scatter of torch.distributed whose bits depend on the ranks' tensors alone: not on the topology, the size of the tensor or
the algorithm, on CPU and on CUDA.

Element i of a result is ``lockstep.sum`` of the ranks' elements i, in the order of their ranks in the group: of order id 1, added in float64 and
rounded once. So it has the bits of ``lockstep.sum(torch.stack(tensors), axis=0)`` in one process, and those of `lockstep.ranks`.
torch.distributed only carries bytes, by gloo, nccl or another backend that has all_to_all and all_gather; the sums are lockstep's.

>>> import torch.distributed as dist, lockstep.distributed as ld  # doctest: +SKIP
>>> dist.init_process_group("nccl")  # doctest: +SKIP
>>> ld.all_reduce(tensor)  # in place of dist.all_reduce(tensor)  # doctest: +SKIP
>>> model.register_comm_hook(None, ld.ddp_hook)  # of a DistributedDataParallel  # doctest: +SKIP
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from . import _core
from ._distributed_work import Work, start
from ._errors import InvalidArgument, Unsupported, UnsupportedDtype

if not dist.is_available():
    raise ImportError("lockstep.distributed needs a PyTorch that has torch.distributed")

__all__ = ["Work", "all_reduce", "ddp_hook", "redistribute", "reduce_scatter", "reduce_scatter_tensor"]

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
_INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, *_SIGNED)
_COMPLEX = (torch.complex64, torch.complex128)
_OPS: dict[str, Any] = {"sum": dist.ReduceOp.SUM, "mean": dist.ReduceOp.AVG, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN, "prod": dist.ReduceOp.PRODUCT}
# Bytes, the same on every rank of a group. A tensor goes whole to every rank, in one exchange in place of two, where each rank gets at most that
# much more than by shares, and all of it is no more than an eighth of a piece. Shares go in pieces of at most so much.
_MORE = {"cpu": 1 << 18, "cuda": 3 << 23}
_PIECE = {"cpu": 1 << 24, "cuda": 1 << 29}
_ALIGNED = 128  # bytes: where the shares of a piece begin


# ---- what is asked for ---------------------------------------------------------
def _name_of(op: Any) -> str:
    for name, theirs in _OPS.items():
        if op == name or not isinstance(op, str) and op == theirs:
            return name
    raise InvalidArgument(f"op is {op!r}; give {', '.join(_OPS)}, or torch.distributed's SUM, AVG, MAX, MIN or PRODUCT")


def _group_of(group: Any) -> Any:
    if not dist.is_available() or not dist.is_initialized():
        raise InvalidArgument("torch.distributed has no process group; call torch.distributed.init_process_group first")
    group = dist.group.WORLD if group is None else group
    if dist.get_rank(group) < 0:
        raise InvalidArgument(f"this process, rank {dist.get_rank()}, is not in group; call with its members only")
    return group


def _plain(x: Any, op: str, name: str = "tensor") -> Tensor:
    """The tensor itself, real and without its gradient."""
    if not isinstance(x, Tensor):
        raise InvalidArgument(f"{name} is a {type(x).__module__}.{type(x).__qualname__}; give a torch.Tensor")
    if type(x) is not Tensor and hasattr(x, "placements"):
        raise InvalidArgument(f"{name} is a DTensor; call redistribute, or give its to_local()")
    if x.layout != torch.strided:
        raise Unsupported(f"{name} has the layout {x.layout}; give {name}.to_dense()")
    if x.device.type not in _PIECE:
        raise Unsupported(f"{name} is on {x.device}; give a tensor on the CPU or on CUDA")
    x = x.detach()
    if x.dtype in _COMPLEX and op in ("sum", "mean"):
        return torch.view_as_real(x)
    taken = (*_FLOATS, *(_INTEGERS if op != "mean" else ()), *((torch.bool,) if op in ("max", "min") else ()))
    if x.dtype not in taken:
        raise UnsupportedDtype(f"{name} holds {x.dtype}; {op} takes {', '.join(str(t).removeprefix('torch.') for t in taken)}"
                               f"{', and complex numbers' if op in ('sum', 'mean') else ''}")
    return x


# ---- the reduction, which is lockstep's ----------------------------------------
def _reduced(rows: Tensor, op: str, out: Tensor | None = None) -> Tensor:
    """Of rows of contributions, in the order of the ranks."""
    if op in ("max", "min"):
        result: Tensor = getattr(_core, op)(rows, axis=0, out=out)
        return result
    if rows.dtype in _FLOATS:
        if op == "mean" and rows.is_cuda:
            return _mean(rows, out)
        result = getattr(_core, op)(rows, axis=0, dtype=rows.dtype, out=out)
        return result
    # Of integers any order has the same bits, which wrap as PyTorch's do.
    signed = _SIGNED.get(rows.dtype, rows.dtype)
    wrapped = getattr(torch, op)(rows.view(signed), 0, dtype=signed).view(rows.dtype)
    return wrapped if out is None else out.copy_(wrapped)


def _mean(rows: Tensor, out: Tensor | None) -> Tensor:
    """lockstep.mean, by the kernel for a few long rows: a sum in double, divided in double, rounded once."""
    p = rows.shape[0]
    total: Tensor = _core.sum(rows, axis=0, dtype=torch.float64)
    if p & (p - 1):  # by a tensor: by a number, a GPU multiplies with its reciprocal
        total.div_(torch.full((), p, dtype=torch.float64, device=rows.device))
    result: Tensor = _core.convert(total, rows.dtype, scale=1.0 if p & (p - 1) else 1.0 / p, out=out)
    return result


# ---- exchanges -------------------------------------------------------------------
def _bytes(x: Tensor) -> Tensor:
    """Backends differ in the types that they carry; all have bytes."""
    return x.view(torch.uint8)


def _by_gather(x: Tensor, op: str, group: Any) -> None:
    rows = x.new_empty(group.size(), x.numel())
    dist.all_gather_into_tensor(_bytes(rows.view(-1)), _bytes(x), group=group)
    _reduced(rows, op, x)


def _is_gathered(nbytes: int, p: int, place: str) -> bool:
    return nbytes * (p - 1) * (p - 2) // p <= _MORE[place] and nbytes * p <= _PIECE[place] // 8


def _all_reduce(x: Tensor, op: str, group: Any) -> None:
    """Of a flat tensor: each rank adds its share of the elements, then all get all shares."""
    p, size, place = group.size(), x.element_size(), x.device.type
    if _is_gathered(x.numel() * size, p, place):
        return _by_gather(x, op, group) if x.numel() else None
    quantum = p * (_ALIGNED // size)
    main = x.numel() // quantum * quantum
    if main < x.numel():
        _by_gather(x[main:], op, group)
    if not main:
        return
    pieces = -(-main * size // max(_PIECE[place], quantum * size))
    width = -(-main // quantum // pieces) * quantum
    scratch = x.new_empty(width)
    for at in range(0, main, width):
        piece = x[at:min(at + width, main)]
        rows = scratch[:piece.numel()]
        dist.all_to_all_single(_bytes(rows), _bytes(piece), group=group)
        dist.all_gather_into_tensor(_bytes(piece), _bytes(_reduced(rows.view(p, -1), op)), group=group)


def _reduce_scatter(out: Tensor, x: Tensor, op: str, group: Any) -> None:
    """Of flat tensors: x has a share for each rank, all of one length."""
    p, m = group.size(), out.numel()
    if not m:
        return
    width = min(m, max(1, _PIECE[x.device.type] // (p * x.element_size())))
    if width < m:
        quantum = _ALIGNED // x.element_size()
        width = max(quantum, width // quantum * quantum)
    shares, scratch = x.view(p, m), x.new_empty(p * width)
    for at in range(0, m, width):
        sent = shares[:, at:at + width].contiguous().view(-1)
        rows = scratch[:sent.numel()]
        dist.all_to_all_single(_bytes(rows), _bytes(sent), group=group)
        _reduced(rows.view(p, -1), op, out[at:at + width])


def _reduce_scatter_uneven(out: Tensor, parts: Sequence[Tensor], op: str, group: Any) -> None:
    p, size = group.size(), out.element_size()
    rows = out.new_empty(p, out.numel())
    dist.all_to_all_single(_bytes(rows.view(-1)), _bytes(torch.cat([part.reshape(-1) for part in parts])), [out.numel() * size] * p,
                           [part.numel() * size for part in parts], group=group)
    if out.numel():
        _reduced(rows, op, out)


def _run(work: Callable[[Any], None], group: Any, tensors: Sequence[Tensor], async_op: bool) -> Work | None:
    with torch.no_grad():
        return start(work, group, tensors, async_op)


# ---- functions ---------------------------------------------------------------------
def all_reduce(tensor: Tensor, op: Any = "sum", group: Any = None, async_op: bool = False) -> Work | None:
    """Reduce a tensor over all ranks, in place, as torch.distributed.all_reduce does; collective.

    Element i becomes ``lockstep.sum`` of the ranks' elements i in the order of their ranks, or ``lockstep.mean``, ``max``, ``min``, ``prod``. On one
    set of tensors that gives the same bits on every rank and device, by any backend, for any size and division into messages.

    Parameters
    ----------
    tensor : Tensor
        Of one shape and dtype on all ranks: float16, bfloat16, float32, float64; integers, which wrap; of "sum" and "mean" complex numbers; of "max"
        and "min" bool. On the CPU or on CUDA, where it is taken in the order of the current stream. One that is not contiguous is copied.
    op : str or torch.distributed.ReduceOp, default "sum"
        "sum", "mean" (of floats), "max", "min" or "prod"; or SUM, AVG, MAX, MIN, PRODUCT.
    group : ProcessGroup, optional
        All processes by default. It must have a backend for the tensor's device.
    async_op : bool, default False
        Return at once; ``wait`` of what is returned finishes the call. On the CPU the first such call of a group makes a second group of its ranks.

    Returns
    -------
    Work or None
        With `async_op` a handle as torch.distributed's.

    Notes
    -----
    A rank sends ``2 * (p - 1) / p`` times the tensor, as a ring of NCCL does; small tensors go whole to every rank. Takes memory of the tensor's size
    besides, and of a share of it; of large tensors at most half a GiB and a share of that on a GPU, 16 MiB on a CPU. On a GPU "sum" and "mean" of floats run at
    the speed of memory; "prod", and "max" and "min" of 16-bit floats, take kernels that are many times as slow. As in torch.distributed, a rank that
    fails or gives another shape leaves the others waiting until the group's timeout.
    """
    name, group = _name_of(op), _group_of(group)
    x = _plain(tensor, name)
    return _run(lambda g: _contiguous(x, lambda flat: _all_reduce(flat, name, g)), group, [x], async_op)


def _contiguous(x: Tensor, work: Callable[[Tensor], None]) -> None:
    """work on the elements in their order, in place."""
    flat = x.contiguous().view(-1)
    work(flat)
    if not x.is_contiguous():
        x.copy_(flat.view(x.shape))


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: Any = "sum", group: Any = None, async_op: bool = False) -> Work | None:
    """Reduce a tensor over all ranks and leave each its share, as torch.distributed.reduce_scatter_tensor does; collective.

    Parameters
    ----------
    output : Tensor
        Gets this rank's share. Contiguous.
    input : Tensor
        The shares of all ranks behind one another, each with output's number of elements.
    op, group, async_op
        As for `all_reduce`, whose bits these are.

    Returns
    -------
    Work or None
        With `async_op` a handle.
    """
    name, group = _name_of(op), _group_of(group)
    out, x = _output(output, name), _plain(input, name, "input").contiguous()
    _alike(out, x, "input")
    if x.numel() != group.size() * out.numel():
        raise InvalidArgument(f"input has {x.numel()} elements and output {out.numel()}; input has a share for each of the group's {group.size()} ranks, so give one of "
                              f"{group.size() * out.numel()}, or call reduce_scatter for shares of different lengths")
    return _run(lambda g: _reduce_scatter(out.view(-1), x.view(-1), name, g), group, [out, x], async_op)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = "sum", group: Any = None, async_op: bool = False) -> Work | None:
    """The same for a list of tensors, the k-th for rank k, which may have different lengths or none; collective.

    Parameters
    ----------
    output : Tensor
        Gets this rank's share; of the shape of ``input_list[rank]``. Contiguous.
    input_list : sequence of Tensor
        One for each rank of the group, of the same lengths on all ranks.
    op, group, async_op
        As for `all_reduce`, whose bits these are. Takes the memory of all shares, and of this rank's from all ranks, besides.

    Returns
    -------
    Work or None
        With `async_op` a handle.
    """
    name, group = _name_of(op), _group_of(group)
    out, parts = _output(output, name), [_plain(part, name, f"input_list[{k}]") for k, part in enumerate(input_list)]
    if len(parts) != group.size():
        raise InvalidArgument(f"input_list has {len(parts)} tensors; give one for each of the group's {group.size()} ranks")
    for k, part in enumerate(parts):
        _alike(out, part, f"input_list[{k}]")
    rank = dist.get_rank(group)
    if parts[rank].numel() != out.numel():
        raise InvalidArgument(f"input_list[{rank}] has {parts[rank].numel()} elements, and output, which gets its reduction, {out.numel()}; give both the same shape")
    return _run(lambda g: _reduce_scatter_uneven(out.view(-1), parts, name, g), group, [out, *parts], async_op)


def _output(x: Any, op: str) -> Tensor:
    out = _plain(x, op, "output")
    if not out.is_contiguous():
        raise InvalidArgument(f"output has the strides {tuple(out.stride())}; give a contiguous tensor")
    return out


def _alike(out: Tensor, x: Tensor, name: str) -> None:
    if (x.dtype, x.device) != (out.dtype, out.device):
        raise InvalidArgument(f"{name} holds {x.dtype} on {x.device}, and output {out.dtype} on {out.device}; give both the same")


def ddp_hook(group: Any, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
    """A communication hook of DistributedDataParallel: gradients are ``lockstep.mean`` of the ranks' gradients, whatever the buckets and the topology.

    Parameters
    ----------
    group : ProcessGroup or None
        The hook's state: ``model.register_comm_hook(group, lockstep.distributed.ddp_hook)``. None: all processes.
    bucket : torch.distributed.GradBucket

    Returns
    -------
    torch.futures.Future
        Of the bucket's buffer. On a GPU the exchange runs beside the backward pass, on a stream of its own.
    """
    work = all_reduce(bucket.buffer(), "mean", group, async_op=True)
    assert work is not None
    return work.get_future()


# DistributedDataParallel wants them as types, not as the text that they are here.
ddp_hook.__annotations__.update({"bucket": dist.GradBucket, "return": torch.futures.Future[Tensor]})


def redistribute(x: Any, placements: Sequence[Any]) -> Any:
    """A DTensor with its partial axes reduced, with the bits of `all_reduce`; collective over the mesh.

    Each axis of the mesh on which `x` is ``Partial()`` becomes ``Replicate()`` or ``Shard(dim)``, by one all-reduce or reduce-scatter an axis, the first
    one first; shards may be uneven or empty. The others stay as they are.

    Parameters
    ----------
    x : DTensor
        Partial sums, means ("avg"), products, maxima or minima. Detached: the result has no gradient.
    placements : sequence of Placement
        Of the result, one for each axis of the mesh.

    Returns
    -------
    DTensor
        A new one; `x` keeps its values.
    """
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
    if not isinstance(x, DTensor):
        raise InvalidArgument(f"x is a {type(x).__module__}.{type(x).__qualname__}; give a DTensor")
    mesh, have, want = x.device_mesh, list(x.placements), list(placements)
    if len(want) != len(have):
        raise InvalidArgument(f"placements has {len(want)} entries; give one for each of the mesh's {len(have)} axes")
    for k, (a, b) in enumerate(zip(have, want)):
        if a != b and not (type(a) is Partial and type(b) in (Replicate, Shard)):
            raise InvalidArgument(f"placements[{k}] is {b!r}, and x has {a!r} there; give Replicate() or Shard(dim) where x is Partial(), and leave the others as they are. "
                                  "x.redistribute moves what needs no sum")
        if type(b) is Shard and a != b and not -x.ndim <= b.dim < x.ndim:
            raise InvalidArgument(f"placements[{k}] is {b!r}, and x has {x.ndim} axes; give a dim below that")
    want = [Shard(b.dim % x.ndim) if type(b) is Shard else b for b in want]
    with torch.no_grad():
        local, kept = x.detach().to_local(), True
        for k, (a, b) in enumerate(zip(have, want)):
            if a == b:
                continue
            if isinstance(b, Shard) and any(isinstance(later, Shard) and later.dim == b.dim for later in have[k + 1:]):
                raise Unsupported(f"placements[{k}] is {b!r}, and an axis of the mesh after it has cut the same dim already; call x.redistribute for that axis first")
            op = {"avg": "mean", "product": "prod"}.get(a.reduce_op, a.reduce_op)
            if op not in _OPS:
                raise Unsupported(f"x is {a!r} on axis {k} of the mesh; give partial sums, averages, products, maxima or minima")
            group = mesh.get_group(k)
            if isinstance(b, Replicate):
                local, kept = local.clone() if kept else local, False
                all_reduce(local, op, group)
            else:
                parts = [part.contiguous() for part in _cut(local, group.size(), b.dim)]
                local, kept = torch.empty_like(parts[mesh.get_local_rank(k)]), False
                reduce_scatter(local, parts, op, group)
    return DTensor.from_local(local, mesh, want, run_check=False, shape=x.shape, stride=x.stride())


def _cut(x: Tensor, parts: int, dim: int) -> list[Tensor]:
    """As Shard cuts: by torch.chunk, and those that are missing are empty."""
    cut = list(torch.chunk(x, parts, dim))
    return cut + [x.narrow(dim, 0, 0)] * (parts - len(cut))
