"""Functions of each element: every f16, every bfloat16 as PyTorch holds it, and floats against NumPy's long doubles; layouts, plans, errors, gradients."""
import numpy as np
import pytest
from test_operations import LAYOUTS, noise, same

import lockstep as ls

L = np.longdouble
VALUES = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
    "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "silu": lambda x: x / (1 + np.exp(-x)),
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))}
OTHERS = ["gelu", "gelu_tanh", "erf"]
EVERY_HALF = np.arange(1 << 16, dtype="u2").view("f2")


def to_odd(y):
    """As doubles that round to a shorter type as y does: cut off, the last bit set where anything is missing."""
    near = y.astype("f8")
    bits, rest = near.view("i8"), y - near.astype(L)
    missing = np.isfinite(near) & (rest != 0)
    return np.where(missing, (bits - (missing & ((rest > 0) == np.signbit(near)))) | 1, bits).view("f8")


def wanted(name, x, to):
    """By long doubles, rounded once; and where those lie in the middle of two results, so that this says nothing."""
    with np.errstate(all="ignore"):
        y = VALUES[name](x.astype(L))
        if name == "silu":
            y[np.isneginf(x)] = -0.0
        want = to_odd(y).astype(to)
        want[np.isnan(want)] = np.array(np.nan, to)
        # A middle is only a middle of long doubles: near 0 and far out the exact value lies beside it.
        step = abs(np.spacing(want)).astype(L)
        return want, np.isfinite(y) & (abs(abs(y - want.astype(L)) - step / 2) < step * L(2) ** -20)


@pytest.mark.parametrize("name", VALUES)
def test_every_half(name):
    for to in ("f2", "f4"):
        want, middle = wanted(name, EVERY_HALF, to)
        got = getattr(ls, name)(EVERY_HALF, to)
        assert same(got[~middle], want[~middle])
        assert middle.sum() < 2100 and ls.last_run().variant == "runs"


@pytest.mark.parametrize("name", VALUES)
def test_random_floats(name):
    x = np.frombuffer(np.random.default_rng(3).bytes(4 * 200001), "f4")
    x = np.concatenate([x, (np.random.default_rng(4).standard_normal(200001) * 8).astype("f4")])
    want, middle = wanted(name, x, "f4")
    assert same(getattr(ls, name)(x)[~middle], want[~middle])


@pytest.mark.parametrize("name", [*VALUES, *OTHERS])
def test_layouts_outputs_and_variants(name):
    packed = abs(noise((4, 5, 6), "f4"))
    want = getattr(ls, name)(packed, "f2", scale=0.5, variant="ref")
    for layout in LAYOUTS:
        assert same(getattr(ls, name)(LAYOUTS[layout](packed), "float16", scale=0.5), want)
    plan = getattr(ls.plan, name)(packed, "f2", scale=0.5)
    assert plan.op == "map" and same(plan(packed), want)
    copy = packed.copy()
    assert getattr(ls, name)(copy, out=copy) is copy and same(copy, getattr(ls, name)(packed))
    assert all(same(a, want) for a in getattr(ls.group, name)([packed, packed], "f2", scale=0.5))
    assert same(getattr(ls, name)(packed[:0]), packed[:0])


def test_known_values():
    f = lambda *v: np.array(v, "f4")  # noqa: E731
    inf, nan = np.inf, np.nan
    assert same(ls.gelu(f(-inf, -0.0, 0, inf)), f(-0.0, -0.0, 0, inf)) and same(ls.silu(f(-inf, -0.0, 0, inf)), f(-0.0, -0.0, 0, inf))
    assert same(ls.erf(f(-inf, -0.0, 0, inf, nan)), f(-1, -0.0, 0, 1, nan)) and same(ls.gelu_tanh(f(-inf, 0, inf)), f(-0.0, 0, inf))
    assert same(ls.log(f(0, -0.0, -1, inf)), f(-inf, -inf, nan, inf)) and same(ls.log1p(f(-1, -2, -0.0)), f(-inf, nan, -0.0))
    assert same(ls.rsqrt(f(0, -0.0, inf, -1)), f(inf, -inf, 0, nan)) and same(ls.softplus(f(-inf, 0, inf)), f(0, np.log(2), inf))
    assert same(ls.exp(f(-inf, 88.72284, inf, nan)), f(0, inf, inf, nan)) and same(ls.sigmoid(f(-inf, 0, inf)), f(0, 0.5, 1))
    # 2^-149 / 2 lies in the middle of 0 and 2^-149, and silu a trace above it.
    assert same(ls.silu(f(2.0**-149, -(2.0**-149))), f(2.0**-149, -0.0))


