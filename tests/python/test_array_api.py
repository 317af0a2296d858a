"""lockstep.array_api: the standard's names, signatures and dtypes, of arrays of several libraries, and clear errors."""
import importlib
import importlib.util
import inspect
import os

import array_api_suite
import numpy as np
import pytest

import lockstep as ls
from lockstep import array_api as xp

RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((7, 5)).astype("f4")


def spaces():
    yield np, np.asarray
    for name in ("array_api_strict", "array_api_compat.torch"):
        if importlib.util.find_spec(name.partition(".")[0]) and (not name.endswith("torch") or importlib.util.find_spec("torch")):
            space = importlib.import_module(name)
            yield space, space.asarray


@pytest.mark.parametrize("space", [s for s, _ in spaces()], ids=lambda s: s.__name__)
def test_every_function_has_the_bits_of_the_package(space):
    x, other = space.asarray(X), space.asarray(X[::-1].copy())
    for name in ("sum", "prod", "max", "min", "mean", "var", "std", "argmax", "argmin", "any", "all", "count_nonzero"):
        for keywords in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}):
            found = np.asarray(getattr(xp, name)(x, **keywords))
            expected = np.asarray(getattr(ls, name)(X, **keywords))
            assert found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes(), (name, keywords)
    for name in ("exp", "expm1", "log1p", "tanh", "reciprocal"):
        assert np.asarray(getattr(xp, name)(x)).tobytes() == getattr(ls, name)(X).tobytes(), name
    for name in ("log", "sqrt"):
        assert np.asarray(getattr(xp, name)(space.asarray(np.abs(X)))).tobytes() == getattr(ls, name)(np.abs(X)).tobytes(), name
    assert np.asarray(xp.cumulative_sum(x, axis=1)).tobytes() == ls.cumsum(X, axis=1).tobytes()
    first = np.asarray(xp.cumulative_sum(x, axis=0, include_initial=True))
    assert first.shape == (8, 5) and not first[0].any() and first[1:].tobytes() == ls.cumsum(X, axis=0).tobytes()
    assert np.asarray(xp.permute_dims(x, (1, 0))).tobytes() == np.asarray(xp.matrix_transpose(x)).tobytes() == X.T.tobytes()
    assert np.asarray(xp.vecdot(x, other)).tobytes() == ls.dot(X, X[::-1].copy(), axis=1).tobytes()
    assert np.asarray(xp.linalg.vector_norm(x, axis=0)).tobytes() == ls.norm(X, axis=0).tobytes()
    assert np.asarray(xp.linalg.vector_norm(x, ord=1)) == ls.l1_norm(X, dtype="f4")
    assert np.asarray(xp.astype(x, space.float64)).tobytes() == X.astype("f8").tobytes() and xp.astype(x, space.float32, copy=False) is x
    whole = xp.over(space)
    assert float(whole.sum(whole.ones((2, 3), dtype=whole.float32))) == 6 and whole.sum is xp.sum and whole.linalg.vecdot is xp.vecdot


def test_dtypes_are_the_standards():
    for name, wanted in (("int8", "int64"), ("int64", "int64"), ("uint8", "uint64"), ("uint32", "uint64"), ("float16", "float16"), ("float32", "float32"), ("float64", "float64")):
        x = np.ones(3, name)
        for function in (xp.sum, xp.prod, xp.cumulative_sum):
            assert function(x).dtype == wanted, (name, function)
    assert xp.sum(np.full(3, 2**60), dtype=np.float32).dtype == "f4" and xp.sum(np.full(3, 40, "i1"), dtype="int8") == 120
    assert xp.prod(np.full(100, 2, "i4"), dtype=np.float64) == 2.0**100
    assert xp.mean(X.astype("f2")).dtype == "f2" and xp.var(X, axis=0).dtype == "f4"
    assert xp.vecdot(np.ones(3, "i2"), np.ones(3, "i4")).dtype == "i4" and xp.vecdot(np.ones((2, 1, 3), "f4"), np.ones((4, 3))).shape == (2, 4)


def test_a_correction_may_be_a_fraction():
    wide = X.astype("f8")
    for correction in (0.5, 2.25):
        factor = 35 / (35 - correction)
        assert xp.var(wide, correction=correction) == ls.var(wide) * factor
        assert np.isclose(xp.std(wide, correction=correction), np.sqrt(ls.var(wide) * factor), rtol=1e-15)
    assert xp.var(X, axis=0, correction=1.0).tobytes() == ls.var(X, axis=0, correction=1).tobytes()
    assert np.isnan(xp.var(X, correction=35.5)) and np.isnan(xp.std(X, correction=40.0))


