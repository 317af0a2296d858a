"""Random dtypes, shapes, layouts, producers and axes against order id 1 in NumPy and exact integers, bit for bit.

LOCKSTEP_EXAMPLES sets how many are tried."""
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from order_numpy import fused, moments, term_tree, tree
from test_exchange import PRODUCERS, numpy_of, present

import lockstep as ls

# Random arguments meet calls that mean another thing in NumPy; test_words.py has those warnings.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
EXAMPLES = int(os.environ.get("LOCKSTEP_EXAMPLES", "500"))
FLOATS, INTEGERS = ["f2", "f4", "f8"], ["i4", "i8", "i1", "u2", "?"]
tried = settings(max_examples=EXAMPLES, deadline=None, derandomize="LOCKSTEP_EXAMPLES" not in os.environ,
                 suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@st.composite
def arrays(draw, dtypes):
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    rank = draw(st.integers(0, 4))
    shape = [draw(st.integers(0 if rank > 1 else 1, 6)) for _ in range(rank)]
    if rank and draw(st.booleans()):  # a sequence longer than a leaf of the tree
        shape[draw(st.integers(0, rank - 1))] = draw(st.integers(1, 5000))
        if np.prod(shape) > 100_000:
            shape = [min(n, 9) for n in shape]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if dtype.kind == "f":
        x = rng.standard_normal(shape) * np.exp2(rng.integers(-10, 10, shape))
        x = np.where(rng.random(shape) < 0.1, rng.choice([0.0, -0.0, 1.0], shape), x)
        if draw(st.booleans()):
            x = np.where(rng.random(shape) < 0.02, rng.choice([np.inf, -np.inf, np.nan], shape), x)
        x = np.asarray(x).astype(dtype)
    elif dtype.kind == "c":
        x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    elif dtype.kind == "b":
        x = rng.random(shape) < 0.5
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        shift = draw(st.integers(0, dtype.itemsize * 8 - 2))
        x = rng.integers(low, high, shape, dtype, endpoint=True) >> dtype.type(shift)
    x = np.asarray(x)
    # Layouts that hold the same elements elsewhere.
    order = draw(st.permutations(range(rank)))
    x = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order).astype(int)) if rank else x
    for axis in range(rank):
        match draw(st.sampled_from(["as it is", "steps", "reversed", "inside"])):
            case "steps":
                x = np.repeat(x, 2, axis)[(slice(None),) * axis + (slice(None, None, 2),)]
            case "reversed":
                x = np.flip(np.ascontiguousarray(np.flip(x, axis)), axis)
            case "inside":
                x = np.pad(x, [(1, 2) if k == axis else (0, 0) for k in range(rank)])[(slice(None),) * axis + (slice(1, -2),)]
    return x


def axes_of(rank):
    if rank == 0:
        return st.sampled_from([None, ()])
    return st.one_of(st.none(), st.integers(-rank, rank - 1), st.lists(st.integers(0, rank - 1), unique=True).map(tuple))


def sequences(x, axis):
    """The elements of each result, in the array's order, and the shape of the results."""
    reduced = range(x.ndim) if axis is None else [k % x.ndim for k in ([axis] if isinstance(axis, int) else axis)]
    kept = [k for k in range(x.ndim) if k not in reduced]
    rows = np.ascontiguousarray(x.transpose(*kept, *sorted(reduced)) if x.ndim else x)
    shape = tuple(x.shape[k] for k in kept)
    return rows.reshape(int(np.prod(shape)), -1) if rows.size else np.zeros((int(np.prod(shape)), 0), x.dtype), shape


def given_by(producer, x):
    if producer == "array_api_strict" and x.dtype == np.float16 or producer == "jax" and x.dtype.itemsize == 8:
        producer = "numpy"
    if producer == "torch" and (x.dtype == np.uint16 or min(x.strides, default=0) < 0):
        producer = "numpy"
    if producer == "buffer" and x.dtype == bool:
        producer = "numpy"
    return PRODUCERS[producer](x)


producers = st.sampled_from([name for name in PRODUCERS if name != "own"])


