"""Segments of any length, as a CSR matrix or a jagged batch has them."""
import numpy as np

import lockstep as ls

lengths = np.array([3, 0, 5, 1, 1000])
offsets = np.concatenate([[0], np.cumsum(lengths)])  # int64, one more than there are segments
x = np.random.default_rng(3).standard_normal(offsets[-1])

sums = ls.segment_sum(x, offsets)
assert sums[1] == 0.0
for s, (a, b) in enumerate(zip(offsets, offsets[1:])):
    assert sums[s] == ls.sum(x[a:b])  # the bits of the slice alone

weights = ls.segment_softmax(x, offsets)  # attention, if these are scores of a node's neighbours
for a, b in zip(offsets, offsets[1:]):
    assert np.array_equal(weights[a:b], ls.softmax(x[a:b]))

try:
    ls.segment_max(x, offsets)
except ls.Empty as error:
    print(error)
else:
    raise AssertionError("the greatest of nothing")
