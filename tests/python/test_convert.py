"""Casts with a scale against NumPy: every pair of types, every layout, axes, plans, errors."""
import importlib.util

import numpy as np
import pytest
from test_operations import LAYOUTS, noise, same

import lockstep as ls

FLOATS = ["f2", "f4", "f8"]


def by_numpy(x, to, scale=1.0):
    """The product in double, rounded once; a NaN is the canonical one."""
    with np.errstate(all="ignore"):
        y = (x.astype("f8") * scale).astype(to)
        y[np.isnan(y)] = np.array(np.nan, to)
        return y


@pytest.mark.parametrize("of", FLOATS)
@pytest.mark.parametrize("to", FLOATS)
def test_every_pair_of_types(of, to):
    x = np.frombuffer(np.random.default_rng(5).bytes(8 * 3001), of)  # NaN, infinities, subnormals among them
    for scale in (1.0, 0.5, -3.0, 0.1, 1e300, 0.0, np.inf, np.nan):
        assert same(ls.convert(x, to, scale=scale), by_numpy(x, to, scale))
    run = ls.last_run()
    assert run.variant == "runs" and run.order == 1


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axes", [None, (0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, -2)])
def test_every_layout_and_order_of_axes(layout, axes):
    packed = noise((4, 5, 6), "f4")
    want = np.ascontiguousarray(by_numpy(packed, "f2", 0.1).transpose(axes or (0, 1, 2)))
    assert same(ls.convert(LAYOUTS[layout](packed), np.float16, scale=0.1, axes=axes), want)
    out = np.zeros(want.shape, "f2", order="F")
    assert ls.convert(LAYOUTS[layout](packed), "float16", scale=0.1, axes=axes, out=out) is out
    assert np.array_equal(out, want)
    for variant in ("strided", "ref"):
        assert same(ls.convert(LAYOUTS[layout](packed), "f2", scale=0.1, axes=axes, variant=variant), want)


INTEGERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
EDGES = [0, 1, -1, 2, 127, 128, 129, -128, -129, 255, 256, 2**15, -(2**15) - 1, 2**24 + 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**60 + 2**52 + 1, 2**62 + 2**38 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1]


def within(value, to):
    """A whole number as the type nearest to it."""
    if to == "?":
        return value != 0
    info = np.iinfo(to)
    return min(max(value, int(info.min)), int(info.max))


@pytest.mark.parametrize("of", INTEGERS)
@pytest.mark.parametrize("to", INTEGERS)
def test_integers_as_integers(of, to):
    x = np.array([v for v in EDGES if within(v, of) == v], of)
    assert same(ls.convert(x, np.dtype(to).name), np.array([within(int(v), to) for v in x], to))
    with np.errstate(over="ignore"):
        products = [float(int(v)) * -0.75 for v in x]
    assert same(ls.convert(x, np.dtype(to).name, scale=-0.75), np.array([within(int(p) if to != "?" else p, to) for p in products], to))


@pytest.mark.parametrize("of", FLOATS)
@pytest.mark.parametrize("to", INTEGERS)
def test_floats_as_integers(of, to):
    with np.errstate(over="ignore"):
        x = np.array([*EDGES, 0.5, -0.5, 1.9, -1.9, 126.99, 255.5, 1e300, -1e300, 5e-324], "f8").astype(of)
    x = np.concatenate([x, np.array([np.inf, -np.inf, np.nan, -0.0], of)])
    whole = [float(v) != 0 if to == "?" else 0 if np.isnan(v) else within(2**70 * int(np.sign(v)) if np.isinf(v) else int(v), to) for v in x]
    assert same(ls.convert(x, np.dtype(to).name), np.array(whole, to))
    inside = np.arange(200).astype(of) / np.array(3, of)
    if to not in ("?", "i1"):
        assert same(ls.convert(inside.reshape(10, 20), np.dtype(to).name, axes=(1, 0)), np.ascontiguousarray(inside.astype(to).reshape(10, 20).T))  # as NumPy casts


@pytest.mark.parametrize("of", INTEGERS)
@pytest.mark.parametrize("to", FLOATS)
def test_integers_as_floats(of, to):
    x = np.array([v for v in EDGES if within(v, of) == v], of)
    with np.errstate(over="ignore"):
        exact = [np.float64(int(v)) if to != "f4" else np.float32(x.dtype.type(v)) for v in x]  # NumPy rounds once
        assert same(ls.convert(x, np.dtype(to).name), np.array(exact).astype(to))
        assert same(ls.convert(x, np.dtype(to).name, scale=0.1), (x.astype("f8") * 0.1).astype(to))
    y = np.arange(3000).astype(of).reshape(30, 100)
    for axes in ((0, 1), (1, 0)):
        assert same(ls.convert(y, np.dtype(to).name, axes=axes), np.ascontiguousarray(y.astype(to).transpose(axes)))
        assert same(ls.plan.convert(y[:, ::3], np.dtype(to).name, axes=axes)(y[:, ::3]), np.ascontiguousarray(y[:, ::3].astype(to).transpose(axes)))


def test_long_integers_as_bfloat16_are_rounded_once():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([2**60 + 2**52 + 1, 2**60 + 2**52, 2**60 + 3 * 2**52 - 1, -(2**60) - 2**52 - 1, 2**62 - 1])
    assert ls.convert(x, ml_dtypes.bfloat16).astype("f8").tolist() == [2.0**60 + 2**53, 2.0**60, 2.0**60 + 2**53, -(2.0**60) - 2**53, 2.0**62]


def test_scalars_and_empty_arrays():
    assert same(ls.convert(np.zeros((3, 0, 2), "f8"), "f4", axes=(2, 0, 1)), np.zeros((2, 3, 0), "f4"))
    assert ls.convert(np.ones((1, 1)), "f4", scale=3).tolist() == [[3.0]]


def test_plans_repeat_the_call():
    x = noise((70, 90), "f4")
    p = ls.plan.convert(x, "f2", axes=(1, 0))
    assert p.backend == "cpu" and p.variant == "tiled"
    for _ in range(2):
        assert same(p(x), by_numpy(x, "f2").T.copy())
        x = x * np.float32(2)


def test_errors_name_the_argument():
    x = noise((3, 4), "f4")
    with pytest.raises(TypeError, match="x holds complex64"):
        ls.convert(np.zeros(3, "c8"), "f4")
    with pytest.raises(TypeError, match="dtype is 'complex64'"):
        ls.convert(x, np.complex64)
    with pytest.raises(ls.InvalidArgument, match="name each of the array's 2 axes"):
        ls.convert(x, "f2", axes=(0,))
    with pytest.raises(ls.InvalidArgument, match="name each axis once"):
        ls.convert(x, "f2", axes=(0, 0))
    with pytest.raises(TypeError):
        ls.convert(x)
    with pytest.raises(ls.InvalidArgument, match="overlap"):
        ls.convert(x, "f4", out=x)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_tensors_and_bfloat16():
    import torch
    x = torch.randn(50, 60)
    assert torch.equal(ls.convert(x, torch.bfloat16, axes=(1, 0)), x.T.to(torch.bfloat16))
    assert torch.equal(ls.convert(x.to(torch.bfloat16), "float32", scale=2), x.to(torch.bfloat16).to(torch.float32) * 2)
