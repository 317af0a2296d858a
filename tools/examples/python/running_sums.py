"""Running sums and extremes: cumulative distribution, drawdown, and offsets of jagged arrays."""
import numpy as np

import lockstep as ls

rng = np.random.default_rng(0)

# What a step adds never changes the bits of those before it, nor does the number of threads.
steps = rng.standard_normal(100_000, np.float32)
path = ls.cumsum(steps)
assert path[:1000].tobytes() == ls.cumsum(steps[:1000]).tobytes()

# The deepest fall below the highest point so far.
fall = ls.max(ls.cummax(path) - path)

# Offsets of rows of any length, for the segment functions: an exclusive sum of their lengths.
lengths = rng.integers(1, 9, 1000)
offsets = np.append(ls.cumsum(lengths, exclusive=True), ls.sum(lengths))
values = rng.standard_normal(offsets[-1])
means = ls.segment_sum(values, offsets) / lengths

# Along an axis; integers are exact, in 64 bits.
counts = rng.integers(0, 255, (50, 60)).astype(np.uint8)
assert np.array_equal(ls.cumsum(counts, axis=1)[:, -1], ls.sum(counts, axis=1))
print(f"deepest fall {fall:.3f}, {len(means)} rows")
