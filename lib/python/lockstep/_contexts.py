"""Contexts, and the scopes that say where the calls within them run."""
import sys
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

from . import _core
from ._errors import InvalidArgument, whole_number
from ._info import ModelInfo, TuningInfo

OPERATIONS = ("transpose", "permute", "square_sum", "reduce", "stencil", "shuffle", "normalize", "scan", "sums", "reduce_axes", "convert", "map")  # in the order of lockstep_op
FUNCTIONS = ("transpose", "permute", "sum", "square_sum", "norm", "max", "min", "argmax", "argmin", "count_nonzero", "any", "all", "prod", "nansum", "nanmax", "nanmin", "nanmean", 
             "segment_sum",
             "segment_square_sum", "segment_norm", "segment_max", "segment_min", "segment_argmax", "segment_argmin", "segment_count_nonzero", "segment_any", "segment_all", "segment_prod", "segment_nansum", "segment_nanmax", "segment_nanmin", 
             "stencil",
             "shuffle", "correlate1d", "correlate", "correlate_separable", "uniform_filter", "normalize", "rms_norm", "layer_norm", "rms_norm_backward", "layer_norm_backward", "softmax", "log_softmax", "logsumexp", "picked",
             "segment_softmax", "segment_log_softmax", "segment_logsumexp", "segment_picked",
             "cumsum", "cummax", "cummin", "dot", "squared_distance",
             "l1_distance", "l1_norm", "mean", "var", "std", "mean_var", "convert", "matrix_transpose", "vdot",
             "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "erf", "softplus")

_F = TypeVar("_F", bound=Callable[..., Any])
_A = TypeVar("_A")

# (context, backend, (variant of each operation), what was in force before), read by the extension at each call once a scope was entered.
_Settings = tuple["Context | None", str | None, tuple[str | None, ...], Any]
_scope: ContextVar[_Settings | None] = ContextVar("lockstep scope", default=None)
_NOTHING: _Settings = (None, None, (None,) * len(OPERATIONS), None)


class _Scope(ContextDecorator):
    """Changes the settings of this thread's or task's calls; `with` blocks nest, and one object may be entered again, by others too."""

    known = False

    def __init__(self, context: "Context | None" = None, backend: str | None = None, variants: dict[str, str] | None = None) -> None:
        self._change = context, backend, variants or {}

    def __enter__(self) -> Self:
        if not _Scope.known:
            _core.set_scope(_scope.get)
            _Scope.known = True
        before = _scope.get()
        context, backend, variants, _ = before or _NOTHING
        new_context, new_backend, new_variants = self._change
        if new_context is not None:  # its own backend counts, not that of a scope around
            context, backend, variants = new_context, None, _NOTHING[2]
        _scope.set((context, new_backend or backend, tuple(new_variants.get(op, old) for op, old in zip(OPERATIONS, variants)), before))
        return self

    def __exit__(self, *_: object) -> None:
        _scope.set((_scope.get() or _NOTHING)[3])

    def __call__(self, function: _F) -> _F:
        # What such a function computes, it computes after it has returned.
        import inspect
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__qualname__} is a generator function, which a scope cannot decorate; use a with block in it")
        if not inspect.iscoroutinefunction(function):
            return super().__call__(function)

        @wraps(function)
        async def within(*arguments: Any, **keywords: Any) -> Any:
            with self:
                return await function(*arguments, **keywords)

        return cast(_F, within)


