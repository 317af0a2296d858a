"""What the extension asks of Python: which library an array belongs to, ways in for arrays that need one,
memory for results from that library, and copies where an operation cannot take a layout. One call a type or a
rare case; the numbers of the libraries are those of state.hpp."""
import functools
import importlib
import math
import operator
import re
import sys
from typing import Any

from ._errors import BackendFailed, InvalidArgument, NoBackend, Unsupported, UnsupportedDtype

NUMPY, TORCH, CUPY, NUMBA, JAX, ARRAY_API, BUFFER, OWN = range(8)
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
DLPACK_VERSION = (1, 3)
LEGACY_STREAM = 1  # CUDA's default stream; its handle 0 would mean one of lockstep's own
CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}


def classify(x: Any) -> Any:
    """(library, whether the type is the library's own, whether it is an ndarray of a known layout, DLPack's table or None)."""
    kind: Any = type(x)
    return _classify(kind)


@functools.lru_cache(maxsize=128)
def _classify(t: Any) -> Any:
    table = getattr(t, "__dlpack_c_exchange_api__", None)
    for base in t.__mro__:
        root = base.__module__.partition(".")[0]
        if base.__module__.startswith("numpy.ma"):
            raise InvalidArgument("a masked array is given, whose mask would be ignored; give its filled(value) or compressed()")
        if root == "numpy" and base.__name__ in ("ndarray", "generic"):
            return NUMPY, base is t, _known_layout() and base.__name__ == "ndarray", None
        if root == "torch" and base.__name__ == "Tensor":
            # A subclass may stand for another tensor; its own __dlpack__ knows.
            exact = t.__module__.partition(".")[0] == "torch" and t.__name__ in ("Tensor", "Parameter")
            return TORCH, exact, False, table if exact else None
        if root == "cupy" and base.__name__ == "ndarray":
            return CUPY, base is t, False, table
        if root == "numba" and hasattr(t, "__cuda_array_interface__"):
            return NUMBA, base is t, False, None
    root = t.__module__.partition(".")[0]
    if t.__module__ == "lockstep._core":
        return OWN, True, False, None
    if root in ("jax", "jaxlib"):
        if any(base.__name__ == "Tracer" for base in t.__mro__):
            raise InvalidArgument(f"a {t.__name__} of JAX is given, which has no values while it is traced; call lockstep outside jit")
        return JAX, True, False, table
    if hasattr(t, "__array_namespace__"):
        return ARRAY_API, True, False, table
    return BUFFER, True, False, table


def _known_layout() -> Any:
    # The structure of an ndarray is part of NumPy's binary interface, of which these versions are known.
    try:
        inner = importlib.import_module("numpy._core._multiarray_umath")
    except ImportError:
        inner = importlib.import_module("numpy.core._multiarray_umath")
    from ._core import numpy_functions
    return numpy_functions(inner._ARRAY_API)


def export(x: Any, name: Any, writable: Any, stream: Any) -> Any:
    """An array for which the extension has no direct way: (capsule, its library's stream, keeper, type and number of its device), or the
    ten fields of an interface: data, read only, code, swapped, bytes, shape, strides, device type, stream, keeper; or an array of NumPy
    for what NumPy makes one of.

    The stream given is the one that the call comes on, and is made to wait for what the library has queued; None: its library's.
    """
    if type(x).__module__.partition(".")[0] == "torch" or _library(x) == TORCH:
        check_torch(x, name)
    if _library(x) == NUMPY:
        return _numpy_without_buffer(x, name, writable)
    if _library(x) == JAX and getattr(x, "is_deleted", bool)():
        raise InvalidArgument(f"{name} is an array of JAX that was deleted or donated; give one that is alive")
    if hasattr(x, "__dlpack__"):
        try:
            return _dlpack(x, name, stream)
        except Exception:
            if writable or _library(x) != BUFFER or not hasattr(x, "__array__"):  # else as an array of PyArrow with gaps
                raise
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        return _cuda_interface(x, name, interface, stream)
    if writable and _has_buffer(x):
        raise InvalidArgument(f"{name} is read-only; give an array that may be written")
    return (_of_numpy(x, name, writable),)


def no_array(x: Any, name: Any) -> Any:
    return TypeError(f"{name} is a {_type_name(x)}, which is not an array: it has neither a buffer nor __dlpack__ nor __array_interface__ nor "
                     "__cuda_array_interface__ nor __array__; give an array, or a list of numbers")


def _type_name(x: Any) -> Any:
    return f"{type(x).__module__}.{type(x).__qualname__}".removeprefix("builtins.")