@tried
@given(st.data(), arrays(FLOATS + INTEGERS), producers)
def test_sums(data, x, producer):
    axis = data.draw(axes_of(x.ndim), "axis")
    keepdims = data.draw(st.booleans(), "keepdims")
    squares = data.draw(st.booleans(), "squares") and x.dtype.kind == "f" and x.dtype != np.float64
    rows, shape = sequences(x, axis)
    source = given_by(producer, x)
    function = ls.square_sum if squares else ls.sum
    if x.dtype.kind == "f":
        with np.errstate(all="ignore"):
            want = np.array([tree(row.astype("f8"), squares) if row.size else 0.0 for row in rows]).reshape(shape)
        narrow = np.float32 if x.dtype != np.float64 else np.float64
        got = numpy_of(function(source, axis, keepdims=keepdims))
        with np.errstate(over="ignore"):
            assert got.dtype == narrow and bits(got) == bits(want.astype(narrow))
        if producer != "jax":
            got = numpy_of(function(source, axis, dtype="float64"))
            assert got.dtype == np.float64 and bits(got) == bits(want)
    else:
        exact = [sum(int(e) for e in row) for row in rows]
        if all(-(2**63) <= e < 2**63 for e in exact):
            if producer == "jax" and not all(-(2**31) <= e < 2**31 for e in exact):
                return
            got = numpy_of(ls.sum(source, axis, keepdims=keepdims))
            assert got.ravel().tolist() == exact
        else:
            with pytest.raises(ls.Overflow):
                ls.sum(source, axis)
            return
    assert got.size == int(np.prod(shape))


def bits(a):
    a = np.array(a)  # a copy: NaNs are compared as the canonical one
    if a.dtype.kind == "f":
        a[np.isnan(a)] = np.nan
    return a.tobytes()


@tried
@given(st.data(), arrays(FLOATS + INTEGERS), producers)
def test_extremes(data, x, producer):
    axis = data.draw(axes_of(x.ndim), "axis")
    keepdims = data.draw(st.booleans(), "keepdims")
    rows, shape = sequences(x, axis)
    source = given_by(producer, x)
    name = data.draw(st.sampled_from(["max", "min", "argmax", "argmin"]), "name")
    if rows.size == 0 and len(rows):
        with pytest.raises(ls.Empty):
            getattr(ls, name)(source, axis)
        return
    best = []
    for row in rows:
        nan = next((i for i, e in enumerate(row) if e != e), None)
        key = (lambda i: (row[i], not np.signbit(row[i]))) if x.dtype.kind == "f" else lambda i: int(row[i])
        pick = max if name.endswith("max") else min
        best.append(nan if nan is not None else pick(range(len(row)), key=key))
    got = numpy_of(getattr(ls, name)(source, axis, keepdims=keepdims))
    if keepdims:
        assert got.ndim == x.ndim
    if name.startswith("arg"):
        assert got.ravel().tolist() == best
    else:
        want = np.array([row[i] for row, i in zip(rows, best)], x.dtype)
        assert got.dtype == x.dtype and bits(got.reshape(want.shape)) == bits(want)


@tried
@given(st.data(), arrays(["u1", "f2", "f4", "f8", "c16"]), producers)
def test_moves(data, x, producer):
    axes = tuple(data.draw(st.permutations(range(x.ndim)), "axes"))
    source = given_by(producer, x) if x.dtype.kind != "c" else x
    got = numpy_of(ls.permute(source, axes))
    want = np.ascontiguousarray(x.transpose(axes)) if x.ndim else x
    assert got.shape == want.shape and got.tobytes() == want.tobytes()
    if x.ndim >= 2:
        out = np.zeros([n + 2 for n in x.swapaxes(-1, -2).shape], x.dtype)[tuple(slice(1, -1) for _ in x.shape)]
        ls.transpose(x, out=out)
        assert np.ascontiguousarray(out).tobytes() == np.ascontiguousarray(x.swapaxes(-1, -2)).tobytes()


@tried
@given(st.data(), arrays(["f4", "f8"]), st.sampled_from(["reflect", "mirror", "nearest", "wrap", "constant"]))
def test_stencils_agree_with_the_reference_variant(data, x, mode):
    if x.ndim == 0:
        return
    rank = data.draw(st.integers(1, min(3, x.ndim)), "rank")
    radius = data.draw(st.integers(1, 3), "radius")
    weights = data.draw(st.lists(st.floats(-4, 4, width=32), min_size=2 * radius * rank + 1, max_size=2 * radius * rank + 1), "weights")
    axes = tuple(range(x.ndim - rank, x.ndim))
    with np.errstate(all="ignore"):
        got = ls.stencil(x, weights, mode=mode, axes=axes, cval=2.5)
        assert bits(got) == bits(ls.stencil(np.array(x, order="C"), weights, mode=mode, axes=axes, cval=2.5, variant="ref"))
        assert got.shape == x.shape


PAIRS = {"dot": lambda a, b: a * b, "squared_distance": lambda a, b: (a - b) ** 2, "l1_distance": lambda a, b: abs(a - b)}