@pytest.mark.parametrize("error, text, call", [
    (TypeError, "sum: x holds complex64", lambda: xp.sum(np.ones(2, "c8"))),
    (TypeError, "count_nonzero counts", lambda: xp.sum(np.ones(2, bool))),
    (TypeError, "uint64", lambda: xp.cumulative_sum(np.ones(2, "u8"))),
    (TypeError, "mean: x holds int32; give floats", lambda: xp.mean(np.ones(2, "i4"))),
    (TypeError, "max: x holds bool", lambda: xp.max(np.ones(2, bool))),
    (TypeError, "exp: x holds int64; give floats", lambda: xp.exp(np.ones(2, "i8"))),
    (TypeError, "float64", lambda: xp.exp(np.ones(2))),
    (TypeError, "dtype is int32 and x holds float32", lambda: xp.sum(X, dtype="int32")),
    (TypeError, "astype: dtype is complex128", lambda: xp.astype(X, "complex128")),
    (TypeError, "promotes to no common type", lambda: xp.vecdot(np.ones(2, "i4"), np.ones(2, "f4"))),
    (TypeError, "give an array", lambda: xp.sum([1, 2])),
    (TypeError, "no asarray", lambda: xp.over(os)),
    (OverflowError, "int8; give dtype=int64", lambda: xp.sum(np.full(3, 50, "i1"), dtype="int8")),
    (OverflowError, "range of uint64", lambda: xp.sum(np.array([1, -3]), dtype="uint64")),
    (OverflowError, "range of int8", lambda: xp.vecdot(np.full(3, 100, "i1"), np.full(3, 100, "i1"))),
    (OverflowError, "does not fit", lambda: xp.sum(np.full(2, 2**62))),
    (ValueError, "correction is -1", lambda: xp.var(X, correction=-1)),
    (ValueError, "correction is nan", lambda: xp.std(X, correction=float("nan"))),
    (ValueError, "axis is None and x has 2 axes", lambda: xp.cumulative_sum(X)),
    (ValueError, "axis is 0", lambda: xp.vecdot(X, X, axis=0)),
    (ValueError, "7 elements of x1 and 1 of x2", lambda: xp.vecdot(X, X[:1], axis=-2)),
    (ValueError, "kind is 'real'", lambda: xp.__array_namespace_info__().dtypes(kind="real")),
    (NotImplementedError, "ord is 3", lambda: xp.linalg.vector_norm(X, ord=3)),
    (NotImplementedError, "device is gpu", lambda: xp.astype(X, "f8", device="gpu")),
])
def test_errors_name_the_argument_and_the_way_out(error, text, call):
    with pytest.raises(error, match=text) as e:
        call()
    assert isinstance(e.value, (ls.Error, TypeError))


def test_the_inspection_names_no_dtype_that_is_never_computed():
    info = xp.__array_namespace_info__()
    assert set(info.dtypes(kind="numeric")) == set(info.dtypes()) - {"bool"} and "complex64" not in info.dtypes()
    assert info.dtypes(kind=("bool", "real floating")) == {"bool": np.dtype("bool"), "float32": np.dtype("f4"), "float64": np.dtype("f8")}
    assert info.default_device() in info.devices() and set(info.capabilities()) >= {"boolean indexing", "data-dependent shapes"}
    assert info.default_dtypes()["integral"] == np.int64


def test_names_that_are_missing_are_missing():
    assert not hasattr(xp, "sin") and not hasattr(xp, "matmul")
    assert xp.over(np).sin is np.sin and {"sin", "vecdot"} <= set(dir(xp.over(np))) and {"vecdot", "svd"} <= set(dir(xp.over(np).linalg))
    with pytest.raises(AttributeError):
        xp.over(np).no_such_function


def test_signatures_are_those_of_a_strict_library():
    strict = pytest.importorskip("array_api_strict")
    for name in xp.__all__:
        if name not in ("over", "linalg"):
            found, wanted = inspect.signature(getattr(xp, name)).parameters, inspect.signature(getattr(strict, name)).parameters
            assert [(p.name, p.kind) for p in found.values()] == [(p.name, p.kind) for p in wanted.values()], name


@pytest.mark.parametrize("dtypes, tests", [*array_api_suite.GROUPS, ("float32 float64", array_api_suite.signatures())])
def test_the_suite_of_the_standard(dtypes, tests):
    checkout = os.environ.get("LOCKSTEP_ARRAY_API_TESTS")
    if not checkout or not all(map(importlib.util.find_spec, ("ndindex", "pytest_jsonreport"))):
        pytest.skip("LOCKSTEP_ARRAY_API_TESTS names no checkout of array-api-tests, or ndindex or pytest-json-report is missing")
    done = array_api_suite.run(checkout, dtypes, tests)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
