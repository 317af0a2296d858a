"""Functions of each element, softmax and its kin in programs of JAX; lockstep.jax, which is imported first, hands them out."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ._errors import InvalidArgument
from ._slopes import slopes
from .jax import _axes, _back, _moved, _operation, _plain, _settings
from .jax import sum as _sum

_jax: Any = jax
Array = Any


def _wide() -> str:
    return "float64" if _jax.config.jax_enable_x64 else "float32"


def _dtype(dtype: str | None) -> tuple[tuple[str, Any], ...]:
    return (("dtype", dtype),) if dtype else ()


# ---- functions of each element -------------------------------------------------
@functools.partial(_jax.custom_vjp, nondiff_argnums=(0, 1))
def _map(name: str, dtype: str | None, x: Array) -> Array:
    return _operation(name, (), None, _dtype(dtype))(x)


_SLOPES = slopes(jnp, lambda name, x: _map(name, None, x.astype("float32")).astype(x.dtype))


def _map_forward(name: str, dtype: str | None, x: Array) -> tuple[Array, Any]:
    y = _map(name, dtype, x)
    return y, (x, y)


def _map_backward(name: str, dtype: str | None, saved: Any, g: Array) -> tuple[Array]:
    x, y = saved
    return (g.astype(_wide()) * _SLOPES[name](x.astype(_wide()), y.astype(_wide()))).astype(x.dtype),


_map.defvjp(_map_forward, _map_backward)


@functools.partial(_jax.custom_vjp, nondiff_argnums=(0, 1))
def _gated(name: str, dtype: str | None, x: Array, times: Array) -> Array:
    return _operation(name, ("times",), None, _dtype(dtype))(x, times)


def _gated_backward(name: str, dtype: str | None, saved: Any, g: Array) -> tuple[Array, Array]:
    x, times = saved
    y, wide = _map(name, None, x.astype("float32")), g.astype(_wide())
    return _map_backward(name, None, (x, y), wide * times.astype(_wide()))[0], (wide * y.astype(_wide())).astype(times.dtype)


_gated.defvjp(lambda name, dtype, x, times: (_gated(name, dtype, x, times), (x, times)), _gated_backward)


def _public(name: str) -> Callable[..., Array]:
    def function(x: Array, *, dtype: Any = None, times: Any = None) -> Array:
        x = jnp.asarray(x)
        return _map(name, _plain(dtype), x) if times is None else _gated(name, _plain(dtype), x, jnp.asarray(times))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "lockstep.jax"
    function.__doc__ = f"`lockstep.{name}` of each element, with a gradient; times, the factors, has one too."
    return function


exp, expm1, log, log1p = (_public(n) for n in ("exp", "expm1", "log", "log1p"))
sqrt, rsqrt, reciprocal = (_public(n) for n in ("sqrt", "rsqrt", "reciprocal"))
tanh, sigmoid, silu, gelu = (_public(n) for n in ("tanh", "sigmoid", "silu", "gelu"))
gelu_tanh, erf, softplus = (_public(n) for n in ("gelu_tanh", "erf", "softplus"))


# ---- softmax and its kin -------------------------------------------------------
@functools.partial(_jax.custom_vjp, nondiff_argnums=(0, 1, 2, 3))
def _rows(name: str, axes: tuple[int, ...], scale: float, dtype: str | None, x: Array) -> Array:
    """logsumexp keeps the axes."""
    keeps = (("keepdims", True),) if name == "logsumexp" else ()
    return _operation(name, (), axes, (("scale", scale), *keeps, *_dtype(dtype)))(x)


def _total(t: Array, axes: tuple[int, ...]) -> Array:
    return _sum(t, axes, keepdims=True)


def _rows_backward(name: str, axes: tuple[int, ...], scale: float, dtype: str | None, x: Array, g: Array) -> tuple[Array]:
    y, wide = _rows("softmax", axes, scale, None, x.astype(_wide())), g.astype(_wide())
    if name == "softmax":
        found = y * (wide - _total(wide * y, axes))
    elif name == "log_softmax":
        found = wide - y * _total(wide, axes)
    else:
        found = y * wide
    return (found * scale).astype(x.dtype),


_rows.defvjp(lambda name, axes, scale, dtype, x: (_rows(name, axes, scale, dtype, x), x), _rows_backward)


def _of_rows(name: str, x: Array, axis: int | Sequence[int], scale: float, dtype: Any) -> tuple[Array, list[int], tuple[int, ...]]:
    x = jnp.asarray(x)
    axes = _axes(x, axis)
    moved, order, last = _moved(x, axes)
    return _rows(name, last, float(scale), _plain(dtype), moved), order, axes


def softmax(x: Array, axis: int | Sequence[int] = -1, *, scale: float = 1.0, dtype: Any = None) -> Array:
    """`lockstep.softmax` with a gradient."""
    return _back(*_of_rows("softmax", x, axis, scale, dtype)[:2])


def log_softmax(x: Array, axis: int | Sequence[int] = -1, *, scale: float = 1.0, dtype: Any = None) -> Array:
    """`lockstep.log_softmax` with a gradient."""
    return _back(*_of_rows("log_softmax", x, axis, scale, dtype)[:2])


def logsumexp(x: Array, axis: int | Sequence[int] = -1, *, scale: float = 1.0, keepdims: bool = False, dtype: Any = None) -> Array:
    """`lockstep.logsumexp` with a gradient."""
    result, order, axes = _of_rows("logsumexp", x, axis, scale, dtype)
    kept = _back(result, order)
    return kept if keepdims else jnp.squeeze(kept, axes)


# The last axis; labels: int64.
@functools.partial(_jax.custom_vjp, nondiff_argnums=(0, 1))
def _picked(scale: float, dtype: str | None, x: Array, labels: Array) -> Array:
    return _operation("picked", ("labels",), x.ndim - 1, (("scale", scale), *_dtype(dtype)))(x, labels)


def _picked_backward(scale: float, dtype: str | None, saved: Any, g: Array) -> tuple[Array, None]:
    x, labels = saved
    axis = (x.ndim - 1,)
    wide = g.astype("float64")[..., None]
    there = jnp.where(jnp.arange(x.shape[-1]) == labels[..., None], wide, 0)
    return ((there - _rows("softmax", axis, scale, None, x.astype("float64")) * wide) * scale).astype(x.dtype), None


_picked.defvjp(lambda scale, dtype, x, labels: (_picked(scale, dtype, x, labels), (x, labels)), _picked_backward)


def picked(x: Array, labels: Array, axis: int = -1, *, scale: float = 1.0, dtype: Any = None) -> Array:
    """`lockstep.picked` with a gradient; its negative is the cross-entropy of each row.

    Without ``jax_enable_x64``, which labels of 64 bits need, it is taken from all of log_softmax: the same bits, more memory.
    """
    x, labels = jnp.asarray(x), jnp.asarray(labels)
    at = _axes(x, axis)
    if len(at) != 1:
        raise InvalidArgument(f"axis is {axis}; picked takes one axis")
    moved = _moved(x, at)[0]
    if labels.shape != moved.shape[:-1] or not jnp.issubdtype(labels.dtype, jnp.integer):
        raise InvalidArgument(f"labels has the shape {labels.shape} and holds {labels.dtype}; give integers, of the shape {moved.shape[:-1]}")
    if _jax.config.jax_enable_x64:
        return _picked(float(scale), _plain(dtype), moved, labels.astype("int64"))
    found = _rows("log_softmax", (moved.ndim - 1,), float(scale), _plain(dtype), moved)
    # (A label outside gives NaN: a program cannot tell it.)
    return jnp.take_along_axis(found, jnp.where(labels < 0, moved.shape[-1], labels)[..., None], -1, mode="fill", fill_value=jnp.nan)[..., 0]
