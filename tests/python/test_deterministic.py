"""lockstep.torch.deterministic: PyTorch's functions with lockstep's bits, or refused. Skipped without PyTorch."""
import copy
import importlib.util
import pathlib
import runpy
import threading

import numpy as np
import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("no PyTorch", allow_module_level=True)
import torch
import torch.nn.functional as F

import lockstep as ls
import lockstep.torch as lt

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() and any(b.name == "cuda" and b.usable for b in ls.backends()) else [])
ON = pytest.mark.parametrize("device", DEVICES)


def same(a, b):
    """The same bits, zeros' signs and NaNs included."""
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    as_bytes = [x.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for x in (a, b)]
    return torch.equal(*as_bytes)


@ON
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_reductions_have_the_bits_of_lockstep(device, dtype):
    x = (torch.randn(37, 501, device=device) * 3).to(dtype)
    for axis in (None, 0, 1, (0, 1), -1):
        keyword = {} if axis is None else {"dim": axis}
        with lt.deterministic():
            got = [x.sum(**keyword), x.mean(**keyword), torch.linalg.vector_norm(x, **keyword), x.amax(**keyword), x.amin(**keyword)]
        wide = ls.sum(x, axis, dtype="float64")
        n = x.numel() // max(1, wide.numel())
        want = [(wide if dtype == torch.float64 else ls.sum(x, axis)).to(dtype), (wide / torch.full_like(wide, n)).to(dtype),
                ls.norm(x, axis=axis).to(dtype), ls.max(x, axis), ls.min(x, axis)]
        assert all(same(a, b) for a, b in zip(got, want)), axis
        if not isinstance(axis, tuple):
            with lt.deterministic():
                assert same(x.argmax(**keyword), ls.argmax(x, axis)) and same(x.argmin(**keyword), ls.argmin(x, axis))
                assert axis is None or same(tuple(x.max(axis)), (ls.max(x, axis), ls.argmax(x, axis)))


@ON
def test_dtypes_are_those_of_pytorch(device):
    cases = [lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.sum(dtype=torch.float64), lambda x: x.mean(dtype=torch.float64),
             lambda x: (x > 0).sum(), lambda x: x.int().sum(1), lambda x: x.int().sum(dtype=torch.float32), lambda x: x.sum(dtype=torch.int64),
             lambda x: x.max(), lambda x: x.int().max(), lambda x: x.bool().any(), lambda x: x / 3, lambda x: x.int() / 3, lambda x: 2 / x,
             lambda x: x.sum((0, 1), keepdim=True), lambda x: x[:0].sum(), lambda x: x.half().mean(1), lambda x: x.norm(), lambda x: x.clamp(-0.5, 0.5),
             lambda x: torch.maximum(x, -x), lambda x: x.relu(), lambda x: x.double() / torch.tensor(3), lambda x: x ** 2, lambda x: torch.arange(5, device=x.device) + x[0],
             lambda x: torch.add(x, x, alpha=2), lambda x: torch.nn.functional.mse_loss(x, x * 2, reduction="sum"), lambda x: x.norm(dtype=torch.float64)]
    x = torch.randn(4, 5, device=device)
    for case in cases:
        want = case(x)
        with lt.deterministic():
            got = case(x)
        assert got.dtype == want.dtype and got.shape == want.shape and torch.allclose(got.double(), want.double(), rtol=1e-3, atol=1e-6), case(x)


