"""Bytes, truths and 16-bit floats are read as they are: no copy in a wider type, exact or rounded once."""
import numpy as np

import lockstep as ls

rng = np.random.default_rng(0)
image = rng.integers(0, 256, (480, 640), np.uint8)
assert ls.sum(image) == int(image.sum(dtype=np.int64)) and ls.max(image).dtype == np.uint8

inside = image > 127
print(f"{ls.sum(inside)} of {inside.size} pixels are bright, the first in row {ls.argmax(ls.max(inside, axis=1))}")

half = rng.standard_normal((64, 4096)).astype(np.float16)
assert ls.sum(half, axis=1).dtype == np.float32  # added in double, rounded once
assert ls.sum(half, axis=1, dtype="float16").dtype == np.float16
assert ls.norm(half).dtype == np.float32

try:
    ls.sum(np.full(3, 2**62))
except ls.Overflow as error:
    print(error)
