"""The operations within programs of JAX: under jit, vmap and grad, as custom calls of XLA on CPU and CUDA.

`import lockstep.jax` registers one custom call; the functions here are made of it. Results have the bits of the functions of `lockstep`, under
vmap too: a batch is one more axis. Gradients are of reverse mode, made of the same operations and of products; forward mode is refused by JAX.
Outside jit the functions of `lockstep` take JAX's arrays as they are.

Results of 64 bits (places of extremes, sums of integers, ``dtype="float64"``) need ``jax_enable_x64``. A program keeps the default context of its
process; the scopes of `lockstep.backend` and `lockstep.variants` do not reach into it. What only a GPU finds, as an integer overflow, is told by
`lockstep.synchronize`.

>>> import jax, lockstep.jax as lj  # doctest: +SKIP
>>> jax.grad(jax.jit(lambda x: lj.norm(x)))(jax.numpy.ones(3))  # doctest: +SKIP
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from . import _core
from ._errors import Empty, InvalidArgument, UnsupportedDtype, whole_number, whole_numbers
from ._info import spec
from ._kinds import dtype_name
from ._stencils import Star, border_of

__all__ = ["argmax", "argmin", "convert", "cumsum", "dot", "erf", "exp", "expm1", "gelu", "gelu_tanh", "layer_norm", "log", "log1p", "log_softmax",
           "logsumexp", "max", "mean", "min", "norm", "normalize", "permute", "picked", "reciprocal", "rms_norm", "rsqrt", "sigmoid", "silu",
           "softmax", "softplus", "sqrt", "square_sum", "stencil", "sum", "tanh", "transpose", "var"]

_jax: Any = jax
_ffi: Any = _jax.ffi
_TARGET = "lockstep_execute"
for _platform, _handler in _core.xla_handlers().items():
    _ffi.register_ffi_target(_TARGET, _handler, platform=_platform)

Array = Any
_Settings = tuple[tuple[str, Any], ...]


# ---- the custom call ---------------------------------------------------------
# name(*arrays, *arguments, **settings) as C's description, written down when the program is traced.
_SIDES = ("weight", "bias")


def _execute(name: str, given: tuple[str, ...], axes: Any, settings: _Settings, *arrays: Array) -> Any:
    specs = [spec(a.shape, a.dtype.name) for a in arrays]
    keywords = dict(settings)
    if axes is not None:
        keywords["axes" if name in ("permute", "stencil", "convert") else "axis"] = axes
    if name == "stencil":  # of a star, whatever their number
        keywords["weights"] = Star(keywords["weights"], 0)
    if name == "dot":
        keywords["y"] = specs[1]
    keywords.update(zip(given, specs[1:]))
    columns = keywords.pop("columns", ())  # further results: (name, shape, dtype)
    keywords.update((n, spec(form, kind)) for n, form, kind in columns)
    call, description, coefficients, shape, dtype = _core.describe(name, specs[0], **keywords)
    if dtype in ("float64", "int64", "uint64") and not _jax.config.jax_enable_x64:
        raise UnsupportedDtype(f"the result of {name} is {dtype}, which JAX would cut to 32 bits; switch jax_enable_x64 on")
    if name in ("max", "min", "argmax", "argmin") and 0 not in shape and not arrays[0].size:  # a GPU would tell it too late
        raise Empty(f"x has the shape {arrays[0].shape}, with no elements along the axes {axes}; the {name} of no elements is undefined")
    results = [_jax.ShapeDtypeStruct(form, kind) for form, kind in ((shape, dtype), *(c[1:] for c in columns))]
    execute = _ffi.ffi_call(_TARGET, results if columns else results[0])
    return execute(*arrays, call=call, description=description, coefficients=coefficients)


def _behind(name: str, axes: Any) -> Any:
    """The axes of one of a batch, counted in the batch."""
    if axes is None:
        return None
    if name in ("permute", "convert"):
        return (0, *(k + 1 for k in axes))
    return axes + 1 if isinstance(axes, int) else tuple(k + 1 for k in axes)


@functools.lru_cache(maxsize=1024)
def _operation(name: str, given: tuple[str, ...], axes: Any, settings: _Settings) -> Callable[..., Array]:
    call = _jax.custom_batching.custom_vmap(functools.partial(_execute, name, given, axes, settings))

    def batched(size: int, in_batch: Sequence[bool], *arrays: Array) -> tuple[Any, Any]:
        def of_each(a: Array, there: bool) -> Array:
            return a if there else jnp.broadcast_to(a, (size, *a.shape))

        names = ("", *(given or ("y",)))
        # Weights of their own for each, sums over the rows of each: one call each.
        if "columns" in dict(settings) or any(b and n in _SIDES for n, b in zip(names, in_batch)):
            found = _jax.lax.map(lambda one: call(*one), tuple(map(of_each, arrays, in_batch)))
            return found, _jax.tree.map(lambda _: True, found)
        whole = (a if n in _SIDES else of_each(a, b) for n, a, b in zip(names, arrays, in_batch))
        return _operation(name, given, _behind(name, axes), settings)(*whole), True

    call.def_vmap(batched)
    operation: Callable[..., Array] = call
    return operation


def _axes(x: Array, axis: int | Sequence[int] | None) -> tuple[int, ...]:
    given = range(x.ndim) if axis is None else whole_numbers(axis)
    found = tuple(k + x.ndim * (k < 0) for k in given)
    if any(not 0 <= k < x.ndim for k in found) or len(set(found)) != len(found):
        raise InvalidArgument(f"axis is {axis}; the array has {x.ndim} axes: name each once, by {-x.ndim} to {x.ndim - 1}")
    return found


def _moved(x: Array, axes: tuple[int, ...]) -> tuple[Array, list[int], tuple[int, ...]]:
    """x with its axes behind the others in their order, the order they have now, and where they are: as C takes sequences."""
    order = [*(k for k in range(x.ndim) if k not in axes), *sorted(axes)]
    return x if order == list(range(x.ndim)) else jnp.transpose(x, order), order, tuple(range(x.ndim - len(axes), x.ndim))


def _back(x: Array, order: list[int]) -> Array:
    return x if order == list(range(x.ndim)) else jnp.transpose(x, [order.index(k) for k in range(x.ndim)])


def _plain(dtype: Any) -> str | None:
    return None if dtype is None else dtype_name(dtype)


# ---- reductions --------------------------------------------------------------
def _settings(keepdims: bool, dtype: str | None) -> _Settings:
    return (("keepdims", keepdims), *((("dtype", dtype),) if dtype else ()))


@functools.partial(_jax.custom_vjp, nondiff_argnums=(0, 1, 2, 3))
def _reduce(name: str, axes: tuple[int, ...], keepdims: bool, dtype: str | None, x: Array) -> Array:
    return _operation(name, (), axes, _settings(keepdims, dtype))(x)


def _reduce_forward(name: str, axes: tuple[int, ...], keepdims: bool, dtype: str | None, x: Array) -> tuple[Array, Any]:
    result = _reduce(name, axes, keepdims, dtype, x)
    return result, (x, result)


def _over(g: Array, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """The gradient of a result beside each element that it came from."""
    return jnp.broadcast_to(g if keepdims else jnp.expand_dims(g, axes), x.shape)


def _reduce_backward(name: str, axes: tuple[int, ...], keepdims: bool, dtype: str | None, saved: Any, g: Array) -> tuple[Array]:
    x, result = saved
    spread = _over(g, x, axes, keepdims)
    if name == "sum":
        return spread.astype(x.dtype),
    if name == "square_sum":
        return (2 * x.astype(g.dtype) * spread).astype(x.dtype),
    n = _over(result, x, axes, keepdims)
    if name == "norm":  # 0 at the origin
        return jnp.where(n == 0, 0, x.astype(g.dtype) * (spread / jnp.where(n == 0, 1, n))).astype(x.dtype),
    # To the first of equals; a NaN is the extreme of its sequence.
    winners = (x == n) | (jnp.isnan(x) & jnp.isnan(n))
    kept = [k for k in range(x.ndim) if k not in axes]
    order = [*kept, *sorted(axes)]
    moved = jnp.transpose(winners, order)
    rows = moved.reshape(*(x.shape[k] for k in kept), -1)
    first = (jnp.arange(rows.shape[-1]) == jnp.argmax(rows, axis=-1)[..., None]).reshape(moved.shape)
    return jnp.where(jnp.transpose(first, [order.index(k) for k in range(x.ndim)]), spread, 0),


_reduce.defvjp(_reduce_forward, _reduce_backward)


def sum(x: Array, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, dtype: Any = None) -> Array:
    """`lockstep.sum` with a gradient."""
    x = jnp.asarray(x)
    return _reduce("sum", _axes(x, axis), keepdims, _plain(dtype), x)


def square_sum(x: Array, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, dtype: Any = None) -> Array:
    """`lockstep.square_sum` with a gradient."""
    x = jnp.asarray(x)
    return _reduce("square_sum", _axes(x, axis), keepdims, _plain(dtype), x)


def norm(x: Array, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, dtype: Any = None) -> Array:
    """`lockstep.norm` with a gradient, which is 0 at the origin."""
    x = jnp.asarray(x)
    return _reduce("norm", _axes(x, axis), keepdims, _plain(dtype), x)


def max(x: Array, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Array:
    """`lockstep.max`; the gradient goes to the first of equals."""
    x = jnp.asarray(x)
    return _reduce("max", _axes(x, axis), keepdims, None, x)


def min(x: Array, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Array:
    """`lockstep.min`; the gradient goes to the first of equals."""
    x = jnp.asarray(x)
    return _reduce("min", _axes(x, axis), keepdims, None, x)


def argmax(x: Array, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Array:
    """`lockstep.argmax`: int64."""
    x = _jax.lax.stop_gradient(jnp.asarray(x))
    return _operation("argmax", (), _axes(x, axis), _settings(keepdims, None))(x)


def argmin(x: Array, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Array:
    """`lockstep.argmin`: int64."""
    x = _jax.lax.stop_gradient(jnp.asarray(x))
    return _operation("argmin", (), _axes(x, axis), _settings(keepdims, None))(x)


# ---- means and variances ------------------------------------------------------
# C writes both beside one another.
@functools.partial(_jax.custom_vjp, nondiff_argnums=(0, 1, 2, 3))
def _moment(which: int, axes: tuple[int, ...], correction: int, dtype: str | None, x: Array) -> Array:
    settings = (("correction", correction), *((("dtype", dtype),) if dtype else ()))
    return _operation("mean_var", (), axes, settings)(x)[..., which]


def _moment_backward(which: int, axes: tuple[int, ...], correction: int, dtype: str | None, x: Array, g: Array) -> tuple[Array]:
    wide = "float64" if _jax.config.jax_enable_x64 else "float32"
    n = functools.reduce(lambda a, k: a * x.shape[k], axes, 1)
    share = _over(g, x, axes, False).astype(wide) / (n - correction * which)
    if which:
        share = share * (2 * (x.astype(wide) - _over(_moment(0, axes, 0, wide, x), x, axes, False)))
    return share.astype(x.dtype),


_moment.defvjp(lambda which, axes, correction, dtype, x: (_moment(which, axes, correction, dtype, x), x), _moment_backward)


def _moments(which: int, x: Array, axis: int | Sequence[int] | None, correction: int, keepdims: bool, dtype: Any) -> Array:
    x = jnp.asarray(x)
    axes = _axes(x, axis)
    moved, _, last = _moved(x, axes)
    result = _moment(which, last, whole_number(correction, "correction"), _plain(dtype), moved)
    return jnp.expand_dims(result, axes) if keepdims else result


def mean(x: Array, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, dtype: Any = None) -> Array:
    """`lockstep.mean` of floats, with a gradient."""
    return _moments(0, x, axis, 0, keepdims, dtype)


def var(x: Array, axis: int | Sequence[int] | None = None, *, correction: int = 0, keepdims: bool = False, dtype: Any = None) -> Array:
    """`lockstep.var` of floats, with a gradient."""
    return _moments(1, x, axis, correction, keepdims, dtype)


# ---- products ----------------------------------------------------------------
@functools.partial(_jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _dot(axes: tuple[int, ...], keepdims: bool, dtype: str | None, x: Array, y: Array) -> Array:
    return _operation("dot", (), axes, _settings(keepdims, dtype))(x, y)


def _dot_backward(axes: tuple[int, ...], keepdims: bool, dtype: str | None, saved: Any, g: Array) -> tuple[Array, Array]:
    x, y = saved
    spread = _over(g, x, axes, keepdims)
    return (spread * y.astype(g.dtype)).astype(x.dtype), (spread * x.astype(g.dtype)).astype(y.dtype)


_dot.defvjp(lambda axes, keepdims, dtype, x, y: (_dot(axes, keepdims, dtype, x, y), (x, y)), _dot_backward)


def dot(x: Array, y: Array, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, dtype: Any = None) -> Array:
    """`lockstep.dot` of arrays of one shape, with gradients of both."""
    x, y = jnp.asarray(x), jnp.asarray(y)
    if x.shape != y.shape:
        raise InvalidArgument(f"y has the shape {y.shape}, x {x.shape}; give both one shape, as by jax.numpy.broadcast_to")
    axes = _axes(x, axis)
    (a, _, last), (b, _, _) = _moved(x, axes), _moved(y, axes)
    result = _dot(last, False, _plain(dtype), a, b)
    return jnp.expand_dims(result, axes) if keepdims else result


# ---- moves -------------------------------------------------------------------
@functools.partial(_jax.custom_vjp, nondiff_argnums=(0,))
def _permute(axes: tuple[int, ...], x: Array) -> Array:
    return _operation("permute", (), axes, ())(x)


_permute.defvjp(lambda axes, x: (_permute(axes, x), None), lambda axes, _, g: (_permute(tuple(axes.index(k) for k in range(len(axes))), g),))


_transpose = _jax.custom_vjp(lambda x: _operation("transpose", (), None, ())(x))
_transpose.defvjp(lambda x: (_transpose(x), None), lambda _, g: (_transpose(g),))


def transpose(x: Array) -> Array:
    """`lockstep.transpose`: the last two axes, with a gradient."""
    return _transpose(jnp.asarray(x))


def permute(x: Array, axes: Sequence[int]) -> Array:
    """`lockstep.permute` with a gradient."""
    x = jnp.asarray(x)
    return _permute(_axes(x, tuple(axes)), x)


@functools.partial(_jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _convert(dtype: str, axes: tuple[int, ...], scale: float, x: Array) -> Array:
    return _operation("convert", (), axes, (("dtype", dtype), ("scale", scale)))(x)


def _convert_backward(dtype: str, axes: tuple[int, ...], scale: float, like: Array, g: Array) -> tuple[Array]:
    return _convert(like.dtype.name, tuple(axes.index(k) for k in range(len(axes))), scale, g),


_convert.defvjp(lambda dtype, axes, scale, x: (_convert(dtype, axes, scale, x), jnp.zeros((), x.dtype)), _convert_backward)


def convert(x: Array, dtype: Any, *, axes: Sequence[int] | None = None, scale: float = 1.0) -> Array:
    """`lockstep.convert` with a gradient, which goes back through the same scale and axes."""
    x = jnp.asarray(x)
    return _convert(dtype_name(dtype), _axes(x, axes), float(scale), x)


# ---- running sums and stencils -----------------------------------------------
@functools.partial(_jax.custom_vjp, nondiff_argnums=(0, 1))
def _cumsum(axis: int, dtype: str | None, x: Array) -> Array:
    return _operation("cumsum", (), axis, (("dtype", dtype),) if dtype else ())(x)


def _cumsum_backward(axis: int, dtype: str | None, like: Array, g: Array) -> tuple[Array]:
    return jnp.flip(_cumsum(axis, None, jnp.flip(g, axis)), axis).astype(like.dtype),


_cumsum.defvjp(lambda axis, dtype, x: (_cumsum(axis, dtype, x), jnp.zeros((), x.dtype)), _cumsum_backward)


def cumsum(x: Array, axis: int = -1, *, dtype: Any = None) -> Array:
    """`lockstep.cumsum` along one axis, with a gradient."""
    x, order, last = _moved(jnp.asarray(x), _axes(jnp.asarray(x), axis)[:1])
    return _back(_cumsum(last[0], _plain(dtype), x), order)


@functools.partial(_jax.custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _stencil(axes: tuple[int, ...], weights: tuple[float, ...], mode: str, cval: float, sweeps: int, x: Array) -> Array:
    return _operation("stencil", (), axes, (("weights", weights), ("mode", mode), ("cval", cval), ("sweeps", sweeps)))(x)


def _stencil_backward(axes: tuple[int, ...], weights: tuple[float, ...], mode: str, cval: float, sweeps: int, _: Any, g: Array) -> tuple[Array]:
    # A star read from behind is the star of the transposed matrix.
    if mode in ("wrap", "grid-wrap", "constant", "grid-constant"):
        return _stencil(axes, weights[::-1], mode, 0.0, sweeps, g),
    radius = (len(weights) - 1) // (2 * len(axes))
    for _ in range(sweeps):
        longer = _stencil(axes, weights[::-1], "constant", 0.0, 1, jnp.pad(g, [(radius, radius) if k in axes else (0, 0) for k in range(g.ndim)]))
        if mode == "valid":
            g = longer
            continue
        # Elements that are copied beyond the ends get their copies' shares too, one after the other.
        inside = [slice(radius, radius + n) if k in axes else slice(None) for k, n in enumerate(g.shape)]
        total = longer[tuple(inside)]
        for axis in axes:
            for place, element in border_of(mode, g.shape[axis], radius):
                share = longer[(*inside[:axis], place, *inside[axis + 1:])]
                total = total.at[(*[slice(None)] * axis, element)].add(share)
        g = total
    return g,


_stencil.defvjp(lambda *arguments: (_stencil(*arguments), None), _stencil_backward)


def stencil(x: Array, weights: Sequence[float], *, mode: str = "reflect", cval: float = 0.0, sweeps: int = 1,
            axes: int | Sequence[int] | None = None) -> Array:
    """`lockstep.stencil` of general form, with a gradient."""
    x = jnp.asarray(x)
    return _stencil(_axes(x, axes), tuple(map(float, weights)), mode, float(cval), whole_number(sweeps, "sweeps"), x)


from ._jax_functions import (erf, exp, expm1, gelu, gelu_tanh, log, log1p, log_softmax, logsumexp, picked, reciprocal,  # noqa: E402
                             rsqrt, sigmoid, silu, softmax, softplus, sqrt, tanh)
from ._jax_rows import layer_norm, normalize, rms_norm  # noqa: E402
