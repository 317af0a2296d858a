"""The cases of NumPy's, SciPy's and the Array API's own tests, under our names.

Not here, since we do not have them: argmax of text, dates, objects and complex numbers; correlate1d with weights of even
number or one, and with an origin; sums that wrap."""
import importlib.util
import itertools
import warnings

import numpy as np
import pytest

import lockstep as ls

NAN = np.nan
# numpy/_core/tests/test_multiarray.py, TestArgmax, TestArgmin
PLACES = [([0, 1, 2, 3, NAN], 4, 4), ([0, 1, 2, NAN, 3], 3, 3), ([NAN, 0, 1, 2, 3], 0, 0), ([NAN, 0, NAN, 2, 3], 0, 0),
          ([NAN] * 5, 0, 0), ([0.0, -0.0], 0, 1), ([1.0] * 5, 0, 0), ([3, 3, 3, 3, 2, 2, 2, 2], 0, 4), ([0, 1, 2, 3], 3, 0),
          ([3, 2, 1, 0], 0, 3), ([-np.inf, np.inf, NAN], 2, 2), ([np.inf, 1.0, np.inf], 0, 1)]


@pytest.mark.parametrize("values,top,bottom", PLACES, ids=str)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_places_of_extremes(values, top, bottom, dtype):
    for repeat in (1, 129, 2048):  # each value often, so that every way through a sequence meets them
        a = np.repeat(np.array(values, dtype), repeat)
        assert (ls.argmax(a), ls.argmin(a)) == (top * repeat, bottom * repeat)
        for name, place in (("max", top), ("min", bottom)):
            got = getattr(ls, name)(a)
            assert got.tobytes() == np.array(values, dtype)[place].tobytes() or np.isnan(got) and np.isnan(values[place])
    if not np.isnan(values).any() and len(set(values)) > 1 and not 0 in values[:1]:
        for kind in ("i1", "i4", "i8") if np.isfinite(values).all() else ():
            assert ls.argmax(np.array(values, kind)) == top and ls.argmin(np.array(values, kind)) == bottom


@pytest.mark.parametrize("values,top", [([False] * 4 + [True], 4), ([False] * 3 + [True, False], 3), ([True] + [False] * 4, 0),
                                        ([True, False, True, False, False], 0), ([False] * 5, 0)])
def test_places_of_truths(values, top):
    assert ls.argmax(np.array(values)) == top and ls.argmin(~np.array(values)) == top
    assert ls.max(np.array(values)) == any(values) and ls.min(np.array(values)) == all(values)


@pytest.mark.parametrize("shape,axis", [((5,), 0), ((5, 4), 1), ((5, 4, 3), 0), ((5, 4, 3, 2), 2), ((5, 4, 3, 2), -1), ((5,), None), ((3, 4, 1, 2), 2),
                                        ((3, 4), None)])
def test_keepdims_of_places(shape, axis):  # test_np_argmin_argmax_keepdims
    a = np.random.default_rng(1).normal(size=shape)
    for name in ("argmax", "argmin"):
        for keepdims in (True, False):
            want = getattr(np, name)(a, axis=axis, keepdims=keepdims)
            assert np.array_equal(getattr(ls, name)(a, axis=axis, keepdims=keepdims), want)
            out = np.zeros(want.shape, np.int64)
            assert getattr(ls, name)(a, axis=axis, keepdims=keepdims, out=out) is out and np.array_equal(out, want)


def test_nothing_has_no_extreme():  # test_ret_is_out, test_zero_size
    for name in ("max", "min", "argmax", "argmin"):
        for shape, axis in (((0,), None), ((0, 3), 0), ((3, 0), 1), ((0, 0), None)):
            with pytest.raises(ValueError):
                getattr(ls, name)(np.zeros(shape), axis=axis)
        for shape, axis in (((0, 3), 1), ((3, 0), 0)):
            assert getattr(ls, name)(np.zeros(shape), axis=axis).shape == (0,)


# numpy/_core/tests/test_ufunc.py, test_sum: sums of 1 to v, which double and every wider type hold exactly
@pytest.mark.parametrize("v", [0, 1, 2, 7, 8, 9, 16, 31, 32, 33, 100, 127, 128, 129, 300, 1024, 1026, 1235])
@pytest.mark.parametrize("dtype", ["i2", "i4", "i8", "u4", "f4", "f8"])
def test_sums_of_the_first_numbers(v, dtype):
    d = np.arange(1, v + 1).astype(dtype)
    for a in (d, d[::-1], np.repeat(d, 2)[::2]):
        assert ls.sum(a) == v * (v + 1) // 2
        assert not v or ls.cumsum(a)[-1] == v * (v + 1) // 2
    assert ls.sum(-d.astype("f8")) == -v * (v + 1) // 2


def test_sums_that_stay_exact():  # test_sum_stability, test_sum_initial's axes
    a = np.ones(500, np.float32)
    assert abs((a / 10.0).sum() - a.size / 10.0) < 1e-3 and abs(ls.sum(a / np.float32(10)) - 50) < 1e-5
    a = np.arange(27).reshape(3, 3, 3)
    for axis in ((), 0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2), None):
        assert np.array_equal(ls.sum(a, axis=axis), np.sum(a, axis=axis))
    for wrong in (3, (0, 0), "x", 1.5, (0, 3)):
        with pytest.raises((ValueError, TypeError)):
            ls.sum(a, axis=wrong)


