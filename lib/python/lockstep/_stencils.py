"""Names that SciPy's users know, and weights in the order that `stencil` reads them."""
from collections.abc import Sequence
from typing import Any, Literal

from . import _core
from ._errors import InvalidArgument, whole_number
from ._kinds import rank_of


Mode = Literal["reflect", "mirror", "nearest", "wrap", "constant", "valid", "grid-mirror", "grid-wrap", "grid-constant"]


def correlate1d(x: Any, weights: Sequence[float] | Any, axis: int = -1, *, mode: Mode = "reflect", cval: float = 0.0,
                origin: int = 0, out: Any = None, **options: Any) -> Any:
    """Correlate along one axis, as `scipy.ndimage.correlate1d`.

    Parameters
    ----------
    x : array of float32 or float64
    weights : sequence of float
        An odd number of them, 3 to 33.
    axis : int, default -1
        For any other axis than the last, two packed copies are made, because the C library reads stencils along packed axes.
    mode : {"reflect", "mirror", "nearest", "wrap", "constant", "valid"}
        The values assumed beyond the ends; "valid" makes the result shorter.
    cval : float
        The value of "constant".
    origin : int
        Only 0.
    out : array, optional
        Array for the result, with its shape and dtype.
    **options
        `stream`, `context`, `backend`, `variant`, `check`, `copy`, as for every operation.

    Returns
    -------
    array
        The array type of `x`. Arithmetic is in the dtype of `x`: SciPy computes float32 in double, so its last bits differ.

    Examples
    --------
    >>> import numpy as np
    >>> ls.correlate1d(np.array([0.0, 0.0, 1.0, 0.0]), [1, 2, 3])
    array([0., 3., 2., 1.])
    """
    if origin != 0:
        raise InvalidArgument(f"origin is {origin}; only 0 is there: shift x instead")
    rank, axis = rank_of(x), whole_number(axis, "axis")
    if not -rank <= axis < rank:
        raise InvalidArgument(f"axis is {axis}; the array has {rank} axes, so give {-rank} to {rank - 1}")
    axis %= rank
    if axis == rank - 1:
        return _core.stencil(x, weights, mode=mode, cval=cval, axes=-1, out=out, **options)
    if options.get("copy") is False:
        raise BufferError(f"copy is False, but axis {axis} is not the last, so that x would have to be copied; omit copy=")
    moved = [k for k in range(rank) if k != axis] + [axis]
    back = [moved.index(k) for k in range(rank)]
    passed_on = {k: v for k, v in options.items() if k != "variant"}
    result = _core.stencil(_core.permute(x, moved, **passed_on), weights, mode=mode, cval=cval, axes=-1, **options)
    return _core.permute(result, back, out=out, **passed_on)


class Star(list[float]):
    """Weights that know of what star they are: nine of two axes could be those of a 3x3 kernel."""

    def __init__(self, weights: Sequence[float], radius: int) -> None:
        super().__init__(weights)
        self.radius = radius


def laplace_weights(rank: int, order: int = 2) -> list[float]:
    """The weights of the Laplace operator on a grid of step 1, for `stencil`.

    Parameters
    ----------
    rank : {1, 2, 3}
        Axes of the grid.
    order : {2, 4, 6, 8}
        Order of accuracy; the radius is half of it.

    Returns
    -------
    list of float

    Examples
    --------
    >>> ls.laplace_weights(2)
    [1.0, 1.0, -4.0, 1.0, 1.0]
    """
    # Central differences of the second derivative: centre, then k = 1, 2, ...
    taps = {2: (-2.0, 1.0), 4: (-5 / 2, 4 / 3, -1 / 12), 6: (-49 / 18, 3 / 2, -3 / 20, 1 / 90),
            8: (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)}
    if order not in taps or rank not in (1, 2, 3):
        raise InvalidArgument(f"rank is {rank} and order {order}; give a rank of 1 to 3 and an order of 2, 4, 6 or 8")
    centre, *side = taps[order]
    return star(rank * centre, *[[*reversed(side), *side]] * rank)


def star(center: float, *axis_taps: Sequence[float]) -> list[float]:
    """Weights of a star from those of each axis, in the order that `stencil` reads them.

    Parameters
    ----------
    center : float
        The weight of the element itself.
    *axis_taps : sequence of float
        For each axis, outermost first, the 2 * radius weights of its neighbours without the centre, from the negative
        side to the positive one. Every axis has the same radius: a zero is a tap too, and 0 * inf is NaN.

    Returns
    -------
    list of float

    Examples
    --------
    >>> ls.star(0, [-1, 1], [-2, 2])
    [-1.0, -2.0, 0.0, 2.0, 1.0]
    """
    lengths = {len(taps) for taps in axis_taps}
    if len(lengths) != 1 or min(lengths) % 2 or not 1 <= len(axis_taps) <= 3:
        raise InvalidArgument(f"axis_taps have the lengths {[len(t) for t in axis_taps]}; give 1 to 3 of one even length")
    half = lengths.pop() // 2
    before = [float(w) for taps in axis_taps for w in taps[:half]]
    after = [float(w) for taps in reversed(axis_taps) for w in taps[half:]]
    return Star([*before, float(center), *after], half)


def border_of(mode: str, n: int, radius: int) -> list[tuple[int, int]]:
    """For each element that a mode adds to the ends of an axis of n: its place in the longer axis, and the element that it is a copy of. The
    gradients of `lockstep.torch` and `lockstep.jax` give their shares back in this order."""
    def inside(i: int) -> int:
        if mode == "nearest":
            return min(max(i, 0), n - 1)
        period = n if mode in ("wrap", "grid-wrap") else 2 * n if mode in ("reflect", "grid-mirror") else max(2 * n - 2, 1)
        i %= period
        return i if i < n else 2 * n - 1 - i if mode in ("reflect", "grid-mirror") else period - i
    return [(i + radius, inside(i)) for i in [*range(-radius, 0), *range(n, n + radius)]] if n else []
