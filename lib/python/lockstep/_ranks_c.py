"""liblockstep_ranks by ctypes: its structs (lockstep/ranks.h, engine.h), and a transport over mpi4py, in Python, so that the
library is tied to no MPI."""
from __future__ import annotations

import ctypes
import functools
import os
import time
from typing import Any

from ._errors import InvalidArgument
from ._info import get_library

MAX_RANK = 8
TRUNCATED, FAILED = -1, 1
DTYPES = {"float16": 1, "bfloat16": 2, "float32": 3, "float64": 4, "int32": 5, "int64": 6, "int8": 7, "int16": 8, "uint8": 9, "uint16": 10,
          "uint32": 11, "uint64": 12, "bool": 13}
_INT, _LONG, _SIZE, _POINTER = ctypes.c_int32, ctypes.c_int64, ctypes.c_size_t, ctypes.c_void_p


class _Sized(ctypes.Structure):
    """A struct that begins with its size."""

    def __init__(self, **values: Any) -> None:
        super().__init__(size=ctypes.sizeof(self), **values)


class Grid(_Sized):
    _fields_ = [("size", _SIZE), ("element_bytes", _SIZE), ("rank", _INT), ("shape", _LONG * MAX_RANK), ("parts", _INT * MAX_RANK),
                ("cuts", _POINTER * MAX_RANK), ("order", _POINTER)]


class Part(_Sized):
    _fields_ = [("size", _SIZE), ("data", _POINTER), ("strides", _LONG * MAX_RANK)]


class Term(ctypes.Structure):
    _fields_ = [("op", ctypes.c_int), ("of", _INT)]


class Stencil(_Sized):
    _fields_ = [("size", _SIZE), ("dtype", _INT), ("form", _INT), ("boundary", _INT), ("rank", _INT), ("radius", _INT), ("coefficient_count", _INT),
                ("sweeps", _INT), ("coefficients", _POINTER), ("value", ctypes.c_double), ("shape", _LONG * 3), ("src_strides", _LONG * 3),
                ("dst_strides", _LONG * 3), ("batch", _LONG), ("src_batch_stride", _LONG), ("dst_batch_stride", _LONG)]


class Normalize(_Sized):
    _fields_ = [("size", _SIZE), ("kind", _INT), ("dtype", _INT), ("result", _INT), ("weight_dtype", _INT), ("count", _LONG), ("length", _LONG),
                ("src_stride", _LONG), ("dst_stride", _LONG), ("residual_stride", _LONG), ("sum_stride", _LONG), ("eps", ctypes.c_double),
                ("weight", _POINTER), ("bias", _POINTER), ("residual", _POINTER), ("sum", _POINTER)]


class CommOptions(_Sized):
    _fields_ = [("size", _SIZE), ("seats", _INT), ("backends", _POINTER), ("timeout_ms", _LONG), ("flags", ctypes.c_uint32), ("message_bytes", _LONG),
                ("data", ctypes.c_char_p)]


class CommInfo(_Sized):
    _fields_ = [("size", _SIZE), ("ranks", _INT), ("rank", _INT), ("seats", _INT), ("processes", _INT), ("engine", ctypes.c_char_p), ("closed", _INT),
                ("reason", ctypes.c_char_p), ("data", ctypes.c_char_p), ("why", ctypes.c_char_p)]


class Options(_Sized):
    _fields_ = [("size", _SIZE), ("backend", ctypes.c_char_p), ("variant", ctypes.c_char_p), ("flags", ctypes.c_uint32), ("stream", _POINTER),
                ("workspace", _POINTER), ("workspace_bytes", _SIZE)]


START = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _INT, _POINTER, _SIZE, ctypes.POINTER(_POINTER))
TEST = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.POINTER(_POINTER), ctypes.POINTER(ctypes.c_int), ctypes.POINTER(_SIZE))
ERROR = ctypes.CFUNCTYPE(_POINTER, _POINTER, ctypes.c_int)
ABORT = ctypes.CFUNCTYPE(None, _POINTER, ctypes.c_char_p)
PEEK = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _INT, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(_SIZE))
CLOSE = ctypes.CFUNCTYPE(None, _POINTER, ctypes.c_int)