def test_what_has_other_bits_elsewhere_is_refused():
    x = torch.randn(4, 4)
    refused = [lambda: x.sin(), lambda: x.cosh(), lambda: x.cumsum(0), lambda: x.prod(), lambda: x.var(), lambda: torch.randn(3),
               lambda: torch.linalg.vector_norm(x, 1), lambda: x ** 5, lambda: x.cos(),
               lambda: torch.zeros(4).scatter_add(0, torch.tensor([1, 1]), torch.ones(2)), lambda: torch.zeros(4).index_add(0, torch.tensor([1]), torch.ones(1)),
               lambda: torch.zeros(4).scatter(0, torch.tensor([1, 1]), torch.ones(2)), lambda: torch.lerp(x, x, x),
               lambda: x.to(torch.complex64).sum(), lambda: torch.arange(0, 1, 0.1), lambda: torch.nn.functional.dropout(x), lambda: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.5),
               lambda: x.clone().index_put((torch.tensor([1, 1]),), torch.ones(2, 4))]
    for call in refused:
        call()
        with lt.deterministic(), pytest.raises(ls.Unsupported):
            call()
    with lt.deterministic(), pytest.raises(ls.Unsupported, match="matmul=True"):
        x @ x
    with lt.deterministic(matmul=True), pytest.raises(ls.Unsupported, match="float64"):
        x.double() @ x.double()
    parameter = torch.nn.Parameter(x)
    parameter.grad = torch.ones_like(x)
    with lt.deterministic(), pytest.raises(ls.Unsupported, match="foreach=False"):
        torch.optim.SGD([parameter], lr=0.1, foreach=True).step()


@ON
def test_zeros_and_nans_of_extremes(device):
    a, b = torch.tensor([0.0, -0.0, float("nan"), 1.0, float("nan")], device=device), torch.tensor([-0.0, 0.0, 1.0, float("nan"), 2.0], device=device)
    with lt.deterministic():
        larger, smaller, relu, clamped = torch.maximum(a, b), torch.minimum(a, b), a.relu(), a.clamp(-1, -0.0)
    assert larger.isnan().tolist() == smaller.isnan().tolist() == [False, False, True, True, True]
    assert larger[:2].signbit().tolist() == smaller[:2].signbit().tolist() == [False, True]
    assert relu[:2].signbit().tolist() == [False, False] and relu[2].isnan() and clamped[:2].signbit().tolist() == [False, True]


def model(x, y, w, v):
    hidden = torch.nn.functional.linear(x, w).relu()
    return torch.nn.functional.mse_loss(torch.nn.functional.linear(hidden, v), y)


def train(device, matmul=True):
    generator = torch.Generator().manual_seed(3)
    x, y, w, v = (torch.randn(*shape, generator=generator).to(device) for shape in ((16, 40), (16, 3), (50, 40), (3, 50)))
    w.requires_grad_(), v.requires_grad_()
    optimizer = torch.optim.SGD([w, v], lr=0.05, momentum=0.9, foreach=False)
    losses = []
    with lt.deterministic(matmul=matmul):
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(x, y, w, v)
            loss.backward()
            # As torch.nn.utils.clip_grad_norm_ does, by lockstep's norm.
            scale = 1 / torch.linalg.vector_norm(torch.stack([w.grad.norm(), v.grad.norm()])).clamp(min=1.0)
            w.grad.mul_(scale), v.grad.mul_(scale)
            optimizer.step()
            losses.append(loss.detach())
    return [*losses, w, v]


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
def test_a_training_step_has_the_same_bits_everywhere():
    want = train("cpu")
    assert want[2] < want[0]
    threads = torch.get_num_threads()
    for n in (1, 2, 3):
        torch.set_num_threads(n)
        ls.set_num_threads(n)
        assert same(train("cpu"), want)
    torch.set_num_threads(threads)
    ls.set_num_threads(0)
    for device in DEVICES[1:]:
        assert same(train(device), want)


@ON
def test_a_row_has_the_bits_of_the_row_alone(device):
    x, w = torch.randn(33, 700, device=device), torch.randn(700, 9, device=device)
    whole = torch.randint(-9, 9, (4, 5), device=device)
    product = (whole.cpu() @ whole.T.cpu()).float().to(device)
    with lt.deterministic(matmul=True):
        assert same((x @ w)[7:8], x[7:8] @ w) and same(x.mean(1)[5], x[5].mean()) and same(torch.bmm(x[None], w[None])[0], x @ w)
        assert same(torch.addmm(torch.ones(9, device=device), x, w, alpha=2), torch.ones(9, device=device) + (x @ w) * 2)
        # Of whole numbers every product is exact.
        assert torch.equal(whole.float() @ whole.T.float(), product)


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
def test_a_compiled_function_does_not_slip_through():
    x = torch.randn(1000)
    compiled = torch.compile(lambda a: a.sum(), backend="aot_eager")
    compiled(x)  # compiled before the block
    with lt.deterministic():
        assert same(compiled(x), ls.sum(x))
        with pytest.raises(ls.Unsupported):
            torch.compile(lambda a: a.sin(), backend="aot_eager")(x)


