"""Arrays of every library that is there: the same bits, the same kind out, and no wrong value in silence."""
import ctypes
import gc
import importlib.util
import os
import weakref

import numpy as np
import pytest

import lockstep as ls

if np.lib.NumpyVersion(np.__version__) < "2.1.0":
    pytest.skip("a NumPy from before versioned capsules", allow_module_level=True)
os.environ.setdefault("JAX_PLATFORMS", "cpu")
RNG = np.random.default_rng(7)


def present(name):
    return importlib.util.find_spec(name) is not None


def numpy_of(a):
    if type(a).__module__.startswith("torch"):
        return a.detach().numpy()
    return np.from_dlpack(a) if type(a).__module__.startswith("array_api") else np.asarray(a)


PRODUCERS = {"numpy": lambda x: x, "buffer": lambda x: memoryview(x) if x.dtype.name != "bfloat16" else pytest.skip("no format"),
             "own": None}
if present("array_api_strict"):
    import array_api_strict
    PRODUCERS["array_api_strict"] = lambda x: array_api_strict.asarray(x)
if present("jax"):
    PRODUCERS["jax"] = lambda x: __import__("jax").numpy.asarray(x)
if present("torch"):
    def to_torch(x):
        import torch
        if x.dtype.name == "bfloat16":
            return torch.from_numpy(x.view("i2")).view(torch.bfloat16)
        return torch.from_numpy(x.copy())
    PRODUCERS["torch"] = to_torch


def to_own(x):
    b = ls.empty(x.shape, x.dtype.name)
    # By address, since a buffer of bfloat16 has no format.
    target = Producer(b)
    ctypes.memmove(target.address, np.ascontiguousarray(x).ctypes.data, x.nbytes)
    return b


PRODUCERS["own"] = to_own


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("rank", ctypes.c_int32), ("dtype", Type),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Producer:
    """A producer by hand, which can say what no library says; the deleter's calls are counted."""

    def __init__(self, like, versioned=True, keywords=True, byte_offset=0, strides=True, flags=0, device=1, lanes=1, bits=None, major=1,
                 data=True):
        capsule = like.__dlpack__(max_version=(1, 0)) if isinstance(like, np.ndarray) else like.__dlpack__(max_version=(1, 0))
        self.like, self.capsule, self.keywords, self.deleted, self.device = like, capsule, keywords, 0, device
        inner = Versioned.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor_versioned"))
        self.address = inner.tensor.data + inner.tensor.byte_offset
        self.deleter = DELETER(self.count)
        self.versioned = versioned
        self.object = (Versioned if versioned else Managed)()
        t = self.object.tensor
        ctypes.memmove(ctypes.addressof(t), ctypes.addressof(inner.tensor), ctypes.sizeof(Tensor))
        t.data = self.address - byte_offset if data else None
        t.byte_offset, t.device.type, t.dtype.lanes = byte_offset, device, lanes
        if bits:
            t.dtype.bits = bits
        if not strides:
            t.strides = ctypes.POINTER(ctypes.c_int64)()
        if versioned:
            self.object.major, self.object.minor, self.object.flags = major, 0, flags
            self.object.deleter = ctypes.cast(self.deleter, ctypes.c_void_p).value
        else:
            self.object.deleter = self.deleter

    def count(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **keywords):
        if keywords and not self.keywords:
            raise TypeError("no keywords")
        return api.PyCapsule_New(ctypes.addressof(self.object), b"dltensor_versioned" if self.versioned else b"dltensor", None)

    def __array_namespace__(self):
        return np


