"""Groups: many arrays by one call have the bits of the single calls, and errors that name the array."""
import gc
import importlib.util
import sys
import threading

import numpy as np
import pytest

import lockstep as ls

RNG = np.random.default_rng(17)
SHAPES = [(7,), (3, 5), (40, 33), (2, 3, 4), (1,), (600, 300)]
WEIGHTS = (0.25, -0.5, 0.25)


def arrays_of(dtype, shapes=SHAPES):
    return [(RNG.standard_normal(shape) * 20).astype(dtype) for shape in shapes]


def same(got, want):
    assert type(got) is type(want) and got.dtype == want.dtype and got.shape == want.shape, (got, want)
    assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


CALLS = [("sum", {}), ("sum", {"axis": -1}), ("sum", {"axis": 0, "keepdims": True}), ("square_sum", {}), ("norm", {"dtype": "float64"}), ("max", {"axis": 0}),
         ("min", {}), ("argmax", {"axis": -1}), ("argmin", {}), ("cumsum", {"axis": -1}), ("cumsum", {"axis": 0}), ("cummax", {}), ("cummin", {"exclusive": True}),
         ("normalize", {}), ("rms_norm", {"axis": -1}), ("layer_norm", {}), ("l1_norm", {"axis": -1}), ("l1_norm", {"axis": 0}),
         ("convert", {"dtype": "float64"}), ("stencil", {"weights": WEIGHTS, "axes": -1})]


