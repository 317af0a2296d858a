"""lockstep.torch: operators, gradients, fakes, vmap, compile. Skipped without PyTorch; on CPU, and on CUDA where both are."""
import importlib.util
import warnings

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("no PyTorch", allow_module_level=True)
import torch
from torch.autograd import gradcheck, gradgradcheck

import lockstep as ls
import lockstep.torch as lt

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() and any(b.name == "cuda" and b.usable for b in ls.backends()) else [])
torch.manual_seed(5)
STAR = [0.5, -1.0, 2.0, 0.25, 1.5]


def x64(*shape, device="cpu"):
    return torch.randn(*shape, dtype=torch.float64, device=device, requires_grad=True)


def calls(device):
    x, line = x64(4, 5, 6, device=device), x64(20, device=device)
    offsets = torch.tensor([1, 4, 4, 15], device=device)
    o = torch.ops.lockstep
    for axis in (None, [1], [0, 2], [-1]):
        for keepdims in (False, True):
            for name in ("sum", "square_sum", "norm", "max", "min"):
                yield f"{name} {axis} {keepdims}", getattr(o, name), (x, axis, keepdims)
            yield f"argmax {axis} {keepdims}", o.argmax, (x, axis, keepdims)
    yield "sum to 32 bits", o.sum, (x, [1], False, torch.float32)
    weight, bias = x64(5, 6, device=device), x64(5, 6, device=device)
    for name in ("normalize", "rms_norm", "layer_norm"):
        yield f"{name} plain", getattr(o, name), (x, [-1], None, None, 0.1)
        yield f"{name} of the first axis", getattr(o, name), (x, [0], None, None, 0.1)
        yield f"{name} weighted", getattr(o, name), (x, [1, 2], weight, bias, 0.1)
    if device == "cpu" or ls.variants_of("sums", "cuda"):
        for axis in (None, [1], [0, 2]):
            yield f"dot {axis}", o.dot, (x, x64(4, 5, 6, device=device), axis)
            yield f"mean {axis}", o.mean, (x, axis, True)
            yield f"var {axis}", o.var, (x, axis, 1)
            yield f"std {axis}", o.std, (x, axis, 1)
        yield "dot with one row", o.dot, (x, x64(6, device=device), [2])
    yield "cumsum", o.cumsum, (x, 1)
    yield "convert", o.convert, (x, torch.float64, [2, 0, 1], -0.75)
    yield "transpose", o.transpose, (x,)
    yield "permute", o.permute, (x, [2, 0, 1])
    for name in ("sum", "square_sum", "norm"):
        yield f"segment_{name}", getattr(o, f"segment_{name}"), (line, offsets)
    for name in ("max", "min", "argmax", "argmin"):
        yield f"segment_{name}", getattr(o, f"segment_{name}"), (line, offsets[[0, 1, 3]])
    for mode in ("valid", "wrap", "constant", "nearest", "mirror", "reflect"):
        for sweeps in (1, 2):
            yield f"stencil {mode} {sweeps}", o.stencil, (x64(3, 7, 8, device=device), STAR, mode, 1.5, sweeps, [1, 2])
    wide = [0.5, -1.0, 2.0, 0.25, 1.5, 3.0, -0.75]  # of radius 3
    for mode in ("nearest", "mirror", "reflect"):
        for n in (1, 2, 3, 5):  # ends that are copied more than once
            yield f"stencil {mode} of {n}", o.stencil, (x64(2, n, device=device), wide, mode, 0.0, 1, [1])
    yield "shuffle", o.shuffle, (torch.arange(64, device=device), "xor", 3)


CALLS = [pytest.param(op, arguments, id=f"{device} {name}") for device in DEVICES for name, op, arguments in calls(device)]


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch's own
@pytest.mark.parametrize("op,arguments", CALLS)
def test_opcheck(op, arguments):
    torch.library.opcheck(op, arguments)


@pytest.mark.parametrize("op,arguments", [c for c in CALLS if not any(n in c.id for n in ("argm", "shuffle", "32 bits"))])
def test_gradients(op, arguments):
    assert gradcheck(lambda x: op(x, *arguments[1:]), arguments[:1])
    if "stencil valid" not in str(op):
        assert gradgradcheck(lambda x: op(x, *arguments[1:]), arguments[:1])


