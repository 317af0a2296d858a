"""lockstep.accelerate: NumPy's own functions with lockstep's bits and speed, of the arrays that ask for it."""
import sys
from typing import Any

from . import _kinds


def accelerate(x: Any) -> Any:
    """A view of a NumPy array of which NumPy's functions are lockstep's.

    The view is an instance of a subclass of `numpy.ndarray` and shares the memory of `x`. NumPy itself is not changed: other arrays,
    and ``y.view(numpy.ndarray)``, are computed by NumPy as always. Of the view, lockstep computes sum, prod, mean, var, std, max, min,
    argmax, argmin, any, all, count_nonzero, cumsum, nansum, nanmax, nanmin, vdot and the vector 2-norm of `numpy.linalg.norm`, exp, expm1,
    log, log1p, tanh, and sqrt and reciprocal of floats of at most 32 bits; as functions, as methods, and as `reduce` and `accumulate` of ufuncs.
    Everything else is NumPy's own, with its bits. Arrays that come out are views of the same kind.

    Parameters
    ----------
    x : array
        Of NumPy, or what `numpy.asarray` makes one of.

    Returns
    -------
    numpy.ndarray
        An instance of the subclass.

    Notes
    -----
    What lockstep has but not for the dtype, such as the sum of complex numbers or exp of float64, raises an error: it does not silently
    become NumPy's. Dtypes of results are NumPy's; integer sums that do not fit raise Overflow where NumPy wraps around. CuPy has no such way in: its
    list of accelerators is closed, and its functions do not ask the array. Give its arrays to lockstep's functions, or to those of
    `lockstep.array_api`; PyTorch's to `lockstep.torch.deterministic`.

    Examples
    --------
    >>> y = ls.accelerate(np.array([1.0, 2.0, 3.5], "f4"))
    >>> np.sum(y), y.max()
    (np.float32(6.5), np.float32(3.5))
    >>> np.mean(ls.accelerate(np.arange(4)))
    np.float64(1.5)
    """
    library = _kinds.library_of(x) if not isinstance(x, (list, tuple, int, float)) else _kinds.NUMPY
    if library in (_kinds.TORCH, _kinds.CUPY, _kinds.JAX, _kinds.NUMBA):
        name = type(x).__module__.partition(".")[0]
        hint = "use `with lockstep.torch.deterministic()`" if library == _kinds.TORCH else "call the functions of lockstep or lockstep.array_api"
        raise TypeError(f"x is an array of {name}, of which only NumPy's functions are redirected; {hint}")
    from ._accelerated import Accelerated
    result = sys.modules["numpy"].asarray(x).view(Accelerated)
    if result.dtype.hasobject:
        raise TypeError(f"x makes an array of {result.dtype}; give numbers")
    return result
