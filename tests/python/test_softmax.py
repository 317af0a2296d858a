"""Softmax and its kin: against long doubles, every axis and layout, labels, plans, groups, errors, PyTorch's gradients."""
import numpy as np
import pytest
from test_operations import LAYOUTS, noise, same

import lockstep as ls

L = np.longdouble
FOUR = ["softmax", "log_softmax", "logsumexp", "picked"]


def exact(name, rows, scale=1.0, labels=None):
    """Rows of long doubles, and the error that lockstep.h allows before the last rounding."""
    with np.errstate(all="ignore"):
        m = rows.astype(L).max(-1, keepdims=True) if scale > 0 else rows.astype(L).min(-1, keepdims=True)
        d = (rows.astype(L) - m) * L(scale)
        e = np.exp(d)
        total = e.sum(-1, keepdims=True)
        steps = 32 + max(0, np.ceil(np.log2(rows.shape[-1] / 2048))) + 2 * abs(d)
        more = 2 * (np.log(total) + abs(m * L(scale)))
        if name == "softmax":
            return e / total, steps * L(2) ** -53 * (e / total)
        if name == "logsumexp":
            return (m * L(scale) + np.log(total))[..., 0], (steps.min(-1) + more[..., 0]) * L(2) ** -53
        y, slack = d - np.log(total), (steps + more) * L(2) ** -53
        return (y, slack) if name == "log_softmax" else [np.take_along_axis(t, labels[..., None], -1)[..., 0] for t in (y, slack)]


def call(name, x, labels, *arguments, **keywords):
    return getattr(ls, name)(x, *([labels] if name == "picked" else []), *arguments, **keywords)


@pytest.mark.parametrize("name", FOUR)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_values(name, dtype):
    rng = np.random.default_rng(5)
    for shape in ((5, 1), (7, 9), (3, 700), (2, 9001)):
        x = (rng.standard_normal(shape) * 6).astype(dtype)
        labels = rng.integers(0, shape[1], shape[0])
        for scale in (1.0, 0.125, -2.0):
            want, slack = exact(name, x, scale, labels)
            got = call(name, x, labels, scale=scale)
            half = np.spacing(abs(want).astype(dtype)).astype(L) / 2  # of the last rounding
            assert got.dtype == dtype and (abs(got.astype(L) - want) <= half * (1 + L(2) ** -10) + slack).all()
            assert same(got, call(name, x, labels, scale=scale, variant="ref"))
        assert same(call(name, x, labels, dtype="float32"), call(name, x, labels, dtype="float32", variant="ref"))


