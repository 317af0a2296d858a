#!/usr/bin/env python3
"""oracle_numpy.py LIBLOCKSTEP - every op through the C ABI against NumPy and exact
Python arithmetic (fractions, integers): a second opinion that shares neither code
nor language with the library and its tests. Exit code 77 without NumPy."""
import ctypes as C
import decimal
import math
import random
import sys
from fractions import Fraction

try:
    import numpy as np
except ImportError:
    print("SKIP: no NumPy")
    sys.exit(77)

from c_abi import (ARGMAX, ARGMIN, BF16, BOOL, Convert, EMPTY, F16, F32, F64, I16, I32, I64, I8, MAX, MIN, Map, NORM2, Normalize, OK, OVERFLOW, Permute,
                   Reduce, ReduceAxes, SSQ, SUM, Scan, Shuffle, Stencil, Sums, Transpose, U16, U32, U64, U8, i32, i64, ptr)
from order_numpy import fma, fused, leaf_squares, moments, running, term_tree, tree

TYPES = {F16: np.float16, BF16: np.uint16, F32: np.float32, F64: np.float64, I32: np.int32, I64: np.int64,
         I8: np.int8, I16: np.int16, U8: np.uint8, U16: np.uint16, U32: np.uint32, U64: np.uint64, BOOL: np.bool_}

lib = C.CDLL(sys.argv[1])
lib.lockstep_last_error.restype = C.c_char_p
context = ptr()
assert lib.lockstep_context_create(None, C.byref(context)) == OK
seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20260101
rng = np.random.default_rng(seed)
random.seed(seed)
checks = 0


def run(op, desc, src, dst, want=OK):
    desc.size = C.sizeof(desc)
    status = getattr(lib, "lockstep_" + op)(context, C.byref(desc), src.ctypes.data_as(ptr), dst.ctypes.data_as(ptr), None)
    assert status == want, (op, status, want, lib.lockstep_last_error())


def check(ok, *what):
    global checks
    checks += 1
    if not ok:
        sys.exit(f"FAILED (seed {seed}): " + " ".join(str(w) for w in what))


def noise(dtype, shape):
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape)


def same_bits(a, b):
    return a.tobytes() == b.tobytes()


# ---- moves -------------------------------------------------------------------
MOVED = [np.uint8, np.uint16, np.uint32, np.uint64, np.dtype("V16")]


def transposes():
    for dtype in MOVED:
        for _ in range(25):
            b, r, c = int(rng.integers(1, 4)), int(rng.integers(1, 90)), int(rng.integers(1, 90))
            a = noise(dtype, (b, r, c + 3))
            out = np.zeros((b, c, r + 2), dtype)
            run("transpose", Transpose(element_bytes=np.dtype(dtype).itemsize, rows=r, cols=c, src_ld=c + 3, dst_ld=r + 2,
                                       batch=b, src_batch_stride=r * (c + 3), dst_batch_stride=c * (r + 2)), a, out)
            check(same_bits(out[:, :, :r], a[:, :, :c].transpose(0, 2, 1)), "transpose", dtype, b, r, c)