def by_the_order(name, a, b):
    """One sum in double."""
    a, b = a.astype("f8"), b.astype("f8")
    with np.errstate(all="ignore"):
        if name == "l1_norm":
            return tree(np.abs(a), False)
        if name == "l1_distance":
            return tree(np.abs(a - b), False)
        if name == "dot":
            return term_tree(len(a), lambda s, i, k: fused(a[i: i + k], b[i: i + k], s))
        d = a - b
        return term_tree(len(a), lambda s, i, k: fused(d[i: i + k], d[i: i + k], s))


def finite(x):
    return np.where(np.isfinite(x), x, 1).astype(x.dtype) if x.dtype.kind == "f" else x


@tried
@given(st.data(), arrays(FLOATS + INTEGERS), producers, st.sampled_from([*PAIRS, "l1_norm"]))
def test_sums_of_one_and_two_arrays(data, x, producer, name):
    axis = data.draw(axes_of(x.ndim), "axis")
    keepdims = data.draw(st.booleans(), "keepdims")
    shared = data.draw(st.booleans(), "one y for all")
    if x.size > 20_000:  # fractions are slow
        x = x[tuple(slice(0, 9) for _ in x.shape)]
    x = finite(x)
    rows, shape = sequences(x, axis)
    reduced = sorted(range(x.ndim) if axis is None else [k % x.ndim for k in ([axis] if isinstance(axis, int) else axis)])
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    y_shape = [x.shape[k] for k in reduced] if shared else x.shape
    y = np.resize(rng.permutation(x.ravel()), y_shape) if x.size else np.zeros(y_shape, x.dtype)
    if y.ndim and data.draw(st.booleans()):
        y = np.asfortranarray(y)
    others = rows if not x.size else np.broadcast_to(y.ravel(), rows.shape) if shared else sequences(y, axis)[0]
    sources = (given_by(producer, x),) if name == "l1_norm" else (given_by(producer, x), given_by(producer, y))
    function = getattr(ls, name)
    if x.dtype.kind == "f":
        want = np.array([by_the_order(name, a, b) if a.size else 0.0 for a, b in zip(rows, others)]).reshape(shape)
        narrow = np.float64 if x.dtype == np.float64 else np.float32
        got = numpy_of(function(*sources, axis, keepdims=keepdims))
        with np.errstate(over="ignore"):
            assert got.dtype == narrow and bits(got) == bits(want.astype(narrow))
        if producer != "jax":
            assert bits(numpy_of(function(*sources, axis, dtype="float64"))) == bits(want)
    else:
        term = PAIRS.get(name, lambda a, b: abs(a))
        exact = [sum(term(int(a), int(b)) for a, b in zip(p, q)) for p, q in zip(rows, others)]
        if not all(-(2**63) <= e < 2**63 for e in exact):
            with pytest.raises(ls.Overflow):
                function(*sources, axis)
            return
        if producer == "jax" and not all(-(2**31) <= e < 2**31 for e in exact):
            return
        got = numpy_of(function(*sources, axis, keepdims=keepdims))
        assert got.ravel().tolist() == exact
    assert got.shape == (tuple(1 if k in reduced else n for k, n in enumerate(x.shape)) if keepdims else shape)


@tried
@given(st.data(), arrays(FLOATS), producers)
def test_means_and_variances(data, x, producer):
    axis = data.draw(axes_of(x.ndim), "axis")
    correction = data.draw(st.integers(0, 2), "correction")
    if x.size > 20_000:
        x = x[tuple(slice(0, 9) for _ in x.shape)]
    x = finite(x)
    rows, shape = sequences(x, axis)
    means, variances = [], []
    for row in rows:
        n, total, squares = moments(row.astype("f8")) if row.size else (0, 0.0, np.nan)
        means.append(total / n if n else np.nan)
        variances.append(squares / (n - correction) if n > correction else np.nan)
    source = given_by(producer, x)
    wide = {} if producer == "jax" else {"dtype": "float64"}
    narrow = np.float64 if x.dtype == np.float64 else np.float32
    for keywords, dtype in ((wide, np.float64 if wide else narrow), ({}, narrow)):
        want = [np.array(v).reshape(shape).astype(dtype) for v in (means, variances)]
        mean, variance = ls.mean_var(source, axis, correction=correction, **keywords)
        for got, alone, expected in zip((mean, variance), (ls.mean(source, axis, **keywords), ls.var(source, axis, correction=correction, **keywords)), want):
            assert numpy_of(got).dtype == dtype and bits(numpy_of(got)) == bits(expected) and bits(numpy_of(alone)) == bits(expected)
        root = numpy_of(ls.std(source, axis, correction=correction, **keywords))
        assert root.dtype == dtype and bits(root) == bits(np.sqrt(np.array(variances).reshape(shape)).astype(dtype))
    kept = numpy_of(ls.mean(source, axis, keepdims=True))
    assert kept.ndim == x.ndim and kept.size == len(rows)


assert present("numpy")
