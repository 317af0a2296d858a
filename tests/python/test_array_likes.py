"""What is no array itself goes in by NumPy's rules: numbers and lists, __array__, the arrays of other packages; offsets of every kind."""
import array
import gc
import importlib.util

import numpy as np
import pytest

import lockstep as ls


def both(x, want, **keywords):
    """The results of a reduction, of a move, of rows and of a running sum of x are those of NumPy's array of it."""
    want = np.asarray(want)
    axes = tuple(range(want.ndim))
    calls = [ls.sum, ls.max, ls.argmin, ls.cumsum, ls.norm, lambda a: ls.permute(a, axes[::-1]), lambda a: ls.sum(a, axis=0, keepdims=True)]
    if want.dtype.kind == "f":
        calls += [ls.mean, ls.rms_norm, lambda a: ls.convert(a, "float64"), lambda a: ls.dot(want, a, axis=-1), lambda a: ls.dot(a, want, axis=-1)]
    for call in calls:
        got, right = call(x), call(want)
        assert type(got) is type(right) and got.dtype == right.dtype and got.tobytes() == right.tobytes()


def test_numbers_and_lists():
    both([1.0, 2, 3.5], [1.0, 2, 3.5])
    both((1, 2), np.array([1, 2]))
    both([[1.5, 2], [3, 4]], [[1.5, 2], [3, 4]])
    both([[True, False], (False, True)], [[True, False], [False, True]])
    both(range(5), np.arange(5))
    both([np.float32(1), np.float32(2)], np.array([1, 2], "f4"))
    both([np.int64(1), 2], [1, 2])
    assert ls.sum(5) == 5 and ls.max(2.5) == 2.5 and ls.sum([]) == 0 and ls.sum([[], []], axis=1).tolist() == [0, 0]
    assert ls.layer_norm([1.0, -1.0], weight=[2.0, 3.0], bias=[1.0, 1.0], eps=0).tolist() == [3, -2]
    assert ls.stencil([0.0, 1, 0], [2, 1, 1]).tolist() == ls.stencil(np.array([0.0, 1, 0]), [2, 1, 1]).tolist()
    assert ls.correlate1d([0.0, 1, 0], [1, 2, 1]).tolist() == [1, 2, 1]
    assert ls.plan.sum([1.0, 2.0])([3.0, 4.0]) == 7
    weight = [1.0, 2.0]
    p = ls.plan.layer_norm(np.array([[1.0, -1.0]]), eps=0, weight=weight)
    del weight
    gc.collect()
    np.full(64, 7.0)
    assert p(np.array([[1.0, -1.0]])).tolist() == [[1, -2]]
    with ls.backend("cpu"):
        both([1.0, 2], [1.0, 2])


@pytest.mark.parametrize("x, text", [
    ([np.zeros(2), np.zeros(2)], "group"), ((np.zeros(2),), "group"), ([b"ab", b"cd"], "group"), ([array.array("d", [1])], "group"), ([[1], [2, 3]], "one length"),
    (["a"], "not of numbers"), ([None], "not of numbers"), ([1, 2**70], "not of numbers"), ("abc", "not an array"), ({1: 2}, "not an array"), ({1}, "not an array"),
    (None, "not an array"), (iter([1]), "not an array"), (object, "not an array")])
def test_what_is_no_array(x, text):
    for call in (ls.sum, lambda a: ls.permute(a, (0,)), lambda a: ls.dot(np.ones(2), a), lambda a: ls.rms_norm(np.ones(2), weight=a)):
        if x is None and call is not ls.sum:
            continue
        with pytest.raises((TypeError, ls.InvalidArgument), match=text):
            call(x)


def test_what_cannot_be_written():
    for out in ([0.0, 0.0], (1.0, 2.0), 5, range(2)):
        with pytest.raises(ls.InvalidArgument, match="out is a .*cannot be written"):
            ls.permute(np.ones(2), (0,), out=out)


class Interface:
    def __init__(self, x):
        self.x, self.__array_interface__ = x, x.__array_interface__


class Method:
    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8"])
