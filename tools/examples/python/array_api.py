"""A program written for the array API runs on lockstep, with the rest of the namespace from NumPy; NumPy's own functions by a view."""
import numpy as np

import lockstep as ls
import lockstep.array_api


def standardized(x, xp):
    """Code that knows nothing of lockstep: rows of mean 0 and spread 1."""
    return (x - xp.mean(x, axis=1, keepdims=True)) / xp.std(x, axis=1, keepdims=True)


xp = lockstep.array_api.over(np)  # or array_api_compat.torch, .cupy, array_api_strict
x = xp.reshape(xp.linspace(0, 1, 12), (3, 4))  # NumPy's
rows = standardized(x, xp)  # mean and std are lockstep's
print(rows[0], ls.digest(rows))
print(xp.linalg.vector_norm(rows), xp.vecdot(rows, x))

# A view of an array whose NumPy functions are lockstep's; other arrays stay NumPy's.
y = ls.accelerate(x)
with ls.record() as runs:
    print(np.sum(y, axis=0), y.mean(), np.linalg.norm(y))
print([run.variant for run in runs])
print(np.median(y))  # NumPy's: lockstep has no counterpart