# ---- what NumPy makes an array of --------------------------------------------
def _of_numpy(x: Any, name: Any, writable: Any) -> Any:
    """NumPy's array of numbers, of lists of them, and of what describes itself by an interface or has __array__."""
    interface = getattr(x, "__array_interface__", None)
    plain = isinstance(x, (list, tuple, range, int, float, complex))
    if interface is None and not plain and not hasattr(x, "__array__"):
        raise no_array(x, name)
    import numpy
    if interface is not None:
        return _host_interface(x, name, interface)
    if writable:
        raise InvalidArgument(f"{name} is a {_type_name(x)}, whose memory cannot be written; give an array")
    if isinstance(x, (list, tuple)):
        _no_arrays_within(x, name)
    try:
        made = numpy.asanyarray(x)
    except (ValueError, TypeError, OverflowError) as e:
        raise InvalidArgument(f"{name} is a {_type_name(x)} that NumPy makes no array of ({e}); give numbers, in rows of one length") from e
    if isinstance(made, numpy.ma.MaskedArray):
        raise InvalidArgument(f"{name} comes as a masked array, whose mask would be ignored; give its filled(value) or compressed()")
    if made.dtype.hasobject or plain and made.dtype.kind not in "biufc":
        raise UnsupportedDtype(f"{name} is a {_type_name(x)} of {made.dtype if plain else 'Python objects'}, not of numbers; give "
                               f"{'numbers' if plain else 'it in a dtype of numbers, with no value missing'}")
    return numpy.asarray(made)


def _no_arrays_within(x: Any, name: Any) -> Any:
    for kind, one in {type(one): one for one in x}.items():
        number = any(b.__name__ == "generic" and b.__module__.partition(".")[0] == "numpy" for b in kind.__mro__)
        if number or kind in (int, float, bool, complex, list, tuple, range):
            continue
        if any(hasattr(kind, a) for a in ("shape", "__array__", "__dlpack__", "__array_interface__")) or _has_buffer(one):
            raise TypeError(f"{name} is a {type(x).__qualname__} of arrays; the functions of lockstep.group take one, and numpy.stack makes one array of it")


class _Described:
    """A description that has been judged, and what keeps its memory alive."""

    def __init__(self, interface: Any, keeper: Any) -> None:
        self.__array_interface__, self.keeper = interface, keeper


def _host_interface(x: Any, name: Any, interface: Any) -> Any:
    import numpy
    what = "an __array_interface__ with"
    _, _, size, shape, strides = _fields_of(name, interface, what, ("shape", "typestr"))
    try:
        dtype = numpy.dtype(interface["typestr"])
    except (TypeError, ValueError):
        raise _wrong(name, what + " typestr", interface["typestr"], "a dtype") from None
    if size == 0:
        raise UnsupportedDtype(f"{name} has elements of 0 bytes; give an array of numbers")
    if 0 in shape:
        return numpy.empty(shape, dtype)
    low = sum(min((n - 1) * step, 0) for n, step in zip(shape, strides))
    high = sum(max((n - 1) * step, 0) for n, step in zip(shape, strides)) + size
    data, keeper, begin, end = interface.get("data"), x, 1, 2**63
    if isinstance(data, tuple) and len(data) == 2 and all(isinstance(n, int) for n in data):
        address, read_only = data[0], bool(data[1])
    else:  # a buffer, else the object's own
        offset = interface.get("offset") or 0
        if not isinstance(offset, int) or offset < 0:
            raise _wrong(name, what + " offset", offset, "a number of bytes")
        try:
            view = memoryview(x if data is None else data)
            flat = numpy.frombuffer(view, "u1")
        except (TypeError, ValueError, BufferError) as e:
            raise _wrong(name, what + " data", data, "a tuple of an address and whether it is read-only, nor a buffer") from e
        keeper, read_only, begin, end = (x, flat), view.readonly, flat.ctypes.data, flat.ctypes.data + flat.nbytes
        address = begin + offset
    if address + low < begin or address + high > end:
        raise InvalidArgument(f"{name} describes itself with {what} elements outside its memory; its producer is wrong")
    try:
        return numpy.asarray(_Described({"shape": shape, "strides": strides, "typestr": dtype.str, "data": (address, read_only), "version": 3}, keeper))
    except (ValueError, TypeError) as e:
        raise InvalidArgument(f"{name} is a {_type_name(x)} that NumPy makes no array of ({e}); give one that it can hold") from e


def _library(x: Any) -> Any:
    return classify(x)[0]


library_of = _library


def name_of_type(x: Any) -> Any:
    """The dtype of an array, as "float32"."""
    return dtype_name(x.dtype)


def is_integer(name: Any) -> Any:
    return name in _INTEGERS


def _has_buffer(x: Any) -> Any:
    try:
        memoryview(x).release()
        return True
    except (TypeError, BufferError):
        return False