@pytest.mark.parametrize("device", DEVICES)
def test_the_bits_are_those_of_the_functions(device):
    x = torch.randn(30, 40, device=device)
    for name in ("sum", "norm", "square_sum", "max", "min", "argmax", "argmin"):
        for axis in (None, 0, 1):
            got, want = getattr(lt, name)(x, axis), getattr(ls, name)(x, axis=axis)
            assert torch.equal(getattr(lt, name)(x, dim=axis, keepdim=True), getattr(ls, name)(x, axis=axis, keepdims=True))
            assert got.dtype == want.dtype and torch.equal(got, want)
    w, b = torch.randn(40, device=device), torch.randn(40, device=device)
    for name in ("normalize", "rms_norm", "layer_norm"):
        assert torch.equal(getattr(lt, name)(x, weight=w, bias=b), getattr(ls, name)(x, weight=w, bias=b))
        assert torch.equal(getattr(lt, name)(x, axis=0), getattr(ls, name)(x, axis=0))
    assert torch.equal(lt.cumsum(x), ls.cumsum(x, axis=-1)) and lt.cumsum(x, 0, dtype=torch.float64).dtype == torch.float64
    assert torch.equal(lt.transpose(x), x.T) and torch.equal(lt.permute(x, (1, 0)), x.T)
    assert torch.equal(lt.stencil(x, [1, -2, 1], axes=-1), ls.stencil(x, [1, -2, 1], axes=-1))
    for name in ("mean", "var", "std"):
        assert torch.equal(getattr(lt, name)(x, dim=(1,), keepdim=True), getattr(ls, name)(x, 1, keepdims=True))
    assert torch.equal(lt.dot(x, x, dim=1), ls.dot(x, x, 1)) and torch.equal(lt.dot(x, x), ls.vdot(x, x)) and torch.equal(lt.cumsum(x, dim=0), ls.cumsum(x, 0))
    assert torch.equal(lt.rms_norm(x, dim=0), ls.rms_norm(x, 0)) and torch.equal(lt.std(x, correction=1), ls.std(x, ddof=1))
    for call in (lambda: lt.sum(x, 0, dim=0), lambda: lt.rms_norm(x, 0, dim=0), lambda: lt.cumsum(x, 0, dim=1)):
        with pytest.raises(ls.InvalidArgument, match="axis and dim"):
            call()
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        assert torch.equal(lt.convert(x, dtype, axes=(1, 0), scale=3.0), ls.convert(x, dtype, axes=(1, 0), scale=3.0))
    offsets = torch.tensor([0, 10, 40], device=device)
    for name in ("segment_sum", "segment_norm", "segment_square_sum"):
        assert torch.equal(getattr(lt, name)(x[0], offsets), getattr(ls, name)(x[0], offsets))
    for name in ("segment_max", "segment_min", "segment_argmax", "segment_argmin"):
        assert torch.equal(getattr(lt, name)(x[0], offsets), getattr(ls, name)(x[0], offsets))
    assert lt.sum(x.half()).dtype == torch.float32 and lt.max(x.bfloat16()).dtype == torch.bfloat16
    assert torch.equal(lt.shuffle(torch.arange(32, device=device), "up", 1)[:3].cpu(), torch.tensor([0, 0, 1]))