def test_interfaces_and_methods(dtype):
    x = (np.arange(24) % 2 if dtype == "?" else np.arange(24)).reshape(4, 6).astype(dtype)
    for view in (x, x[::2, 1:], x.T, x[::-1], x[:0], np.broadcast_to(x[0], (3, 6)), x[1, 2:3].reshape(())):
        for wrap in (Interface, Method):
            got, right = ls.permute(wrap(view), tuple(range(view.ndim))), view.copy()
            assert type(got) is np.ndarray and got.dtype == right.dtype and got.tobytes() == right.tobytes()
            if dtype != "u8":
                assert ls.sum(wrap(view)) == ls.sum(view)
    out = np.zeros((6, 4), dtype)
    assert type(ls.transpose(x, out=Interface(out))) is Interface and out.tobytes() == x.T.tobytes()
    with pytest.raises(ls.InvalidArgument, match="cannot be written"):
        ls.transpose(x, out=Method(out))


def test_memory_lives_as_long_as_it_is_read():
    plan = ls.plan.rms_norm(np.ones((2, 1000)), weight=Method(np.full(1000, 2.0)), eps=0)
    gc.collect()
    _ = [np.full(1000, 9.0) for _ in range(8)]
    assert (plan(np.ones((2, 1000))) == 2).all()


def test_pandas():
    pd = pytest.importorskip("pandas")
    both(pd.Series([1.0, 2.0, 4.0]), [1.0, 2, 4])
    both(pd.Series([1, 2, 4], dtype="int32"), np.array([1, 2, 4], "i4"))
    both(pd.DataFrame({"a": [1.0, 2], "b": [3.0, 4]}), [[1.0, 3], [2, 4]])
    both(pd.Series([1.0, None]), [1.0, np.nan])
    both(pd.Series([True, False]), [True, False])
    for odd in (pd.Series(["a", "b"]), pd.Series([1, None], dtype=object)):
        with pytest.raises(ls.UnsupportedDtype, match="pandas"):
            ls.sum(odd)
    with pytest.raises(ls.UnsupportedDtype):
        ls.sum(pd.Series(pd.date_range("2020-01-01", periods=2)))
    with pytest.raises(ls.InvalidArgument, match="out is a pandas"):
        ls.permute(np.ones(2), (0,), out=pd.Series([0.0, 0.0]))


def test_xarray():
    xr = pytest.importorskip("xarray")
    both(xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("y", "x")), np.arange(6.0).reshape(2, 3))
    both(xr.Variable(("x",), [1, 2]), [1, 2])


def test_polars():
    pl = pytest.importorskip("polars")
    both(pl.Series([1.0, 2.0]), [1.0, 2.0])
    both(pl.Series([1, None, 3]), [1.0, np.nan, 3.0])
    both(pl.DataFrame({"a": [1.0, 2], "b": [3.0, 4]}), [[1.0, 3], [2, 4]])
    with pytest.raises(ls.UnsupportedDtype):
        ls.sum(pl.Series(["a", "b"]))


def test_pyarrow():
    pa = pytest.importorskip("pyarrow")
    both(pa.array([1, 2, 3]), [1, 2, 3])
    both(pa.array([1.5, None]), [1.5, np.nan])  # what DLPack does not hand out
    both(pa.array([True, False]), [True, False])
    both(pa.chunked_array([[1.0, 2], [3.0]]), [1.0, 2, 3])


def test_pillow():
    pytest.importorskip("PIL")
    from PIL import Image
    colours = np.arange(36, dtype="u1").reshape(4, 3, 3)
    both(Image.fromarray(colours), colours)
    both(Image.fromarray(colours[..., 0]), colours[..., 0])
    assert ls.permute(Image.fromarray(colours), (2, 0, 1)).tolist() == colours.transpose(2, 0, 1).tolist()


OFFSETS = {"list": list, "tuple": tuple, "range": None, **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")},
           "steps": None, "backwards": None, "array": lambda o: array.array("i", o), "other order": ">i8"}


@pytest.mark.parametrize("kind", OFFSETS)
def test_offsets_of_every_kind(kind):
    x, plain = np.arange(100.0), [0, 10, 20, 30]
    how = OFFSETS[kind]
    if kind == "range":
        given = range(0, 31, 10)
    elif kind == "steps":
        given = np.repeat(np.array(plain, "i4"), 2)[::2]
    elif kind == "backwards":
        given = np.array(plain[::-1])[::-1]
    else:
        given = np.array(plain, how) if isinstance(how, str) else how(plain)
    if kind == "other order":
        with pytest.raises(ls.InvalidArgument, match="offsets"):
            ls.segment_sum(x, given)
        return
    want = [ls.sum(x[a:b]) for a, b in zip(plain, plain[1:])]
    assert ls.segment_sum(x, given).tolist() == want
    assert ls.group.segment_sum([x, x], given)[1].tolist() == want
    assert ls.group.segment_sum([x, x], [given, given])[1].tolist() == want
    plan = ls.plan.segment_sum(x, given)
    gc.collect()
    _ = [np.full(4, 7) for _ in range(50)]
    assert plan(x).tolist() == want
    if not (kind == "int64" or kind == "range"):
        with pytest.raises(BufferError, match="offsets"):
            ls.segment_sum(x, np.asarray(given, "i4"), copy=False)


