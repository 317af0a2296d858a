"""Sums of two arrays, means and variances, and reductions over any axes, beside the C functions; what they refuse. (Random
arrays of every library beside order id 1: test_bits.)"""
import ctypes
import tracemalloc

import numpy as np
import pytest
from test_operations import LAYOUTS, noise, same

import lockstep as ls

PAIRS = ("dot", "squared_distance", "l1_distance")
SUMS_KINDS = {"dot": 0, "squared_distance": 1, "l1_distance": 2, "l1_norm": 3, "mean_var": 4}


def struct(*fields):
    class Made(ctypes.Structure):
        _fields_ = list(fields)

        def __init__(self, **values):
            super().__init__(size=ctypes.sizeof(Made), **values)
    return Made


INT, LONG, POINTER = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
Sums = struct(("size", ctypes.c_size_t), ("kind", INT), ("dtype", INT), ("result", INT), ("count", LONG), ("length", LONG), ("element_stride", LONG),
              ("sequence_stride", LONG), ("offsets", POINTER), ("other", POINTER), ("other_element_stride", LONG), ("other_sequence_stride", LONG), ("correction", LONG))
Axes = struct(("size", ctypes.c_size_t), ("reduction", INT), ("dtype", INT), ("result", INT), ("rank", ctypes.c_int32), ("axis_count", ctypes.c_int32),
              ("axes", ctypes.c_int32 * 8), ("shape", LONG * 8), ("src_strides", LONG * 8))


@pytest.fixture(scope="module")
def c():
    """Calls the C library itself, on a context of its own."""
    library = ctypes.CDLL(ls.get_library())
    context = POINTER()
    assert library.lockstep_context_create(None, ctypes.byref(context)) == 0

    def call(name, desc, src, dst):
        status = getattr(library, "lockstep_" + name)(context, ctypes.byref(desc), POINTER(src.ctypes.data), POINTER(dst.ctypes.data), None)
        assert status == 0, status
        return dst

    yield call
    library.lockstep_context_destroy(context)


F32, F64, I64 = 3, 4, 6
REDUCTIONS = {"sum": 0, "min": 1, "max": 2, "argmin": 3, "argmax": 4, "square_sum": 5, "norm": 6}


