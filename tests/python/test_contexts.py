"""Contexts, scopes, plans, and what they say of themselves."""
import asyncio
import gc
import pathlib
import subprocess
import sys
import threading
import weakref
from functools import partial

import numpy as np
import pytest

import lockstep as ls

X = np.random.default_rng(1).standard_normal((40, 50))


def test_the_digest_is_the_golden_one():
    golden = (pathlib.Path(__file__).parent.parent / "golden" / "order1.txt").read_text().strip()
    assert ls.verify().line == golden and ls.verify()
    assert ls.verify("oracle").line == golden and ls.verify(isa="baseline", threads=1).line == golden
    assert not ls.Digest("lockstep-digest order1 0", golden)
    with pytest.raises(RuntimeError, match="nonesuch"):
        ls.verify("nonesuch")


def test_scopes_nest_and_end():
    with ls.variants(reduce="ref"):
        ls.sum(X)
        assert ls.last_run().variant == "ref"
        with ls.variants(reduce="auto"):
            ls.sum(X)
            assert ls.last_run().variant != "ref"
        ls.max(X)
        assert ls.last_run().variant == "ref"
        ls.square_sum(X)
        assert ls.last_run().variant != "ref"
        with pytest.raises(ls.NoBackend, match="nonesuch"), ls.backend("nonesuch"):
            ls.sum(X)
        ls.sum(X, variant="auto")
        assert ls.last_run().variant != "ref"
    ls.sum(X)
    assert ls.last_run().variant != "ref"
    with pytest.raises(ls.NoVariant, match="nonesuch"):
        ls.sum(X, variant="nonesuch")
    with pytest.raises(ls.InvalidArgument):
        ls.variants(sum="ref")
    with pytest.raises(ls.InvalidArgument):
        ls.backend(3)


def test_a_scope_is_of_one_thread_and_one_task():
    seen = []
    inside, outside = threading.Event(), threading.Event()

    def other():
        inside.wait(10)
        ls.sum(X)
        seen.append(ls.last_run().variant)
        outside.set()

    thread = threading.Thread(target=other)
    thread.start()
    with ls.variants(reduce="ref"):
        inside.set()
        assert outside.wait(10)
    thread.join()
    assert seen and seen[0] != "ref"

    async def task(name):
        with ls.variants(reduce=name):
            for _ in range(5):
                await asyncio.sleep(0)
                ls.sum(X)
                assert (ls.last_run().variant == "ref") == (name == "ref")

    async def both():
        await asyncio.gather(task("ref"), task("auto"), task("ref"))

    asyncio.run(both())


@pytest.mark.parametrize("make", [lambda: ls.variants(reduce="ref"), lambda: ls.Context("cpu", variants={"reduce": "ref"})], ids=["scope", "context"])
def test_one_scope_in_several_threads_and_tasks(make):
    scope, seen = make(), []
    steps = threading.Barrier(2, timeout=10)

    def first():
        with scope:
            steps.wait()  # the second enters, and leaves last
            steps.wait()
        steps.wait()

    thread = threading.Thread(target=first)
    thread.start()
    steps.wait()
    with scope:
        seen.append(ls.sum(X) and ls.last_run().variant)
        steps.wait()
        steps.wait()
    thread.join()
    scope = make()

    async def task(wait):
        with scope:
            await asyncio.sleep(wait)
            seen.append(ls.sum(X) and ls.last_run().variant)
            await asyncio.sleep(wait)

    async def both():
        await asyncio.gather(task(0.01), task(0.03))

    asyncio.run(both())
    assert seen == ["ref"] * 3


def test_a_scope_decorates():
    @ls.backend("cpu")
    @ls.variants(reduce="ref")
    def total(depth):
        if depth:
            return total(depth - 1)
        ls.sum(X)
        return ls.last_run()

    assert (total(3).backend, total(0).variant) == ("cpu", "ref")
    ls.sum(X)
    assert ls.last_run().variant != "ref"

    @ls.variants(reduce="ref")
    async def later():
        await asyncio.sleep(0)
        return ls.sum(X) and ls.last_run().variant

    assert asyncio.run(later()) == "ref"
    with pytest.raises(TypeError, match="with block"):
        @ls.backend("cpu")
        def totals():
            yield ls.sum(X)


