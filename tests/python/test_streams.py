"""On what stream a call on device data comes to a backend, and whether it waits: told by a module that plays a GPU
(streams_module.c), so that no race is needed to see it."""
import ctypes
import os
import pathlib

import numpy as np
import pytest

MODULE = pathlib.Path(os.environ.get("LOCKSTEP_TEST_STREAMS", "none"))
if not MODULE.exists():
    pytest.skip("no module that plays a GPU; run it by meson", allow_module_level=True)
os.environ["LOCKSTEP_BACKEND_PATH"] = str(MODULE.parent)  # before the library looks for modules

import lockstep as ls
from test_exchange import Tensor, api

LEGACY = 1
told = ctypes.CDLL(str(MODULE))


def last(name, kind=ctypes.c_int):
    return kind.in_dll(told, name).value


class Table(ctypes.Structure):
    """DLPack's functions for exchange, of which these take and give a borrowed tensor, and the current stream."""
    FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
    STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
                ("import_owned", ctypes.c_void_p), ("export_owned", ctypes.c_void_p), ("import_borrowed", FUNCTION), ("current_stream", STREAM)]


class Device:
    """An array of a library whose current stream is what it says."""
    current = 0
    ordered = []  # the streams that were made to wait for it

    def __init__(self, *shape):
        self.memory = ls.empty(shape, "float32", kind="device")
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        interface = self.memory.__cuda_array_interface__
        self.tensor = Tensor(data=interface["data"][0], rank=len(shape), shape=self.shape)
        self.tensor.device.type, self.tensor.dtype.code, self.tensor.dtype.bits, self.tensor.dtype.lanes = 2, 2, 32, 1

    def __array_namespace__(self):
        return np

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream, max_version):
        self.ordered.append(stream)
        return self.memory.__dlpack__(max_version=max_version)


class Other(Device):
    """Of a library that hands out no table, and works on the default stream."""
    __dlpack_c_exchange_api__ = None


@Table.FUNCTION
def lend(array, to):
    ctypes.memmove(to, ctypes.addressof(array.tensor), ctypes.sizeof(Tensor))
    return 0


@Table.STREAM
def current(device_type, device, to):
    to[0] = Device.current
    return 0


table = Table(1, 3, None, None, None, None, lend, current)
NAME = b"dlpack_exchange_api"  # a capsule keeps the address
Device.__dlpack_c_exchange_api__ = api.PyCapsule_New(ctypes.addressof(table), NAME, None)


class Interface:
    """An array by the CUDA array interface, with a stream that it may name."""
    def __init__(self, memory, stream):
        self.__cuda_array_interface__ = {**memory.__cuda_array_interface__, "stream": stream}


@pytest.fixture
def arrays():
    return Device(3, 4), Device(4, 3)


def test_the_module_is_there(arrays):
    assert [b.usable for b in ls.backends() if b.name == "cuda"] == [True]
    launches = last("told_launches")
    ls.transpose(arrays[0], out=arrays[1])
    assert last("told_launches") == launches + 1 and ls.last_run().backend == "cuda"


@pytest.mark.parametrize("stream", [0, 0x5000, 2, 0x5000, 0x6000])
def test_calls_come_on_the_current_stream_and_wait_for_nothing(arrays, stream):
    Device.current = stream
    plan = ls.plan.transpose(arrays[0])
    for call in (lambda: ls.transpose(arrays[0], out=arrays[1]), lambda: plan(arrays[0], out=arrays[1])):
        waits = last("told_waits")
        call()
        # Handle 0 is the legacy default stream; NULL would be one of lockstep's own, which waits for nobody.
        assert (last("told_stream", ctypes.c_void_p) or 0) == (stream or LEGACY)
        assert last("told_waits") == waits


def test_a_plan_does_not_ask_where_device_arrays_lie(arrays):
    Device.current = 0
    plan, looks = ls.plan.transpose(arrays[0]), []
    for call in (lambda: ls.transpose(arrays[0], out=arrays[1]), lambda: plan(arrays[0], out=arrays[1]),
                 lambda: plan(Interface(arrays[0].memory, 1), out=arrays[1])):  # of which the device is not known
        before = last("told_looks")
        call()
        looks.append(last("told_looks") - before)
    assert looks == [2, 0, 2]


