"""The arrays of lockstep.accelerate: a subclass of NumPy's, whose functions and ufuncs come by here."""
from __future__ import annotations

from typing import Any

import numpy

from . import _core, array_api
from ._errors import Unsupported, UnsupportedDtype

_REDUCED = ("axis", "dtype", "out", "keepdims", "initial", "where")


def _plain(x: Any) -> Any:
    return x.view(numpy.ndarray) if isinstance(x, Accelerated) else x


def _wrapped(x: Any) -> Any:
    return x.view(Accelerated) if isinstance(x, numpy.ndarray) else x


def _into(out: Any, result: Any) -> Any:
    if out is None:
        return _wrapped(result)
    numpy.copyto(_plain(out), result, casting="same_kind")
    return out


def _accumulated(core: Any) -> Any:
    name = {"cumsum": "cumulative_sum", "nansum": "sum"}.get(core.__name__, core.__name__)

    def call(x: Any, *, dtype: Any = None, out: Any = None, **rest: Any) -> Any:
        x = x.view("int8") if x.dtype == bool else x
        return _into(out, array_api._accumulated(core, x, dtype, name, rest))
    return call


def _moment(core: Any) -> Any:
    def call(x: Any, *, dtype: Any = None, out: Any = None, mean: Any = None, ddof: Any = 0, correction: Any = None, **rest: Any) -> Any:
        if mean is not None:
            raise Unsupported(f"{core.__name__}: mean is given, but lockstep computes it; omit it")
        if core is not _core.mean:
            rest["correction"] = ddof if correction is None else correction
        return _into(out, core(x, dtype=dtype or (x.dtype if x.dtype.kind == "f" else "float64"), **rest))
    return call


def _plainly(core: Any) -> Any:
    return lambda x, *, out=None, **rest: _into(out, core(x, **rest))


# A function, or a ufunc's method, to what computes it and the names of its arguments after the first, in NumPy's order.
_ways: dict[Any, tuple[Any, tuple[str, ...]]] = {}
for _name in ("sum", "prod", "nansum"):
    _ways[getattr(numpy, _name)] = _accumulated(getattr(_core, _name)), _REDUCED
for _name in ("max", "min", "nanmax", "nanmin"):
    _ways[getattr(numpy, _name)] = _plainly(getattr(_core, _name)), ("axis", "out", "keepdims", "initial", "where")
for _name in ("max", "min"):
    _ways[getattr(numpy, "a" + _name)] = _ways[getattr(numpy, _name)]
for _name in ("any", "all"):
    _ways[getattr(numpy, _name)] = _plainly(getattr(_core, _name)), ("axis", "out", "keepdims", "where")
for _name in ("argmax", "argmin"):
    _ways[getattr(numpy, _name)] = _plainly(getattr(_core, _name)), ("axis", "out", "keepdims")
_ways[numpy.mean] = _moment(_core.mean), ("axis", "dtype", "out", "keepdims", "where")
for _name in ("var", "std"):
    _ways[getattr(numpy, _name)] = _moment(getattr(_core, _name)), ("axis", "dtype", "out", "ddof", "keepdims", "where", "mean", "correction")
_ways[numpy.count_nonzero] = _plainly(_core.count_nonzero), ("axis", "keepdims")
_ways[numpy.cumsum] = _accumulated(_core.cumsum), ("axis", "dtype", "out")
for _ufunc, _function in ((numpy.add, numpy.sum), (numpy.multiply, numpy.prod), (numpy.maximum, numpy.max), (numpy.minimum, numpy.min),
                          (numpy.logical_and, numpy.all), (numpy.logical_or, numpy.any)):
    _ways[_ufunc, "reduce"] = _ways[_function][0], _REDUCED
