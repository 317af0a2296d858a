"""Blocks of lockstep.ranks as C takes them: NumPy's on the host, those of PyTorch, CuPy and numba on a CUDA device."""
from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from . import _kinds
from . import _ranks_c as c
from ._errors import InvalidArgument, Unsupported, UnsupportedDtype


@dataclass(frozen=True)
class Block:
    """A block as C takes it: an array, where it lies, and its strides in elements."""

    array: Any
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    itemsize: int
    stream: int | None = None  # of device data: the current one of the array's library
    ghosts: bool = False  # whether there is memory around it, so that its strides count even where it has one element

    @property
    def size(self) -> int:
        return prod(self.shape)

    def fits(self) -> bool:
        """Whether C can take the strides."""
        return all(s > 0 for s, n in zip(self.strides, self.shape) if n > 1)

    def has_rows(self) -> bool:
        """Whether the last axis is packed, and each axis lies around those behind it, as stencils want them."""
        axes = [(s, n) for s, n in zip(self.strides, self.shape) if n > 1]
        return (self.shape[-1] == 1 or self.strides[-1] == 1) and all(s >= t * n for (s, _), (t, n) in pairwise(axes))

    def as_c(self) -> Any:
        part = c.Part(data=self.address if self.size else None)
        for k, (stride, n) in enumerate(zip(self.strides, self.shape)):
            part.strides[k] = stride if n > 1 or self.ghosts else 1  # that of one element says nothing, but C reads it
        return part


def where(x: Any) -> int | None:
    """The CUDA device of an array, None for the host; -1 where an interface does not say which."""
    if hasattr(x, "__dlpack_device__"):
        kind, index = x.__dlpack_device__()
        if int(kind) not in (_kinds.CPU, _kinds.CUDA, _kinds.CUDA_HOST, _kinds.CUDA_MANAGED):
            raise Unsupported(f"x is a {type(x).__module__}.{type(x).__qualname__} on a device of DLPack's type {int(kind)}; copy it to the host or to a CUDA device")
        return int(index) if int(kind) in (_kinds.CUDA, _kinds.CUDA_MANAGED) else None
    return -1 if hasattr(x, "__cuda_array_interface__") else None


def on_host(x: Any) -> Any:
    """A NumPy array of an array of any of these libraries; waits for it."""
    if hasattr(x, "copy_to_host"):  # numba
        return x.copy_to_host()
    return x.get() if hasattr(x, "get") else x.cpu().numpy() if hasattr(x, "cpu") else x


def last_axis(x: Any, index: int) -> Any:
    """x[..., index]; numba's arrays know no ellipsis."""
    return x[(slice(None),) * (len(x.shape) - 1) + (index,)] if hasattr(x, "copy_to_host") else x[..., index]


def of_host(x: Any) -> Block:
    x = np.asanyarray(x)
    if isinstance(x, np.ma.MaskedArray):
        raise InvalidArgument("x is a masked array, whose mask would be ignored; give x.filled(value) or x.compressed()")
    if x.dtype.name not in c.DTYPES or not x.dtype.isnative:
        raise UnsupportedDtype(f"x holds {x.dtype}; give one of {', '.join(c.DTYPES)}")
    if not x.flags.aligned or any(s % x.itemsize for s, n in zip(x.strides, x.shape) if n > 1):
        x = x.copy()
    return Block(x, x.ctypes.data, x.shape, tuple(s // x.itemsize for s in x.strides), x.dtype.name, x.itemsize)


def of_device(x: Any, device: int) -> Block:
    kind = f"{type(x).__module__}.{type(x).__qualname__}"
    library = _kinds.classify(x)[0]
    if library == _kinds.TORCH:
        _kinds.check_torch(x)
        shape, strides, address, itemsize = tuple(x.shape), x.stride(), x.data_ptr(), x.element_size()
    elif library in (_kinds.CUPY, _kinds.NUMBA):
        interface, itemsize = x.__cuda_array_interface__, x.dtype.itemsize
        shape, address = tuple(interface["shape"]), interface["data"][0]
        strides = tuple(s // itemsize for s in x.strides)
        if any(s % itemsize for s in x.strides):
            raise InvalidArgument(f"x has strides of {x.strides} bytes with elements of {itemsize}; give a packed copy")
    else:
        raise Unsupported(f"x is a {kind} in device memory, whose library lockstep.ranks can ask for no memory; give an array of PyTorch, CuPy or numba, "
                          "as torch.from_dlpack(x)")
    dtype = _kinds.dtype_name(x.dtype)
    if dtype not in c.DTYPES:
        raise UnsupportedDtype(f"x holds {dtype}; give one of {', '.join(c.DTYPES)}")
    return Block(x, address, shape, tuple(strides), dtype, itemsize, _kinds.current_stream(x, device))
