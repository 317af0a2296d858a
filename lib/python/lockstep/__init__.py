"""Memory-bound array operations with the same bits on every machine.

Transposes, sums, dot products, means and variances, running sums, norms, extremes, stencils, shuffles, normalised rows, softmax and functions of NumPy,
PyTorch, CuPy and JAX arrays and of anything that supports DLPack or the buffer protocol. A result is an array of the caller's kind, on the caller's device. For one order id
(`order`) its bits are the same for every library, layout, thread count, batch size, CPU and GPU.

>>> import numpy as np
>>> import lockstep as ls
>>> ls.square_sum(np.arange(4.0))
np.float64(14.0)
"""
from . import _load  # noqa: F401  (first: it finds what the extension needs)
from . import _core, group, plan
from ._accelerate import accelerate
from ._contexts import (Context, backend, default_context, get_num_threads, release_stream, set_num_threads, synchronize,
                        variants)
from ._core import (Buffer, GroupPlan, Plan, all, any, argmax, argmin, convert, count_nonzero, cummax, cummin, cumsum,
                    dot, erf, exp, expm1, gelu, gelu_tanh, l1_distance, l1_norm, layer_norm, layer_norm_backward, log, log1p, log_softmax,
                    logsumexp, matrix_transpose, max, mean, mean_var, min, nanmax, nanmin, nansum, norm, normalize,
                    permute, picked, prod, reciprocal, rms_norm, rms_norm_backward, rsqrt, segment_all, segment_any, segment_argmax,
                    segment_argmin, segment_count_nonzero, segment_log_softmax, segment_logsumexp, segment_max,
                    segment_min, segment_nanmax, segment_nanmin, segment_nansum, segment_norm, segment_picked,
                    segment_prod, segment_softmax, segment_square_sum, segment_sum, shuffle, sigmoid, silu, softmax,
                    softplus, sqrt, square_sum, squared_distance, std, stencil, sum, tanh, transpose, var, vdot)
from ._digest import digest
from ._errors import (BackendFailed, BackendLost, Empty, Error, Internal, InvalidArgument, NoBackend, NoVariant, OutOfMemory,
                      Overflow, Unsupported, UnsupportedDtype)
from ._filters import correlate, correlate_separable, uniform_filter
from ._info import (BackendInfo, DeviceInfo, Digest, ModelInfo, RunInfo, TuningInfo, VariantInfo, backends, devices, empty, get_include,
                    get_library, last_run, model_info, record, spec, tuning_info, variants_of, verify)
from ._stencils import correlate1d, laplace_weights, star
from ._where import nanmean
from .group import norms

__version__ = _core.version
order = 1  # the id of the order that every sum and stencil follows
# The Array API's names.
permute_dims = permute
vector_norm = norm

__all__ = ["BackendFailed", "BackendInfo", "BackendLost", "Buffer", "Context", "DeviceInfo", "Digest", "Empty", "Error",
           "GroupPlan", "Internal", "InvalidArgument", "ModelInfo", "NoBackend", "NoVariant", "OutOfMemory", "Overflow",
           "Plan", "RunInfo", "TuningInfo", "Unsupported", "UnsupportedDtype", "VariantInfo", "accelerate", "all", "any",
           "argmax", "argmin", "backend", "backends", "convert", "correlate", "correlate1d", "correlate_separable",
           "count_nonzero", "cummax", "cummin", "cumsum", "default_context", "devices", "digest", "dot", "empty", "erf",
           "exp", "expm1", "gelu", "gelu_tanh", "get_include", "get_library", "get_num_threads", "group", "l1_distance",
           "l1_norm", "laplace_weights", "last_run", "layer_norm", "layer_norm_backward", "log", "log1p", "log_softmax", "logsumexp",
           "matrix_transpose", "max", "mean", "mean_var", "min", "model_info", "nanmax", "nanmean", "nanmin", "nansum",
           "norm", "normalize", "norms", "order", "permute", "permute_dims", "picked", "plan", "prod", "reciprocal",
           "record", "release_stream", "rms_norm", "rms_norm_backward", "rsqrt", "segment_all", "segment_any", "segment_argmax",
           "segment_argmin", "segment_count_nonzero", "segment_log_softmax", "segment_logsumexp", "segment_max",
           "segment_min", "segment_nanmax", "segment_nanmin", "segment_nansum", "segment_norm", "segment_picked",
           "segment_prod", "segment_softmax", "segment_square_sum", "segment_sum", "set_num_threads", "shuffle",
           "sigmoid", "silu", "softmax", "softplus", "spec", "sqrt", "square_sum", "squared_distance", "star", "std",
           "stencil", "sum", "synchronize", "tanh", "transpose", "tuning_info", "uniform_filter", "var", "variants",
           "variants_of", "vdot", "vector_norm", "verify"]
