"""Order id 1 in plain Python, written from tools/docs/en/order.md alone: a function for each section of that page.
Elements are Python's floats (doubles) and integers."""
import math
import struct
from fractions import Fraction

# bits of the significand, exponent of the smallest subnormal, exponent beyond the largest number
FORMATS = {"f16": (11, -24, 16), "bf16": (8, -133, 128), "f32": (24, -149, 128), "f64": (53, -1074, 1024)}
CANONICAL = {"f16": 0x7E00, "bf16": 0x7FC0, "f32": 0x7FC00000, "f64": 0x7FF8000000000000}
LEAST, MOST = {"i64": -(2**63), "u64": 0}, {"i64": 2**63 - 1, "u64": 2**64 - 1}
finite = math.isfinite


# ---- types -------------------------------------------------------------------
def rounded(q, form, sign=1.0):
    """A fraction rounded to a number of that format, as a double; a zero has the sign of `sign`."""
    bits, least, top = FORMATS[form]
    if q == 0:
        return math.copysign(0.0, sign)
    magnitude = abs(q)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent  # 2^exponent <= magnitude
    unit = Fraction(2) ** max(exponent - bits + 1, least)
    nearest = round(magnitude / unit) * unit  # of a Fraction: ties to even
    return (math.inf if nearest >= 2**top else float(nearest)) * (1 if q > 0 else -1)


def narrowed(x, form):
    """A double rounded to a format."""
    return rounded(Fraction(x), form, x) if finite(x) else x


def fma(a, b, c, form="f64"):
    if not (finite(a) and finite(b)):
        return a * b + c
    if not finite(c):
        return c
    # As fractions of integers: Python divides those exactly rounded, subnormal quotients too.
    (p, q), (r, s), (t, u) = a.as_integer_ratio(), b.as_integer_ratio(), c.as_integer_ratio()
    above, below = p * r * u + t * q * s, q * s * u
    if above == 0:  # of zeros the sign that addition gives, of numbers that cancel +0.0
        return 0.0 if c != 0 else math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b)) + c
    if form != "f64":
        return rounded(Fraction(above, below), form)
    try:
        return above / below or math.copysign(0.0, above)
    except OverflowError:
        return math.inf if above > 0 else -math.inf


def divided(a, b):
    if b != 0 or a != a:
        return a / b
    return math.nan if a == 0 or b != b else math.copysign(math.inf, math.copysign(1, a) * math.copysign(1, b))


def root(x):
    return math.nan if x != x else math.sqrt(x)


def bits_of(x, form):
    """The stored bits of a double that is written as that format."""
    if x != x:
        return CANONICAL[form]
    x = narrowed(x, form)
    if form == "bf16":
        return struct.unpack("<I", struct.pack("<f", x))[0] >> 16
    if not finite(x) and form == "f16":
        return 0x7C00 | (x < 0) << 15
    code, whole = {"f16": "eH", "f32": "fI", "f64": "dQ"}[form]
    return struct.unpack("<" + whole, struct.pack("<" + code, x))[0]


# ---- the tree ------------------------------------------------------------------
def leaf_value(enter, first, last):
    lane = [-0.0] * 128
    for i in range(first, last):
        lane[(i - first) % 128] = enter(lane[(i - first) % 128], i)
    for d in (64, 32, 16, 8, 4, 2, 1):
        for k in range(d):
            lane[k] = lane[k] + lane[k + d]
    return lane[0]


def joined(values, join=lambda a, b: a + b):
    while len(values) > 1:
        values = [join(values[i], values[i + 1]) if i + 1 < len(values) else values[i] for i in range(0, len(values), 2)]
    return values[0] if values else 0.0


def tree(enter, n):
    return joined([leaf_value(enter, first, min(n, first + 2048)) for first in range(0, n, 2048)])


def squared(d, lane):
    return fma(d, d, lane)


ENTER = {"SUM": lambda x, y: lambda lane, i: lane + x[i],
         "NAN_SUM": lambda x, y: lambda lane, i: lane + (0.0 if x[i] != x[i] else x[i]),
         "SUM_OF_SQUARES": lambda x, y: lambda lane, i: squared(x[i], lane),
         "DOT": lambda x, y: lambda lane, i: fma(x[i], y[i], lane),
         "SQUARED_DIFFERENCES": lambda x, y: lambda lane, i: squared(x[i] - y[i], lane),
         "ABSOLUTE_DIFFERENCES": lambda x, y: lambda lane, i: lane + abs(x[i] - y[i]),
         "ABSOLUTE": lambda x, y: lambda lane, i: lane + abs(x[i])}