def test_contexts():
    with ls.Context(backend="cpu", variants={"reduce": "ref"}, threads=1) as context:
        ls.sum(X)
        assert ls.last_run().variant == "ref"
        assert context.sum(X) == ls.sum(X) and context.handle
        assert context.norm(X, axis=0).shape == (50,)
        context.synchronize()
        context.set_backend("auto")
        assert context.model_info().source
    ls.sum(X)
    assert ls.last_run().variant != "ref"
    with pytest.raises(ls.InvalidArgument, match="closed"):
        context.sum(X)
    context.close()
    for wrong, error in (({"backend": "nonesuch"}, ls.NoBackend), ({"variants": "reduce=nonesuch"}, ls.NoVariant),
                         ({"isa": "mmx"}, ls.InvalidArgument), ({"threads": -1}, ls.InvalidArgument)):
        with pytest.raises(error):
            ls.Context(**wrong)
    with pytest.raises(ls.InvalidArgument, match="Context"):
        ls.sum(X, context=object())


def test_threads_change_no_bit():
    want = ls.sum(X)
    for n in (1, 2, 3):
        ls.set_num_threads(n)
        assert ls.get_num_threads() == n and ls.sum(X) == want
    ls.set_num_threads(0)
    assert ls.get_num_threads() >= 1
    ls.set_num_threads(np.int64(0))
    with pytest.raises(ls.InvalidArgument):
        ls.set_num_threads(-1)
    with pytest.raises(TypeError, match="n is 1.5; give an int"):
        ls.set_num_threads(1.5)


def test_record_collects_what_ran():
    with ls.record() as outer:
        ls.sum(X)
        with ls.record() as inner:
            ls.transpose(X)
            ls.plan.max(X)(X)
        ls.norm(X)
    ls.sum(X)
    assert [run.op for run in outer] == ["reduce", "transpose", "reduce", "square_sum"]
    assert [run.op for run in inner] == ["transpose", "reduce"]
    assert outer[0].backend == "cpu" and outer[0].order == 1 == ls.order


def test_the_log_says_what_ran(caplog):
    """The logger's level is looked at in each call: another logger's, a switch for all and those of a parent count too."""
    import logging
    logger = logging.getLogger("lockstep")
    x = np.arange(8, dtype="f4")

    def told(call):
        caplog.clear()
        call()
        return [(record.name, record.levelname, record.run.op, record.filename) for record in caplog.records if record.name == "lockstep"]

    one = [("lockstep", "DEBUG", "reduce", "test_contexts.py")]
    assert told(lambda: often(lambda: ls.sum(x))) == []
    with caplog.at_level(logging.DEBUG, "lockstep"):
        assert told(lambda: ls.plan.sum(x)(x)) == one and told(lambda: ls.sum(x)) == one
        assert caplog.records[0].run == ls.last_run()._replace(op="reduce", function="sum") and "sum: reduce on cpu:0 by " in caplog.text and ", order 1" in caplog.text
        logging.disable(logging.DEBUG)
        assert told(lambda: ls.sum(x)) == []
        logging.disable(logging.NOTSET)
        assert told(lambda: ls.sum(x)) == one
        with ls.record() as runs:
            assert told(lambda: ls.sum(x)) == one and len(runs) == 1
    assert told(lambda: often(lambda: ls.sum(x))) == []
    with caplog.at_level(logging.DEBUG):  # the root's
        assert told(lambda: ls.sum(x)) == one
        logger.disabled = True
        assert told(lambda: ls.sum(x)) == []
        logger.disabled = False
    with caplog.at_level(logging.INFO, "lockstep"):
        assert told(lambda: ls.sum(x)) == []

    def refuse(record):
        raise ZeroDivisionError("of a filter")

    logger.addFilter(refuse)
    with caplog.at_level(logging.DEBUG, "lockstep"), pytest.raises(ZeroDivisionError, match="of a filter"):
        ls.sum(x)
    logger.removeFilter(refuse)