def test_rows_have_the_gradients_of_torch():
    f = torch.nn.functional
    for ours, theirs in ((lambda x, w, b: lt.layer_norm(x, weight=w, bias=b), lambda x, w, b: f.layer_norm(x, (30,), w, b)),
                         (lambda x, w, b: lt.rms_norm(x, weight=w), lambda x, w, b: f.rms_norm(x, (30,), w, 1e-6)),
                         (lambda x, w, b: lt.normalize(x), lambda x, w, b: f.normalize(x, dim=-1)),
                         (lambda x, w, b: lt.cumsum(x), lambda x, w, b: x.cumsum(-1))):
        arrays = torch.randn(8, 30), torch.randn(30), torch.randn(30)
        a, b = [t.clone().requires_grad_() for t in arrays], [t.clone().requires_grad_() for t in arrays]
        direction = torch.randn(8, 30)
        (ours(*a) * direction).sum().backward(), (theirs(*b) * direction).sum().backward()
        for p, q in zip(a, b):
            assert (p.grad is None) == (q.grad is None) and (p.grad is None or torch.allclose(p.grad, q.grad, rtol=1e-4, atol=1e-5))
    x = torch.randn(4, 30, requires_grad=True)
    zero = torch.zeros(3, 5, requires_grad=True)
    lt.normalize(zero).sum().backward()
    assert torch.isfinite(zero.grad).all()
    layer = torch.compile(lambda x, w: lt.rms_norm(x * 2, weight=w).square().sum(), fullgraph=True, backend="aot_eager")
    w = torch.ones(30, requires_grad=True)
    layer(x, w).backward()
    assert x.grad.shape == x.shape and w.grad.shape == w.shape


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_gradients_of_rows_by_one_call(device, dtype):
    f = torch.nn.functional
    x, g, w, b = (torch.randn(*shape, dtype=torch.float64).to(dtype) for shape in ((70, 40), (70, 40), (40,), (40,)))
    for ours, theirs, name in ((lambda x, w, b: lt.layer_norm(x, weight=w, bias=b), lambda x, w, b: f.layer_norm(x, (40,), w, b), "layer_norm"),
                               (lambda x, w, b: lt.rms_norm(x, weight=w, bias=b), lambda x, w, b: f.rms_norm(x, (40,), w, 1e-6) + b, "rms_norm")):
        a = [t.clone().to(device).requires_grad_() for t in (x, w, b)]
        ours(*a).backward(g.to(device))
        exact = [t.double().clone().requires_grad_() for t in (x, w, b)]
        theirs(*exact).backward(g.double())
        for p, q in zip(a, exact):  # rounded once, but for what the last place of double can do
            bound = torch.finfo(dtype).eps * (0.51 if dtype != torch.float64 else 64)
            assert (p.grad.cpu().double() - q.grad).abs().le(bound * q.grad.abs() + 1e-13 + torch.finfo(dtype).smallest_normal).all()
        sides = {k: torch.empty_like(w) for k in ("weight_gradient", "bias_gradient")}
        found = getattr(ls, f"{name}_backward")(x, g, weight=w, **sides)
        assert all(torch.equal(p.grad.cpu(), q) for p, q in zip(a, (found, *sides.values())))
        alone = x.clone().to(device).requires_grad_()  # weight asks for no gradient
        ours(alone, w.to(device), None).backward(g.to(device))
        assert torch.equal(alone.grad, a[0].grad)
        none = [torch.randn(0, 40, device=device, requires_grad=True), torch.randn(40, device=device, requires_grad=True), torch.zeros(40, device=device, requires_grad=True)]
        ours(*none).sum().backward()
        assert none[0].grad.shape == (0, 40) and not none[1].grad.any() and not none[2].grad.any()
    y = torch.randn(5, 6, dtype=torch.float64, device=device, requires_grad=True)
    v = torch.randn(6, dtype=torch.float64, device=device, requires_grad=True)
    for function in (lt.rms_norm, lt.layer_norm):
        assert torch.autograd.gradcheck(lambda a, c: function(a, weight=c, bias=c), (y, v))
        assert torch.autograd.gradgradcheck(lambda a, c: function(a, weight=c), (y, v))


def test_the_deviation_of_equal_elements_has_no_slope():
    x = torch.full((3, 4), 2.5, requires_grad=True)
    lt.std(x, 1).sum().backward()
    assert torch.equal(x.grad, torch.zeros(3, 4))
    y = torch.randn(3, 4, requires_grad=True)
    lt.convert(y, torch.float64, scale=3.0).sum().backward()
    assert torch.equal(y.grad, torch.full((3, 4), 3.0)) and y.grad.dtype == torch.float32


