"""Counts, any, all, products and reductions without NaNs, beside NumPy and the definition in code."""
import math
import warnings

import numpy as np
import pytest

import lockstep as ls

INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")
FLOATS = ("f2", "f4", "f8")


def values(dtype, shape, seed=1):
    draw = np.random.default_rng(seed)
    if dtype[0] == "f":
        x = draw.standard_normal(shape).astype(dtype)
        x[draw.random(shape) < 0.1] = np.nan
        x[draw.random(shape) < 0.1] = -0.0
        return x
    return draw.integers(0, 2, shape).astype(dtype) if dtype == "?" else draw.integers(-2 if dtype[0] == "i" else 0, 3, shape).astype(dtype)


@pytest.mark.parametrize("axis", (None, 0, 1, (0, 2)))
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_truths_and_extremes_as_numpy(dtype, axis):
    x = values(dtype, (7, 30, 11))
    for name in ("count_nonzero", "any", "all"):
        got, want = getattr(ls, name)(x, axis), getattr(np, name)(x, axis)
        assert np.array_equal(got, want) and np.asarray(got).dtype == np.asarray(want).dtype, name
    for name in ("nanmin", "nanmax"):
        if dtype != "?":
            got, want = getattr(ls, name)(x, axis), getattr(np, name)(x, axis)
            assert np.array_equal(got, want, equal_nan=dtype[0] == "f"), name


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1", "?"])
def test_nanmean_is_numpys(dtype):
    draw = np.random.default_rng(8)
    x = draw.integers(0, 2 if dtype == "?" else 100, (5, 7, 3)).astype(dtype)
    if x.dtype.kind == "f":
        x[1, 2, :], x[4, :, 1], x[0] = np.nan, np.nan, np.nan
    mask = draw.random((7, 3)) < 0.7
    for axis in (None, 0, 1, (0, 2)):
        for where in (None, mask):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's of sequences without a number
                want = np.nanmean(x.astype("f8"), axis, **({} if where is None else {"where": where}))
            got = ls.nanmean(x, axis, where=where)
            assert np.allclose(got, want, rtol=1e-6, equal_nan=True)
            assert got.dtype == ("f4" if dtype in ("f2", "f4") else "f8")
    assert ls.nanmean([1.0, float("nan"), 4.0]) == 2.5 and ls.nanmean(x, 1, keepdims=True).shape == (5, 1, 3)
    assert ls.Context().nanmean(np.array([np.nan, 3.0])) == 3


@pytest.mark.parametrize("dtype", FLOATS)
def test_nansum_is_the_sum_with_zeros(dtype):
    x = values(dtype, (40, 3000))
    for axis in (None, 0, 1):
        assert np.asarray(ls.nansum(x, axis)).tobytes() == np.asarray(ls.sum(np.nan_to_num(x, nan=0.0), axis)).tobytes()
    assert math.isnan(ls.nanmax(np.full(9, np.nan))) and float(ls.nansum(np.full(9, np.nan))) == 0


def test_products():
    assert ls.prod(np.array([], "f8")) == 1 and ls.prod(np.array([], "i4")) == 1
    ones = np.random.default_rng(2).choice([-1, 1, 1, 2], 60).astype("i8")
    assert int(ls.prod(ones)) == math.prod(ones.tolist())
    large = np.array([2**40, 2**40, -3, 0], "i8")
    assert int(ls.prod(large)) == 0  # an element is 0
    with pytest.raises(ls.Overflow, match="exact product"):
        ls.prod(large[:3])
    assert int(ls.prod(np.array([-(2**62), 2], "i8"))) == -(2**63)
    x = np.random.default_rng(3).uniform(0.9, 1.1, (20, 5000)).astype("f4")
    got = ls.prod(x, axis=1, dtype="f8")
    assert np.allclose(got, np.prod(x.astype("f8"), axis=1), rtol=1e-12)
    assert got.tobytes() == ls.prod(x, axis=1, dtype="f8", backend="cpu", variant="ref").tobytes()


def test_segments():
    x, offsets = np.array([1.0, np.nan, 0.0, 3.0, 4.0]), np.array([0, 2, 2, 5])
    assert ls.segment_prod(x, offsets)[1:].tolist() == [1.0, 0.0] and math.isnan(ls.segment_prod(x, offsets)[0])
    assert ls.segment_count_nonzero(x, offsets).tolist() == [2, 0, 2]
    assert ls.segment_any(x, offsets).tolist() == [True, False, True] and ls.segment_all(x, offsets).tolist() == [True, True, False]
    assert ls.segment_nansum(x, offsets).tolist() == [1.0, 0.0, 7.0]
    with pytest.raises(ls.Empty):
        ls.segment_nanmax(x, offsets)
    assert ls.group.nanmax([x, x[3:]])[1] == 4.0
