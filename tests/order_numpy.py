"""Order id 1 of a sum in NumPy, for every test that needs a second opinion."""
import numpy as np


def tree(x, squares):
    """Order id 1 in NumPy. Squares only of types whose squares double holds exactly."""
    lanes = np.full(-(-len(x) // 2048) * 2048, -0.0)
    lanes[: len(x)] = x
    rows = lanes.reshape(-1, 16, 128)
    if squares:  # a missing element adds nothing; (-0.0)**2 would add +0.0
        present = np.zeros(lanes.shape, bool)
        present[: len(x)] = True
        present = present.reshape(rows.shape)
    s = np.full((len(rows), 128), -0.0)
    for r in range(16):
        s = np.where(present[:, r], s + rows[:, r] * rows[:, r], s) if squares else s + rows[:, r]
    for d in (64, 32, 16, 8, 4, 2, 1):
        s = s[:, :d] + s[:, d: 2 * d]
    level = list(s[:, 0])
    while len(level) > 1:
        level = [level[i] + level[i + 1] if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    return level[0]
