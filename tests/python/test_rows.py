"""Normalised rows and running sums: order id 1 in NumPy, every layout and axis, residuals, plans, errors."""
import importlib.util
import itertools

import numpy as np
import pytest
from order_numpy import fma, fused, moments, running, term_tree, tree
from test_operations import LAYOUTS, noise, same

import lockstep as ls

KINDS = {"normalize": 1e-12, "rms_norm": 1e-6, "layer_norm": 1e-5}
SCANS = {"cumsum": np.cumsum, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate}


def by_the_order(kind, row, eps, weight=None, bias=None):
    """One row in double, but for its last rounding."""
    h, mean = row.astype("f8"), 0.0
    if kind == "layer_norm":
        n, total, squares = moments(h)
        mean = total / n
    else:
        squares = float(tree(h, True))
    d = max(np.sqrt(squares), eps) if kind == "normalize" else np.sqrt(squares / len(h) + eps)
    t = (h - mean) * (1.0 / d)
    if weight is not None and bias is not None:
        return np.array([fma(a, b, c) for a, b, c in zip(t, weight, bias)])
    return t * weight if weight is not None else t if bias is None else t + bias


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_rows_have_the_bits_of_the_order(kind, dtype):
    x, w, b = noise((3, 2500), dtype), noise(2500, dtype), noise(2500, dtype)
    for weight, bias in itertools.product((None, w), (None, b)):
        want = np.stack([by_the_order(kind, row, KINDS[kind], weight, bias) for row in x])
        got = getattr(ls, kind)(x, weight=weight, bias=bias)
        assert same(got, want.astype(dtype))
        assert ls.last_run().order == 1
    assert same(getattr(ls, kind)(x, weight=w.astype("f4"), eps=1.0), np.stack([by_the_order(kind, r, 1.0, w.astype("f4")) for r in x]).astype(dtype))
    assert same(getattr(ls, kind)(x, dtype="float32"), np.stack([by_the_order(kind, r, KINDS[kind]) for r in x]).astype("f4"))
    assert getattr(ls, kind)(x[0]).tobytes() == getattr(ls, kind)(x)[0].tobytes()


