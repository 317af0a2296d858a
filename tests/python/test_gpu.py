"""Beside a GPU: device arrays of PyTorch, CuPy, JAX and numba, streams, graphs. Skipped where there is none."""
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

import lockstep as ls

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
pytestmark = pytest.mark.skipif(not any(b.name == "cuda" and b.usable for b in ls.backends()), reason="no usable CUDA backend")
RNG = np.random.default_rng(11)


@pytest.fixture
def torch():
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    return module


def from_torch(x):
    return pytest.importorskip("torch").from_numpy(x.copy()).cuda()


def from_cupy(x):
    return pytest.importorskip("cupy").asarray(x)


def from_jax(x):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX sees no GPU")
    if x.dtype.itemsize == 8:
        pytest.skip("JAX without 64-bit types")
    return jax.device_put(x)


def from_numba(x):
    return pytest.importorskip("numba.cuda").to_device(x)


def back(a):
    if type(a).__module__.startswith("torch"):
        return a.cpu().numpy()
    if hasattr(a, "copy_to_host"):
        return a.copy_to_host()
    return a.get() if hasattr(a, "get") else np.asarray(a)


FROM = {"torch": from_torch, "cupy": from_cupy, "jax": from_jax, "numba": from_numba}
CALLS = [("sum", {}), ("sum", {"axis": 0}), ("sum", {"axis": 1}), ("norm", {"axis": (0, 1)}), ("max", {"axis": 1, "keepdims": True}),
         ("argmin", {"axis": 0}), ("matrix_transpose", {}), ("permute", {"axes": (2, 0, 1)}), ("square_sum", {"axis": -1}),
         ("stencil", {"weights": [1.0, -2.0, 1.0], "axes": -1}), ("shuffle", {"kind": "xor", "operand": 3}),
         ("convert", {"dtype": "float32", "axes": (2, 0, 1), "scale": 0.1}), ("gelu", {"dtype": "float16"}), ("exp", {})]


@pytest.mark.parametrize("library", FROM)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_a_gpu_gives_the_bits_of_the_cpu(library, dtype):
    x = (RNG.standard_normal((6, 70, 64)) * 50).astype(dtype)
    given = FROM[library](x)
    for name, keywords in CALLS:
        if name in ("stencil", "convert") and dtype[0] == "i" or name == "convert" and not ls.variants_of("convert", "cuda") or library == "jax" and (name == "argmin" or dtype == "i4" and name != "matrix_transpose"):
            continue
        if name in ("gelu", "exp") and (dtype != "f4" or not ls.variants_of("map", "cuda")):
            continue
        want = getattr(ls, name)(x, **keywords)
        got = getattr(ls, name)(given, **keywords)
        assert ls.last_run().backend == "cuda" and ls.last_run().staged_bytes == 0, (name, ls.last_run())
        assert type(got) is type(given) and tuple(got.shape) == np.shape(want)
        assert back(got).tobytes() == want.tobytes(), (library, dtype, name)


@pytest.mark.parametrize("library", FROM)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_and_any_axes_have_the_bits_of_the_cpu(library, dtype):
    x, y = (RNG.standard_normal((6, 70, 64)).astype(dtype) for _ in range(2))
    given, other = FROM[library](x), FROM[library](y)
    for axis in (None, 0, 1, (0, 2), (1, 2)):
        for name in ("sum", "norm", "max"):
            want = getattr(ls, name)(x, axis=axis)
            got = getattr(ls, name)(given, axis=axis)
            assert ls.last_run().backend == "cuda" and ls.last_run().staged_bytes == 0, (name, axis, ls.last_run())
            assert back(got).tobytes() == want.tobytes(), (name, axis)
        if not ls.variants_of("sums", "cuda"):
            continue
        for name in ("dot", "squared_distance", "l1_distance"):
            assert back(getattr(ls, name)(given, other, axis)).tobytes() == getattr(ls, name)(x, y, axis).tobytes(), (name, axis)
        assert back(ls.l1_norm(given, axis)).tobytes() == ls.l1_norm(x, axis).tobytes()
        for got, want in zip(ls.mean_var(given, axis, correction=1), ls.mean_var(x, axis, correction=1)):
            assert type(got) is type(given) and back(got).tobytes() == want.tobytes(), axis
        if library == "numba":
            with pytest.raises(ls.Unsupported, match="takes no roots"):
                ls.std(given, axis)
            continue
        for named in ({}, {"correction": 1, "keepdims": True}, *([] if library == "jax" else [{"dtype": "float32"}, {"dtype": float}])):
            if library == "jax" and dtype == "f4":  # without its 64-bit types there is no variance in double
                with pytest.raises(ls.UnsupportedDtype, match="jax_enable_x64"):
                    ls.std(given, axis, **named)
                continue
            got = ls.std(given, axis, **named)
            assert type(got) is type(given) and back(got).tobytes() == ls.std(x, axis, **named).tobytes(), (axis, named)
    if not ls.variants_of("sums", "cuda"):
        pytest.skip("the CUDA module has no kernel of sums")


