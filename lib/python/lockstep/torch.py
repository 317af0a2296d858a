"""The operations as operators of PyTorch: with gradients, for torch.compile, torch.export, vmap and CUDA graphs.

`import lockstep.torch` registers ``torch.ops.lockstep.*`` for CPU and CUDA tensors; the functions here call them. Results
have the bits of the functions of `lockstep`; so have gradients, which are made of the same operations, copies and products.
Axes go by PyTorch's names too: ``dim`` is ``axis``, ``keepdim`` is ``keepdims``.

>>> import torch, lockstep.torch as lt  # doctest: +SKIP
>>> x = torch.randn(3, 4, requires_grad=True)  # doctest: +SKIP
>>> lt.norm(x, axis=1).sum().backward()  # doctest: +SKIP
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from . import _core
from ._deterministic import deterministic
from ._errors import InvalidArgument, whole_numbers
from ._torch_clip import clip_grad_norm_, total_norm

__all__ = ["argmax", "argmin", "clip_grad_norm_", "convert", "cumsum", "deterministic", "dot", "erf", "exp", "expm1", "gelu", "gelu_tanh",
           "layer_norm", "log", "log1p", "log_softmax", "logsumexp", "max", "mean", "min", "norm", "normalize", "permute", "picked", "reciprocal", "rms_norm", "rsqrt",
           "segment_argmax", "segment_argmin", "segment_log_softmax", "segment_logsumexp", "segment_max", "segment_min", "segment_norm",
           "segment_picked", "segment_softmax", "segment_square_sum", "segment_sum", "shuffle",
           "sigmoid", "silu", "softmax", "softplus", "sqrt", "square_sum", "std", "stencil", "sum", "tanh", "total_norm", "transpose", "var"]

_torch: Any = torch.library
_library = _torch.Library("lockstep", "DEF")
_SUMS, _EXTREMES, _PLACES = ("sum", "square_sum", "norm"), ("max", "min"), ("argmax", "argmin")
_REDUCTION = "(Tensor x, int[]? axis=None, bool keepdims=False"
for _name in _SUMS:
    _library.define(f"{_name}{_REDUCTION}, ScalarType? dtype=None) -> Tensor")
    _library.define(f"segment_{_name}(Tensor x, Tensor offsets, ScalarType? dtype=None) -> Tensor")
for _name in (*_EXTREMES, *_PLACES):
    _library.define(f"{_name}{_REDUCTION}) -> Tensor")
    _library.define(f"segment_{_name}(Tensor x, Tensor offsets) -> Tensor")
_library.define("transpose(Tensor x) -> Tensor")
_library.define("permute(Tensor x, int[] axes) -> Tensor")
_library.define("shuffle(Tensor x, str kind, int operand, int width=32) -> Tensor")
_ops: Any = torch.ops.lockstep


def _axes(x: Tensor, axis: Sequence[int] | None) -> list[int]:
    return list(range(x.ndim)) if axis is None else [k % x.ndim for k in axis] if x.ndim else []


def _plain(x: Tensor) -> Tensor:
    # Below autograd a tensor still says that it requires a gradient.
    return x.detach() if x.requires_grad else x


def _kept(dtype: torch.dtype | None) -> dict[str, Any]:
    return {} if dtype is None else {"dtype": dtype}


def _reduced_shape(x: Tensor, axis: Sequence[int] | None, keepdims: bool) -> list[int]:
    reduced = _axes(x, axis)
    return [1 if k in reduced else n for k, n in enumerate(x.shape) if keepdims or k not in reduced]


_kernels: dict[str, Callable[..., Any]] = {}


def _register(name: str, kernel: Callable[..., Any], fake: Callable[..., Any]) -> None:
    _kernels[name] = kernel
    for key in ("CPU", "CUDA"):
        _library.impl(name, kernel, key)
    _torch.register_fake(f"lockstep::{name}", fake, lib=_library)


# ---- kernels, and what they would give ---------------------------------------
def _result_dtype(name: str, x: Tensor, dtype: torch.dtype | None) -> torch.dtype:
    if name in _PLACES:
        return torch.int64
    if name in _EXTREMES:
        return x.dtype
    if x.dtype.is_floating_point:
        return dtype or (torch.float64 if x.dtype == torch.float64 else torch.float32)
    return (dtype or torch.float64) if name == "norm" else torch.int64


def _reduction(name: str) -> None:
    function = getattr(_core, name)

    def kernel(x: Tensor, axis: Sequence[int] | None = None, keepdims: bool = False, dtype: torch.dtype | None = None) -> Tensor:
        result: Tensor = function(_plain(x), axis=None if axis is None else tuple(axis), keepdims=keepdims, **_kept(dtype))
        return result

    def fake(x: Tensor, axis: Sequence[int] | None = None, keepdims: bool = False, dtype: torch.dtype | None = None) -> Tensor:
        return x.new_empty(_reduced_shape(x, axis, keepdims), dtype=_result_dtype(name, x, dtype))

    _register(name, kernel, fake)


def _segment(name: str) -> None:
    function = getattr(_core, f"segment_{name}")

    def kernel(x: Tensor, offsets: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        result: Tensor = function(_plain(x), offsets, **_kept(dtype))
        return result

    def fake(x: Tensor, offsets: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        return x.new_empty([offsets.shape[0] - 1, *x.shape[1:]], dtype=_result_dtype(name, x, dtype))

    _register(f"segment_{name}", kernel, fake)


for _name in (*_SUMS, *_EXTREMES, *_PLACES):
    _reduction(_name)
    _segment(_name)


_register("transpose", lambda x: _core.matrix_transpose(_plain(x)), lambda x: x.new_empty([*x.shape[:-2], x.shape[-1], x.shape[-2]]))
_register("permute", lambda x, axes: _core.permute(_plain(x), tuple(axes)), lambda x, axes: x.new_empty([x.shape[k] for k in axes]))
_register("shuffle", lambda x, kind, operand, width=32: _core.shuffle(_plain(x), kind, operand, width=width),
          lambda x, kind, operand, width=32: x.new_empty(x.shape))


# ---- the operations under torch.func -----------------------------------------
# PyTorch takes an operator's registered gradient outside its transforms only; within them, and for forward mode, which would
# leave tangents of 0 in silence, the same formulas stand in an autograd.Function.
_setups: dict[str, Callable[..., None]] = {}
_backwards: dict[str, Callable[..., Any]] = {}
_rules: dict[str, Callable[..., Any]] = {}
_functions: dict[str, Any] = {}


def _gradient(name: str, backward: Callable[..., Any], setup: Callable[..., None] | None = None) -> None:
    _torch.register_autograd(f"lockstep::{name}", backward, setup_context=setup, lib=_library)
    _backwards[name] = backward
    if setup:
        _setups[name] = setup


def _vmap(name: str, rule: Callable[..., Any]) -> None:
    _torch.register_vmap(f"lockstep::{name}", rule, lib=_library)
    _rules[name] = rule


def _function(name: str) -> Any:
    if name not in _functions:
        def setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            ctx.count = len(inputs)
            if name not in _backwards:
                ctx.mark_non_differentiable(output)
            elif name in _setups:
                _setups[name](ctx, inputs, output)

        def backward(ctx: Any, *g: Tensor) -> Any:
            if name not in _backwards:
                raise NotImplementedError(f"{name} has no gradient; give x.detach()")
            given = _backwards[name](ctx, *g)
            given = given if isinstance(given, tuple) else (given,)
            return (*given, *[None] * ctx.count)[:ctx.count]

        _functions[name] = type(name, (torch.autograd.Function,), {
            "forward": staticmethod(lambda *arguments: getattr(_ops, name)(*arguments)), "setup_context": staticmethod(setup),
            "backward": staticmethod(backward), "vmap": staticmethod(lambda info, dims, *arguments: _rules[name](info, dims, *arguments))})
    return _functions[name]


_internal: Any = torch._C


def _is_plain(arguments: tuple[Any, ...]) -> bool:
    """Whether nobody but the kernel has anything to do: no gradient, no mode, no tracing, tensors of memory."""
    recording = torch.is_grad_enabled()
    for t in arguments:
        if isinstance(t, Tensor) and (type(t) is not Tensor or t.is_meta or recording and t.requires_grad):
            return False
    return not (_internal._len_torch_dispatch_stack() or _internal._len_torch_function_stack() or torch.jit.is_tracing())


def _call(name: str, *arguments: Any) -> Any:
    if not torch.compiler.is_compiling() and _internal._functorch.peek_interpreter_stack() is None and \
            torch.autograd.forward_ad._current_level < 0 and _is_plain(arguments):
        return _kernels[name](*arguments)  # a fifth of the time that the dispatcher takes
    transformed = not torch.compiler.is_compiling() and (
        _internal._functorch.peek_interpreter_stack() is not None or torch.autograd.forward_ad._current_level >= 0)
    return _function(name).apply(*arguments) if transformed else getattr(_ops, name)(*arguments)


# ---- gradients ---------------------------------------------------------------
def _over(g: Tensor, x: Tensor, axis: Sequence[int] | None, keepdims: bool) -> Tensor:
    """The gradient of a result beside each element that it came from."""
    if not keepdims:
        for k in sorted(_axes(x, axis)):
            g = g.unsqueeze(k)
    return g.expand(x.shape)


def _share(name: str, g: Tensor, x: Tensor, n: Tensor | None) -> Tensor:
    if name == "sum":
        return g.to(x.dtype)
    if name == "square_sum":
        return (2 * x.to(g.dtype) * g).to(x.dtype)
    assert n is not None
    return torch.where(n == 0, 0, x.to(g.dtype) * (g / n)).to(x.dtype)  # 0 at the origin, as PyTorch has it


def _reduction_gradient(name: str) -> None:
    def setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, ctx.axis, ctx.keepdims = inputs[:3]
        ctx.save_for_backward(x, output)

    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, result = ctx.saved_tensors
        n = _over(result, x, ctx.axis, ctx.keepdims) if name == "norm" else None
        return _share(name, _over(g, x, ctx.axis, ctx.keepdims), x, n), None, None, None

    def extreme_backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, _ = ctx.saved_tensors
        axes = sorted(_axes(x, ctx.axis))
        order = [k for k in range(x.ndim) if k not in axes] + axes
        kept = [x.shape[k] for k in order[:x.ndim - len(axes)]]
        length = prod(x.shape[k] for k in axes)
        where = _call(f"arg{name}", x, ctx.axis, False).reshape(*kept, 1)
        zeros = g.new_zeros([*kept, length])
        spread = zeros.scatter(-1, where, g.reshape(*kept, 1)).reshape([x.shape[k] for k in order])
        return spread.permute([order.index(k) for k in range(x.ndim)]), None, None

    _gradient(name, extreme_backward if name in _EXTREMES else backward, setup)


def _segment_gradient(name: str) -> None:
    def setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], inputs[1], output)

    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, offsets, result = ctx.saved_tensors
        # The segment of each element; those before the first and behind the last belong to none.
        at = torch.arange(x.shape[0], device=x.device)
        offsets = offsets.to(x.device)
        segment = torch.searchsorted(offsets, at, right=True) - 1
        inside = (segment >= 0) & (segment < g.shape[0])
        segment = segment.clamp(0, g.shape[0] - 1)
        n = result[segment] if name == "norm" else None
        return torch.where(inside.reshape(-1, *[1] * (x.ndim - 1)), _share(name, g[segment], x, n), 0), None, None

    def extreme_backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, offsets, _ = ctx.saved_tensors
        where = offsets[:-1].to(x.device) + _call(f"segment_arg{name}", x, offsets)
        return torch.zeros_like(x).scatter(0, where, g), None

    _gradient(f"segment_{name}", extreme_backward if name in _EXTREMES else backward, setup)


for _name in (*_SUMS, *_EXTREMES):
    _reduction_gradient(_name)
    _segment_gradient(_name)


def _permute_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.axes = inputs[1]


def _permute_backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    rank = len(ctx.axes)
    axes = [k % rank for k in ctx.axes]
    return _call("permute", g, [axes.index(k) for k in range(rank)]), None


_gradient("transpose", lambda ctx, g: _call("transpose", g))
_gradient("permute", _permute_backward, _permute_setup)


# ---- vmap: a batch is one more axis, and changes no bit ----------------------
def _batched(info: Any, t: Tensor, dim: int | None) -> Tensor:
    return t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)


def _each(info: Any, t: Any, dim: int | None) -> Any:
    """The tensors of a batch, one by one."""
    return [t] * info.batch_size if t is None or dim is None else t.unbind(dim)


def _behind(x: Tensor, axis: Sequence[int] | None) -> list[int]:
    """An operation's axes within x[0], as axes of x."""
    rank = x.ndim - 1
    return [k + 1 for k in range(rank)] if axis is None else [k % rank + 1 for k in axis]


