"""`where` and `initial` of reductions: a copy with the value that changes nothing in place of elements that are left out, and one more join
of each result with the first value. What is computed is computed by lockstep's own operations, so the bits are the same everywhere."""
import re
from collections.abc import Sequence
from math import prod as product
from typing import Any

from . import _core
from ._errors import Empty, InvalidArgument, UnsupportedDtype, whole_number
from ._kinds import dtype_name, exact_quotients, is_integer, library_of, name_of_type, space_of, widened

# What changes no result of a reduction; extremes have their type's ends.
_NEUTRAL = {"sum": 0, "square_sum": 0, "norm": 0, "l1_norm": 0, "nansum": 0, "prod": 1, "any": 0, "all": 1, "count_nonzero": 0}
_MOMENTS = ("mean", "var", "std", "mean_var")


def reduce(function: Any, x: Any, keywords: dict[str, Any]) -> Any:
    """function(x, where=, initial=, ...)."""
    where, initial, name = keywords.pop("where", None), keywords.pop("initial", None), function.__name__
    space, x = space_of(x)
    if where is not None:
        if keywords.get("copy") is False:
            raise BufferError("copy is False, but where needs a copy of x; omit one of them")
        mask = _mask(space, x, where)
        if name in _MOMENTS:
            return _moments(space, name, x, mask, keywords)
        extreme = name not in _NEUTRAL
        if extreme and initial is None and not (name.startswith("nan") and not is_integer(name_of_type(x))):
            _none_empty(name, mask, keywords)
        x = space.where(mask, x, _number(space, x, _end(name, x) if extreme else _NEUTRAL[name]))
    return function(x, **keywords) if initial is None else _joined(space, function, name, x, initial, keywords)


def nanmean(x: Any, axis: int | Sequence[int] | None = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None, out: Any = None,
            **options: Any) -> Any:
    """Take the mean of the elements that are not NaN, as `numpy.nanmean`.

    Parameters
    ----------
    x : array of bool, integers or floats
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    dtype : optional
        Of the result, a float type: by default float64 of float64, integers and bool, else float32.
    keepdims : bool
        Keep reduced axes with length 1.
    where : array of bool, optional
        Which elements count, broadcast to the shape of `x`.
    out : array, optional
        Array for the result, with its shape and dtype.
    **options
        `stream`, `context`, `backend`, `variant`, `check`, as for every operation.

    Returns
    -------
    array
        The array type of `x`. NaN where no element is a number.

    Notes
    -----
    ``mean(x, where=x == x)``: the sum in double by the order of `sum`, +0.0 in place of a NaN, divided by the number of the others and rounded
    once. Needs a copy of `x`.

    Examples
    --------
    >>> ls.nanmean(np.array([[1.0, np.nan], [3.0, 6.0]]), axis=0)
    array([2., 6.])
    """
    space, x = space_of(x)
    if not is_integer(name_of_type(x)):
        numbers = x == x
        where = numbers if where is None else numbers & _mask(space, x, where)
    return _core.mean(x, axis, dtype, keepdims=keepdims, where=where, out=out, **options)


def _number(space: Any, x: Any, value: Any, dtype: Any = None) -> Any:
    """A number beside x, of its dtype."""
    if space.__name__ == "torch":
        return space.tensor(value, dtype=dtype or x.dtype, device=x.device)
    return space.asarray(value, dtype=dtype or x.dtype)


def _mask(space: Any, x: Any, where: Any) -> Any:
    mask = where
    if space.__name__ == "torch":
        mask = space.as_tensor(where, device=x.device)
    elif library_of(where) != library_of(x):
        mask = space.asarray(where)
    if name_of_type(mask) != "bool":
        raise InvalidArgument(f"where holds {name_of_type(mask)}; give booleans, as where != 0")
    try:
        return space.broadcast_to(mask, tuple(x.shape))
    except (ValueError, RuntimeError):
        raise InvalidArgument(f"where has the shape {tuple(mask.shape)}, which does not broadcast to that of x, {tuple(x.shape)}") from None


def _none_empty(name: str, mask: Any, keywords: Any) -> None:
    chosen = _core.any(mask, keywords.get("axis"))
    if not bool(chosen.all()):
        raise Empty(f"where takes no element of a sequence, of which there is no {name}; give initial")


def _end(name: str, x: Any) -> Any:
    """The least value of x's dtype for a maximum, the greatest for a minimum; NaN where NaNs are passed over."""
    dtype, greatest = name_of_type(x), name.endswith("min")
    if dtype == "bool":
        return greatest
    if not is_integer(dtype):
        return float("nan") if name.startswith("nan") else float("inf") if greatest else -float("inf")
    low, high = _range(dtype)
    return high if greatest else low


def _range(dtype: str) -> tuple[int, int]:
    bits = int(re.sub("[^0-9]", "", dtype)) - (dtype[0] == "i")
    return -(2**bits) if dtype[0] == "i" else 0, 2**bits - 1


