"""Plans: a call whose backend, variant and workspace are chosen once, for arrays of one layout.

Each function takes the arguments of lockstep's function of the same name; its array, or `lockstep.spec(...)`, says what
the plan's arrays will look like. A plan makes no copies: what the function would copy first is refused.

>>> import numpy as np, lockstep as ls
>>> x = np.ones((4, 1000), "f4")
>>> p = ls.plan.sum(x, axis=1)
>>> p(x)
array([1000., 1000., 1000., 1000.], dtype=float32)
"""
from functools import partial as _partial

from ._core import Plan, plan as _plan

__all__ = ["Plan"]
for _name in ("transpose", "permute", "sum", "square_sum", "norm", "max", "min", "argmax", "argmin", "segment_sum", "segment_square_sum",
              "segment_norm", "segment_max", "segment_min", "segment_argmax", "segment_argmin", "stencil", "shuffle"):
    globals()[_name] = _partial(_plan, _name)
    __all__.append(_name)
del _name
