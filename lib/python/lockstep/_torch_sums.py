"""Dot products, means and variances as operators of PyTorch; lockstep.torch, which is imported first, hands them out."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from . import _core
from ._errors import whole_numbers
from .torch import (_Axis, _axes, _batched, _behind, _call, _gradient, _kept, _library, _listed, _over, _plain, _reduced_shape,
                    _reduction_vmap, _register, _result_dtype, _vmap)

_library.define("dot(Tensor x, Tensor y, int[]? axis=None, bool keepdims=False, ScalarType? dtype=None) -> Tensor")
_library.define("mean(Tensor x, int[]? axis=None, bool keepdims=False, ScalarType? dtype=None) -> Tensor")
for _name in ("var", "std"):
    _library.define(f"{_name}(Tensor x, int[]? axis=None, int correction=0, bool keepdims=False, ScalarType? dtype=None) -> Tensor")
_library.define("convert(Tensor x, ScalarType dtype, int[]? axes=None, float scale=1.0) -> Tensor")


def _settings(axis: Sequence[int] | None, keepdims: bool, dtype: torch.dtype | None) -> dict[str, Any]:
    return {"axis": None if axis is None else tuple(axis), "keepdims": keepdims, **_kept(dtype)}


def _fake(x: Tensor, axis: Sequence[int] | None, keepdims: bool, dtype: torch.dtype | None) -> Tensor:
    return x.new_empty(_reduced_shape(x, axis, keepdims), dtype=_result_dtype("sum", x, dtype))


def _tensor_of(n: float, x: Tensor) -> Tensor:
    # A tensor of the device: by a number, a GPU multiplies with its reciprocal.
    return torch.full((1,), n, dtype=torch.float64, device=x.device)


_register("dot", lambda x, y, axis=None, keepdims=False, dtype=None: _core.dot(_plain(x), _plain(y), **_settings(_axes(x, axis), keepdims, dtype)),
          lambda x, y, axis=None, keepdims=False, dtype=None: _fake(x, axis, keepdims, dtype))
_register("mean", lambda x, axis=None, keepdims=False, dtype=None: _core.mean(_plain(x), **_settings(axis, keepdims, dtype)),
          lambda x, axis=None, keepdims=False, dtype=None: _fake(x, axis, keepdims, dtype))


def _spread(name: str) -> None:
    function = getattr(_core, name)
    _register(name, lambda x, axis=None, correction=0, keepdims=False, dtype=None:
              function(_plain(x), correction=correction, **_settings(axis, keepdims, dtype)),
              lambda x, axis=None, correction=0, keepdims=False, dtype=None: _fake(x, axis, keepdims, dtype))


_spread("var")
_spread("std")
_register("convert", lambda x, dtype, axes=None, scale=1.0: _core.convert(_plain(x), dtype, axes=None if axes is None else tuple(axes), scale=scale),
          lambda x, dtype, axes=None, scale=1.0: x.new_empty(x.shape if axes is None else [x.shape[k] for k in axes], dtype=dtype))


# ---- gradients ---------------------------------------------------------------
def _dot_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, y, ctx.axis, ctx.keepdims = inputs[:4]
    ctx.save_for_backward(x, y)


def _beside(y: Tensor, x: Tensor, axes: Sequence[int]) -> Tensor:
    """y, where it has the shape of the reduced axes, beside each element of x."""
    return y if y.shape == x.shape else y.reshape([x.shape[k] if k in axes else 1 for k in range(x.ndim)]).expand(x.shape)


def _dot_backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    x, y = ctx.saved_tensors
    axes = _axes(x, ctx.axis)
    spread = _over(g, x, ctx.axis, ctx.keepdims)
    of_y = spread * x.to(g.dtype)
    if y.shape != x.shape:  # one y for all: in the order of lockstep's sums
        of_y = _call("sum", of_y, [k for k in range(x.ndim) if k not in axes], False, None)
    return (spread * _beside(y, x, axes).to(g.dtype)).to(x.dtype), of_y.to(y.dtype), None, None, None


def _mean_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, ctx.axis, ctx.keepdims = inputs[:3]
    ctx.shape, ctx.dtype = x.shape, x.dtype
    ctx.save_for_backward(x)


def _mean_backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    x, = ctx.saved_tensors
    n = prod(x.shape[k] for k in _axes(x, ctx.axis))
    return (_over(g, x, ctx.axis, ctx.keepdims).double() / _tensor_of(n, x)).to(x.dtype), None, None, None


def _var_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, ctx.axis, ctx.correction, ctx.keepdims = inputs[:4]
    ctx.save_for_backward(x, output)


def _std_backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    # 0 where all elements are equal, as PyTorch has it.
    _, root = ctx.saved_tensors
    flat = root == 0
    return _var_backward(ctx, torch.where(flat, 0.0, g.double() / (2 * torch.where(flat, 1.0, root.double()))))


def _var_backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    x, _ = ctx.saved_tensors
    axes = _axes(x, ctx.axis)
    n = prod(x.shape[k] for k in axes)
    centred = x.double() - _call("mean", x, axes, True, torch.float64)
    return (_over(g, x, ctx.axis, ctx.keepdims).double() * (2 * centred / _tensor_of(n - ctx.correction, x))).to(x.dtype), None, None, None, None


_gradient("dot", _dot_backward, _dot_setup)
_gradient("mean", _mean_backward, _mean_setup)
_gradient("var", _var_backward, _var_setup)
_gradient("std", _std_backward, _var_setup)


def _convert_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, _, axes, ctx.scale = (*inputs, None, 1.0)[:4]
    ctx.axes, ctx.dtype = range(x.ndim) if axes is None else [k % x.ndim for k in axes], x.dtype


def _convert_backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    back = [list(ctx.axes).index(k) for k in range(len(ctx.axes))]
    return _call("convert", g, ctx.dtype, back, ctx.scale), None, None, None


_gradient("convert", _convert_backward, _convert_setup)


# ---- vmap --------------------------------------------------------------------
def _dot_vmap(info: Any, dims: tuple[Any, ...], x: Tensor, y: Tensor, axis: Sequence[int] | None = None, *rest: Any) -> tuple[Tensor, int]:
    x = _batched(info, x, dims[0])
    axes = _behind(x, axis)
    one = y if dims[1] is None else y.select(dims[1], 0)
    if dims[1] is None and list(y.shape) == [x.shape[k] for k in sorted(axes)]:
        return _call("dot", x, y, axes, *rest), 0
    batch = _batched(info, y, dims[1])
    if one.shape != x.shape[1:]:
        batch = batch.reshape([n if k == 0 or k in axes else 1 for k, n in enumerate(x.shape)]).expand(x.shape)
    return _call("dot", x, batch, axes, *rest), 0


_vmap("dot", _dot_vmap)
_reduction_vmap("mean")
_reduction_vmap("var")
_reduction_vmap("std")


def _convert_vmap(info: Any, dims: tuple[Any, ...], x: Tensor, dtype: torch.dtype, axes: Sequence[int] | None = None, scale: float = 1.0) -> tuple[Tensor, int]:
    x = x.movedim(dims[0], 0)
    return _call("convert", x, dtype, None if axes is None else [0, *(k % (x.ndim - 1) + 1 for k in axes)], scale), 0


_vmap("convert", _convert_vmap)


# ---- functions ---------------------------------------------------------------
def dot(x: Tensor, y: Tensor, axis: _Axis = None, *, keepdims: bool = False, dtype: torch.dtype | None = None,
        dim: _Axis = None, keepdim: bool = False) -> Tensor:
    """`lockstep.dot` with gradients of both arrays."""
    return _call("dot", x, y, _listed(axis, dim), keepdims or keepdim, dtype)


def mean(x: Tensor, axis: _Axis = None, *, keepdims: bool = False, dtype: torch.dtype | None = None,
         dim: _Axis = None, keepdim: bool = False) -> Tensor:
    """`lockstep.mean` with a gradient."""
    return _call("mean", x, _listed(axis, dim), keepdims or keepdim, dtype)


def var(x: Tensor, axis: _Axis = None, *, correction: int = 0, keepdims: bool = False,
        dtype: torch.dtype | None = None, dim: _Axis = None, keepdim: bool = False) -> Tensor:
    """`lockstep.var` with a gradient. PyTorch's own `correction` is 1 by default, this one 0."""
    return _call("var", x, _listed(axis, dim), correction, keepdims or keepdim, dtype)


def std(x: Tensor, axis: _Axis = None, *, correction: int = 0, keepdims: bool = False,
        dtype: torch.dtype | None = None, dim: _Axis = None, keepdim: bool = False) -> Tensor:
    """`lockstep.std` with a gradient, which is 0 where all elements are equal. PyTorch's own `correction` is 1 by default, this one 0."""
    return _call("std", x, _listed(axis, dim), correction, keepdims or keepdim, dtype)


def convert(x: Tensor, dtype: torch.dtype, *, axes: Sequence[int] | None = None, scale: float = 1.0) -> Tensor:
    """`lockstep.convert` with a gradient, which goes back through the same scale and axes."""
    return _call("convert", x, dtype, None if axes is None else list(whole_numbers(axes, "axes")), float(scale))