def test_a_norm_of_nothing_has_no_slope():
    x = torch.zeros(5, requires_grad=True)
    lt.norm(x).backward()
    assert x.grad.tolist() == [0] * 5
    x = torch.tensor([2.0, 7.0, 7.0], requires_grad=True)
    lt.max(x).backward()
    assert x.grad.tolist() == [0, 1, 0]
    x = torch.tensor([2.0, 7.0, 7.0, 1.0, 1.0], requires_grad=True)
    lt.segment_max(x, torch.tensor([1, 3, 5])).backward(torch.tensor([3.0, 4.0]))
    assert x.grad.tolist() == [0, 3, 0, 4, 0]


def test_16_bit_floats_have_gradients_of_16_bits():
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.randn(10, dtype=dtype, requires_grad=True)
        lt.norm(x).backward()
        assert x.grad.dtype == dtype
        assert torch.allclose(x.grad.float(), x.detach().float() / x.detach().float().norm(), rtol=1e-2, atol=1e-2)


def test_what_watches_sees_the_operators():
    """Where nobody watches the kernel is called by itself; modes, traces and meta tensors go by PyTorch's dispatcher."""
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._python_dispatch import TorchDispatchMode
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.randn(4, 30)
    with Watch():
        lt.sum(x), lt.rms_norm(x), lt.transpose(x)
    assert [name.partition(".default")[0] for name in seen] == ["lockstep.sum", "lockstep.rms_norm", "lockstep.transpose"]
    assert "lockstep.cumsum" in make_fx(lambda a: lt.cumsum(a))(x).code
    assert lt.norm(torch.ones(3, 4, device="meta"), axis=0).shape == (4,) and lt.norm(torch.ones(3, device="meta")).is_meta
    with torch.inference_mode():
        assert torch.equal(lt.sum(x), ls.sum(x))
    y = torch.nn.Parameter(x.clone())
    assert lt.sum(y).requires_grad and not lt.sum(y.detach()).requires_grad
    with torch.no_grad():
        assert not lt.sum(y).requires_grad