@pytest.mark.parametrize("name,keywords", CALLS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_group_has_the_bits_of_its_calls(name, keywords, dtype):
    arrays = arrays_of(dtype)
    arrays += [arrays[2].T, arrays[5][::2, 1:], arrays[3].transpose(2, 0, 1), arrays[1][::-1], np.asfortranarray(arrays[2])]
    for got, x in zip(getattr(ls.group, name)(arrays, **keywords), arrays, strict=True):
        same(got, getattr(ls, name)(x, **keywords))


def test_shuffles():
    arrays = arrays_of("f4", [(32,), (4, 16), (64, 33)])
    arrays.append(arrays[2].T)
    for got, x in zip(ls.group.shuffle(arrays, "xor", 1), arrays, strict=True):
        same(got, ls.shuffle(x, "xor", 1))


@pytest.mark.parametrize("name", ["transpose", "permute"])
@pytest.mark.parametrize("dtype", ["i1", "f4", "c16", "?"])
def test_moves(name, dtype):
    arrays = arrays_of(dtype, [(3, 5), (40, 33), (200, 1), (0, 4)])
    arrays.append(arrays[1].T)
    arguments = () if name == "transpose" else ((1, 0),)
    for got, x in zip(getattr(ls.group, name)(arrays, *arguments), arrays, strict=True):
        same(got, x.T.copy())


def test_arrays_of_several_dtypes():
    arrays = [RNG.integers(-9, 9, 50).astype(d) for d in ("i1", "u2", "i4", "i8", "f2", "f4", "f8", "?")]
    for name in ("sum", "max", "argmin", "norm"):
        for got, x in zip(getattr(ls.group, name)(arrays), arrays, strict=True):
            same(got, getattr(ls, name)(x))


def test_arguments_that_each_array_has_its_own_of():
    xs, ys = arrays_of("f4"), arrays_of("f4")
    for name in ("dot", "squared_distance", "l1_distance"):
        for got, x, y in zip(getattr(ls.group, name)(xs, ys), xs, ys, strict=True):
            same(got, getattr(ls, name)(x, y, tuple(range(x.ndim))))
    offsets = [np.array([0, 2, x.size]) for x in xs]
    flat = [x.reshape(-1) for x in xs[:4]]
    for name in ("segment_sum", "segment_norm", "segment_max", "segment_argmin"):
        for got, x, o in zip(getattr(ls.group, name)(flat, offsets[:4]), flat, offsets, strict=False):
            same(got, getattr(ls, name)(x, o))
    rows = [np.ascontiguousarray(x.reshape(-1)[:8].reshape(2, 4)) for x in xs if x.size >= 8]
    weight, residuals = np.arange(1, 5, dtype="f4"), [r * 2 for r in rows]
    for got, x, r in zip(ls.group.layer_norm(rows, weight=weight, residual=residuals), rows, residuals, strict=True):
        same(got, ls.layer_norm(x, weight=weight, residual=r))
    weights = [weight, None, weight][:len(rows)] + [None] * (len(rows) - 3)
    for got, x, w in zip(ls.group.rms_norm(rows, weight=weights), rows, weights, strict=True):
        same(got, ls.rms_norm(x, weight=w))


def test_out():
    arrays = arrays_of("f4")
    outs = [np.full((), -1, "f4") for _ in arrays]
    got = ls.group.sum(arrays, out=outs)
    assert all(a is b for a, b in zip(got, outs, strict=True)) and [float(o) for o in outs] == [float(ls.sum(x)) for x in arrays]
    some = ls.group.sum(arrays[:2], out=[None, outs[0]])
    assert some[1] is outs[0] and type(some[0]) is np.float32
    wide = np.zeros((len(arrays), 3), "f8")
    assert ls.group.sum(arrays, dtype="float64", stack=True, out=wide[:, 1]).base is wide
    assert wide[:, 1].tolist() == [ls.sum(x, dtype="float64") for x in arrays] and not wide[:, 0].any() and not wide[:, 2].any()


def test_stack():
    arrays = arrays_of("f4")
    each = ls.norms(arrays)
    same(each, np.array([ls.norm(x) for x in arrays]))
    same(ls.group.transpose([arrays[1]] * 3, stack=True), np.stack([arrays[1].T] * 3))
    mixed = [arrays[0], arrays[1].astype("f8"), arrays[2].astype("f2")]
    same(ls.norms(mixed, dtype="float64"), np.array([ls.norm(x, dtype="float64") for x in mixed]))
    with pytest.raises(ls.UnsupportedDtype, match=r"^arrays\[1\]: its result is float64, that of arrays\[0\] float32"):
        ls.norms(mixed)
    with pytest.raises(ls.InvalidArgument, match=r"^arrays\[1\]: its result has another shape"):
        ls.group.sum(arrays, axis=0, stack=True)
    with pytest.raises(ls.InvalidArgument, match="out has the shape"):
        ls.norms(arrays, out=np.zeros(len(arrays) + 1, "f4"))
    with pytest.raises(ls.InvalidArgument, match="arrays is empty"):
        ls.norms([])


@pytest.mark.parametrize("call,error,text", [
    (lambda a: ls.group.sum([*a, np.ones(3, "c8")]), ls.UnsupportedDtype, r"^arrays\[6\]: x holds complex64"),
    (lambda a: ls.group.sum([a[0], "3.5"]), TypeError, r"^arrays\[1\]: x is a str"),
    (lambda a: ls.group.sum(a, axis=1), ls.InvalidArgument, r"^arrays\[0\]: axis is 1"),
    (lambda a: ls.group.sum(a, out=a[:2]), ls.InvalidArgument, "^out has 2 elements, arrays 6"),
    (lambda a: ls.group.sum(a, out=a[0]), ls.InvalidArgument, "(?s)^out is array.*give a list"),
    (lambda a: ls.group.dot(a, a[:3]), ls.InvalidArgument, "^y has 3 elements, arrays 6"),
    (lambda a: ls.group.sum(a[5]), ls.InvalidArgument, "single array"),
    (lambda a: ls.group.sum(7), TypeError, "not iterable"),
    (lambda a: ls.group.max([a[0], np.ones((0,), "f4")]), ls.Empty, r"^arrays\[1\]: "),
    (lambda a: ls.group.transpose([a[1], a[5][:40, :33]], out=[np.empty((5, 3), "f4"), a[5][5:38, :40]]), ls.InvalidArgument, r"^arrays\[1\]: src .* overlap"),
    (lambda a: ls.group.sum([a[0], a[1]], out=[a[2][0, :1].reshape(()), a[2][0, :1].reshape(())]), ls.InvalidArgument, r"arrays\[0\].*arrays\[1\]|arrays\[1\].*arrays\[0\]"),
    (lambda a: ls.group.transpose(a), ls.InvalidArgument, r"^arrays\[0\]: x has 1 axes"),
    (lambda a: ls.group.plan("mean", a), ls.Unsupported, "no group of mean"),
    (lambda a: ls.group.plan("cube", a), ls.InvalidArgument, "no operation 'cube'"),
    (lambda a: ls.group.plan("normalize", a[1:2], axis=0), ls.Unsupported, r"^arrays\[0\]: a plan makes no copy"),
    (lambda a: ls.group.plan("sum", [a[0][::-1]]), ls.Unsupported, r"^arrays\[0\]: .*copy"),
    (lambda a: ls.group.sum([a[0][::-1]], copy=False), BufferError, r"^arrays\[0\]: copy is False"),
    (lambda a: ls.group.sum(a, backend="abacus"), ls.NoBackend, "abacus"),
    (lambda a: ls.group.sum(a, variant="magic"), ls.NoVariant, "magic"),
    (lambda a: ls.group.sum(a, colour=3), TypeError, "no argument 'colour'"),
])
def test_errors_name_the_array(call, error, text):
    with pytest.raises(error, match=text):
        call(arrays_of("f4"))


def test_what_is_written_lies_apart_from_all_others():
    memory = np.arange(400.0)
    rows, planes = memory[:200].reshape(20, 10), memory[200:].reshape(5, 8, 5)  # reduce, and reduce_axes
    for out in ([memory[210:220], np.empty((5, 5))], [np.empty(10), memory[:25].reshape(5, 5)], [memory[:10], np.empty((5, 5))]):
        before = memory.copy()
        for call in (ls.group.sum, lambda *a, **k: ls.group.plan("sum", *a, **k)()):
            with pytest.raises(ls.InvalidArgument, match="overlap"):
                call([rows.T, planes], 1, out=out)
        assert np.array_equal(memory, before)
    got = ls.group.sum([rows.T, planes], 1, out=[np.empty(10), np.empty((5, 5))])
    assert np.array_equal(got[0], ls.sum(rows.T, 1)) and np.array_equal(got[1], ls.sum(planes, 1))


def test_nothing_is_written_before_the_last_call_is_taken():
    rows, planes = np.ones((4, 6), "f8"), np.ones((5, 8, 5))  # reduce, and reduce_axes
    first, inside = np.full(6, -1.0), planes[0, :5]
    with pytest.raises(ls.InvalidArgument, match=r"^arrays\[1\]: src .* overlap"):
        ls.group.sum([rows.T, planes], 1, out=[first, inside])
    assert (first == -1).all() and (planes == 1).all()
    flat, turned = np.ones((3, 5), "f4"), np.ones((2, 3, 4), "f4").transpose(1, 2, 0)  # transpose, and permute
    outs = [np.full((5, 3), -1, "f4"), np.full((3, 2, 4), -1, "f4")]
    with pytest.raises(ls.NoVariant, match="permute has no variant"):
        ls.group.transpose([flat, turned], variant="blocked", out=outs)
    assert all((o == -1).all() for o in outs)


@pytest.mark.parametrize("bad", [np.zeros((4, 7), "f4"), np.zeros((4, 6), "f8"), np.broadcast_to(np.float32(0), (4, 6)), 3.5])
def test_nothing_is_written_before_calls_by_way_of_a_copy_are_taken(bad):
    rows = [RNG.standard_normal((4, 6)).astype("f4") for _ in range(3)]
    outs, sums = [np.full((4, 6), -1, "f4") for _ in rows], [np.full((4, 6), -2, "f4") for _ in rows]
    keywords = {"axis": 0, "residual": rows, "residual_out": sums}
    for given in ({"out": [*outs[:2], bad], **keywords}, {"out": outs, **keywords, "residual_out": [*sums[:2], bad]}):
        with pytest.raises((ls.Error, TypeError), match=r"^arrays\[2\]: "):
            ls.group.normalize(rows, **given)
        assert all((o == -1).all() for o in outs) and all((h == -2).all() for h in sums)
    half = [np.ones(5, "f2"), np.ones(5, "f4")]  # running sums of f2 come by way of f4
    with pytest.raises((ls.Error, TypeError), match=r"^arrays\[1\]: "):
        ls.group.cumsum(half, out=[outs[0].reshape(-1)[:5], bad])
    assert (outs[0] == -1).all()
    got = ls.group.normalize(rows, out=outs, **keywords)
    for k, x in enumerate(rows):
        h = np.zeros_like(x)
        same(got[k], ls.normalize(x, axis=0, residual=x, residual_out=h))
        assert got[k] is outs[k] and np.array_equal(h, sums[k])


def test_errors_count_the_arrays_of_every_op():
    rows, apart = np.ones((4, 6), "f4"), np.ones((4, 6, 2), "f4")
    with pytest.raises(ls.Empty, match=r"^arrays\[3\]: "):
        ls.group.max([rows[None], apart, apart, np.ones((0, 2, 3), "f4")], axis=(0, 2))


def test_the_others_stand_beside_an_overflow():
    many = [np.ones(4, "i8"), np.full(9, 2**62), np.full(3, 5, "i8")]
    with pytest.raises(ls.Overflow, match=r"^arrays\[1\]: ") as caught:
        ls.group.sum(many)
    assert caught.value.out == [4, 2**63 - 1, 15]
    with pytest.raises(ls.Overflow) as caught:
        ls.group.sum(many, stack=True)
    assert caught.value.out.tolist() == [4, 2**63 - 1, 15]
    assert ls.group.sum([]) == [] and ls.group.plan("sum", [])() == []


def test_plans_read_what_the_arrays_hold_now():
    arrays = arrays_of("f4")
    plan = ls.group.plan("square_sum", arrays)
    for k in range(3):
        arrays[k] *= 3
        for got, x in zip(plan(), arrays, strict=True):
            same(got, ls.square_sum(x))
    assert plan.count == len(arrays) and plan.backend == "cpu" and plan.variant and isinstance(plan.why, str) and plan.op == "square_sum"
    assert plan.workspace_bytes >= 0 and len(plan.measure(samples=3)) == 3 and len(plan.measure(2, cold=True)) == 2
    # Reductions of axes that lie apart are another op of C: two plans in one.
    mixed = [arrays[3].transpose(1, 0, 2), arrays[3]]
    plan = ls.group.plan("sum", mixed, axis=(0, 2))
    mixed[0][...] += 1
    for got, x in zip(plan(), mixed, strict=True):
        same(got, ls.sum(x, axis=(0, 2)))
    outs = [np.zeros(x.shape, "f4") for x in arrays]
    plan = ls.group.plan("normalize", arrays, axis=-1, out=outs)
    expected = [ls.normalize(x, axis=-1) for x in arrays]
    del arrays
    gc.collect()
    assert all(a is b for a, b in zip(plan(), outs, strict=True))
    for got, want in zip(outs, expected, strict=True):
        same(got, want)


def test_a_plan_keeps_what_it_reads():
    x = np.ones(1000)
    plan = ls.group.plan("sum", [x])
    x.resize(5000, refcheck=False)
    with pytest.raises(ls.InvalidArgument, match="other memory"):
        plan()
    xs, ys = arrays_of("f4"), arrays_of("f4")
    want = [ls.vdot(x, y) for x, y in zip(xs, ys, strict=True)]
    plan = ls.group.plan("dot", list(xs), list(ys))
    del xs, ys
    gc.collect()
    junk = arrays_of("f4")
    for got, expected in zip(plan(), want, strict=True):
        same(got, expected)
    del junk
    weight = np.arange(1, 5, dtype="f4")
    rows = [np.ones((2, 4), "f4"), np.ones((9, 4), "f4")]
    plan = ls.group.plan("layer_norm", rows, weight=weight, stack=False)
    before, holders = sys.getrefcount(weight), plan()
    del plan
    assert sys.getrefcount(weight) < before and len(holders) == 2


def test_contexts_scopes_and_records():
    arrays = arrays_of("f4")
    with ls.record() as runs:
        ls.group.norm(arrays)
    assert len(runs) == 1 and runs[0].op == "square_sum" and runs[0].backend == "cpu"
    with ls.variants(square_sum="ref"):
        want = ls.group.norm(arrays)
        assert ls.last_run().variant == "ref"
    for got, x in zip(want, arrays, strict=True):
        same(got, ls.norm(x))
    ls.group.norm(arrays, variant="ref")
    assert ls.last_run().variant == "ref"
    with ls.Context("cpu", threads=1) as context:
        assert ls.group.norm(arrays, context=context) == want
    with pytest.raises(ls.InvalidArgument, match="closed"):
        ls.group.norm(arrays, context=context)


def test_nothing_is_left_behind():
    arrays, memory = arrays_of("f4"), [bytearray(32) for _ in range(3)]
    plan = ls.group.plan("sum", arrays)

    def once():
        ls.group.sum(arrays), ls.norms(arrays), plan(), ls.group.sum(memory), ls.group.plan("sum", memory)
        for bad in ([*arrays, "3"], [*arrays, np.ones(2, "c8")]):
            with pytest.raises((TypeError, ls.Error)):
                ls.group.sum(bad)

    once()
    gc.collect()
    before = [sys.getrefcount(x) for x in (*arrays, *memory, plan)]
    for _ in range(200):
        once()
    gc.collect()
    assert [sys.getrefcount(x) for x in (*arrays, *memory, plan)] == before
    for m in memory:
        m.extend(b"x")  # no view holds it


def test_threads_take_turns_with_a_plan():
    arrays = arrays_of("f4", [(200, 100)] * 8)
    plan, want, wrong = ls.group.plan("sum", arrays, stack=True, out=np.zeros(8, "f4")), ls.group.sum(arrays, stack=True), []

    def work():
        for _ in range(50):
            if plan().tolist() != want.tolist() or ls.norms(arrays).shape != (8,):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ---- other libraries ----------------------------------------------------------
def test_tensors():
    torch = pytest.importorskip("torch")
    arrays = arrays_of("f4")
    tensors = [torch.from_numpy(x.copy()) for x in arrays]
    tensors.append(tensors[2].T)
    for got, x in zip(ls.group.norm(tensors), tensors, strict=True):
        assert isinstance(got, torch.Tensor) and got.shape == () and torch.equal(got, ls.norm(x))
    each = ls.norms(tensors)
    assert isinstance(each, torch.Tensor) and each.shape == (len(tensors),) and torch.equal(each[:-1], torch.tensor([float(ls.norm(x)) for x in arrays]))
    half = [t.to(torch.bfloat16) for t in tensors]
    for got, x in zip(ls.group.transpose(half[1:3]), half[1:3], strict=True):
        assert torch.equal(got, x.T) and got.is_contiguous()
    with pytest.raises(ls.InvalidArgument, match=r"^arrays\[1\]: x requires a gradient"):
        ls.group.sum([tensors[0], tensors[1].clone().requires_grad_()])
    mixed = ls.group.sum([tensors[0], arrays[0]])
    assert isinstance(mixed[0], torch.Tensor) and type(mixed[1]) is np.float32


def test_a_plan_does_not_read_memory_that_a_tensor_has_left():
    torch = pytest.importorskip("torch")
    x = torch.ones(100_000)
    plan = ls.group.plan("sum", [x])
    assert plan()[0].item() == 100_000
    x.data = torch.zeros(3)
    with pytest.raises(ls.InvalidArgument, match=r"^arrays\[0\], .* other memory"):
        plan()
    with pytest.raises(ls.InvalidArgument, match="other memory"):
        plan.measure()
    y = torch.ones(10)
    total = ls.group.plan("sum", [y], stack=True)
    assert total().data_ptr() == total().data_ptr()
    y.fill_(2)
    assert total().tolist() == [20]


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no JAX")
def test_arrays_of_jax():
    import jax.numpy as jnp
    arrays = [jnp.asarray(x) for x in arrays_of("f4")]
    for got, x in zip(ls.group.norm(arrays), arrays, strict=True):
        assert type(got) is type(x) and got.shape == () and float(got) == float(ls.norm(np.asarray(x)))
    assert type(ls.norms(arrays)) is type(arrays[0]) and ls.norms(arrays).shape == (len(arrays),)
    with pytest.raises(ls.Unsupported, match=r"^arrays\[0\]: a plan writes into the same results"):
        ls.group.plan("norm", arrays)


@pytest.mark.skipif(importlib.util.find_spec("array_api_strict") is None, reason="no array_api_strict")
def test_arrays_of_the_array_api():
    import array_api_strict as xp
    arrays = [xp.asarray(x) for x in arrays_of("f4")]
    for got, x in zip(ls.group.norm(arrays), arrays, strict=True):
        assert type(got) is type(x) and float(got) == float(ls.norm(np.from_dlpack(x)))


def test_every_operation_has_its_group():
    several = {"mean_var", "rms_norm_backward", "layer_norm_backward"}  # results of a call: a group has one each
    named = {n for n in dir(ls.plan) if not n.startswith("_")} - {"Plan"} - several
    assert named == set(ls.group._NAMES) and set(ls.group._NAMES) < set(ls.group.__all__)
    for name in ls.group.__all__:
        assert getattr(ls.group, name).__doc__