def test_blocks_nest_and_end():
    x = torch.randn(10_001) * 1e3
    with lt.deterministic():
        with lt.deterministic(matmul=True):
            torch.ones(2, 2) @ torch.ones(2, 2)
        with pytest.raises(ls.Unsupported):
            torch.ones(2, 2) @ torch.ones(2, 2)
        with pytest.raises(ls.Unsupported):
            x.sin()
    x.sin()
    mode = lt.deterministic()
    with mode, mode:
        assert same(x.sum(), ls.sum(x))


# ---- layers, forward and backward ----------------------------------------------
LABELS, PLACES, FEW, WEIGHTS = torch.tensor([3, 0, -100, 2, 3, 1]), torch.tensor([[5, 1, 5], [0, 5, 1]]), torch.tensor([[4, 1, 4], [0, 4, 1]]), torch.tensor([0.5, 2.0, 0.0, 1.5, 1.0])
MASK = torch.tensor([[True, False, True, True], [False] * 4, [True] * 4])


def attention(x, mask=None, **keywords):
    q, k, v = (part.reshape(2, -1, 8) for part in x.split([3, 4, 4]))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=None if mask is None else mask.to(x.device), **keywords)


def dense(x, places=None, **keywords):
    return F.embedding(PLACES.to(x.device) if places is None else places, x, **keywords)


LAYERS = {
    "cross_entropy": ((6, 5), lambda x: F.cross_entropy(x, LABELS.to(x.device))),
    "cross_entropy, no mean": ((6, 5), lambda x: F.cross_entropy(x, LABELS.to(x.device), reduction="none")),
    "cross_entropy, weights": ((6, 5), lambda x: F.cross_entropy(x, LABELS.to(x.device), WEIGHTS.to(x))),
    "cross_entropy, sum": ((6, 5), lambda x: F.cross_entropy(x, LABELS.to(x.device), reduction="sum", ignore_index=3 - 103)),
    "cross_entropy, smooth": ((6, 5), lambda x: F.cross_entropy(x, LABELS.to(x.device), label_smoothing=0.1)),
    "cross_entropy of places": ((2, 5, 3), lambda x: F.cross_entropy(x, FEW.to(x.device))),
    "cross_entropy of one": ((5,), lambda x: F.cross_entropy(x, torch.tensor(3, device=x.device))),
    "embedding": ((7, 9), dense),
    "embedding, padded": ((7, 9), lambda x: dense(x, padding_idx=5)),
    "embedding of one": ((7, 9), lambda x: dense(x, torch.tensor(2, device=x.device))),
    "rows by index": ((7, 9), lambda x: x[PLACES.to(x.device)]),
    "elements by index": ((7, 9), lambda x: x[PLACES.to(x.device), -PLACES.to(x.device)]),
    "layer_norm": ((4, 3, 6), lambda x: F.layer_norm(x, (3, 6), x[0] + 1, x[1])),
    "layer_norm, plain": ((4, 6), lambda x: F.layer_norm(x, (6,), eps=0.1)),
    "rms_norm": ((4, 3, 6), lambda x: F.rms_norm(x, (6,), x[0, 0])),
    "rms_norm, module": ((4, 6), lambda x: torch.nn.RMSNorm(6).to(x.device)(x)),
    "softmax": ((4, 6), lambda x: x.softmax(0)),
    "attention": ((11, 16), attention),
    "attention, causal": ((11, 16), lambda x: attention(x, is_causal=True, scale=0.3)),
    "attention, masked": ((11, 16), lambda x: attention(x, mask=MASK)),
    "attention, biased": ((11, 16), lambda x: attention(x, mask=MASK.float() * 2)),
    "gated unit": ((6, 16), lambda x: F.silu(x[:, :8]) * x[:, 8:]),
    "gelu": ((6, 16), lambda x: F.gelu(x, approximate="tanh") + F.gelu(x)),
    "powers": ((6, 16), lambda x: x.square() + (1 - x) ** 3),
    "means": ((6, 16), lambda x: x.exp().mean(0).log() + x.logsumexp(0)),
    "products": ((6, 16), lambda x: (x @ x.mT) @ x),
}


