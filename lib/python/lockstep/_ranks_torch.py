"""A transport of lockstep.ranks over a process group of torch.distributed, by gloo's messages."""
from __future__ import annotations

import ctypes
import functools
import queue
import threading
from collections import deque
from datetime import timedelta
from typing import Any

from . import _ranks_c as c
from ._errors import InvalidArgument

_LENGTH, _DATA = 1, 2  # tags: gloo tells no receiver how long a message is, so its length goes before it
_LAST = -1  # in place of a length: the sender closes
_FOR_EVER = timedelta(days=3650)  # lockstep has a deadline of its own; gloo's would end a communicator that is idle


def group_of(group: Any) -> Any:
    """The group, of which this process is a member."""
    import torch.distributed as dist
    if not dist.is_available() or not dist.is_initialized():
        raise InvalidArgument("torch.distributed has no process group; call torch.distributed.init_process_group first")
    if not dist.is_gloo_available():
        raise InvalidArgument("this PyTorch has no gloo, whose messages lockstep.ranks uses; use MPI, or a PyTorch with gloo")
    group = dist.group.WORLD if group is None else group
    if not isinstance(group, dist.ProcessGroup):
        raise InvalidArgument(f"group is a {type(group).__module__}.{type(group).__qualname__}; give a process group of torch.distributed that this process is in")
    return group


def has_gpus(group: Any) -> bool:
    """Whether its backend for tensors on CUDA is NCCL."""
    import torch
    try:
        return bool(group._get_backend(torch.device("cuda")).name() == "nccl")
    except RuntimeError:
        return False


class _Request:
    """A message that is sent, or one that is due: its memory, how many bytes have come (more than fit: TRUNCATED), and what failed."""

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size, self.received, self.done, self.failure = address, size, 0, False, ""