class backend(_Scope):
    """Run the calls in a `with` block, or in a decorated function, on one backend.

    Parameters
    ----------
    name : str
        "auto", "cpu", "cuda" or "cuda:1". What cannot run here raises NoBackend at the call.

    Examples
    --------
    >>> with ls.backend("cpu"):
    ...     total = ls.sum(np.ones(1000))
    >>> ls.last_run().backend
    'cpu'
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise InvalidArgument(f"backend is {name!r}; give a str")
        super().__init__(backend=name)


class variants(_Scope):
    """Force variants in a `with` block or a decorated function.

    Parameters
    ----------
    **names : str
        transpose=, permute=, square_sum=, reduce=, stencil=, shuffle=, normalize=, scan=, sums=, reduce_axes=, convert= or map=,
        each a name of `variants_of`; "auto" lifts one.

    Examples
    --------
    >>> with ls.variants(reduce="ref"):
    ...     total = ls.sum(np.ones(1000))
    >>> ls.last_run().variant
    'ref'
    """

    def __init__(self, **names: str) -> None:
        for op, name in names.items():
            if op not in OPERATIONS or not isinstance(name, str):
                raise InvalidArgument(f"{op}={name!r}; name one of {', '.join(OPERATIONS)}, and a str")
        super().__init__(variants=names)


class Context(_core.Context):
    """A context of the C library: a backend, forced variants, threads, and what is kept between calls.

    Every function of lockstep is a method too. A `with` block makes it the context of the calls within, and closes it.

    Parameters
    ----------
    backend : str, optional
        "auto", "cpu", "cuda", "cuda:1"; else the variable LOCKSTEP_BACKEND, else "auto".
    variants : dict of str to str, optional
        Forced variants by operation.
    isa : {"baseline", "avx2", "avx512"}, optional
        The CPU's instruction set; the best by default. All give the same bits.
    threads : int, default 0
        CPU threads; 0 for what the machine allows.
    fallback : bool, default True
        Whether "auto" may move a call to another backend after a failure.

    Examples
    --------
    >>> with ls.Context(backend="cpu", threads=1) as context:
    ...     context.square_sum(np.arange(3.0))
    np.float64(5.0)
    """

    def __init__(self, backend: str | None = None, *, variants: dict[str, str] | str | None = None, isa: str | None = None,
                 threads: int = 0, fallback: bool = True) -> None:
        if isinstance(variants, dict):
            variants = ",".join(f"{op}={name}" for op, name in variants.items())
        super().__init__(backend, variants, isa, threads, fallback)
        self._entered: list[_Scope] = []

    def __enter__(self) -> Self:
        scope = _Scope(context=self)
        scope.__enter__()
        self._entered.append(scope)
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.pop().__exit__()
        if not self._entered:
            self.close()

    if TYPE_CHECKING:  # the functions of lockstep, which are set as methods below
        def transpose(self, x: _A, axes: Sequence[int] | None = None, *, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def permute(self, x: _A, axes: Sequence[int], *, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def sum(self, x: Any, axis: int | Sequence[int] | None = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None, initial: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def square_sum(self, x: Any, axis: int | Sequence[int] | None = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def norm(self, x: Any, axis: int | Sequence[int] | None = None, *, dtype: Any = None, keepdims: bool = False, ord: Any = 2, where: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def max(self, x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, where: Any = None, initial: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def min(self, x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, where: Any = None, initial: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def argmax(self, x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def argmin(self, x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def count_nonzero(self, x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, where: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def any(self, x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, where: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def all(self, x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, where: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def prod(self, x: Any, axis: int | Sequence[int] | None = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None, initial: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def nansum(self, x: Any, axis: int | Sequence[int] | None = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None, initial: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def nanmax(self, x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, where: Any = None, initial: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def nanmin(self, x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False, where: Any = None, initial: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def nanmean(self, x: Any, axis: int | Sequence[int] | None = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None, out: Any = None, **options: Any) -> Any: ...
        def segment_sum(self, x: Any, offsets: Any, *, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_square_sum(self, x: Any, offsets: Any, *, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_norm(self, x: Any, offsets: Any, *, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_max(self, x: Any, offsets: Any, *, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_min(self, x: Any, offsets: Any, *, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_argmax(self, x: Any, offsets: Any, *, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_argmin(self, x: Any, offsets: Any, *, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_count_nonzero(self, x: Any, offsets: Any, *, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_any(self, x: Any, offsets: Any, *, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_all(self, x: Any, offsets: Any, *, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_prod(self, x: Any, offsets: Any, *, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_nansum(self, x: Any, offsets: Any, *, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_nanmax(self, x: Any, offsets: Any, *, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_nanmin(self, x: Any, offsets: Any, *, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def stencil(self, x: _A, weights: Sequence[float] | Any, *, radius: int | None = None, mode: Literal["reflect", "mirror", "nearest", "wrap", "constant", "valid", "grid-mirror", "grid-wrap", "grid-constant"] = "reflect", cval: float = 0.0, sweeps: int = 1, form: Literal["auto", "general", "symmetric", "antisymmetric"] = "auto", axes: int | Sequence[int] | None = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def shuffle(self, x: _A, kind: Literal["idx", "up", "down", "xor"], operand: int, *, width: int = 32, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def normalize(self, x: _A, axis: int | Sequence[int] = -1, *, weight: Any = None, bias: Any = None, eps: float = 1e-12, residual: Any = None, residual_out: Any = None, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def rms_norm(self, x: _A, axis: int | Sequence[int] = -1, *, weight: Any = None, bias: Any = None, eps: float = 1e-06, residual: Any = None, residual_out: Any = None, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def layer_norm(self, x: _A, axis: int | Sequence[int] = -1, *, weight: Any = None, bias: Any = None, eps: float = 1e-05, residual: Any = None, residual_out: Any = None, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def rms_norm_backward(self, x: _A, gradient: Any, axis: int | Sequence[int] = -1, *, weight: Any = None, eps: float = 1e-06, residual: Any = None, weight_gradient: Any = None, bias_gradient: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def layer_norm_backward(self, x: _A, gradient: Any, axis: int | Sequence[int] = -1, *, weight: Any = None, eps: float = 1e-05, residual: Any = None, weight_gradient: Any = None, bias_gradient: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def softmax(self, x: _A, axis: int | Sequence[int] = -1, *, scale: float = 1.0, residual: Any = None, residual_out: Any = None, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def log_softmax(self, x: _A, axis: int | Sequence[int] = -1, *, scale: float = 1.0, residual: Any = None, residual_out: Any = None, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def logsumexp(self, x: Any, axis: int | Sequence[int] = -1, *, keepdims: bool = False, scale: float = 1.0, residual: Any = None, residual_out: Any = None, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def picked(self, x: Any, labels: Any, axis: int | Sequence[int] = -1, *, keepdims: bool = False, scale: float = 1.0, residual: Any = None, residual_out: Any = None, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_softmax(self, x: _A, offsets: Any, *, scale: float = 1.0, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def segment_log_softmax(self, x: _A, offsets: Any, *, scale: float = 1.0, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def segment_logsumexp(self, x: Any, offsets: Any, *, scale: float = 1.0, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def segment_picked(self, x: Any, labels: Any, offsets: Any, *, scale: float = 1.0, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def cumsum(self, x: Any, axis: int | None = None, *, dtype: Any = None, exclusive: bool = False, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def cummax(self, x: Any, axis: int | None = None, *, exclusive: bool = False, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def cummin(self, x: Any, axis: int | None = None, *, exclusive: bool = False, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def dot(self, x: Any, y: Any, axis: int | Sequence[int] | None = None, *, dtype: Any = None, keepdims: bool = False, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def squared_distance(self, x: Any, y: Any, axis: int | Sequence[int] | None = None, *, dtype: Any = None, keepdims: bool = False, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def l1_distance(self, x: Any, y: Any, axis: int | Sequence[int] | None = None, *, dtype: Any = None, keepdims: bool = False, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def l1_norm(self, x: Any, axis: int | Sequence[int] | None = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def mean(self, x: Any, axis: int | Sequence[int] | None = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def var(self, x: Any, axis: int | Sequence[int] | None = None, dtype: Any = None, *, correction: int = 0, ddof: int | None = None, keepdims: bool = False, where: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def std(self, x: Any, axis: int | Sequence[int] | None = None, dtype: Any = None, *, correction: int = 0, ddof: int | None = None, keepdims: bool = False, where: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def convert(self, x: Any, dtype: Any, *, axes: Sequence[int] | None = None, scale: float = 1.0, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def mean_var(self, x: Any, axis: int | Sequence[int] | None = None, dtype: Any = None, *, correction: int = 0, ddof: int | None = None, keepdims: bool = False, where: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> tuple[Any, Any]: ...
        def matrix_transpose(self, x: _A, *, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> _A: ...
        def vdot(self, x: Any, y: Any, *, dtype: Any = None, out: Any = None, stream: Any = None, backend: str | None = None, variant: str | None = None, check: bool = False, copy: bool | None = None) -> Any: ...
        def correlate1d(self, x: Any, weights: Sequence[float] | Any, axis: int = -1, *, mode: Literal["reflect", "mirror", "nearest", "wrap", "constant", "valid", "grid-mirror", "grid-wrap", "grid-constant"] = "reflect", cval: float = 0.0, origin: int = 0, out: Any = None, **options: Any) -> Any: ...
        def correlate(self, x: Any, weights: Any, *, axes: int | Sequence[int] | None = None, mode: Literal["reflect", "mirror", "nearest", "wrap", "constant", "valid", "grid-mirror", "grid-wrap", "grid-constant"] = "reflect", cval: float = 0.0, out: Any = None, **options: Any) -> Any: ...
        def correlate_separable(self, x: Any, *weights: Any, axes: int | Sequence[int] | None = None, mode: Literal["reflect", "mirror", "nearest", "wrap", "constant", "valid", "grid-mirror", "grid-wrap", "grid-constant"] = "reflect", cval: float = 0.0, out: Any = None, **options: Any) -> Any: ...
        def uniform_filter(self, x: Any, size: int | Sequence[int] = 3, *, axes: int | Sequence[int] | None = None, mode: Literal["reflect", "mirror", "nearest", "wrap", "constant", "valid", "grid-mirror", "grid-wrap", "grid-constant"] = "reflect", cval: float = 0.0, out: Any = None, **options: Any) -> Any: ...

    def model_info(self) -> ModelInfo:
        """Where the estimates of "auto" come from."""
        return ModelInfo(*self._model())

    def tuning_info(self) -> TuningInfo:
        """What plans of this context have measured."""
        path, reason, choices = self._tuning()
        return TuningInfo(path, reason, tuple(choices.splitlines()))


def _method(name: str) -> Callable[..., Any]:
    def call(self: Context, *arguments: Any, **keywords: Any) -> Any:
        return getattr(sys.modules["lockstep"], name)(*arguments, context=self, **keywords)
    call.__name__, call.__qualname__ = name, f"Context.{name}"
    call.__doc__ = f"`lockstep.{name}` on this context."
    return call


for _name in FUNCTIONS:
    setattr(Context, _name, _method(_name))

def default_context() -> _core.Context:
    """The context of calls that name none."""
    return _core.get_default()


def set_num_threads(n: int) -> None:
    """Set the CPU threads of calls that name no context; 0 for what the machine allows.

    Calls that already run are not changed. The bits never depend on it.
    """
    n = whole_number(n, "n")
    if n < 0:
        raise InvalidArgument(f"n is {n}; give 0 or more")
    _core.set_default(Context(threads=n))
    global _threads
    _threads = n


_threads = 0


def get_num_threads() -> int:
    """The CPU threads of calls that name no context."""
    return _threads or _core.device("cpu", 0)[6]


def synchronize() -> None:
    """Wait for queued calls of the default context, and raise the first failure."""
    _core.get_default().synchronize()


def release_stream(stream: Any, device: str = "cuda") -> None:
    """Give back what the default context keeps for a caller's stream, before the stream is destroyed."""
    _core.get_default().release_stream(device, stream)
