"""A plan chooses backend, variant and workspace once, for arrays of one layout."""
import numpy as np

import lockstep as ls

frames = [np.random.default_rng(k).standard_normal((480, 640)).astype(np.float32) for k in range(5)]
out = np.empty(480, np.float32)

plan = ls.plan.norm(frames[0], axis=1)  # or of ls.spec((480, 640), "float32")
for frame in frames:
    assert plan(frame, out=out) is out
    assert out.tobytes() == ls.norm(frame, axis=1).tobytes()

try:
    plan(frames[0].astype(np.float64))
except ls.InvalidArgument as error:
    print(error)

times = plan.measure(frames[0], out, samples=9)
# The kernels that can take the call, timed once for this machine: the fastest is remembered.
with ls.Context("cpu", threads=1) as context:
    tuned = ls.plan.norm(frames[0], axis=1, context=context, tune=True)
    assert tuned(frames[1]).tobytes() == ls.norm(frames[1], axis=1).tobytes()
    print(f"{tuned.backend}/{tuned.variant}: {tuned.why or 'as before'}")
print(f"{min(times) * 1000:.1f} microseconds, {plan.workspace_bytes} bytes of workspace")