def _numpy_without_buffer(x: Any, name: Any, writable: Any) -> Any:
    # A buffer may be refused because it is read-only, or because the dtype has no format.
    import numpy
    scalar = isinstance(x, numpy.generic)
    x = numpy.asarray(x)  # a number's interface is that of an array which is gone by now, a subclass's what it says
    interface = x.__array_interface__
    address, read_only = interface["data"][0], interface["data"][1] or scalar
    if writable and read_only:
        raise InvalidArgument(f"{name} is read-only; give an array that may be written")
    if x.dtype.name != "bfloat16":  # its typestr says only that it has two bytes
        raise UnsupportedDtype(f"{name} is {x.dtype}, which has no meaning here; give a view of it as integers, {name}.view('i{x.dtype.itemsize}')")
    return address, read_only, CODES["bfloat"], False, 2, tuple(x.shape), tuple(x.strides), CPU, None, x


def _wrong(name: Any, field: Any, value: Any, wanted: Any) -> Any:
    return InvalidArgument(f"{name} describes itself with {field} {value!r}, which is not {wanted}; its producer is wrong")


def _whole_numbers(value: Any, name: Any, field: Any, low: Any) -> Any:
    """A tuple of the ints of a description, each of 64 bits."""
    wanted = f"a tuple of integers{' of 0 or more' if low == 0 else ''}"
    if not isinstance(value, (tuple, list)):
        raise _wrong(name, field, value, wanted)
    try:
        numbers = tuple(map(operator.index, value))
    except TypeError:
        raise _wrong(name, field, value, wanted) from None
    if any(not low <= n < 2**63 for n in numbers):
        raise _wrong(name, field, value, wanted)
    return numbers


def _dlpack(x: Any, name: Any, stream: Any) -> Any:
    where = x.__dlpack_device__() if hasattr(x, "__dlpack_device__") else None
    if not isinstance(where, tuple) or len(where) != 2:
        raise _wrong(name, "__dlpack_device__", where, "a tuple of two integers")
    try:
        device = tuple(map(int, where))  # enumerations among them
    except (TypeError, ValueError):
        device = (-1, -1)
    if not all(0 <= n < 2**31 for n in device):
        raise _wrong(name, "__dlpack_device__", where, "the type and the number of a device")
    if device[0] in (CUDA, CUDA_MANAGED):
        own = current_stream(x, device[1])
        keywords = {"stream": stream or own, "max_version": DLPACK_VERSION}
    else:
        keywords, own = {"max_version": DLPACK_VERSION}, None
    try:
        capsule = x.__dlpack__(**keywords)
    except TypeError:  # from before the keyword max_version
        del keywords["max_version"]
        capsule = x.__dlpack__(**keywords)
    return capsule, own, x, *device


def _fields_of(name: Any, interface: Any, what: Any, needed: Any) -> Any:
    """Code, byte order, bytes, shape and strides in bytes of an array interface."""
    missing = [key for key in needed if not isinstance(interface, dict) or interface.get(key) is None]
    if missing:
        raise InvalidArgument(f"{name} describes itself with {what}out {', '.join(missing)}; its producer is wrong")
    if interface.get("mask") is not None:
        raise InvalidArgument(f"{name} has a mask, which would be ignored; give an array without one")
    typestr = interface["typestr"]
    type_of = re.fullmatch(r"([<>|=])([a-zA-Z])([0-9]{1,9})", typestr) if isinstance(typestr, str) else None
    if not type_of:
        raise _wrong(name, what + " typestr", typestr, "a byte order, a letter and a number of bytes")
    order, kind, size = type_of[1], type_of[2], int(type_of[3]) * (4 if type_of[2] == "U" else 1)
    if kind == "O":
        raise UnsupportedDtype(f"{name} holds Python objects; give an array of numbers")
    codes = {"i": "int", "u": "uint", "f": "float", "c": "complex", "b": "bool"}
    code = CODES[codes[kind]] if kind in codes else 255
    shape = _whole_numbers(interface["shape"], name, what + " shape", 0)
    strides = interface.get("strides")
    if strides is None:
        strides, step = [], size
        for n in reversed(shape):
            strides.insert(0, step)
            step = min(step * n, 2**63 - 1)
    strides = _whole_numbers(strides, name, what + " strides", -2**63)
    if len(strides) != len(shape):
        raise _wrong(name, what + " strides", strides, f"one for each axis of {shape}")
    return code, order == ">" and size > 1, size, shape, strides


