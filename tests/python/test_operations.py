"""Each operation on NumPy arrays: values against NumPy, layouts, out, dtypes and errors."""
import itertools

import numpy as np
import pytest

import lockstep as ls

RNG = np.random.default_rng(20260101)
LAYOUTS = {
    "packed": lambda x: x,
    "fortran": np.asfortranarray,
    "slice": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "offset": lambda x: np.pad(x, 1)[tuple(slice(1, -1) for _ in x.shape)],
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "moved": lambda x: np.ascontiguousarray(np.moveaxis(x, 0, -1)).transpose(-1, *range(x.ndim - 1)),
}


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def noise(shape, dtype):
    if np.dtype(dtype).kind in "iu":
        return RNG.integers(0 if np.dtype(dtype).kind == "u" else -100, 100, shape).astype(dtype)
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_every_axis_of_every_layout_reduces(layout, dtype):
    packed = noise((4, 5, 6), dtype)
    x = LAYOUTS[layout](packed)
    assert np.array_equal(x, packed)
    for axes in [None, (), 0, 1, 2, -1, (0, 1), (1, 2), (0, 2), (2, 0), (0, 1, 2)]:
        for keepdims in (False, True):
            for name in ("max", "min"):
                assert same(getattr(ls, name)(x, axes, keepdims=keepdims), getattr(np, name)(packed, axes, keepdims=keepdims))
            # The order of a sum is the array's: a packed copy with the axes last has the same bits.
            got = ls.sum(x, axes, keepdims=keepdims)
            listed = range(3) if axes is None else [axes % 3] if isinstance(axes, int) else sorted(axes)
            kept = [k for k in range(3) if k not in listed]
            rows = packed.transpose(*kept, *listed).reshape(*(packed.shape[k] for k in kept), -1)
            assert got.ravel().tobytes() == b"".join(ls.sum(row).tobytes() for row in rows.reshape(-1, rows.shape[-1]))
            assert np.allclose(got, np.sum(packed, axes, keepdims=keepdims), rtol=1e-5, atol=1e-4)
            assert got.shape == np.sum(packed, axes, keepdims=keepdims).shape
            if isinstance(axes, int) or axes is None:
                assert same(ls.argmax(x, axes, keepdims=keepdims), np.argmax(packed, axes, keepdims=keepdims))
                assert same(ls.argmin(x, axes, keepdims=keepdims), np.argmin(packed, axes, keepdims=keepdims))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8", "c16", "M8[s]", "S4", "?"])
def test_moves_keep_every_bit(layout, dtype):
    raw = RNG.integers(0, 2 if dtype == "?" else 255, (3, 4, 5 * np.dtype(dtype).itemsize), dtype="u1")
    packed = raw.view(dtype)
    x = LAYOUTS[layout](packed) if dtype != "S4" or layout != "offset" else packed
    if dtype == "M8[s]":
        with pytest.raises(ls.UnsupportedDtype, match="view"):
            ls.matrix_transpose(x)
        return
    for axes in itertools.permutations(range(3)):
        assert same(ls.permute(x, axes), np.ascontiguousarray(packed.transpose(axes)))
    assert same(ls.matrix_transpose(x), np.ascontiguousarray(packed.swapaxes(1, 2)))
    out = np.zeros((3, 7, 9), packed.dtype)[:, 1:6, 2:6]
    assert ls.matrix_transpose(x, out=out) is out
    assert same(np.ascontiguousarray(out), np.ascontiguousarray(packed.swapaxes(1, 2)))


