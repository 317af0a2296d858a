"""Functions of each element as operators of PyTorch; lockstep.torch, which is imported first, hands them out."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import _core
from ._slopes import slopes
from .torch import _call, _gradient, _library, _plain, _register, _vmap

_SLOPES = slopes(torch, lambda name, x: _call(name, x.float()).double())


def gradient(name: str, g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """What g, the gradient of y = name(x), is for x."""
    return (g.double() * _SLOPES[name](x.double(), y.double())).to(x.dtype)


def _define(name: str) -> None:
    function: Callable[..., Tensor] = getattr(_core, name)
    _library.define(f"{name}(Tensor x, ScalarType? dtype=None) -> Tensor")
    _register(name, lambda x, dtype=None: function(_plain(x), **({} if dtype is None else {"dtype": dtype})),
              lambda x, dtype=None: x.new_empty(x.shape, dtype=dtype or x.dtype))

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)

    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, y = ctx.saved_tensors
        return gradient(name, g, x, y), None

    def rule(info: Any, dims: tuple[Any, ...], x: Tensor, *dtype: Any) -> tuple[Tensor, int]:
        return _call(name, x, *dtype), dims[0]

    _gradient(name, backward, setup)
    _vmap(name, rule)


for _name in _SLOPES:
    _define(_name)


def _public(name: str) -> Callable[..., Tensor]:
    def function(x: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
        return _call(name, x, dtype)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "lockstep.torch"
    function.__doc__ = f"`lockstep.{name}` of each element, with a gradient that is computed in double."
    return function


exp, expm1, log, log1p = (_public(n) for n in ("exp", "expm1", "log", "log1p"))
sqrt, rsqrt, reciprocal = (_public(n) for n in ("sqrt", "rsqrt", "reciprocal"))
tanh, sigmoid, silu, gelu = (_public(n) for n in ("tanh", "sigmoid", "silu", "gelu"))
gelu_tanh, erf, softplus = (_public(n) for n in ("gelu_tanh", "erf", "softplus"))
