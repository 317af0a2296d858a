"""lockstep.torch.deterministic: PyTorch's functions with lockstep's bits, or refused. Skipped without PyTorch."""
import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("no PyTorch", allow_module_level=True)
import torch

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
               lambda: torch.nn.functional.layer_norm(x, (4,)), lambda: torch.linalg.vector_norm(x, 1), lambda: x ** 5, lambda: x.cos(),
               lambda: torch.zeros(4).scatter_add(0, torch.tensor([1, 1]), torch.ones(2)), lambda: torch.zeros(4).index_add(0, torch.tensor([1]), torch.ones(1)),
               lambda: torch.zeros(4).scatter(0, torch.tensor([1, 1]), torch.ones(2)), lambda: torch.addcdiv(x, x, x), lambda: torch.lerp(x, x, 0.3),
               lambda: x.to(torch.complex64).sum(), lambda: torch.arange(0, 1, 0.1), lambda: torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 2, 3]))]
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