def _cuda_interface(x: Any, name: Any, interface: Any, stream: Any) -> Any:
    what = "a __cuda_array_interface__ with"
    code, swapped, size, shape, strides = _fields_of(name, interface, what, ("shape", "typestr", "data"))
    data = interface["data"]
    if not isinstance(data, (tuple, list)) or len(data) != 2 or not all(isinstance(n, int) for n in data) or not 0 <= data[0] < 2**63:
        raise _wrong(name, what + " data", data, "a tuple of an address and whether it is read-only")
    theirs = interface.get("stream")
    if theirs is not None and (not isinstance(theirs, int) or not 0 <= theirs < 2**63):
        raise _wrong(name, what + " stream", theirs, "the handle of a stream")
    if stream and theirs and stream != theirs:  # the interface orders no streams
        wait_for_stream(theirs)
    return (data[0], data[1], code, swapped, size, shape, strides, CUDA, theirs or LEGACY_STREAM, x)


def wait_for_stream(stream: Any) -> Any:
    """Until all that is queued on a CUDA stream is done, by the driver."""
    import ctypes
    status = ctypes.CDLL("libcuda.so.1").cuStreamSynchronize(ctypes.c_void_p(stream))
    if status:
        raise BackendFailed(f"waiting for the stream {stream:#x} of a CUDA array interface failed with the driver's error {status}")


def forward_mode() -> Any:
    """Names of PyTorch, of which _current_level is 0 or more where tensors may carry tangents."""
    return vars(importlib.import_module("torch.autograd.forward_ad"))


def refuse_torch(x: Any, name: Any, error: Any) -> Any:
    """What PyTorch does not hand out: wrappers of torch.func, fakes, sparse and nested tensors."""
    why = str(error).partition("\n")[0]
    raise InvalidArgument(f"{name} is a tensor of layout {x.layout} that PyTorch hands out no memory of ({why}); within torch.func, torch.vmap and "
                          f"torch.compile call the functions of lockstep.torch, others give as a plain tensor, as {name}.to_dense()") from error


def check_torch(x: Any, name: Any = "x") -> Any:
    """DLPack's table hands out what a tensor's flags say otherwise; those are refused here."""
    forward = forward_mode()
    if forward.get("_current_level", -1) >= 0 and forward["unpack_dual"](x).tangent is not None:
        raise InvalidArgument(f"{name} carries a tangent of forward mode, which would be silently cut off; give "
                              f"torch.autograd.forward_ad.unpack_dual({name}).primal")
    if x.requires_grad:
        import torch
        if torch.is_grad_enabled():
            raise InvalidArgument(f"{name} requires a gradient, which would be silently cut off; give {name}.detach(), or use lockstep.torch")
    if x.is_neg() or x.is_conj():
        raise InvalidArgument(f"{name} is a view that negates or conjugates what lies in memory; give {name}.resolve_neg() or {name}.resolve_conj()")


def current_stream(x: Any, device: Any) -> Any:
    """The stream that an array's library works on now."""
    library = _library(x)
    if library == TORCH:
        import torch
        return torch._C._cuda_getCurrentRawStream(device) or LEGACY_STREAM
    if library == CUPY:
        return sys.modules["cupy"].cuda.get_current_stream().ptr or LEGACY_STREAM
    return LEGACY_STREAM


def stream_handle(stream: Any) -> Any:
    """A caller's stream as an int that is never 0."""
    if hasattr(stream, "__cuda_stream__"):
        handle = stream.__cuda_stream__()[1]
    else:
        for name in ("cuda_stream", "ptr", "handle"):
            handle = getattr(stream, name, None)
            if handle is not None:
                break
        else:
            handle = stream
    try:
        if isinstance(handle, (float, str, bytes)):
            raise TypeError
        handle = int(handle)
    except (TypeError, ValueError):
        raise InvalidArgument(f"stream is a {type(stream).__qualname__}; give an int, a stream of torch or CuPy, or what has __cuda_stream__") from None
    if handle < 0:
        raise InvalidArgument(f"stream is {handle}; give the handle of a cudaStream_t")
    return handle or LEGACY_STREAM


def require_cuda() -> Any:
    """Raise NoBackend where device data has come and nothing here can compute on it."""
    from . import _core
    reasons = {name: reason for name, _, _, reason, usable, _ in _core.backends() if not usable}
    if "cuda" in reasons or not any(name == "cuda" for name, *_ in _core.backends()):
        raise NoBackend(f"x is in device memory, but the CUDA backend cannot run here: {reasons.get('cuda', 'its module is not installed')}; "
                        "copy x to the host")


def dtype_name(dtype: Any) -> Any:
    """float, "float32", numpy.float32, torch.float32 ... as a name."""
    plain = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}.get(dtype)
    if plain:
        return plain
    if isinstance(dtype, str):
        return _numpy_name(dtype)
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return name.rpartition(".")[2]


def _numpy_name(text: Any) -> Any:
    short = {"half": "float16", "single": "float32", "double": "float64", "float": "float64", "int": "int64", "i1": "int8", "i2": "int16", "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64", "?": "bool", "f2": "float16", "f4": "float32", "f8": "float64", "i4": "int32", "i8": "int64", "e": "float16", "f": "float32", "d": "float64"}
    return short.get(text.lstrip("<=|"), text)


