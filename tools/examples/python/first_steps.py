"""Sums, norms, extremes and transposes of NumPy arrays, and what ran."""
import numpy as np

import lockstep as ls

x = np.arange(12, dtype=np.float32).reshape(3, 4)

assert ls.sum(x) == 66
assert ls.norm(x, axis=1).shape == (3,)
assert ls.argmax(x, axis=0).tolist() == [2, 2, 2, 2]
assert np.array_equal(ls.transpose(x), x.T)

# Results may go into memory that is there already.
out = np.empty((4, 3), np.float32)
assert ls.transpose(x, out=out) is out

ran = ls.last_run()
print(f"{ran.backend}/{ran.variant}, {ran.staged_bytes} bytes copied")