def test_the_digest_of_the_gpu_is_the_golden_one():
    assert ls.verify("cuda")


def test_digests_of_device_arrays(torch):
    rng = np.random.default_rng(6)
    for dtype in ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "?"):
        for shape in ((), (0,), (7,), (5, 6, 70), (700, 513)):
            x = (rng.standard_normal(shape) * 50).astype(dtype)
            y = torch.from_numpy(np.array(x)).cuda()
            assert ls.digest(y) == ls.digest(x) and ls.digest(y.mT if y.ndim > 1 else y) == ls.digest(np.swapaxes(x, -1, -2) if x.ndim > 1 else x)
    model = torch.nn.Linear(30, 20)
    want = ls.digest(model.state_dict())
    both = {"bias": model.bias.detach(), "weight": model.weight.detach().cuda()}
    assert want == ls.digest(both) == ls.digest(model.cuda().state_dict())
    late, stream = torch.zeros(1 << 22, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        late.fill_(3)
        assert ls.digest(late) == ls.digest(np.full(1 << 22, 3, "f4"))  # what fills it came before on this stream
    assert ls.digest(from_cupy(x)) == ls.digest(x)


def test_segments_of_softmax_have_the_bits_of_the_cpu(torch):
    if not any(v.name == "segments" for v in ls.variants_of("normalize", "cuda")):
        pytest.skip("the CUDA module has no kernel of segments of softmax")
    script = pathlib.Path(__file__).parent.parent / "gpu" / "segment_bits"
    assert "equal" in subprocess.run([sys.executable, script, "9", "2"], check=True, capture_output=True, text=True, timeout=300).stdout


@pytest.mark.parametrize("side", [False, True])
def test_calls_follow_the_current_stream_and_nothing_waits(torch, side):
    n = 1 << 20
    stream = torch.cuda.Stream() if side else torch.cuda.current_stream()
    x, y = torch.zeros(n, device="cuda"), torch.zeros(1024, 1024, device="cuda")
    with torch.cuda.stream(stream):
        ls.sum(x), ls.transpose(y)  # queues are made
        torch.cuda.synchronize()
        for _ in range(3):
            x.zero_(), y.zero_()
            torch.cuda._sleep(500_000_000)  # some tenths of a second of the device's time
            x.fill_(1)
            y[3, 5] = 7
            begin = time.perf_counter()
            total, turned = ls.sum(x), ls.transpose(y)
            waited = time.perf_counter() - begin
            twice = total * 2
            x.fill_(5)  # after the sum, in the stream's order
            y.zero_()
            assert waited < 0.05, waited
            assert twice.item() == 2 * n and turned[5, 3].item() == 7 and turned.sum().item() == 7


def test_an_input_may_go_at_once(torch):
    for _ in range(20):
        torch.cuda._sleep(5_000_000)
        total = ls.sum(torch.ones(1 << 18, device="cuda"))
        other = torch.full((1 << 18,), 9.0, device="cuda")  # the pool's memory again, in the stream's order
        assert total.item() == 1 << 18 and other[0].item() == 9


def test_a_stream_of_the_callers_choice(torch):
    stream = torch.cuda.Stream()
    x = torch.ones(1 << 20, device="cuda")
    torch.cuda.synchronize()
    for given in (stream, stream.cuda_stream):
        assert ls.sum(x, stream=given).item() == 1 << 20
    assert ls.sum(x, stream=0).item() == 1 << 20
    ls.release_stream(stream)
    with pytest.raises(ls.InvalidArgument, match="stream is"):
        ls.sum(x, stream="fast")


def test_a_named_stream_comes_after_the_current_one(torch):
    n, stream = 1 << 20, torch.cuda.Stream()
    x = torch.zeros(n, device="cuda")
    plan = ls.plan.sum(x)
    for k, call in enumerate((lambda: ls.sum(x, stream=stream), lambda: ls.sum(x.flip(0), stream=stream), lambda: plan(x, stream=stream),
                              lambda: ls.sum(x.to(torch.int8), stream=stream)), 1):
        torch.cuda._sleep(200_000_000)  # what fills x is queued behind this
        x.fill_(k)
        assert call().item() == k * n
    ls.release_stream(stream)


def test_arrays_of_two_libraries_on_two_streams(torch):
    cupy, n = pytest.importorskip("cupy"), 1 << 20
    theirs, ours = cupy.cuda.Stream(non_blocking=True), torch.cuda.Stream()
    # Handles of one kind: CuPy's queue is filled by PyTorch's sleep on the same stream.
    same = torch.cuda.ExternalStream(theirs.ptr)

    class Interface:
        def __init__(self, a):
            self.a, self.__cuda_array_interface__ = a, {**a.__cuda_array_interface__, "stream": theirs.ptr}

    for wrap in (lambda a: a, Interface):
        with theirs, torch.cuda.stream(ours):
            x, y, out = torch.ones(n, device="cuda"), cupy.zeros(n, "f4"), cupy.zeros((), "f4")
            ours.synchronize(), theirs.synchronize()
            with torch.cuda.stream(same):
                torch.cuda._sleep(200_000_000)
            y.fill(3)
            assert ls.dot(x, wrap(y)).item() == 3 * n
            x.fill_(2)
            ls.sum(x, out=wrap(out))
            assert float(out) == 2 * n
    ls.release_stream(ours)


def test_graphs_take_plans(torch):
    x, y = torch.ones(64, 1000, device="cuda"), torch.empty(64, device="cuda")
    plan = ls.plan.sum(x, axis=1)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        plan(x, out=y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        plan(x, out=y)
    for value in (2.0, 3.0):
        x.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        assert y.tolist() == [1000 * value] * 64


def test_a_workspace_of_pytorchs_pool(torch):
    x = torch.randn(3_000_000, device="cuda")
    plan = ls.plan.sum(x, workspace=True)
    mine = torch.empty(max(plan.workspace_bytes, 256), dtype=torch.uint8, device="cuda")
    assert plan(x, workspace=mine).item() == ls.sum(x).item()
    with pytest.raises(ls.InvalidArgument, match="workspace lives on the host"):
        plan(x, workspace=torch.empty(mine.numel(), dtype=torch.uint8))


def test_cupy_streams():
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        x = cupy.arange(1 << 20, dtype="f4")
        x *= 2
        total = ls.sum(x, dtype="float64")
        assert float(total) == float((1 << 20) * ((1 << 20) - 1))
        out = cupy.empty(4, "f4")
        assert ls.sum(x.reshape(4, -1), axis=1, out=out) is out
        stream.synchronize()
    ls.release_stream(stream)


def test_what_only_the_device_finds(torch):
    x = torch.full((1000,), 2**61, device="cuda")
    ls.synchronize()
    ls.sum(x)
    with pytest.raises(ls.Overflow):
        ls.synchronize()
    with pytest.raises(ls.Overflow) as caught:
        ls.sum(x, check=True)
    assert caught.value.out.item() == 2**63 - 1
    ls.synchronize()


def test_segments_on_the_device(torch):
    x = RNG.standard_normal(1000)
    offsets = np.array([0, 10, 10, 500, 1000])
    got = ls.segment_sum(torch.from_numpy(x).cuda(), torch.from_numpy(offsets).cuda())
    assert got.cpu().numpy().tobytes() == ls.segment_sum(x, offsets).tobytes()
    got = ls.segment_sum(torch.from_numpy(x).cuda(), offsets)
    assert got.cpu().numpy().tobytes() == ls.segment_sum(x, offsets).tobytes()
    here = torch.from_numpy(x).cuda()
    for wrong in ([0, 1001], [0, 1 << 44], [0, 5, 3], [-1, 5], [0, 10, 5000, 20]):
        for name in ("segment_sum", "segment_norm", "segment_max", "segment_nansum"):
            with pytest.raises(ls.InvalidArgument, match="offsets"):
                getattr(ls, name)(here, torch.tensor(wrong).cuda(), check=True)
    ls.segment_sum(here, torch.tensor([0, 1001]).cuda())
    with pytest.raises(ls.InvalidArgument, match="beyond src's end"):
        ls.synchronize()
    with pytest.raises(ls.InvalidArgument, match="no elements"):
        ls.segment_sum(here[:0], torch.tensor([0, 1]).cuda())


def test_segments_wait_for_nothing(torch):
    x, offsets = torch.randn(2000, dtype=torch.float64, device="cuda"), torch.tensor([0, 10, 10, 500, 2000], device="cuda")
    want = ls.segment_sum(x.cpu(), offsets.cpu())
    for _ in range(3):
        ls.segment_sum(x, offsets)
    torch.cuda.synchronize()
    slept = torch.cuda.Event()
    torch.cuda._sleep(10**9)
    slept.record()
    got = ls.segment_sum(x, offsets)
    assert not slept.query()  # the call has returned, and the sleep before it still goes on
    assert torch.equal(got.cpu(), want)


def test_layouts_and_narrow_types(torch):
    x = torch.randn(8, 9, 10, device="cuda")
    for view in (x.permute(2, 0, 1), x[:, ::2], x[..., 1:], x.expand(2, 8, 9, 10), x.flip(1)):
        here = view.cpu().numpy()
        assert ls.sum(view, axis=1).cpu().numpy().tobytes() == ls.sum(here, axis=1).tobytes()
        assert ls.matrix_transpose(view).cpu().numpy().tobytes() == ls.matrix_transpose(here).tobytes()
    for dtype in (torch.float16, torch.bfloat16, torch.int8):
        y = (x * 10).to(dtype)
        assert ls.max(y, axis=1).dtype == dtype and torch.equal(ls.max(y, axis=1), y.amax(1))
        assert torch.equal(ls.sum(y, axis=1), ls.sum(y.float() if y.is_floating_point() else y.int(), axis=1))


def test_host_and_device_do_not_mix_in_silence(torch):
    x = torch.ones(10, 10, device="cuda")
    with pytest.raises(ls.InvalidArgument, match="one device"):
        ls.transpose(x, out=torch.empty(10, 10))
    with pytest.raises(ls.InvalidArgument, match="one device"):
        ls.transpose(torch.ones(10, 10), out=x)
    host = np.ones((100, 100), "f4")
    assert ls.sum(host, backend="cuda") == 1e4 and ls.last_run().backend == "cuda"


def test_the_cpu_does_not_take_device_data(torch):
    # It would not wait for the stream that still writes it.
    x = torch.zeros(1 << 20, device="cuda")
    with pytest.raises(ls.InvalidArgument, match="backend is cpu"):
        ls.sum(x, backend="cpu")
    with ls.backend("cpu"), pytest.raises(ls.InvalidArgument, match="backend is cpu"):
        ls.sum(x)
    with ls.Context("cpu") as context:
        with pytest.raises(ls.InvalidArgument, match="backend is cpu"):
            context.sum(x)
        context.set_backend("cuda")
        assert context.sum(x).item() == 0


def test_managed_memory_is_in_its_streams_order():
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.using_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc):
        x = cupy.ones((1000, 1000), "f4")
        for k in range(5):
            x[:] = k
            assert float(ls.sum(x)) == k * 1e6


def test_memory_of_our_own(torch):
    for kind in ("pinned", "managed"):
        x = np.asarray(ls.empty((100, 100), "float32", kind=kind))
        x[:] = 1
        assert ls.sum(x) == 1e4
    b = ls.empty((100, 100), "float32", kind="device")
    t = torch.from_dlpack(b)
    t.fill_(2)
    torch.cuda.synchronize()
    assert t.is_cuda and back(torch.from_dlpack(ls.sum(b, axis=1))).tolist() == [200] * 100
    with pytest.raises(BufferError, match="device"):
        memoryview(b)
    described = ls.plan.sum(ls.spec((100, 100), "float32", device="cuda:0"), axis=1)
    assert described(t).tolist() == [200] * 100


@pytest.mark.parametrize("library", FROM)
def test_groups_have_the_bits_of_the_cpu(library):
    arrays = [RNG.standard_normal(shape).astype("f4") for shape in ((7,), (3, 5), (400, 33), (1,), (300, 300))]
    given = [FROM[library](x) for x in arrays]
    for name, some in (("norm", slice(None)), ("square_sum", slice(None)), ("max", slice(None)), ("transpose", slice(1, 3)), ("rms_norm", slice(None))):
        want, got = getattr(ls.group, name)(arrays[some]), getattr(ls.group, name)(given[some])
        assert ls.last_run().backend == "cuda" and ls.last_run().staged_bytes == 0 and (name == "max" or ls.last_run().variant == "grouped"), ls.last_run()
        for a, b, x in zip(got, want, given[some], strict=True):
            assert type(a) is type(x) and back(a).tobytes() == b.tobytes(), (library, name)
    assert back(ls.norms(given)).tobytes() == ls.norms(arrays).tobytes()
    with pytest.raises(ls.InvalidArgument, match=r"^arrays\[1\]: it lives on the host"):
        ls.norms([given[0], arrays[0]])
    if library == "jax":
        return
    plan = ls.group.plan("norm", given, stack=True)
    assert back(plan()).tobytes() == ls.norms(arrays).tobytes() and plan.backend == "cuda" and plan.variant == "grouped"


def test_groups_in_graphs_and_streams(torch):
    xs = [torch.ones(n, device="cuda") for n in (10, 1000, 100_000)]
    plan, stream = ls.group.plan("square_sum", xs, stack=True), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        plan()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        total = plan()
    for value in (2.0, 3.0):
        for x in xs:
            x.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        assert total.tolist() == [x.numel() * value * value for x in xs]
    for call in (lambda: ls.norms(xs), plan):
        call()
        torch.cuda._sleep(500_000_000)
        begin = time.perf_counter()
        for x in xs:
            x.fill_(4)
        result = call()
        assert time.perf_counter() - begin < 0.05
        assert result[0].item() in (160, 160**0.5) or abs(result[0].item() ** 2 - 160) < 1e-3
        for x in xs:
            x.fill_(0)


def test_clipping_does_not_wait(torch):
    import lockstep.torch as lt
    parameters = [torch.zeros(n, device="cuda", requires_grad=True) for n in (10, 3000)]
    for p in parameters:
        p.grad = torch.ones_like(p)
    lt.clip_grad_norm_(parameters, 1.0)
    torch.cuda.synchronize()
    torch.cuda._sleep(500_000_000)
    begin = time.perf_counter()
    norm = lt.clip_grad_norm_(parameters, 0.5)
    assert time.perf_counter() - begin < 0.05 and abs(norm.item() - 1) < 1e-5


def test_what_a_call_costs_the_host(torch, record_property):
    x, y = torch.ones(8, 8, device="cuda"), torch.empty(8, 8, device="cuda")
    plan = ls.plan.transpose(x)
    found = {}
    for name, call in (("sum", lambda: ls.sum(x)), ("transpose into out", lambda: ls.transpose(x, out=y)), ("plan", lambda: plan(x, out=y)),
                       ("torch sum", lambda: x.sum())):
        for _ in range(200):
            call()
        best = 1e9
        for _ in range(10):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(100):
                call()
            best = min(best, (time.perf_counter() - begin) / 100)
        found[name] = round(best * 1e6, 2)
    print("host microseconds a call:", found)
    assert found["sum"] < 200