def describe(x: Any) -> Any:
    """What a plan, a context or a Buffer is, for repr."""
    from . import _core
    if isinstance(x, _core.Buffer):
        kinds = {CPU: "host memory", CUDA: "cuda", CUDA_HOST: "pinned memory", CUDA_MANAGED: "managed memory"}
        return f"<lockstep.Buffer: {x.dtype}, shape {x.shape}, {kinds[x.__dlpack_device__()[0]]}>"
    if isinstance(x, _core.Context):
        return f"<lockstep.{type(x).__name__}: {'closed' if not x.handle else 'handle ' + hex(x.handle)}>"
    many = f" of {x.count} arrays" if isinstance(x, _core.GroupPlan) else ""
    return f"<lockstep.{type(x).__name__}: {x.op}{many} on {x.backend} by {x.variant or 'nothing'}, workspace {x.workspace_bytes} bytes>"


# ---- the log -----------------------------------------------------------------
def log_levels() -> Any:
    """The logger's memory of which levels are on: {10: False} where nobody wants to know. One without it is asked at each call."""
    known = getattr(importlib.import_module("logging").getLogger("lockstep"), "_cache", None)
    return known if isinstance(known, dict) else {}


def log_run(op: Any, function: Any) -> Any:
    """What this thread's last call did, for the logger "lockstep"."""
    from ._core import last_run
    from ._info import RunInfo
    logger = importlib.import_module("logging").getLogger("lockstep")
    if not logger.isEnabledFor(10):
        return
    run = RunInfo(*last_run(), op=op, function="" if function == op else function)
    op = op if function == op else f"{function}: {op}"
    logger.debug("%s on %s:%d by %s, order %d, workspace %d bytes, staged %d bytes%s", op, run.backend, run.device, run.variant or "nothing",
                 run.order, run.workspace_bytes, run.staged_bytes, f"; {run.why}" if run.why else "", extra={"run": run}, stacklevel=2)


# ---- results and copies ------------------------------------------------------
def as_numpy(x: Any) -> Any:
    """NumPy's view of an array of no library, by its buffer or by DLPack."""
    import numpy
    if not _has_buffer(x) and not hasattr(x, "__dlpack__"):
        return _of_numpy(x, "x", False)
    try:  # as a memoryview, since NumPy takes bytes for a text
        return numpy.asarray(memoryview(x)) if _has_buffer(x) else numpy.from_dlpack(x)
    except (RuntimeError, ValueError, TypeError, BufferError) as e:
        raise BufferError(f"a {type(x).__qualname__} is given that NumPy cannot read ({e}); give an array of NumPy") from e


def rank_of(x: Any) -> Any:
    return len(x.shape) if hasattr(x, "shape") else as_numpy(x).ndim


def empty(x: Any, shape: Any, name: Any) -> Any:
    """Memory for a result in the library and on the device of x; name None keeps x's dtype."""
    library = _library(x)
    if library in (NUMPY, BUFFER):
        import numpy
        if name is None:
            return numpy.empty(shape, x.dtype if library == NUMPY else as_numpy(x).dtype)
        return numpy.empty(shape, numpy_dtype(name))
    if library == TORCH:
        import torch
        return torch.empty(shape, dtype=x.dtype if name is None else getattr(torch, name), device=x.device)
    if library == CUPY:
        return sys.modules["cupy"].empty(shape, x.dtype if name is None else name)
    if library == NUMBA:
        return sys.modules["numba.cuda"].device_array(shape, x.dtype if name is None else name)
    return None  # written into a Buffer, which the library then takes


def scalar(value: Any, name: Any) -> Any:
    """A NumPy number from its bytes."""
    import numpy
    return numpy.frombuffer(value, numpy_dtype(name))[0]


def numpy_dtype(name: Any) -> Any:
    """A dtype of NumPy, to which ml_dtypes adds bfloat16."""
    import numpy
    if name != "bfloat16":
        return numpy.dtype(name)
    try:
        return numpy.dtype(importlib.import_module("ml_dtypes").bfloat16)
    except ImportError:
        raise UnsupportedDtype("the result is bfloat16, which NumPy has only with the package ml_dtypes; install it, or give another dtype") from None


def adopt(x: Any, result: Any) -> Any:
    """A Buffer as an array of x's library."""
    if _library(x) == JAX:
        jax = sys.modules["jax"]
        if result.dtype in ("int64", "uint64", "float64") and not jax.config.jax_enable_x64:
            return _adopt_narrow(jax, result)
        return jax.dlpack.from_dlpack(result)
    if _library(x) == OWN:
        return result
    return x.__array_namespace__().from_dlpack(result)