def permutes():
    for dtype in MOVED:
        for _ in range(25):
            rank = int(rng.integers(1, 9))
            shape = [int(n) for n in rng.integers(1, 6 if rank < 6 else 4, rank)]
            perm = [int(k) for k in rng.permutation(rank)]
            a = noise(dtype, shape)
            out = np.zeros([shape[k] for k in perm], dtype)
            item = np.dtype(dtype).itemsize
            run("permute", Permute(element_bytes=item, rank=rank, perm=(i32 * 8)(*perm), shape=(i64 * 8)(*shape),
                                   src_strides=(i64 * 8)(*[s // item for s in a.strides]),
                                   dst_strides=(i64 * 8)(*[s // item for s in out.strides])), a, out)
            check(same_bits(out, np.ascontiguousarray(a.transpose(perm))), "permute", dtype, shape, perm)


def shuffles():
    lanes = np.arange(32)
    for dtype in (np.uint32, np.uint64):
        x = noise(dtype, 32 * 9).reshape(-1, 32)
        for width in (1, 2, 4, 8, 16, 32):
            start = lanes // width * width
            for kind in range(4):
                for operand in list(range(0, 32)) + ([] if kind == 3 else [33, 1000]) + ([-1, -17] if kind == 0 else []):
                    if kind == 0:
                        source = start + operand % width
                    elif kind == 1:
                        source = np.where(lanes - operand >= start, lanes - operand, lanes)
                    elif kind == 2:
                        source = np.where(lanes + operand < start + width, lanes + operand, lanes)
                    else:  # a lane of a later segment is not read
                        source = np.where((lanes ^ operand) < start + width, lanes ^ operand, lanes)
                    out = np.zeros_like(x)
                    run("shuffle", Shuffle(kind=kind, element_bytes=x.itemsize, count=x.size, width=width, operand=operand), x, out)
                    check(same_bits(out, x[:, source]), "shuffle", dtype, kind, width, operand)


# ---- sums --------------------------------------------------------------------
def values_of(dtype, x):
    """The elements as float64, exactly."""
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64) if dtype == BF16 else x.astype(np.float64)


def full(reduction, dtype, n, result):
    return Reduce(reduction=reduction, dtype=dtype, result=result, count=1, length=n, element_stride=1, sequence_stride=0)


def float_sums():
    for dtype in (F16, BF16, F32, F64):
        for n in (1, 2, 127, 129, 2048, 2049, 5000, 12345):
            x = rng.standard_normal(n) * np.exp(rng.uniform(-3, 3, n))
            x = (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) if dtype == BF16 else x.astype(TYPES[dtype])
            v = values_of(dtype, x)
            terms = 16 + 7 + max(0, math.ceil(math.log2(n / 2048)))
            out = np.zeros(1)
            run("reduce", full(SUM, dtype, n, F64), x, out)
            check(same_bits(out[0], np.float64(tree(v, False))), "sum bits", dtype, n, out[0], tree(v, False))
            half, brain = np.zeros(1, np.float16), np.zeros(1, np.uint16)
            run("reduce", full(SUM, dtype, n, F16), x, half)
            with np.errstate(over="ignore"):
                check(same_bits(half[0], out[0].astype(np.float16)), "sum to f16", dtype, n)
            run("reduce", full(SUM, dtype, n, BF16), x, brain)
            check(rounded(Fraction(float(out[0])), 8, -133) == Fraction(float(values_of(BF16, brain)[0])), "sum to bf16", dtype, n)
            if dtype in (F32, F64):
                check(abs(out[0] - math.fsum(v)) <= terms * 2.0**-53 * math.fsum(abs(v)) + math.ulp(out[0]), "sum bound", dtype, n)
            run("square_sum", full(SSQ, dtype, n, F64), x, out)
            squares = sum((Fraction(float(e)) ** 2 for e in v), Fraction(0))
            check(abs(Fraction(float(out[0])) - squares) <= Fraction(terms + 1, 2**53) * squares, "squares bound", dtype, n)
            if dtype != F64:
                check(same_bits(out[0], np.float64(tree(v, True))), "squares bits", dtype, n)
            root = np.zeros(1)
            run("square_sum", full(NORM2, dtype, n, F64), x, root)
            check(same_bits(root[0], np.sqrt(out[0])), "norm2", dtype, n)


def norms_out_of_range():
    """f64 norms whose plain squares overflow or vanish, against exact squares."""
    for low, high in ((500, 1000), (-1070, -560), (-1074, -1060)):
        for n in (1, 3, 1000):
            x = np.array([math.ldexp(random.uniform(1, 2) * random.choice((-1, 1)), random.randrange(low, high)) for _ in range(n)])
            if not x.any():
                continue
            out = np.zeros(1)
            run("square_sum", full(NORM2, F64, n, F64), x, out)
            exact = sum((Fraction(float(e)) ** 2 for e in x), Fraction(0))
            got = Fraction(float(out[0])) ** 2
            # half an ulp of the root, the tree's roundings, and a denormal's granularity
            slack = Fraction(60, 2**53) * exact + 2 * Fraction(float(out[0])) * Fraction(1, 2**1074)
            check(abs(got - exact) <= slack, "norm out of range", low, high, n, out[0])


def integer_sums():
    for dtype in (I32, I64, I8, I16, U8, U16, U32, U64, BOOL):
        bits = 8 * np.dtype(TYPES[dtype]).itemsize
        least, most = (0, 2**64) if dtype == U64 else (-(2**63), 2**63)
        for n in (1, 3, 100, 2049, 7000, 20000):
            for shift in (0, bits // 2, bits - 8):
                x = noise(np.int8, n) % 3 == 0 if dtype == BOOL else noise(TYPES[dtype], n) >> shift
                v = [int(e) for e in x]
                for op, reduction, exact in (("reduce", SUM, sum(v)), ("square_sum", SSQ, sum(e * e for e in v))):
                    fits = least <= exact < most
                    out = np.zeros(1, np.uint64 if dtype == U64 else np.int64)
                    run(op, full(reduction, dtype, n, U64 if dtype == U64 else I64), x, out, OK if fits else OVERFLOW)
                    check(int(out[0]) == (exact if fits else most - 1 if exact > 0 else least), "integer", op, dtype, n, shift)
                out = np.zeros(1)
                run("square_sum", full(NORM2, dtype, n, F64), x, out)
                exact = sum(e * e for e in v)
                r = Fraction(float(out[0]))
                near = [Fraction(math.nextafter(float(out[0]), d)) for d in (0.0, math.inf)]  # the root lies nearest to r
                check(((r + near[0]) / 2) ** 2 <= exact <= ((r + near[1]) / 2) ** 2 or exact == 0 == r, "integer norm", dtype, n, shift)


# ---- min, max and where ------------------------------------------------------
def extremes():
    floats = (F16, F32, F64)
    for dtype in (F16, F32, F64, I32, I64, I8, I16, U8, U16, U32, U64, BOOL):
        for rows, cols in ((1, 1), (7, 33), (40, 129), (3, 5000)):
            x = noise(np.uint8, (rows, cols)) % 5 == 0 if dtype == BOOL else noise(TYPES[dtype], (rows, cols)).copy()
            if dtype in floats:
                x[:] = rng.integers(-3, 4, x.shape)
                x[rng.random(x.shape) < 0.1] = -0.0
                x[rng.random(x.shape) < 0.5 / cols] = np.nan
            # NaN first, then -0.0 below +0.0, then the lowest index
            rank = [[(0 if e != e else 1, float(e) if dtype in floats else int(e), math.copysign(1, e)) for e in row] for row in x]
            least = [min(range(cols), key=lambda k: r[k] if r[k][0] else (0,)) for r in rank]
            most = [min(range(cols), key=lambda k: (1, -r[k][1], -r[k][2]) if r[k][0] else (0,)) for r in rank]
            for by_columns in (False, True):
                a = np.ascontiguousarray(x.T) if by_columns else x
                strides = (rows, 1) if by_columns else (1, cols)
                for reduction, picked in ((MIN, least), (MAX, most), (ARGMIN, least), (ARGMAX, most)):
                    arg = reduction in (ARGMIN, ARGMAX)
                    out = np.zeros(rows, np.int64 if arg else TYPES[dtype])
                    run("reduce", Reduce(reduction=reduction, dtype=dtype, result=I64 if arg else dtype, count=rows, length=cols,
                                         element_stride=strides[0], sequence_stride=strides[1]), a, out)
                    want = np.array(picked, np.int64) if arg else x[np.arange(rows), picked].copy()
                    if not arg and dtype in floats:
                        want[np.isnan(want)] = np.nan  # the canonical one
                    check(same_bits(out, want), "extremes", dtype, rows, cols, reduction, by_columns)
    x, out = np.zeros(1, np.float32), np.full(1, 7, np.float32)
    run("reduce", Reduce(reduction=MAX, dtype=F32, result=F32, count=1, length=0, element_stride=1, sequence_stride=0), x, out, EMPTY)
    check(out[0] == 7, "an empty sequence's result stays")


def segments():
    x = rng.integers(-1000, 1000, 5000).astype(np.int32)
    cuts = np.sort(rng.integers(0, 5001, 60)).astype(np.int64)
    cuts[20:25] = cuts[20]
    out = np.zeros(59, np.int64)
    run("reduce", Reduce(reduction=SUM, dtype=I32, result=I64, count=59, element_stride=1, offsets=cuts.ctypes.data), x, out)
    check(out.tolist() == [int(x[a:b].sum()) for a, b in zip(cuts, cuts[1:])], "segments")
    y = x.astype(np.float64) / 3
    real = np.zeros(59)
    run("reduce", Reduce(reduction=SUM, dtype=F64, result=F64, count=59, element_stride=1, offsets=cuts.ctypes.data), y, real)
    check(same_bits(real, np.array([tree(y[a:b], False) if b > a else 0.0 for a, b in zip(cuts, cuts[1:])])), "segments of floats")


# ---- stencils ----------------------------------------------------------------
def rounded(q, bits, least):
    """A fraction rounded to nearest even at bits of mantissa, denormals at 2**least."""
    if q == 0:
        return Fraction(0)
    e = max(math.frexp(float(abs(q)))[1] - bits, least)
    unit = Fraction(2) ** e
    if abs(q) / unit >= 2**bits:
        unit *= 2
    return Fraction(round(q / unit)) * unit  # round() of a Fraction is to even


PAD = {0: "edge", 1: "reflect", 2: "symmetric", 3: "wrap"}


def stencils():
    for dtype, bits, least in ((F32, 24, -149), (F64, 53, -1074)):
        for boundary in range(6):
            for rank, shape, radius in ((1, [37], 4), (1, [70], 16), (2, [9, 11], 3), (3, [5, 6, 7], 2)):
                taps = 2 * radius * rank + 1
                x = rng.standard_normal(shape).astype(TYPES[dtype])
                c = rng.standard_normal(taps)
                value = 1.0 / 3
                valid = boundary == 5
                if valid and min(shape) <= 2 * radius:
                    continue
                padded = x if valid else np.pad(x, radius, "constant", constant_values=TYPES[dtype](value)) if boundary == 4 \
                    else np.pad(x, radius, PAD[boundary])
                out = np.zeros([n - 2 * radius for n in shape] if valid else shape, TYPES[dtype])
                full3 = lambda v: (i64 * 3)(*v)
                run("stencil", Stencil(dtype=dtype, form=0, boundary=boundary, rank=rank, radius=radius, coefficient_count=taps, sweeps=1,
                                       coefficients=c.ctypes.data, value=value, shape=full3(shape),
                                       src_strides=full3([s // x.itemsize for s in x.strides]),
                                       dst_strides=full3([s // x.itemsize for s in out.strides]), batch=1), x, out)
                offsets = sorted({tuple(k if a == axis else 0 for a in range(rank)) for axis in range(rank) for k in range(-radius, radius + 1)})
                weights = [Fraction(float(TYPES[dtype](w))) for w in c]
                for index in np.ndindex(*out.shape):
                    if out.size > 100 and rng.random() > 0.3:
                        continue
                    total = None
                    for offset, w in zip(offsets, weights):
                        e = Fraction(float(padded[tuple(i + o + radius for i, o in zip(index, offset))]))
                        total = rounded(w * e if total is None else w * e + total, bits, least)
                    check(Fraction(float(out[index])) == total, "stencil", dtype, boundary, shape, radius, index, out[index], float(total))


# ---- normalize ---------------------------------------------------------------
L2, RMS, LAYER = range(3)
MANTISSA = {F16: (11, -24), BF16: (8, -133), F32: (24, -149), F64: (53, -1074)}


def in_type(dtype, v):
    """A float64 array rounded once to dtype, by exact fractions."""
    bits, least = MANTISSA[dtype]
    out = np.array([float(rounded(Fraction(float(e)), bits, least)) or math.copysign(0.0, e) for e in v])
    if dtype == BF16:
        return (out.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return out.astype(TYPES[dtype])


def normalized(kind, dtype, h, eps, weight, bias):
    n = float(len(h))
    mean, squares = 0.0, None
    if kind == LAYER:
        n, total, squares = moments(h)
        mean = total / n
    else:  # squares of f64 too by exact fused multiply-adds
        squares = float(tree(h, True)) if dtype != F64 else moments_about_zero(h)
    d = max(math.sqrt(squares), eps) if kind == L2 else math.sqrt(squares / n + eps)
    t = (h - mean) / d if dtype == F64 else (h - mean) * (1.0 / d)
    if bias is not None:
        return np.array([fma(a, b, c) for a, b, c in zip(t, weight if weight is not None else np.ones(len(h)), bias)])
    return t * weight if weight is not None else t


def moments_about_zero(x):
    level = [leaf_squares(x[k : k + 2048], 0.0) for k in range(0, len(x), 2048)]
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2])] + level[len(level) // 2 * 2 :]
    return level[0]


def normalizations():
    floats = lambda dtype, shape, spread: in_type(dtype, (rng.standard_normal(shape) * np.exp(rng.uniform(-spread, spread, shape))).ravel())
    cases = [(kind, dtype, n) for kind in (L2, RMS, LAYER) for dtype in (F16, BF16, F32, F64) for n in (1, 5, 130, 2049, 4500)]
    for k, (kind, dtype, n) in enumerate(cases):
        rows = 2 if n < 2000 else 1
        result = (dtype, F16, BF16, F32)[k % 4]
        wide = F32 if k % 3 == 0 else dtype
        weight = floats(wide, n, 1) if k % 2 else None
        bias = floats(wide, n, 1) if k % 5 in (1, 2) else None
        x, r = floats(dtype, rows * n, 3), floats(dtype, rows * n, 2) if k % 7 in (1, 3) else None
        total = np.zeros_like(x)
        eps = (1e-5, 0.0, 1e-12)[k % 3] if n > 1 else 1e-5
        out = np.zeros(rows * n, TYPES[result])
        address = lambda a: None if a is None else a.ctypes.data
        run("normalize", Normalize(kind=kind, dtype=dtype, result=result, weight_dtype=wide, count=rows, length=n, src_stride=n,
                                   dst_stride=n, residual_stride=n, sum_stride=n, eps=eps, weight=address(weight), bias=address(bias),
                                   residual=address(r), sum=address(total) if r is not None else None), x, out)
        h = x if r is None else in_type(dtype, values_of(dtype, x) + values_of(dtype, r))
        check(r is None or same_bits(total, h), "normalize sum", kind, dtype, n)
        v, w, b = values_of(dtype, h), *(None if a is None else values_of(wide, a) for a in (weight, bias))
        for row in range(rows):
            want = in_type(result, normalized(kind, dtype, v[row * n : row * n + n], eps, w, b))
            check(same_bits(out[row * n : row * n + n], want), "normalize", kind, dtype, n, result, row)
        if n < 2000 and r is None and weight is None and bias is None and result == F64:  # and against exact numbers
            exact = [Fraction(float(e)) for e in v[:n]]
            m = sum(exact) / n if kind == LAYER else Fraction(0)
            q = sum((e - m) ** 2 for e in exact)
            d2 = max(q, Fraction(eps) ** 2) if kind == L2 else q / n + Fraction(eps)
            for e, got in zip(exact, out):
                want = (float((e - m) ** 2 / d2)) ** 0.5
                check(abs(abs(float(got)) - want) <= 1e-12 * (want + 1), "normalize exact", kind, n)


# ---- softmax and its kin -------------------------------------------------------
# The two programs of order id 1, as order.md has them, by exact fractions.
TAIL = [float.fromhex(h) for h in ("0x1.000000000000ap-1", "0x1.55555555554fcp-3", "0x1.5555555550689p-5", "0x1.111111112725dp-7",
                                   "0x1.6c16c18488a72p-10", "0x1.a01a012dcb964p-13", "0x1.a01999231b74ap-16", "0x1.71df1d1476cecp-19",
                                   "0x1.28ae3c99da451p-22", "0x1.ad8d55a54a7bdp-26")]
SERIES = [float.fromhex(h) for h in ("0x1.5555555555558p-1", "0x1.9999999995184p-2", "0x1.2492492e25b5ap-2", "0x1.c71c629bb2debp-3",
                                     "0x1.7462caadf34ccp-3", "0x1.39fb717e4f952p-3", "0x1.2b7d1f0990b77p-3")]
h = float.fromhex
LOG2_E, LN2, LN2_REST = h("0x1.71547652b82fep0"), h("0x1.62e42fefa39efp-1"), h("0x1.abc9e3b39803fp-56")
LN2_SHORT, LN2_LONG = h("0x1.62e42fefa3800p-1"), h("0x1.ef35793c76730p-45")


def program_exp(d):
    if d < -708 or d != d:
        return 0.0 if d < -708 else d
    k = float(round(Fraction(d) * Fraction(LOG2_E)))  # the sum with 1.5 * 2^52 rounds once, to an even one of two
    r = fma(k, -LN2_REST, fma(k, -LN2, d))
    q = TAIL[9]
    for c in TAIL[8::-1]:
        q = fma(q, r, c)
    return math.ldexp(fma(r, fma(r, q, 1.0), 1.0), int(k))


def program_log(x):
    u, k = math.frexp(x)
    if u < h("0x1.6a09e667f3bcdp-1"):
        u, k = 2 * u, k - 1
    f = u - 1.0
    s = f / (f + 2.0)
    z, half = s * s, 0.5 * f * f
    q = SERIES[6]
    for c in SERIES[5::-1]:
        q = fma(q, z, c)
    t = fma(s, fma(q, z, half), k * LN2_LONG)
    high = k * LN2_SHORT
    total = high + f
    return total + ((f - (total - high)) - (half - t))


SOFTMAX, LOG_SOFTMAX, LOGSUMEXP, PICKED = range(3, 7)


def exponentials():
    cases = [(kind, dtype, n) for kind in (SOFTMAX, LOG_SOFTMAX, LOGSUMEXP, PICKED) for dtype in (F16, BF16, F32, F64) for n in (1, 6, 130, 2100)]
    for case, (kind, dtype, n) in enumerate(cases):
        rows, scale = (2, (1.0, -0.75, 1 / 3)[case % 3])
        x = in_type(dtype, rng.standard_normal(rows * n) * (1, 8, 60)[case % 3])
        masked = rng.random(rows * n) < 0.1
        masked[::n] = False  # not all of a row
        v = np.where(masked, -math.copysign(math.inf, scale), values_of(dtype, x))
        x = np.where(masked, TYPES[dtype](-math.copysign(math.inf, scale)) if dtype != BF16 else (0xFF80 if scale > 0 else 0x7F80), x).astype(x.dtype)
        labels = rng.integers(0, n, rows)
        one = kind in (LOGSUMEXP, PICKED)
        result = (dtype, F16, BF16, F32, F64)[case % (5 if one else 4)]
        out = np.zeros(rows if one else rows * n, TYPES[result])
        run("normalize", Normalize(kind=kind, dtype=dtype, result=result, weight_dtype=dtype, count=rows, length=n, src_stride=n,
                                   dst_stride=1 if one else n, eps=scale, weight=labels.ctypes.data if kind == PICKED else None), x, out)
        for row in range(rows):
            r = v[row * n: row * n + n]
            m = float(r.max() if scale > 0 else r.min())
            d = (r - m) * scale
            e = np.array([program_exp(float(t)) for t in d])
            total = float(tree(e, False))
            log = program_log(total)
            if kind == SOFTMAX:
                want = e * (1.0 / total)
            elif kind == LOG_SOFTMAX:
                want = d - log
            else:
                want = np.array([m * scale + log if kind == LOGSUMEXP else d[labels[row]] - log])
            got = out[row: row + 1] if one else out[row * n: row * n + n]
            check(same_bits(got, rounded_bits(result, want)), "exponentials", kind, dtype, n, result, scale, row)
            if kind == SOFTMAX and result != F64 and n < 2000:  # and against 60 digits
                bits, least = MANTISSA[result]
                with decimal.localcontext(decimal.Context(prec=60, Emax=10**8, Emin=-10**8)):
                    D = decimal.Decimal
                    powers = [(D(float(t)) - D(m)) * D(scale) for t in r]
                    powers = [p.exp() if p.is_finite() else D(0) for p in powers]
                    for p, g in zip(powers, as_doubles(result, got)):
                        exact = p / sum(powers)
                        unit = D(2) ** max(math.frexp(float(exact))[1] - bits, least) if exact else D(2) ** least
                        check(abs(D(float(g)) - exact) <= D("0.51") * unit, "softmax exact", dtype, n, result)


# ---- scan --------------------------------------------------------------------
def scans():
    for dtype in (F16, BF16, F32, F64):
        for n in (1, 7, 8, 9, 127, 129, 2048, 2049, 7000, 30001):
            x = in_type(dtype, rng.standard_normal(n)) if n < 3000 else rng.standard_normal(n).astype(np.float32 if dtype == BF16 else TYPES[dtype])
            if dtype == BF16 and n >= 3000:
                x = (x.view(np.uint32) >> 16).astype(np.uint16)
            v = values_of(dtype, x)
            want = running(v)
            for exclusive in (0, 1):
                sums = np.concatenate(([0.0], want[:-1])) if exclusive else want
                out = np.zeros(n)
                scan = lambda result: Scan(reduction=SUM, dtype=dtype, result=result, count=1, length=n, element_stride=1, sequence_stride=n,
                                           dst_element_stride=1, dst_sequence_stride=n, exclusive=exclusive)
                run("scan", scan(F64), x, out)
                check(same_bits(out, sums), "scan", dtype, n, exclusive)
                narrow = np.zeros(n, np.float32)
                run("scan", scan(F32), x, narrow)
                check(same_bits(narrow, sums.astype(np.float32)), "scan to f32", dtype, n, exclusive)
            if n < 3000:  # and against exact numbers
                exact, magnitude = Fraction(0), Fraction(0)
                for e, got in zip(v, want):
                    exact, magnitude = exact + Fraction(float(e)), magnitude + abs(Fraction(float(e)))
                    check(abs(Fraction(float(got)) - exact) <= 64 * magnitude / 2**53, "scan bound", dtype, n)
    for dtype in (I32, I64):
        x = noise(TYPES[dtype], 5000).copy()
        exact = np.array([0] + [int(e) for e in x], object).cumsum()[1:]
        out = np.zeros(5000, np.int64)
        d = Scan(reduction=SUM, dtype=dtype, result=I64, count=1, length=5000, element_stride=1, sequence_stride=1, dst_element_stride=1, dst_sequence_stride=1)
        fits = all(-(2**63) <= e < 2**63 for e in exact)
        run("scan", d, x, out, OK if fits else OVERFLOW)
        check(out.tolist() == [max(-(2**63), min(2**63 - 1, e)) for e in exact], "exact scan", dtype)
    for reduction, best in ((MIN, np.minimum), (MAX, np.maximum)):
        x = rng.integers(-1000, 1000, (60, 70)).astype(np.float32)
        x[rng.random(x.shape) < 0.01] = np.nan
        out = np.zeros((60, 70), np.float32)  # along the columns
        run("scan", Scan(reduction=reduction, dtype=F32, result=F32, count=70, length=60, element_stride=70, sequence_stride=1,
                         dst_element_stride=70, dst_sequence_stride=1), x, out)
        want = best.accumulate(x, axis=0)
        want[np.isnan(want)] = np.nan
        check(same_bits(out, want), "scan extremes", reduction)


# ---- sums --------------------------------------------------------------------
def sums():
    DOT, SQDIFF, ABSDIFF, ABS, MEANVAR = range(5)

    def call(kind, dtype, result, x, y, out, want=OK, rows=1, correction=0, stride=1):
        n = x.size // rows // stride
        run("sums", Sums(kind=kind, dtype=dtype, result=result, count=rows, length=n, element_stride=stride, sequence_stride=n * stride,
                         other=None if y is None else y.ctypes.data, other_element_stride=1, other_sequence_stride=n, correction=correction), x, out, want)

    for dtype in (F16, BF16, F32, F64):
        for n in (1, 5, 127, 129, 2047, 2049, 5000):
            x, y = (in_type(dtype, rng.standard_normal(n)) for _ in range(2))
            a, b = values_of(dtype, x), values_of(dtype, y)
            out = np.zeros(1)
            call(DOT, dtype, F64, x, y, out)
            check(same_bits(out, np.array([term_tree(n, lambda s, i, k: fused(a[i: i + k], b[i: i + k], s))])), "dot", dtype, n)
            terms = sum(abs(Fraction(float(p)) * Fraction(float(q))) for p, q in zip(a, b))
            exact = sum(Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a, b))
            check(abs(Fraction(float(out[0])) - exact) <= (25 + max(0, math.ceil(math.log2(n / 2048)))) * terms / 2**53, "bound of dot", dtype, n)
            call(DOT, dtype, F64, x, x, out)
            squares = np.zeros(1)
            run("square_sum", Reduce(reduction=SSQ, dtype=dtype, result=F64, count=1, length=n, element_stride=1), x, squares)
            check(same_bits(out, squares), "dot with itself", dtype, n)
            d = a - b
            call(SQDIFF, dtype, F64, x, y, out)
            check(same_bits(out, np.array([term_tree(n, lambda s, i, k: fused(d[i: i + k], d[i: i + k], s))])), "squared differences", dtype, n)
            call(ABSDIFF, dtype, F64, x, y, out)
            check(same_bits(out, np.array([tree(np.abs(d), False)])), "absolute differences", dtype, n)
            narrow = np.zeros(1, np.float32)
            call(ABS, dtype, F32, x, None, narrow)
            check(same_bits(narrow, np.array([tree(np.abs(a), False)]).astype(np.float32)), "absolute", dtype, n)
            both = np.zeros(2)
            call(MEANVAR, dtype, F64, x, None, both, correction=1)
            mean = tree(a, False) / n
            check(both[0] == mean, "mean", dtype, n)
            if n == 1:
                check(np.isnan(both[1]), "variance of one", dtype)
            else:
                middle = sum(Fraction(float(e)) for e in a) / n
                variance = sum((Fraction(float(e)) - middle) ** 2 for e in a) / (n - 1)
                bound = 4 * (27 + max(0, math.ceil(math.log2(n / 2048)))) * (1 + abs(float(mean)) / math.sqrt(variance)) * 2.0**-53
                check(abs(Fraction(float(both[1])) - variance) <= Fraction(bound) * variance, "variance", dtype, n)
    for dtype in (I8, I16, I32, I64, U8, U16, U32, U64, BOOL):
        bits = np.dtype(TYPES[dtype]).itemsize * 8
        for small in (True, False):
            n = 3 * 9000
            x, y = (noise(TYPES[dtype], n).copy() if dtype != BOOL else rng.integers(0, 2, n).astype(bool) for _ in range(2))
            if small and bits == 64:
                x, y = x >> 40, y >> 40
            a, b = ([int(e) for e in v] for v in (x, y))
            for kind, term in ((DOT, lambda p, q: p * q), (SQDIFF, lambda p, q: (p - q) ** 2), (ABSDIFF, lambda p, q: abs(p - q)), (ABS, lambda p, q: abs(p))):
                exact = [sum(map(term, a[r * 9000: r * 9000 + 9000], b[r * 9000: r * 9000 + 9000])) for r in range(3)]
                least, most = (0, 2**64 - 1) if dtype == U64 else (-(2**63), 2**63 - 1)
                out = np.zeros(3, np.uint64 if dtype == U64 else np.int64)
                call(kind, dtype, U64 if dtype == U64 else I64, x, None if kind == ABS else y, out, OK if all(least <= e <= most for e in exact) else OVERFLOW, rows=3)
                check(out.tolist() == [max(least, min(most, e)) for e in exact], "exact sums", dtype, kind)
    # Partial sums pass both ends, the whole fits.
    m = 2**63 - 1
    x, y = np.array([m, m, -m, -m, 7, m], np.int64), np.array([m, 1, m, 1, 3, 1], np.int64)
    out = np.zeros(1, np.int64)
    call(DOT, I64, I64, x, y, out, OVERFLOW)
    check(out[0] == m, "dot past the end")
    call(DOT, I64, I64, x[:5].copy(), y, out)
    check(out[0] == 21, "dot that comes back")
    x = np.arange(12, dtype=np.float32)  # every other element
    out = np.zeros(2)
    call(DOT, F32, F64, x, np.ones(6, np.float32), out, rows=2, stride=2)
    check(out.tolist() == [6, 24], "strided dot")


def any_axes():
    for dtype in (F32, F64, I32, U8):
        for trial in range(40):
            rank = int(rng.integers(1, 6))
            shape = [int(n) for n in rng.integers(1, 9 if rank > 2 else 90, rank)]
            axes = sorted(int(k) for k in rng.permutation(rank)[: int(rng.integers(1, rank + 1))])
            x = noise(TYPES[dtype], shape).copy() if dtype in (I32, U8) else rng.standard_normal(shape).astype(TYPES[dtype])
            order = [int(k) for k in rng.permutation(rank)]  # of the axes in memory
            x = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
            kept = [k for k in range(rank) if k not in axes]
            rows = np.ascontiguousarray(x.transpose(kept + axes)).reshape(int(np.prod([shape[k] for k in kept])), -1)
            desc = lambda reduction, result: ReduceAxes(reduction=reduction, dtype=dtype, result=result, rank=rank, axis_count=len(axes),
                                                        axes=(i32 * 8)(*axes[::-1]), shape=(i64 * 8)(*shape),
                                                        src_strides=(i64 * 8)(*[s // x.itemsize for s in x.strides]))
            if dtype in (I32, U8):
                out = np.zeros(len(rows), np.int64)
                run("reduce_axes", desc(SUM, I64), x, out)
                check(out.tolist() == x.sum(axis=tuple(axes), dtype=np.int64).ravel().tolist(), "sum over axes", shape, axes)
            else:
                out = np.zeros(len(rows))
                run("reduce_axes", desc(SUM, F64), x, out)
                check(same_bits(out, np.array([tree(r.astype(np.float64), False) for r in rows])), "sum over axes", shape, axes)
            out = np.zeros(len(rows), TYPES[dtype])
            run("reduce_axes", desc(MAX, dtype), x, out)
            check(same_bits(out, x.max(axis=tuple(axes)).ravel()), "max over axes", shape, axes)
            out = np.zeros(len(rows), np.int64)
            run("reduce_axes", desc(ARGMIN, I64), x, out)
            check(same_bits(out, rows.argmin(axis=1)), "argmin over axes", shape, axes)


def as_doubles(dtype, bits):
    if dtype == BF16:
        bits = (bits.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaN
        return bits.astype(np.float64)


# The bits of y rounded once to dtype, a NaN as the canonical one. bfloat16 by exact neighbours, as NumPy has none.
def rounded_bits(dtype, y):
    quiet = {F16: 0x7E00, BF16: 0x7FC0, F32: 0x7FC00000, F64: 0x7FF8000000000000}[dtype]
    with np.errstate(all="ignore"):
        if dtype != BF16:
            bits = y.astype(TYPES[dtype]).view({F16: np.uint16, F32: np.uint32, F64: np.uint64}[dtype])
        else:
            low = (np.abs(y).astype(np.float32).view(np.uint32) >> 16).astype(np.uint32)
            # That rounding may have passed y: the largest bfloat16 that is no more than |y|.
            low -= as_doubles(BF16, low.astype(np.uint16)) > np.abs(y)
            below, above = (as_doubles(BF16, (low + k).astype(np.uint16)) for k in (0, 1))
            above = np.where(np.isinf(above) & ~np.isinf(below), 2.0**128, above)  # rounding to nearest goes by it
            down, up = np.abs(y) - below, above - np.abs(y)
            bits = np.where(np.isinf(y), 0x7F80, low + ((up < down) | ((up == down) & (low & 1 == 1)))).astype(np.uint16)
            bits |= np.signbit(y).astype(np.uint16) << 15
    return np.where(np.isnan(y), bits.dtype.type(quiet), bits)


def conversions():
    every = np.arange(1 << 16, dtype=np.uint16)
    for dtype in (F16, BF16, F32, F64):
        wide = {F32: np.uint32, F64: np.uint64}.get(dtype)
        for result in (F16, BF16, F32, F64):
            # Every half; of the wider types what lies half way between two halves, and beside that.
            halves = every.view(np.float16) if dtype == F16 else every
            if wide:
                ends = [as_doubles(t, v)[: 1 << 15] for t, v in ((F16, every.view(np.float16)), (BF16, every))]
                with np.errstate(invalid="ignore"):
                    between = np.concatenate([(e[:-1] + e[1:]) / 2 for e in ends] + ends).astype(TYPES[dtype]).view(wide)
                between = np.concatenate([between, between + wide(1), between - wide(1)])
                sign = wide(1) << wide(8 * np.dtype(wide).itemsize - 1)
                halves = np.concatenate([between, between | sign]).view(TYPES[dtype])
            out = np.zeros(len(halves), TYPES[result])
            for scale in (1.0, 0.5, -3.0, float(np.float32(1) / np.float32(255)), 0.1, 2.0**-140, 1e300, 0.0, np.inf, np.nan):
                run("convert", Convert(dtype=dtype, result=result, scale=scale, rank=1, shape=(i64 * 8)(len(halves)), src_strides=(i64 * 8)(1),
                                       dst_strides=(i64 * 8)(1)), halves, out)
                with np.errstate(all="ignore"):
                    want = rounded_bits(result, as_doubles(dtype, halves) * scale)
                check(same_bits(out, want), "convert", dtype, result, scale)
            for _ in range(12):
                rank = int(rng.integers(1, 6))
                shape = [int(n) for n in rng.integers(1, 9 if rank > 2 else 150, rank)]
                order = [int(k) for k in rng.permutation(rank)]
                x = noise(TYPES[dtype], shape).copy()
                out = np.zeros([shape[k] for k in order], TYPES[result])
                run("convert", Convert(dtype=dtype, result=result, scale=0.1, rank=rank, shape=(i64 * 8)(*out.shape),
                                       src_strides=(i64 * 8)(*[x.strides[k] // x.itemsize for k in order]),
                                       dst_strides=(i64 * 8)(*[s // out.itemsize for s in out.strides])), x, out)
                with np.errstate(all="ignore"):
                    want = rounded_bits(result, as_doubles(dtype, x.transpose(order).copy()) * 0.1)
                check(same_bits(out, want), "convert", dtype, result, shape, order)


# By Python's 50 decimal digits, from the definitions alone.
def by_digits(name, x):
    D = decimal.Decimal
    with decimal.localcontext(decimal.Context(prec=60, Emax=10**8, Emin=-10**8)):
        x = D(x)
        e = (-x).exp()
        if name == "exp": return x.exp()
        if name == "expm1": return (1 - e) / e
        if name == "log": return x.ln()
        if name == "log1p": return (1 + x).ln()
        if name == "sqrt": return x.sqrt()
        if name == "rsqrt": return 1 / x.sqrt()
        if name == "reciprocal": return 1 / x
        if name == "tanh": return (1 - e * e) / (1 + e * e)
        if name == "sigmoid": return 1 / (1 + e)
        if name == "silu": return x / (1 + e)
        if name == "softplus": return (1 + 1 / e).ln()
        pi = D("3.14159265358979323846264338327950288419716939937510582097494459")
        if name == "gelu_tanh": return x / (1 + (-2 * (2 / pi).sqrt() * (x + D("0.044715") * x * x * x)).exp())
        # erf(z) = 2 z exp(-z^2) / sqrt(pi) (1 + 2 z^2 / 3 (1 + 2 z^2 / 5 (1 + ...)))
        z = x / 2 / D("0.5").sqrt() if name == "gelu" else x
        term = total = z
        for n in range(1, 400):
            term *= 2 * z * z / (2 * n + 1)
            total += term
        erf = 2 * total * (-z * z).exp() / pi.sqrt()
        return x * (1 + erf) / 2 if name == "gelu" else erf


NAMES = ("exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "erf", "softplus")


def functions():
    """Values at random arguments from -6 to 6, rounded from 60 digits once."""
    for function, name in enumerate(NAMES):
        for dtype in (F16, BF16, F32):
            x = rng.uniform(2.0**-10, 6, 200) * (1 if name in ("log", "sqrt", "rsqrt") else rng.choice([-1, 1], 200))
            x = x[x > -0.99] if name == "log1p" else x
            given = x.astype(np.float32) if dtype == F32 else rounded_bits(dtype, x)
            given = given.view(np.float16) if dtype == F16 else given
            x = as_doubles(dtype, given)
            want = np.array([float(by_digits(name, float(v))) for v in x])  # no such value lies near a middle of two halves or floats
            for result in (F16, BF16, F32):
                out = np.zeros(len(given), TYPES[result])
                run("map", Map(dtype=dtype, result=result, scale=1.0, rank=1, shape=(i64 * 8)(len(given)), src_strides=(i64 * 8)(1),
                               dst_strides=(i64 * 8)(1), function=function), given, out)
                check(same_bits(out, rounded_bits(result, want)), "map", name, dtype, result)


def digests():
    """The formula of order.md, with NumPy's integers modulo 2^64."""
    def digest(dtype, x):
        raw = x.tobytes()
        words = np.frombuffer(raw + bytes(-len(raw) % 8), "<u8")
        x = words + np.arange(1, len(words) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(16 * dtype * 0xC2B2AE3D27D4EB4F % 2**64)
        x[-1:] += np.uint64(-len(raw) % 8 * 0xC2B2AE3D27D4EB4F % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
        y = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        return np.array([x.sum(), (y ^ (y >> np.uint64(32))).sum()], np.uint64)

    for dtype, of in TYPES.items():
        for n in (0, 1, 3, 8, 129, 5000, 70001):
            x = noise(np.uint8, n) % 2 == 1 if dtype == BOOL else noise(of, n)
            out = np.zeros(2, np.uint64)
            run("sums", Sums(kind=5, dtype=dtype, result=U64, count=1, length=n, element_stride=1, other_element_stride=1), x, out)
            check(same_bits(out, digest(dtype, x)), "digest", dtype, n)
            parts = np.zeros(2, np.uint64)
            for first in range(0, n, 1000):  # parts add up
                part = x[first: first + 1000].copy()
                run("sums", Sums(kind=5, dtype=dtype, result=U64, count=1, length=len(part), element_stride=1, other_element_stride=1, correction=first), part, out)
                parts += out
            check(same_bits(parts, digest(dtype, x)), "digest of parts", dtype, n)


for part in (transposes, permutes, shuffles, float_sums, norms_out_of_range, integer_sums, extremes, segments, stencils, normalizations, exponentials, scans, sums, any_axes, conversions, functions, digests):
    before = checks
    part()
    print(f"{part.__name__}: {checks - before} checks equal")
lib.lockstep_context_destroy(context)