def test_offsets_that_cannot_be():
    for x in (np.arange(4.0), np.arange(8.0).reshape(4, 2)):
        for offsets, text in (([0.0, 2.0], "integers"), ([], "one axis"), ([0, 5], "but x has 4"), ([0, 3, 2], r"offsets\[2\]"), ([-1, 2], r"offsets\[0\]"),
                              ([[0, 2]], "one axis"), (3, "one axis"), (np.zeros(0, "i8"), "one axis"), (np.array([0, 2], "u8"), "uint64"), ([True, True], "bool")):
            with pytest.raises(ls.InvalidArgument, match=text):
                ls.segment_sum(x, offsets)
    with pytest.raises(ls.InvalidArgument, match="no axes"):
        ls.segment_sum(np.float64(2), [0, 1])


@pytest.mark.parametrize("name", ["sum", "square_sum", "norm", "max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "i8", "u1", "?"])
def test_segments_of_several_axes(name, dtype):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((40, 6, 5)) * 9 > 0).astype(dtype) if dtype == "?" else (rng.standard_normal((40, 6, 5)) * 9).astype(dtype)
    extremes = name.endswith(("max", "min"))
    offsets = [0, 3, 4, 30, 40] if extremes else [0, 0, 3, 3, 4, 30, 40, 40]
    function, whole = getattr(ls, f"segment_{name}"), getattr(ls, name)
    for view in (x, x[:, ::2], x.transpose(0, 2, 1), x[:, 0, :2], x[:, :, :1], x[:, :0], x[::-1], np.asfortranarray(x), np.broadcast_to(x[:, :1], x.shape)):
        got = function(view, offsets)
        want = np.stack([whole(np.ascontiguousarray(view[a:b]), axis=0) for a, b in zip(offsets, offsets[1:])])
        assert got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()
        out = np.empty_like(want)
        assert function(view, offsets, out=out) is out and out.tobytes() == want.tobytes()
        assert ls.group.__dict__[f"segment_{name}"]([view, view], offsets)[1].tobytes() == want.tobytes()
        with ls.backend("cpu"):
            assert function(view, offsets).tobytes() == want.tobytes()
    column = np.ascontiguousarray(x[:, 1, 1])
    assert function(column, offsets).tolist() == function(x, offsets)[:, 1, 1].tolist()
    assert function(x[:0], [0]).shape == (0, 6, 5)
    if not extremes and dtype[0] == "f":
        assert function(x, offsets, dtype="float64").dtype == "f8"


def test_segments_of_several_axes_that_fail():
    x = np.full((4, 2), 2**62)
    with pytest.raises(ls.Overflow, match="segment 1") as e:
        ls.segment_sum(x, [0, 1, 4])
    assert e.value.out.tolist() == [[2**62] * 2, [2**63 - 1] * 2]
    with pytest.raises(ls.Empty, match="segment 2"):
        ls.segment_max(x, [0, 1, 3, 3, 4])
    with pytest.raises(ls.Unsupported, match="one axis"):
        ls.plan.segment_sum(x, [0, 4])
    with pytest.raises(ls.InvalidArgument, match="shape"):
        ls.segment_sum(x, [0, 4], out=np.empty(2, "i8"))
    with pytest.raises(BufferError):
        ls.segment_sum(np.zeros((4, 3, 2)).transpose(0, 2, 1), [0, 4], copy=False)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch")
def test_tensors_and_lists():
    import torch
    x = torch.arange(12.0).reshape(4, 3)
    got = ls.segment_sum(x, torch.tensor([0, 1, 4], dtype=torch.int32))
    assert type(got) is torch.Tensor and got.tolist() == [[0, 1, 2], [18, 21, 24]]
    assert ls.segment_sum(x[:, 0].contiguous(), [0, 1, 4]).tolist() == [0, 18]
    with pytest.raises(TypeError, match="group"):
        ls.sum([x, x])
