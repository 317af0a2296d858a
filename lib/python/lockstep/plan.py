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
from typing import Any as _Any

from . import _core
from ._core import Plan, plan as _plan


class _Maker:
    """A function that makes plans."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = __name__
        self.__doc__ = (f"A plan of `lockstep.{name}` for arrays like `x`, with its other arguments but out, stream and check, which the plan's calls take.\n\n"
                        "With tune=True the kernels are timed and the fastest is taken; with workspace=True each call brings its own workspace.")

    def __call__(self, x: _Any, *arguments: _Any, **keywords: _Any) -> Plan:
        return _plan(self.__name__, x, *arguments, **keywords)

    def __repr__(self) -> str:
        return f"<function lockstep.plan.{self.__name__}>"

    @property
    def __signature__(self) -> _Any:
        import inspect
        of_function = inspect.signature(getattr(_core, self.__name__))
        own = [p for p in of_function.parameters.values() if p.name not in ("out", "stream", "check")]
        more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=bool) for name in ("tune", "workspace")]
        return inspect.Signature(own + more, return_annotation=Plan)


transpose = _Maker("transpose")
permute = _Maker("permute")
sum = _Maker("sum")
square_sum = _Maker("square_sum")
norm = _Maker("norm")
max = _Maker("max")
min = _Maker("min")
argmax = _Maker("argmax")
argmin = _Maker("argmin")
count_nonzero = _Maker("count_nonzero")
any = _Maker("any")
all = _Maker("all")
prod = _Maker("prod")
nansum = _Maker("nansum")
nanmax = _Maker("nanmax")
nanmin = _Maker("nanmin")
segment_sum = _Maker("segment_sum")
segment_square_sum = _Maker("segment_square_sum")
segment_norm = _Maker("segment_norm")
segment_max = _Maker("segment_max")
segment_min = _Maker("segment_min")
segment_argmax = _Maker("segment_argmax")
segment_argmin = _Maker("segment_argmin")
segment_count_nonzero = _Maker("segment_count_nonzero")
segment_any = _Maker("segment_any")
segment_all = _Maker("segment_all")
segment_prod = _Maker("segment_prod")
segment_nansum = _Maker("segment_nansum")
segment_nanmax = _Maker("segment_nanmax")
segment_nanmin = _Maker("segment_nanmin")
stencil = _Maker("stencil")
shuffle = _Maker("shuffle")
normalize = _Maker("normalize")
rms_norm = _Maker("rms_norm")
layer_norm = _Maker("layer_norm")
rms_norm_backward = _Maker("rms_norm_backward")
layer_norm_backward = _Maker("layer_norm_backward")
softmax = _Maker("softmax")
log_softmax = _Maker("log_softmax")
logsumexp = _Maker("logsumexp")
picked = _Maker("picked")
segment_softmax = _Maker("segment_softmax")
segment_log_softmax = _Maker("segment_log_softmax")
segment_logsumexp = _Maker("segment_logsumexp")
segment_picked = _Maker("segment_picked")
cumsum = _Maker("cumsum")
cummax = _Maker("cummax")
cummin = _Maker("cummin")
dot = _Maker("dot")
squared_distance = _Maker("squared_distance")
l1_distance = _Maker("l1_distance")
l1_norm = _Maker("l1_norm")
convert = _Maker("convert")
mean_var = _Maker("mean_var")
exp = _Maker("exp")
expm1 = _Maker("expm1")
log = _Maker("log")
log1p = _Maker("log1p")
sqrt = _Maker("sqrt")
rsqrt = _Maker("rsqrt")
reciprocal = _Maker("reciprocal")
tanh = _Maker("tanh")
sigmoid = _Maker("sigmoid")
silu = _Maker("silu")
gelu = _Maker("gelu")
gelu_tanh = _Maker("gelu_tanh")
erf = _Maker("erf")
softplus = _Maker("softplus")


__all__ = ["Plan", "transpose", "permute", "sum", "square_sum", "norm", "max", "min", "argmax", "argmin", "count_nonzero", "any", "all", "prod", "nansum", "nanmax", "nanmin", "segment_sum", "segment_square_sum", "segment_norm", "segment_max", "segment_min", "segment_argmax", "segment_argmin", "segment_count_nonzero", "segment_any", "segment_all", "segment_prod", "segment_nansum", "segment_nanmax", "segment_nanmin", "stencil", "shuffle", "normalize", "rms_norm", "layer_norm", "rms_norm_backward", "layer_norm_backward", "softmax", "log_softmax", "logsumexp", "picked", "segment_softmax", "segment_log_softmax", "segment_logsumexp", "segment_picked", "cumsum", "cummax", "cummin",
           "dot", "squared_distance", "l1_distance", "l1_norm", "convert", "mean_var",
           "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "erf", "softplus"]
