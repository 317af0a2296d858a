"""Calls of lockstep.ranks as descriptions, which its methods run and plans keep."""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from . import _ranks_c as c
from ._errors import InvalidArgument
from ._ranks_blocks import Block

ASYNC = 1  # LOCKSTEP_ASYNC


# What describes a call, the same on every rank, the blocks that are read, those that are written, and what makes the plan in C with the other ranks.
Prepared = tuple[Any, Sequence[Block], Sequence[Block], Callable[[Any], int]]


@dataclass(frozen=True)
class Call:
    """What a method of `Comm` does. prepare checks this rank's arguments; after makes what is returned of the blocks that were written."""

    prepare: Callable[[], Prepared]
    after: Callable[[Sequence[Block]], Any] = lambda written: written[0].array


described: dict[str, Callable[..., Any]] = {}
_P = ParamSpec("_P")
_R = TypeVar("_R")


def operation(describe: Callable[_P, _R]) -> Callable[_P, _R]:
    """A method that runs what this one describes; Comm.plan keeps it instead."""
    described[describe.__name__] = describe

    @functools.wraps(describe)
    def run(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
        comm: Any = arguments[0]
        result: _R = comm._run(describe(*arguments, **keywords))
        return result

    return run


class Plan:
    """A call of a communicator that is made many times, or runs while the program computes: `start`, then `test` or `wait`. `Comm.plan` makes it.

    Messages go on in `start`, `test` and `wait` only, and in other calls of the communicator, which finish all that was started before. There is no
    thread of its own. Executions run in the order in which they were started, on every rank the same; nothing else is compared between the ranks then, so an
    execution takes less time than the method. The plan has memory of its own.

    >>> halo = comm.plan("halo", u, grid, (1, 1))  # doctest: +SKIP
    >>> halo.start()  # doctest: +SKIP
    >>> inside(u)  # what needs no ghosts  # doctest: +SKIP
    >>> halo.wait()  # doctest: +SKIP
    """

    def __init__(self, comm: Any, operation: str, arguments: dict[str, Any]) -> None:
        self._comm, self._operation, self._arguments = comm, operation, dict(arguments)
        self._handle, self._started = ctypes.c_void_p(), False
        call = self._call(self._arguments)
        self._key, self._src, self._dst, make = comm._prepared(call)
        comm._own_memory = True
        try:
            status = make(ctypes.byref(self._handle))
        finally:
            comm._own_memory = False
        if status:
            comm._raise(status)
        self._after = call.after
        comm._held.append(self)

    def _call(self, arguments: dict[str, Any]) -> Call:
        call: Call = described[self._operation](**arguments)
        return call

    def _require(self, started: bool) -> None:
        self._comm._require_open()
        if not self._handle:
            raise InvalidArgument("the plan is closed; make another")
        if self._started != started:
            raise InvalidArgument("the plan has not been started; call start first" if started else "the plan was started before; call wait first")

    def start(self, **arrays: Any) -> None:
        """Begin an execution: send what can be sent; collective. Keep the arrays unchanged, and do not read results or ghosts, until `wait` has returned.

        Parameters
        ----------
        **arrays
            In place of those that the plan was made with, by the names of the method's parameters: ``plan.start(x=other)``. Of the same shapes and dtype.
        """
        self._require(False)
        self._started = True
        try:
            planned = {"x", "other", "blocks", "terms", "out"} & set(self._arguments)
            if not set(arrays) <= planned:
                raise InvalidArgument(f"{', '.join(sorted(arrays))} is given on rank {self._comm.rank}; {self._operation} was planned with {', '.join(sorted(planned))}")
            given = {**self._arguments, **arrays}
            call = self._call(given)
            key, src, dst, _ = call.prepare()
            if key != self._key:
                raise InvalidArgument(f"the arrays are not those of the plan on rank {self._comm.rank}; give {self._operation} arrays of the planned shapes and dtype")
            self._arguments, self._src, self._dst, self._after = given, src, dst, call.after
        except Exception:
            # An execution without blocks fails in C, which tells the others.
            options = c.Options(flags=ASYNC)
            c.library().lockstep_ranks_execute(self._handle, None, None, ctypes.byref(options))
            self._end()
            raise
        try:
            self._comm._execute(self._handle, self._src, self._dst, ASYNC, own_memory=True)
        except Exception:
            self._end()
            raise

    def _end(self) -> int:
        self._started = False
        return int(c.library().lockstep_ranks_wait(self._handle))

    def test(self) -> bool:
        """Whether the execution is finished on this rank. Moves the messages of all plans that were started, and does not wait. Raises what failed."""
        self._require(True)
        done = ctypes.c_int32()
        status = c.library().lockstep_ranks_test(self._handle, ctypes.byref(done))
        if status:
            self._started = False
            self._comm._raise(status)
        return bool(done.value)

    def wait(self) -> Any:
        """Finish the execution, and those that were started before it, and return what the method returns. Other ranks need not have finished. Raises what failed."""
        self._require(True)
        status = self._end()
        if status:
            self._comm._raise(status)
        return self._after(self._dst)

    def __call__(self, **arrays: Any) -> Any:
        """`start` and `wait`."""
        self.start(**arrays)
        return self.wait()

    def close(self) -> None:
        """Give the plan's memory back, after its execution. The communicator's end does so too."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            self._comm._held.remove(self)
            if self._comm._lost and self._started:  # a message may still come
                c.keep((self._src, self._dst))
            c.library().lockstep_ranks_plan_destroy(handle)
