"""lockstep.torch.deterministic: PyTorch's own functions with lockstep's bits, or an error."""
from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from . import _core
from ._errors import InvalidArgument, Unsupported

_aten: Any = torch.ops.aten
_Kernel = Callable[..., Any]
_Module = TypeVar("_Module", bound=torch.nn.Module)
_kernels: dict[Any, _Kernel] = {}

# One rounding an element, which IEEE 754 defines, or none: the same bits everywhere. Not here: what ends in another
# library's exp or log (lockstep's stand below), and sums, products and random numbers in orders of their own.
_EXACT = frozenset("""
    abs add.Tensor add_.Tensor alias all any as_strided bitwise_and bitwise_not bitwise_or bitwise_xor cat ceil clone constant_pad_nd
    copy_ copysign count_nonzero detach detach_ diagonal empty empty_like empty_strided eq equal expand eye fill fill_ flip floor full
    full_like gather ge gt index.Tensor index_select isfinite isinf isnan is_pinned isposinf isneginf le lift_fresh _local_scalar_dense
    logical_and logical_not logical_or logical_xor lt masked_fill masked_fill_ masked_select mul mul_ _foreach_mul_.Tensor ne neg neg_ new_empty
    new_empty_strided new_full new_ones new_zeros nonzero ones ones_like permute _pin_memory reciprocal repeat _reshape_alias
    reshape round scalar_tensor select select_backward sgn sign slice slice_backward split split_with_sizes squeeze
    squeeze_ stack sub.Tensor sub_.Tensor t threshold_backward _to_copy transpose tril triu trunc unbind unfold unsqueeze unsqueeze_
    _unsafe_view view view_as_complex view_as_real where zero_ zeros zeros_like
""".split())
_OF_COMPLEX = ("view_as_real", "view_as_complex")


def _allowed(op: Any) -> bool:
    return op.__name__ in _EXACT or op.__name__.partition(".")[0] in _EXACT


def _routed(*names: str) -> Callable[[_Kernel], _Kernel]:
    def keep(kernel: _Kernel) -> _Kernel:
        for name in names:
            packet, _, overload = name.partition(".")
            op = getattr(getattr(_aten, packet, None), overload or "default", None)
            if op is not None:  # not in every release
                _kernels[op] = kernel
        return kernel
    return keep


# Functions that are taken whole, before PyTorch takes them apart.
_layers: dict[Any, _Kernel] = {}


def _layer(*functions: Any) -> Callable[[_Kernel], _Kernel]:
    def keep(kernel: _Kernel) -> _Kernel:
        _layers.update((f, kernel) for f in functions if f is not None)
        return kernel
    return keep