def test_plans_agree_with_the_functions():
    offsets = np.array([0, 7, 40])
    weights = ls.laplace_weights(2)
    for name, arguments, keywords in (("transpose", (), {}), ("permute", ((1, 0),), {}), ("sum", (), {"axis": 1}), ("sum", (), {}),
                                      ("norm", (), {"axis": 0, "keepdims": True}), ("argmax", (1,), {}), ("square_sum", (), {"dtype": "float32"}),
                                      ("stencil", (weights,), {"mode": "wrap"})):
        p = getattr(ls.plan, name)(X, *arguments, **keywords)
        want = getattr(ls, name)(X, *arguments, **keywords)
        got = p(X)
        assert np.shape(got) == np.shape(want) and got.tobytes() == want.tobytes() and type(got) is type(want)
        described = getattr(ls.plan, name)(ls.spec(X.shape, "float64"), *arguments, **keywords)
        assert described(X).tobytes() == want.tobytes() and described.op == p.op
        out = np.empty_like(want)
        if out.ndim:
            assert p(X, out=out) is out and out.tobytes() == want.tobytes()
    p = ls.plan.segment_sum(X[:, 0].copy(), offsets)
    del offsets
    assert p(X[:, 0].copy()).tobytes() == ls.segment_sum(X[:, 0], np.array([0, 7, 40])).tobytes()
    p = ls.plan.shuffle(np.arange(64, dtype="i4"), "xor", 1)
    assert p(np.arange(64, dtype="i4"))[0] == 1


def test_plans_refuse_what_they_were_not_made_for():
    p = ls.plan.sum(X, axis=1, context=ls.Context("cpu"))
    for wrong in (X.astype("f4"), X[:, :-1], np.asfortranarray(X), X[0]):
        with pytest.raises(ls.InvalidArgument, match="make a plan"):
            p(wrong)
    with pytest.raises(ls.InvalidArgument, match="shape"):
        p(X, out=np.empty(3))
    with pytest.raises(ls.Unsupported, match="packed"):
        ls.plan.l1_norm(np.zeros((3, 4, 5)), axis=1)
    with pytest.raises(ls.Unsupported, match="packed"):
        ls.plan.sum(X[::-1])
    with pytest.raises(ls.UnsupportedDtype, match="wider"):
        ls.plan.cumsum(X.astype("i1"))
    with pytest.raises(ls.InvalidArgument, match="no memory"):
        ls.sum(ls.spec((3,)))
    with pytest.raises(BufferError):
        np.asarray(memoryview(ls.spec((3,))))
    for given in ({"out": np.empty(40)}, {"stream": 1}, {"check": True}):
        with pytest.raises(TypeError, match=f"plan.sum\\(\\) has no argument {next(iter(given))}; give it to the plan's calls"):
            ls.plan.sum(X, axis=1, **given)
    times = p.measure(X, np.empty(40), samples=3)
    assert len(times) == 3 and min(times) > 0
    with pytest.raises(ls.InvalidArgument):
        p.measure(X, np.empty(40), samples=0)


def test_a_tuned_plan_remembers_what_it_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_TUNING", str(tmp_path / "tuning"))
    x = np.ones((300, 200), "f4")
    with ls.Context("cpu", threads=1) as context:
        plain = ls.plan.sum(x, axis=1, context=context)
        assert plain.backend == "cpu" and plain.variant and context.tuning_info().choices == ()
        tuned = ls.plan.sum(x, axis=1, context=context, tune=True)
        info = context.tuning_info()
        assert info.path == str(tmp_path / "tuning") and len(info.choices) == 1 and tuned.variant in info.choices[0]
        assert "reduce" in info.choices[0] and "us" in info.choices[0] and tuned(x).tobytes() == plain(x).tobytes()
    with ls.Context("cpu", threads=1) as another:
        assert ls.plan.sum(x, axis=1, context=another).variant == tuned.variant and another.tuning_info().choices == info.choices
        assert ls.plan.sum(x, axis=1, context=another, variant="ref", tune=True).variant == "ref"
    assert isinstance(ls.tuning_info(), ls.TuningInfo)
    for call in (lambda: ls.sum(x, tune=True), lambda: plain(x, tune=True)):
        with pytest.raises(TypeError, match="no argument 'tune'"):
            call()


def test_every_way_to_call_a_plan():
    import functools
    p = ls.plan.sum(X, axis=1)
    want = ls.sum(X, axis=1).tobytes()
    out = np.empty(40)
    for got in (p(X), p(x=X), p(X, out=None), p(X, **{"o" + "ut": out}), p(*[X], stream=None), functools.partial(p, X)(check=True), p.__call__(X, out=out)):
        assert got.tobytes() == want
    for wrong, words in ((lambda: p(), "needs the argument x"), (lambda: p(X, out), "1 positional"), (lambda: p(X, x=X), "x twice"),
                         (lambda: p(X, axis=0), "no argument 'axis'"), (lambda: p.__call__(*[X] * 9), "9 arguments"), (lambda: p.__call__(X, out), "1 positional")):
        with pytest.raises(TypeError, match=words):
            wrong()