def float_sum(kind, x, y=None):
    return tree(ENTER[kind](x, y), len(x))


def float_product(x):
    times = lambda a, b: a * b
    leaves = []
    for first in range(0, len(x), 2048):
        lane = [1.0] * 128
        for i in range(first, min(len(x), first + 2048)):
            lane[(i - first) % 128] = times(lane[(i - first) % 128], x[i])
        for d in (64, 32, 16, 8, 4, 2, 1):
            lane = [times(lane[k], lane[k + d]) for k in range(d)]
        leaves.append(lane[0])
    return joined(leaves, times) if leaves else 1.0


# ---- NORM2 ---------------------------------------------------------------------
def norm2(x, f64):
    q = float_sum("SUM_OF_SQUARES", x)
    if not f64 or not all(map(finite, x)) or not any(x) or 2.0**-900 <= q < math.inf:
        return root(q)
    m = max(map(abs, x))
    e = max(math.frexp(m)[1] - 1, -1022)
    scaled = [rounded(Fraction(v) / Fraction(2) ** e, "f64", v) for v in x]
    return rounded(Fraction(root(float_sum("SUM_OF_SQUARES", scaled))) * Fraction(2) ** e, "f64")


# ---- integers ------------------------------------------------------------------
TERM = {"SUM": lambda x, y: x, "SUM_OF_SQUARES": lambda x, y: x * x, "DOT": lambda x, y: x * y,
        "SQUARED_DIFFERENCES": lambda x, y: (x - y) ** 2, "ABSOLUTE_DIFFERENCES": lambda x, y: abs(x - y), "ABSOLUTE": lambda x, y: abs(x)}


def integer_sum(kind, x, y=None, result="i64"):
    """(what is stored, whether it fits)"""
    exact = sum(TERM[kind](a, b) for a, b in zip(x, x if y is None else y))
    stored = min(MOST[result], max(LEAST[result], exact))
    return stored, stored == exact


def integer_product(x, result="i64"):
    exact = math.prod(x)
    stored = min(MOST[result], max(LEAST[result], exact))
    return stored, stored == exact