@pytest.mark.parametrize("stream", [0, 0x5000])
def test_groups_come_on_the_current_stream_and_wait_for_nothing(stream):
    Device.current = stream
    arrays, outs = [Device(3, 4), Device(5, 6), Device(1, 7)], [Device(4, 3), Device(6, 5), Device(7, 1)]
    plan = ls.group.plan("transpose", arrays, out=outs)
    for call in (lambda: ls.group.transpose(arrays, out=outs), plan):
        waits, launches = last("told_waits"), last("told_launches")
        assert all(a is b for a, b in zip(call(), outs, strict=True))
        assert last("told_launches") == launches + 3 and last("told_waits") == waits
        assert (last("told_stream", ctypes.c_void_p) or 0) == (stream or LEGACY)
    for call in (lambda: ls.group.transpose(arrays, out=outs, check=True), lambda: ls.group.transpose(arrays, out=outs, stream=0x9000),
                 lambda: plan(check=True), lambda: plan(stream=0x9000)):
        waits = last("told_waits")
        call()
        assert last("told_waits") > waits
    Device.current = 0xA000  # the plan comes on the stream of the moment
    plan()
    assert last("told_stream", ctypes.c_void_p) == 0xA000
    with pytest.raises(ls.InvalidArgument, match=r"^arrays\[1\]: it lives on the host, arrays\[0\] on a CUDA device"):
        ls.group.transpose([arrays[0], np.ones((3, 4), "f4")], out=[outs[0], None])
    with pytest.raises(ls.InvalidArgument, match=r"^arrays\[1\]: it lives on a CUDA device, arrays\[0\] on the host"):
        ls.group.transpose([np.ones((3, 4), "f4"), arrays[0]])


def test_groups_of_two_libraries_are_ordered(arrays):
    Device.current = 0x5000
    other, out = Interface(ls.empty((3, 4), "float32", kind="device"), 0x5000), Device(4, 3)
    Device.ordered.clear()
    theirs = Other(3, 4)
    ls.group.transpose([arrays[0], theirs], out=[arrays[1], out])
    assert Device.ordered == [0x5000]  # it waits for what the call's stream has to see
    with pytest.raises(ls.Unsupported, match=r"^arrays\[1\]: it belongs to another library"):
        ls.group.plan("transpose", [arrays[0], other], out=[arrays[1], out])


def test_a_stream_of_the_callers_choice_comes_first_and_waits(arrays):
    Device.current = 0x5000
    waits = last("told_waits")
    ls.transpose(arrays[0], out=arrays[1], stream=0x7000)
    assert last("told_stream", ctypes.c_void_p) == 0x7000 and last("told_waits") == waits + 1
    ls.transpose(arrays[0], out=arrays[1], stream=0)
    assert last("told_stream", ctypes.c_void_p) == LEGACY
    waits = last("told_waits")
    ls.transpose(arrays[0], out=arrays[1], check=True)
    assert last("told_stream", ctypes.c_void_p) == 0x5000 and last("told_waits") > waits


def test_every_kind_of_stream(arrays):
    import types
    for stream in (0x7000, np.int64(0x7000), types.SimpleNamespace(__cuda_stream__=lambda: (0, 0x7000)), types.SimpleNamespace(cuda_stream=0x7000),
                   types.SimpleNamespace(ptr=0x7000), types.SimpleNamespace(handle=0x7000)):
        ls.transpose(arrays[0], out=arrays[1], stream=stream)
        assert last("told_stream", ctypes.c_void_p) == 0x7000
    ls.transpose(arrays[0], out=arrays[1], stream=types.SimpleNamespace(__cuda_stream__=lambda: (0, 0)))
    assert last("told_stream", ctypes.c_void_p) == LEGACY
    for wrong, text in ((-1, "stream is -1"), ("fast", "stream is a str"), ("7", "stream is a str"), (1.5, "stream is a float")):
        with pytest.raises(ls.InvalidArgument, match=text):
            ls.transpose(arrays[0], out=arrays[1], stream=wrong)


def test_a_named_stream_waits_for_the_current_one(arrays):
    """What a library has queued for an array, and its own packed copy of it, come before a call on another stream."""
    Device.current = 0x5000
    for call, count in ((lambda: ls.transpose(arrays[0], out=arrays[1], stream=0x7000), 2), (lambda: ls.plan.transpose(arrays[0])(arrays[0], out=arrays[1], stream=0x7000), 2),
                        (lambda: ls.dot(Device(3, 4), Device(4), axis=1, out=Device(3), stream=0x7000), 3)):
        Device.ordered.clear()
        call()
        assert Device.ordered == [0x7000] * count and last("told_stream", ctypes.c_void_p) == 0x7000
    Device.ordered.clear()
    for stream in (None, 0x5000):
        ls.transpose(arrays[0], out=arrays[1], stream=stream)
    assert Device.ordered == []  # it is the current one