def dtypes():
    names = ["float16", "float32", "float64", "int32", "int64"]
    return [*names, "bfloat16"] if present("ml_dtypes") else names


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("dtype", dtypes())
def test_the_same_bits_and_the_same_kind(producer, dtype):
    if dtype == "bfloat16":
        import ml_dtypes  # noqa: F401
    if producer == "jax" and dtype.endswith("64"):
        pytest.skip("JAX without 64-bit types")
    if producer == "array_api_strict" and dtype in ("float16", "bfloat16"):
        pytest.skip("not of the standard")
    x = (RNG.standard_normal((6, 7)) * 5).astype(np.dtype(dtype))
    given = PRODUCERS[producer](x)
    for name, keywords in (("sum", {}), ("sum", {"axis": 0}), ("norm", {"axis": 1}), ("max", {"axis": 1}), ("argmin", {}), ("transpose", {}),
                           ("square_sum", {"axis": (0, 1), "keepdims": True}), ("permute", {"axes": (1, 0)})):
        if producer == "jax" and name == "norm" and dtype == "int32":
            continue  # float64, which it does not have
        want, got = getattr(ls, name)(x, **keywords), getattr(ls, name)(given, **keywords)
        by_numpy = producer in ("numpy", "buffer")
        assert type(got) is type(given) or by_numpy and isinstance(got, (np.ndarray, np.generic))
        assert tuple(got.shape) == np.shape(want)
        if dtype == "bfloat16" and name in ("max", "transpose", "permute"):
            if producer == "torch":
                assert got.view(__import__("torch").int16).numpy().tobytes() == want.tobytes()
            elif producer == "own":
                assert ctypes.string_at(Producer(got).address, want.nbytes) == want.tobytes()
            else:
                assert np.asarray(got).tobytes() == want.tobytes()
            continue
        here = numpy_of(got)
        if producer == "jax" and here.dtype == np.int32 and want.dtype == np.int64:
            here = here.astype("i8")
        assert here.dtype == want.dtype and here.tobytes() == want.tobytes()


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("keywords", [True, False])
def test_capsules_of_every_age_are_given_back_once(versioned, keywords):
    x = RNG.standard_normal((3, 4))
    p = Producer(x, versioned=versioned, keywords=keywords)
    for n in range(1, 4):
        assert float(numpy_of(ls.sum(p))) == ls.sum(x)
        assert p.deleted == n
    with pytest.raises(ls.InvalidArgument):
        ls.sum(p, axis=7)
    assert p.deleted == 4
    p = Producer(x, versioned=versioned, keywords=keywords)
    x[0, 0] = 5
    assert float(numpy_of(ls.max(p))) == x.max()
    out = np.zeros((4, 3))
    ls.transpose(p, out=Producer(out, versioned=versioned))
    assert out.tobytes() == x.T.tobytes()


class Bare:
    """DLPack's two methods and nothing else."""

    def __init__(self, x):
        self.x = x

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, **keywords):
        return self.x.__dlpack__(**keywords)


def test_producers_of_no_library():
    x = RNG.standard_normal((3, 4, 5))
    small = np.arange(-6, 6, dtype="i1").reshape(3, 4)
    for call in (lambda g: ls.sum(g(x)), lambda g: ls.max(g(x), 1), lambda g: ls.permute(g(x), (2, 0, 1)), lambda g: ls.sum(g(x[::-1]), 0),
                 lambda g: ls.cumsum(g(small), 1), lambda g: ls.cummax(g(small), 1), lambda g: ls.rms_norm(g(x), 1),
                 lambda g: ls.correlate1d(g(x), [1, 2, 3], 0), lambda g: ls.group.norm([g(x)])[0]):
        got, want = call(Bare), call(lambda x: x)
        assert isinstance(got, np.ndarray | np.generic) and got.dtype == want.dtype and got.tobytes() == want.tobytes()
    with pytest.raises(TypeError, match="x is a set, which is not an array"):
        ls.correlate1d({1.0, 2.0}, [1, 2, 3])


def test_byte_offsets_and_missing_strides():
    x = RNG.standard_normal((3, 4))
    assert np.asarray(numpy_of(ls.transpose(Producer(x, byte_offset=64)))).tobytes() == x.T.tobytes()
    assert np.asarray(numpy_of(ls.transpose(Producer(x, strides=False)))).tobytes() == x.T.tobytes()
    assert np.asarray(numpy_of(ls.transpose(Producer(x[:, ::2])))).tobytes() == x[:, ::2].T.tobytes()


def test_what_a_capsule_may_not_be():
    x = RNG.standard_normal((3, 4))
    for keywords, error, text in (({"device": 10}, ls.InvalidArgument, "type 10"), ({"lanes": 4}, ls.UnsupportedDtype, "4|lane"),
                                  ({"bits": 4}, ls.UnsupportedDtype, "bits"), ({"major": 2}, ls.Unsupported, "DLPack 2"),
                                  ({"data": False}, ls.InvalidArgument, "no memory")):
        p = Producer(x, **keywords)
        with pytest.raises(error, match=text):
            ls.sum(p)
        assert p.deleted == (0 if "major" in keywords else 1), keywords
    with pytest.raises(ls.InvalidArgument, match="out is read-only"):
        ls.transpose(x, out=Producer(np.zeros((4, 3)), flags=1))
    assert float(numpy_of(ls.sum(Producer(x, flags=1)))) == ls.sum(x)


def test_a_buffer_outlives_its_name():
    import array
    b = ls.empty(1000, "float64")
    x = np.from_dlpack(b)  # which some releases of NumPy make read-only, whatever comes
    y = np.asarray(b)
    y[:] = 1
    gone = weakref.ref(y)
    del b, y
    gc.collect()
    assert gone() is None and x.sum() == 1000
    assert ls.sum(array.array("i", range(10))) == 45
    capsule = ls.empty(3).__dlpack__()
    del capsule  # not taken: its memory goes with it