def integer_norm2(x):
    exact = sum(v * v for v in x)
    if exact == 0:
        return 0.0
    shift = 2 * max(0, 60 - exact.bit_length() // 2)  # 60 bits of the root and more, and whether there is a rest
    whole = math.isqrt(exact << shift)
    return rounded(Fraction(2 * whole + (whole * whole != exact << shift), 2 << shift // 2), "f64")


# ---- MIN, MAX, ARGMIN, ARGMAX --------------------------------------------------
def beats(x, y, largest):
    if x != x or y != y:
        return x != x and y == y
    if x == y == 0 and isinstance(x, float):
        x, y = math.copysign(1, x), math.copysign(1, y)
    return x > y if largest else x < y


def extreme_index(x, largest):
    best = 0
    for i in range(1, len(x)):
        if beats(x[i], x[best], largest):
            best = i
    return best


def number_extreme(x, largest):
    """NAN_MIN and NAN_MAX"""
    numbers = [v for v in x if v == v]
    return numbers[extreme_index(numbers, largest)] if numbers else math.nan


# ---- COUNT_NONZERO, ANY, ALL ----------------------------------------------------
def truths(x):
    """(count, any, all)"""
    count = sum(v != 0 for v in x)
    return count, int(count != 0), int(count == len(x))


# ---- mean and variance ---------------------------------------------------------
def moments(x):
    """(count, sum, m2)"""
    def leaf(first):
        last = min(len(x), first + 2048)
        total = leaf_value(lambda lane, i: lane + x[i], first, last)
        mean = total / float(last - first)
        return float(last - first), total, leaf_value(lambda lane, i: squared(x[i] - mean, lane), first, last)

    def chan(a, b):
        apart = b[1] / b[0] - a[1] / a[0]
        count = a[0] + b[0]
        return count, a[1] + b[1], (a[2] + b[2]) + (apart * apart) * (a[0] * (b[0] / count))

    return joined([leaf(first) for first in range(0, len(x), 2048)], chan)


def about_mean(x):
    """(mean, m2)"""
    n, total, m2 = moments(x)
    return (x[0], 0.0) if finite(x[0]) and x[0] != 0 and all(v == x[0] for v in x) else (total / n, m2)


def mean_variance(x, correction):
    if not x:
        return math.nan, math.nan
    mean, m2 = about_mean(x)
    return mean, m2 / float(len(x) - correction) if len(x) > correction else math.nan


# ---- scan ----------------------------------------------------------------------
def running_sums(x, exclusive=False):
    out = []
    for leaf in range(0, len(x), 2048):
        before = tree(lambda lane, i: lane + x[i], leaf) if leaf else -0.0
        rows = -0.0
        for row in range(leaf, min(len(x), leaf + 2048), 128):
            groups = -0.0
            for group in range(row, min(len(x), row + 128), 8):
                inside = [x[j] if j < len(x) else -0.0 for j in range(group, group + 8)]
                for d in (1, 2, 4):
                    inside = [inside[j - d] + inside[j] if j >= d else inside[j] for j in range(8)]
                out += [(before + rows) + (groups + v) for v in inside]
                groups = groups + inside[7]
            rows = rows + groups
    out = out[: len(x)]
    return [0.0, *out[:-1]] if exclusive and out else out


def running_extremes(x, largest, beyond, exclusive=False):
    out, best = [], beyond
    for v in x:
        with_v = v if beats(v, best, largest) else best
        out.append(best if exclusive else with_v)
        best = with_v
    return out


def running_integers(x, exclusive=False):
    """(what is stored, whether all of it fits)"""
    exact, total = [], 0
    for v in x:
        exact.append(total if exclusive else total + v)
        total += v
    stored = [min(MOST["i64"], max(LEAST["i64"], e)) for e in exact]
    return stored, stored == exact


# ---- normalize -----------------------------------------------------------------
def normalized(kind, x, dtype, eps, weight=None, bias=None, residual=None):
    """(y before it is written, h)"""
    h = x if residual is None else [narrowed(a + b, dtype) for a, b in zip(x, residual)]
    n, mean = float(len(h)), 0.0
    if kind == "L2":
        d = norm2(h, dtype == "f64")
        d = eps if d < eps else d
    elif kind == "RMS":
        d = root(float_sum("SUM_OF_SQUARES", h) / n + eps)
    else:
        mean, m2 = about_mean(h)
        d = root(m2 / n + eps)
    y = []
    for i, v in enumerate(h):
        t = divided(v - mean, d) if dtype == "f64" else (v - mean) * divided(1.0, d)
        if bias is not None:
            t = fma(t, 1.0 if weight is None else weight[i], bias[i])
        elif weight is not None:
            t = t * weight[i]
        y.append(t)
    return y, h


# ---- gradients of RMS and LAYER --------------------------------------------------
def gradients(layer, rows, gradient, eps, weight=None):
    """(y of each row, sums of weight's columns, of bias's), before they are written."""
    y, normal = [], []
    for h, g in zip(rows, gradient):
        n, mean = float(len(h)), 0.0
        if layer:
            mean, m2 = about_mean(h)
            d = root(m2 / n + eps)
        else:
            d = root(float_sum("SUM_OF_SQUARES", h) / n + eps)
        p, s = h[0] if layer else 0.0, divided(1.0, d)
        u = g if weight is None else [a * w for a, w in zip(g, weight)]
        total = float_sum("SUM", u) if layer else 0.0
        a, b = total / n, fma(p - mean, total, float_sum("DOT", u, [v - p for v in h])) * s / n
        t = [(v - mean) * s for v in h]
        y.append([fma(-c, b, v - a) * s for c, v in zip(t, u)])
        normal.append(t)
    columns = list(zip(*gradient)), list(zip(*normal))
    return y, [float_sum("DOT", g, t) for g, t in zip(*columns)], [float_sum("SUM", g) for g in columns[0]]


# ---- softmax and its kin -------------------------------------------------------
number = float.fromhex
POWERS = [number(c) for c in ("0x1.ad8d55a54a7bdp-26 0x1.28ae3c99da451p-22 0x1.71df1d1476cecp-19 0x1.a01999231b74ap-16 0x1.a01a012dcb964p-13 "
                          "0x1.6c16c18488a72p-10 0x1.111111112725dp-7 0x1.5555555550689p-5 0x1.55555555554fcp-3 0x1.000000000000ap-1").split()]
ODD_POWERS = [number(c) for c in ("0x1.2b7d1f0990b77p-3 0x1.39fb717e4f952p-3 0x1.7462caadf34ccp-3 0x1.c71c629bb2debp-3 0x1.2492492e25b5ap-2 "
                              "0x1.9999999995184p-2 0x1.5555555555558p-1").split()]


def polynomial(coefficients, x):
    q = coefficients[0]
    for c in coefficients[1:]:
        q = fma(q, x, c)
    return q


def exp_program(x):
    if not x >= -708:
        return 0.0 if x < -708 else x
    k = fma(x, number("0x1.71547652b82fep0"), number("0x1.8p52")) - number("0x1.8p52")
    r = fma(k, -number("0x1.abc9e3b39803fp-56"), fma(k, -number("0x1.62e42fefa39efp-1"), x))
    return math.ldexp(fma(r, fma(r, polynomial(POWERS, r), 1.0), 1.0), int(k))


def log_program(x):
    k, least = 0, number("0x1.6a09e667f3bcdp-1")
    while x >= 2 * least:
        k, x = k + 1, x / 2
    f = x - 1
    s = f / (f + 2)
    z, h = s * s, (0.5 * f) * f
    t = fma(s, fma(polynomial(ODD_POWERS, z), z, h), k * number("0x1.ef35793c7673p-45"))
    high = k * number("0x1.62e42fefa38p-1")
    total = high + f
    return total + ((f - (total - high)) - (h - t))


def exponentials(kind, h, scale, label=0):
    """y of finite elements and of those that are masked, before it is written."""
    m = max(h) if scale > 0 else min(h)
    d = [(v - m) * scale for v in h]
    e = [exp_program(v) for v in d]
    S = float_sum("SUM", e)
    if kind == "SOFTMAX":
        return [v * (1 / S) for v in e]
    if kind == "LOG_SOFTMAX":
        return [v - log_program(S) for v in d]
    return [m * scale + log_program(S) if kind == "LOGSUMEXP" else d[label] - log_program(S)]


# ---- stencil -------------------------------------------------------------------
def general(form, c, rank, radius):
    """Coefficients of any form in the order of the taps."""
    if form == "GENERAL":
        return list(c)
    of = lambda axis, k: c[1 + axis * radius + k - 1]
    sign = -1.0 if form == "ANTISYMMETRIC" else 1.0
    below = [sign * of(axis, -k) for axis in range(rank) for k in range(-radius, 0)]
    above = [of(axis, k) for axis in reversed(range(rank)) for k in range(1, radius + 1)]
    return below + [c[0]] + above


def taps(rank, radius):
    below = [(axis, k) for axis in range(rank) for k in range(-radius, 0)]
    return below + [(rank - 1, 0)] + [(axis, k) for axis in reversed(range(rank)) for k in range(1, radius + 1)]


def place(i, n, boundary):
    if 0 <= i < n:
        return i
    if boundary == "nearest":
        return 0 if i < 0 else n - 1
    if boundary == "wrap":
        return i % n
    if boundary == "mirror":
        if n == 1:
            return 0
        i %= 2 * (n - 1)
        return i if i < n else 2 * (n - 1) - i
    i %= 2 * n
    return i if i < n else 2 * n - 1 - i


def indices(shape):
    out = [()]
    for n in shape:
        out = [(*i, k) for i in out for k in range(n)]
    return out


def swept(x, shape, c, radius, boundary, value, dtype):
    """One sweep over {index: element}; c in the order of the taps. Gives (results, their shape)."""
    rank, c = len(shape), [narrowed(v, dtype) for v in c]
    shift = radius if boundary == "valid" else 0
    smaller = [n - 2 * shift for n in shape]
    out = {}
    for index in indices(smaller):
        total = None
        for weight, (axis, k) in zip(c, taps(rank, radius)):
            at = [i + shift for i in index]
            at[axis] += k
            if boundary == "constant" and not 0 <= at[axis] < shape[axis]:
                e = narrowed(value, dtype)
            else:
                at[axis] = place(at[axis], shape[axis], boundary)
                e = x[tuple(at)]
            total = narrowed(weight * e, dtype) if total is None else fma(weight, e, total, dtype)
        out[index] = total
    return out, smaller


# ---- convert and shuffle -------------------------------------------------------
def converted(x, scale):
    return x * scale


def source_lane(kind, lane, width, operand):
    s = lane - lane % width
    if kind == "IDX":
        return s + operand % width
    to = {"UP": lane - operand, "DOWN": lane + operand, "XOR": lane ^ operand}[kind]
    own = to < s if kind == "UP" else to >= s + width
    return lane if own else to
