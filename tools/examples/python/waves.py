"""Waves in a basin: the wave equation by leapfrog, its Laplacian a stencil; the same bits by one thread and by three."""
import numpy as np

import lockstep as ls

height, width, steps, courant = 96, 128, 110, 0.5
y, x = np.mgrid[:height, :width]
start = np.exp(-((y - 30.0) ** 2 + (x - 40.0) ** 2) / 12.0)
weights = [courant**2 * w for w in ls.laplace_weights(2)]


def waves(threads):
    with ls.Context("cpu", threads=threads):
        before, now = start, start.copy()
        for _ in range(steps):
            before, now = now, 2.0 * now - before + ls.stencil(now, weights, mode="nearest")
        return now


surface = waves(1)
assert surface.tobytes() == waves(3).tobytes()
assert abs(ls.sum(surface) / ls.sum(start) - 1) < 1e-9  # no water is lost
print(f"after {steps} steps the surface is between {ls.min(surface):.3f} and {ls.max(surface):.3f}")
