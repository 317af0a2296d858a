"""The layers of a language model between its products: a residual added, rows normalised, and the same bits in any batch."""
import numpy as np

import lockstep as ls

rng = np.random.default_rng(0)
hidden = rng.standard_normal((64, 768), np.float32)
residual = rng.standard_normal((64, 768), np.float32)
weight = np.full(768, 0.5, np.float32)

# One pass: residual becomes hidden + residual, and the result is its rows, normalised and weighted.
before = hidden + residual
out = ls.rms_norm(hidden, weight=weight, residual=residual, residual_out=residual)
assert np.array_equal(residual, before)

# A row alone has the bits that it has in the batch: what a server answers does not depend on who else asks.
for row in (0, 17, 63):
    assert ls.rms_norm(before[row], weight=weight).tobytes() == out[row].tobytes()

# Layer norm over two axes, in place; unit vectors along another axis than the last.
image = rng.standard_normal((2, 16, 16), np.float32)
units = ls.normalize(image, axis=0)
assert np.allclose(ls.norm(units, axis=0), 1)
assert ls.layer_norm(image, axis=(1, 2), out=image) is image and abs(image.mean()) < 1e-6

# A variance that does not cancel: the mean is 10,000 times the spread.
far = np.float32(1e4) + rng.standard_normal(10_000, np.float32)
spread = ls.layer_norm(far, eps=0).std()
print(f"standard deviation after layer_norm: {spread:.7f}, by {ls.last_run().variant}")
