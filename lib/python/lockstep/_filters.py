"""Filters of whole kernels, made of one-dimensional stencils and sums, so that their bits are the same everywhere too."""
from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from . import _core
from ._errors import InvalidArgument, whole_number, whole_numbers
from ._kinds import rank_of, space_of
from ._stencils import Mode, border_of, correlate1d

_MOST = 33  # weights along one axis


def _checked(axes: Any, rank: int, count: int) -> tuple[int, ...]:
    if axes is None:
        if rank != count:
            raise InvalidArgument(f"x has {rank} axes, the filter {count}; name those that it runs along by axes=, as axes=(0, 1) of pictures (height, width, colour)")
        return tuple(range(rank))
    given = whole_numbers(axes, "axes")
    found = tuple(k + rank * (k < 0) for k in given)
    if len(found) != count or len(set(found)) != count or any(not 0 <= k < rank for k in found):
        raise InvalidArgument(f"axes is {axes!r}; name {count} of the array's {rank} axes, each once")
    return found


def _odd(length: Any, name: str) -> int:
    n = whole_number(length, name)
    if n < 1 or n % 2 == 0 or n > _MOST:
        raise InvalidArgument(f"{name} is {n}; give an odd number, 1 to {_MOST}")
    return n


def _of_copies(options: dict[str, Any]) -> dict[str, Any]:
    if options.get("copy") is False:
        raise BufferError("copy is False, but filters of several axes make copies; omit copy=")
    return {k: v for k, v in options.items() if k != "variant"}


def _kernel(weights: Any) -> tuple[tuple[int, ...], dict[tuple[int, ...], float]]:
    """The shape of a kernel and its elements by place."""
    found: dict[tuple[int, ...], float] = {}

    def walk(part: Any, place: tuple[int, ...]) -> tuple[int, ...]:
        if isinstance(part, (str, bytes)) or not hasattr(part, "__len__") or not getattr(part, "shape", (1,)):
            try:
                found[place] = float(part)
            except (TypeError, ValueError):
                raise InvalidArgument(f"an element of weights is {part!r}; give numbers") from None
            return ()
        shapes = {walk(one, (*place, i)) for i, one in enumerate(part)}
        if len(shapes) != 1:
            raise InvalidArgument("weights has rows of different lengths, or none; give a kernel of one to three axes")
        return (len(part), *shapes.pop())

    shape = walk(weights, ())
    if not 1 <= len(shape) <= 3 or any(n % 2 == 0 for n in shape) or all(n == 1 for n in shape):
        raise InvalidArgument(f"weights has the shape {shape}; give a kernel of one to three axes, each of odd length, with more than one element")
    return shape, found


def _longer(space: Any, x: Any, axis: int, radius: int, mode: str, cval: float) -> Any:
    """x with the elements that a mode has beyond the ends of an axis."""
    if mode == "valid" or not radius:
        return x
    n, torch = x.shape[axis], space.__name__ == "torch"
    if mode in ("constant", "grid-constant"):
        ends = list(x.shape)
        ends[axis] = radius
        end = space.full(tuple(ends), cval, dtype=x.dtype, **({"device": x.device} if torch else {}))
        return (space.cat if torch else getattr(space, "concatenate", None) or space.concat)([end, x, end], axis)
    beyond = [element for _, element in border_of(mode, n, radius)]
    places = [*beyond[:radius], *range(n), *beyond[radius:]]
    return x.index_select(axis, space.tensor(places, device=x.device)) if torch else space.take(x, space.asarray(places), axis=axis)


