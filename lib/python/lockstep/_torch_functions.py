"""Functions of each element as operators of PyTorch; lockstep.torch, which is imported first, hands them out."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import _core
from ._slopes import slopes
from .torch import _batched, _call, _gradient, _kept, _library, _plain, _register, _vmap

_SLOPES = slopes(torch, lambda name, x: _call(name, x.float()).double())


def gradient(name: str, g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """What g, the gradient of y = name(x), is for x."""
    return (g.double() * _SLOPES[name](x.double(), y.double())).to(x.dtype)


def _define(name: str) -> None:
    function: Callable[..., Tensor] = getattr(_core, name)
    _library.define(f"{name}(Tensor x, ScalarType? dtype=None, Tensor? times=None) -> Tensor")

    def kernel(x: Tensor, dtype: torch.dtype | None = None, times: Tensor | None = None) -> Tensor:
        return function(_plain(x), **_kept(dtype), **({} if times is None else {"times": _plain(times)}))

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        times = inputs[2] if len(inputs) > 2 else None
        ctx.save_for_backward(inputs[0], output if times is None else times)
        ctx.gated = times is not None

    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, other = ctx.saved_tensors
        if not ctx.gated:
            return gradient(name, g, x, other), None, None
        y, wide = _call(name, x.float()), g.double()
        return gradient(name, wide * other.double(), x, y), None, (wide * y.double()).to(other.dtype)

    def rule(info: Any, dims: tuple[Any, ...], x: Tensor, dtype: torch.dtype | None = None, times: Tensor | None = None) -> tuple[Tensor, int]:
        return _call(name, _batched(info, x, dims[0]), dtype, None if times is None else _batched(info, times, dims[2])), 0

    _register(name, kernel, lambda x, dtype=None, times=None: x.new_empty(x.shape, dtype=dtype or x.dtype))

    _gradient(name, backward, setup)
    _vmap(name, rule)


for _name in _SLOPES:
    _define(_name)


def _public(name: str) -> Callable[..., Tensor]:
    def function(x: Tensor, *, dtype: torch.dtype | None = None, times: Tensor | None = None) -> Tensor:
        return _call(name, x, dtype, times)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "lockstep.torch"
    function.__doc__ = f"`lockstep.{name}` of each element, with a gradient that is computed in double; times, the factors, has one too."
    return function


exp, expm1, log, log1p = (_public(n) for n in ("exp", "expm1", "log", "log1p"))
sqrt, rsqrt, reciprocal = (_public(n) for n in ("sqrt", "rsqrt", "reciprocal"))
tanh, sigmoid, silu, gelu = (_public(n) for n in ("tanh", "sigmoid", "silu", "gelu"))
gelu_tanh, erf, softplus = (_public(n) for n in ("gelu_tanh", "erf", "softplus"))
