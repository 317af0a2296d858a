"""Normalised rows and running sums as operators of PyTorch; lockstep.torch, which is imported first, hands them out."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from . import _core
from ._deterministic import nearest_root
from .torch import _axes, _behind, _call, _each, _gradient, _kept, _library, _listed, _plain, _register, _result_dtype, _vmap

_EPS = {"normalize": 1e-12, "rms_norm": 1e-6, "layer_norm": 1e-5}
_library.define("cumsum(Tensor x, int axis=-1, ScalarType? dtype=None) -> Tensor")


def _define(name: str) -> None:
    function: Callable[..., Tensor] = getattr(_core, name)
    _library.define(f"{name}(Tensor x, int[] axis=[-1], Tensor? weight=None, Tensor? bias=None, float eps={_EPS[name]}) -> Tensor")

    def kernel(x: Tensor, axis: Sequence[int] = (-1,), weight: Tensor | None = None, bias: Tensor | None = None, eps: float = _EPS[name]) -> Tensor:
        sides = {k: _plain(v) for k, v in (("weight", weight), ("bias", bias)) if v is not None}
        return function(_plain(x), tuple(axis), eps=eps, **sides)

    _register(name, kernel, lambda x, axis=(-1,), weight=None, bias=None, eps=_EPS[name]: x.new_empty(x.shape))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, ctx.axis, weight, bias, ctx.eps = inputs
    ctx.save_for_backward(x, weight, bias)


def _composed(name: str, g: Tensor, x: Tensor, axis: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Any, ...]:
    """The gradients of x, weight and bias in double, by operations of one rounding and sums of lockstep's order: the same bits on CPU and GPU."""
    axes = _axes(x, axis)
    # A tensor of the device: by a number, a GPU multiplies with its reciprocal.
    n = torch.full((1,), prod(x.shape[k] for k in axes), dtype=torch.float64, device=x.device)
    wide, h = g.double(), x.double()

    def total(t: Tensor) -> Tensor:
        return _call("sum", t, axes, True, torch.float64)

    if name == "layer_norm":
        h = h - total(h) / n
    if name == "normalize":
        length = _call("norm", h, axes, True, torch.float64)
        d, inside = length.clamp(min=eps), length > eps
        slope = inside / (d * d)  # where eps is divided by, the length plays no part
    else:
        d = nearest_root(_call("square_sum", h, axes, True, torch.float64) / n + eps)
        slope = 1 / (d * d * n)
    shape = [x.shape[k] if k in axes else 1 for k in range(x.ndim)]
    weighted = wide if weight is None else wide * weight.double().reshape(shape)
    centred = weighted - total(weighted) / n if name == "layer_norm" else weighted
    found = (centred - h * (total(weighted * h) * slope)) / d
    others = [k for k in range(x.ndim) if k not in axes]

    def of_column(t: Tensor, side: Tensor | None) -> Tensor | None:
        if side is None:
            return None
        return _call("sum", t, others, False, torch.float64).reshape(side.shape).to(side.dtype)

    return found.to(x.dtype), of_column(wide * (h / d), weight), of_column(wide, bias)


def _rows_gradient(name: str) -> None:
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        x, weight, bias = ctx.saved_tensors
        if name == "normalize":
            found, of_weight, of_bias = _composed(name, g, x, ctx.axis, weight, bias, ctx.eps)
        else:
            wanted = [side is not None and ctx.needs_input_grad[k] for k, side in ((2, weight), (3, bias))]
            found, *sides = _call(f"{name}_backward", g, x, ctx.axis, weight, bias, wanted, ctx.eps)
            of_weight, of_bias = (t if there else None for t, there in zip(sides, wanted))
        return found, None, of_weight, of_bias, None

    _gradient(name, backward, _setup)


