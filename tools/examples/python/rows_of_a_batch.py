"""A row's norm does not depend on the batch that it comes in."""
import numpy as np

import lockstep as ls

batch = np.random.default_rng(2).standard_normal((256, 4097)).astype(np.float32)
together = ls.norm(batch, axis=1)

for size in (1, 3, 100):
    for first in range(0, 256, 50):
        part = ls.norm(batch[first:first + size], axis=1)
        assert part.tobytes() == together[first:first + size].tobytes()
assert all(ls.norm(row) == one for row, one in zip(batch, together))
print("256 norms, whatever the batch")