class Engine(ls.Context):
    pass


class Named(np.ndarray):
    pass


def context_and_plan():
    engine = Engine("cpu")
    engine.plan = ls.plan.sum(X, context=engine)
    return engine


def weight_and_plan():
    weight = np.ones(50).view(Named)
    weight.plan = ls.plan.rms_norm(X, weight=weight)
    return weight


def array_and_group_plan():
    x = np.ones(50).view(Named)
    x.plan = ls.group.plan("sum", [x])
    return x


@pytest.mark.parametrize("make", [context_and_plan, weight_and_plan, array_and_group_plan])
def test_a_plan_that_its_own_array_keeps_goes_with_it(make):
    gone = weakref.ref(make())
    gc.collect()
    assert gone() is None


def test_a_plan_takes_its_threads_in_turn():
    p = ls.plan.sum(X, axis=1)
    want = ls.sum(X, axis=1).tobytes()
    wrong = []

    def work():
        for _ in range(200):
            if p(X).tobytes() != want:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_what_there_is():
    cpu = ls.backends()[-1]
    assert cpu.name == "cpu" and cpu.usable and not cpu.reason
    assert any(d.backend == "cpu" and d.processors >= 1 for d in ls.devices())
    names = [v.name for v in ls.variants_of("transpose")]
    assert "ref" in names and [v.reference for v in ls.variants_of("transpose") if v.name == "ref"] == [True]
    with pytest.raises(ls.InvalidArgument):
        ls.variants_of("sum")
    for wrong, error in (("gpu", ls.NoBackend), ("CPU", ls.NoBackend), ("", ls.NoBackend), ("auto", ls.InvalidArgument), ("cpu:x", ls.InvalidArgument)):
        with pytest.raises(error, match=f'backend is "{wrong}".*cpu' if wrong != "auto" else 'backend is "auto"'):
            ls.variants_of("sums", wrong)
    with pytest.raises(ls.InvalidArgument, match="device is 'gpu'"):
        ls.empty(3, device="gpu")
    assert ls.variants_of("sums", "cpu:0") == ls.variants_of("sums") and ls.empty(3, device="cpu").nbytes == 12
    assert "liblockstep.so" in ls.get_library()


def test_buffers_of_our_own():
    b = ls.empty((2, 3), "float32")
    x = np.asarray(b)
    assert x.shape == (2, 3) and x.dtype == np.float32 and x.ctypes.data % 256 == 0 and b.nbytes == 24
    x[:] = [[1, 2, 3], [4, 5, 6]]
    assert np.from_dlpack(b).tolist() == x.tolist()
    assert ls.transpose(b).shape == (3, 2) and np.asarray(ls.transpose(b)).tolist() == x.T.tolist()
    assert np.asarray(ls.sum(b)) == 21
    ls.sum(x, axis=0, out=ls.empty(3))
    assert ls.empty(np.int64(3)).shape == (3,) and ls.empty(np.array([2, 3])).shape == (2, 3)
    for wrong in ({"dtype": "float128"}, {"kind": "paper"}, {"shape": -1}, {"kind": "pinned", "device": "cuda:x"}, {"kind": "pinned", "device": 0}):
        with pytest.raises(ls.InvalidArgument):
            ls.empty(**{"shape": 3, **wrong})
    for shape in (2.5, (2.5,), "3", None):
        with pytest.raises(TypeError, match="shape is"):
            ls.empty(shape)
    with pytest.raises(ls.InvalidArgument, match="device is 'gpu'"):
        ls.spec(3, device="gpu")
    with pytest.raises(BufferError):
        memoryview(ls.empty(3, "bfloat16"))
    with pytest.raises(BufferError):
        b.__dlpack__(copy=True)
    if not any(backend.name == "cuda" and backend.usable for backend in ls.backends()):
        with pytest.raises(ls.NoBackend):
            ls.empty(3, kind="pinned")


