"""Softmax and its kin as operators of PyTorch; lockstep.torch, which is imported first, hands them out."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from . import _core
from .torch import _axes, _batched, _behind, _call, _each, _gradient, _kept, _library, _listed, _plain, _reduced_shape, _register, _vmap

_OF_ALL, _OF_ONE = ("softmax", "log_softmax"), ("logsumexp",)


def _total(t: Tensor, axes: Sequence[int]) -> Tensor:
    return _call("sum", t, axes, True, torch.float64)


def _slopes(name: str, x: Tensor, axes: Sequence[int], scale: float, g: Tensor) -> Tensor:
    """The gradient of x in double, by operations of one rounding and sums of lockstep's order: the same bits on CPU and GPU."""
    y, wide = _call("softmax", x.double(), list(axes), scale), g.double()
    if name == "softmax":
        found = y * (wide - _total(wide * y, axes))
    elif name == "log_softmax":
        found = wide - y * _total(wide, axes)
    else:  # one result a row, whose axes have length 1
        found = y * wide
    return (found if scale == 1 else found * scale).to(x.dtype)


def _define(name: str) -> None:
    function: Callable[..., Tensor] = getattr(_core, name)
    keeps = "" if name in _OF_ALL else ", bool keepdims=False"
    _library.define(f"{name}(Tensor x, int[] axis=[-1], float scale=1.0{keeps}, ScalarType? dtype=None) -> Tensor")

    def of_all(x: Tensor, axis: Sequence[int] = (-1,), scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
        return function(_plain(x), tuple(axis), scale=scale, **_kept(dtype))

    def of_one(x: Tensor, axis: Sequence[int] = (-1,), scale: float = 1.0, keepdims: bool = False, dtype: torch.dtype | None = None) -> Tensor:
        return function(_plain(x), tuple(axis), scale=scale, keepdims=keepdims, **_kept(dtype))

    def fake_of_one(x: Tensor, axis: Sequence[int] = (-1,), scale: float = 1.0, keepdims: bool = False, dtype: torch.dtype | None = None) -> Tensor:
        return x.new_empty(_reduced_shape(x, axis, keepdims), dtype=dtype or x.dtype)

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.axis, ctx.scale, ctx.keepdims = inputs[1], inputs[2], len(inputs) == 4 or inputs[3]
        ctx.count = len(inputs)
        ctx.save_for_backward(inputs[0])

    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        x, = ctx.saved_tensors
        axes = _axes(x, ctx.axis)
        if not ctx.keepdims:
            g = g.reshape([1 if k in axes else n for k, n in enumerate(x.shape)])
        return (_slopes(name, x, axes, ctx.scale, g), *[None] * (ctx.count - 1))

    def rule(info: Any, dims: tuple[Any, ...], x: Tensor, axis: Sequence[int] = (-1,), *rest: Any) -> tuple[Tensor, int]:
        x = x.movedim(dims[0], 0)
        return _call(name, x, _behind(x, axis), *rest), 0

    if name in _OF_ALL:
        _register(name, of_all, lambda x, axis=(-1,), scale=1.0, dtype=None: x.new_empty(x.shape, dtype=dtype or x.dtype))
    else:
        _register(name, of_one, fake_of_one)
    _gradient(name, backward, setup)
    _vmap(name, rule)


for _name in (*_OF_ALL, *_OF_ONE):
    _define(_name)

_library.define("picked(Tensor x, Tensor labels, int axis=-1, float scale=1.0, ScalarType? dtype=None) -> Tensor")


def _without(x: Tensor, axis: int) -> list[int]:
    return [n for k, n in enumerate(x.shape) if k != axis % x.ndim]


def _picked_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, labels, ctx.axis, ctx.scale = inputs[:4]
    ctx.save_for_backward(x, labels)


def _picked_backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    x, labels = ctx.saved_tensors
    axis = ctx.axis % x.ndim
    wide = g.double().unsqueeze(axis)
    places = torch.arange(x.shape[axis], device=x.device).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    there = torch.where(places == labels.unsqueeze(axis), wide, torch.zeros((), dtype=torch.float64, device=x.device))
    found = there - _call("softmax", x.double(), [axis], ctx.scale) * wide
    return (found if ctx.scale == 1 else found * ctx.scale).to(x.dtype), None, None, None, None


def _picked_vmap(info: Any, dims: tuple[Any, ...], x: Tensor, labels: Tensor, axis: int = -1, *rest: Any) -> tuple[Tensor, int]:
    x = _batched(info, x, dims[0])
    return _call("picked", x, _batched(info, labels, dims[1]), axis % (x.ndim - 1) + 1, *rest), 0


_register("picked", lambda x, labels, axis=-1, scale=1.0, dtype=None: _core.picked(_plain(x), labels, axis, scale=scale, **_kept(dtype)),
          lambda x, labels, axis=-1, scale=1.0, dtype=None: x.new_empty(_without(x, axis), dtype=dtype or x.dtype))
_gradient("picked", _picked_backward, _picked_setup)
_vmap("picked", _picked_vmap)


# ---- of segments, along the first axis ---------------------------------------
def _segment_slopes(name: str, x: Tensor, offsets: Tensor, labels: Tensor | None, scale: float, g: Tensor) -> Tensor:
    offsets, wide = offsets.to(x.device), g.double()
    if name in ("logsumexp", "picked"):  # elements before the first segment and behind the last one are segments too, whose gradient is 0
        nothing = wide.new_zeros([1, *wide.shape[1:]])
        offsets = torch.cat([offsets.new_zeros(1), offsets, offsets.new_full((1,), x.shape[0])])
        wide = torch.cat([nothing, wide, nothing])
    at = torch.arange(x.shape[0], device=x.device)
    segment = torch.searchsorted(offsets, at, right=True) - 1
    y = _call("segment_softmax", x.double(), offsets, scale)
    if name == "softmax":
        found = y * (wide - _call("segment_sum", wide * y, offsets, torch.float64)[segment])
    elif name == "log_softmax":
        found = wide - y * _call("segment_sum", wide, offsets, torch.float64)[segment]
    else:
        found = -y * wide[segment] if labels is not None else y * wide[segment]
    if labels is not None:
        none = labels.new_full([1, *labels.shape[1:]], -1)
        chosen = torch.cat([none, labels, none]).to(x.device)[segment]
        places = (at - offsets[segment]).reshape(-1, *[1] * (x.ndim - 1))
        found = torch.where(places == chosen, wide[segment], torch.zeros((), dtype=torch.float64, device=x.device)) + found
    return (found if scale == 1 else found * scale).to(x.dtype)


def _define_segments(name: str) -> None:
    function: Callable[..., Tensor] = getattr(_core, f"segment_{name}")
    labelled = name == "picked"
    _library.define(f"segment_{name}(Tensor x, {'Tensor labels, ' if labelled else ''}Tensor offsets, float scale=1.0, ScalarType? dtype=None) -> Tensor")
    of, count = f"segment_{name}", 3 if labelled else 2  # tensors

    def kernel(x: Tensor, *rest: Any) -> Tensor:
        scale = rest[count - 1] if len(rest) >= count else 1.0
        return function(_plain(x), *rest[:count - 1], scale=scale, **_kept(rest[count] if len(rest) > count else None))

    def fake(x: Tensor, *rest: Any) -> Tensor:
        shape = x.shape if name in _OF_ALL else [rest[count - 2].shape[0] - 1, *x.shape[1:]]
        return x.new_empty(shape, dtype=(rest[count] if len(rest) > count else None) or x.dtype)

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.scale, ctx.count = inputs[count] if len(inputs) > count else 1.0, len(inputs)
        ctx.save_for_backward(*inputs[:count])

    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        x, *labels, offsets = ctx.saved_tensors
        return (_segment_slopes(name, x, offsets, labels[0] if labels else None, ctx.scale, g), *[None] * (ctx.count - 1))

    def rule(info: Any, dims: tuple[Any, ...], *inputs: Any) -> tuple[Tensor, int]:
        calls = zip(*(_each(info, t, dim) for t, dim in zip(inputs[:count], dims)))
        return torch.stack([_call(of, *tensors, *inputs[count:]) for tensors in calls]), 0

    _register(of, kernel, fake)
    _gradient(of, backward, setup)
    _vmap(of, rule)


for _name in (*_OF_ALL, *_OF_ONE, "picked"):
    _define_segments(_name)


def segment_softmax(x: Tensor, offsets: Tensor, *, scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.segment_softmax` with a gradient."""
    return _call("segment_softmax", x, offsets, scale, dtype)


def segment_log_softmax(x: Tensor, offsets: Tensor, *, scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.segment_log_softmax` with a gradient."""
    return _call("segment_log_softmax", x, offsets, scale, dtype)


def segment_logsumexp(x: Tensor, offsets: Tensor, *, scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.segment_logsumexp` with a gradient."""
    return _call("segment_logsumexp", x, offsets, scale, dtype)


def segment_picked(x: Tensor, labels: Tensor, offsets: Tensor, *, scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.segment_picked` with a gradient; its negative is the cross-entropy of each segment."""
    return _call("segment_picked", x, labels, offsets, scale, dtype)


def softmax(x: Tensor, axis: int | Sequence[int] = -1, *, scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.softmax` with a gradient."""
    return _call("softmax", x, _listed(axis), scale, dtype)


def log_softmax(x: Tensor, axis: int | Sequence[int] = -1, *, scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.log_softmax` with a gradient."""
    return _call("log_softmax", x, _listed(axis), scale, dtype)


def logsumexp(x: Tensor, axis: int | Sequence[int] = -1, *, scale: float = 1.0, keepdims: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.logsumexp` with a gradient."""
    return _call("logsumexp", x, _listed(axis), scale, keepdims, dtype)


def picked(x: Tensor, labels: Tensor, axis: int = -1, *, scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.picked` with a gradient; its negative is the cross-entropy of each row."""
    return _call("picked", x, labels, axis, scale, dtype)