@pytest.mark.parametrize("name", [*KINDS, "softmax", "log_softmax", "logsumexp"])
def test_axes_in_the_middle_need_no_copy(name):
    call = getattr(ls, name)
    for shape, axis in (((3, 70, 5, 7), 1), ((4, 5, 6, 9), (1, 2)), ((2100, 17), 0), ((2, 4100, 3), 1), ((1, 3, 1, 40), 1)):
        x, axes = noise(shape, "f4"), (axis,) if isinstance(axis, int) else axis
        kept = [k for k in range(x.ndim) if k not in axes]
        rows = np.ascontiguousarray(x.transpose([*kept, *axes]))
        want = call(rows, tuple(range(len(kept), x.ndim)))
        if name != "logsumexp":
            want = np.ascontiguousarray(want.transpose(np.argsort([*kept, *axes])))
        assert same(call(x, axis, copy=False), want)
        if name == "logsumexp":
            assert call(x, axis, keepdims=True).shape == tuple(1 if k in axes else n for k, n in enumerate(shape))
            continue
        h = np.empty_like(x)
        assert same(call(x, axis, residual=np.zeros_like(x), residual_out=h, copy=False), want) and same(h, x + 0)
        padded = np.empty((*shape[:-1], shape[-1] + 1), "f4")[..., :-1]
        assert call(x, axis, out=padded) is padded and same(np.ascontiguousarray(padded), want)
        assert call(x, axis, out=x) is x and same(x, want)
    labels = np.arange(12).reshape(2, 6) % 5
    x = noise((2, 5, 6), "f4")
    assert same(ls.picked(x, labels, 1, copy=False), ls.picked(np.ascontiguousarray(x.transpose(0, 2, 1)), labels))
    with pytest.raises(BufferError):
        call(x.transpose(0, 2, 1), 1, copy=False)
    with pytest.raises(BufferError):
        call(x, (0, 2), copy=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_of_every_axis_and_layout(kind, layout):
    packed, residual = noise((4, 5, 6), "f8"), noise((4, 5, 6), "f8")
    x, r = LAYOUTS[layout](packed), LAYOUTS[layout](residual)
    for axes in (-1, 0, 1, (1, 2), (0, 2), (2, 0), (0, 1, 2)):
        listed = sorted(k % 3 for k in ([axes] if isinstance(axes, int) else axes))
        kept = [k for k in range(3) if k not in listed]
        order = [*kept, *listed]
        shape = tuple(packed.shape[k] for k in listed)
        weight, bias = noise(shape, "f8"), noise(shape, "f4").astype("f8")
        rows = np.ascontiguousarray(packed.transpose(order)).reshape(-1, weight.size)
        want = np.stack([getattr(ls, kind)(row, weight=weight.ravel(), bias=bias.ravel()) for row in rows])
        want = np.ascontiguousarray(want.reshape([packed.shape[k] for k in order]).transpose(np.argsort(order)))
        assert same(getattr(ls, kind)(x, axes, weight=weight, bias=bias), want)
        assert same(getattr(ls, kind)(x, axis=axes, weight=weight[::-1][::-1], bias=np.asfortranarray(bias)), want)
        out = np.zeros_like(packed)
        assert getattr(ls, kind)(x, axes, weight=weight, bias=bias, out=out) is out and same(out, want)
        h = np.zeros_like(packed)
        got = getattr(ls, kind)(x, axes, residual=r, residual_out=h)
        assert same(h, packed + residual) and same(got, getattr(ls, kind)(packed + residual, axes))


def test_rows_in_place():
    x, r = noise((7, 9), "f4"), noise((7, 9), "f4")
    want, h = ls.rms_norm(x + r), x + r
    a, b = x.copy(), r.copy()
    assert ls.rms_norm(a, residual=b, residual_out=b, out=a) is a
    assert same(a, want) and same(b, h)
    a = x.copy()
    assert same(ls.rms_norm(a, residual=r, residual_out=a), want) and same(a, h)
    assert ls.normalize(np.zeros((2, 3))).tolist() == [[0, 0, 0]] * 2 and np.isnan(ls.rms_norm(np.zeros(3), eps=0)).all()
    padded = np.zeros((7, 12), "f4")
    assert same(ls.layer_norm(x, out=padded[:, 2:11]).copy(), ls.layer_norm(x)) and not padded[:, :2].any()


def test_rows_that_are_refused():
    x = noise((4, 5), "f4")
    for wrong, error, text in (({"weight": np.ones(4, "f4")}, ls.InvalidArgument, "weight has 1 axes and 4"),
                               ({"bias": np.ones((1, 5), "f4")}, ls.InvalidArgument, "bias has 2 axes"),
                               ({"weight": np.ones(5)}, ls.UnsupportedDtype, "weight holds float64; give float32"),
                               ({"residual": np.ones((4, 5))}, ls.UnsupportedDtype, "residual holds float64"),
                               ({"residual": np.ones((5, 4), "f4")}, ls.InvalidArgument, "residual has"),
                               ({"residual_out": x}, ls.InvalidArgument, "no residual"),
                               ({"residual": x, "residual_out": np.ones((5, 4), "f4").T}, ls.InvalidArgument, "residual_out has rows"),
                               ({"residual": x, "residual_out": np.ones((4, 5))}, ls.UnsupportedDtype, "residual_out holds"),
                               ({"eps": -1}, ls.InvalidArgument, "eps"), ({"eps": "x"}, ls.InvalidArgument, "eps"),
                               ({"dtype": "int8"}, ls.UnsupportedDtype, "comes as float32"), ({"axis": 2}, ls.InvalidArgument, "axis"),
                               ({"axis": ()}, ls.InvalidArgument, "axis"), ({"out": np.ones((4, 5))}, ls.InvalidArgument, "float64")):
        with pytest.raises(error, match=text):
            ls.rms_norm(x, **wrong)
    with pytest.raises(ls.UnsupportedDtype, match="int64"):
        ls.layer_norm(np.arange(5))
    with pytest.raises(ls.InvalidArgument, match="no axes"):
        ls.normalize(np.float32(1))
    with pytest.raises(ls.UnsupportedDtype, match="of one dtype"):
        ls.rms_norm(x.astype("f2"), weight=np.ones(5, "f2"), bias=np.ones(5, "f4"))
    frozen = noise((4, 5), "f4")
    frozen.flags.writeable = False
    with pytest.raises(ls.InvalidArgument, match="residual_out is read-only"):
        ls.rms_norm(x, residual=x, residual_out=frozen)


def gradients_by_the_order(kind, x, g, eps, weight=None):
    """The gradients of x, weight and bias in double, but for their last rounding."""
    h, wide = x.astype("f8"), g.astype("f8")
    n, found, normal = float(x.shape[1]), [], []
    for row, u in zip(h, wide if weight is None else wide * weight.astype("f8")):
        mean, squares = 0.0, dot(row, row)
        if kind == "layer_norm":
            _, total, squares = moments(row)
            mean = total / n
        scale = 1.0 / np.sqrt(squares / n + eps)
        first = row[0] if kind == "layer_norm" else 0.0
        total = float(tree(u, False)) if kind == "layer_norm" else 0.0
        a, b = total / n, fma(first - mean, total, dot(u, row - first)) * scale / n
        t = (row - mean) * scale
        found.append([fma(-p, b, q - a) * scale for p, q in zip(t, u)])
        normal.append(t)
    columns = np.array([dot(p, q) for p, q in zip(wide.T, np.array(normal).T)]), np.array([tree(p, False) for p in wide.T])
    return np.array(found), *columns


def dot(x, y):
    """The sum of products in the fixed order."""
    return term_tree(len(x), lambda s, first, count: fused(x[first:first + count], y[first:first + count], s))


@pytest.mark.parametrize("kind", ["rms_norm", "layer_norm"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_gradients_have_the_bits_of_the_order(kind, dtype):
    backward = getattr(ls, f"{kind}_backward")
    for shape in ((2, 2100), (140, 6)):
        x, g, w = noise(shape, dtype), noise(shape, dtype), noise(shape[1], dtype)
        for weight in (None, w):
            of_weight, of_bias = np.empty(shape[1], dtype), np.empty(shape[1], dtype)
            got = backward(x, g, weight=weight, weight_gradient=of_weight, bias_gradient=of_bias)
            want = gradients_by_the_order(kind, x, g, KINDS[kind], weight)
            assert all(same(p, q.astype(dtype)) for p, q in zip((got, of_weight, of_bias), want))
            assert same(backward(x, g, weight=weight), got)


@pytest.mark.parametrize("kind", ["rms_norm", "layer_norm"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_every_axis_and_layout(kind, layout):
    backward, packed, other, rest = getattr(ls, f"{kind}_backward"), noise((4, 5, 6), "f4"), noise((4, 5, 6), "f4"), noise((4, 5, 6), "f4")
    x, g = LAYOUTS[layout](packed), LAYOUTS[layout](other)
    for axes in (-1, 0, 1, (1, 2), (0, 2), (0, 1, 2)):
        listed = sorted(k % 3 for k in ([axes] if isinstance(axes, int) else axes))
        order = [*(k for k in range(3) if k not in listed), *listed]
        shape = tuple(packed.shape[k] for k in listed)
        rows, grows = (np.ascontiguousarray(a.transpose(order)).reshape(-1, int(np.prod(shape))) for a in (packed, other))
        weight, want_weight, want_bias = noise(shape, "f4"), np.empty(rows.shape[1], "f4"), np.empty(rows.shape[1], "f4")
        want = backward(rows, grows, weight=weight.ravel(), weight_gradient=want_weight, bias_gradient=want_bias)
        want = np.ascontiguousarray(want.reshape([packed.shape[k] for k in order]).transpose(np.argsort(order)))
        of_weight, of_bias = np.empty(shape, "f4"), np.empty(shape, "f4")
        assert same(backward(x, g, axes, weight=weight, weight_gradient=of_weight, bias_gradient=of_bias), want)
        assert same(of_weight.ravel(), want_weight) and same(of_bias.ravel(), want_bias)
    a = packed.copy()
    assert backward(a, other, out=a) is a and same(a, backward(packed, other))
    assert same(backward(packed, other, residual=rest), backward(packed + rest, other))
    of_weight = np.empty(6, "f4")
    p = getattr(ls.plan, f"{kind}_backward")(packed, other, weight_gradient=of_weight)
    want = of_weight.copy()
    result = backward(packed, other, weight_gradient=want)
    assert same(p(packed), result) and same(of_weight, want)


def test_gradients_that_are_refused():
    x = noise((4, 5), "f4")
    for wrong, error, text in (({"gradient": np.ones((4, 5))}, ls.UnsupportedDtype, "gradient holds float64"),
                               ({"gradient": np.ones((5, 4), "f4")}, ls.InvalidArgument, "gradient has"),
                               ({"weight_gradient": np.ones(4, "f4")}, ls.InvalidArgument, "weight_gradient has 1 axes and 4"),
                               ({"weight_gradient": np.ones(5)}, ls.UnsupportedDtype, "weight_gradient holds float64; give float32"),
                               ({"bias_gradient": np.ones(10, "f4")[::2]}, ls.InvalidArgument, "bias_gradient is not packed"),
                               ({"bias": np.ones(5, "f4")}, TypeError, "no argument 'bias'"), ({"eps": -1}, ls.InvalidArgument, "eps")):
        with pytest.raises(error, match=text):
            ls.rms_norm_backward(x, **{"gradient": x, **wrong})
    with pytest.raises(TypeError, match="gradient"):
        ls.layer_norm_backward(x)
    with pytest.raises(ls.UnsupportedDtype, match="give all of one dtype"):
        ls.layer_norm_backward(x.astype("f2"), x.astype("f2"), weight_gradient=np.ones(5, "f2"), bias_gradient=np.ones(5, "f4"))
    with pytest.raises(ls.Unsupported, match="no group of"):
        ls._core.group("rms_norm_backward", [x], [x])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_running_sums_have_the_bits_of_the_order(dtype):
    x = noise(5000, dtype)
    want = running(x.astype("f8"))
    assert same(ls.cumsum(x, dtype="float64"), want)
    assert same(ls.cumsum(x), want.astype("f8" if dtype == "f8" else "f4"))
    assert same(ls.cumsum(x, dtype=dtype), want.astype(dtype))
    assert same(ls.cumsum(x, exclusive=True, dtype=float), np.concatenate(([0.0], want[:-1])))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "i4", "i8", "u1", "?"])
def test_scans_of_every_axis_and_layout(layout, dtype):
    packed = noise((4, 5, 6), "u1").astype(dtype) if dtype == "?" else noise((4, 5, 6), dtype)
    x = LAYOUTS[layout](packed)
    for name, of_numpy in SCANS.items():
        scan = getattr(ls, name)
        for axis in (0, 1, 2, -1):
            lines = np.moveaxis(packed, axis, -1)
            want = np.stack([scan(line) for line in lines.reshape(-1, lines.shape[-1]).copy()]).reshape(lines.shape)
            want = np.ascontiguousarray(np.moveaxis(want, -1, axis))
            assert same(scan(x, axis), want)
            out = np.zeros_like(want)
            if dtype not in "u1?" or name == "cumsum":
                assert scan(x, axis, out=out) is out and same(out, want)
            if dtype != "f4" or name != "cumsum":
                assert np.array_equal(want, of_numpy(packed, axis))
        whole = scan(x)
        assert whole.shape == (120,) and same(whole, scan(packed.ravel()))
        assert whole.dtype == (np.int64 if name == "cumsum" and dtype != "f4" else packed.dtype)


def test_scans_of_sequences_that_lie_apart_in_the_result():
    x = noise((5, 4, 6), "f4").transpose(1, 0, 2)
    want = ls.cumsum(x.copy(), 1)
    assert same(ls.cumsum(x, 1), want) and same(ls.group.cumsum([x], 1)[0], want)
    assert same(ls.cumsum(x.astype("i1"), 1), ls.cumsum(x.astype("i1").copy(), 1))
    out = np.zeros_like(x)
    assert ls.cumsum(x, 1, out=out, copy=False) is out and np.array_equal(out, want)
    with pytest.raises(ls.InvalidArgument, match="lies as x does"):
        ls.cumsum(x, 1, out=np.zeros((4, 5, 6), "f4"))
    with pytest.raises(ls.Unsupported, match="packed"):
        ls.plan.cumsum(x, 1)


def test_scans():
    x = np.array([3, -1, 7, 2], "i4")
    assert ls.cumsum(x, exclusive=True).tolist() == [0, 3, 2, 9]
    assert ls.cummax(x, exclusive=True).tolist() == [-2**31, 3, 3, 7] and ls.cummin(x).tolist() == [3, -1, -1, -1]
    assert ls.cummax(np.array([1.0, np.nan, 5.0])).tolist()[0] == 1 and np.isnan(ls.cummax(np.array([1.0, np.nan, 5.0]))[1:]).all()
    a = x.copy()
    assert ls.cummax(a, out=a) is a and a.tolist() == [3, 3, 7, 7]
    assert ls.cumsum(np.zeros((0, 3)), axis=0).shape == (0, 3) and ls.cumsum(np.zeros(0)).shape == (0,)
    assert same(ls.cumsum(np.float32(2)), np.array([2], "f4"))
    with pytest.raises(ls.Overflow) as caught:
        ls.cumsum(np.array([2**62, 2**62, 1]))
    assert caught.value.out[0] == 2**62 and caught.value.out[1] == 2**63 - 1
    for wrong, error, text in (({"axis": (0, 1)}, ls.InvalidArgument, "one axis"), ({"axis": 2}, ls.InvalidArgument, "axis"),
                               ({"dtype": "int8"}, ls.UnsupportedDtype, "comes as float64"), ({"out": np.zeros(3)}, ls.InvalidArgument, "shape")):
        with pytest.raises(error, match=text):
            ls.cumsum(np.ones((2, 3)), **wrong)
    for call, text in ((lambda: ls.cumsum(np.ones(3, "u8")), "uint64"), (lambda: ls.cummax(np.ones(3, "u1"), exclusive=True), "exclusive"),
                       (lambda: ls.cumsum(np.ones(3, "c8")), "complex")):
        with pytest.raises(ls.UnsupportedDtype, match=text):
            call()
    with pytest.raises(ls.InvalidArgument, match="one stride apart"):
        ls.cumsum(np.ones((4, 5, 6)), axis=2, out=np.ones((4, 7, 6))[:, 1:6])


def test_plans_and_settings():
    x, w, r, h = noise((6, 8), "f4"), noise(8, "f4"), noise((6, 8), "f4"), np.zeros((6, 8), "f4")
    p = ls.plan.rms_norm(x, weight=w, residual=r, residual_out=h)
    want = ls.rms_norm(x + r, weight=w)
    held = w.copy()
    del w, r  # the plan keeps them
    assert same(p(x), want) and same(h, x + (h - x)) and p.op == "normalize"
    assert same(ls.plan.cumsum(x, axis=0)(x), ls.cumsum(x, axis=0)) and ls.plan.cumsum(x, axis=0).op == "scan"
    assert same(ls.plan.rms_norm(x, axis=0)(x), ls.rms_norm(x, axis=0))
    described = ls.plan.layer_norm(ls.spec((6, 8)), weight=held)
    assert same(described(x), ls.layer_norm(x, weight=held))
    for wrong in (lambda: ls.plan.rms_norm(x.T, axis=1), lambda: ls.plan.rms_norm(x.T), lambda: ls.plan.rms_norm(x, weight=held[::-1]),
                  lambda: ls.plan.rms_norm(x, residual=noise((8, 6), "f4").T), lambda: ls.plan.cumsum(noise((3, 4, 5), "f4"), axis=1),
                  lambda: ls.plan.cumsum(x.T)):
        with pytest.raises(ls.Unsupported, match="a plan makes no copy"):
            wrong()
    with ls.variants(normalize="ref", scan="ref"), ls.record() as runs:
        ls.rms_norm(x), ls.cummax(x)
    assert [(run.op, run.variant) for run in runs] == [("normalize", "ref"), ("scan", "ref")]
    with ls.Context("cpu", threads=1) as context:
        assert same(context.layer_norm(x), ls.layer_norm(x)) and same(context.cumsum(x), ls.cumsum(x))
    assert ls.variants_of("normalize") and ls.variants_of("scan")


@pytest.mark.parametrize("library", ["torch", "jax", "array_api_strict", "own"])
def test_arrays_of_other_libraries(library):
    if library == "own":
        from test_exchange import to_own as convert
    else:
        module = pytest.importorskip({"jax": "jax.numpy"}.get(library, library))
        convert = getattr(module, "asarray")
    x, w = noise((3, 4, 5), "f4"), noise(5, "f4")
    y, v = convert(x), convert(w)
    for call in (lambda x, w: ls.rms_norm(x, weight=w), lambda x, w: ls.layer_norm(x, axis=(0, 1)), lambda x, w: ls.cumsum(x, axis=1),
                 lambda x, w: ls.cummax(x)):
        got, want = call(y, v), call(x, w)
        assert type(got) is type(y) and same(np.from_dlpack(got) if library != "jax" else np.asarray(got), want)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch")
def test_rows_beside_those_of_torch():
    import torch
    f = torch.nn.functional
    x, w, b = torch.randn(6, 4, 30), torch.randn(4, 30), torch.randn(4, 30)
    assert torch.allclose(ls.layer_norm(x, axis=(1, 2), weight=w, bias=b), f.layer_norm(x, (4, 30), w, b), atol=1e-5)
    assert torch.allclose(ls.rms_norm(x, axis=(1, 2), weight=w, eps=1e-6), f.rms_norm(x, (4, 30), w, 1e-6), atol=1e-5)
    assert torch.allclose(ls.normalize(x, axis=1), f.normalize(x), atol=1e-6)
    assert torch.allclose(ls.cumsum(x, axis=1), x.cumsum(1), atol=1e-5)
    assert torch.equal(ls.cummax(x, axis=2), x.cummax(2).values)
    half = ls.rms_norm(x.bfloat16(), weight=w.bfloat16()[0])
    assert half.dtype == torch.bfloat16
    with pytest.raises((ls.InvalidArgument, BufferError), match="weight requires a gradient|detach"):
        ls.rms_norm(x, weight=torch.ones(30, requires_grad=True))


def test_rows_beyond_the_range_of_doubles_warn():
    """What is silently 0 or infinite warns, and what is right does not."""
    rng = np.random.default_rng(4)
    big, small, ordinary = rng.standard_normal((3, 9)) * 1e200, rng.standard_normal((3, 9)) * 1e-200, rng.standard_normal((3, 9))
    w = np.array([0.0, *[2.0] * 8])
    for call in (lambda: ls.rms_norm(big), lambda: ls.rms_norm(small, eps=0), lambda: ls.layer_norm(big), lambda: ls.layer_norm(small, eps=0), lambda: ls.rms_norm(big, weight=w),
                 lambda: ls.rms_norm(big, 0), lambda: ls.rms_norm(big, dtype="float32"), lambda: ls.layer_norm(np.array([ordinary[0], big[0]]))):
        with pytest.warns(RuntimeWarning, match="of x leave the range of float64.*normalize"):
            call()
    flat = np.full((2, 999), 1e15 + 0.3)
    # Right results, infinities that were given, rows of zeros, and other types are silent (these tests take warnings for errors).
    infinite = ordinary.copy()
    infinite[1, 4] = np.inf
    for x in (ordinary, ordinary * 1e100, ordinary * 1e-100, np.zeros((2, 5)), infinite, flat.astype("f4"), np.full((2, 5), 4.0), np.ones((3, 1))):
        ls.rms_norm(x), ls.layer_norm(x), ls.rms_norm(x, weight=np.zeros(x.shape[1], x.dtype))
    ls.normalize(big), ls.rms_norm(ordinary, eps=0), ls.layer_norm(np.zeros((2, 4)), eps=0), ls.layer_norm(np.full((2, 3), 0.1))


@pytest.mark.parametrize("value", [1e15 + 0.3, 0.1, -0.7, 1e308, -1e-300, 5e-324])
@pytest.mark.parametrize("shape", [(2, 3), (2, 999), (3, 2049), (70, 5000)])
def test_the_mean_of_equal_elements_is_their_value(value, shape):
    x = np.full(shape, value)
    for axis in (None, 0, 1):
        assert np.all(ls.mean(x, axis) == value) and np.all(ls.var(x, axis) == 0) and np.all(ls.std(x, axis) == 0)
    assert not ls.layer_norm(x).any() and np.isnan(ls.layer_norm(x, eps=0)).all()
    if 1e-100 < abs(value) < 1e100:
        x[1, -1] = np.nextafter(value, 0)  # another element is seen wherever it stands
        assert not np.isnan(ls.layer_norm(x, eps=0)[1]).any()