def test_a_workspace_of_the_callers():
    x = np.random.default_rng(3).standard_normal((1000, 1000)).astype("f4")
    want, plan = ls.sum(x), ls.plan.sum(x, workspace=True)
    room = np.zeros(plan.workspace_bytes + 512, "u1")
    at = -room.ctypes.data % 256
    mine = room[at:at + plan.workspace_bytes]
    assert plan.workspace_bytes and not room.any() and plan(x, workspace=mine) == want and mine.any()
    assert not room[:at].any() and not room[at + mine.size:].any()
    assert ls.plan.sum(x)(x, workspace=mine) == want and plan(x) == want  # (which takes memory after all)
    for bad, text in ((mine[:-1], "workspace_bytes is"), (room[at + 1:][:mine.size], "align it to 256"), (room[::2], "workspace is not packed"),
                      (x.reshape(-1)[-(x.ctypes.data % 256 // 4):], "workspace")):
        with pytest.raises(ls.InvalidArgument, match=text):
            plan(x, workspace=bad)
    frozen = mine.copy()
    frozen.flags.writeable = False
    with pytest.raises(ls.InvalidArgument, match="workspace is read-only"):
        plan(x, workspace=frozen)


# A small reduction that comes again and again runs by a plan that the extension keeps (lib/python/kept.cpp).
# A call with check=True is not.
def often(call, times=20):
    return [np.asarray(call()).tobytes() for _ in range(times)][-1]


def test_calls_that_come_again_have_the_bits_of_the_first():
    rng = np.random.default_rng(2)
    for dtype in ("f2", "f4", "f8", "i4", "u1"):
        for shape in ((8,), (3, 5), (), (500,)):
            for name in ("sum", "max", "argmin", "norm", "square_sum"):
                if name in ("norm", "square_sum") and dtype in ("i4", "u1"):
                    continue
                x = (rng.standard_normal(shape) * 50).astype(dtype)
                call = getattr(ls, name)
                assert often(lambda: call(x)) == np.asarray(call(x, check=True)).tobytes(), (dtype, shape, name)
                for _ in range(3):  # other numbers, the same call
                    y = (rng.standard_normal(shape) * 50).astype(dtype)
                    got = call(y)
                    assert np.asarray(got).tobytes() == np.asarray(call(y, check=True)).tobytes() and type(got) is type(call(y, check=True))


def test_a_kept_call_is_for_arrays_like_the_last_alone():
    x = np.arange(16, dtype="f4")
    often(lambda: ls.sum(x[:8]))
    assert ls.sum(x[::2]) == 56 and ls.sum(x[:9]) == 36 and ls.sum(x[:8].astype("f8")).dtype == np.float64 and ls.sum(x[7::-1]) == 28
    assert ls.square_sum(x[:8]) == 140 and ls.sum(x[:8].reshape(2, 4)) == 28 and ls.sum(x[:8].view("i4")).dtype == np.int64
    with pytest.raises(TypeError):
        ls.sum(None)


KEPT = [("sum", (0,), {}), ("sum", (), {"axis": 1, "keepdims": True}), ("max", (), {"axis": (0, 1)}), ("norm", (), {"dtype": "float64"}), ("transpose", (), {}),
        ("permute", ((1, 0),), {}), ("cumsum", (), {"axis": 1}), ("convert", ("float64",), {"scale": 0.5}), ("argmax", (-1,), {})]


@pytest.mark.parametrize("name,arguments,keywords", KEPT)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_calls_with_arguments_that_come_again(name, arguments, keywords, library):
    make = np.asarray if library == "numpy" else pytest.importorskip("torch").from_numpy
    call, rng = getattr(ls, name), np.random.default_rng(4)
    for shape in ((3, 5), (20, 10)):
        for _ in range(30):
            x = make(rng.standard_normal(shape).astype("f4"))
            want = call(x, *arguments, check=True, **keywords)
            got = call(x, *arguments, **keywords)
            assert type(got) is type(want) and np.asarray(got).tobytes() == np.asarray(want).tobytes() and np.shape(got) == np.shape(want)
            out = make(np.zeros(np.shape(want), np.asarray(want).dtype))
            assert call(x, *arguments, out=out, **keywords) is out and np.asarray(out).tobytes() == np.asarray(want).tobytes()


def test_a_kept_call_is_for_the_same_arguments_alone():
    x = np.arange(12, dtype="f4").reshape(3, 4)
    out, wide = np.zeros(4, "f4"), np.zeros((4, 2), "f4")[:, 0]
    often(lambda: ls.sum(x, axis=0))
    often(lambda: ls.sum(x, axis=0, out=out))
    assert ls.sum(x, axis=1).tolist() == [6, 22, 38] and ls.sum(x, 0).tolist() == [12, 15, 18, 21] and ls.sum(x, axis=0, keepdims=True).shape == (1, 4)
    assert ls.sum(x, axis=0, out=None).tolist() == [12, 15, 18, 21] and ls.max(x, axis=0).tolist() == [8, 9, 10, 11]
    for bad, text in ((np.zeros(3, "f4"), "shape"), (np.zeros(4, "f8"), "holds"), (wide, "not packed"), (x[0], "overlap")):
        with pytest.raises(ls.InvalidArgument, match=text):
            ls.sum(x, axis=0, out=bad)
    fixed = np.zeros(4, "f4")
    fixed.flags.writeable = False
    with pytest.raises(ls.InvalidArgument, match="read-only"):
        ls.sum(x, axis=0, out=fixed)
    axes = [0]
    often(lambda: ls.sum(x, axis=axes))
    axes[0] = 1
    assert ls.sum(x, axis=axes).tolist() == [6, 22, 38]
    results = [ls.sum(x, axis=0) for _ in range(20)]
    assert len({r.ctypes.data for r in results}) == 20  # each has memory of its own
    often(lambda: ls.sum(x, axis=0, stream=None))
    with ls.variants(reduce="ref"):
        ls.sum(x, axis=0)
        assert ls.last_run().variant == "ref"


def test_more_calls_than_are_kept():
    arrays = [np.arange(n + 1, dtype="f4") for n in range(20)]
    for _ in range(30):
        for x in arrays:
            assert ls.sum(x, axis=0) == x.sum()


def test_a_kept_call_of_tensors():
    torch = pytest.importorskip("torch")
    x = torch.arange(8, dtype=torch.float32)
    often(lambda: ls.sum(x).numpy())
    got = ls.sum(x)
    assert isinstance(got, torch.Tensor) and got.shape == () and got == 28 and ls.sum(x + 1) == 36 and got == 28
    a = np.arange(8, dtype="f4")
    for call in (ls.sum, partial(ls.sum, axis=0), partial(ls.norm, dtype="float64"), ls.argmax, lambda t: ls.dot(t, t)):
        often(lambda: call(x).numpy())
        want = call(torch.from_numpy(a))
        got = call(a)  # kept for tensors, whose sum is a tensor, for an array it is a number
        assert isinstance(got, np.generic) and got == want.item() and isinstance(want, torch.Tensor) and want.shape == ()
        often(lambda: call(a))
        assert isinstance(call(x), torch.Tensor)
    with pytest.raises(ls.InvalidArgument, match="gradient"):
        ls.sum(x.clone().requires_grad_())
    z = torch.ones(8, dtype=torch.complex64).conj().imag
    with pytest.raises(ls.InvalidArgument, match="negates"):
        ls.sum(z)


def test_a_kept_call_gives_way_to_what_changes_meanwhile():
    x = np.arange(8, dtype="f4")
    often(lambda: ls.sum(x))
    assert ls.last_run().variant == ls.last_run().variant
    with ls.record() as runs:
        ls.sum(x)
    assert [run.op for run in runs] == ["reduce"]
    often(lambda: ls.sum(x))
    with ls.variants(reduce="ref"):
        assert ls.sum(x) == 28 and ls.last_run().variant == "ref"
    ls.set_num_threads(1)
    try:
        assert often(lambda: ls.sum(x)) == np.float32(28).tobytes()
    finally:
        ls.set_num_threads(0)
    big = np.array([2**62, 2**62])
    with pytest.raises(ls.Overflow):
        often(lambda: ls.sum(big))
    small = np.array([1, 2])
    often(lambda: ls.sum(small))
    for _ in range(2):
        with pytest.raises(ls.Overflow):
            ls.sum(big)


def test_a_closed_default_context_ends_what_is_kept():
    code = """
import numpy as np, lockstep as ls
from lockstep import _core
x = np.arange(8.0)
for _ in range(20): ls.sum(x)
context = _core.get_default()
context.set_backend("cpu")
assert ls.sum(x) == 28
for _ in range(20): ls.sum(x)
context.close()
assert context.handle == 0
try:
    ls.sum(x)
except ls.InvalidArgument as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "closed" in done.stdout, done.stderr
