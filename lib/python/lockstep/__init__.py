"""Memory-bound array operations with the same bits on every machine.

Transposes, sums, norms, extremes, stencils and shuffles of NumPy, PyTorch, CuPy and JAX arrays and of whatever speaks
DLPack or the buffer protocol. A result is an array of the caller's kind, on the caller's device. For one order id
(`order`) its bits are the same for every library, layout, thread count, batch size, CPU and GPU.

>>> import numpy as np
>>> import lockstep as ls
>>> ls.square_sum(np.arange(4.0))
np.float64(14.0)
"""
from . import _core, _errors
from ._core import (argmax, argmin, max, min, norm, permute, segment_argmax, segment_argmin, segment_max, segment_min, segment_norm,
                    segment_square_sum, segment_sum, shuffle, square_sum, stencil, sum, transpose)
from ._errors import (BackendFailed, BackendLost, Empty, Error, Internal, InvalidArgument, NoBackend, NoVariant, OutOfMemory, Overflow,
                      Unsupported, UnsupportedDtype)
from ._stencils import correlate1d, laplace_weights, star

__version__ = _core.version
order = 1
permute_dims = permute
vector_norm = norm
matrix_transpose = transpose
