"""Plans: a call whose backend, variant and workspace are chosen once, for arrays of one layout.

Each function takes the arguments of lockstep's function of the same name; its array, or `lockstep.spec(...)`, says what
the plan's arrays will look like. A plan makes no copies: what the function would copy first is refused. Weights, residuals and
offsets that it was made with are kept, and read at every call.

With ``tune=True`` the kernels that can take the call are timed, once for this machine and calls of this kind, and the
fastest is taken; it is remembered in a file (`lockstep.tuning_info`), for plans of later processes too. No bit depends on it.
What a plan has chosen: `Plan.backend`, `Plan.variant` and `Plan.why`.

A plan has memory for what its calls need besides the arrays, `Plan.workspace_bytes`. With ``workspace=True`` it has none, and each call
brings an array of that size as ``workspace=``, aligned to 256 bytes, say of PyTorch's own pool; it may do so with any plan.

>>> import numpy as np, lockstep as ls
>>> x = np.ones((4, 1000), "f4")
>>> p = ls.plan.sum(x, axis=1)
>>> p(x)
array([1000., 1000., 1000., 1000.], dtype=float32)
>>> p.backend, p.op
('cpu', 'reduce')
"""
from functools import partial as _partial

from ._core import Plan, plan as _plan

transpose = _partial(_plan, "transpose")
permute = _partial(_plan, "permute")
sum = _partial(_plan, "sum")
square_sum = _partial(_plan, "square_sum")
norm = _partial(_plan, "norm")
max = _partial(_plan, "max")
min = _partial(_plan, "min")
argmax = _partial(_plan, "argmax")
argmin = _partial(_plan, "argmin")
segment_sum = _partial(_plan, "segment_sum")
segment_square_sum = _partial(_plan, "segment_square_sum")
segment_norm = _partial(_plan, "segment_norm")
segment_max = _partial(_plan, "segment_max")
segment_min = _partial(_plan, "segment_min")
segment_argmax = _partial(_plan, "segment_argmax")
segment_argmin = _partial(_plan, "segment_argmin")
stencil = _partial(_plan, "stencil")
shuffle = _partial(_plan, "shuffle")
normalize = _partial(_plan, "normalize")
rms_norm = _partial(_plan, "rms_norm")
layer_norm = _partial(_plan, "layer_norm")
cumsum = _partial(_plan, "cumsum")
cummax = _partial(_plan, "cummax")
cummin = _partial(_plan, "cummin")
dot = _partial(_plan, "dot")
squared_distance = _partial(_plan, "squared_distance")
l1_distance = _partial(_plan, "l1_distance")
l1_norm = _partial(_plan, "l1_norm")
convert = _partial(_plan, "convert")
mean_var = _partial(_plan, "mean_var")

__all__ = ["Plan", "transpose", "permute", "sum", "square_sum", "norm", "max", "min", "argmax", "argmin", "segment_sum", "segment_square_sum", "segment_norm", "segment_max", "segment_min", "segment_argmax", "segment_argmin", "stencil", "shuffle", "normalize", "rms_norm", "layer_norm", "cumsum", "cummax", "cummin",
           "dot", "squared_distance", "l1_distance", "l1_norm", "convert", "mean_var"]
