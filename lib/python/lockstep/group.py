"""Groups: one operation on many arrays in one call, for many small ones such as the gradients of a model.

Each function takes a list of arrays where lockstep's function of the same name takes one, and gives the list of results, with
the bits of the single calls. Arrays may differ in shape and dtype, but lie all on one device. Arguments are for all of them; those
that are arrays (``y``, ``offsets``, ``weight``, ``bias``, ``residual``) may be lists too, with one for each, and ``out`` is a list.
With ``stack=True`` results of one shape come as one array with one more axis in front, which ``out`` then is.

The CPU shares all arrays among one team of threads. CUDA computes `square_sum` and `norm` of floats, `transpose` and rows as of `layer_norm`
by one launch for each dtype, and other operations one after the other. Errors name the array. A call that needs a copy in another type or order of
axes runs by itself. `mean`, `var`, `std` and `mean_var` run one after another, without
`stack` and without a plan.

`plan` keeps a group of arrays that stay where they are: what costs time is then done once.

>>> import numpy as np, lockstep as ls
>>> arrays = [np.ones(4, "f4"), np.ones((3, 3), "f4")]
>>> ls.group.square_sum(arrays)
[np.float32(4.0), np.float32(9.0)]
>>> p = ls.group.plan("norm", arrays, stack=True)
>>> p()
array([2., 3.], dtype=float32)
>>> arrays[0] *= 2
>>> p()
array([4., 3.], dtype=float32)
"""
from collections.abc import Callable, Iterable
from typing import Any

from . import _core
from ._core import GroupPlan, group as _group, plan_group as _plan_group
from ._errors import Error, InvalidArgument

# The operations on one array of which there are groups.
_NAMES = ("transpose", "permute", "sum", "square_sum", "norm", "max", "min", "argmax", "argmin", "count_nonzero",
          "any", "all", "prod", "nansum", "nanmax", "nanmin", "segment_sum", "segment_square_sum", "segment_norm",
          "segment_max", "segment_min", "segment_argmax", "segment_argmin", "segment_count_nonzero", "segment_any",
          "segment_all", "segment_prod", "segment_nansum", "segment_nanmax", "segment_nanmin", "stencil", "shuffle",
          "normalize", "rms_norm", "layer_norm", "softmax", "log_softmax", "logsumexp", "picked", "segment_softmax",
          "segment_log_softmax", "segment_logsumexp", "segment_picked", "cumsum", "cummax", "cummin", "dot",
          "squared_distance", "l1_distance", "l1_norm", "convert", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt",
          "reciprocal", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "erf", "softplus")


def _of(name: str) -> Callable[..., Any]:
    def function(arrays: Iterable[Any], *arguments: Any, stack: bool = False, **keywords: Any) -> Any:
        return _group(name, arrays, *arguments, stack=stack, **keywords)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = (f"`lockstep.{name}` of each of the arrays, by one call.\n\nParameters\n----------\narrays\n    A list of arrays of one device.\n"
                        f"*arguments, **keywords\n    Those of `lockstep.{name}`, for all arrays; lists of arrays have one for each.\n"
                        "stack\n    Give one array of all results, along a new first axis.\n\n"
                        "Returns\n-------\nlist\n    A result for each array, or with stack one array.")
    return function


transpose = _of("transpose")
permute = _of("permute")
sum = _of("sum")
square_sum = _of("square_sum")
norm = _of("norm")
max = _of("max")
min = _of("min")
argmax = _of("argmax")
argmin = _of("argmin")
count_nonzero = _of("count_nonzero")
any = _of("any")
all = _of("all")
prod = _of("prod")
nansum = _of("nansum")
nanmax = _of("nanmax")
nanmin = _of("nanmin")
segment_sum = _of("segment_sum")
segment_square_sum = _of("segment_square_sum")
segment_norm = _of("segment_norm")
segment_max = _of("segment_max")
segment_min = _of("segment_min")
segment_argmax = _of("segment_argmax")
segment_argmin = _of("segment_argmin")
segment_count_nonzero = _of("segment_count_nonzero")
segment_any = _of("segment_any")
segment_all = _of("segment_all")
segment_prod = _of("segment_prod")
segment_nansum = _of("segment_nansum")
segment_nanmax = _of("segment_nanmax")
segment_nanmin = _of("segment_nanmin")
stencil = _of("stencil")
shuffle = _of("shuffle")
normalize = _of("normalize")
rms_norm = _of("rms_norm")
layer_norm = _of("layer_norm")
softmax = _of("softmax")
log_softmax = _of("log_softmax")
logsumexp = _of("logsumexp")
picked = _of("picked")
segment_softmax = _of("segment_softmax")
segment_log_softmax = _of("segment_log_softmax")
segment_logsumexp = _of("segment_logsumexp")
segment_picked = _of("segment_picked")
cumsum = _of("cumsum")
cummax = _of("cummax")
cummin = _of("cummin")
dot = _of("dot")
squared_distance = _of("squared_distance")
l1_distance = _of("l1_distance")
l1_norm = _of("l1_norm")
convert = _of("convert")
exp = _of("exp")
expm1 = _of("expm1")
log = _of("log")
log1p = _of("log1p")
sqrt = _of("sqrt")
rsqrt = _of("rsqrt")
reciprocal = _of("reciprocal")
tanh = _of("tanh")
sigmoid = _of("sigmoid")
silu = _of("silu")
gelu = _of("gelu")
gelu_tanh = _of("gelu_tanh")
erf = _of("erf")
softplus = _of("softplus")


