"""Every dtype that the C library reduces, from every library that has it: exact, in its own type, and with no copy on the way."""
import importlib.util

import numpy as np
import pytest
from order_numpy import tree

import lockstep as ls
from lockstep import _kinds

RNG = np.random.default_rng(20260303)
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
FLOATS = ["f2", "f4", "f8"] + (["bfloat16"] if importlib.util.find_spec("ml_dtypes") else [])


def dtype_of(name):
    if name == "bfloat16":
        import ml_dtypes
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def noise(name, shape):
    dtype = dtype_of(name)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return RNG.integers(info.min >> 13 if dtype.itemsize == 8 else info.min, info.max >> (13 if dtype.itemsize == 8 else 0), shape, dtype)
    return RNG.standard_normal(shape).astype(dtype) if dtype.kind != "b" else RNG.random(shape) < 0.5


@pytest.fixture
def nothing_is_copied(monkeypatch):
    def refuse(*_):
        raise AssertionError("a copy was made")
    for name in ("widened", "packed"):
        monkeypatch.setattr(_kinds, name, refuse)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_exact_as_they_are(name, nothing_is_copied):
    x = noise(name, (40, 70))
    with ls.record() as runs:
        wide = np.uint64 if name == "u8" else np.int64
        for axis in (None, 0, 1):
            got = ls.sum(x, axis)
            assert got.dtype == wide and np.array_equal(got, x.sum(axis, dtype=wide))
            for extreme in ("max", "min", "argmax", "argmin"):
                got, want = getattr(ls, extreme)(x, axis), getattr(np, extreme)(x, axis)
                assert got.dtype == want.dtype and np.array_equal(got, want)
        small = x // 2**20 if x.dtype.itemsize == 8 else x
        exact = [sum(int(e) ** 2 for e in row) for row in small]
        if max(exact) < 2**63:
            assert ls.square_sum(small, axis=1).tolist() == exact
        assert np.allclose(ls.norm(small, axis=1), np.sqrt(np.array(exact, "f8")), rtol=1e-15)
        assert ls.sum(x[::2, 3:9], axis=1).tolist() == x[::2, 3:9].sum(axis=1, dtype=wide).tolist()
    assert {run.op for run in runs} == {"reduce", "square_sum"}


def test_sums_beyond_their_type():
    assert ls.sum(np.full(3, 2**63, "u8")[:1]) == 2**63
    with pytest.raises(ls.Overflow) as caught:
        ls.sum(np.full(3, 2**63, "u8"))
    assert caught.value.out == 2**64 - 1
    assert ls.sum(np.full(300, 255, "u1")) == 300 * 255
    assert ls.sum(np.array([2, 0, 7], "u1").view("?")) == 2  # any byte but 0 is true


@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_added_as_they_are(name, nothing_is_copied):
    x = noise(name, (30, 3000))
    want = np.array([tree(row.astype("f8"), False) for row in x])
    assert ls.sum(x, axis=1, dtype="float64").tobytes() == want.tobytes()
    narrow = np.dtype("f8") if name == "f8" else np.dtype("f4")
    assert ls.sum(x, axis=1).tobytes() == want.astype(narrow).tobytes()
    for result in ("float32", "float16", *(["bfloat16"] if "bfloat16" in FLOATS else [])):
        got = ls.sum(x, axis=1, dtype=result)
        assert got.dtype == dtype_of(result)
        if result != "bfloat16" or name != "f8":  # ml_dtypes rounds a double to bfloat16 twice
            assert got.tobytes() == want.astype(dtype_of(result)).tobytes()
    for extreme in ("max", "min"):
        got = getattr(ls, extreme)(x, axis=0)
        assert got.dtype == x.dtype and got.tobytes() == getattr(np, extreme)(x.astype("f8"), axis=0).astype(x.dtype).tobytes()
        scalar = getattr(ls, extreme)(x)
        assert scalar.dtype == x.dtype and scalar == getattr(np, extreme)(x.astype("f8"))
        assert getattr(ls, f"arg{extreme}")(x) == getattr(np, f"arg{extreme}")(x.astype("f8"))
    out = np.zeros(3000, x.dtype)
    assert ls.max(x, axis=0, out=out) is out and out.tobytes() == ls.max(x, axis=0).tobytes()
    plan = ls.plan.max(x, axis=1)
    assert plan(x).tobytes() == ls.max(x, axis=1).tobytes()
    assert ls.norm(x, axis=1, dtype="float16").dtype == np.float16


def test_results_that_are_not_there():
    for call in (lambda: ls.sum(np.ones(3, "i1"), dtype="int8"), lambda: ls.sum(np.ones(3), dtype="int64"),
                 lambda: ls.sum(np.ones(3, "u8"), dtype="int64"), lambda: ls.square_sum(np.ones(3, "?"), dtype="float16")):
        with pytest.raises(ls.UnsupportedDtype, match="this result comes as"):
            call()
    for wrong in ("c8", ">f2", ">u2"):
        with pytest.raises(ls.UnsupportedDtype, match="x holds (complex|byte-swapped)"):
            ls.sum(np.ones(3, wrong))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch")
def test_tensors_of_every_dtype(nothing_is_copied):
    import torch
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.float16, torch.bfloat16):
        x = torch.arange(2 if dtype == torch.bool else 90).to(dtype)
        got, top = ls.sum(x), ls.max(x)
        wide = torch.float32 if dtype.is_floating_point else torch.uint64 if dtype == torch.uint64 else torch.int64
        assert got.dtype == wide and int(got) == sum(range(len(x)))
        assert top.dtype == dtype and int(top) == len(x) - 1 and int(ls.argmin(x)) == 0
    x = torch.randn(1000).bfloat16()
    assert ls.sum(x, dtype=torch.bfloat16).dtype == torch.bfloat16
    assert float(ls.sum(x, dtype=torch.float64)) == tree(x.double().numpy(), False)


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no JAX")
def test_jax_arrays_of_narrow_dtypes(nothing_is_copied):
    import jax.numpy as jnp
    for dtype in ("uint8", "int16", "bool", "float16", "bfloat16"):
        x = jnp.arange(2 if dtype == "bool" else 90).astype(dtype)
        assert int(ls.sum(x)) == sum(range(len(x)))
        top = ls.max(x)
        assert type(top) is type(x) and top.dtype == x.dtype and int(top) == len(x) - 1


def test_a_number_of_bfloat16_lives_as_long_as_the_call():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    numbers = np.arange(1, 200, dtype="f4").astype(ml_dtypes.bfloat16)
    for x in numbers:  # each an object of its own, whose interface is that of a passing array
        assert ls.permute(x, ()) == x and ls.max(x) == x
    with pytest.raises(ls.InvalidArgument, match="read-only"):
        ls.permute(numbers[0], (), out=numbers[1])