def _adopt_narrow(jax: Any, result: Any) -> Any:
    # JAX without 64-bit types has int32 for every integer: taken where all fit.
    if result.dtype == "int64" and result.__dlpack_device__()[0] == CPU:
        import numpy
        wide = numpy.asarray(result)
        narrow = wide.astype("int32")
        if (wide == narrow).all():
            return jax.numpy.asarray(narrow)
    raise UnsupportedDtype(f"the result is {result.dtype}, which JAX would cut to 32 bits; switch jax_enable_x64 on")


def packed(x: Any, name: Any) -> Any:
    """A copy in C order by the array's own library."""
    library = _library(x)
    if library == TORCH:
        return x.clone(memory_format=sys.modules["torch"].contiguous_format)
    if library == CUPY:
        return sys.modules["cupy"].array(x, copy=True, order="C")
    if library in (NUMPY, BUFFER, OWN):
        import numpy
        return numpy.array(x if library == NUMPY else as_numpy(x), copy=True, order="C")
    if library == JAX:
        return sys.modules["jax"].numpy.array(x, copy=True)
    if library == ARRAY_API:
        return x.__array_namespace__().asarray(x, copy=True)
    raise BufferError(f"{name} has strides that lockstep does not take, and no library to make a packed copy; make one")


def space_of(x: Any) -> Any:
    """The namespace that x's library computes in, and x as an array of it."""
    library = _library(x)
    if library in (NUMPY, BUFFER, OWN):
        try:
            return importlib.import_module("numpy"), x if library == NUMPY else as_numpy(x)
        except BufferError:
            pass  # memory of a device
    if library in (TORCH, CUPY):
        return sys.modules["torch" if library == TORCH else "cupy"], x
    if library == JAX:
        return sys.modules["jax"].numpy, x
    if library == ARRAY_API:
        return x.__array_namespace__(), x
    raise Unsupported(f"x is a {type(x).__module__}.{type(x).__qualname__}, whose library computes nothing here; give it to one that has, as torch.from_dlpack(x)")


WIDER = {"float16": "float32", "bfloat16": "float32", "int8": "int32", "int16": "int32", "uint8": "int32", "uint16": "int32",
         "bool": "int32", "uint32": "int64"}


def widened(x: Any, name: Any, wide: Any) -> Any:
    """An exact copy in a wider type, by the array's own library."""
    library = _library(x)
    if library == TORCH:
        return x.to(getattr(sys.modules["torch"], wide))
    if library == ARRAY_API:
        namespace = x.__array_namespace__()
        return namespace.astype(x, getattr(namespace, wide))
    if library in (BUFFER, OWN):
        try:
            return as_numpy(x).astype(wide)
        except BufferError:  # memory of a device
            raise UnsupportedDtype(f"{name} must be copied to {wide} first; take it into a library that can, as torch.from_dlpack({name})") from None
    if hasattr(x, "astype"):
        return x.astype(wide)
    raise UnsupportedDtype(f"{name} must be copied to {wide} first, which its library has no function for")


_INTEGERS = {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}


def exact_quotients(space: Any, sums: Any, count: Any) -> Any:
    """Integers divided by how many they are of, rounded once; NaN where that is none."""
    import numpy
    if space.__name__ == "torch" and sums.is_cuda or space.__name__ not in ("torch", "numpy"):
        raise UnsupportedDtype("x holds integers, whose means are computed of arrays of NumPy and PyTorch on the host: give x as float64")
    sums, count = numpy.asarray(sums), numpy.broadcast_to(numpy.asarray(count), sums.shape)
    if sums.size and max(int(sums.max()), -int(sums.min())) > 2**53:  # Python rounds a quotient of long integers once
        mean = numpy.array([int(s) / int(n) if n else numpy.nan for s, n in zip(sums.ravel(), count.ravel())]).reshape(sums.shape)
    else:
        mean = numpy.where(count > 0, sums / numpy.maximum(count, 1), numpy.nan)
    return space.from_numpy(mean) if space.__name__ == "torch" else mean


def chosen_call(function: Any, x: Any, _: Any, keywords: Any) -> Any:
    """A reduction with a mask, or with a value that each result is joined with."""
    from . import _where
    return _where.reduce(function, x, dict(keywords))