def _reduction_vmap(name: str) -> None:
    def rule(info: Any, dims: tuple[Any, ...], x: Tensor, axis: Sequence[int] | None = None, *rest: Any) -> tuple[Tensor, int]:
        x = x.movedim(dims[0], 0)
        return _call(name, x, _behind(x, axis), *rest), 0

    _vmap(name, rule)


for _name in (*_SUMS, *_EXTREMES, *_PLACES):
    _reduction_vmap(_name)


def _segment_vmap(name: str) -> None:
    def rule(info: Any, dims: tuple[Any, ...], x: Tensor, offsets: Tensor, *dtype: Any) -> tuple[Tensor, int]:
        pairs = zip(_each(info, x, dims[0]), _each(info, offsets, dims[1]))
        return torch.stack([_call(f"segment_{name}", a, b, *dtype) for a, b in pairs]), 0

    _vmap(f"segment_{name}", rule)


for _name in (*_SUMS, *_EXTREMES, *_PLACES):
    _segment_vmap(_name)
_vmap("transpose", lambda info, dims, x: (_call("transpose", x.movedim(dims[0], 0)), 0))
_vmap("permute", lambda info, dims, x, axes: (_call("permute", x.movedim(dims[0], 0), [0, *(k % len(axes) + 1 for k in axes)]), 0))
_vmap("shuffle", lambda info, dims, x, kind, operand, width=32: (_call("shuffle", x.movedim(dims[0], 0), kind, operand, width), 0))