# numpy/lib/tests/test_function_base.py, TestCumsum
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8"])
def test_running_sums(dtype):
    a = np.array([1, 2, 10, 11, 6, 5, 4], dtype)
    assert ls.cumsum(a, 0).tolist() == [1, 3, 13, 24, 30, 35, 39]
    a = np.array([[1, 2, 3, 4], [5, 6, 7, 9], [10, 3, 4, 5]], dtype)
    assert ls.cumsum(a, axis=0).tolist() == [[1, 2, 3, 4], [6, 8, 10, 13], [16, 11, 14, 18]]
    assert ls.cumsum(a, axis=1).tolist() == [[1, 3, 6, 10], [5, 11, 18, 27], [10, 13, 17, 22]]
    assert ls.cumsum(a).tolist() == np.cumsum(a, dtype="i8").tolist()


# scipy/ndimage/tests/test_filters.py: test_correlate06 to 08, test_extend03, 07 and 08
@pytest.mark.parametrize("weights,want", [([1, 2, 3], [9, 14, 17]), ([3, 2, 1], [7, 10, 15]), ([1, 2, 1], [5, 8, 11]), ([1, 2, -1], [1, 2, 5])])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_correlations(weights, want, dtype):
    a = np.array([1, 2, 3], dtype)
    assert ls.correlate1d(a, weights).tolist() == want
    assert ls.correlate1d(a, np.array(weights)).dtype == dtype
    out = np.zeros(3, dtype)
    assert ls.correlate1d(a, weights, out=out) is out and out.tolist() == want


@pytest.mark.parametrize("mode,near,far", [("nearest", [2, 3, 3], [3, 3, 3]), ("wrap", [2, 3, 1], [3, 1, 2]), ("reflect", [2, 3, 3], [3, 3, 2]),
                                           ("mirror", [2, 3, 2], [3, 2, 1]), ("constant", [2, 3, 0], [3, 0, 0]), ("grid-wrap", [2, 3, 1], [3, 1, 2]),
                                           ("grid-mirror", [2, 3, 3], [3, 3, 2]), ("grid-constant", [2, 3, 0], [3, 0, 0])])
def test_ends(mode, near, far):
    a = np.array([1.0, 2.0, 3.0])
    assert ls.correlate1d(a, [0, 0, 1], mode=mode).tolist() == near and ls.correlate1d(a, [0, 0, 0, 0, 1], mode=mode).tolist() == far
    assert ls.correlate1d(a[:, None], [0, 0, 0, 0, 1], axis=0, mode=mode).tolist() == [[e] for e in far]


@pytest.mark.skipif(importlib.util.find_spec("scipy") is None, reason="no SciPy")
def test_correlations_beside_scipy():
    from scipy import ndimage
    rng = np.random.default_rng(5)
    a = rng.standard_normal((6, 7, 8))
    for mode, axis, n in itertools.product(("reflect", "mirror", "nearest", "wrap", "constant"), (0, 1, 2, -1), (3, 5, 9)):
        weights = rng.standard_normal(n)
        assert np.allclose(ls.correlate1d(a, weights, axis, mode=mode, cval=1.5), ndimage.correlate1d(a, weights, axis, mode=mode, cval=1.5))
    star = np.zeros((3, 3))
    star[1], star[:, 1] = [1, -4, 1], [1, -4, 1]
    assert np.allclose(ls.stencil(a, ls.laplace_weights(2), axes=(1, 2)), np.stack([ndimage.correlate(plane, star) for plane in a]))
    assert np.allclose(ls.stencil(a, ls.laplace_weights(3)), ndimage.laplace(a))


@pytest.mark.skipif(importlib.util.find_spec("array_api_strict") is None, reason="no array_api_strict")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_functions_of_the_array_api(dtype):
    import array_api_strict as xp
    rng = np.random.default_rng(6)
    for shape in ((), (1,), (5,), (3, 4), (2, 3, 4), (2, 0, 3), (1, 1, 1)):
        x = xp.asarray((rng.standard_normal(shape) * 9).astype(dtype))
        if x.ndim >= 2:
            assert xp.all(ls.matrix_transpose(x) == xp.matrix_transpose(x))
        for axes in itertools.permutations(range(x.ndim)):
            assert ls.permute_dims(x, axes).shape == xp.permute_dims(x, axes).shape and xp.all(ls.permute_dims(x, axes) == xp.permute_dims(x, axes))
        every = [None, *range(-x.ndim, x.ndim), *(c for n in range(2, x.ndim + 1) for c in itertools.combinations(range(x.ndim), n))]
        for axis, keepdims in itertools.product(every, (False, True)):
            for name in ("sum", "max", "min", "argmax", "argmin", "vector_norm"):
                if name.startswith("arg") and isinstance(axis, tuple) or name == "vector_norm" and dtype.startswith("int"):
                    continue  # the standard has them for one axis, and for floats
                theirs = xp.linalg.vector_norm if name == "vector_norm" else getattr(xp, name)
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        want = theirs(x, axis=axis, keepdims=keepdims)
                except ValueError:  # of nothing
                    with pytest.raises(ls.Empty):
                        getattr(ls, name)(x, axis=axis, keepdims=keepdims)
                    continue
                got = getattr(ls, name)(x, axis=axis, keepdims=keepdims)
                assert type(got) is type(want) and got.shape == want.shape, (name, shape, axis)
                assert got.dtype == (xp.int64 if name == "sum" and dtype.startswith("int") else want.dtype)
                assert np.allclose(np.from_dlpack(got), np.from_dlpack(want), rtol=1e-5)