def _moments_of_integers(function: Any, x: Any, keywords: Any) -> Any:
    """The mean is the exact sum by one division; variances are those of the numbers as float64."""
    from ._core import sum as total_of
    out = keywords.pop("out", None)
    dtype = dtype_name(keywords.pop("dtype", None) or "float64")
    if function.__name__ != "mean":
        return function(widened(x, "x", "float64"), dtype=dtype, out=out, **keywords)
    if _library(x) not in (NUMPY, BUFFER, TORCH) or _library(x) == TORCH and x.is_cuda:
        raise UnsupportedDtype(f"x holds {x.dtype}; means of integers are computed of arrays of NumPy and PyTorch on the host: give x as float64")
    if dtype not in ("float64", "float32"):
        raise UnsupportedDtype(f"dtype is {dtype}; the mean of integers comes as float64 or float32")
    import numpy
    total = total_of(x, **keywords)
    sums = numpy.asarray(total)
    count = numpy.prod((as_numpy(x) if _library(x) == BUFFER else x).shape, dtype="i8") // max(sums.size, 1) if sums.size else 1
    result = exact_quotients(numpy, sums, numpy.asarray(count)).astype(dtype)[()]
    if _library(x) == TORCH:
        import torch
        result = torch.from_numpy(numpy.asarray(result))
    return result if out is None else copy_into(result, out, {})


def widened_call(function: Any, x: Any, name: Any, keywords: Any) -> Any:
    """An operation on a type that C or the backend does not take, by way of an exact copy in a wider one."""
    wide, op = WIDER.get(name), function.__name__
    if name in _INTEGERS and op in ("mean", "var", "std", "mean_var"):
        return _moments_of_integers(function, x, dict(keywords))
    if name in _INTEGERS and op in ("sum", "square_sum") and keywords.get("dtype") is not None:
        keywords = dict(keywords)  # the exact sum, rounded once
        dtype, out = dtype_name(keywords.pop("dtype")), keywords.pop("out", None)
        total = widened(function(x, **keywords), "the sum", dtype)
        return total if out is None else copy_into(total, out, {})
    if wide is None or (wide == "float32" and op.endswith(("square_sum", "norm"))):
        taken = "floats and integers but uint64" if op.startswith("cum") else "float16, bfloat16, float32, float64, integers and bool"
        raise UnsupportedDtype(f"x holds {name}, which {op} does not take; give {taken}, in this machine's byte order")
    y = widened(x, "x", wide)
    if getattr(y.dtype, "name", str(y.dtype)).rpartition(".")[2] != wide:
        raise UnsupportedDtype(f"x holds {name}, and its library gave {y.dtype} where {wide} was asked for; switch 64-bit types on")
    keywords = dict(keywords)
    if not op.endswith(("max", "min")) or "arg" in op:
        return function(y, **keywords)
    out = keywords.pop("out", None)
    if out is not None:
        raise UnsupportedDtype(f"x holds {name}, whose {op} comes by way of {wide}; omit out=, or give x.astype('{wide}')")
    if keywords.get("exclusive"):
        raise UnsupportedDtype(f"x holds {name}, whose exclusive {op} would begin with {wide}'s last value; give x.astype('{wide}')")
    result = function(y, **keywords)
    library = _library(x)
    dtype = as_numpy(x).dtype if library in (BUFFER, OWN) else x.dtype
    if library == TORCH:
        return result.to(dtype)
    if library == ARRAY_API:
        return x.__array_namespace__().astype(result, dtype)
    return result.astype(dtype)


def moved_call(function: Any, x: Any, axes: Any, keywords: Any) -> Any:
    """An operation along axes that do not lie as C takes them: they are moved behind the others, and the result back."""
    from ._core import permute
    rank = rank_of(x)
    order = [k for k in range(rank) if k not in axes] + list(axes)
    back = [order.index(k) for k in range(rank)]
    keywords = dict(keywords)
    out, h_out = keywords.pop("out", None), keywords.pop("residual_out", None)
    reduced = function.__name__ in ("picked", "logsumexp") and not keywords.get("keepdims")
    passed_on = {k: keywords[k] for k in ("stream", "context", "backend", "check") if k in keywords}
    if keywords.get("residual") is not None:
        keywords["residual"] = permute(keywords["residual"], order, **passed_on)
        if h_out is not None:  # the copy takes the sum
            keywords["residual_out"] = keywords["residual"]
    elif h_out is not None:
        keywords["residual_out"] = h_out  # an error, which the function tells
    if "gradient" in keywords:
        keywords["gradient"] = permute(keywords["gradient"], order, **passed_on)
    keywords["axis"] = tuple(range(rank - len(axes), rank))
    if reduced:  # no axis of a row is left: the others keep their order
        keywords["out"] = out
    result = function(permute(x, order, **passed_on), **keywords)
    if h_out is not None:
        permute(keywords["residual"], back, out=h_out, **passed_on)
    return result if reduced else permute(result, back, out=out, **passed_on)


