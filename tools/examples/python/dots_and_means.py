"""Dot products, distances, means and variances: one pass each, over any axes, the same bits for every batch."""
import numpy as np

import lockstep as ls

rng = np.random.default_rng(0)
documents = rng.standard_normal((500, 384), np.float32)
query = rng.standard_normal(384, np.float32)

# One y for all rows: what a document scores does not depend on how many there are.
scores = ls.dot(documents, query, axis=1)
assert all(ls.dot(documents[i], query).tobytes() == scores[i].tobytes() for i in (0, 99, 499))
nearest = ls.argmin(ls.squared_distance(documents, query, axis=1))
print(f"document {nearest} is the nearest, document {ls.argmax(scores)} has the highest score")

# Mean and variance of a batch of pictures for each channel, as a batch normalisation needs them: nothing is copied for
# a reduction over any axes, and one pass over the elements gives both.
pictures = rng.standard_normal((8, 3, 32, 32), np.float32)
brightest = ls.max(pictures, axis=(0, 2, 3))
mean, variance = ls.mean_var(pictures, axis=(0, 2, 3))
assert np.allclose(mean, pictures.mean((0, 2, 3)), atol=1e-6) and brightest.shape == (3,)
print("channels:", *(f"{m:+.4f} +- {v ** 0.5:.4f}" for m, v in zip(mean, variance)))

# A mean a million times the spread: the usual difference of squares would leave no digit.
far = 1e6 + rng.standard_normal(100_000)
assert abs(ls.var(far) - np.var(far - 1e6)) < 1e-9 and ls.std(far, correction=1) > 0.9
