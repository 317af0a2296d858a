"""Edges of a picture: differences along each axis, their size, and how much of it there is in each row."""
import numpy as np

import lockstep as ls

y, x = np.mgrid[:96, :128].astype(np.float32)
picture = np.where((x - 40) ** 2 + (y - 50) ** 2 < 700, 200, 40) + np.where((x > 75) & (x < 115) & (y > 20) & (y < 70), 120, 0)
picture = (picture + np.random.default_rng(5).normal(0, 6, picture.shape)).astype(np.float32)

# A little smoothing, then central differences along columns and rows.
smooth = ls.correlate1d(ls.correlate1d(picture, [0.25, 0.5, 0.25], axis=0), [0.25, 0.5, 0.25], axis=1)
slopes = np.stack([ls.correlate1d(smooth, [-0.5, 0.0, 0.5], axis=k) for k in (0, 1)])
size = ls.norm(slopes, axis=0)

# Axes in the front are reduced as they lie; the bits are those of each pixel alone.
assert size[50, 14] == ls.norm(slopes[:, 50, 14].copy())
edges = size > 20
rows = ls.sum(edges, axis=1)
print(f"{ls.sum(edges)} of {edges.size} pixels are edges, most in row {ls.argmax(rows)}")
