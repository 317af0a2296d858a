"""Producers x layouts x dtypes, as sources and as out: the right bits, or the documented exception, and never a crash."""
import importlib.util
import itertools
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from test_exchange import PRODUCERS, Producer, numpy_of  # skips where NumPy has no versioned capsules

import lockstep as ls

VIEWS = {
    "whole": lambda a: a,
    "offset": lambda a: a[1:, 2:],
    "steps": lambda a: a[:, ::2],
    "an axis of one": lambda a: a[2:3, 1:],
    "two of one": lambda a: a[2:3, 3:4],
    "moved": lambda a: a.T,
    "one row": lambda a: a[1, :],
    "one element": lambda a: a[1, 2],
    "nothing": lambda a: a[:0, :],
    "nothing of something": lambda a: a[:, 4:4],
}
BACKWARDS = {"backwards": lambda a: a[::-1], "both backwards": lambda a: a[::-1, ::-1], "repeated": lambda a: np.broadcast_to(a[0], (4, 6))}
DTYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", *(["bfloat16"] if importlib.util.find_spec("ml_dtypes") else [])]
COMPLEX = ("c8", "c16")


def base_of(dtype):
    if dtype == "bfloat16":
        import ml_dtypes
        dtype = ml_dtypes.bfloat16
    return (np.arange(24) % (2 if dtype == "?" else 23)).reshape(4, 6).astype(dtype)


def convert(producer, base):
    """The library's own array, or None where it has none of this dtype."""
    if producer == "buffer":
        return None  # it is made of views
    try:
        made = PRODUCERS[producer](base.copy())
    except (TypeError, ValueError, RuntimeError, ls.Error):
        return None
    if type(made).__module__.startswith("torch"):
        return made if made.element_size() == base.itemsize else None
    return made if producer == "own" or np.dtype(str(made.dtype).rpartition(".")[2]).itemsize == base.itemsize else None


def bits(a):
    if type(a).__module__.startswith("torch") and str(a.dtype) == "torch.bfloat16":
        a = a.view(__import__("torch").int16)
    if isinstance(a, ls.Buffer):
        p = Producer(a)
        return bytes((__import__("ctypes").c_char * a.nbytes).from_address(p.address)) if a.nbytes else b""
    a = np.asarray(a) if type(a).__module__.startswith(("jax", "numpy", "builtins")) else numpy_of(a)
    return np.ascontiguousarray(a).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_sources(producer, dtype):
    base, tried = base_of(dtype), 0
    given = convert(producer, base)
    views = {**VIEWS, **(BACKWARDS if producer in ("numpy", "buffer") else {})} if producer != "own" else {"whole": VIEWS["whole"]}
    for name, view in views.items():
        x = view(base)
        if producer == "buffer":
            try:
                y = memoryview(x)
            except (TypeError, ValueError, BufferError):  # no format
                continue
        elif given is None:
            continue
        else:
            y = view(given)
        tried += 1
        packed = np.array(x, order="C")
        axes = tuple(reversed(range(x.ndim)))
        assert bits(ls.permute(y, axes)) == np.ascontiguousarray(packed.T).tobytes(), name
        if dtype in COMPLEX:
            with pytest.raises(ls.UnsupportedDtype, match="complex"):
                ls.sum(y)
            continue
        if producer == "jax" and dtype in ("f8", "u8", "i8"):
            continue
        total = ls.sum(y)
        want = ls.sum(packed)
        assert float(total if not isinstance(total, ls.Buffer) else np.asarray(total)) == float(want), name
        if x.size:
            assert bits(ls.max(y)) == np.asarray(ls.max(packed)).tobytes(), name
    if producer == "numpy":
        assert tried == len(views)


@pytest.mark.parametrize("producer", [p for p in PRODUCERS if p != "jax"])
def test_results(producer):
    x = np.arange(24.0).reshape(4, 6)
    for name, view in VIEWS.items():
        base = np.full((4, 6), -1.0)
        source = np.array(view(x), order="C")
        to = convert(producer, base)
        if producer == "own" and name != "whole":
            continue
        if producer in ("numpy", "buffer") and not isinstance(view(base), np.ndarray):
            continue  # a number that is no place
        if producer == "array_api_strict" and name == "one element":
            continue  # a copy
        y = memoryview(view(base)) if producer == "buffer" else view(to)
        ls.permute(np.array(source.T, order="C"), tuple(reversed(range(source.ndim))), out=y)
        want = np.full((4, 6), -1.0)
        if isinstance(view(want), np.ndarray):
            view(want)[...] = view(x)
        else:
            want[1, 2] = x[1, 2]
        assert bits(base if producer == "buffer" else to) == want.tobytes(), name


def test_results_that_cannot_be_written():
    x, base = np.arange(6.0), np.zeros((4, 6))
    for out in (base[::-1, 0][:0], base[:, :4]):
        with pytest.raises(ls.InvalidArgument, match="shape"):
            ls.permute(x, (0,), out=out)
    frozen = np.zeros(6)
    frozen.flags.writeable = False
    for out, text in ((frozen, "read-only"), (np.broadcast_to(np.zeros(1), 6), "read-only"), (np.zeros(12)[::-2], "strides"),
                      (np.zeros(6, ">f8"), "byte-swapped"), (np.zeros(49, "u1")[1:].view("f8"), "aligned")):
        with pytest.raises(ls.InvalidArgument, match=text):
            ls.permute(x, (0,), out=out)


