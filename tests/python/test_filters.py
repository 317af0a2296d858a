"""Filters of whole kernels: beside sums over windows, beside SciPy, and what is refused."""
import numpy as np
import pytest

import lockstep as ls

NAMES_OF_MODES = ("reflect", "mirror", "nearest", "wrap", "constant", "valid")


def beyond(x, widths, mode, cval):
    """x with what a mode has beyond its ends, by NumPy's names of them."""
    name = {"reflect": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant", "valid": None}[mode]
    return x if name is None else np.pad(x, widths, name, **({"constant_values": cval} if mode == "constant" else {}))


@pytest.mark.parametrize("mode", NAMES_OF_MODES)
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (1, 5), (5, 1), (3, 1, 3), (3,)])
def test_kernels(mode, shape):
    rng = np.random.default_rng(6)
    x, kernel = rng.standard_normal((7, 8, 9)[:len(shape)]), rng.standard_normal(shape)
    longer = beyond(x, [(n // 2, n // 2) for n in shape], mode, 2.5)
    windows = np.lib.stride_tricks.sliding_window_view(longer, shape)
    want = (windows * kernel).sum(tuple(range(x.ndim, 2 * x.ndim)))
    got = ls.correlate(x, kernel, mode=mode, cval=2.5)
    assert got.dtype == "f8" and np.allclose(got, want, rtol=1e-13, atol=1e-13)
    out = np.empty(want.shape)
    assert ls.correlate(x, kernel.tolist(), mode=mode, cval=2.5, out=out) is out and out.tobytes() == got.tobytes()
    # The middle of pictures by colour, and in float32: one rounding of the sum of the kernel's rows.
    picture = np.stack([x, 2 * x, -x], -1).astype("f4")
    of_picture = ls.correlate(picture, kernel, axes=tuple(range(len(shape))), mode=mode, cval=2.5)
    assert of_picture.shape == (*want.shape, 3) and of_picture.dtype == "f4" and np.allclose(of_picture[..., 0], want, rtol=1e-4, atol=1e-4)
    assert np.array_equal(of_picture[..., 0], ls.correlate(picture[..., 0], kernel, mode=mode, cval=2.5))


def test_a_kernel_is_its_rows_summed_in_double():
    x, kernel = np.random.default_rng(2).standard_normal((20, 30)).astype("f4"), [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    rows = [ls.stencil(np.ascontiguousarray(beyond(x, [(1, 1), (0, 0)], "reflect", 0)[i:i + 20]), kernel[i], axes=-1) for i in range(3)]
    assert ls.correlate(x, kernel).tobytes() == ls.sum(np.stack(rows), 0).tobytes()
    with ls.record() as runs:
        ls.correlate(x, kernel)
    assert {run.op for run in runs} == {"stencil", "reduce"}


@pytest.mark.parametrize("mode", NAMES_OF_MODES)
def test_boxes_and_separable_kernels(mode):
    x = np.random.default_rng(6).standard_normal((9, 10))
    got, want = ls.correlate_separable(x, [1, 2, 1], [0.5, 1, 3, 1, 2], mode=mode), ls.correlate(x, np.outer([1, 2, 1], [0.5, 1, 3, 1, 2]), mode=mode)
    assert np.allclose(got, want, rtol=1e-13, atol=1e-13)
    for size, sizes in ((3, (3, 3)), ((5, 3), (5, 3)), ((1, 5), (1, 5))):
        got, want = ls.uniform_filter(x, size, mode=mode, cval=2), ls.correlate(x, np.full(sizes, 1 / np.prod(sizes)), mode=mode, cval=2)
        assert got.shape == want.shape and np.allclose(got, want, rtol=1e-13, atol=1e-13)
    picture = np.stack([x, x + 1], -1)
    assert np.array_equal(ls.uniform_filter(picture, axes=(0, 1), mode=mode)[..., 0], ls.uniform_filter(x, mode=mode))
    out = np.empty_like(ls.correlate_separable(picture, [1, 2, 1], [1, 0, -1], axes=(1, 0), mode=mode))
    assert ls.correlate_separable(picture, [1, 2, 1], [1, 0, -1], axes=(1, 0), mode=mode, out=out) is out


def test_filters_beside_scipy():
    ndimage = pytest.importorskip("scipy.ndimage")
    rng = np.random.default_rng(7)
    x, kernel = rng.standard_normal((8, 9)), rng.standard_normal((5, 3))
    for mode in NAMES_OF_MODES[:-1]:
        for size in (3, (5, 1), (3, 7)):
            assert np.allclose(ls.uniform_filter(x, size, mode=mode, cval=3), ndimage.uniform_filter(x, size, mode=mode, cval=3), rtol=1e-13, atol=1e-13)
        assert np.allclose(ls.correlate(x, kernel, mode=mode, cval=3), ndimage.correlate(x, kernel, mode=mode, cval=3), rtol=1e-13, atol=1e-13)


def test_what_filters_refuse():
    x = np.ones((4, 5))
    for call, error, text in ((lambda: ls.correlate(x, [[1, 2], [3, 4]]), ls.InvalidArgument, r"weights has the shape \(2, 2\).*odd"),
                              (lambda: ls.correlate(x, [[1]]), ls.InvalidArgument, "more than one element"),
                              (lambda: ls.correlate(x, [[1, 2, 1], [1]]), ls.InvalidArgument, "rows of different lengths"),
                              (lambda: ls.correlate(x, [[1, "a", 1]]), ls.InvalidArgument, "an element of weights is 'a'"),
                              (lambda: ls.correlate(np.ones((4, 5, 3)), np.ones((3, 3))), ls.InvalidArgument, "axes=.0, 1."),
                              (lambda: ls.correlate(x, np.ones((3, 3)), axes=(0, 2)), ls.InvalidArgument, "axes is"),
                              (lambda: ls.correlate(x, np.ones((3, 35))), ls.InvalidArgument, "axis 1 of weights is 35"),
                              (lambda: ls.correlate(x, np.ones((5, 3)), mode="valid"), ls.InvalidArgument, "fewer than the kernel's 5"),
                              (lambda: ls.correlate(x, np.ones((3, 3)), mode="sideways"), ls.InvalidArgument, "mode is 'sideways'"),
                              (lambda: ls.correlate(x, np.ones((3, 3)), copy=False), BufferError, "copy is False"),
                              (lambda: ls.correlate(x.astype("i4"), np.ones((3, 3))), ls.UnsupportedDtype, "float32 and float64"),
                              (lambda: ls.correlate_separable(x, [1, 2, 1]), ls.InvalidArgument, "x has 2 axes, the filter 1"),
                              (lambda: ls.uniform_filter(x, 4), ls.InvalidArgument, "size is 4"),
                              (lambda: ls.uniform_filter(x, (3, 3, 3)), ls.InvalidArgument, "the filter 3")):
        with pytest.raises(error, match=text):
            call()
