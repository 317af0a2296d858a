"""lockstep's functions by the names, signatures and dtypes of the Python array API standard.

The namespace is partial: it has what lockstep computes, listed in ``__all__``, and nothing else. Its functions take arrays of
NumPy, PyTorch, CuPy, JAX and other libraries, and give the same kind back. Code that is written for a whole namespace
takes `over`, which fills the gaps with another library's functions:

>>> import numpy as np
>>> import lockstep.array_api as xp
>>> xp.sum(np.asarray([1, 2, 3], dtype="uint8"))
np.uint64(6)
>>> whole = xp.over(np)
>>> whole.mean(whole.linspace(0, 1, 5))
np.float64(0.5)
"""
from __future__ import annotations

import builtins
import importlib
import math
from typing import Any

from . import _core, _kinds
from ._errors import InvalidArgument, Overflow, Unsupported, UnsupportedDtype, whole_numbers

__all__ = ["all", "any", "argmax", "argmin", "astype", "count_nonzero", "cumulative_sum", "exp", "expm1", "linalg", "log", "log1p",
           "matrix_transpose", "max", "mean", "min", "over", "permute_dims", "prod", "reciprocal", "sqrt", "std", "sum", "tanh", "var", "vecdot"]
__array_api_version__ = "2024.12"

_RANGES = {f"{sign}int{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) if not sign else (0, (1 << bits) - 1) for sign in ("", "u") for bits in (8, 16, 32, 64)}
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_KINDS = {"bool": ("bool",), "signed integer": ("int8", "int16", "int32", "int64"), "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
          "real floating": ("float32", "float64"), "complex floating": ()}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"]


def _dtype(x: Any, function: str, kinds: str) -> str:
    """The name of x's dtype, which must be of the kinds that the standard gives the function."""
    if not hasattr(x, "dtype"):
        raise TypeError(f"{function}: x is a {type(x).__name__}; give an array")
    name: str = _kinds.dtype_name(x.dtype)
    if name not in _FLOATS and (kinds == "floats" or name not in _RANGES and (kinds == "numbers" or name != "bool")):
        wanted = {"floats": "floats", "numbers": "floats or integers", "all": "floats, integers or bool"}[kinds]
        hint = "; count_nonzero counts what is true" if name == "bool" and function == "sum" else ""
        raise UnsupportedDtype(f"{function}: x holds {name}; give {wanted}, as by astype(x, ...){hint}")
    return name


def _fitting(x: Any, name: str, total: Any, wanted: str, function: str) -> Any:
    """An exact integer result in the type that is wanted, into which it must fit."""
    have = _kinds.dtype_name(total.dtype)
    if have == wanted:
        return total
    low, high = _RANGES[wanted]
    # What the sign of x or the width of the type allows needs no look at the numbers.
    inside = have == "int64" and wanted == "uint64" and name.startswith("uint")
    if not inside and math.prod(total.shape) and (int(_core.min(total)) < low or int(_core.max(total)) > high):
        raise Overflow(f"{function}: a result is not from {low} to {high}, the range of {wanted}; give dtype=int64, or a float type")
    return _kinds.widened(total, f"the result of {function}", wanted)


def _accumulated(function: Any, x: Any, dtype: Any, what: str, keywords: dict[str, Any]) -> Any:
    """A sum or product in the type that the standard says: that of floats, the widest integers, or dtype."""
    name = _dtype(x, what, "numbers")
    if dtype is None:
        # (PyTorch computes next to nothing in uint64.)
        unsigned = "int64" if _kinds.library_of(x) == _kinds.TORCH and name != "uint64" else "uint64"
        wanted = name if name in _FLOATS else unsigned if name.startswith("uint") else "int64"
    else:
        wanted = _kinds.dtype_name(dtype)
    if wanted in _FLOATS:
        if name in _FLOATS:
            return function(x, dtype=wanted, **keywords)
        if what == "sum":
            return function(x, dtype=wanted, **keywords)  # exact, rounded once
        return function(_kinds.widened(x, "x", "float64"), dtype=wanted, **keywords)
    if wanted not in _RANGES or name in _FLOATS:
        raise UnsupportedDtype(f"{what}: dtype is {wanted} and x holds {name}; give a float type{'' if name in _FLOATS else ' or an integer type'}")
    return _fitting(x, name, function(x, **keywords), wanted, what)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum, in lockstep's order; exact for integers.

    Floats keep their dtype, signed integers give int64, unsigned ones uint64 (int64 for PyTorch), unless dtype says another.
    Overflow is raised where another library would wrap around.
    """
    return _accumulated(_core.sum, x, dtype, "sum", {"axis": axis, "keepdims": keepdims})


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product, in lockstep's order; exact for integers. Dtypes are those of `sum`."""
    return _accumulated(_core.prod, x, dtype, "prod", {"axis": axis, "keepdims": keepdims})


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The running sums along an axis, which may be omitted if there is only one. Dtypes are those of `sum`."""
    rank = _kinds.rank_of(x)
    if axis is None and rank != 1:
        raise InvalidArgument(f"cumulative_sum: axis is None and x has {rank} axes; give the axis")
    axis = 0 if axis is None else whole_numbers(axis)[0]
    result = _accumulated(_core.cumsum, x, dtype, "cumulative_sum", {"axis": axis})
    if not include_initial:
        return result
    space, result = _kinds.space_of(result)
    shape = list(result.shape)
    shape[axis] = 1
    there = {"device": result.device} if _kinds.library_of(x) in (_kinds.TORCH, _kinds.JAX, _kinds.ARRAY_API) else {}
    # (NumPy 1 has the first name only.)
    return (getattr(space, "concatenate", None) or space.concat)([space.zeros(tuple(shape), dtype=result.dtype, **there), result], axis=axis)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean of floats, in their dtype."""
    return _core.mean(x, axis, keepdims=keepdims, dtype=_dtype(x, "mean", "floats"))


def _spread(function: Any, x: Any, axis: Any, correction: float, keepdims: bool) -> Any:
    name = _dtype(x, function.__name__, "floats")
    if not math.isfinite(correction) or correction < 0:
        raise InvalidArgument(f"{function.__name__}: correction is {correction}; give a finite number of at least 0")
    if correction == int(correction):
        return function(x, axis, correction=int(correction), keepdims=keepdims, dtype=name)
    axes = range(_kinds.rank_of(x)) if axis is None else whole_numbers(axis)
    n = math.prod(x.shape[k] for k in axes)
    if n <= correction:  # NaN, as for a whole number
        return function(x, axis, correction=n, keepdims=keepdims, dtype=name)
    scale = n / (n - correction)
    return _core.convert(function(x, axis, keepdims=keepdims, dtype="float64"), name, scale=scale if function is _core.var else math.sqrt(scale))


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The variance of floats, in their dtype: the squares are divided by n - correction."""
    return _spread(_core.var, x, axis, correction, keepdims)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The root of the variance."""
    return _spread(_core.std, x, axis, correction, keepdims)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The greatest element; a NaN wins, and 0 is greater than -0."""
    _dtype(x, "max", "numbers")
    return _core.max(x, axis, keepdims=keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The least element; a NaN wins, and -0 is less than 0."""
    _dtype(x, "min", "numbers")
    return _core.min(x, axis, keepdims=keepdims)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the greatest element stands first, as int64."""
    _dtype(x, "argmax", "numbers")
    return _core.argmax(x, axis, keepdims=keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the least element stands first, as int64."""
    _dtype(x, "argmin", "numbers")
    return _core.argmin(x, axis, keepdims=keepdims)


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether no element is 0 or False."""
    _dtype(x, "all", "all")
    return _core.all(x, axis, keepdims=keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether an element is not 0 or False."""
    _dtype(x, "any", "all")
    return _core.any(x, axis, keepdims=keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """How many elements are not 0, as int64."""
    _dtype(x, "count_nonzero", "all")
    return _core.count_nonzero(x, axis, keepdims=keepdims)


def permute_dims(x: Any, /, axes: Any) -> Any:
    """The array with its axes in another order, always a packed copy."""
    return _core.permute(x, axes)


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes swapped, always a packed copy."""
    return _core.matrix_transpose(x)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The elements as another type: rounded once, and what does not fit an integer type becomes its least or greatest value.

    The device must be that of x, or None.
    """
    name, wanted = _dtype(x, "astype", "all"), _kinds.dtype_name(dtype)
    if wanted not in _RANGES and wanted not in _FLOATS and wanted != "bool":
        raise UnsupportedDtype(f"astype: dtype is {wanted}; give a type of floats or integers, or bool")
    if device is not None and device != getattr(x, "device", None):
        raise Unsupported(f"astype: device is {device} and x lies on {getattr(x, 'device', None)}; move it by its own library, as x.to_device(...)")
    return x if name == wanted and not copy else _core.convert(x, wanted)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The sum of products along an axis of both arrays, whose other axes broadcast; in the type to which both promote.

    Integers are exact: Overflow is raised if a sum does not fit their type.
    """
    names = [_dtype(x, "vecdot", "numbers") for x in (x1, x2)]
    axis = whole_numbers(axis)[0]
    if not -builtins.min(len(x1.shape), len(x2.shape)) <= axis < 0:
        raise InvalidArgument(f"vecdot: axis is {axis}; give one from the end, from {-builtins.min(len(x1.shape), len(x2.shape))} to -1")
    if x1.shape[axis] != x2.shape[axis]:
        raise InvalidArgument(f"vecdot: axis {axis} has {x1.shape[axis]} elements of x1 and {x2.shape[axis]} of x2; give as many of both")
    space, x1 = _kinds.space_of(x1)
    if names[0] != names[1]:
        wanted = _kinds.dtype_name(space.result_type(x1, x2))
        if wanted not in _FLOATS and wanted not in _RANGES or wanted in _FLOATS and not set(names) <= set(_FLOATS):
            raise UnsupportedDtype(f"vecdot: x1 holds {names[0]} and x2 {names[1]}, which the standard promotes to no common type; convert one by astype()")
        x1, x2 = (x if name == wanted else _kinds.widened(x, "x1 or x2", wanted) for x, name in zip((x1, x2), names))
        names[0] = wanted
    x1, x2 = (space.broadcast_tensors if space.__name__ == "torch" else space.broadcast_arrays)(x1, x2)
    result = _core.dot(x1, x2, axis=axis, dtype=names[0] if names[0] in _FLOATS else None)
    return result if names[0] in _FLOATS else _fitting(x1, names[0], result, names[0], "vecdot")


def _elementwise(name: str) -> Any:
    function = getattr(_core, name)

    def each(x: Any, /) -> Any:
        _dtype(x, name, "floats")
        return function(x)

    each.__name__ = each.__qualname__ = name
    each.__doc__ = f"`lockstep.{name}` of each element, correctly rounded; of floats of 16 and 32 bits."
    return each


exp, expm1, log, log1p, sqrt, tanh, reciprocal = map(_elementwise, ("exp", "expm1", "log", "log1p", "sqrt", "tanh", "reciprocal"))


class linalg:
    """The functions of the standard's linear algebra that lockstep has."""
    vecdot = staticmethod(vecdot)
    matrix_transpose = staticmethod(matrix_transpose)

    @staticmethod
    def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
        """The 2-norm, a correctly rounded root, or with ord=1 the sum of magnitudes, in the dtype of the floats in x."""
        if ord not in (1, 2):
            raise Unsupported(f"vector_norm: ord is {ord}; lockstep has 1 and 2")
        name = _dtype(x, "vector_norm", "floats")
        return (_core.norm if ord == 2 else _core.l1_norm)(x, axis=axis, keepdims=keepdims, dtype=name)


class _Info:
    """What the standard's inspection asks for; of a library, less the dtypes that lockstep computes nothing of."""

    def __init__(self, rest: Any) -> None:
        self._rest, self._own = rest, getattr(rest, "__array_namespace_info__", lambda: None)()

    def capabilities(self) -> dict[str, Any]:
        """Those of the arrays: lockstep has no array type of its own."""
        return dict(self._own.capabilities()) if self._own else {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self) -> Any:
        """The library's, or "cpu"."""
        return self._own.default_device() if self._own else "cpu"

    def devices(self) -> Any:
        """The library's, or ["cpu"]."""
        return self._own.devices() if self._own else ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The library's."""
        return dict(self._own.default_dtypes(device=device)) if self._own else {
            "real floating": self._of("float64"), "complex floating": self._of("complex128"), "integral": self._of("int64"), "indexing": self._of("int64")}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The library's dtypes of a kind or of several, by name; none are complex."""
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else tuple(kind)
        if unknown := [k for k in kinds if k not in _KINDS]:
            raise InvalidArgument(f"kind is {unknown[0]!r}; give one of {', '.join(_KINDS)}, or a tuple of them")
        return {name: self._of(name) for k in kinds for name in _KINDS[k]}

    def _of(self, name: str) -> Any:
        return self._rest.dtype(name) if self._rest.__name__ == "numpy" else getattr(self._rest, name)


def __array_namespace_info__() -> Any:
    """The standard's inspection of the namespace, for NumPy's arrays; ``over(library)`` has one for another library's."""
    return _Info(importlib.import_module("numpy"))


class _Linalg:
    def __init__(self, rest: Any) -> None:
        self._rest = rest

    def __getattr__(self, name: str) -> Any:
        return getattr(linalg, name, None) or getattr(self._rest, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._rest), "matrix_transpose", "vecdot", "vector_norm"})


