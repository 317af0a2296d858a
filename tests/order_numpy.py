"""Order id 1 of a sum in NumPy, for every test that needs a second opinion."""
from fractions import Fraction

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


def fma(a, b, c):
    return float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def fused(x, y, acc):
    """x * y + acc, rounded once, of exact numbers."""
    return np.array([fma(a, b, c) if a and b and np.isfinite(c) else a * b + c for a, b, c in zip(x, y, acc)])  # (fractions have no -0.0)


def term_tree(n, enter):
    """enter(lanes, first, count) gives the lanes with count elements from first on entered."""
    level = []
    for leaf in range(0, n, 2048):
        s = np.full(128, -0.0)
        for row in range(leaf, min(n, leaf + 2048), 128):
            count = min(128, n - row, leaf + 2048 - row)
            s[:count] = enter(s[:count], row, count)
        for d in (64, 32, 16, 8, 4, 2, 1):
            s = s[:d] + s[d: 2 * d]
        level.append(s[0])
    while len(level) > 1:
        level = [level[i] + level[i + 1] if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    return level[0] if level else 0.0


def leaf_squares(x, mean):
    """A leaf's squares about its mean: 128 lanes of fused multiply-adds, joined by halves."""
    lane = [-0.0] * 128
    for i, e in enumerate(x):
        d = float(e) - mean
        lane[i % 128] = fma(d, d, lane[i % 128])
    while len(lane) > 1:
        half = len(lane) // 2
        lane = [lane[k] + lane[k + half] for k in range(half)]
    return lane[0]


def moments(x):
    """(count, sum, squares about the mean) of a row: leaves join two by two."""
    level = [(float(len(p)), float(tree(p, False))) for p in (x[k : k + 2048] for k in range(0, len(x), 2048))]
    level = [(n, s, leaf_squares(x[2048 * k : 2048 * k + 2048], s / n)) for k, (n, s) in enumerate(level)]
    while len(level) > 1:
        above = []
        for (na, sa, qa), (nb, sb, qb) in zip(level[::2], level[1::2]):
            d, n = sb / nb - sa / na, na + nb
            above.append((n, sa + sb, (qa + qb) + (d * d) * (na * (nb / n))))
        level = above + level[len(level) // 2 * 2 :]
    return level[0]


def running(x):
    """Sums up to each element: doubling within groups of 8, groups of a row, rows of a leaf, the tree of the leaves before."""
    n = len(x)
    padded = np.full(-(-n // 2048) * 2048, -0.0)
    padded[:n] = x
    g = padded.reshape(-1, 16, 16, 8).copy()
    for step in (1, 2, 4):
        after = g.copy()
        after[..., step:] = g[..., :-step] + g[..., step:]
        g = after
    before = np.full(g.shape[:3], -0.0)
    for k in range(1, 16):
        before[:, :, k] = before[:, :, k - 1] + g[:, :, k - 1, 7]
    row = before[..., None] + g
    rows = np.full(g.shape[:2], -0.0)
    for k in range(1, 16):
        rows[:, k] = rows[:, k - 1] + row[:, k - 1, 15, 7]
    leaves = np.array([-0.0] + [tree(x[: 2048 * k], False) for k in range(1, len(g))])
    return ((leaves[:, None] + rows)[..., None, None] + row).ravel()[:n]