@pytest.mark.parametrize("length", [150, 2048, 9001, 300_001])
def test_rows_of_every_kept_length(length):
    """Exponentials that a thread keeps and that it computes twice; blocks of them that are all normal numbers, and others."""
    rng = np.random.default_rng(length)
    x = rng.standard_normal((3, length)).astype("f4")
    x[1, length // 3::7] = -np.inf
    x[2, 100:] = np.linspace(-690, -740, length - 100)
    want = [ls.softmax(x, variant="ref"), ls.softmax(x, scale=0.97, variant="ref")]
    for threads in (1, 2):
        with ls.Context(threads=threads) as context:
            assert same(ls.softmax(x, context=context), want[0]) and same(ls.softmax(x, scale=0.97, context=context), want[1])


@pytest.mark.parametrize("name", FOUR)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_segments_have_the_bits_of_rows(name, dtype):
    rng, one, empty = np.random.default_rng(3), name in ("logsumexp", "picked"), name != "picked"
    for lengths in (rng.integers(1 - empty, 9, 300), rng.integers(1, 700, 40), np.array([3, 5000, 1]), np.array([1, 150_001] if dtype == "f4" else [2, 1])):
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        x, labels = (rng.standard_normal(offsets[-1]) * 5).astype(dtype), (rng.random(len(lengths)) * lengths).astype("i8")
        x[rng.random(len(x)) < 0.1] = -np.inf
        slices = [slice(a, b) for a, b in zip(offsets, offsets[1:])]
        for scale in (1.0, 0.3):
            got = call("segment_" + name, x, labels, offsets, scale=scale) if name != "picked" else ls.segment_picked(x, labels, offsets, scale=scale)
            rows = [call(name, x[s], np.array(k), scale=scale) if s.start < s.stop else x[:0] if not one else -np.inf for s, k in zip(slices, labels)]
            want = np.array(rows, dtype) if one else np.concatenate(rows)
            assert same(got, want)
            assert same(got, getattr(ls, "segment_" + name)(x, *([labels] if name == "picked" else []), list(offsets), scale=scale, variant="ref"))
    wide = getattr(ls, "segment_" + name)(x, *([labels] if name == "picked" else []), offsets, dtype="float64" if one else "float32")
    assert wide.dtype == ("f8" if one else "f4")


def test_segments_of_several_axes_and_their_errors():
    rng = np.random.default_rng(8)
    x, offsets = rng.standard_normal((60, 3, 2)).astype("f4"), [0, 10, 10, 41, 60]
    y, z = ls.segment_softmax(x, offsets, scale=0.5), ls.segment_log_softmax(np.asfortranarray(x), np.array(offsets, "i4"))
    one = ls.segment_logsumexp(x, [5, 10, 10, 41])
    assert y.shape == z.shape == x.shape and one.shape == (3, 3, 2) and np.isneginf(one[1]).all()
    for a, b in ((0, 10), (10, 41), (41, 60)):
        assert same(y[a:b], ls.softmax(x[a:b], 0, scale=0.5)) and same(z[a:b], ls.log_softmax(x[a:b], 0))
    assert same(one[0], ls.logsumexp(x[5:10], 0)) and same(one[2], ls.logsumexp(x[10:41], 0))
    labels = rng.integers(0, 5, (2, 3, 2))
    assert same(ls.segment_picked(x, labels, [5, 10, 41])[1], ls.picked(x[10:41], labels[1], 0))
    flat, out = np.ascontiguousarray(x[:, 0, 0]), np.zeros(60, "f4")
    assert ls.segment_softmax(flat, offsets, out=out) is out and same(out, ls.segment_softmax(flat[::1], offsets))
    assert same(ls.segment_softmax(x[:, 0, 0], offsets), out)  # not packed
    assert same(ls.plan.segment_softmax(flat, np.array(offsets))(flat), out)
    assert all(same(a, out) for a in ls.group.segment_softmax([flat, flat], offsets=offsets))
    for wrong, text in ((lambda: ls.segment_softmax(flat, [0, 50]), "end at 50, but x has 60 elements; give offsets from 0 to 60"),
                        (lambda: ls.segment_softmax(x, [1, 60]), "begin at 1 and end at 60, but x has 60 rows"),
                        (lambda: ls.segment_logsumexp(flat, [0, 61]), "offsets\\[-1\\] is 61"),
                        (lambda: ls.segment_softmax(flat, [0, 50, 40, 60]), "offsets\\[2\\] is 40, less than"),
                        (lambda: ls.segment_softmax(x, [0, 50, 40, 60]), "offsets decrease"),
                        (lambda: ls.segment_picked(flat, [0, 0], [0, 0, 60]), "segment 0 is empty"),
                        (lambda: ls.segment_picked(flat, [0, 50], [0, 10, 60]), "labels\\[1\\] is 50; give 0 to 49"),
                        (lambda: ls.segment_picked(flat, [0], [0, 10, 60]), "give one for each of 2 segments"),
                        (lambda: ls.segment_picked(x, [0, 1], [0, 10, 60]), "labels has"),
                        (lambda: ls.segment_softmax(np.float32(1), [0, 1]), "x has no axes")):
        with pytest.raises((ls.InvalidArgument, ValueError), match=text):
            wrong()
    with pytest.raises(TypeError, match="x holds int32"):
        ls.segment_softmax(np.arange(3, dtype="i4"), [0, 3])


def test_gradients_of_segments():
    torch = pytest.importorskip("torch")
    lt = pytest.importorskip("lockstep.torch")
    offsets, cut = torch.tensor([0, 3, 3, 10, 12]), torch.tensor([1, 3, 4, 12])
    for shape in ((12,), (12, 2)):
        x = torch.from_numpy(np.random.default_rng(2).standard_normal(shape)).requires_grad_()
        labels = torch.tensor([1, 0, 5]) if len(shape) == 1 else torch.tensor([[1, 0], [0, 0], [5, 7]])
        for f in (lambda x: lt.segment_softmax(x, offsets, scale=0.7), lambda x: lt.segment_log_softmax(x, offsets),
                  lambda x: lt.segment_logsumexp(x, cut, scale=-2.0), lambda x: lt.segment_picked(x, labels, cut, scale=0.5)):
            assert torch.autograd.gradcheck(f, (x,))
        half = x.detach().bfloat16()
        assert torch.equal(lt.segment_softmax(half, offsets, dtype=torch.float32), ls.segment_softmax(half, offsets, dtype="float32"))
        both = torch.stack([x.detach(), -x.detach()])
        assert torch.equal(torch.vmap(lambda a: lt.segment_softmax(a, offsets))(both)[1], lt.segment_softmax(both[1], offsets))


def test_masks_infinities_and_nans():
    x = np.array([[-np.inf, 3, 3], [-np.inf] * 3, [np.inf, 0, 0], [np.nan, 0, 0]])
    nan = [np.nan] * 3
    assert same(ls.softmax(x), np.array([[0, 0.5, 0.5], nan, nan, nan]))
    assert np.isneginf(ls.log_softmax(x)[0, 0]) and np.isnan(ls.log_softmax(x)[1:]).all()
    assert same(ls.logsumexp(x)[1:], np.array([-np.inf, np.inf, np.nan]))
    assert same(ls.picked(x, [0, 0, 0, 1])[1:], np.array(nan)) and np.isneginf(ls.picked(x, [0] * 4)[0])
    assert same(ls.softmax(-x, scale=-1.0), ls.softmax(x)) and same(ls.logsumexp(-x, scale=-1.0), ls.logsumexp(x))
    assert same(ls.softmax(np.array([0.0, 1e308, -1e308])), np.array([0.0, 1, 0]))


@pytest.mark.parametrize("name", FOUR)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_axis_and_layout(name, layout):
    packed = noise((4, 5, 6), "f4")
    x, one = LAYOUTS[layout](packed), name in ("logsumexp", "picked")
    for axes in (-1, 0, 1, (1, 2), (2, 0), (0, 1, 2)):
        listed = sorted(k % 3 for k in ([axes] if isinstance(axes, int) else axes))
        kept = [k for k in range(3) if k not in listed]
        rows = np.ascontiguousarray(packed.transpose([*kept, *listed])).reshape(*[packed.shape[k] for k in kept], -1)
        labels = np.random.default_rng(1).integers(0, rows.shape[-1], rows.shape[:-1])
        want = call(name, rows, labels)
        if not one:
            want = np.ascontiguousarray(want.reshape([packed.shape[k] for k in [*kept, *listed]]).transpose(np.argsort([*kept, *listed])))
        assert same(np.asarray(call(name, x, labels, axes)), np.asarray(want))
        assert same(np.asarray(call(name, x, np.array(labels, "i2", order="F"), axis=axes)), np.asarray(want))
        out = np.zeros_like(want) if np.ndim(want) else np.zeros((), "f4")
        assert call(name, x, labels, axes, out=out) is out and same(out, np.asarray(want))
        if one:
            kept_axes = call(name, x, labels, axes, keepdims=True)
            assert kept_axes.shape == tuple(1 if k in listed else n for k, n in enumerate(packed.shape))
            assert same(kept_axes.reshape(np.shape(want)), np.asarray(want))


def test_outputs_residuals_plans_and_groups():
    x, mask = noise((6, 300), "f4"), np.where(np.arange(300) % 7 == 0, -np.inf, 0).astype("f4")
    labels = np.arange(6)
    masks, h = np.broadcast_to(mask, x.shape), np.zeros_like(x)
    assert same(ls.softmax(x, residual=masks, residual_out=h), ls.softmax(x + mask)) and same(h, x + mask)
    assert (ls.softmax(x, residual=masks)[:, ::7] == 0).all()
    copy = x.copy()
    assert ls.softmax(copy, out=copy) is copy and same(copy, ls.softmax(x))
    assert same(ls.softmax(x.T, 0), ls.softmax(x).T.copy()) and same(ls.softmax(x[:, :0]), x[:, :0])
    for name in FOUR:
        given = [labels] if name == "picked" else []
        plan = getattr(ls.plan, name)(x, *given)
        assert plan.op == "normalize" and same(plan(x), call(name, x, labels))
        assert all(same(a, call(name, x, labels)) for a in getattr(ls.group, name)([x, x], *([[labels, labels]] if given else [])))
        with ls.Context(threads=2) as context:
            assert same(getattr(context, name)(x, *given), call(name, x, labels))
    assert same(np.stack([ls.softmax(row) for row in x]), ls.softmax(x))
    assert ls.picked(x, labels, dtype="float64").dtype == "f8" and ls.logsumexp(x[0], dtype="float64").dtype == "f8"
    assert same(ls.picked(x, labels, dtype="float64").astype("f4"), ls.picked(x, labels))


def test_errors_name_the_argument():
    x = np.ones((2, 3), "f4")
    for labels, words in (([0, 3], r"labels\[1\] is 3; give 0 to 2"), ([-1, 0], r"labels\[0\] is -1"), ([0.0, 1.0], "labels holds float64; give integers"),
                          ([0, 1, 2], "labels has 1 axes and 3 elements; give the shape of x without"), ([[0, 1]], "labels has 2 axes")):
        with pytest.raises(ls.InvalidArgument, match=words):
            ls.picked(x, np.array(labels))
    with pytest.raises(ls.InvalidArgument, match="scale is 0"):
        ls.softmax(x, scale=0)
    with pytest.raises(ls.InvalidArgument, match="length is 0"):
        ls.logsumexp(x[:, :0])
    with pytest.raises(TypeError, match="x holds int64"):
        ls.log_softmax(np.ones((2, 3), "i8"))
    with pytest.raises(TypeError, match="this result comes as float32, float16, bfloat16"):
        ls.softmax(x, dtype="float64")
    with pytest.raises(TypeError, match="needs the argument labels"):
        ls.picked(x)
    with pytest.raises(TypeError, match="no argument"):
        ls.softmax(x, weight=x[0])


def test_gradients_of_pytorch():
    torch = pytest.importorskip("torch")
    import lockstep.torch as lt

    x = torch.linspace(-3, 4, 60, dtype=torch.float64).reshape(3, 4, 5)
    labels, weights = torch.arange(15).reshape(3, 5) % 4, torch.linspace(1, 2, 60, dtype=torch.float64).reshape(3, 4, 5)
    f = torch.nn.functional
    pairs = {"softmax": (lambda t: lt.softmax(t, 1, scale=0.5), lambda t: torch.softmax(t * 0.5, 1)),
             "log_softmax": (lambda t: lt.log_softmax(t, (1, 2)), lambda t: torch.log_softmax(t.flatten(1), 1).reshape(t.shape)),
             "logsumexp": (lambda t: lt.logsumexp(t, 1, scale=-2.0), lambda t: torch.logsumexp(t * -2, 1)),
             "logsumexp kept": (lambda t: lt.logsumexp(t, (0, 2), keepdims=True), lambda t: torch.logsumexp(t, (0, 2), keepdim=True)),
             "picked": (lambda t: lt.picked(t, labels, 1), lambda t: -f.cross_entropy(t, labels, reduction="none"))}
    for name, (ours, theirs) in pairs.items():
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        ya, yb = ours(a), theirs(b)
        assert torch.allclose(ya, yb, rtol=1e-13), name
        w = weights if ya.shape == x.shape else weights.flatten()[: ya.numel()].reshape(ya.shape)
        (ya * w).sum().backward()
        (yb * w).sum().backward()
        assert torch.allclose(a.grad, b.grad, rtol=1e-12, atol=1e-14), name
        assert torch.autograd.gradcheck(ours, x.clone().requires_grad_()), name
    v = torch.func.vmap
    assert torch.equal(v(lt.softmax, in_dims=1, out_dims=1)(x), lt.softmax(x))
    assert torch.equal(v(lt.picked)(x, labels[:, :4]), lt.picked(x, labels[:, :4]))
    assert torch.equal(v(lt.logsumexp)(x), lt.logsumexp(x))
    half = x.to(torch.bfloat16).requires_grad_()
    lt.softmax(half, dtype=torch.float32).square().sum().backward()
    assert half.grad.dtype == torch.bfloat16 and torch.isfinite(half.grad.float()).all()


def test_pytorch_functions_within_deterministic():
    torch = pytest.importorskip("torch")
    import lockstep.torch as lt

    x = torch.linspace(-4, 4, 120).reshape(4, 30)
    for name in ("softmax", "log_softmax", "logsumexp"):
        a, b = x.clone().requires_grad_(), x.double().requires_grad_()
        with lt.deterministic():
            y = getattr(torch, name)(a, 1)
            y.backward(torch.ones_like(y) * torch.arange(1, y.numel() + 1).reshape(y.shape))
        assert torch.equal(y, getattr(lt, name)(x))
        z = getattr(torch, name)(b, 1)
        z.backward(torch.ones_like(z) * torch.arange(1, z.numel() + 1).reshape(z.shape))
        assert torch.allclose(a.grad.double(), b.grad, rtol=1e-5, atol=1e-4), name