def test_what_has_no_gradient_says_so():
    x = torch.randn(5, 6, requires_grad=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        lt.argmax(x).backward()
    with pytest.raises(ls.InvalidArgument, match="weights"):
        lt.stencil(x, torch.ones(3, requires_grad=True), axes=1)
    with pytest.raises((ls.InvalidArgument, BufferError), match="detach"):
        ls.sum(x)


@pytest.mark.parametrize("device", DEVICES)
def test_vmap_changes_no_bit(device):
    x = torch.randn(3, 5, 64, device=device)
    vmap = torch.vmap
    for name in ("sum", "norm", "max", "argmin", "mean", "std"):
        f = getattr(lt, name)
        assert torch.equal(vmap(f)(x), torch.stack([f(a) for a in x]))
        assert torch.equal(vmap(lambda a, f=f: f(a, 0), in_dims=1)(x), torch.stack([f(x[:, k], 0) for k in range(5)]))
    w = torch.randn(3, 64, device=device)
    assert torch.equal(vmap(lt.rms_norm)(x), lt.rms_norm(x)) and torch.equal(vmap(lt.cumsum)(x), lt.cumsum(x))
    got = vmap(lambda a, c: lt.layer_norm(a, weight=c))(x, w)
    assert torch.equal(got, torch.stack([lt.layer_norm(a, weight=c) for a, c in zip(x, w)]))
    assert torch.equal(vmap(lt.transpose)(x), x.transpose(1, 2))
    assert torch.equal(vmap(lambda a: lt.permute(a, (1, 0)))(x), x.transpose(1, 2))
    assert torch.equal(vmap(lambda a: lt.convert(a, torch.float16, axes=(1, 0)))(x), x.half().transpose(1, 2))
    assert torch.equal(vmap(lambda a: lt.stencil(a, STAR))(x), torch.stack([lt.stencil(a, STAR) for a in x]))
    assert torch.equal(vmap(lambda a: lt.shuffle(a, "xor", 1))(x), torch.stack([lt.shuffle(a, "xor", 1) for a in x]))
    offsets = torch.tensor([0, 3, 64], device=device)
    assert torch.equal(vmap(lambda a: lt.segment_sum(a, offsets))(x[0]), torch.stack([lt.segment_sum(a, offsets) for a in x[0]]))
    x.requires_grad_()
    vmap(lt.norm)(x).sum().backward()
    assert torch.allclose(x.grad, (x / lt.norm(x, (1, 2), keepdims=True)).detach())


@pytest.mark.parametrize("device", DEVICES)
def test_compiled_without_a_break(device):
    def loss(x):
        return lt.norm(lt.transpose(x), axis=-1).sum() + lt.max(x) + lt.stencil(x, [1.0, -2.0, 1.0], mode="wrap", axes=1).square().sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        x = torch.randn(6, 7, device=device, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        a, b = loss(x), compiled(y)
        a.backward(), b.backward()
        assert torch.equal(a, b) and torch.equal(x.grad, y.grad)


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
@pytest.mark.parametrize("device", DEVICES)
def test_transforms_of_functions(device):
    func, x = torch.func, torch.randn(5, 6, dtype=torch.float64, device=device)
    offsets = torch.tensor([0, 2, 6], device=device)
    weight = torch.randn(6, dtype=torch.float64, device=device)
    functions = [lt.norm, lt.max, lambda a: lt.rms_norm(a, weight=weight).pow(3).sum(), lambda a: lt.layer_norm(a).pow(3).sum(), lambda a: lt.cumsum(a).square().sum(), lambda a: lt.square_sum(a, 0).square().sum(), lambda a: (lt.transpose(a) ** 3).sum(), lambda a: lt.norm(lt.permute(a, (1, 0)), 1).sum(),
                 lambda a: lt.stencil(a, [1.0, -2.0, 3.0], mode="wrap", axes=1).square().sum(), lambda a: lt.stencil(a, STAR).square().sum(), lambda a: lt.segment_norm(a[0], offsets).sum()]
    for f in functions:
        y = x.clone().requires_grad_()
        f(y).backward()
        assert torch.equal(func.grad(f)(x), y.grad)
        hessian = func.jacrev(func.grad(f))(x)
        assert torch.allclose(hessian, torch.autograd.functional.hessian(f, x))
        rows = torch.stack([x, 2 * x, -x])
        assert torch.equal(torch.vmap(func.grad(f))(rows), torch.stack([func.grad(f)(a) for a in rows]))
    assert torch.equal(func.jacrev(lambda a: lt.sum(a, 0))(x).sum(0), torch.ones_like(x))
    assert not func.grad(lambda a: (lt.argmax(a) * a).sum())(x).sub(lt.argmax(x)).any()
    # Tangents would be 0 in silence.
    with pytest.raises((NotImplementedError, RuntimeError), match="jvp"):
        func.jvp(lt.sum, (x,), (x,))
    with torch.autograd.forward_ad.dual_level(), pytest.raises((NotImplementedError, RuntimeError), match="jvp"):
        lt.sum(torch.autograd.forward_ad.make_dual(x, x))


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
@pytest.mark.parametrize("device", DEVICES)
def test_compiled_by_inductor(device):
    def loss(x):
        return lt.norm(lt.transpose(x) * 2, axis=-1).sum() + lt.max(x) + lt.sum(x + 1)

    compiled = torch.compile(loss, fullgraph=True)
    for shape in ((6, 7), (8, 9)):
        x = torch.randn(*shape, device=device, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        a, b = loss(x), compiled(y)
        a.backward(), b.backward()
        assert torch.allclose(a, b, rtol=1e-6) and torch.allclose(x.grad, y.grad, rtol=1e-6)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(30))

    def forward(self, x):
        return lt.norm(lt.rms_norm(x, weight=self.weight), axis=-1) + lt.cumsum(x).sum(-1)


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
def test_an_exported_program():
    layer, x = Layer(), torch.randn(4, 30)
    program = torch.export.export(layer, (x,))
    assert any("lockstep" in str(node.target) for node in program.graph.nodes)
    assert torch.equal(program.module()(x), layer(x))


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, k):
        return ls.rms_norm(torch.arange(1000.0) + k)


@pytest.mark.filterwarnings("ignore")  # of forks with threads
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_of_a_loader(method):
    ls.sum(torch.ones(1_000_000))  # with threads before the fork
    loaded = torch.cat(list(torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers=2, multiprocessing_context=method)))
    assert torch.equal(loaded, ls.rms_norm(torch.stack([torch.arange(1000.0) + k for k in range(12)])))


