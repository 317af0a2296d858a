"""Clipping of gradients: one norm over all tensors of a model, with the same bits wherever they lie and however they are laid out.
Leaves with 77 where there is no PyTorch."""
import importlib.util
import sys

if importlib.util.find_spec("torch") is None:
    print("SKIP: no PyTorch")
    sys.exit(77)
import torch

import lockstep as ls
import lockstep.torch as lt


def gradients_of(device):
    """A small network after one backward pass on the CPU; its gradients on the device."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(300, 200), torch.nn.ReLU(), torch.nn.Linear(200, 10))
    net(torch.randn(64, 300)).square().sum().backward()
    gradients = [p.grad for p in net.parameters()]
    net.to(device)
    for p, g in zip(net.parameters(), gradients):
        p.grad = g.to(device)
    return net


here = gradients_of("cpu")
each = ls.norms([p.grad for p in here.parameters()], dtype="float64")  # by one call
norm = lt.clip_grad_norm_(here.parameters(), 1.0)
assert norm == ls.norm(each)
if torch.cuda.is_available() and any(b.name == "cuda" and b.usable for b in ls.backends()):
    there = gradients_of("cuda")
    assert lt.clip_grad_norm_(there.parameters(), 1.0).item() == norm.item()
    assert all(torch.equal(p.grad, q.grad.cpu()) for p, q in zip(here.parameters(), there.parameters()))
    print("the GPU has the same bits")

# For tensors that stay where they are a plan does once what costs time.
plan = ls.group.plan("norm", [p.grad for p in here.parameters()], dtype="float64", stack=True)
clipped = ls.norm(plan())
assert clipped == lt.total_norm([p.grad for p in here.parameters()]) and abs(clipped - 1) < 1e-5
print(f"norm {norm.item().hex()}, clipped to {clipped.item():.6f}")