def forward_and_backward(name, x):
    x = x.clone().requires_grad_()
    y = LAYERS[name][1](x)
    y.backward(torch.tensor([float(k % 5 - 1) for k in range(y.numel())]).reshape(y.shape).to(y))
    return y.detach(), x.grad


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    x = torch.randn(LAYERS[name][0], generator=torch.Generator().manual_seed(5)) * 2
    exact = forward_and_backward(name, x.double())
    with lt.deterministic(matmul=True):
        got = forward_and_backward(name, x)
    for a, b in zip(got, exact):
        assert a.dtype == torch.float32 and a.shape == b.shape and torch.allclose(a.double(), b, rtol=2e-5, atol=2e-6)
    for device in DEVICES[1:]:
        with lt.deterministic(matmul=True):
            assert same(forward_and_backward(name, x.to(device)), got)


@ON
def test_roots_are_the_nearest_floats(device):
    x = torch.rand(100_001, generator=torch.Generator().manual_seed(8)).to(device)
    with lt.deterministic():
        got = [x.sqrt(), x ** 0.5, x.clone().sqrt_(), x.half().sqrt(), x.double().sqrt()]
    want = ls.sqrt(x)
    assert same(got, [want, want, want, ls.sqrt(x.half()), torch.from_numpy(np.sqrt(x.cpu().double().numpy())).to(device)]) and same(want.cpu(), torch.from_numpy(np.sqrt(x.cpu().numpy().astype("f8")).astype("f4")))


@ON
def test_indices_that_come_often_add_up_in_their_order(device):
    generator = torch.Generator().manual_seed(6)
    index = torch.randint(0, 40, (5000,), generator=generator)
    rows = torch.randn(5000, 30, generator=generator)
    weight = torch.zeros(50, 30, device=device, requires_grad=True)
    with lt.deterministic():
        F.embedding(index.to(device), weight).backward(rows.to(device))
    for place in (0, 17, 39, 45):
        assert same(weight.grad[place].cpu(), ls.sum(rows[index == place], 0))
    half = weight.detach().half().requires_grad_()
    with lt.deterministic():
        half[index.to(device)].backward(rows.half().to(device))
    assert same(half.grad[17].cpu(), ls.sum(rows.half()[index == 17], 0, dtype=torch.float16))


def test_products_are_dots_of_lockstep():
    generator = torch.Generator().manual_seed(7)
    for m, k, n in ((1, 5, 1), (40, 70, 3), (3, 70, 40), (9, 3000, 11), (2, 1, 3), (0, 3, 2), (2, 0, 3), (64, 64, 64)):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            a, b = torch.randn(m, k, generator=generator).to(dtype), torch.randn(k, n, generator=generator).to(dtype)
            want = torch.stack([ls.dot(a, b[:, j].expand(m, k).contiguous(), -1, dtype=dtype) for j in range(n)], 1) if m * n else a.new_zeros(m, n)
            for device in DEVICES:
                with lt.deterministic(matmul=True):
                    assert same((a.to(device) @ b.to(device)).cpu(), want) and same((b.T.to(device) @ a.T.to(device)).T.cpu(), want)
                    assert same((a.to(device).expand(3, m, k) @ b.to(device).expand(3, k, n))[2].cpu(), want)


# ---- the small transformer of the examples ---------------------------------------
@pytest.fixture(scope="module")
def transformer():
    path = pathlib.Path(__file__).parent.parent.parent / "tools" / "examples" / "python" / "small_transformer.py"
    return runpy.run_path(str(path))


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
def test_a_transformer_is_trained_with_the_same_bits_everywhere(transformer):
    losses, parameters = transformer["train"]()
    assert losses[2] < losses[1] < losses[0]
    threads = torch.get_num_threads()
    try:
        for n in (1, 3):
            torch.set_num_threads(n)
            ls.set_num_threads(n)
            again = transformer["train"]()
            assert again[0] == losses and same(again[1], parameters)
    finally:
        torch.set_num_threads(threads)
        ls.set_num_threads(0)
    for device in DEVICES[1:]:
        there = transformer["train"](device)
        assert there[0] == losses and same([p.cpu() for p in there[1]], parameters)


