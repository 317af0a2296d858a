"""One sum, the same bits: other layouts, thread counts, instruction sets, variants and precisions of the input."""
import numpy as np

import lockstep as ls

x = np.random.default_rng(1).standard_normal((1000, 1003)).astype(np.float32)
total = ls.sum(x, dtype="float64")

layouts = {"Fortran order": np.asfortranarray(x), "every other column": np.repeat(x, 2, axis=1)[:, ::2],
           "reversed twice": np.ascontiguousarray(x[::-1])[::-1]}
for name, y in layouts.items():
    assert ls.sum(y, dtype="float64") == total, name

for threads in (1, 2, 3):
    for isa in ("baseline", None):
        with ls.Context("cpu", threads=threads, isa=isa):
            assert ls.sum(x, dtype="float64") == total

variants = []
for name in [v.name for v in ls.variants_of("reduce") if not v.own_order]:
    with ls.variants(reduce=name):
        try:
            assert ls.sum(x, dtype="float64") == total, name
            variants.append(name)
        except ls.Unsupported:  # a row for calls of another kind: many short rows, segments ...
            pass

# 16-bit floats are added in double by the same tree: as their exact copies in 32 bits.
half = x.astype(np.float16)
assert ls.sum(half) == ls.sum(half.astype(np.float32))
print(f"{float(total).hex()} by {len(variants)} variants, 3 layouts, 3 thread counts, 2 instruction sets; NumPy: {float(x.sum(dtype='f8')).hex()}")