@pytest.mark.parametrize("name", SUMS_KINDS)
def test_the_c_function_has_these_bits(c, name):
    x, y = noise((7, 5000), "f4"), noise((7, 5000), "f4")
    two = name in PAIRS
    want = c("sums", Sums(kind=SUMS_KINDS[name], dtype=F32, result=F64, count=7, length=5000, element_stride=1, sequence_stride=5000,
                          other=y.ctypes.data if two else None, other_element_stride=1, other_sequence_stride=5000), x, np.zeros(14 if name == "mean_var" else 7))
    got = getattr(ls, name)(*((x, y) if two else (x,)), axis=1, dtype=float)
    assert same(np.stack(got, -1).ravel() if name == "mean_var" else got, want)
    p = getattr(ls.plan, name)(*((x, y) if two else (x,)), axis=1, dtype=float)
    assert p(x).tobytes() == want.tobytes() and p.op == "sums"


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_axes_have_the_bits_of_the_c_function_and_nothing_is_copied(c, name, layout):
    x = LAYOUTS[layout](noise((6, 9, 700), "f4"))
    if min(x.strides) < 0:
        x = x[::-1]
    for axes, shape in (((0, 2), (9,)), ((1,), (6, 700)), ((2, 0), (9,))):
        listed = sorted(axes)
        kind, result = (("i8", I64) if "arg" in name else ("f4", F32))
        d = Axes(reduction=REDUCTIONS[name], dtype=F32, result=result, rank=3, axis_count=len(listed), axes=(ctypes.c_int32 * 8)(*listed),
                 shape=(LONG * 8)(*x.shape), src_strides=(LONG * 8)(*(n // 4 for n in x.strides)))
        want = c("reduce_axes", d, x, np.zeros(shape, kind))
        function = getattr(ls, name)
        assert same(function(x, axis=axes), want)
        tracemalloc.start()
        with ls.record() as runs:
            function(x, axis=axes, out=want)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < x.nbytes / 4  # (NumPy's memory is traced)
        if layout == "packed":
            assert [run.op for run in runs] == ["reduce_axes"]
        assert same(getattr(ls.plan, name)(x, axis=axes)(x), want)


def test_any_axes():
    x = noise((3, 4, 5, 6), "f8")
    assert same(ls.sum(x, (0, 2), keepdims=True), ls.sum(x, (0, 2)).reshape(1, 4, 1, 6))
    out = np.zeros((4, 6))
    assert ls.max(x, (2, 0), out=out) is out and same(out, x.max((0, 2)))
    assert same(ls.argmin(x, (0, 2)), np.ascontiguousarray(x.transpose(1, 3, 0, 2)).reshape(4, 6, -1).argmin(-1))
    assert same(ls.sum(x[:, ::2, ::3, ::2], ()), np.ascontiguousarray(x[:, ::2, ::3, ::2]))
    deep = noise((2,) * 12, "i4")  # more axes than C takes, but they merge
    assert same(ls.max(deep, (0, 1, 11)), deep.max((0, 1, 11)))
    apart = noise((3,) * 9, "i4")[tuple([slice(0, 2)] * 9)]  # nine axes that do not
    with pytest.raises(ls.Unsupported, match="9 axes that do not merge"):
        ls.max(apart, (0, 2))
    with pytest.raises(ls.Overflow) as caught:
        ls.sum(np.full((2, 3, 2), 2**62), (0, 2))
    assert caught.value.out.tolist() == [2**63 - 1] * 3
    with pytest.raises(ls.Empty):
        ls.max(np.zeros((0, 3, 2)), (0, 2))
    with ls.variants(reduce_axes="ref", reduce="lanes"), ls.record() as runs:
        ls.sum(x, (0, 2))
        ls.sum(x, (0, 2), variant="auto")
    assert [run.variant == "ref" for run in runs] == [True, False]
    with pytest.raises(ls.NoVariant, match="reduce_axes"):
        ls.sum(x, (0, 2), variant="nothing")


def test_what_sums_refuse():
    x = noise((4, 5), "f4")
    for call, error, text in ((lambda: ls.dot(x), TypeError, "needs the argument y"),
                              (lambda: ls.dot(x, x.astype("f8")), ls.UnsupportedDtype, "y holds float64; give float32"),
                              (lambda: ls.dot(x, x.T), ls.InvalidArgument, "y has 2 axes and 20"),
                              (lambda: ls.dot(x, x[0], axis=0), ls.InvalidArgument, "y has 1 axes and 5"),
                              (lambda: ls.dot(x, x, dtype="int8"), ls.UnsupportedDtype, "comes as float64"),
                              (lambda: ls.vdot(x, x, out=np.zeros(1, "f4")), ls.InvalidArgument, "shape"),
                              (lambda: ls.dot(x.astype("c8"), x.astype("c8")), ls.UnsupportedDtype, "complex64"),
                              (lambda: ls.mean(np.zeros(3, "c8")), ls.UnsupportedDtype, "complex64"),
                              (lambda: ls.var(x, correction=-1), ls.InvalidArgument, "correction is -1"),
                              (lambda: ls.mean(x, correction=1), TypeError, "no argument 'correction'"),
                              (lambda: ls.std(x, dtype="float16"), ls.UnsupportedDtype, "standard deviation comes as"),
                              (lambda: ls.mean_var(x, out=np.zeros(2)), ls.InvalidArgument, "tuple of two"),
                              (lambda: ls.mean_var(x, 1, out=(np.zeros(4, "f4"), np.zeros(4))), ls.InvalidArgument, "float64"),
                              (lambda: ls.var(x, 1, out=np.zeros(8, "f4")[::2]), ls.InvalidArgument, "packed"),
                              (lambda: ls._core.plan("mean", x), ls.Unsupported, "plan.mean_var"),
                              (lambda: ls.plan.dot(x, x[:, ::-1]), ls.Unsupported, "y is not packed"),
                              (lambda: ls.plan.dot(noise((2, 3, 4), "f4"), noise((2, 3, 4), "f4"), axis=1), ls.Unsupported, "copy")):
        with pytest.raises(error, match=text):
            call()


def test_sums_into_arrays_that_are_given():
    x, y = noise((6, 8), "f4"), noise((6, 8), "f4")
    out = np.zeros(6, "f4")
    assert ls.dot(x, y, 1, out=out) is out and same(out, ls.dot(x, y, 1))
    both = np.zeros(6, "f4"), np.zeros(6, "f4")
    mean, variance = ls.mean_var(x, 1, out=both)
    assert mean is both[0] and variance is both[1] and same(mean, ls.mean(x, 1)) and same(variance, ls.var(x, 1))
    assert ls.std(x, 1, out=out) is out and same(out, ls.std(x, 1)) and np.allclose(out, x.std(1), rtol=1e-6)
    assert same(ls.vdot(x, x), ls.square_sum(x)) and same(ls.vdot(x, y), ls.dot(x, y, (0, 1)))
    assert type(ls.mean(x)) is np.float32 and type(ls.mean_var(x)[1]) is np.float32 and type(ls.std(x, dtype=float)) is np.float64
    assert ls.var(np.ones(1), correction=1) != ls.var(np.ones(1), correction=1) and np.isnan(ls.mean(np.zeros(0)))
    p, kept = ls.plan.dot(x, y[0], axis=1), y[0].copy()
    y[0] = 1  # read at every call
    assert same(p(x), ls.dot(x, np.ones(8, "f4"), 1)) and not same(p(x), ls.dot(x, kept, 1))
    with ls.record() as runs:
        ls.mean(x, 0), ls.vdot(x, y, variant="ref")
    assert [run.op for run in runs] == ["sums", "sums"] and runs[1].variant == "ref"
    with ls.Context("cpu", threads=1) as context:
        assert same(context.vdot(x, y), ls.vdot(x, y)) and same(context.var(x), ls.var(x))


def test_bool_and_unsigned_sums():
    a, b = np.array([True, True, False]), np.array([True, False, False])
    assert ls.dot(a, b) == 1 and ls.l1_distance(a, b) == 1 and type(ls.dot(a, b)) is np.int64
    big = np.array([2**63, 5], "u8")
    assert ls.l1_norm(big) == 2**63 + 5 and type(ls.l1_norm(big)) is np.uint64
    with pytest.raises(ls.Overflow) as caught:
        ls.dot(big, big)
    assert caught.value.out == 2**64 - 1


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_roots_by_the_arrays_library(dtype):
    """What a device's data goes through has the bits of the host's own roots."""
    from lockstep import _kinds
    x = (np.random.default_rng(3).standard_normal((50, 37)) + 5).astype(dtype)
    for axis, keywords in ((None, {}), (0, {"keepdims": True}), (1, {"correction": 1}), (1, {"dtype": float}), ((0, 1), {"dtype": "float32"})):
        assert same(np.asarray(_kinds.rooted_call(ls.std, x, x.dtype.name, {"axis": axis, **keywords})), np.asarray(ls.std(x, axis, **keywords)))
    out = np.empty(50, np.float64)
    assert _kinds.rooted_call(ls.std, x, x.dtype.name, {"axis": 1, "dtype": "f8", "out": out}) is out and same(out, ls.std(x, 1, dtype="f8"))
    with pytest.raises(ls.InvalidArgument, match="out"):
        _kinds.rooted_call(ls.std, x, x.dtype.name, {"axis": 1, "dtype": "f8", "out": np.empty(49)})
    with pytest.raises(ls.UnsupportedDtype, match="comes as"):
        _kinds.rooted_call(ls.std, x, x.dtype.name, {"axis": 1, "dtype": "float16"})