@pytest.mark.parametrize("size", [4, 8])
def test_complex_numbers_that_lie_half_a_number_off(size):
    x = np.arange(25, dtype=f"f{size}")[1:].view(f"c{2 * size}").reshape(3, 4)
    assert same(ls.permute(x, (1, 0)), np.ascontiguousarray(x.T))
    with pytest.raises(ls.InvalidArgument, match="out .* not aligned"):
        ls.permute(x.T.copy(), (1, 0), out=x)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_convert(layout):
    for source, result in itertools.product(("f2", "f4", "f8"), repeat=2):
        packed = (noise((3, 4, 5), "f8") * 1e4).astype(source)
        packed[0, 0, :4] = [np.inf, -0.0, 6e-8, 65519.0]
        x = LAYOUTS[layout](packed)
        with np.errstate(over="ignore"):
            assert same(ls.convert(x, result), packed.astype(result))
            for axes, scale in (((2, 0, 1), 1.0), ((1, 0, 2), 0.1), (None, -3.0), ((-1, -2, -3), 1e-30)):
                want = (packed.astype("f8") * scale).astype(result)
                want = np.ascontiguousarray(want if axes is None else want.transpose(axes))
                assert same(ls.convert(x, result, axes=axes, scale=scale), want), (source, result, axes, scale)
                out = np.zeros((want.shape[0], want.shape[1] + 2, want.shape[2]), result)[:, 1:-1]
                assert ls.convert(x, result, axes=axes, scale=scale, out=out) is out and same(np.ascontiguousarray(out), want)
        plan = ls.plan.convert(packed, result, axes=(2, 1, 0))
        assert plan.op == "convert" and same(plan(packed), ls.convert(packed, result, axes=(2, 1, 0)))
    nan = np.array([np.nan, -np.nan])
    assert ls.convert(nan, "f4").view("u4").tolist() == [0x7FC00000] * 2 and same(ls.convert(np.float32(3), float), np.array(3.0))
    for wrong, error, text in ((lambda: ls.convert(packed, "complex64"), ls.UnsupportedDtype, "dtype is 'complex64'"), (lambda: ls.convert(np.ones(3, "c8"), "f4"), ls.UnsupportedDtype, "x holds complex64"),
                               (lambda: ls.convert(packed, "f4", axes=(0, 1)), ls.InvalidArgument, "name each of the array's 3 axes"), (lambda: ls.convert(packed, "f4", scale="big"), ls.InvalidArgument, "scale is 'big'"),
                               (lambda: ls.convert(packed), TypeError, "needs the argument dtype"), (lambda: ls.convert(packed, "f4", out=np.empty(3, "f4")), ls.InvalidArgument, "shape")):
        with pytest.raises(error, match=text):
            wrong()
    with ls.variants(convert="ref"):
        ls.convert(packed, "f4")
        assert ls.last_run().variant == "ref"


def test_transpose_in_place():
    x = noise((6, 6), "f4")
    want = x.T.copy()
    assert ls.transpose(x, out=x) is x
    assert same(x, want)


def test_results_have_numpy_types():
    x = noise(10, "f4")
    assert type(ls.sum(x)) is np.float32 and type(ls.sum(x, dtype="float64")) is np.float64
    assert type(ls.sum(x, dtype=float)) is np.float64 and type(ls.sum(x, dtype=np.float64)) is np.float64
    assert type(ls.argmax(x)) is np.int64 and type(ls.max(x.astype("i4"))) is np.int32
    assert type(ls.norm(x.astype("i4"))) is np.float64 and type(ls.square_sum(x.astype("f2"))) is np.float32
    assert isinstance(ls.sum(x, keepdims=True), np.ndarray)
    assert same(ls.sum(np.float64(3)), np.float64(3))


def test_narrow_types():
    for dtype in ("i1", "u1", "i2", "u2", "u4", "?"):
        x = noise((7, 9), "u1").astype(dtype)
        assert same(ls.sum(x, axis=1), x.sum(axis=1, dtype="i8"))
        assert same(ls.max(x, axis=0), x.max(axis=0)) and same(ls.argmin(x), x.argmin())
    x = noise((7, 9), "f2")
    assert same(ls.sum(x, axis=1), ls.sum(x.astype("f4"), axis=1))
    assert same(ls.min(x, axis=0), x.min(axis=0))
    assert same(ls.sum(np.ones(3, "u8")), np.uint64(3))


def test_out():
    x = noise((4, 5), "f4")
    out = np.zeros(4, "f4")
    assert ls.sum(x, axis=1, out=out) is out and same(out, ls.sum(x, axis=1))
    for wrong, text in ((np.zeros(5, "f4"), "shape"), (np.zeros(4), "float64"), (np.zeros(8, "f4")[::2], "packed"),
                        (np.zeros(8, "f4")[::-2], "strides")):
        with pytest.raises(ls.InvalidArgument, match=text):
            ls.sum(x, axis=1, out=wrong)
    out.flags.writeable = False
    with pytest.raises(ls.InvalidArgument, match="out is read-only"):
        ls.sum(x, axis=1, out=out)
    with pytest.raises(ls.InvalidArgument, match="overlap"):
        ls.permute(x[:4, :4], (1, 0), out=x[:4, :4])