def test_sources_that_lie_badly():
    odd = np.zeros(49, "u1")[1:].view("f8")
    odd[:] = np.arange(6)
    assert ls.sum(odd) == 15 and ls.permute(odd, (0,)).tolist() == list(range(6))
    record = np.zeros(5, [("a", "u1"), ("b", "f8")])
    record["b"] = np.arange(5)
    assert ls.sum(record["b"]) == 10 and ls.max(record["b"]) == 4  # nine bytes apart
    swapped = np.arange(6.0).astype(">f8")
    assert ls.permute(swapped, (0,)).tolist() == list(range(6))
    frozen = np.arange(6.0).reshape(2, 3)
    frozen.flags.writeable = False
    assert ls.sum(frozen) == 15 and ls.transpose(frozen).tolist() == [[0, 3], [1, 4], [2, 5]] and ls.sum(memoryview(bytes(3))) == 0
    two_bytes = np.zeros(4, "V2")  # as ml_dtypes' bfloat16 describes itself, by its size alone
    assert ls.permute(two_bytes, (0,)).dtype == "V2"
    for call in (ls.sum, ls.max, ls.cumsum, ls.rms_norm):
        with pytest.raises(ls.UnsupportedDtype, match="2 bytes"):
            call(two_bytes)
    for call in (ls.sum, ls.cumsum, ls.rms_norm, lambda x: ls.stencil(x, [1, 2, 1])):
        with pytest.raises(ls.UnsupportedDtype, match="byte-swapped"):
            call(swapped)


def test_no_copy_where_none_is_wanted():
    x = np.arange(120.0).reshape(4, 5, 6)
    odd = np.zeros(49, "u1")[1:].view("f8")
    for call in (lambda **k: ls.sum(x.T, axis=1, **k), lambda **k: ls.permute(x[:, ::2], (2, 0, 1), **k), lambda **k: ls.norm(x, axis=(0, 2), **k),
                 lambda **k: ls.cumsum(x, axis=-1, **k), lambda **k: ls.rms_norm(x[1:], **k), lambda **k: ls.rms_norm(x, 0, **k), lambda **k: ls.correlate1d(x, [1, 2, 1], **k),
                 lambda **k: ls.std(x, **k), lambda **k: ls.sum(x.astype("u1"), 0, **k)):
        want = call()
        for copy in (False, True, None):
            assert np.array_equal(call(copy=copy), want)
    for call in (lambda **k: ls.sum(x[::-1], **k), lambda **k: ls.matrix_transpose(np.broadcast_to(x[0], (2, 5, 6)), **k), lambda **k: ls.max(odd, **k),
                 lambda **k: ls.l1_norm(x, 1, **k), lambda **k: ls.vdot(x, x[:, ::-1], **k),
                 lambda **k: ls.rms_norm(x, residual=x[::-1], **k), lambda **k: ls.cumsum(x, axis=1, **k), lambda **k: ls.cumsum(np.ones(3, "i1"), **k),
                 lambda **k: ls.stencil(x.T, [1, 2, 1], axes=-1, **k), lambda **k: ls.shuffle(np.arange(256.0).reshape(8, 32)[:, ::2], "up", 1, **k), lambda **k: ls.mean(x, 1, **k),
                 lambda **k: ls.correlate1d(x, [1, 2, 1], 0, **k)):
        call()
        with pytest.raises(BufferError, match="copy is False"):
            call(copy=False)


def test_what_consumers_may_ask_of_a_buffer():
    b = ls.empty((2, 3), "int16")
    assert b.__dlpack_device__() == (1, 0)
    for keywords in ({}, {"max_version": (1, 0)}, {"max_version": (0, 8)}, {"dl_device": (1, 0)}, {"copy": False}, {"stream": None}):
        capsule = b.__dlpack__(**keywords)
        assert ("versioned" in repr(capsule)) == (keywords.get("max_version", (0,))[0] >= 1)
    for wrong in ({"dl_device": (2, 0)}, {"copy": True}):
        with pytest.raises(BufferError):
            b.__dlpack__(**wrong)
    for wrong in ({"dl_device": "cpu"}, {"max_version": 1}, {"nonesuch": 1}):
        with pytest.raises(TypeError):
            b.__dlpack__(**wrong)
    x = np.from_dlpack(b)  # which some releases of NumPy make read-only
    np.asarray(b)[:] = 7
    assert (x == 7).all()
    assert ls.sum(b, axis=0).shape == (3,) and np.asarray(ls.sum(b)) == 42


def test_old_and_stubborn_producers():
    x = np.arange(6.0).reshape(2, 3)
    for versioned, keywords, strides in itertools.product((True, False), (True, False), (True, False)):
        p = Producer(x, versioned=versioned, keywords=keywords, strides=strides)
        assert bits(ls.transpose(p)) == np.ascontiguousarray(x.T).tobytes() and p.deleted == 1

    class Failing:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            raise ZeroDivisionError("of its own")

    with pytest.raises(ZeroDivisionError, match="of its own"):
        ls.sum(Failing())
    for lie in (None, 3, "capsule", (1, 2, 3)):
        Failing.__dlpack__ = lambda self, lie=lie, **_: lie
        with pytest.raises((TypeError, ValueError, ls.Error)):
            ls.sum(Failing())


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch")
@pytest.mark.parametrize("order", ["torch, lockstep", "lockstep, torch"])
def test_one_openmp_runtime(order):
    code = textwrap.dedent(f"""
        import {order}
        import numpy, torch, lockstep
        lockstep.sum(numpy.ones(1_000_000)), torch.ones(1_000_000).sum()
        with open("/proc/self/maps") as maps:
            print(len({{line.split()[-1] for line in maps if "libgomp" in line}}))
        """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() in ("0", "1"), done.stdout + done.stderr