def ragged_call(function: Any, x: Any, _: Any, keywords: Any) -> Any:
    """Softmax or one of its kin of segments along the first of several axes: moved to be the last one, the segments of all rows behind one
    another, and the result moved back."""
    import numpy
    from ._core import permute
    keywords = dict(keywords)
    out, given = keywords.pop("out", None), keywords["offsets"]
    library = _library(given)
    cut = numpy.asarray(on_host(given) if library in (CUPY, NUMBA) or library == TORCH and given.is_cuda else given)
    passed_on = {k: keywords[k] for k in ("stream", "context", "backend", "check") if k in keywords}
    count, rank = len(cut) - 1, rank_of(x)
    rest, n = tuple(x.shape[1:]), x.shape[0]
    one_result = function.__name__ in ("segment_logsumexp", "segment_picked")
    if one_result:  # elements of no segment stay out
        if not 0 <= cut[0] <= cut[-1] <= n:
            raise InvalidArgument(f"offsets begin at {cut[0]} and end at {cut[-1]}, but x has {n} rows; give offsets of 0 to {n} that never decrease")
        x, cut, n = x[int(cut[0]):int(cut[-1])], cut - cut[0], int(cut[-1] - cut[0])
    elif cut[0] != 0 or cut[-1] != n:
        raise InvalidArgument(f"offsets begin at {cut[0]} and end at {cut[-1]}, but x has {n} rows; give offsets from 0 to {n}")
    if (numpy.diff(cut.astype("i8")) < 0).any():
        raise InvalidArgument("offsets decrease; give offsets that never do")
    last = (*range(1, rank), 0)
    rows = math.prod(rest)
    keywords["offsets"] = numpy.append((numpy.arange(rows)[:, None] * n + cut[None, :-1]).ravel(), rows * n).astype("i8")
    if "labels" in keywords:
        labels = keywords["labels"]
        shape = tuple(labels.shape) if hasattr(labels, "shape") else numpy.shape(labels)
        if shape != (count, *rest):
            raise InvalidArgument(f"labels has the shape {shape}; give {(count, *rest)}, one for each result")
        keywords["labels"] = permute(labels, last, **passed_on).reshape(-1)
    result = function(permute(x, last, **passed_on).reshape(-1), **keywords)
    return permute(result.reshape(*rest, count if one_result else n), (rank - 1, *range(rank - 1)), out=out, **passed_on)


def rooted_call(function: Any, x: Any, name: Any, keywords: Any) -> Any:
    """A standard deviation of device data: the variance in double, its root and one rounding by the array's own library."""
    from ._core import var
    keywords = dict(keywords)
    out, given = keywords.pop("out", None), keywords.pop("dtype", None)
    dtype = ("float64" if name == "float64" else "float32") if given is None else dtype_name(given)
    if dtype not in ("float64", "float32"):
        raise UnsupportedDtype(f"dtype is {dtype}; a standard deviation comes as float64 or float32")
    library = _library(x)
    if library == TORCH:
        roots: Any = sys.modules["torch"]
    elif library in (NUMPY, CUPY):
        roots = sys.modules["numpy" if library == NUMPY else "cupy"]
    elif library in (JAX, ARRAY_API):
        roots = sys.modules["jax"].numpy if library == JAX else x.__array_namespace__()
    else:
        raise Unsupported(f"x is a {type(x).__module__}.{type(x).__qualname__} on a device, whose library takes no roots; give it to one that "
                          "does, as torch.from_dlpack(x)")
    root = roots.sqrt(var(x, dtype="float64", **keywords))
    if library == TORCH:
        root = root.to(getattr(roots, dtype))
    elif library == ARRAY_API:
        root = roots.astype(root, getattr(roots, dtype))
    else:
        root = root.astype(dtype)
    # (Shape, dtype and device of out are judged as those of any.)
    return root if out is None else copy_into(root, out, {})


def copy_into(x: Any, out: Any, keywords: Any) -> Any:
    """The elements of x in out, by lockstep's own permute."""
    from ._core import permute
    return permute(x, tuple(range(rank_of(x))), out=out, **keywords)


def ends_of(offsets: Any) -> Any:
    """The first and the last of offsets in device memory; waits for them."""
    ends = offsets[::len(offsets) - 1] if len(offsets) > 1 and _library(offsets) in (TORCH, CUPY, JAX) else None
    return (int(offsets[0]), int(offsets[-1])) if ends is None else tuple(map(int, ends.tolist()))


def offsets64(offsets: Any, name: Any) -> Any:
    """Offsets of another type of integers, or that are not packed, as int64 by their own library."""
    return packed(offsets if name == "int64" else widened(offsets, "offsets", "int64"), "offsets")


def on_host(offsets: Any) -> Any:
    """Offsets in device memory as NumPy's; waits for them."""
    library = _library(offsets)
    if library == TORCH:
        return offsets.cpu().numpy()
    if library == NUMBA:
        return offsets.copy_to_host()
    if library == CUPY:
        return sys.modules["cupy"].asnumpy(offsets)
    import numpy
    return numpy.asarray(offsets) if library == JAX else numpy.from_dlpack(offsets)
