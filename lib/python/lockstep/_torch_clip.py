"""Clipping of gradients: one norm over all of a model's tensors, with the same bits on any device."""
from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from . import _core


def _by_place(tensors: list[Tensor]) -> dict[torch.device, list[int]]:
    places: dict[torch.device, list[int]] = {}
    for k, t in enumerate(tensors):
        places.setdefault(t.device, []).append(k)
    return places


def total_norm(tensors: Iterable[Tensor]) -> Tensor:
    """The 2-norm of all elements of many tensors, as a float64 tensor of no axes on the first one's device.

    It is the norm of their norms, each in float64. The tensors may differ in shape, dtype and device; their order counts, nothing else
    does. Their norms come by one call for each device (`lockstep.norms`); nothing waits for a GPU.
    """
    given = [t.detach() if t.requires_grad else t for t in tensors]
    if not given:
        return torch.zeros((), dtype=torch.float64)
    places = _by_place(given)
    first = given[0].device
    parts = [_core.group("norm", [given[k] for k in chosen], stack=True, dtype="float64").to(first) for chosen in places.values()]
    if len(parts) == 1:
        each = parts[0]
    else:
        each = torch.empty(len(given), dtype=torch.float64, device=first)
        for chosen, part in zip(places.values(), parts):
            each[torch.tensor(chosen, device=first)] = part
    total: Tensor = _core.norm(each)
    return total


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, *, error_if_nonfinite: bool = False) -> Tensor:
    """`torch.nn.utils.clip_grad_norm_` for the 2-norm, with the same bits on CPU and GPU, whatever the layout of the gradients.

    Gradients are multiplied, in place, with ``max_norm / (norm + 1e-6)`` where that is less than one, a number of the gradient's dtype.
    Gradients may lie on several devices. Nothing waits for a GPU, unless ``error_if_nonfinite`` asks for the norm.

    Returns
    -------
    Tensor
        The norm before clipping, as `total_norm` gives it: float64, with no axes.
    """
    owners = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    gradients = [p.grad for p in owners if p.grad is not None]
    total = total_norm(gradients)
    if error_if_nonfinite and not bool(torch.isfinite(total)):
        raise RuntimeError(f"the norm of the gradients is {total.item()}, so they cannot be clipped; leave error_if_nonfinite away to scale them anyway")
    with torch.no_grad():
        _scale(gradients, total, max_norm)
    return total


def _scale(gradients: list[Tensor], total: Tensor, max_norm: float) -> None:
    # Divided by a tensor: by a number, a GPU multiplies with its reciprocal.
    factor = torch.full_like(total, max_norm) / (total + 1e-6)
    factor = torch.where(factor > 1, torch.ones_like(factor), factor)  # (one that is no number stays so)
    alike: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for g in gradients:
        alike.setdefault((g.device, g.dtype), []).append(g)
    for (device, dtype), some in alike.items():
        scale = factor.to(device)
        torch._foreach_mul_(some, (scale if dtype == torch.float64 else scale.to(torch.float32)).to(dtype))