# ---- clipping of gradients ----------------------------------------------------
SHAPES = [(300, 200), (200,), (64, 3, 7, 7), (1,), (1000, 10)]


def model(device, dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    parameters = [torch.zeros(shape, dtype=dtype, device=device, requires_grad=True) for shape in SHAPES]
    for k, p in enumerate(parameters):
        p.grad = (torch.randn(p.shape, generator=generator) * 10.0**(k - 2)).to(dtype).to(device)
    return parameters


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_clipped_gradients_have_the_same_bits_everywhere(device, dtype):
    here, there, theirs = model("cpu", dtype), model(device, dtype), model("cpu", dtype)
    for p in there:  # another layout
        if p.ndim > 1:
            p.grad = p.grad.transpose(0, 1).contiguous().transpose(0, 1)
    norm, other = lt.clip_grad_norm_(here, 1.0), lt.clip_grad_norm_(iter(there), 1.0)
    assert norm.dtype == torch.float64 and norm.shape == () and torch.equal(norm, other.cpu())
    assert norm.item() == ls.norm(torch.stack([ls.norm(p.grad, dtype="float64") for p in theirs])).item()
    for a, b in zip(here, there, strict=True):
        assert torch.equal(a.grad, b.grad.cpu()) and a.grad.dtype == dtype
    if dtype == torch.float32:
        expected = torch.nn.utils.clip_grad_norm_(theirs, 1.0)
        torch.testing.assert_close(norm.float(), expected)
        for a, b in zip(here, theirs, strict=True):
            torch.testing.assert_close(a.grad, b.grad)
    if dtype != torch.float16:  # (where small ones vanish)
        assert abs(lt.total_norm([p.grad for p in here]).item() - 1) < (1e-2 if dtype == torch.bfloat16 else 1e-5)


def test_gradients_that_are_not_clipped():
    parameters = model("cpu")
    before = [p.grad.clone() for p in parameters]
    lt.clip_grad_norm_(parameters, 1e6)
    assert all(torch.equal(p.grad, g) for p, g in zip(parameters, before, strict=True))
    assert lt.clip_grad_norm_([torch.zeros(3, requires_grad=True)], 1.0).item() == 0 and lt.total_norm([]).item() == 0
    assert lt.clip_grad_norm_(parameters[0], 1e9).item() == ls.norm(before[0], dtype="float64").item()
    parameters[1].grad[0] = float("inf")
    with pytest.raises(RuntimeError, match="norm of the gradients is inf"):
        lt.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
    assert torch.equal(parameters[0].grad, before[0])
    lt.clip_grad_norm_(parameters, 1.0)
    assert parameters[1].grad[0].isnan() and not parameters[0].grad.any()


def test_clipping_in_a_deterministic_block():
    here, there = model("cpu"), model("cpu")
    with lt.deterministic():
        norm = lt.clip_grad_norm_(here, 1.0)
    assert torch.equal(norm, lt.clip_grad_norm_(there, 1.0)) and all(torch.equal(a.grad, b.grad) for a, b in zip(here, there, strict=True))


@pytest.mark.skipif(len(DEVICES) < 2, reason="no GPU")
def test_gradients_of_two_devices():
    parameters, here = model("cpu"), model("cpu")
    for p in parameters[::2]:
        p.data, p.grad = p.data.cuda(), None
    for p, q in zip(parameters, here, strict=True):
        if p.grad is None:
            p.grad = q.grad.cuda()
    assert lt.clip_grad_norm_(parameters, 1.0).item() == lt.clip_grad_norm_(here, 1.0).item()
    assert all(torch.equal(p.grad.cpu(), q.grad) for p, q in zip(parameters, here, strict=True))