class Engine(_Sized):
    _fields_ = [("size", _SIZE), ("abi", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("user", _POINTER), ("processes", _INT), ("process", _INT),
                ("name", ctypes.c_char_p), ("isend", START), ("irecv", START), ("test", TEST), ("error", ERROR), ("abort", ABORT), ("close", CLOSE),
                ("peek", PEEK)]


@functools.cache
def library() -> Any:
    """liblockstep_ranks: beside the liblockstep of this process, else where the loader looks."""
    name = "liblockstep_ranks.so.1"
    here = os.path.dirname(get_library() or "")
    beside = (os.path.join(folder, name) for folder in (here, os.path.join(here, "ranks")))
    try:
        found = ctypes.CDLL(next((path for path in beside if os.path.exists(path)), name))
    except OSError as e:
        raise ImportError(f"lockstep.ranks needs {name} ({e}); build with -Dranks=enabled, by Meson or pip's --config-settings=setup-args") from None
    found.lockstep_comm_create.argtypes = [_POINTER] * 4
    found.lockstep_comm_refuse.argtypes = [_POINTER, _POINTER, ctypes.c_char_p]
    found.lockstep_comm_timeout.argtypes = [_POINTER]
    found.lockstep_comm_timeout.restype = _LONG
    found.lockstep_comm_leave.argtypes = [_POINTER, ctypes.c_char_p]
    found.lockstep_comm_leave.restype = None
    found.lockstep_comm_get.argtypes = [_POINTER, _POINTER]
    found.lockstep_ranks_refuse.argtypes = [_POINTER, ctypes.c_char_p]
    found.lockstep_comm_destroy.argtypes = [_POINTER]
    found.lockstep_comm_destroy.restype = None
    found.lockstep_grid_box.argtypes = [_POINTER, _INT, _POINTER, _POINTER]
    found.lockstep_ranks_permute.argtypes = [_POINTER] * 6
    found.lockstep_ranks_reduce.argtypes = [_POINTER, _POINTER, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_uint32, _POINTER, _POINTER, _POINTER]
    found.lockstep_ranks_sums.argtypes = found.lockstep_ranks_reduce.argtypes
    found.lockstep_ranks_mean_variance.argtypes = [_POINTER, _POINTER, ctypes.c_int, ctypes.c_int, ctypes.c_uint32, _LONG, _POINTER, _POINTER, _POINTER]
    found.lockstep_ranks_normalize.argtypes = [_POINTER, _POINTER, _POINTER, ctypes.c_uint32, _POINTER, _POINTER]
    found.lockstep_ranks_scan.argtypes = [_POINTER, _POINTER, ctypes.c_int, ctypes.c_int, ctypes.c_int, _INT, _INT, _POINTER, _POINTER]
    found.lockstep_ranks_stencil.argtypes = [_POINTER] * 5
    found.lockstep_ranks_reduce_several.argtypes = [_POINTER, _POINTER, _POINTER, _INT, ctypes.c_int, ctypes.c_int, _POINTER, _POINTER]
    found.lockstep_ranks_halo_fields.argtypes = [_POINTER, _POINTER, _POINTER, ctypes.c_int, ctypes.c_double, _INT, _POINTER, _POINTER]
    found.lockstep_ranks_agree.argtypes = [_POINTER]
    found.lockstep_ranks_workspace.argtypes = [_POINTER, _POINTER]
    found.lockstep_ranks_execute.argtypes = [_POINTER] * 4
    found.lockstep_ranks_test.argtypes = [_POINTER, _POINTER]
    found.lockstep_ranks_wait.argtypes = [_POINTER]
    found.lockstep_ranks_synchronize.argtypes = [_POINTER]
    found.lockstep_ranks_plan_destroy.argtypes = [_POINTER]
    found.lockstep_ranks_plan_destroy.restype = None
    found.lockstep_last_error.restype = ctypes.c_char_p  # (of liblockstep, which it links)
    found.lockstep_dtype_bytes.restype = _SIZE
    return found


def last_error() -> str:
    text: bytes = library().lockstep_last_error()
    return text.decode("utf-8", "replace")


def check_communicator(comm: Any) -> None:
    from mpi4py import MPI
    if not isinstance(comm, MPI.Intracomm):
        raise InvalidArgument(f"mpi is a {type(comm).__name__}; give a communicator of mpi4py, as MPI.COMM_WORLD")
    if not _allows_thread(MPI):
        raise InvalidArgument(_OTHER_THREAD)


_OTHER_THREAD = ("MPI was initialized at a level at which only the thread that did it may call it, and this is another one; call lockstep.ranks from that "
                 "thread, or initialize with MPI.THREAD_SERIALIZED")


def _allows_thread(MPI: Any) -> bool:
    return bool(MPI.Query_thread() >= MPI.THREAD_SERIALIZED or MPI.Is_thread_main())


_unfinished: list[Any] = []  # duplicates that not all processes made, and memory, to which MPI may still write


def keep(memory: Any) -> None:
    """For good: a transport that has lost a rank may still write there."""
    _unfinished.append(memory)


def _duplicate(comm: Any, timeout_ms: int) -> Any:
    """With all processes of a communicator, within the timeout."""
    made, request = comm.Idup()
    begin, pause = time.monotonic(), 1e-5
    while not request.Test():
        if 0 <= timeout_ms < (time.monotonic() - begin) * 1000:
            _unfinished.append((made, request))
            raise TimeoutError("not all processes of the MPI communicator made theirs of lockstep before the deadline; find out why, or give a longer "
                               "timeout. MPI.Finalize may wait for them for ever: end the job with mpi.Abort()")
        time.sleep(pause)
        pause = min(2 * pause, 1e-3)
    return made


class MpiEngine:
    """A transport over a communicator of mpi4py, by point-to-point messages on a duplicate of it. timeout_ms: for the others to come, -1: for ever."""

    def __init__(self, comm: Any, timeout_ms: int) -> None:
        from mpi4py import MPI
        self._mpi: Any = MPI
        self._at: Any = getattr(MPI, "buffer", None) or MPI.memory  # mpi4py 4, or 3
        self._comm = _duplicate(comm, timeout_ms)
        self._comm.Set_errhandler(MPI.ERRORS_RETURN)  # mpi4py then raises
        self._requests: dict[int, tuple[Any, bool, int]] = {}
        self._next, self._text = 1, ctypes.create_string_buffer(b"")
        self.processes: int = self._comm.Get_size()
        self.process: int = self._comm.Get_rank()
        version = MPI.Get_library_version().partition(",")[0].partition("\n")[0][:80]
        # The table's functions live as long as this object; what a callback raised would be lost.
        self.table = Engine(abi=1, flags=2, processes=self.processes, process=self.process, name=f"mpi ({version})".encode(),
                            isend=START(functools.partial(self._start, True)), irecv=START(functools.partial(self._start, False)),
                            test=TEST(self._test), error=ERROR(self._error), abort=ABORT(self._abort), close=CLOSE(lambda _, clean: self.close(clean)),
                            peek=PEEK(self._peek))

    def _fail(self, e: BaseException) -> int:
        self._text = ctypes.create_string_buffer(f"{type(e).__name__}: {e}".encode())
        return FAILED

    def _start(self, sends: bool, _: Any, peer: int, data: int | None, size: int, request: Any) -> int:
        try:
            if not _allows_thread(self._mpi):
                raise RuntimeError(_OTHER_THREAD)
            memory = self._at.fromaddress(data or 0, size)
            message = [memory, size, self._mpi.BYTE]
            self._requests[self._next] = (self._comm.Isend(message, peer, 0) if sends else self._comm.Irecv(message, peer, 0), sends, size)
            request[0] = self._next
            self._next += 1
            return 0
        except BaseException as e:
            return self._fail(e)

    def _test(self, _: Any, request: Any, done: Any, received: Any) -> int:
        key = request[0]
        try:
            done[0] = 0
            pending, sends, size = self._requests[key]
            status = self._mpi.Status()
            if not pending.Test(status):
                return 0
            received[0] = size if sends else status.Get_count(self._mpi.BYTE)
            result = 0
        except self._mpi.Exception as e:
            result = TRUNCATED if e.Get_error_class() == self._mpi.ERR_TRUNCATE else self._fail(e)
        except BaseException as e:
            result = self._fail(e)
        done[0] = 1
        self._requests.pop(key, None)
        request[0] = None
        return result

    def _peek(self, _: Any, peer: int, found: Any, size: Any) -> int:
        try:
            status = self._mpi.Status()
            found[0] = self._comm.Iprobe(peer, 0, status)
            if found[0]:
                size[0] = status.Get_count(self._mpi.BYTE)
            return 0
        except BaseException as e:
            return self._fail(e)

    def _error(self, _: Any, result: int) -> int:
        return ctypes.addressof(self._text)

    def _abort(self, _: Any, why: bytes) -> None:
        if not self._mpi.Is_finalized():
            self._comm.Abort(1)

    def close(self, clean: int) -> None:
        """Collective where it is clean: the duplicate goes."""
        try:
            if clean and not self._mpi.Is_finalized():
                self._comm.Free()
        except BaseException as e:
            self._fail(e)