def _joined(space: Any, function: Any, name: str, x: Any, initial: Any, keywords: Any) -> Any:
    out = keywords.pop("out", None)
    where_it_runs = {k: v for k, v in keywords.items() if k not in ("axis", "dtype", "keepdims")}
    extreme, dtype = name not in _NEUTRAL, name_of_type(x)
    given = keywords.get("dtype")
    if not extreme:
        whole = is_integer(dtype) and (given is None or is_integer(dtype_name(given)))
        last = {"dtype": given or ("float64" if dtype == "float64" else "float32")}
        if whole:
            last = {}
            keywords.pop("dtype", None)
        else:
            keywords["dtype"] = "float64"
            if is_integer(dtype) and name != "sum":
                raise UnsupportedDtype(f"x holds {dtype}, whose {name} comes as integers; omit dtype, or give x as float64")
        each = function(x, **keywords)
    elif _length(x, keywords.get("axis")):
        last, each = {}, function(x, **keywords)
    else:  # of no elements: the first value alone
        last, shape = {}, _core.count_nonzero(x, **keywords).shape
        each = space.broadcast_to(_number(space, x, _end(name, x)), tuple(shape))
    first = _number(space, each, _first(initial, name_of_type(each)))
    return function(space.stack([each, space.broadcast_to(first, tuple(each.shape))]), axis=0, out=out, **last, **where_it_runs)


def _first(initial: Any, dtype: str) -> Any:
    """initial as a number that the dtype holds."""
    if dtype == "bool":
        if initial not in (0, 1):
            raise InvalidArgument(f"initial is {initial!r}; give a bool, as x holds")
        return bool(initial)
    if not is_integer(dtype):
        try:
            return float(initial)
        except (TypeError, ValueError):
            raise InvalidArgument(f"initial is {initial!r}; give a number") from None
    low, high = _range(dtype)
    try:
        number = whole_number(initial, "initial")
    except TypeError:
        number = high + 1
    if not low <= number <= high:
        raise InvalidArgument(f"initial is {initial!r}, but the results are {dtype}; give an int that it holds, or x as floats")
    return number


def _axes(x: Any, axis: Any) -> Any:
    rank = len(x.shape)
    return range(rank) if axis is None else [k % rank for k in (axis if hasattr(axis, "__iter__") else (axis,))] if rank else ()


def _length(x: Any, axis: Any) -> int:
    return product(x.shape[k] for k in _axes(x, axis))


def _moments(space: Any, name: str, x: Any, mask: Any, keywords: Any) -> Any:
    """The mean is the sum divided by the number of elements; the variance that of the squares about the mean, in double."""
    out, given, dtype = keywords.pop("out", None), keywords.pop("dtype", None), name_of_type(x)
    ddof, correction = keywords.pop("ddof", None), keywords.pop("correction", None)
    if ddof is not None and correction is not None:
        raise InvalidArgument("correction and ddof are two names of one number; give one of them")
    correction = whole_number((ddof if correction is None else correction) or 0, "correction")
    if correction < 0:
        raise InvalidArgument(f"correction is {correction}; give 0 or more")
    wanted = dtype_name(given) if given is not None else "float64" if dtype == "float64" or is_integer(dtype) else "float32"
    options = {k: v for k, v in keywords.items() if k not in ("keepdims",)}

    def total(function: Any, y: Any, keep: Any, **of_sum: Any) -> Any:
        return function(y, keepdims=keep, **of_sum, **options)

    def mean(keep: Any) -> Any:
        count = total(_core.count_nonzero, mask, keep)
        if is_integer(dtype):
            sums = total(_core.sum, space.where(mask, x, _number(space, x, 0)), keep)
            return exact_quotients(space, sums, count), count
        return _over(space, total(_core.sum, space.where(mask, x, _number(space, x, 0)), keep, dtype="float64"), count), count

    def rounded(result: Any, to: Any) -> Any:
        if to is None and name_of_type(result) == wanted:
            return result
        made = _core.convert(result, wanted, out=to)
        return made[()] if to is None and space.__name__ == "numpy" and not made.shape else made

    keep = keywords.get("keepdims", False)
    outs = out if name == "mean_var" and out is not None else (out, out)
    means, count = mean(keep)
    if name == "mean":
        return rounded(means, out)
    wide = x if dtype == "float64" else widened(x, "x", "float64")
    centred = space.where(mask, wide - mean(True)[0] if len(x.shape) else wide - means, _number(space, wide, 0.0))
    spread = _over(space, total(_core.square_sum, centred, keep, dtype="float64"), count - correction)
    if name == "std":
        spread = space.sqrt(spread)
    return (rounded(means, outs[0]), rounded(spread, outs[1])) if name == "mean_var" else rounded(spread, outs[1])


def _over(space: Any, sums: Any, count: Any) -> Any:
    """sums / count in double, NaN of no elements."""
    some = count > 0
    one = _number(space, count, 1)
    number = widened(space.where(some, count, one), "where", "float64")
    return space.where(some, sums / number, _number(space, sums, float("nan")))[()]