def test_libraries_on_streams_of_their_own_are_ordered(arrays, monkeypatch):
    """The call comes on x's stream, which waits for the other arrays'; the host waits, since their libraries would not."""
    Device.current = 0x5000
    for other in (lambda *shape: Other(*shape), lambda *shape: Interface(ls.empty(shape, "float32", kind="device"), 0x9000)):
        for call in (lambda: ls.transpose(arrays[0], out=other(4, 3)), lambda: ls.dot(Device(3, 4), other(4), axis=1, out=Device(3)),
                     lambda: ls.plan.transpose(arrays[0])(arrays[0], out=other(4, 3))):
            Device.ordered.clear()
            waited = []
            monkeypatch.setattr(ls._kinds, "wait_for_stream", waited.append)
            waits = last("told_waits")
            call()
            assert Device.ordered + waited in ([0x5000], [0x9000]) and last("told_stream", ctypes.c_void_p) == 0x5000
            assert last("told_waits") == waits + 1


def test_nobody_can_wait_for_a_buffer(arrays):
    """It has no stream: a call that writes one has ended, since who takes it afterwards looks at no stream."""
    Device.current = 0x5000
    waits = last("told_waits")
    ls.transpose(arrays[0], out=ls.empty((4, 3), "float32", kind="device"))
    assert last("told_waits") == waits + 1
    ls.mean(ls.empty((3, 4), "float32", kind="device"), 1, out=ls.empty(3, "float32", kind="device"))
    assert last("told_waits") >= waits + 2


@pytest.mark.parametrize("stream,want", [(None, LEGACY), (1, 1), (0x8000, 0x8000)])
def test_the_stream_of_a_cuda_array_interface(arrays, stream, want):
    ls.transpose(Interface(arrays[0].memory, stream), out=Interface(arrays[1].memory, stream))
    assert last("told_stream", ctypes.c_void_p) == want


def test_a_type_without_a_kernel_on_the_device_is_copied_by_its_library():
    # A Buffer has no library that copies, and says so; other types are refused as they are.
    with pytest.raises(ls.UnsupportedDtype, match="copied to int32 first"):
        ls.sum(ls.empty(8, "uint8", kind="device"))
    for call in (lambda: ls.sum(ls.empty(8, "float32", kind="device")), lambda: ls.sum(ls.empty(8, "uint8", kind="device"), variant="told")):
        with pytest.raises((ls.Unsupported, ls.NoVariant)):
            call()


def test_weights_live_where_the_rows_do():
    x = ls.empty((4, 8), "float32", kind="device")
    for name in ("weight", "bias"):
        with pytest.raises(ls.InvalidArgument, match=f"{name} lives on the host, x on a CUDA device"):
            ls.rms_norm(x, **{name: np.ones(8, "f4")})
    with pytest.raises(ls.InvalidArgument, match="residual lives on a CUDA device"):
        ls.rms_norm(np.ones((4, 8), "f4"), residual=x)


@pytest.mark.parametrize("stream", [0, 0x5000])
def test_sums_come_on_the_current_stream(stream):
    Device.current = stream
    x, y, out = Device(3, 4), Device(4), Device(3)
    launches, waits = last("told_launches"), last("told_waits")
    ls.dot(x, y, axis=1, out=out)
    assert last("told_launches") == launches + 1 and last("told_waits") == waits
    assert (last("told_stream", ctypes.c_void_p) or 0) == (stream or LEGACY)
    with pytest.raises(ls.InvalidArgument, match="y lives on the host, x on a CUDA device"):
        ls.dot(x, np.ones(4, "f4"), axis=1, out=out)
    with pytest.raises(ls.Unsupported, match="library takes no roots"):
        ls.std(ls.empty(4, "float32", kind="device"))
    with pytest.raises(ls.UnsupportedDtype, match="comes as float64 or float32"):
        ls.std(x, dtype="float16")


def test_pairs_are_taken_apart_on_the_device():
    x = ls.empty((3, 4), "float32", kind="device")
    for call, more in ((lambda: ls.mean(x, 1), 1), (lambda: ls.var(x), 1), (lambda: ls.mean_var(x, 0), 1)):
        launches = last("told_launches")
        with ls.record() as runs:
            call()
        assert [run.op for run in runs] == ["sums", *["permute"] * more] and last("told_launches") == launches + 1 + more
        assert all(run.backend == "cuda" for run in runs)


def test_axes_of_a_device_without_the_kernel_go_by_a_copy():
    launches = last("told_launches")
    with ls.record() as runs:
        ls.norm(ls.empty((2, 3, 4), "float32", kind="device"), axis=1)
    assert last("told_launches") == launches + 2 and [run.op for run in runs] == ["square_sum"]
