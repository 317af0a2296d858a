"""The operations inside PyTorch: gradients, batches by vmap, compiled without a break. Leaves with 77 where there is no PyTorch."""
import importlib.util
import sys
import warnings

if importlib.util.find_spec("torch") is None:
    print("SKIP: no PyTorch")
    sys.exit(77)
warnings.simplefilter("ignore")  # PyTorch's own
import torch

import lockstep.torch as lt

x = torch.randn(8, 1000, requires_grad=True)
loss = lt.norm(x, axis=1).sum()
loss.backward()
assert torch.allclose(x.grad, x.detach() / x.detach().norm(dim=1, keepdim=True), atol=1e-6)

# A batch by vmap has the bits of its parts.
rows = torch.vmap(lt.norm)(x.detach())
assert torch.equal(rows, torch.stack([lt.norm(row) for row in x.detach()]))


@torch.compile(fullgraph=True, backend="aot_eager")
def energy(u):
    """Squared slopes of a ring."""
    return lt.square_sum(lt.stencil(u, [-0.5, 0.0, 0.5], mode="wrap", axes=1))


u = x.detach().requires_grad_()
energy(u).backward()
print(f"loss {loss.item():.3f}, slope of the energy {lt.norm(u.grad).item():.3f}")
