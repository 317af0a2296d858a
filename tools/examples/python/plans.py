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
print(f"{min(times) * 1000:.1f} microseconds, {plan.workspace_bytes} bytes of workspace")
