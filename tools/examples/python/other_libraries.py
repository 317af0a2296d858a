"""Arrays of any library come in, and the same kind goes out. What is not installed is left out."""
import array
import importlib.util
import os

import numpy as np

import lockstep as ls

os.environ.setdefault("JAX_PLATFORMS", "cpu")
x = np.random.default_rng(4).standard_normal((7, 1001)).astype(np.float32)
want = ls.sum(x, axis=1).tobytes()
seen = ["numpy", "buffers"]

assert ls.sum(array.array("d", [1.0, 2.0, 3.0])) == 6.0  # whatever has a buffer

if importlib.util.find_spec("torch"):
    import torch
    sums = ls.sum(torch.from_numpy(x), axis=1)
    assert isinstance(sums, torch.Tensor) and sums.numpy().tobytes() == want
    seen.append("torch")

if importlib.util.find_spec("jax"):
    import jax
    sums = ls.sum(jax.numpy.asarray(x), axis=1)
    assert isinstance(sums, jax.Array) and np.asarray(sums).tobytes() == want
    seen.append("jax")

if importlib.util.find_spec("ml_dtypes"):
    import ml_dtypes
    narrow = x.astype(ml_dtypes.bfloat16)
    assert ls.transpose(narrow).dtype == ml_dtypes.bfloat16 and ls.sum(narrow).dtype == np.float32
    seen.append("ml_dtypes")

# Memory of lockstep's own, for programs without one of these.
buffer = ls.empty((7, 1001), "float32")
np.asarray(buffer)[:] = x
assert np.asarray(ls.sum(buffer, axis=1)).tobytes() == want
print(", ".join(seen))
