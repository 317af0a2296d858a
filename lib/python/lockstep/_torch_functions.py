"""Functions of each element as operators of PyTorch; lockstep.torch, which is imported first, hands them out."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import _core
from .torch import _call, _gradient, _library, _plain, _register, _vmap

# The derivative by x and the function's value y, all in double, by operations of one rounding and functions of lockstep:
# the same bits on CPU and GPU.
_Slope = Callable[[Tensor, Tensor], Tensor]


def _share(x: Tensor, y: Tensor) -> Tensor:
    """The factor of x in a unit's value y = x s(x), which is 1/2 at 0 and 1 at infinity."""
    return torch.where(x == 0, 0.5, torch.where(torch.isposinf(x), 1.0, y / torch.where(x == 0, 1.0, x)))


def _gelu_slope(x: Tensor, y: Tensor) -> Tensor:
    bell = _call("exp", (-0.5 * x * x).float()).double()
    return _share(x, y) + torch.where(torch.isinf(x), 0.0, x * bell) * (1 / math.sqrt(2 * math.pi))


def _gelu_tanh_slope(x: Tensor, y: Tensor) -> Tensor:
    s, steep = _share(x, y), 2 * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * (x * x))
    return s + torch.where(torch.isinf(x), 0.0, x * (s * (1 - s)) * steep)


def _silu_slope(x: Tensor, y: Tensor) -> Tensor:
    s = _share(x, y)
    return s + torch.where(torch.isinf(x), 0.0, y) * (1 - s)


_SLOPES: dict[str, _Slope] = {
    "exp": lambda x, y: y,
    "expm1": lambda x, y: y + 1,
    "log": lambda x, y: 1 / x,
    "log1p": lambda x, y: 1 / (1 + x),
    "sqrt": lambda x, y: 0.5 / y,
    "rsqrt": lambda x, y: -0.5 * (y * y * y),
    "reciprocal": lambda x, y: -(y * y),
    "tanh": lambda x, y: 1 - y * y,
    "sigmoid": lambda x, y: y * (1 - y),
    "silu": _silu_slope,
    "gelu": _gelu_slope,
    "gelu_tanh": _gelu_tanh_slope,
    "erf": lambda x, y: (2 / math.sqrt(math.pi)) * _call("exp", (-(x * x)).float()).double(),
    "softplus": lambda x, y: _call("sigmoid", x.float()).double(),
}


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
