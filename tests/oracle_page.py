#!/usr/bin/env python3
"""oracle_page.py LIBLOCKSTEP SEED PAGE... - the library against order_page.py, bit for bit: what a reader of
tools/docs/en/order.md would write must predict every result, and the numbers on that page must be right. Needs
nothing but Python."""
import ctypes as C
import math
import pathlib
import random
import re
import struct
import sys

import order_page as page
from c_abi import (ARGMAX, ARGMIN, BF16, BOOL, Convert, EMPTY, F16, F32, F64, I16, I32, I64, I8, MAX, MIN, NORM2, Normalize, OK, OVERFLOW, Permute,
                   Reduce, ReduceAxes, SSQ, SUM, Scan, Shuffle, Stencil, Sums, Transpose, U16, U32, U64, U8, f64, i32, i64, ptr)

FLOATS = {F16: "f16", BF16: "bf16", F32: "f32", F64: "f64"}
CODES = {F16: "H", BF16: "H", F32: "I", F64: "Q", I8: "b", I16: "h", I32: "i", I64: "q", U8: "B", U16: "H", U32: "I", U64: "Q", BOOL: "B"}
LENGTHS = (0, 1, 2, 7, 9, 127, 130, 2049, 4500)


def kinds_of(n, *kinds):
    """Of long sequences, which take most of the time, every other kind."""
    return kinds if n < 2000 else kinds[::2]


lib = C.CDLL(sys.argv[1])
lib.lockstep_last_error.restype = C.c_char_p
context = ptr()
assert lib.lockstep_context_create(None, C.byref(context)) == OK
seed = int(sys.argv[2])
random.seed(seed)
checks = 0


class Array:
    """Elements of a dtype by their stored numbers (bits of floats)."""

    def __init__(self, dtype, stored):
        self.dtype, self.raw = dtype, bytearray(struct.pack(f"<{len(stored)}{CODES[dtype]}", *stored) or b"\0" * 8)
        self.count = len(stored)
        self.memory = (C.c_char * len(self.raw)).from_buffer(self.raw)

    @property
    def address(self):
        return C.addressof(self.memory)

    def stored(self):
        return list(struct.unpack_from(f"<{self.count}{CODES[self.dtype]}", self.raw))

    def values(self):
        return [value_of(self.dtype, bits) for bits in self.stored()]


def value_of(dtype, bits):
    if dtype == BOOL:
        return int(bits != 0)
    if dtype not in FLOATS:
        return bits
    if dtype == BF16:
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    return struct.unpack("<" + {F16: "e", F32: "f", F64: "d"}[dtype], struct.pack("<" + CODES[dtype], bits))[0]


def run(op, desc, src, dst, want=OK):
    desc.size = C.sizeof(desc)
    status = getattr(lib, "lockstep_" + op)(context, C.byref(desc), ptr(src.address), ptr(dst.address), None)
    if status != want:
        sys.exit(f"FAILED (seed {seed}): {op} gives status {status}, not {want}: {lib.lockstep_last_error().decode()}")


def check(got, want, *what):
    global checks
    checks += 1
    if got != want:
        at = next((i for i, (g, w) in enumerate(zip(got, want)) if g != w), None) if isinstance(got, list) else None
        got, want = (got, want) if at is None else (got[at], want[at])
        sys.exit(f"FAILED (seed {seed}): {what} at {at}: {got}, the page says {want}")


def empty(dtype, count):
    return Array(dtype, [0x55] * count)


def in_bits(dtype, values):
    return [page.bits_of(v, FLOATS[dtype]) if dtype in FLOATS else v for v in values]


def floats(dtype, n, kind):
    """plain: numbers of similar size; wide: of any size; same: one of these for all; odd: with infinities, NaN of any payload, zeros of both signs."""
    width = {F16: 16, BF16: 16, F32: 32, F64: 64}[dtype]
    if kind == "zeros":
        return Array(dtype, [1 << (width - 1)] * n)
    if kind == "plain":
        return Array(dtype, in_bits(dtype, [random.gauss(0, 1) for _ in range(n)]))
    if kind == "same":
        return Array(dtype, floats(dtype, 1, "wide").stored() * n)
    stored = []
    for _ in range(n):
        bits = random.getrandbits(width)
        v = value_of(dtype, bits)
        stored.append(bits if math.isfinite(v) else page.bits_of(random.gauss(0, 1), FLOATS[dtype]))
    if kind == "odd" and n:
        for special in random.sample([math.inf, -math.inf, 0.0, -0.0, "nan"], random.randint(1, 5)):
            # A NaN with a sign and a payload: the exponent's bits and one more.
            nan = page.bits_of(math.inf, FLOATS[dtype]) | 1 << (width - 1) | 3
            stored[random.randrange(n)] = nan if special == "nan" else page.bits_of(special, FLOATS[dtype])
    return Array(dtype, stored)


