"""How lockstep.distributed runs a call: now, on a stream beside the current one, or by a thread with a process group of its own."""
from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ._errors import InvalidArgument


class Work:
    """An asynchronous call. Keep the tensors unchanged until `wait` has returned."""

    def __init__(self, tensors: Sequence[Tensor], event: Any = None, host: Future[None] | None = None) -> None:
        self._tensors, self._event, self._host = list(tensors), event, host

    def is_completed(self) -> bool:
        """Whether the results are there. Does not wait."""
        return bool(self._event.query()) if self._host is None else self._host.done()

    def wait(self, timeout: float | None = None) -> bool:
        """Finish the call, and raise what failed. On CUDA the current stream waits, not the program; on the CPU the program does, at most `timeout` seconds."""
        if self._host is None:
            torch.cuda.current_stream(self._tensors[0].device).wait_event(self._event)
        else:
            self._host.result(timeout)
        return True

    def get_future(self) -> torch.futures.Future[Tensor]:
        """A future of PyTorch, of the first tensor."""
        x = self._tensors[0]
        if self._host is None:
            future: torch.futures.Future[Tensor] = torch.futures.Future(devices=[x.device])
            with torch.cuda.stream(_beside(x.device)):
                future.set_result(x)
            return future
        later: torch.futures.Future[Tensor] = torch.futures.Future()

        def done(host: Future[None]) -> None:
            failure = host.exception()
            if failure is None:
                later.set_result(x)
            else:
                later.set_exception(failure)

        self._host.add_done_callback(done)
        return later


_streams: dict[torch.device, Any] = {}


def _beside(device: torch.device) -> Any:
    if device not in _streams:  # of high priority: what waits for an exchange is short
        _streams[device] = torch.cuda.Stream(device, priority=-1)
    return _streams[device]


class _Worker:
    """A thread that makes the asynchronous calls of one group, in their order, on a process group of its own: the caller's own collectives, which go on
    meanwhile, must not come between."""

    def __init__(self, group: Any, backend: str) -> None:
        self.group = dist.new_group(dist.get_process_group_ranks(group), backend=backend, use_local_synchronization=True)
        self.thread = ThreadPoolExecutor(1, "lockstep.distributed")


_workers: Any = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def _backend(group: Any, device: torch.device) -> str:
    try:
        backend: str | None = group._get_backend(device).name()
    except RuntimeError:
        backend = None
    if backend is None or (device.type == "cuda" and backend == "gloo"):
        raise InvalidArgument(f"group has {backend or 'no backend'} for tensors on {device.type}; make it with one that has, as "
                              f"init_process_group(\"{'nccl' if device.type == 'cuda' else 'gloo'}\") or \"cpu:gloo,cuda:nccl\"")
    return backend


def start(work: Callable[[Any], None], group: Any, tensors: Sequence[Tensor], async_op: bool) -> Work | None:
    """work(group) with the tensors, of one device: done when this returns, or by what is returned."""
    device = tensors[0].device
    backend = _backend(group, device)
    if device.type == "cuda":
        if not async_op:
            with torch.cuda.device(device):
                work(group)
            return None
        stream = _beside(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.device(device), torch.cuda.stream(stream):
            work(group)
        for x in tensors:  # their memory is not given to others before that stream is done with it
            x.record_stream(stream)
        return Work(tensors, event=stream.record_event())
    if not async_op:
        work(group)
        return None
    with _lock:
        worker = _workers.get(group)
        if worker is None:
            worker = _workers[group] = _Worker(group, backend)

    def alone() -> None:
        with torch.no_grad():
            work(worker.group)

    return Work(tensors, host=worker.thread.submit(alone))
