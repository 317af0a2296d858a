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
    with pytest.raises(TypeError, match="x holds int32"):
        ls.convert(np.zeros(3, "i4"), "f4")
    with pytest.raises(TypeError, match="dtype is 'int32'"):
        ls.convert(x, "i4")
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