class _Over:
    """A whole namespace: lockstep's functions, and the rest from another library."""

    def __init__(self, rest: Any) -> None:
        self.__name__ = f"lockstep.array_api over {rest.__name__}"
        self.__array_api_version__ = getattr(rest, "__array_api_version__", __array_api_version__)
        self._rest = rest
        if hasattr(rest, "linalg"):
            self.linalg = _Linalg(rest.linalg)

    def __array_namespace_info__(self) -> Any:
        return _Info(self._rest)

    def __getattr__(self, name: str) -> Any:
        return globals()[name] if name in __all__ and name not in ("over", "linalg") else getattr(self._rest, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._rest), *(name for name in __all__ if name != "over")})

    def __repr__(self) -> str:
        return f"<{self.__name__}>"


def over(namespace: Any) -> Any:
    """A whole namespace: lockstep's functions where it has them, and another library's for the rest.

    What comes from the library has the library's bits, which may differ from one machine to the next; `__all__` tells what is
    lockstep's. What lockstep refuses, such as sums of complex numbers, is an error and does not go to the library.

    Parameters
    ----------
    namespace : module
        NumPy 2, array_api_strict, or array_api_compat.torch, .cupy or .numpy (for NumPy 1); any namespace of the standard.

    Examples
    --------
    >>> import numpy as np
    >>> import lockstep.array_api
    >>> xp = lockstep.array_api.over(np)
    >>> xp.sum(xp.ones((2, 3)), axis=1)
    array([3., 3.])
    """
    if not hasattr(namespace, "asarray"):
        raise TypeError(f"namespace is {namespace!r}, which has no asarray; give a namespace of the array API, as numpy or array_api_compat.torch")
    return _Over(namespace)