def test_out_of_other_libraries():
    x = RNG.standard_normal((3, 4))
    out = bytearray(3 * 8)
    ls.sum(x, axis=1, out=memoryview(out).cast("d"))
    assert bytes(out) == ls.sum(x, axis=1).tobytes()
    with pytest.raises(ls.InvalidArgument, match="read-only"):
        ls.sum(x, axis=1, out=memoryview(bytes(24)).cast("d"))


def test_device_data_where_no_gpu_is():
    if any(backend.name == "cuda" and backend.usable for backend in ls.backends()):
        pytest.skip("there is a GPU")
    for device in (2, 13):
        with pytest.raises(ls.NoBackend, match="cuda|CUDA"):
            ls.sum(Producer(np.ones(3), device=device))
    with pytest.raises(ls.InvalidArgument, match="backend is cpu"):
        ls.sum(Producer(np.ones(3), device=2), backend="cpu")


@pytest.mark.parametrize("producer", PRODUCERS)
def test_a_packed_copy_on_the_way_changes_no_kind(producer):
    if producer == "buffer":
        return
    given = PRODUCERS[producer](RNG.standard_normal((3, 4, 5)).astype("f4"))
    assert type(ls.l1_norm(given, axis=1)) is type(given) and type(ls.max(given, axis=(0, 2))) is type(given)


@pytest.mark.skipif(not present("jax"), reason="no JAX")
def test_jax():
    import jax
    x = jax.numpy.arange(6.0).reshape(2, 3)
    with pytest.raises(ls.InvalidArgument, match="read-only"):
        ls.transpose(x, out=jax.numpy.zeros((3, 2)))
    with pytest.raises(ls.InvalidArgument, match="jit"):
        jax.jit(ls.sum)(x)
    with pytest.raises(ls.UnsupportedDtype, match="x64"):
        ls.sum(x, dtype="float64")
    gone = x + 1
    gone.delete()
    with pytest.raises(ls.InvalidArgument, match="x is .* deleted or donated"):
        ls.sum(gone)
    with pytest.raises(ls.UnsupportedDtype, match="x64"):
        ls.sum(jax.numpy.full(4, 2**30))
    assert ls.argmax(x).dtype == "int32" and int(ls.argmax(x)) == 5
    assert ls.sum(jax.numpy.ones((100, 100)) @ jax.numpy.ones((100, 100))) == 1e6  # waits for what is still computed


@pytest.mark.filterwarnings("ignore:.*torch.jit")  # PyTorch's own
@pytest.mark.skipif(not present("torch"), reason="no PyTorch")
def test_torch_views_that_memory_does_not_show():
    import torch
    z = torch.tensor([1 + 2j, 3 - 4j])
    for wrong in (z.conj().imag, z.conj()):
        with pytest.raises((ls.InvalidArgument, BufferError, RuntimeError), match="resolve|conj"):
            ls.permute(wrong, (0,))
        with pytest.raises((ls.InvalidArgument, BufferError, RuntimeError), match="resolve|conj"):
            ls.permute(wrong.clone(), (0,), out=wrong)
    assert ls.sum(z.conj().imag.resolve_neg()).item() == 2
    x = torch.ones(3, requires_grad=True)
    with pytest.raises((ls.InvalidArgument, BufferError), match="detach"):
        ls.sum(x)
    assert ls.sum(x.detach()).item() == 3
    with torch.no_grad():
        assert ls.sum(x).item() == 3
    for wrong in (torch.ones(3, device="meta"), torch.eye(3).to_sparse()):
        with pytest.raises(Exception):
            ls.sum(wrong)
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        fake = torch.ones(3)
    with pytest.raises(Exception):
        ls.sum(fake)
    # Wrappers of transforms, and tensors of other layouts: told what to do, not PyTorch's trace.
    for wrong in (lambda: torch.vmap(ls.sum)(torch.ones(3, 4)), lambda: torch.func.grad(ls.sum)(torch.ones(4)), lambda: ls.sum(torch.eye(3).to_sparse())):
        with pytest.raises((ls.InvalidArgument, BufferError, RuntimeError), match="lockstep.torch|DLPack|dlpack|detach"):
            wrong()
    import torch.autograd.forward_ad as forward
    with forward.dual_level():
        dual = forward.make_dual(torch.ones(3), torch.ones(3))
        with pytest.raises(ls.InvalidArgument, match="tangent"):
            ls.sum(dual)
        assert ls.sum(forward.unpack_dual(dual).primal) == 3 and ls.sum(torch.ones(3)) == 3
    flipped = torch.arange(6.0).reshape(2, 3).T
    assert ls.transpose(flipped).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert ls.sum(torch.ones(3).expand(4, 3), axis=0).tolist() == [4, 4, 4]