class TorchEngine:
    """A transport on a gloo group of its own, of the members of a group. A thread receives and another waits for what was sent, because gloo's requests
    cannot be asked whether they are done."""

    def __init__(self, group: Any, timeout_ms: int) -> None:
        import torch
        import torch.distributed as dist
        self._torch, self._dist = torch, dist
        ranks = dist.get_process_group_ranks(group)
        self.process: int = dist.get_rank(group)
        self.processes = len(ranks)
        self._limit = None if timeout_ms < 0 else timeout_ms / 1000
        self._group = self._own_group(ranks)
        self._ranks, self._number = ranks, {rank: k for k, rank in enumerate(ranks)}
        self._lock = threading.Lock()
        self._requests: dict[int, _Request] = {}
        self._next, self._text = 1, ctypes.create_string_buffer(b"")
        self._due: dict[int, deque[_Request]] = {}  # of each process, receives without a message
        self._come: dict[int, deque[Any]] = {}  # messages without a receive
        self._broken = ""
        self._sent: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._threads = []
        if self.processes > 1:
            for work in (self._receive, self._finish_sends):
                self._threads.append(threading.Thread(target=work, name="lockstep.ranks", daemon=True))
                self._threads[-1].start()
        self.table = c.Engine(abi=1, flags=2, processes=self.processes, process=self.process, name=f"torch {torch.__version__} (gloo)".encode(),
                              isend=c.START(functools.partial(self._start, True)), irecv=c.START(functools.partial(self._start, False)),
                              test=c.TEST(self._test), error=c.ERROR(self._error), close=c.CLOSE(lambda _, clean: self.close(clean)), peek=c.PEEK(self._peek))

    def _own_group(self, ranks: Any) -> Any:
        """Made in a thread, which can be left alone if not all members come before the deadline."""
        made: list[Any] = []

        def make() -> None:
            try:
                made.append(self._dist.new_group(ranks, timeout=_FOR_EVER, backend="gloo", use_local_synchronization=True))
            except BaseException as e:
                made.append(e)

        thread = threading.Thread(target=make, name="lockstep.ranks", daemon=True)
        thread.start()
        thread.join(self._limit)
        if not made:
            raise TimeoutError("not all processes of the group made their communicator of lockstep before the deadline; find out why, or give a longer timeout")
        if isinstance(made[0], BaseException):
            raise made[0]
        return made[0]

    # ---- the threads ---------------------------------------------------------------
    def _bytes_at(self, address: int, size: int) -> Any:
        return self._torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=self._torch.uint8)

    def _receive(self) -> None:
        torch, dist = self._torch, self._dist
        open_, length = self.processes - 1, torch.empty(1, dtype=torch.int64)
        try:
            while open_:
                rank = dist.recv(length, None, group=self._group, tag=_LENGTH)
                sender, size = self._number[rank], int(length)
                if size == _LAST:
                    open_ -= 1
                    continue
                with self._lock:
                    due = self._due.get(sender)
                    request = due.popleft() if due else None
                fits = request is not None and size <= request.size
                memory = self._bytes_at(request.address, size) if request is not None and fits else torch.empty(size, dtype=torch.uint8)
                dist.recv(memory, rank, group=self._group, tag=_DATA)
                with self._lock:
                    if request is None:  # one may have been asked for meanwhile
                        due = self._due.get(sender)
                        request = due.popleft() if due else None
                        if request is None:
                            self._come.setdefault(sender, deque()).append(memory)
                            continue
                        if size <= request.size:
                            ctypes.memmove(request.address, memory.data_ptr(), size)
                    request.received, request.done = size, True
        except BaseException as e:
            self._fail(e)

    def _finish_sends(self) -> None:
        while (sent := self._sent.get()) is not None:
            request, works, _ = sent
            try:
                for work in works:
                    work.wait()
            except BaseException as e:
                request.failure = self._fail(e)
            request.done = True

    def _fail(self, e: BaseException) -> str:
        text = f"{type(e).__name__}: {e}"
        with self._lock:
            self._broken = self._broken or text
        return text

    # ---- what C calls: an exception would be lost --------------------------------------
    def _failed(self, text: str) -> int:
        self._text = ctypes.create_string_buffer(text.encode())
        return c.FAILED

    def _send(self, to: int, address: int, size: int, request: _Request) -> None:
        length = self._torch.tensor([size])
        tensors = [(length, _LENGTH)] if size == _LAST else [(length, _LENGTH), (self._bytes_at(address, size), _DATA)]
        works = [self._dist.isend(x, self._ranks[to], group=self._group, tag=tag) for x, tag in tensors]
        self._sent.put((request, works, tensors))

    def _start(self, sends: bool, _: Any, peer: int, data: int | None, size: int, key: Any) -> int:
        try:
            request = _Request(data or 0, size)
            if sends:
                self._send(peer, request.address, size, request)
            else:
                with self._lock:
                    come = self._come.get(peer)
                    if come:
                        memory = come.popleft()
                        request.received, request.done = memory.numel(), True
                        if request.received <= size:
                            ctypes.memmove(request.address, memory.data_ptr(), request.received)
                    else:
                        self._due.setdefault(peer, deque()).append(request)
            key[0] = self._next
            self._requests[self._next] = request
            self._next += 1
            return 0
        except BaseException as e:
            return self._failed(self._fail(e))

    def _test(self, _: Any, key: Any, done: Any, received: Any) -> int:
        request = self._requests[key[0]]
        failure = request.failure or (self._broken if not request.done else "")
        if not request.done and not failure:
            done[0] = 0
            return 0
        done[0], received[0] = 1, request.received or request.size
        del self._requests[key[0]]
        key[0] = None
        if failure:
            return self._failed(failure)
        return c.TRUNCATED if request.received > request.size else 0

    def _peek(self, _: Any, peer: int, found: Any, size: Any) -> int:
        with self._lock:
            come = self._come.get(peer)
            found[0] = bool(come)
            if come:
                size[0] = come[0].numel()
        return 0

    def _error(self, _: Any, result: int) -> int:
        return ctypes.addressof(self._text)

    def close(self, clean: int) -> None:
        """Collective where it is clean: all have come, so no message is on its way. Else the threads may wait for ever, and the group stays."""
        try:
            if clean and self._threads:
                for peer in range(self.processes):
                    if peer != self.process:
                        self._send(peer, 0, _LAST, _Request(0, 0))
                self._threads[0].join(self._limit)
                self._sent.put(None)
                self._threads[1].join(self._limit)
            if clean and not any(thread.is_alive() for thread in self._threads):
                self._dist.destroy_process_group(self._group)
            else:
                c.keep(self)
        except BaseException as e:
            self._fail(e)