def test_gated_units():
    x, y = (np.random.default_rng(s).standard_normal((30, 40)).astype("f4") for s in (3, 4))
    exact = np.sqrt(np.abs(x).astype("f8")) * y.astype("f8")  # hardly ever so near a middle that its own rounding matters
    a = np.abs(x)
    assert same(ls.sqrt(a, times=y), exact.astype("f4")) and same(ls.sqrt(a, "float16", times=y), exact.astype("f2"))
    assert same(ls.sqrt(a, scale=2.0, times=y), (2 * exact).astype("f4"))
    want = ls.silu(x, times=y)
    assert not same(want, ls.silu(x) * y)  # which is rounded twice
    both = np.concatenate([x, y], 1)
    assert same(ls.silu(both[:, :40], times=both[:, 40:]), want)  # two halves of one array
    assert same(ls.silu(x.T, times=y.T), want.T) and same(ls.silu(x, times=np.asfortranarray(y)), want)
    assert same(ls.plan.silu(x, times=y)(x), want) and all(same(g, want) for g in ls.group.silu([x, x], times=[y, y]))
    copy = x.copy()
    assert ls.silu(copy, times=y, out=copy) is copy and same(copy, want)
    assert same(ls.silu(x, times=x), ls.silu(x, times=x.copy()))
    assert same(ls.silu(x[:0], times=y[:0]), x[:0])
    with pytest.raises(ls.InvalidArgument, match="times has 1 axes and 40 elements; give the shape of x"):
        ls.silu(x, times=y[0])
    with pytest.raises(TypeError, match="times holds float64; give float32, as x does"):
        ls.silu(x, times=y.astype("f8"))
    with pytest.raises(BufferError, match="copy is False"):
        ls.silu(x, times=np.asfortranarray(y), copy=False)
    with pytest.raises(ls.InvalidArgument, match="times"):
        ls.silu(x, times=y, out=y)


def test_errors_name_the_argument():
    with pytest.raises(ls.UnsupportedDtype, match="x holds float64; exp takes float16, bfloat16 and float32"):
        ls.exp(np.ones(3))
    with pytest.raises(TypeError, match="x holds int32"):
        ls.gelu(np.ones(3, "i4"))
    with pytest.raises(TypeError, match="dtype is 'float64'"):
        ls.exp(np.ones(3, "f4"), "float64")
    with pytest.raises(ls.InvalidArgument, match="shape"):
        ls.log(np.ones(3, "f4"), out=np.ones(4, "f4"))


def test_every_bfloat16_and_gradients_of_pytorch():
    torch = pytest.importorskip("torch")
    import lockstep.torch as lt

    bits = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16)
    every = bits.view(torch.bfloat16)
    for name in VALUES:
        want, middle = wanted(name, every.float().numpy(), "f4")
        got = getattr(ls, name)(every, "float32").numpy()
        assert same(got[~middle], want[~middle])
    x = torch.linspace(0.1, 3, 40, dtype=torch.float32)
    peers = {"rsqrt": torch.rsqrt, "gelu": torch.nn.functional.gelu, "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
             "silu": torch.nn.functional.silu, "softplus": torch.nn.functional.softplus}
    for name in [*VALUES, *OTHERS]:
        for values in (x, *([-x] if name not in ("log", "log1p", "sqrt", "rsqrt") else [])):
            a, b = values.clone().requires_grad_(), values.double().requires_grad_()
            getattr(lt, name)(a).sum().backward()
            peers.get(name, getattr(torch, name, None))(b).sum().backward()
            assert torch.allclose(a.grad.double(), b.grad, rtol=1e-6, atol=1e-7), name
    assert torch.equal(torch.func.vmap(lt.exp, in_dims=1, out_dims=1)(x.reshape(8, 5)), lt.exp(x).reshape(8, 5))


def test_gated_units_of_pytorch_have_gradients():
    torch = pytest.importorskip("torch")
    import lockstep.torch as lt

    rng = np.random.default_rng(4)
    x, y, g = (torch.from_numpy(rng.standard_normal((6, 5)).astype("f4")) for _ in range(3))
    for name, peer in (("silu", torch.nn.functional.silu), ("gelu", torch.nn.functional.gelu), ("tanh", torch.tanh), ("exp", torch.exp)):
        function = getattr(lt, name)
        a, b, c, d = x.clone().requires_grad_(), y.clone().requires_grad_(), x.double().requires_grad_(), y.double().requires_grad_()
        function(a, times=b).backward(g)
        (peer(c) * d).backward(g.double())
        assert torch.allclose(a.grad.double(), c.grad, rtol=1e-6, atol=1e-6) and torch.allclose(b.grad.double(), d.grad, rtol=1e-6, atol=1e-6), name
        assert torch.equal(function(x, times=y), getattr(ls, name)(x, times=y))
        assert torch.equal(torch.vmap(lambda p, q: function(p, times=q))(x, y), function(x, times=y))
        assert torch.equal(torch.vmap(lambda p: function(p, times=y[0]))(x)[2], function(x[2], times=y[0]))
    half = x.bfloat16().requires_grad_()
    lt.silu(half, times=y.bfloat16()).sum().backward()
    assert half.grad.dtype == torch.bfloat16


def test_pytorch_functions_within_deterministic():
    torch = pytest.importorskip("torch")
    import lockstep.torch as lt

    f = torch.nn.functional
    x = torch.linspace(-4, 4, 101)
    calls = {"exp": torch.exp, "expm1": torch.expm1, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "silu": f.silu, "gelu": f.gelu, "erf": torch.erf,
             "softplus": f.softplus, "gelu_tanh": lambda t: f.gelu(t, approximate="tanh")}
    for name, call in calls.items():
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        with lt.deterministic():
            y = call(a)
            y.sum().backward()
        assert torch.equal(y.detach(), getattr(ls, name)(x)), name
        call(b).sum().backward()
        assert torch.allclose(a.grad, b.grad, rtol=1e-5, atol=1e-6), name
    with lt.deterministic(), pytest.raises(ls.Unsupported, match="float64"):
        torch.exp(x.double())
