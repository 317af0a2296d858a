"""Normalised rows in programs of JAX; lockstep.jax, which is imported first, hands them out."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from .jax import _SIDES, _axes, _back, _moved, _operation, norm, square_sum
from .jax import sum as _sum

_jax: Any = jax
Array = Any
_Columns = tuple[tuple[str, tuple[int, ...], str], ...]  # (name, shape, dtype) of the gradients of weight and bias


@functools.partial(_jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _rows(name: str, axes: tuple[int, ...], eps: float, x: Array, weight: Array | None, bias: Array | None) -> Array:
    given = tuple(side for side, a in zip(_SIDES, (weight, bias)) if a is not None)
    return _operation(name, given, axes, (("eps", eps),))(x, *(a for a in (weight, bias) if a is not None))


def _composed(name: str, axes: tuple[int, ...], eps: float, columns: _Columns, g: Array, x: Array, weight: Array | None) -> tuple[Array, ...]:
    """The gradients of x and of the columns, of operations that have gradients."""
    wide_type = "float64" if _jax.config.jax_enable_x64 else "float32"
    wide, h = g.astype(wide_type), x.astype(wide_type)
    n = prod(x.shape[k] for k in axes)

    def total(t: Array) -> Array:
        return _sum(t, axes, keepdims=True)

    if name == "layer_norm":
        h = h - total(h) / n
    if name == "normalize":
        length = norm(h, axes, keepdims=True)
        d = jnp.maximum(length, eps)
        slope = jnp.where(length > eps, 1 / (d * d), 0)  # where eps is divided by, the length plays no part
    else:
        d = jnp.sqrt(square_sum(h, axes, keepdims=True) / n + eps)
        slope = 1 / (d * d * n)
    shape = [x.shape[k] if k in axes else 1 for k in range(x.ndim)]
    weighted = wide if weight is None else wide * weight.astype(wide_type).reshape(shape)
    centred = weighted - total(weighted) / n if name == "layer_norm" else weighted
    found = (centred - h * (total(weighted * h) * slope)) / d
    others = tuple(k for k in range(x.ndim) if k not in axes)
    terms = {"weight_gradient": lambda: wide * (h / d), "bias_gradient": lambda: wide}
    return found.astype(x.dtype), *(_sum(terms[side](), others).reshape(form).astype(dtype) for side, form, dtype in columns)


# The gradients by one call, with gradients of their own.
@functools.partial(_jax.custom_vjp, nondiff_argnums=(0, 1, 2, 3))
def _gradients(name: str, axes: tuple[int, ...], eps: float, columns: _Columns, g: Array, x: Array, weight: Array | None) -> tuple[Array, ...]:
    if x.size == 0:
        return jnp.zeros(x.shape, x.dtype), *(jnp.zeros(form, dtype) for _, form, dtype in columns)
    given = ("gradient",) if weight is None else ("weight", "gradient")
    settings = (("eps", eps), *((("columns", columns),) if columns else ()))
    found = _operation(f"{name}_backward", given, axes, settings)(x, *(() if weight is None else (weight,)), g)
    return tuple(found) if columns else (found,)


def _gradients_backward(name: str, axes: tuple[int, ...], eps: float, columns: _Columns, saved: Any, of: tuple[Array, ...]) -> Any:
    return _jax.vjp(functools.partial(_composed, name, axes, eps, columns), *saved)[1](of)


_gradients.defvjp(lambda name, axes, eps, columns, *given: (_gradients(name, axes, eps, columns, *given), given), _gradients_backward)


def _rows_backward(name: str, axes: tuple[int, ...], eps: float, saved: Any, g: Array) -> tuple[Array | None, ...]:
    x, *sides = saved
    columns = tuple((f"{side}_gradient", a.shape, a.dtype.name) for side, a in zip(_SIDES, sides) if a is not None)
    made = list((_composed if name == "normalize" else _gradients)(name, axes, eps, columns, g, x, sides[0]))
    return made.pop(0), *(None if a is None else made.pop(0) for a in sides)


_rows.defvjp(lambda name, axes, eps, *given: (_rows(name, axes, eps, *given), given), _rows_backward)


def _normalized(name: str, x: Array, axis: int | Sequence[int], weight: Array | None, bias: Array | None, eps: float) -> Array:
    x = jnp.asarray(x)
    x, order, last = _moved(x, _axes(x, axis))
    return _back(_rows(name, last, float(eps), x, *(None if a is None else jnp.asarray(a) for a in (weight, bias))), order)


def normalize(x: Array, axis: int | Sequence[int] = -1, *, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-12) -> Array:
    """`lockstep.normalize` with gradients of x, weight and bias."""
    return _normalized("normalize", x, axis, weight, bias, eps)


def rms_norm(x: Array, axis: int | Sequence[int] = -1, *, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-6) -> Array:
    """`lockstep.rms_norm` with gradients of x, weight and bias, by one call: the bits of `lockstep.rms_norm_backward`."""
    return _normalized("rms_norm", x, axis, weight, bias, eps)


def layer_norm(x: Array, axis: int | Sequence[int] = -1, *, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5) -> Array:
    """`lockstep.layer_norm` with gradients of x, weight and bias, by one call: the bits of `lockstep.layer_norm_backward`."""
    return _normalized("layer_norm", x, axis, weight, bias, eps)