# ---- the gradients by one call, as operators with gradients of their own --------
def _define_backward(name: str) -> None:
    function: Callable[..., Tensor] = getattr(_core, f"{name}_backward")
    _library.define(f"{name}_backward(Tensor g, Tensor x, int[] axis, Tensor? weight, Tensor? bias, bool[] wanted, float eps) -> (Tensor, Tensor, Tensor)")

    def sides(x: Tensor, weight: Tensor | None, bias: Tensor | None, wanted: Sequence[bool]) -> list[Tensor]:
        return [x.new_empty((0,)) if side is None or not there else side.new_empty(side.shape) for side, there in zip((weight, bias), wanted)]

    def kernel(g: Tensor, x: Tensor, axis: Sequence[int], weight: Tensor | None, bias: Tensor | None, wanted: Sequence[bool],
               eps: float) -> tuple[Tensor, ...]:
        made = sides(x, weight, bias, wanted)
        names = ("weight_gradient", "bias_gradient")
        given: dict[str, Any] = {n: t for n, t, there in zip(names, made, wanted) if there}
        if x.numel() == 0:
            return (x.new_empty(x.shape), *(t.zero_() for t in made))
        if weight is not None:
            given["weight"] = _plain(weight)
        return (function(_plain(x), _plain(g).contiguous(), tuple(axis), eps=eps, **given), *made)

    def fake(g: Tensor, x: Tensor, axis: Sequence[int], weight: Tensor | None, bias: Tensor | None, wanted: Sequence[bool],
             eps: float) -> tuple[Tensor, ...]:
        return (x.new_empty(x.shape), *sides(x, weight, bias, wanted))

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        g, x, ctx.axis, weight, bias, ctx.wanted, ctx.eps = inputs
        ctx.save_for_backward(g, x, weight, bias)

    def backward(ctx: Any, *of: Tensor) -> tuple[Any, ...]:
        # Through the same formulas, made of operations that have gradients.
        g, x, weight, bias = ctx.saved_tensors
        inputs = [t for t in (g, x, weight) if t is not None]

        def composed(*given: Tensor) -> tuple[Tensor, ...]:
            found = _composed(name, given[0], given[1], ctx.axis, given[2] if weight is not None else None, bias, ctx.eps)
            return tuple(t for t, there in zip(found, (True, *ctx.wanted)) if there)

        _, pull = torch.func.vjp(composed, *inputs)
        found = list(pull(tuple(t for t, there in zip(of, (True, *ctx.wanted)) if there)))
        return found[0], found[1], None, found[2] if weight is not None else None, None, None, None

    def rule(info: Any, dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        given = [*dims, *[None] * 7][:7]
        tensors = zip(*(_each(info, arguments[k], given[k]) for k in (0, 1, 3, 4)))
        found = [_call(f"{name}_backward", g, x, arguments[2], w, b, *arguments[5:]) for g, x, w, b in tensors]
        return tuple(torch.stack(parts) for parts in zip(*found)), (0, 0, 0)

    _register(f"{name}_backward", kernel, fake)
    _gradient(f"{name}_backward", backward, setup)
    _vmap(f"{name}_backward", rule)


def _rows_vmap(name: str) -> None:
    def rule(info: Any, dims: tuple[Any, ...], x: Tensor, axis: Sequence[int] = (-1,), weight: Tensor | None = None, bias: Tensor | None = None,
             eps: float = _EPS[name]) -> tuple[Tensor, int]:
        given: list[Any] = [*dims, None, None, None, None][:5]
        if given[2] is None and given[3] is None:
            x = x.movedim(given[0], 0)
            return _call(name, x, _behind(x, axis), weight, bias, eps), 0
        each = zip(_each(info, x, given[0]), _each(info, weight, given[2]), _each(info, bias, given[3]))
        return torch.stack([_call(name, a, axis, w, b, eps) for a, w, b in each]), 0

    _vmap(name, rule)


for _name in ("rms_norm", "layer_norm"):
    _define_backward(_name)
for _name in _EPS:
    _define(_name)
    _rows_gradient(_name)
    _rows_vmap(_name)


def _cumsum_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.axis, ctx.dtype = inputs[1], inputs[0].dtype


def _cumsum_backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    return _call("cumsum", g.flip(ctx.axis), ctx.axis, None).flip(ctx.axis).to(ctx.dtype), None, None


def _cumsum_vmap(info: Any, dims: tuple[Any, ...], x: Tensor, axis: int = -1, dtype: torch.dtype | None = None) -> tuple[Tensor, int]:
    x = x.movedim(dims[0], 0)
    return _call("cumsum", x, axis % (x.ndim - 1) + 1, dtype), 0


_register("cumsum", lambda x, axis=-1, dtype=None: _core.cumsum(_plain(x), axis, **_kept(dtype)),
          lambda x, axis=-1, dtype=None: x.new_empty(x.shape, dtype=_result_dtype("sum", x, dtype)))
_gradient("cumsum", _cumsum_backward, _cumsum_setup)
_vmap("cumsum", _cumsum_vmap)


def normalize(x: Tensor, axis: int | Sequence[int] = -1, *, weight: Tensor | None = None, bias: Tensor | None = None, dim: int | Sequence[int] | None = None, eps: float = 1e-12) -> Tensor:
    """`lockstep.normalize` with gradients of x, weight and bias."""
    return _call("normalize", x, _listed(axis, dim, -1), weight, bias, eps)


def rms_norm(x: Tensor, axis: int | Sequence[int] = -1, *, weight: Tensor | None = None, bias: Tensor | None = None, dim: int | Sequence[int] | None = None, eps: float = 1e-6) -> Tensor:
    """`lockstep.rms_norm` with gradients of x, weight and bias."""
    return _call("rms_norm", x, _listed(axis, dim, -1), weight, bias, eps)


def layer_norm(x: Tensor, axis: int | Sequence[int] = -1, *, weight: Tensor | None = None, bias: Tensor | None = None, dim: int | Sequence[int] | None = None, eps: float = 1e-5) -> Tensor:
    """`lockstep.layer_norm` with gradients of x, weight and bias."""
    return _call("layer_norm", x, _listed(axis, dim, -1), weight, bias, eps)


def cumsum(x: Tensor, axis: int = -1, *, dtype: torch.dtype | None = None, dim: int | None = None) -> Tensor:
    """`lockstep.cumsum` along an axis, with a gradient."""
    return _call("cumsum", x, (_listed(axis, dim, -1) or [-1])[0], dtype)