def correlate(x: Any, weights: Any, *, axes: int | Sequence[int] | None = None, mode: Mode = "reflect", cval: float = 0.0, out: Any = None,
              **options: Any) -> Any:
    """Correlate with a kernel of one to three axes, as `scipy.ndimage.correlate`.

    Parameters
    ----------
    x : array of float32 or float64
    weights : nested sequence or array of float
        The kernel: odd lengths, at most 33 along its last axis of more than one element.
    axes : int or tuple of int, optional
        The axes of `x` that the kernel's axes run along, as ``(0, 1)`` of pictures (height, width, colour); by default all, of an array with
        as many as the kernel.
    mode : {"reflect", "mirror", "nearest", "wrap", "constant", "valid"}
        The values assumed beyond the ends, by SciPy's names; "valid" makes the result shorter.
    cval : float
        The value of "constant".
    out : array, optional
        Array for the result, with its shape and dtype.
    **options
        `stream`, `context`, `backend`, `variant`, `check`, as for every operation; the variant is one of stencil.

    Returns
    -------
    array
        The array type and dtype of `x`.

    Notes
    -----
    Each row of the kernel is a one-dimensional stencil in the dtype of `x`; the rows' results are summed in double by the order of `sum` and
    rounded once. They are all kept until then: as many arrays of the size of `x` as the kernel has rows. A star needs none of
    them: give its weights to `stencil`. A zero is a tap too: 0 * inf is NaN.

    Examples
    --------
    >>> x = np.zeros((4, 4))
    >>> x[1, 1] = 1
    >>> ls.correlate(x, [[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    array([[9., 8., 7., 0.],
           [6., 5., 4., 0.],
           [3., 2., 1., 0.],
           [0., 0., 0., 0.]])
    """
    passed_on = _of_copies(options)
    shape, kernel = _kernel(weights)
    rank = rank_of(x)
    along = _checked(axes, rank, len(shape))
    # The last axis of the kernel that is one goes by stencils, the others by shifts.
    last = max(k for k, n in enumerate(shape) if n > 1)
    _odd(shape[last], f"the length of axis {last} of weights")
    shifted = [k for k in range(len(shape)) if k != last]
    order = [*(k for k in range(rank) if k not in along), *(along[k] for k in shifted), along[last]]
    moved = order != list(range(rank))
    space, y = space_of(_core.permute(x, order, **passed_on) if moved else x)
    first = rank - len(shape)
    lengths = []
    for i, k in enumerate(shifted):
        y = _longer(space, y, first + i, shape[k] // 2, mode, cval)
        lengths.append(y.shape[first + i] - shape[k] + 1)
        if lengths[-1] < 1 and mode == "valid":
            raise InvalidArgument(f"mode is valid, but axis {along[k]} has {y.shape[first + i]} elements, fewer than the kernel's {shape[k]}")
    terms = []
    for at in product(*(range(shape[k]) for k in shifted)):
        window = y[(slice(None),) * first + tuple(slice(i, i + n) for i, n in zip(at, lengths))] if shifted else y
        taps = [kernel[tuple({**dict(zip(shifted, at)), last: i}[k] for k in range(len(shape)))] for i in range(shape[last])]
        terms.append(_core.stencil(window, taps, mode=mode, cval=cval, axes=-1, **options))
    if len(terms) == 1:
        total = terms[0]
    else:
        total = _core.sum(space.stack(terms), axis=0, dtype=x.dtype if hasattr(x, "dtype") else "float64", out=None if moved else out, **passed_on)
    if moved or (out is not None and len(terms) == 1):
        return _core.permute(total, [order.index(k) for k in range(rank)], out=out, **passed_on)
    return total


def correlate_separable(x: Any, *weights: Sequence[float] | Any, axes: int | Sequence[int] | None = None, mode: Mode = "reflect", cval: float = 0.0,
                        out: Any = None, **options: Any) -> Any:
    """Correlate with the product of one-dimensional kernels: `correlate1d` along one axis after another.

    Parameters
    ----------
    x : array of float32 or float64
    *weights : sequence of float
        The weights along each axis: an odd number of them, 3 to 33.
    axes : int or tuple of int, optional
        The axes, in the order of `weights`; by default all, of an array with as many.
    mode, cval, out, **options
        As of `correlate1d`; "constant" has `cval` beyond the ends at each step.

    Returns
    -------
    array
        The array type and dtype of `x`, rounded to it after each axis.

    Examples
    --------
    >>> ls.correlate_separable(np.eye(3), [1, 2, 1], [-1, 0, 1], mode="constant")
    array([[ 1., -2., -1.],
           [ 2.,  0., -2.],
           [ 1.,  2., -1.]])
    """
    along = _checked(axes, rank_of(x), len(weights))
    if not weights:
        raise InvalidArgument("there are no weights; give those of one axis or more")
    for i, (axis, taps) in enumerate(zip(along, weights)):
        x = correlate1d(x, taps, axis, mode=mode, cval=cval, out=out if i == len(weights) - 1 else None, **options)
    return x


def uniform_filter(x: Any, size: int | Sequence[int] = 3, *, axes: int | Sequence[int] | None = None, mode: Mode = "reflect", cval: float = 0.0,
                   out: Any = None, **options: Any) -> Any:
    """The mean of a box around each element, as `scipy.ndimage.uniform_filter`.

    Parameters
    ----------
    x : array of float32 or float64
    size : int or sequence of int, default 3
        Elements of the box along each axis: odd, at most 33.
    axes : int or tuple of int, optional
        The axes of the box; by default all, or one for each size.
    mode, cval, out, **options
        As of `correlate`.

    Returns
    -------
    array
        The array type and dtype of `x`: sums of ones along one axis after another, then multiplied by one over the elements of the box.

    Examples
    --------
    >>> ls.uniform_filter(np.array([0.0, 3.0, 6.0, 3.0]))
    array([1., 3., 4., 4.])
    """
    passed_on = _of_copies(options)
    rank = rank_of(x)
    sizes = whole_numbers(size, "size")
    count = len(sizes) if hasattr(size, "__iter__") else rank if axes is None else len(whole_numbers(axes, "axes"))
    along = _checked(axes, rank, count)
    boxes = [_odd(n, "size") for n in (sizes if hasattr(size, "__iter__") else sizes * count)]
    outside = cval
    for axis, n in zip(along, boxes):
        if n > 1:
            x = correlate1d(x, [1.0] * n, axis, mode=mode, cval=outside, **options)
            outside *= n
    return _core.convert(x, x.dtype if hasattr(x, "dtype") else "float64", scale=1 / prod(boxes), out=out, **passed_on)