def integers(dtype, n, kind):
    bits = struct.calcsize(CODES[dtype]) * 8
    low = 0 if CODES[dtype].isupper() else -(1 << (bits - 1))
    spread = 1 << bits if kind == "wide" else min(1 << bits, 1000)
    return Array(dtype, [max(low, min(low + (1 << bits) - 1, random.randrange(spread) - (spread // 2 if low else 0))) for _ in range(n)])


def reduce(reduction, dtype, result, n):
    return Reduce(reduction=reduction, dtype=dtype, result=result, count=1, length=n, element_stride=1)


# ---- the sections of the page ---------------------------------------------------
def sums_and_norms():
    for dtype, form in FLOATS.items():
        for n in LENGTHS:
            for kind in kinds_of(n, "plain", "wide", "odd", "zeros", "same"):
                x = floats(dtype, n, kind)
                v = x.values()
                for op, reduction, want in (("reduce", SUM, page.float_sum("SUM", v)), ("square_sum", SSQ, page.float_sum("SUM_OF_SQUARES", v)),
                                            ("square_sum", NORM2, page.norm2(v, dtype == F64))):
                    for result, name in FLOATS.items():
                        out = empty(result, 1)
                        run(op, reduce(reduction, dtype, result, n), x, out)
                        check(out.stored(), [page.bits_of(want, name)], reduction, form, n, kind, name)


def norms_at_the_limits():
    edge, power = 2.0**-450, 2.0**-1022
    for x in ([edge], [math.nextafter(edge, 0)], [math.nextafter(edge, 1)], [power], [5e-324] * 3, [power / 2, 5e-324], [1e200, 1.0, 5e-324],
              [1.7e308] * 4, [1e154, 1e154], [1.3e154, 2e-308], [edge, 1e-300, 5e-324], [0.0, -0.0], [math.inf, 1e300], [math.nan, 1e300]):
        a, out = Array(F64, in_bits(F64, x)), empty(F64, 1)
        run("square_sum", reduce(NORM2, F64, F64, len(x)), a, out)
        check(out.stored(), in_bits(F64, [page.norm2(x, True)]), "norm2", x)


def exact_integers():
    for dtype in (I8, I16, I32, I64, U8, U16, U32, U64, BOOL):
        form = "u64" if dtype == U64 else "i64"
        for n in LENGTHS:
            for kind in ("small", "wide"):
                x, y = integers(dtype, n, kind), integers(dtype, n, kind)
                v, w = x.values(), y.values()
                result = U64 if dtype == U64 else I64
                for op, reduction, name in (("reduce", SUM, "SUM"), ("square_sum", SSQ, "SUM_OF_SQUARES")):
                    want, fits = page.integer_sum(name, v, None, form)
                    out = empty(result, 1)
                    run(op, reduce(reduction, dtype, result, n), x, out, OK if fits else OVERFLOW)
                    check(out.stored(), [want], name, dtype, n, kind)
                for k, name in enumerate(("DOT", "SQUARED_DIFFERENCES", "ABSOLUTE_DIFFERENCES", "ABSOLUTE")):
                    want, fits = page.integer_sum(name, v, w, form)
                    out = empty(result, 1)
                    run("sums", Sums(kind=k, dtype=dtype, result=result, count=1, length=n, element_stride=1, other_element_stride=1,
                                     other=None if name == "ABSOLUTE" else y.address), x, out, OK if fits else OVERFLOW)
                    check(out.stored(), [want], name, dtype, n, kind)
                for result, name in FLOATS.items():
                    out = empty(result, 1)
                    run("square_sum", reduce(NORM2, dtype, result, n), x, out)
                    check(out.stored(), [page.bits_of(page.integer_norm2(v), name)], "norm2", dtype, n, kind, name)


def extremes():
    for dtype in CODES:
        for n in LENGTHS:
            for kind in ("wide", "odd", "zeros") if dtype in FLOATS else ("small", "wide"):
                x = floats(dtype, n, kind) if dtype in FLOATS else integers(dtype, n, kind)
                v = x.values()
                for reduction, largest in ((MIN, False), (MAX, True), (ARGMIN, False), (ARGMAX, True)):
                    arg = reduction in (ARGMIN, ARGMAX)
                    out = empty(I64 if arg else dtype, 1)
                    run("reduce", reduce(reduction, dtype, out.dtype, n), x, out, OK if n else EMPTY)
                    at = page.extreme_index(v, largest) if n else None
                    check(out.stored(), [0x55] if not n else [at] if arg else in_bits(dtype, [v[at]]), "extreme", reduction, dtype, n, kind)


def newer_reductions():
    COUNT_NONZERO, ANY, ALL, PROD, NAN_SUM, NAN_MIN, NAN_MAX = range(7, 14)
    for dtype in CODES:
        form = "u64" if dtype == U64 else "i64"
        for n in LENGTHS:
            for kind in ("plain", "odd", "zeros") if dtype in FLOATS else ("small", "wide"):
                x = floats(dtype, n, kind) if dtype in FLOATS else integers(dtype, n, kind)
                v = x.values()

                def same(reduction, result, want, status=OK):
                    out = empty(result, 1)
                    run("reduce", reduce(reduction, dtype, result, n), x, out, status)
                    check(out.stored(), [want], "reduction", reduction, dtype, n, kind)

                for reduction, want in zip((COUNT_NONZERO, ANY, ALL), page.truths(v)):
                    same(reduction, I64 if reduction == COUNT_NONZERO else BOOL, want)
                for reduction, largest in ((NAN_MIN, False), (NAN_MAX, True)):
                    same(reduction, dtype, in_bits(dtype, [page.number_extreme(v, largest)])[0] if n else 0x55, OK if n else EMPTY)
                if dtype in FLOATS:
                    for result, name in FLOATS.items():
                        same(PROD, result, page.bits_of(page.float_product(v), name))
                        same(NAN_SUM, result, page.bits_of(page.float_sum("NAN_SUM", v), name))
                else:
                    result = U64 if dtype == U64 else I64
                    for reduction, (want, fits) in ((PROD, page.integer_product(v, form)), (NAN_SUM, page.integer_sum("SUM", v, None, form))):
                        same(reduction, result, want, OK if fits else OVERFLOW)


def other_sums():
    for dtype, form in FLOATS.items():
        for n in LENGTHS:
            for kind in kinds_of(n, "plain", "wide", "odd", "zeros", "same"):
                x, y = floats(dtype, n, kind), floats(dtype, n, kind)
                v, w = x.values(), y.values()
                result = random.choice(list(FLOATS))
                for k, name in enumerate(("DOT", "SQUARED_DIFFERENCES", "ABSOLUTE_DIFFERENCES", "ABSOLUTE")):
                    out = empty(result, 1)
                    run("sums", Sums(kind=k, dtype=dtype, result=result, count=1, length=n, element_stride=1, other_element_stride=1,
                                     other=None if name == "ABSOLUTE" else y.address), x, out)
                    check(out.stored(), [page.bits_of(page.float_sum(name, v, w), FLOATS[result])], name, form, n, kind)
                for correction in (0, 1):
                    out = empty(result, 2)
                    run("sums", Sums(kind=4, dtype=dtype, result=result, count=1, length=n, element_stride=1, correction=correction), x, out)
                    check(out.stored(), in_bits(result, page.mean_variance(v, correction)), "mean and variance", form, n, kind)


def scans():
    def call(reduction, x, result, exclusive, want=OK):
        out, n = empty(result, x.count), x.count
        run("scan", Scan(reduction=reduction, dtype=x.dtype, result=result, count=1, length=n, element_stride=1, dst_element_stride=1,
                         sequence_stride=n, dst_sequence_stride=n, exclusive=exclusive), x, out, want)
        return out.stored()

    for exclusive in (False, True):
        for n in LENGTHS:
            for dtype, form in FLOATS.items():
                for kind in kinds_of(n, "plain", "wide", "odd", "zeros", "same"):
                    x = floats(dtype, n, kind)
                    for result in {F64, F32, dtype}:
                        check(call(SUM, x, result, exclusive), in_bits(result, page.running_sums(x.values(), exclusive)), "scan", form, n, kind, exclusive)
                    for reduction, largest in ((MIN, False), (MAX, True)):
                        beyond = -math.inf if largest else math.inf
                        want = page.running_extremes(x.values(), largest, beyond, exclusive)
                        check(call(reduction, x, dtype, exclusive), in_bits(dtype, want), "running extreme", form, n, kind, exclusive)
            for dtype, bits in ((I32, 32), (I64, 64)):
                for kind in ("small", "wide"):
                    x = integers(dtype, n, kind)
                    want, fits = page.running_integers(x.values(), exclusive)
                    check(call(SUM, x, I64, exclusive, OK if fits else OVERFLOW), want, "integer scan", dtype, n, kind, exclusive)
                    for reduction, largest in ((MIN, False), (MAX, True)):
                        beyond = -(1 << (bits - 1)) if largest else (1 << (bits - 1)) - 1
                        want = page.running_extremes(x.values(), largest, beyond, exclusive)
                        check(call(reduction, x, dtype, exclusive), want, "running extreme", dtype, n, exclusive)
    most = Array(I64, [2**63 - 1, 1])  # the total does not fit, but no result of an exclusive scan shows it
    check(call(SUM, most, I64, True), [0, 2**63 - 1], "a total that no result shows")
    check(call(SUM, most, I64, False, OVERFLOW), [2**63 - 1, 2**63 - 1], "a total that a result shows")


def normalizations():
    kinds = ("L2", "RMS", "LAYER")
    for dtype, form in FLOATS.items():
        for kind in range(3):
            for n in (1, 2, 9, 130, 2049, 4500):
                for values in kinds_of(n, "plain", "wide", "odd", "zeros", "same"):
                    wide = random.choice((dtype, F32))
                    result = random.choice((dtype, F16, BF16, F32))
                    x = floats(dtype, n, values)
                    sides = [floats(t, n, "plain") if random.random() < 0.5 else None for t in (wide, wide, dtype)]
                    weight, bias, residual = sides
                    eps = random.choice((0.0, 1e-5, 1e-12))
                    out, total = empty(result, n), empty(dtype, n)
                    address = lambda a: None if a is None else a.address
                    run("normalize", Normalize(kind=kind, dtype=dtype, result=result, weight_dtype=wide, count=1, length=n, src_stride=n, dst_stride=n,
                                               residual_stride=n, sum_stride=n, eps=eps, weight=address(weight), bias=address(bias),
                                               residual=address(residual), sum=total.address if residual else None), x, out)
                    y, h = page.normalized(kinds[kind], x.values(), form, eps, *(None if a is None else a.values() for a in sides))
                    what = (kinds[kind], form, n, values, eps, [s is not None for s in sides])
                    check(out.stored(), in_bits(result, y), *what)
                    if residual:
                        check(total.stored(), in_bits(dtype, h), "sum", *what)


def gradients():
    for dtype, form in FLOATS.items():
        for kind in (7, 8):  # RMS_BACKWARD, LAYER_BACKWARD
            for count, n in ((1, 1), (3, 9), (130, 2), *random.sample(((1, 2050), (2050, 1)), int(random.random() < 0.3))):
                for values in kinds_of(count * n, "plain", "wide", "odd", "zeros", "same"):
                    wide = random.choice((dtype, F32))
                    x, g = floats(dtype, count * n, values), floats(dtype, count * n, "plain")
                    weight = floats(wide, n, "plain") if random.random() < 0.5 else None
                    eps = random.choice((0.0, 1e-5, 1e-12))
                    out, of_weight, of_bias = empty(dtype, count * n), empty(wide, n), empty(wide, n)
                    run("normalize", Normalize(kind=kind, dtype=dtype, result=dtype, weight_dtype=wide, count=count, length=n, src_stride=n, dst_stride=n,
                                               eps=eps, weight=None if weight is None else weight.address, gradient=g.address, gradient_stride=n,
                                               weight_gradient=of_weight.address, bias_gradient=of_bias.address), x, out)
                    rows, grows = ([a.values()[i:i + n] for i in range(0, count * n, n)] for a in (x, g))
                    y, weights, biases = page.gradients(kind == 8, rows, grows, eps, None if weight is None else weight.values())
                    what = ("gradients", kind, form, count, n, values, eps, weight is not None)
                    check(out.stored(), in_bits(dtype, [v for row in y for v in row]), *what)
                    check(of_weight.stored(), in_bits(wide, weights), "weight", *what)
                    check(of_bias.stored(), in_bits(wide, biases), "bias", *what)


def stencils():
    forms, boundaries = ("GENERAL", "SYMMETRIC", "ANTISYMMETRIC"), ("nearest", "mirror", "reflect", "wrap", "constant", "valid")
    for dtype, form in ((F32, "f32"), (F64, "f64")):
        for boundary, name in enumerate(boundaries):
            for shape, radius in (([1], 2), ([3], 5), ([37], 4), ([7, 9], 3), ([2, 1], 2), ([5, 6, 7], 1), ([1, 2, 3], 2)):
                sweeps = random.choice((1, 1, 2, 3))
                if name == "valid":
                    shape = [n + 2 * radius * sweeps for n in shape]
                    if len(shape) == 3 and sweeps > 1:
                        continue
                kind, rank = random.randrange(3), len(shape)
                count = 2 * radius * rank + 1 if kind == 0 else radius * rank + 1
                c = [random.choice((random.gauss(0, 1), 0.0)) for _ in range(count)]
                if kind == 2:
                    c[0] = 0.0
                value, n = random.choice((0.1, math.inf)), math.prod(shape)
                x = floats(dtype, n, random.choice(("plain", "plain", "odd")))
                inside, of, given = dict(zip(page.indices(shape), x.values())), shape, page.general(forms[kind], c, rank, radius)
                for _ in range(sweeps):
                    inside, of = page.swept(inside, of, given, radius, name, value, form)
                out = empty(dtype, math.prod(of))
                strides = lambda s: (i64 * 3)(*[math.prod(s[k + 1:]) for k in range(rank)])
                run("stencil", Stencil(dtype=dtype, form=kind, boundary=boundary, rank=rank, radius=radius, coefficient_count=count, sweeps=sweeps,
                                       coefficients=C.addressof(coefficients := (f64 * count)(*c)), value=value, shape=(i64 * 3)(*shape),
                                       src_strides=strides(shape), dst_strides=strides(of), batch=1), x, out)
                check(out.stored(), in_bits(dtype, [inside[i] for i in page.indices(of)]), "stencil", form, name, shape, radius, sweeps, forms[kind])


def conversions():
    for dtype in FLOATS:
        for result in FLOATS:
            for scale in (1.0, 0.1, -3.0, 2.0**-140, math.inf, math.nan, 0.0):
                x, out = floats(dtype, 300, "odd"), empty(result, 300)
                run("convert", Convert(dtype=dtype, result=result, scale=scale, rank=1, shape=(i64 * 8)(300), src_strides=(i64 * 8)(1),
                                       dst_strides=(i64 * 8)(1)), x, out)
                check(out.stored(), in_bits(result, [page.converted(v, scale) for v in x.values()]), "convert", dtype, result, scale)


def shuffles():
    x = Array(U32, [random.getrandbits(32) for _ in range(96)])
    for kind, name in enumerate(("IDX", "UP", "DOWN", "XOR")):
        for width in (1, 2, 4, 8, 16, 32):
            for operand in (0, 1, 2, 5, 15, 16, 31) + ((-1, -33, 70) if name == "IDX" else (32, 99) if name != "XOR" else ()):
                out = empty(U32, 96)
                run("shuffle", Shuffle(kind=kind, element_bytes=4, count=96, width=width, operand=operand), x, out)
                lanes = [w + page.source_lane(name, lane, width, operand) for w in (0, 32, 64) for lane in range(32)]
                check(out.stored(), [x.stored()[k] for k in lanes], "shuffle", name, width, operand)


def orders_of_axes():
    shape = [3, 4, 5, 6]
    for dtype in (F32, F64):
        x = floats(dtype, 360, "wide")
        inside = dict(zip(page.indices(shape), x.values()))
        for axes in ([0], [2], [3, 0], [2, 1, 0], [1, 3], [0, 1, 2, 3]):
            kept = [k for k in range(4) if k not in axes]
            rows = {}
            for index in page.indices(shape):  # row-major, so each row's elements come in ascending order of its axes
                rows.setdefault(tuple(index[k] for k in kept), []).append(inside[index])
            out = empty(F64, len(rows))
            run("reduce_axes", ReduceAxes(reduction=SUM, dtype=dtype, result=F64, rank=4, axis_count=len(axes), axes=(i32 * 8)(*axes),
                                          shape=(i64 * 8)(*shape), src_strides=(i64 * 8)(120, 30, 6, 1)), x, out)
            check(out.stored(), in_bits(F64, [page.float_sum("SUM", rows[k]) for k in sorted(rows)]), "axes", axes)


def strides_of_one_element():
    """Axes with one element, with strides that nobody could follow."""
    for stride in (0, -1, -(2**63), 2**63 - 1):
        x = floats(F32, 6, "plain")
        v = x.values()
        total, dots, moved = page.float_sum("SUM", v), page.float_sum("DOT", v, v), x.stored()

        def same(op, desc, result, want):
            out = empty(result, len(want))
            run(op, desc, x, out)
            check(out.stored(), want, "a stride that says nothing", op, stride)

        one = (i64 * 8)(stride, 1, stride)
        shape = (i64 * 8)(1, 6, 1)
        same("transpose", Transpose(element_bytes=4, rows=1, cols=6, src_ld=stride, dst_ld=1, batch=1, src_batch_stride=stride,
                                    dst_batch_stride=stride), F32, moved)
        same("transpose", Transpose(element_bytes=4, rows=6, cols=1, src_ld=1, dst_ld=stride, batch=1, src_batch_stride=stride,
                                    dst_batch_stride=stride), F32, moved)
        same("permute", Permute(element_bytes=4, rank=3, perm=(i32 * 8)(0, 1, 2), shape=shape, src_strides=one, dst_strides=one), F32, moved)
        same("convert", Convert(dtype=F32, result=F32, scale=1, rank=3, shape=shape, src_strides=one, dst_strides=one), F32, in_bits(F32, v))
        same("reduce", Reduce(reduction=SUM, dtype=F32, result=F64, count=1, length=6, element_stride=1, sequence_stride=stride), F64,
             in_bits(F64, [total]))
        same("reduce", Reduce(reduction=SUM, dtype=F32, result=F64, count=6, length=1, element_stride=stride, sequence_stride=1), F64,
             in_bits(F64, [e + -0.0 for e in v]))
        same("reduce_axes", ReduceAxes(reduction=SUM, dtype=F32, result=F64, rank=3, axis_count=1, axes=(i32 * 8)(1), shape=shape, src_strides=one),
             F64, in_bits(F64, [total]))
        same("sums", Sums(kind=0, dtype=F32, result=F64, count=1, length=6, element_stride=1, other_element_stride=1, other=x.address,
                          sequence_stride=stride, other_sequence_stride=stride), F64, in_bits(F64, [dots]))
        same("sums", Sums(kind=3, dtype=F32, result=F64, count=6, length=1, element_stride=stride, sequence_stride=1, other_element_stride=stride,
                          other_sequence_stride=stride), F64, in_bits(F64, map(abs, v)))
        same("scan", Scan(reduction=SUM, dtype=F32, result=F64, count=1, length=6, element_stride=1, dst_element_stride=1, sequence_stride=stride,
                          dst_sequence_stride=stride), F64, in_bits(F64, page.running_sums(v)))
        same("scan", Scan(reduction=SUM, dtype=F32, result=F64, count=6, length=1, element_stride=stride, dst_element_stride=stride,
                          sequence_stride=1, dst_sequence_stride=1), F64, in_bits(F64, v))
        y, h = page.normalized("RMS", v, "f32", 0.5, None, None, v)
        same("normalize", Normalize(kind=1, dtype=F32, result=F32, weight_dtype=F32, count=1, length=6, src_stride=stride, dst_stride=stride, eps=0.5,
                                    residual_stride=stride, sum_stride=stride, residual=x.address), F32, in_bits(F32, y))
        three = (i64 * 3)(stride, stride, 1)
        c = (f64 * 3)(0, 1, 0)
        same("stencil", Stencil(dtype=F32, rank=1, radius=1, coefficient_count=3, sweeps=1, coefficients=C.addressof(c), shape=(i64 * 3)(6),
                                src_strides=(i64 * 3)(1), dst_strides=(i64 * 3)(1), batch=1, src_batch_stride=stride, dst_batch_stride=stride), F32,
             in_bits(F32, v))
        cube = (f64 * 7)(0, 0, 0, 1)
        same("stencil", Stencil(dtype=F32, rank=3, radius=1, coefficient_count=7, sweeps=1, coefficients=C.addressof(cube), shape=(i64 * 3)(1, 1, 6),
                                src_strides=three, dst_strides=three, batch=1), F32, in_bits(F32, v))


def numbers_of_the_page():
    n = 5000
    x = [(7919 * i % 10007 - 5003) / 3 for i in range(n)]
    y = x[::-1]
    small = [v * 2.0**-600 for v in x]
    mean, variance = page.mean_variance(x, 1)
    sums = page.running_sums(x)
    rows, _ = page.normalized("LAYER", x, "f64", 1e-5)
    want = {"SUM": page.float_sum("SUM", x), "SUM_OF_SQUARES": page.float_sum("SUM_OF_SQUARES", x), "NORM2": page.norm2(x, True),
            "NORM2 of x * 2^-600": page.norm2(small, True), "DOT of x and y": page.float_sum("DOT", x, y),
            "ABSOLUTE_DIFFERENCES of x and y": page.float_sum("ABSOLUTE_DIFFERENCES", x, y), "mean": mean, "variance, correction 1": variance,
            "inclusive scan at 3000": sums[3000], "inclusive scan at 4999": sums[4999], "LAYER, eps 1e-5, at 0": rows[0],
            "LOGSUMEXP, scale 0.01": page.exponentials("LOGSUMEXP", x, 0.01)[0], "SOFTMAX, scale 0.01, at 0": page.exponentials("SOFTMAX", x, 0.01)[0]}
    lines = [f"| {name} | 0x{page.bits_of(value, 'f64'):016X} |" for name, value in want.items()]
    for name in sys.argv[3:]:
        on_page = re.findall(r"^\| .* \| 0x[0-9A-F]{16} \|$", pathlib.Path(name).read_text(), re.M)
        check(on_page, lines, name, "should have\n" + "\n".join(lines) + "\n")

    a, b, c = (Array(F64, in_bits(F64, v)) for v in (x, y, small))
    got = {}
    for name, op, desc, src, count, at in (
            ("SUM", "reduce", reduce(SUM, F64, F64, n), a, 1, 0), ("SUM_OF_SQUARES", "square_sum", reduce(SSQ, F64, F64, n), a, 1, 0),
            ("NORM2", "square_sum", reduce(NORM2, F64, F64, n), a, 1, 0), ("NORM2 of x * 2^-600", "square_sum", reduce(NORM2, F64, F64, n), c, 1, 0),
            ("DOT of x and y", "sums", Sums(kind=0, dtype=F64, result=F64, count=1, length=n, element_stride=1, other_element_stride=1, other=b.address), a, 1, 0),
            ("ABSOLUTE_DIFFERENCES of x and y", "sums", Sums(kind=2, dtype=F64, result=F64, count=1, length=n, element_stride=1, other_element_stride=1, other=b.address), a, 1, 0),
            ("mean", "sums", Sums(kind=4, dtype=F64, result=F64, count=1, length=n, element_stride=1, correction=1), a, 2, 0),
            ("variance, correction 1", "sums", Sums(kind=4, dtype=F64, result=F64, count=1, length=n, element_stride=1, correction=1), a, 2, 1),
            ("inclusive scan at 3000", "scan", Scan(reduction=SUM, dtype=F64, result=F64, count=1, length=n, element_stride=1, dst_element_stride=1), a, n, 3000),
            ("inclusive scan at 4999", "scan", Scan(reduction=SUM, dtype=F64, result=F64, count=1, length=n, element_stride=1, dst_element_stride=1), a, n, 4999),
            ("LAYER, eps 1e-5, at 0", "normalize", Normalize(kind=2, dtype=F64, result=F64, weight_dtype=F64, count=1, length=n, eps=1e-5), a, n, 0),
            ("LOGSUMEXP, scale 0.01", "normalize", Normalize(kind=5, dtype=F64, result=F64, weight_dtype=F64, count=1, length=n, eps=0.01), a, 1, 0),
            ("SOFTMAX, scale 0.01, at 0", "normalize", Normalize(kind=3, dtype=F64, result=F64, weight_dtype=F64, count=1, length=n, eps=0.01), a, n, 0)):
        out = empty(F64, count)
        run(op, desc, src, out)
        got[name] = out.stored()[at]
    check([f"| {name} | 0x{got[name]:016X} |" for name in want], lines, "the library's numbers")


for part in (sums_and_norms, norms_at_the_limits, exact_integers, extremes, newer_reductions, other_sums, scans, normalizations, gradients, stencils, conversions, shuffles,
             orders_of_axes, strides_of_one_element, numbers_of_the_page):
    before = checks
    part()
    print(f"{part.__name__}: {checks - before} checks equal", flush=True)
lib.lockstep_context_destroy(context)