def _axes(x: Tensor, dim: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if dim is None or not isinstance(dim, int) and len(dim) == 0:
        return None
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _to(x: Tensor, dtype: torch.dtype | None) -> Tensor:
    return x if dtype is None or x.dtype == dtype else x.to(dtype)


def _supported(x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        raise Unsupported(f"{x.dtype} is not summed by lockstep; give real and imaginary parts, torch.view_as_real(x)")
    return x


@_routed("sum", "sum.dim_IntList")
def _sum(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    wanted = dtype or (x.dtype if x.dtype.is_floating_point else torch.int64)
    if wanted.is_floating_point and not x.dtype.is_floating_point:
        x = x.to(torch.float64)
    elif dtype is not None and not wanted.is_floating_point:
        x = x.to(torch.int64)
    return _to(_wide_sum(x, dim, keepdim, wanted), wanted)


def _wide_sum(x: Tensor, dim: Any, keepdim: bool, wanted: torch.dtype) -> Tensor:
    # A result of 64 bits only where it is asked for: 32 bits come by one rounding of the sum.
    wide = "float64" if wanted == torch.float64 and _supported(x).dtype.is_floating_point else None
    result: Tensor = _core.sum(_supported(x), _axes(x, dim), keepdims=keepdim, dtype=wide)
    return result


@_routed("mean", "mean.dim")
def _mean(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    wanted = dtype or x.dtype
    total = _wide_sum(x if x.dtype.is_floating_point else x.to(torch.float64), dim, keepdim, torch.float64)
    axes = _axes(x, dim)
    n = math.prod(x.shape if axes is None else [x.shape[k] for k in axes])
    # By a tensor: by a number, a GPU multiplies with its reciprocal.
    return (total / torch.full_like(total, n)).to(wanted)


@_routed("linalg_vector_norm")
def _norm(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    if ord != 2:
        raise Unsupported(f"ord is {ord}; deterministic() has the 2-norm only: write another as a sum")
    wanted = dtype or x.dtype
    wide = "float64" if wanted == torch.float64 else None
    return _to(_core.norm(_supported(_to(x, dtype)), axis=_axes(x, dim), keepdims=keepdim, dtype=wide), wanted)


def _extreme(name: str) -> None:
    function, place = getattr(_core, name), getattr(_core, "arg" + name)

    @_routed("a" + name, name)
    def extreme(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        result: Tensor = function(x, _axes(x, dim), keepdims=keepdim)
        return result

    @_routed(name + ".dim")
    def with_places(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        return function(x, dim, keepdims=keepdim), place(x, dim, keepdims=keepdim)

    @_routed("arg" + name)
    def places(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        result: Tensor = place(x, dim, keepdims=keepdim)
        return result


_extreme("max")
_extreme("min")


@_routed("div.Tensor", "div.Scalar")
def _div(x: Tensor, other: Any) -> Tensor:
    # By a tensor of the device, whatever it was: by a number, a GPU multiplies with its reciprocal.
    if not isinstance(other, Tensor) or other.ndim == 0:
        kind = torch.result_type(x, other)
        value = other.item() if isinstance(other, Tensor) and other.device != x.device else other
        kind = kind if kind.is_floating_point else torch.get_default_dtype()
        other = torch.as_tensor(value, dtype=kind, device=x.device).expand(x.shape if x.ndim else (1,))
        return torch.div(x, other) if x.ndim else torch.div(x[None], other)[0]
    return torch.div(x, other)


@_routed("div_.Tensor", "div_.Scalar")
def _div_(x: Tensor, other: Any) -> Tensor:
    return x.copy_(_div(x, other))


# Of zeros, a CPU takes the one and a GPU the other; so the first here, and the first NaN.
def _larger(a: Tensor, b: Any, sign: int = 1) -> Tensor:
    other = b.to(a.device) if isinstance(b, Tensor) else torch.as_tensor(b, dtype=torch.result_type(a, b), device=a.device)
    return torch.where(torch.isnan(other) | (a < other if sign > 0 else a > other), other, a)


_routed("maximum")(lambda a, b: torch.where(torch.isnan(a), a, _larger(a, b)))
_routed("minimum")(lambda a, b: torch.where(torch.isnan(a), a, _larger(a, b, -1)))
_routed("relu")(lambda x: torch.where(x <= 0, torch.zeros_like(x), x))
_routed("relu_")(lambda x: x.copy_(torch.where(x <= 0, torch.zeros_like(x), x)))


@_routed("clamp", "clamp_min", "clamp_max")
def _clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    x = x if min is None else _larger(x, min)
    return x if max is None else _larger(x, max, -1)


_kernels[_aten.clamp_max.default] = lambda x, max: _clamp(x, None, max)


@_routed("arange", "arange.start", "arange.start_step")
def _arange(*bounds: Any, dtype: torch.dtype | None = None, **rest: Any) -> Tensor:
    if not all(isinstance(b, int) for b in bounds):
        raise Unsupported("a range of floats has other roundings on a GPU than on a CPU; deterministic() has those of integers")
    return _to(torch.arange(*bounds, dtype=torch.int64, **rest), dtype)


@_routed("scatter.src", "scatter_.src", "scatter.value", "scatter_.value")
def _scatter(x: Tensor, dim: int, index: Tensor, source: Any) -> Tensor:
    if index.ndim and index.shape[dim] > 1:
        raise Unsupported("of several elements that are scattered to one place any may stay; deterministic() scatters only one along each line")
    return x.scatter_(dim, index, source)


_kernels[_aten.scatter.src] = _kernels[_aten.scatter.value] = lambda x, dim, index, source: _scatter(x.clone(), dim, index, source)


def _scaled(name: str) -> None:
    # alpha times other and the sum in two roundings: a GPU would take one.
    plain, in_place = getattr(torch, name), getattr(Tensor, name + "_")

    @_routed(name + ".Tensor", name + ".Scalar")
    def kernel(x: Any, other: Any, alpha: Any = 1) -> Tensor:
        result: Tensor = plain(x, other if alpha == 1 else other * alpha)
        return result

    @_routed(name + "_.Tensor", name + "_.Scalar")
    def kernel_(x: Tensor, other: Any, alpha: Any = 1) -> Tensor:
        result: Tensor = in_place(x, other if alpha == 1 else other * alpha)
        return result


_scaled("add")
_scaled("sub")


@_routed("addcmul")
def _addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    return x + (a * b if value == 1 else a * b * value)


@_routed("addcmul_")
def _addcmul_(x: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    return x.copy_(_addcmul(x, a, b, value=value))


@_routed("pow.Tensor_Scalar")
def _pow(x: Tensor, exponent: Any) -> Tensor:
    if exponent == 1:
        return x.clone()
    if exponent == 2:
        return x * x
    if exponent == 0.5:
        return _sqrt(x)
    if exponent == 3:
        return x * x * x
    raise Unsupported(f"a power of {exponent} has other bits on a GPU than on a CPU; deterministic() has 1, 2, 3 and 0.5")


@_routed("mse_loss")
def _mse_loss(x: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    squares = (x - target) * (x - target)
    return squares if reduction == 0 else _mean(squares) if reduction == 1 else _sum(squares)


@_routed("mse_loss_backward")
def _mse_loss_backward(g: Tensor, x: Tensor, target: Tensor, reduction: int) -> Tensor:
    d = (x - target) * 2 * g
    return _div(d, x.numel()) if reduction == 1 else d


# ---- functions, which lockstep rounds correctly ------------------------------
def _of_floats(x: Tensor) -> Tensor:
    if x.dtype == torch.float64 or x.dtype.is_complex:
        raise Unsupported(f"a function of {x.dtype} has other bits on a GPU than on a CPU; deterministic() has those of 16- and 32-bit floats")
    return x if x.dtype.is_floating_point else x.to(torch.get_default_dtype())


def _function(name: str) -> None:
    function = getattr(_core, name)

    @_routed(name)
    def kernel(x: Tensor) -> Tensor:
        result: Tensor = function(_of_floats(x))
        return result

    _routed(name + "_")(lambda x: x.copy_(kernel(x)))


for _name in ("exp", "expm1", "log", "log1p", "rsqrt", "tanh", "sigmoid", "silu", "erf"):
    _function(_name)


@_routed("gelu")
def _gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    result: Tensor = (_core.gelu_tanh if approximate == "tanh" else _core.gelu)(_of_floats(x))
    return result


@_routed("softplus")
def _softplus(x: Tensor, beta: Any = 1, threshold: Any = 20) -> Tensor:
    if beta != 1 or threshold < 20:  # from 20 on the correctly rounded value of a float is x
        raise Unsupported(f"beta is {beta} and threshold {threshold}; deterministic() has softplus with beta 1 and threshold 20")
    result: Tensor = _core.softplus(_of_floats(x))
    return result


def nearest_root(x: Tensor) -> Tensor:
    """The roots of doubles: PyTorch's, corrected by what their squares, in two parts, leave of x."""
    y = torch.sqrt(x)
    c = y * 134217729.0
    high = c - (c - y)
    low, square = y - high, y * y
    rest = (x - square) - (((high * high - square) + (high * low) * 2.0) + low * low)
    better = y + rest / (y * 2.0)
    return torch.where(torch.isfinite(better), better, y)


@_routed("sqrt")
def _sqrt(x: Tensor) -> Tensor:
    # torch.sqrt asks MKL on a CPU, which does not give the nearest number always.
    result: Tensor = nearest_root(x) if x.dtype == torch.float64 else _core.sqrt(_of_floats(x))
    return result


_routed("sqrt_")(lambda x: x.copy_(_sqrt(x)))


def _slope(name: str, g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    from ._torch_functions import gradient

    return gradient(name, g, x, y)


_routed("tanh_backward")(lambda g, y: _slope("tanh", g, y, y))
_routed("sigmoid_backward")(lambda g, y: _slope("sigmoid", g, y, y))
_routed("silu_backward")(lambda g, x: _slope("silu", g, x, _core.silu(_of_floats(x))))
_routed("softplus_backward")(lambda g, x, beta, threshold: _slope("softplus", g, x, _softplus(x, beta, threshold)))


@_routed("gelu_backward")
def _gelu_backward(g: Tensor, x: Tensor, *, approximate: str = "none") -> Tensor:
    return _slope("gelu_tanh" if approximate == "tanh" else "gelu", g, x, _gelu(x, approximate=approximate))


# ---- softmax -----------------------------------------------------------------
def _exponentials(name: str, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    result: Tensor = getattr(_core, name)(x if x.ndim else x[None], dim, **({"dtype": torch.float32} if half_to_float else {}))
    return result.reshape(x.shape)


for _name in ("softmax", "log_softmax"):
    _routed("_" + _name)(partial(_exponentials, _name))


@_routed("logsumexp")
def _logsumexp(x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    if x.ndim == 0:
        return x.clone()
    result: Tensor = _core.logsumexp(x, _axes(x, dim) or tuple(range(x.ndim)), keepdims=keepdim)
    return result


@_routed("_softmax_backward_data")
def _softmax_backward(g: Tensor, y: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    wide, factor = g.double(), y.double()
    return (factor * (wide - _wide_sum(wide * factor, dim, True, torch.float64))).to(dtype)


@_routed("_log_softmax_backward_data")
def _log_softmax_backward(g: Tensor, y: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    wide = g.double()
    return (wide - _core.exp(_of_floats(y)).double() * _wide_sum(wide, dim, True, torch.float64)).to(dtype)


# ---- products of matrices, where they are asked for --------------------------
def _mm(a: Tensor, b: Tensor) -> Tensor:
    """a @ b: each element a dot product of lockstep's, whose products are exact in f64."""
    if a.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise Unsupported(f"a product of matrices of {a.dtype} would round its terms; deterministic() has those of 16- and 32-bit floats")
    (m, k), n = a.shape, b.shape[1]
    if n > m:  # a dot product is the same the other way round
        return _mm(b.T, a.T).T.contiguous()
    if m * k * n == 0:
        return a.new_zeros(m, n)
    rows, columns = a.contiguous(), b.T.contiguous()
    if m * k < (1 << 20 if a.is_cuda else 1 << 14):
        return _of_products(rows[None], columns[None])[0]
    result = a.new_empty(n, m)  # a call for each column, which all rows share
    for column, to in zip(columns, result):
        _core.dot(rows, column.expand(m, k), -1, dtype=a.dtype, out=to)
    return result.T.contiguous()


def _of_products(a: Tensor, b: Tensor) -> Tensor:
    """The dot products of all rows of a and b in each of a batch, by products in memory: more of it, but fewer calls."""
    (count, m, k), n = a.shape, b.shape[1]
    room = 1 << 22 if a.is_cuda else 1 << 16  # products at a time; on a CPU they stay in its cache
    matrices, lines = max(1, room // (m * n * k)), max(1, room // (n * k))
    result = a.new_empty(count, m, n)
    for first in range(0, count, matrices):
        some = slice(first, first + matrices)
        right = b[some].to(torch.float64)[:, None]
        for line in range(0, m, lines):
            products = a[some, line:line + lines, None].to(torch.float64) * right
            result[some, line:line + lines] = _core.sum(products, -1, dtype=a.dtype)
    return result


def _bmm(a: Tensor, b: Tensor) -> Tensor:
    (count, m, k), n = a.shape, b.shape[2]
    if count * m * k * n and max(m, n) * k < (1 << 20 if a.is_cuda else 1 << 14) and a.dtype != torch.float64:
        return _of_products(a.contiguous(), b.mT.contiguous())
    return torch.stack([_mm(x, y) for x, y in zip(a, b)]) if count else a @ b


_products: dict[Any, _Kernel] = {
    _aten.mm.default: _mm,
    _aten.addmm.default: lambda c, a, b, *, beta=1, alpha=1: _combine(c, _mm(a, b), beta, alpha),
    _aten.bmm.default: _bmm,
    _aten.dot.default: lambda a, b: _mm(a[None], b[:, None])[0, 0],
    _aten.mv.default: lambda a, b: _mm(a, b[:, None])[:, 0],
}


def _combine(c: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    return (c if beta == 1 else c * beta) + (product if alpha == 1 else product * alpha)


class _Depth(threading.local):
    depth = 0


_kernel_runs = _Depth()


class _Whole(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _layers.get(func, func)(*args, **(kwargs or {}))


# Of each thread: the blocks of deterministic() that it is in, and whether each was begun by the call of a patched model.
class _Entered(threading.local):
    def __init__(self) -> None:
        self.by_call: list[bool] = []


_entered = _Entered()


class _Calls:
    """The blocks of a patched model's calls. Copies of the model share nothing but whether products are computed."""

    def __init__(self, matmul: bool) -> None:
        self.matmul, self.open = matmul, threading.local()

    def __deepcopy__(self, memo: Any) -> _Calls:
        copied: _Calls = memo.setdefault(id(self), _Calls(self.matmul))
        return copied

    def __reduce__(self) -> Any:
        return _Calls, (self.matmul,)


_uncompiled: Callable[[_Kernel], _Kernel] = torch.compiler.disable


class _Hook:
    def __init__(self, calls: _Calls) -> None:
        self.calls = calls


class _Begin(_Hook):
    @_uncompiled
    def __call__(self, model: Any, args: Any) -> None:
        block = deterministic(matmul=self.calls.matmul)
        block._by_call = True
        block.__enter__()
        self.calls.open.__dict__.setdefault("blocks", []).append(block)


class _End(_Hook):
    @_uncompiled
    def __call__(self, model: Any, args: Any, result: Any) -> None:
        blocks = self.calls.open.__dict__.get("blocks")
        if not blocks:  # a hook before ours failed
            return
        blocks.pop().__exit__(None, None, None)
        if torch.is_grad_enabled() and all(_entered.by_call) and any(x.requires_grad for x in _tensors(result)):
            raise Unsupported("the result of a patched model needs a gradient, and backward() would run outside of deterministic(), with other bits; "
                              "call the model in torch.inference_mode(), or train in `with deterministic():`")


def _tensors(x: Any) -> list[Tensor]:
    return [one for one in torch.utils._pytree.tree_leaves(x) if isinstance(one, Tensor)]


class deterministic(TorchDispatchMode):
    """Give PyTorch's own functions lockstep's bits in a `with` block; refuse those that have none.

    Within the block `sum`, `mean`, `amax`, `amin`, `max`, `min`, `argmax`, `argmin`, the 2-norm and `mse_loss` are computed
    by lockstep, also inside gradients; so are softmax, log_softmax, logsumexp and cross_entropy, exp, expm1, log, log1p, rsqrt, tanh,
    sigmoid, silu, gelu, erf and softplus of 16- and 32-bit floats, layer_norm and rms_norm, embeddings and rows taken by index,
    clip_grad_norm_, and the steps of SGD, Adam and AdamW with ``foreach=False``; functions of one rounding an element (sums and
    products of two tensors, roots, comparisons, copies, views, ...) stay PyTorch's; everything else raises Unsupported. So what
    the block computes has the same bits on a CPU and on a GPU, for every number of threads, and for each row of a batch alone.
    (The gradient of a weight is a sum over the batch, so it has other bits for another batch.) Compiled functions run eagerly in it.

    Parameters
    ----------
    matmul : bool, default False
        Compute products of matrices of f16, bf16 and f32 too, and attention: each element is `lockstep.dot` of a row and a
        column, whose products are exact in f64. This takes many times PyTorch's own time; the page on Python says how many.

    Examples
    --------
    >>> import torch, lockstep.torch as lt  # doctest: +SKIP
    >>> with lt.deterministic():  # doctest: +SKIP
    ...     loss = (model(x) - y).square().mean()
    ...     loss.backward()

    A model that serves others takes one line, and is called as before:

    >>> lt.deterministic(matmul=True).patch(model)  # doctest: +SKIP
    >>> with torch.inference_mode():  # doctest: +SKIP
    ...     model(x)
    """

    def __init__(self, *, matmul: bool = False) -> None:
        super().__init__()
        self._matmul = matmul
        self._within: list[Any] = []
        self._by_call = False

    def patch(self, model: _Module) -> _Module:
        """Make every call of a model run in a block of its own, for servers and programs whose calls cannot be wrapped.

        The model is changed in place by hooks: its parameters, its class and how it is saved stay as they are, and a copy of it is
        patched too. Calls may come from several threads. Of a model that is part of another, the part is patched.

        Parameters
        ----------
        model : torch.nn.Module
            Not compiled; torch.compile of a patched model runs it eagerly.

        Returns
        -------
        torch.nn.Module
            The model. `unpatch` takes the hooks off again.

        Raises
        ------
        Unsupported
            At a call whose result needs a gradient: backward() would run outside of the block, with PyTorch's bits. Train in a `with` block, which
            may call a patched model, or call the model in torch.inference_mode().
        """
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"model is a {type(model).__name__}; give a torch.nn.Module, or write `with deterministic():` around the calls")
        if any(isinstance(hook, _Begin) for hook in model._forward_pre_hooks.values()):
            raise InvalidArgument("model is patched already; unpatch it first")
        calls = _Calls(self._matmul)
        model.register_forward_pre_hook(_Begin(calls), prepend=True)
        model.register_forward_hook(_End(calls), always_call=True)
        return model

    @staticmethod
    def unpatch(model: _Module) -> _Module:
        """Undo `patch`; gives the model."""
        for hooks in (model._forward_pre_hooks, model._forward_hooks):
            for key, hook in list(hooks.items()):
                if isinstance(hook, (_Begin, _End)):
                    del hooks[key]
                    model._forward_hooks_always_called.pop(key, None)
        return model

    def __enter__(self) -> Any:
        # A function compiled beforehand would not come by here.
        stance = torch.compiler.set_stance("force_eager")
        stance.__enter__()
        whole = _Whole()
        whole.__enter__()
        self._within.append((whole, stance))
        _entered.by_call.append(self._by_call)
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        _entered.by_call.pop()
        for scope in self._within.pop():
            scope.__exit__(*exception)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if _kernel_runs.depth:  # of a block within
            return func(*args, **given)
        if any(isinstance(a, Tensor) and a.dtype.is_complex for a in args) and func.__name__.partition(".")[0] not in _OF_COMPLEX:
            raise Unsupported(f"{func} of complex numbers: lockstep has none; give torch.view_as_real(x)")
        kernel = _kernels.get(func) or (_products.get(func) if self._matmul else None)
        if kernel is not None:
            _kernel_runs.depth += 1
            try:
                with torch.no_grad():  # below autograd tensors still say that they require a gradient
                    return kernel(*args, **given)
            finally:
                _kernel_runs.depth -= 1
        if func.namespace in ("lockstep", "profiler") or func.namespace in ("aten", "prim") and _allowed(func):
            return func(*args, **given)
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
            # In inference mode functions that PyTorch makes of others come whole, as linear.
            TorchDispatchMode.__enter__(self)
            try:
                return func.decompose(*args, **given)
            finally:
                TorchDispatchMode.__exit__(self, None, None, None)
        hint = ("; deterministic(matmul=True) computes it slowly" if func in _products else
                "; give the optimizer foreach=False" if "_foreach_" in func.__name__ else "")
        raise Unsupported(f"{func} may have other bits on another device or for another batch, and lockstep has none for it{hint}; compute it "
                          "outside of deterministic(), or write it with sums, norms and functions of one rounding")