def _by_one(name: str) -> Callable[..., Any]:
    def function(arrays: Iterable[Any], *arguments: Any, out: Any = None, **keywords: Any) -> list[Any]:
        arrays = list(arrays)
        outs = [None] * len(arrays) if out is None else list(out)
        if len(outs) != len(arrays):
            raise InvalidArgument(f"out has {len(outs)} elements, arrays {len(arrays)}; give one for each")
        results = []
        for i, (x, to) in enumerate(zip(arrays, outs)):
            try:
                results.append(getattr(_core, name)(x, *arguments, out=to, **keywords))
            except (Error, TypeError, BufferError) as e:
                raise type(e)(f"arrays[{i}]: {e}") from e
        return results

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"`lockstep.{name}` of each of the arrays, one after another: a list of results. It takes the arguments of the function, and a list as out."
    return function


mean = _by_one("mean")
var = _by_one("var")
std = _by_one("std")
mean_var = _by_one("mean_var")


def plan(function: str, arrays: Iterable[Any], *arguments: Any, **keywords: Any) -> GroupPlan:
    """A group of calls that is prepared once, for arrays that stay where they are.

    Parameters
    ----------
    function
        The operation's name, such as "square_sum".
    arrays
        A list of arrays. The plan keeps them, and reads at each call what their memory then holds.
    *arguments, **keywords
        Those of the function, also out and stack. Without out the plan has memory for the results, the same at each call.

    Returns
    -------
    GroupPlan
        Called without arguments it gives the list of results. It takes ``stream`` and ``check``, and has the attributes of a `Plan`.

    Raises
    ------
    Unsupported
        An array would have to be copied first; arrays of several libraries on a device; arrays of JAX, which are immutable.

    Notes
    -----
    Each call checks that the arrays still lie where they did, because an array may get other memory (``x.data = y``), and raises
    InvalidArgument where one does not. A plan can be captured in a CUDA graph after it ran once on that stream.

    Examples
    --------
    >>> p = ls.group.plan("max", [np.arange(3), np.arange(5)])
    >>> p(), p.count, p.backend
    ([np.int64(2), np.int64(4)], 2, 'cpu')
    """
    return _plan_group(function, arrays, *arguments, **keywords)


def norms(arrays: Iterable[Any], *, dtype: Any = None, out: Any = None, **keywords: Any) -> Any:
    """The 2-norm of each of many arrays, as one array: what clipping of gradients begins with.

    Parameters
    ----------
    arrays
        A list of arrays of floats or integers, of any shapes, of one device.
    dtype
        Of the result; needed where arrays of several dtypes have norms of several dtypes.
    out
        An array of one axis, with an element for each.
    **keywords
        ``stream``, ``context``, ``backend``, ``variant``, ``check`` and ``copy``, as of `lockstep.norm`.

    Returns
    -------
    array
        Of the arrays' kind; element i has the bits of ``lockstep.norm(arrays[i])``.

    Examples
    --------
    >>> each = ls.norms([np.ones(4), np.ones((3, 3))])
    >>> each, ls.norm(each)
    (array([2., 3.]), np.float64(3.605551275463989))
    """
    return _group("norm", arrays, stack=True, dtype=dtype, out=out, **keywords)


__all__ = ["GroupPlan", "mean", "mean_var", "norms", "plan", "std", "var", *_NAMES]
