"""Stencils as an operator of PyTorch; lockstep.torch, which is imported first, hands it out."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from . import _core
from ._errors import InvalidArgument
from ._stencils import Star, border_of
from .torch import _axes, _behind, _call, _gradient, _library, _listed, _plain, _register, _vmap

_library.define("stencil(Tensor x, float[] weights, str mode='reflect', float cval=0.0, int sweeps=1, int[]? axes=None) -> Tensor")


def _radius(weights: Sequence[float], rank: int) -> int:
    return (len(weights) - 1) // (2 * rank)


def _stencil_fake(x: Tensor, weights: Sequence[float], mode: str = "reflect", cval: float = 0.0, sweeps: int = 1,
                  axes: Sequence[int] | None = None) -> Tensor:
    taken = _axes(x, axes)
    shorter = 2 * _radius(weights, len(taken)) * sweeps if mode == "valid" else 0
    return x.new_empty([n - shorter if k in taken else n for k, n in enumerate(x.shape)])


def _stencil_kernel(x: Tensor, weights: Sequence[float], mode: str = "reflect", cval: float = 0.0, sweeps: int = 1,
                    axes: Sequence[int] | None = None) -> Tensor:
    return _core.stencil(_plain(x), Star(weights, 0), mode=cast(Any, mode), cval=cval, sweeps=sweeps, axes=None if axes is None else tuple(axes))


_register("stencil", _stencil_kernel, _stencil_fake)


# ---- gradients ---------------------------------------------------------------
def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weights, ctx.mode, _, ctx.sweeps, axes = inputs
    ctx.weights, ctx.axes = list(weights), _axes(x, axes)


def _longer(g: Tensor, weights: Sequence[float], axes: Sequence[int]) -> Tensor:
    """The shares of all elements that a sweep under "valid" read: radius more at both ends of each axis."""
    radius = _radius(weights, len(axes))
    sides = [radius if k in axes else 0 for k in reversed(range(g.ndim)) for _ in range(2)]
    return _call("stencil", torch.nn.functional.pad(g, sides), weights[::-1], "constant", 0.0, 1, axes)


def _backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    # A star read from behind is the star of the transposed matrix.
    if ctx.mode in ("wrap", "grid-wrap", "constant", "grid-constant"):
        g = _call("stencil", g, ctx.weights[::-1], ctx.mode, 0.0, ctx.sweeps, ctx.axes)
        return g, None, None, None, None, None
    radius = _radius(ctx.weights, len(ctx.axes))
    for _ in range(ctx.sweeps):
        longer = _longer(g, ctx.weights, ctx.axes)
        if ctx.mode == "valid":
            g = longer
            continue
        # Elements that are copied beyond the ends get their copies' shares too, one after the other.
        inner = longer
        for k in ctx.axes:
            inner = inner.narrow(k, radius, g.shape[k])
        total = inner.clone()
        for axis in ctx.axes:
            ends = longer
            for k in ctx.axes:
                ends = ends if k == axis else ends.narrow(k, radius, g.shape[k])
            for place, element in border_of(ctx.mode, g.shape[axis], radius):
                total.select(axis, element).add_(ends.select(axis, place))
        g = total
    return g, None, None, None, None, None


_gradient("stencil", _backward, _setup)


def _stencil_vmap(info: Any, dims: tuple[Any, ...], x: Tensor, weights: Any, mode: str = "reflect", cval: float = 0.0, sweeps: int = 1,
                  axes: Sequence[int] | None = None) -> tuple[Tensor, int]:
    x = x.movedim(dims[0], 0)
    return _call("stencil", x, weights, mode, cval, sweeps, _behind(x, axes)), 0


_vmap("stencil", _stencil_vmap)


def stencil(x: Tensor, weights: Sequence[float], *, mode: str = "reflect", cval: float = 0.0, sweeps: int = 1,
            axes: int | Sequence[int] | None = None) -> Tensor:
    """`lockstep.stencil` of general form, with a gradient."""
    if isinstance(weights, torch.Tensor) and weights.requires_grad:
        raise InvalidArgument("weights require a gradient, which a stencil has only for x; give weights.tolist()")
    return _call("stencil", x, [float(w) for w in weights], mode, cval, sweeps, _listed(axes))
