"""The exceptions, one for each status of the C library, and one for dtypes."""
import operator
from typing import Any


class Error(Exception):
    """What every exception of lockstep's own is one of.

    Attributes
    ----------
    status : int
        The ``lockstep_status`` of the C call that failed.
    """
    status: int = 0


class InvalidArgument(Error, ValueError):
    """A value that no backend could accept."""
    status: int = 1


class UnsupportedDtype(Error, TypeError):
    """An element type that the operation does not take."""
    status: int = 1


class Unsupported(Error, NotImplementedError):
    """A valid call for which the named backend or variant has no kernel."""
    status: int = 2


class NoBackend(Error, RuntimeError):
    """A backend that is unknown or cannot run here."""
    status: int = 3


class NoVariant(Error, ValueError):
    """A variant that is unknown."""
    status: int = 4


class OutOfMemory(Error, MemoryError):
    """Host or device memory could not be had; nothing was lost."""
    status: int = 5


class Overflow(Error, OverflowError):
    """An exact integer result does not fit 64 bits.

    Attributes
    ----------
    out : array
        The results, saturated where they do not fit.
    """
    status: int = 6
    out: Any = None


class Empty(Error, ValueError):
    """The least or greatest of no elements."""
    status: int = 7


class BackendFailed(Error, RuntimeError):
    """The backend reported a failure."""
    status: int = 8


class BackendLost(Error, RuntimeError):
    """The backend failed for good, and its device memory with it."""
    status: int = 9


class Internal(Error, SystemError):
    """A defect in lockstep; please report it."""
    status: int = 10


# Users meet them, and catch them, by the package's name.
for _class in (Error, InvalidArgument, UnsupportedDtype, Unsupported, NoBackend, NoVariant, OutOfMemory, Overflow, Empty, BackendFailed, BackendLost, Internal):
    _class.__module__ = "lockstep"

# By status; place 0 is the exception for dtypes.
BY_STATUS = (UnsupportedDtype, InvalidArgument, Unsupported, NoBackend, NoVariant, OutOfMemory, Overflow, Empty, BackendFailed,
             BackendLost, Internal)


def whole_number(value: Any, name: str) -> int:
    """An int, also one of NumPy's."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; give an int") from None


def whole_numbers(axes: Any, name: str = "axis") -> tuple[int, ...]:
    """One axis, or a sequence of them."""
    return tuple(whole_number(k, name) for k in (axes if hasattr(axes, "__iter__") else (axes,)))
