"""What deterministic() has for whole models: losses, embeddings, normalised rows, attention, clipping, steps of optimizers."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from . import _core
from . import torch as lt
from ._deterministic import _div, _layer, _norm, _routed, _wide_sum
from ._errors import Unsupported

_functional: Any = torch.nn.functional


# ---- losses -------------------------------------------------------------------
def _chosen(x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[int, Tensor, Tensor]:
    """The axis of classes, an index for each loss, and its weight in double, 0 where it is ignored."""
    axis = 1 if x.ndim > 1 else 0
    inside = target != ignore_index
    at = torch.where(inside, target, 0)
    share = inside.double() if weight is None else torch.where(inside, weight.double()[at], 0.0)
    return axis, at.unsqueeze(axis), share


@_routed("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss(x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> tuple[Tensor, Tensor]:
    axis, at, share = _chosen(x, target, weight, ignore_index)
    # (An ignored element may be infinite.)
    losses = torch.where(share == 0, 0.0, x.gather(axis, at).squeeze(axis).double() * -share)
    total = _wide_sum(share, None, False, torch.float64)
    if reduction == 0:
        return losses.to(x.dtype), total
    found = _wide_sum(losses, None, False, torch.float64)
    return (found / total if reduction == 1 else found).to(x.dtype), total


@_routed("nll_loss_backward", "nll_loss2d_backward")
def _nll_loss_backward(g: Tensor, x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, total: Tensor) -> Tensor:
    axis, at, share = _chosen(x, target, weight, ignore_index)
    wide = g.double() * -share
    wide = wide / total.double().expand(wide.shape if wide.ndim else (1,)).reshape(wide.shape) if reduction == 1 else wide
    # One place in each line of classes.
    return torch.zeros_like(x).scatter_(axis, at, torch.where(share == 0, 0.0, wide).to(x.dtype).unsqueeze(axis))


# ---- rows by their index ------------------------------------------------------
def _sums_by_index(index: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The indices that occur, in order, and for each the sum of its rows in the order in which they come."""
    ordered, order = torch.sort(index, stable=True)
    places, counts = torch.unique_consecutive(ordered, return_counts=True)
    n, length = rows.shape
    starts = torch.cumsum(counts, 0) - counts
    offsets = (torch.arange(length, device=rows.device)[:, None] * n + starts).reshape(-1)
    offsets = torch.cat([offsets, offsets.new_full((1,), n * length)])
    columns = _core.matrix_transpose(rows.index_select(0, order)).reshape(-1)
    return places, _core.matrix_transpose(_core.segment_sum(columns, offsets, dtype=rows.dtype).reshape(length, -1))


def _rows_at(index: Tensor, g: Tensor, count: int) -> Tensor:
    rows = g.reshape(index.numel(), -1)
    result = rows.new_zeros(count, rows.shape[1])
    if rows.numel():
        places, sums = _sums_by_index(index.reshape(-1), rows)
        result[places] = sums
    return result


@_routed("embedding")
def _embedding(weight: Tensor, index: Tensor, padding: int = -1, by_frequency: bool = False, sparse: bool = False) -> Tensor:
    return weight.index_select(0, index.reshape(-1)).reshape(*index.shape, weight.shape[1])


@_routed("embedding_dense_backward")
def _embedding_backward(g: Tensor, index: Tensor, count: int, padding: int, by_frequency: bool) -> Tensor:
    if by_frequency:
        raise Unsupported("scale_grad_by_freq is True; deterministic() has embeddings without it")
    result = _rows_at(index, g, count)
    if padding >= 0:
        result[padding] = 0
    return result


def _index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False, unsafe: bool = False) -> Tensor:
    """In place."""
    first = [i for i in indices if i is not None]
    if not accumulate or indices[:len(first)] != first or any(i.dtype == torch.bool for i in first):
        raise Unsupported("of several values that are put in one place any may stay; deterministic() adds them up, with accumulate=True, "
                          "where whole numbers index the first axes")
    index = torch.zeros((), dtype=torch.int64, device=x.device)
    for n, i in zip(x.shape, first):
        index = index * n + torch.where(i < 0, i + n, i)
    rest = x.shape[len(first):]
    found = _rows_at(index, values.expand(*index.shape, *rest), math.prod(x.shape[:len(first)]))
    return x.copy_(x + found.reshape(x.shape))


_routed("index_put_", "_index_put_impl_")(_index_put)
_routed("index_put")(lambda x, *rest: _index_put(x.clone(), *rest))


# ---- clipping, and steps of optimizers that take one tensor at a time ---------
@_routed("_foreach_norm.Scalar")
def _norms(tensors: Sequence[Tensor], ord: Any = 2, dtype: torch.dtype | None = None) -> list[Tensor]:
    return [_norm(x, ord, dtype=dtype) for x in tensors]


@_routed("rsub.Tensor", "rsub.Scalar")
def _rsub(x: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    return other - (x if alpha == 1 else x * alpha)


@_routed("lerp.Scalar")
def _lerp(x: Tensor, end: Tensor, weight: float) -> Tensor:
    return x + (end - x) * weight if abs(weight) < 0.5 else end - (end - x) * (1 - weight)


@_routed("addcdiv")
def _addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    quotient = _div(a, b)
    return x + (quotient if value == 1 else quotient * value)


_routed("lerp_.Scalar")(lambda x, end, weight: x.copy_(_lerp(x, end, weight)))
_routed("addcdiv_")(lambda x, a, b, *, value=1: x.copy_(_addcdiv(x, a, b, value=value)))


# ---- layers that PyTorch would take apart in one way on a CPU and in another on a GPU ------
def _last(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0))


@_layer(torch.layer_norm, _functional.layer_norm)
def _layer_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5, cudnn: bool = True) -> Tensor:
    _same_shape(x, shape)
    return lt.layer_norm(x, _last(shape), weight=weight, bias=bias, eps=eps)


@_layer(getattr(torch, "rms_norm", None), getattr(_functional, "rms_norm", None))  # of 2.4 and later
def _rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    _same_shape(x, shape)
    return lt.rms_norm(x, _last(shape), weight=weight, eps=torch.finfo(x.dtype).eps if eps is None else eps)


def _same_shape(x: Tensor, shape: Sequence[int]) -> None:
    if not shape or list(x.shape[-len(shape):]) != list(shape):
        raise RuntimeError(f"normalized_shape is {list(shape)}, and x has the shape {list(x.shape)}; give its last axes")


@_layer(_functional.scaled_dot_product_attention)
def _attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
               scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    if dropout_p:
        raise Unsupported(f"dropout_p is {dropout_p}; random numbers have orders of their own: deterministic() has attention without dropout")
    if is_causal and attn_mask is not None:
        raise RuntimeError("is_causal and attn_mask are both given; give one of them")
    if enable_gqa:
        key, value = (t.repeat_interleave(query.shape[-3] // t.shape[-3], -3) for t in (key, value))
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is None:
        return torch.softmax(scores, -1) @ value
    if attn_mask.dtype != torch.bool:
        return torch.softmax(scores + attn_mask, -1) @ value
    # A row that sees nothing gives 0, as PyTorch has it.
    sees = attn_mask.any(-1, keepdim=True)
    shares = torch.softmax(scores.masked_fill(~attn_mask & sees, -math.inf), -1)
    return shares.masked_fill(~sees, 0.0) @ value