@ON
@pytest.mark.filterwarnings("ignore")  # PyTorch's own
def test_a_sequence_has_its_bits_in_any_batch(device, transformer):
    """Logits, losses and gradients of what a sequence alone goes into; those of weights add up over a batch."""
    model, text = transformer["model_and_text"](device)
    embedded = []
    model.letters.register_forward_hook(lambda module, inputs, output: embedded.append(output))

    def step(part):
        embedded.clear()
        with lt.deterministic(matmul=True):
            logits = model(part[:, :-1])
            losses = F.cross_entropy(logits.mT, part[:, 1:], reduction="none")
            return logits.detach(), losses.detach(), torch.autograd.grad(losses.sum(), embedded[0])[0]

    whole = step(text)
    for size in (1, 3, len(text) - 1):
        parts = [step(part) for part in text[:7].split(size)]
        assert same([torch.cat(t) for t in zip(*parts)], [t[:7] for t in whole]), size


# ---- a model that is patched by one line ------------------------------------------
@pytest.fixture
def patched(transformer):
    model, text = transformer["model_and_text"]()
    return lt.deterministic(matmul=True).patch(model), text[:4, :6]


def infer(model, text):
    with torch.inference_mode():
        return model(text)


def test_a_patched_model_runs_in_a_block_of_its_own(patched, transformer):
    model, text = patched
    plain, _ = transformer["model_and_text"]()
    with torch.no_grad(), lt.deterministic(matmul=True):
        expected = plain(text)
    found = infer(model, text)
    assert torch.equal(found, expected)
    assert all(torch.equal(infer(model, text[i:i + 1])[0], found[i]) for i in range(4))
    with torch.no_grad():
        assert torch.equal(model(text), expected)
    for other in (copy.deepcopy(model), torch.compile(model, backend="eager")):
        assert torch.equal(infer(other, text), expected)
    results = []
    threads = [threading.Thread(target=lambda: results.append(infer(model, text))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 4 and all(torch.equal(r, expected) for r in results)


def test_a_patched_model_leaves_nothing_behind(patched, transformer):
    model, text = patched
    plain, _ = transformer["model_and_text"]()
    own, before = infer(plain, text), infer(model, text)
    with pytest.raises(IndexError):
        infer(model, torch.full((1, 6), 10**6))
    torch.sin(torch.ones(2))  # refused in a block
    assert torch.equal(infer(plain, text), own) and torch.equal(infer(model, text), before)
    assert lt.deterministic.unpatch(model) is model and torch.equal(infer(model, text), own)
    assert not (model._forward_pre_hooks or model._forward_hooks or model._forward_hooks_always_called)
    assert set(model.state_dict()) == set(plain.state_dict())


def test_a_gradient_of_a_patched_model_needs_a_block(patched):
    model, text = patched
    with pytest.raises(ls.Unsupported, match="backward.. would run outside"):
        model(text)
    torch.sin(torch.ones(2))
    with lt.deterministic(matmul=True):
        model(text).square().mean().backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)


def test_what_cannot_be_patched_is_refused(patched):
    with pytest.raises(ls.InvalidArgument, match="patched already"):
        lt.deterministic().patch(patched[0])
    with pytest.raises(TypeError, match="model is a int"):
        lt.deterministic().patch(3)
    linear = lt.deterministic().patch(torch.nn.Linear(2, 2))
    with pytest.raises(ls.Unsupported, match="matmul=True"):
        infer(linear, torch.ones(1, 2))


def test_functions_come_whole_in_inference_mode():
    x, w = torch.randn(5, 8), torch.randn(3, 8)
    for call in (lambda: F.linear(x, w), lambda: torch.matmul(x, w.T), lambda: F.softmax(x, -1), lambda: F.cross_entropy(x, torch.arange(5))):
        with lt.deterministic(matmul=True):
            expected = call()
            with torch.inference_mode():
                assert torch.equal(call(), expected)
    with torch.inference_mode(), lt.deterministic(), pytest.raises(ls.Unsupported, match="matmul=True"):
        F.linear(x, w)
