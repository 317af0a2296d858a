"""One norm over many tensors, as gradient clipping needs it: no bit depends on how the tensors are grouped or where they lie.
Leaves with 77 where there is no PyTorch."""
import importlib.util
import sys

import numpy as np

import lockstep as ls

if importlib.util.find_spec("torch") is None:
    print("SKIP: no PyTorch")
    sys.exit(77)
import torch

torch.manual_seed(0)
gradients = [torch.randn(shape) * 10.0**k for k, shape in enumerate([(300, 200), (200,), (64, 3, 7, 7), (1000, 10)])]


def global_norm(tensors):
    """Norm of the norms, each in float64, on the host."""
    return ls.norm(np.array([float(ls.norm(t, dtype="float64")) for t in tensors]))


norm = global_norm(gradients)
assert norm == global_norm([g.T.contiguous().T if g.ndim == 2 else g for g in gradients])  # another layout
if torch.cuda.is_available() and any(b.name == "cuda" and b.usable for b in ls.backends()):
    assert norm == global_norm([g.cuda() for g in gradients])
    print("the GPU has the same bits")
clipped = [g * min(1.0, 1.0 / float(norm)) for g in gradients]
print(f"norm {float(norm).hex()}, clipped to {float(global_norm(clipped)):.6f}")
