"""What ran, what there is, and whether it computes what it should."""
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from . import _core
from ._errors import InvalidArgument, whole_number
from ._kinds import CODES, dtype_name


class RunInfo(NamedTuple):
    """What one call did."""
    backend: str
    """"cpu", "cuda"."""
    device: int
    variant: str
    """The kernel's name; "" when there was nothing to compute."""
    order: int
    """The order id of its sums; 0 for a variant with an order of its own."""
    why: str
    """Why not the other backends."""
    workspace_bytes: int
    staged_bytes: int
    """Bytes that were copied because the backend could not reach them."""
    op: str = ""
    """The C library's name of the operation; known in what `record` collects."""
    function: str = ""
    """The function that was called, as "sum"; "" for a plan's calls. Known in what `record` collects."""


class BackendInfo(NamedTuple):
    """A backend, and why it is not usable when it is not."""
    name: str
    description: str
    path: str
    reason: str
    usable: bool
    devices: int


class DeviceInfo(NamedTuple):
    """A device of a usable backend."""
    backend: str
    device: int
    name: str
    detail: str
    memory_bytes: int
    last_level_cache_bytes: int
    processors: int
    usable: bool


class VariantInfo(NamedTuple):
    """A kernel that can be forced by name."""
    name: str
    idea: str
    own_order: bool
    """Whether it adds in an order of its own, with its own bits."""
    library: bool
    lesson: bool
    reference: bool


class ModelInfo(NamedTuple):
    """Where the estimates of "auto" come from."""
    source: str
    path: str
    reason: str


class TuningInfo(NamedTuple):
    """Which kernels plans with ``tune=True`` have measured to be the fastest here."""
    path: str
    """The file that remembers them; "" where LOCKSTEP_TUNING switches it off."""
    reason: str
    """Why nothing of the file is in force, "" when it is."""
    choices: tuple[str, ...]
    """A line each: the call, the kernel and its time, then the others."""


class Digest(NamedTuple):
    """A number over the results of a fixed list of calls."""
    line: str
    """What two machines compare; `lockstep verify --digest` prints the same."""
    expected: str

    def __bool__(self) -> bool:
        return self.line == self.expected


def last_run() -> RunInfo:
    """What this thread's last call did.

    Returns
    -------
    RunInfo

    Examples
    --------
    >>> _ = ls.sum(np.ones(10), backend="cpu")
    >>> ls.last_run().backend, ls.last_run().order
    ('cpu', 1)
    """
    return RunInfo(*_core.last_run())


_recorders: ContextVar[tuple[list[RunInfo], ...]] = ContextVar("lockstep recorders", default=())
_recording = 0


def _note(op: str, function: str) -> None:
    lists = _recorders.get()
    if lists:
        info = RunInfo(*_core.last_run(), op=op, function=function)
        for runs in lists:
            runs.append(info)


@contextmanager
def record() -> Iterator[list[RunInfo]]:
    """Collect what every call of a `with` block did, in this thread or task and those that it starts with its context.

    ``logging.getLogger("lockstep")`` logs the same for every call of the program at level DEBUG; `run` of a log record is the `RunInfo`.

    Yields
    ------
    list of RunInfo

    Examples
    --------
    >>> with ls.record() as runs:
    ...     _ = ls.sum(np.ones(10)), ls.max(np.ones(10))
    >>> [(run.function, run.op) for run in runs]
    [('sum', 'reduce'), ('max', 'reduce')]
    """
    global _recording
    runs: list[RunInfo] = []
    token = _recorders.set((*_recorders.get(), runs))
    _recording += 1
    _core.set_hook(_note)
    try:
        yield runs
    finally:
        _recorders.reset(token)
        _recording -= 1
        if not _recording:
            _core.set_hook(None)


def backends() -> list[BackendInfo]:
    """The backends, in the order in which "auto" considers them, each with the reason why it is not usable."""
    return [BackendInfo(*row) for row in _core.backends()]


def devices() -> list[DeviceInfo]:
    """The devices of all usable backends."""
    return [DeviceInfo(*_core.device(b.name, k)) for b in backends() if b.usable for k in range(b.devices)]


def variants_of(op: str, backend: str = "cpu") -> list[VariantInfo]:
    """The variants of an operation on a backend, best first.

    Parameters
    ----------
    op : {"transpose", "permute", "square_sum", "reduce", "stencil", "shuffle", "normalize", "scan", "sums", "reduce_axes", "convert", "map"}
    backend : str, default "cpu"

    Returns
    -------
    list of VariantInfo
    """
    return [VariantInfo(name, idea, bool(flags & 1), bool(flags & 2), bool(flags & 4), bool(flags & 8)) for name, idea, flags in _core.variants(backend, op)]