_ways[numpy.add, "accumulate"] = _ways[numpy.cumsum]
_FUNCTIONS = {getattr(numpy, _name): getattr(_core, _name) for _name in ("exp", "expm1", "log", "log1p", "tanh", "sqrt", "reciprocal")}
_ROUNDED_ONCE = (numpy.sqrt, numpy.reciprocal)  # of doubles too, on every machine


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    axes = x.ndim if axis is None else len(axis) if isinstance(axis, tuple) else 1
    if x.dtype.kind != "c" and (ord is None or ord == 2 and axes == 1):
        return _wrapped(_core.norm(x, axis=axis, keepdims=keepdims, dtype=x.dtype if x.dtype.kind == "f" else "float64"))
    return numpy.linalg.norm(x, ord, axis, keepdims)


def _vdot(x: Any, y: Any) -> Any:
    x, y = numpy.asarray(_plain(x)), numpy.asarray(_plain(y))
    wide = numpy.result_type(x, y)
    result = _core.vdot(x.astype(wide, copy=False).ravel(), y.astype(wide, copy=False).ravel(), dtype=wide if wide.kind == "f" else None)
    return result if wide.kind == "f" else array_api._fitting(x, wide.name, numpy.asarray(result), wide.name, "vdot")[()]


def _call(way: tuple[Any, tuple[str, ...]], x: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    compute, names = way
    given = {**dict(zip(names, args)), **kwargs}
    # NumPy's mark for what was not given, and values that say nothing.
    given = {k: v for k, v in given.items() if v is not numpy._NoValue and not (v is None and k != "axis") and not (k == "where" and v is True)}
    if isinstance(given.get("out"), tuple):
        given["out"], = given["out"]
    given = {k: _plain(v) if k == "where" else v for k, v in given.items()}
    try:
        return compute(numpy.asarray(_plain(x)), **given)
    except UnsupportedDtype as e:
        raise UnsupportedDtype(f"{e}; NumPy's own function takes the array's view(numpy.ndarray)") from None


class Accelerated(numpy.ndarray):
    """NumPy's array with lockstep's functions."""

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _ways:
            first = args[0] if args else kwargs.pop("a")
            return _call(_ways[func], first, args[1:], kwargs)
        if func is numpy.linalg.norm:
            first = args[0] if args else kwargs.pop("x")
            return _norm(_plain(first), *args[1:], **kwargs)
        if func is numpy.vdot:
            return _vdot(*args, **kwargs)
        return super().__array_function__(func, types, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        if (ufunc, method) in _ways:
            if "axis" not in kwargs and len(inputs) < 2:
                kwargs["axis"] = 0
            if ufunc not in (numpy.add, numpy.multiply):
                kwargs.pop("dtype", None)  # (bool, for logic)
            return _call(_ways[ufunc, method], inputs[0], inputs[1:], kwargs)
        core = _FUNCTIONS.get(ufunc) if method == "__call__" else None
        if core and not (ufunc in _ROUNDED_ONCE and inputs[0].dtype == "float64"):
            if rest := [k for k in kwargs if k not in ("out", "where", "dtype") or k == "where" and kwargs[k] is not True]:
                raise Unsupported(f"{ufunc.__name__}: {rest[0]} is given, which lockstep does not take; give the array's view(numpy.ndarray)")
            out = kwargs.get("out", (None,))[0]
            return _call((_plainly(core), ()), inputs[0], (), {"dtype": kwargs.get("dtype"), "out": out})
        into = kwargs.get("out")
        if into:
            kwargs["out"] = tuple(map(_plain, into))
        result = getattr(ufunc, method)(*map(_plain, inputs), **kwargs)
        if into:
            return into[0] if len(into) == 1 else into
        return tuple(map(_wrapped, result)) if isinstance(result, tuple) else _wrapped(result)

    # These methods of NumPy's would take its sum and divide by themselves; those of other names come by a ufunc.
    def mean(self, *args: Any, **kwargs: Any) -> Any:
        return _call(_ways[numpy.mean], self, args, kwargs)

    def var(self, *args: Any, **kwargs: Any) -> Any:
        return _call(_ways[numpy.var], self, args, kwargs)

    def std(self, *args: Any, **kwargs: Any) -> Any:
        return _call(_ways[numpy.std], self, args, kwargs)
