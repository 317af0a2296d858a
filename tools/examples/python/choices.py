"""Where calls run: scopes that nest, contexts, and a record of what was done."""
import numpy as np

import lockstep as ls

x = np.ones((300, 200))

for backend in ls.backends():
    print(f"{backend.name}: {'usable' if backend.usable else backend.reason}")

with ls.record() as runs:
    ls.sum(x)
    with ls.backend("cpu"), ls.variants(transpose="ref"):
        ls.transpose(x)
    ls.norm(x, axis=0)
print([f"{run.op}: {run.backend}/{run.variant}" for run in runs])
assert runs[1].variant == "ref" and runs[1].backend == "cpu"


@ls.variants(reduce="ref")
def by_the_definition(y):
    return ls.sum(y)


assert by_the_definition(x) == ls.sum(x)

with ls.Context("cpu", threads=1) as context:  # of its own: threads, backend, kept memory
    assert context.sum(x) == 60000

try:
    ls.sum(x, backend="abacus")
except ls.NoBackend as error:
    print(error)
