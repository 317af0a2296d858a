"""The operations inside JAX's programs: compiled, in batches, with gradients. Leaves with 77 where there is no JAX."""
import importlib.util
import sys
import warnings

if importlib.util.find_spec("jax") is None:
    print("SKIP: no JAX")
    sys.exit(77)
warnings.simplefilter("ignore")  # JAX's own
import jax
import jax.numpy as jnp
import numpy as np

import lockstep as ls
import lockstep.jax as lj


@jax.jit
def loss(x):
    return lj.sum(lj.norm(x, axis=1))


x = jax.random.normal(jax.random.key(1), (8, 1000))
slope = jax.jit(jax.grad(loss))(x)
assert jnp.allclose(slope, x / jnp.linalg.norm(x, axis=1, keepdims=True), atol=1e-6)

# A batch by vmap has the bits of its parts, and those of the function on a NumPy array.
rows = np.asarray(jax.jit(jax.vmap(lj.norm))(x))
assert rows.tobytes() == b"".join(np.asarray(lj.norm(row)).tobytes() for row in x) == ls.norm(np.asarray(x), axis=1).tobytes()
print(f"loss {loss(x):.3f}, slope {lj.norm(slope):.3f}")