def test_segments():
    x = noise(100, "f8")
    offsets = np.array([0, 3, 3, 50, 100])
    assert same(ls.segment_sum(x, offsets), np.array([ls.sum(x[a:b]) for a, b in itertools.pairwise(offsets)]))
    assert same(ls.segment_sum(x[::2], offsets // 2), np.array([ls.sum(x[::2][a:b]) for a, b in itertools.pairwise(offsets // 2)]))
    with pytest.raises(ls.Empty):
        ls.segment_max(x, offsets)
    assert same(ls.segment_argmax(x, offsets[2:]), np.array([x[3:50].argmax(), x[50:].argmax()]))
    for wrong, text in (([0, 101], "100 elements"), ([0, 5, 3], "offsets"), ([-1, 5], "offsets")):
        with pytest.raises(ls.InvalidArgument, match=text):
            ls.segment_sum(x, np.array(wrong))
    assert same(ls.segment_sum(x, offsets.astype("i4")), ls.segment_sum(x, offsets))


def test_stencils():
    x = noise((5, 6), "f8")
    want = np.pad(x, 1, "symmetric")
    want = want[:-2, 1:-1] + want[2:, 1:-1] + want[1:-1, :-2] + want[1:-1, 2:] - 4 * x
    assert np.allclose(ls.stencil(x, ls.laplace_weights(2)), want)
    assert same(ls.stencil(x, ls.laplace_weights(2), sweeps=2), ls.stencil(ls.stencil(x, ls.laplace_weights(2)), ls.laplace_weights(2)))
    assert same(ls.stencil(x, [-4, 1, 1], radius=1, form="symmetric"), ls.stencil(x, ls.laplace_weights(2)))
    assert same(ls.stencil(x.T, ls.laplace_weights(2)), ls.stencil(x.T.copy(), ls.laplace_weights(2)))
    assert ls.stencil(x, ls.laplace_weights(2), mode="valid").shape == (3, 4)
    weights = [1.0, 2.0, 4.0]
    for axis in (0, 1, -1, -2):
        rows = np.moveaxis(x, axis, -1)
        padded = np.pad(rows, [(0, 0), (1, 1)], "edge")
        got = ls.correlate1d(x, weights, axis, mode="nearest")
        assert np.allclose(np.moveaxis(got, axis, -1), padded[:, :-2] + 2 * padded[:, 1:-1] + 4 * padded[:, 2:])
    assert same(ls.correlate1d(x, weights), np.stack([ls.stencil(row, weights) for row in x]))
    windows = np.lib.stride_tricks.sliding_window_view(noise(20, "f8"), 5)
    assert same(ls.stencil(windows, weights, axes=-1), ls.stencil(windows.copy(), weights, axes=-1))
    columns = np.asfortranarray(noise((2, 5, 1), "f8"))
    assert same(ls.stencil(columns, [1, *weights, 1], axes=(1, 2)), ls.stencil(columns.copy(), [1, *weights, 1], axes=(1, 2)))
    for wrong, text in (({"mode": "periodic"}, "mode"), ({"form": "odd"}, "form"), ({"sweeps": 0}, "sweeps"), ({"axes": 0}, "axes"),
                        ({"cval": "x"}, "cval")):
        with pytest.raises(ls.Error, match=text):
            ls.stencil(x, ls.laplace_weights(2), **wrong)
    with pytest.raises(ls.InvalidArgument, match="weights has 4"):
        ls.stencil(x, [1, 2, 3, 4])


def test_shuffles():
    x = noise((2, 32), "f4")
    lanes = np.arange(32)
    assert same(ls.shuffle(x, "xor", 1), x[:, lanes ^ 1])
    assert same(ls.shuffle(x, "idx", 3, width=8), x[:, lanes // 8 * 8 + 3])
    assert same(ls.shuffle(np.asfortranarray(x), "up", 1), x[:, np.maximum(lanes - 1, 0)])
    with pytest.raises(ls.InvalidArgument, match="kind"):
        ls.shuffle(x, "sideways", 1)
    with pytest.raises(ls.InvalidArgument, match="width"):
        ls.shuffle(x, "up", 1, width=5)


def test_sizes_of_zero():
    for shape in ((0,), (0, 3), (3, 0)):
        x = np.zeros(shape, "f4")
        assert same(ls.sum(x), np.float32(0))
        assert same(ls.sum(x, axis=0), x.sum(axis=0))
        assert ls.permute(x, range(x.ndim)[::-1] and tuple(range(x.ndim))[::-1]).shape == x.T.shape
        with pytest.raises(ls.Empty):
            ls.max(x)
    assert ls.max(np.zeros((0, 3)), axis=1).shape == (0,)
    assert ls.shuffle(np.zeros(0, "f4"), "up", 1).shape == (0,)
    assert ls.stencil(np.zeros((0, 4)), [1, 2, 3], axes=-1).shape == (0, 4)


def test_an_overflow_says_so_and_hands_the_rest_out():
    x = np.array([[2**62, 2**62], [1, 2]])
    with pytest.raises(OverflowError, match="sequence 0") as caught:
        ls.sum(x, axis=1)
    assert isinstance(caught.value, ls.Overflow) and caught.value.status == 6
    assert caught.value.out.tolist() == [2**63 - 1, 3]


def test_axes_of_every_kind():
    x = noise((3, 4), "f8")
    for axes in (range(2), np.arange(2), [np.int64(0), 1], (0, 1)):
        assert same(ls.sum(x, axes), ls.sum(x)) and same(ls.permute(x, axes), x)
    for axis in (1, np.int64(1), np.array(1), [1]):
        assert same(ls.sum(x, axis), ls.sum(x, axis=-1))


def test_what_is_no_int_or_axis():
    x = noise((3, 32), "f8")
    for call, text in ((lambda: ls.sum(x, 1.0), "axis is 1.0; give an int"), (lambda: ls.sum(x, "1"), "axis is '1'"),
                       (lambda: ls.sum(x, (0, None)), "axis is \\(0, None\\)"), (lambda: ls.permute(x, None), "axes is None"),
                       (lambda: ls.permute(x, {0, 1}), "axes is {0, 1}"), (lambda: ls.shuffle(x, "xor", 1.0), "operand is 1.0; give an int"),
                       (lambda: ls.var(x, correction=1.0), "correction is 1.0"), (lambda: ls.stencil(x, [1] * 5, sweeps="2"), "sweeps is '2'")):
        with pytest.raises(TypeError, match=text):
            call()
    for axis in (1.0, None):
        with pytest.raises(TypeError, match=f"axis is {axis}; give an int"):
            ls.correlate1d(x, [1, 2, 3], axis)
    with pytest.raises(ls.InvalidArgument, match="axis is 0; the array has 0 axes$"):
        ls.sum(np.array(3.0), axis=0)

    class Interrupted:
        def __float__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ls.stencil(x, [Interrupted()] * 5)


def test_what_is_no_array():
    for wrong in ({1.0, 2.0}, None, "text", object()):
        with pytest.raises(TypeError):
            ls.sum(wrong)
    with pytest.raises(ls.UnsupportedDtype, match="objects"):
        ls.transpose(np.array([[1, None]], object))
    with pytest.raises(ls.UnsupportedDtype, match="byte-swapped"):
        ls.sum(np.arange(4.0).astype(">f8"))
    assert same(ls.permute(np.arange(6.0).reshape(2, 3).astype(">f8"), (1, 0)), np.ascontiguousarray(np.arange(6.0).reshape(2, 3).astype(">f8").T))
    with pytest.raises(ls.InvalidArgument, match="^a masked array"):
        ls.sum(np.ones(2), out=np.ma.masked_array(np.zeros(())))
    with pytest.raises(ls.InvalidArgument, match="masked"):
        ls.sum(np.ma.masked_array([1.0, 2.0], [True, False]))
    for call, text in ((lambda: ls.sum(), "needs the argument x"), (lambda: ls.max(np.ones(2), 0, 1), "positional"),
                       (lambda: ls.sum(np.ones(2), axes=0), "'axes'"), (lambda: ls.sum(np.ones(2), 0, axis=0), "twice")):
        with pytest.raises(TypeError, match=text):
            call()
    for axis in (2, -3, (0, 0), (0, 1, 0)):
        with pytest.raises(ls.InvalidArgument, match="axis is"):
            ls.sum(np.ones((2, 2)), axis=axis)


def test_other_buffers():
    import array
    assert same(ls.sum(array.array("d", [1, 2, 3])), np.array(6.0))
    assert same(ls.sum(memoryview(b"\x01\x02")), np.array(3))


def test_rows_that_repeat_are_read_where_they_lie():
    """NumPy's broadcast_to: steps of 0 bytes. Rows that are one row need no copy; what else repeats is copied."""
    row, other = np.arange(1.0, 9.0), np.full(8, 0.5)
    rows, others = np.broadcast_to(row, (5, 8)), np.broadcast_to(other, (5, 8))
    packed = rows.copy()
    for function in (ls.sum, ls.square_sum, ls.norm, ls.max, ls.argmin, ls.mean, ls.std, ls.l1_norm):
        same(function(rows, axis=1, copy=False), function(packed, axis=1))
        same(function(rows[:, ::2], axis=1, copy=False), function(packed[:, ::2], axis=1))
        for whole in (lambda: function(rows, axis=0, copy=False), lambda: function(rows, copy=False)):
            with pytest.raises(BufferError, match="x has strides"):
                whole()
        same(function(rows, axis=0), function(packed, axis=0))
        same(function(rows), function(packed))
        same(function(np.broadcast_to(row, (2, 5, 8)), axis=(0, 2)), function(np.broadcast_to(row, (2, 5, 8)).copy(), axis=(0, 2)))
    for x, y in ((rows, others), (packed, others), (rows, others.copy())):
        same(ls.dot(x, y, axis=1, copy=False), ls.dot(packed, others.copy(), axis=1))
    with pytest.raises(BufferError, match="y has strides"):
        ls.dot(packed, np.broadcast_to(np.array(2.0), 8), axis=1, copy=False)
    plan = ls.plan.sum(rows, axis=1)
    same(plan(rows), ls.sum(packed, axis=1))
    assert [a.tolist() for a in ls.group.sum([rows, packed], axis=1)] == [[36.0] * 5] * 2
    same(ls.transpose(rows), packed.T)
    with pytest.raises(BufferError, match="x has strides"):
        ls.transpose(rows, copy=False)