def model_info() -> ModelInfo:
    """Where the default context's estimates for "auto" come from: built in, or a file of `lockstep calibrate`."""
    return ModelInfo(*_core.get_default()._model())


def tuning_info() -> TuningInfo:
    """What plans of the default context have measured on this machine, and the file that remembers it.

    Returns
    -------
    TuningInfo

    Examples
    --------
    >>> path, reason, choices = ls.tuning_info()
    """
    path, reason, choices = _core.get_default()._tuning()
    return TuningInfo(path, reason, tuple(choices.splitlines()))


def verify(backend: str = "cpu", *, isa: str = "", threads: int = 0) -> Digest:
    """Compute the digest by which two machines compare all results.

    Parameters
    ----------
    backend : str, default "cpu"
        "cpu", "cuda", "cuda:1", or "oracle" for the independent definition in plain loops.
    isa, threads
        As for `Context`.

    Returns
    -------
    Digest
        True in a condition when it is the one that every machine should have.

    Examples
    --------
    >>> bool(ls.verify())
    True
    """
    from ._verify import digest
    with open(os.path.join(os.path.dirname(__file__), "order1.txt"), encoding="ascii") as golden:
        return Digest(digest(backend, isa, threads), golden.read().strip())


_KINDS = {"host": 0, "pinned": 1, "managed": 2, "device": 3}
_DTYPES = {"float16": ("float", 2), "bfloat16": ("bfloat", 2), "float32": ("float", 4), "float64": ("float", 8), "int8": ("int", 1),
           "int16": ("int", 2), "int32": ("int", 4), "int64": ("int", 8), "uint8": ("uint", 1), "uint16": ("uint", 2),
           "uint32": ("uint", 4), "uint64": ("uint", 8), "complex64": ("complex", 8), "complex128": ("complex", 16), "bool": ("bool", 1)}


def _element(shape: int | tuple[int, ...], dtype: Any) -> tuple[tuple[int, ...], int, int]:
    name = dtype_name(dtype)
    if name not in _DTYPES:
        raise InvalidArgument(f"dtype is {dtype!r}; give one of {', '.join(_DTYPES)}")
    code, size = _DTYPES[name]
    axes = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    return tuple(whole_number(n, "shape") for n in axes), CODES[code], size


def _cuda_index(device: str) -> int:
    name, _, index = str(device).partition(":")
    if name != "cuda" or not (index or "0").isdecimal():
        raise InvalidArgument(f"device is {device!r}; give cuda, cuda:1 ...")
    return int(index or 0)


def empty(shape: int | tuple[int, ...], dtype: Any = "float32", *, kind: str = "host", device: str = "cuda:0") -> _core.Buffer:
    """Memory of lockstep's own, not initialised, for programs without a library that has it.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : default "float32"
    kind : {"host", "pinned", "managed", "device"}
        Page-locked, managed and device memory need CUDA.
    device : str, default "cuda:0"
        The CUDA device of the last three kinds.

    Returns
    -------
    Buffer
        For numpy.asarray (all kinds but "device"), torch.from_dlpack and others.

    Examples
    --------
    >>> np.asarray(ls.empty((2, 3), "int64")).shape
    (2, 3)
    """
    if kind not in _KINDS:
        raise InvalidArgument(f"kind is {kind!r}; give {', '.join(_KINDS)}")
    on_host = kind == "host"
    index = 0 if on_host and device == "cpu" else _cuda_index(device)
    return _core.empty(*_element(shape, dtype), _KINDS[kind], "cpu" if on_host else device, 0 if on_host else index, True)


def spec(shape: int | tuple[int, ...], dtype: Any = "float32", *, device: str = "cpu") -> _core.Buffer:
    """Describe a packed array that a plan is to be made for, without its memory.

    Examples
    --------
    >>> ls.plan.norm(ls.spec((64, 1000)), axis=1).op
    'square_sum'
    """
    on_host = device == "cpu"
    return _core.empty(*_element(shape, dtype), _KINDS["host" if on_host else "device"], device, 0 if on_host else _cuda_index(device), False)


def get_include() -> str | None:
    """The folder of lockstep.h in a wheel, for compilers."""
    folder = os.path.join(os.path.dirname(__file__), "include")
    return folder if os.path.isdir(folder) else None


def get_library() -> str | None:
    """The path of the liblockstep that this process has loaded, for ctypes, CFFI and numba."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.rpartition(" ")[2].strip()
            if os.path.basename(path).startswith("liblockstep.so"):
                return path
    return None


__all__ = ["BackendInfo", "DeviceInfo", "Digest", "ModelInfo", "RunInfo", "TuningInfo", "VariantInfo", "backends", "devices", "empty", "get_include",
           "get_library", "last_run", "model_info", "record", "spec", "tuning_info", "variants_of", "verify"]