# ---- functions ---------------------------------------------------------------
_Axis = int | Sequence[int] | None


def _listed(axis: _Axis, dim: _Axis = None, default: int | None = None) -> list[int] | None:
    """The axes by lockstep's name of them or by PyTorch's."""
    if dim is not None:
        if axis != default:
            raise InvalidArgument("axis and dim are two names of one argument; give one of them")
        axis = dim
    return None if axis is None else list(whole_numbers(axis))


def transpose(x: Tensor) -> Tensor:
    """`lockstep.transpose` with a gradient."""
    return _call("transpose", x)


def permute(x: Tensor, axes: Sequence[int]) -> Tensor:
    """`lockstep.permute` with a gradient."""
    return _call("permute", x, list(axes))


def sum(x: Tensor, axis: _Axis = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.sum` with a gradient."""
    return _call("sum", x, _listed(axis, dim), keepdims or keepdim, dtype)


def square_sum(x: Tensor, axis: _Axis = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.square_sum` with a gradient."""
    return _call("square_sum", x, _listed(axis, dim), keepdims or keepdim, dtype)


def norm(x: Tensor, axis: _Axis = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.norm` with a gradient, which is 0 where the norm is."""
    return _call("norm", x, _listed(axis, dim), keepdims or keepdim, dtype)


def max(x: Tensor, axis: _Axis = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool = False) -> Tensor:
    """`lockstep.max`; the gradient goes to the first of equals."""
    return _call("max", x, _listed(axis, dim), keepdims or keepdim)


def min(x: Tensor, axis: _Axis = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool = False) -> Tensor:
    """`lockstep.min`; the gradient goes to the first of equals."""
    return _call("min", x, _listed(axis, dim), keepdims or keepdim)


def argmax(x: Tensor, axis: _Axis = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool = False) -> Tensor:
    """`lockstep.argmax`."""
    return _call("argmax", x, _listed(axis, dim), keepdims or keepdim)


def argmin(x: Tensor, axis: _Axis = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool = False) -> Tensor:
    """`lockstep.argmin`."""
    return _call("argmin", x, _listed(axis, dim), keepdims or keepdim)


def segment_sum(x: Tensor, offsets: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.segment_sum` with a gradient."""
    return _call("segment_sum", x, offsets, dtype)


def segment_square_sum(x: Tensor, offsets: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.segment_square_sum` with a gradient."""
    return _call("segment_square_sum", x, offsets, dtype)


def segment_norm(x: Tensor, offsets: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """`lockstep.segment_norm` with a gradient."""
    return _call("segment_norm", x, offsets, dtype)


def segment_max(x: Tensor, offsets: Tensor) -> Tensor:
    """`lockstep.segment_max`; the gradient goes to the first of equals."""
    return _call("segment_max", x, offsets)


def segment_min(x: Tensor, offsets: Tensor) -> Tensor:
    """`lockstep.segment_min`; the gradient goes to the first of equals."""
    return _call("segment_min", x, offsets)


def segment_argmax(x: Tensor, offsets: Tensor) -> Tensor:
    """`lockstep.segment_argmax`."""
    return _call("segment_argmax", x, offsets)


def segment_argmin(x: Tensor, offsets: Tensor) -> Tensor:
    """`lockstep.segment_argmin`."""
    return _call("segment_argmin", x, offsets)


def shuffle(x: Tensor, kind: str, operand: int, *, width: int = 32) -> Tensor:
    """`lockstep.shuffle`, for torch.compile; it has no gradient."""
    return _call("shuffle", x, kind, operand, width)


from ._torch_functions import (erf, exp, expm1, gelu, gelu_tanh, log, log1p, reciprocal, rsqrt, sigmoid, silu,  # noqa: E402
                               softplus, sqrt, tanh)
from ._torch_rows import cumsum, layer_norm, normalize, rms_norm  # noqa: E402  (they need what stands above)
from ._torch_softmax import (log_softmax, logsumexp, picked, segment_log_softmax, segment_logsumexp, segment_picked,  # noqa: E402
                             segment_softmax, softmax)
from ._torch_stencils import stencil  # noqa: E402
from ._torch_sums import convert, dot, mean, std, var  # noqa: E402
from . import _deterministic_layers as _layers  # noqa: E402, F401
