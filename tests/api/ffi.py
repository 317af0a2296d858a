#!/usr/bin/env python3
"""ffi.py LIBRARY - a caller that reads no header: everything by exported symbols and the generic calls, as a binding
of any language does it."""
import array
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
size, long = ctypes.c_size_t, ctypes.c_int64
address = ctypes.c_void_p


class Transpose(ctypes.Structure):
    _fields_ = [("size", size), ("element_bytes", size)] + [
        (name, long) for name in ("rows", "cols", "src_ld", "dst_ld", "batch", "src_batch_stride", "dst_batch_stride")]


class Reduce(ctypes.Structure):
    _fields_ = [("size", size)] + [(name, ctypes.c_int) for name in ("reduction", "dtype", "result")] + [
        (name, long) for name in ("count", "length", "element_stride", "sequence_stride")] + [("offsets", address)]


class Options(ctypes.Structure):
    _fields_ = [("size", size), ("backend", ctypes.c_char_p), ("variant", ctypes.c_char_p), ("flags", ctypes.c_uint32),
                ("stream", address), ("workspace", address), ("workspace_bytes", size)]


def function(name, result, *arguments):
    found = getattr(library, name)
    found.restype, found.argtypes = result, arguments
    return found


status = ctypes.c_int
last_error = function("lockstep_last_error", ctypes.c_char_p)
context_create = function("lockstep_context_create", status, address, ctypes.POINTER(address))
context_destroy = function("lockstep_context_destroy", None, address)
options_defaults = function("lockstep_options_defaults", Options)
transpose_packed = function("lockstep_transpose_packed", Transpose, size, long, long)
reduce_rows = function("lockstep_reduce_rows", Reduce, ctypes.c_int, ctypes.c_int, long, long, long)
execute = function("lockstep_execute", status, address, ctypes.c_int, address, address, address, address)
plan_create = function("lockstep_plan_create", status, address, ctypes.c_int, address, address, ctypes.POINTER(address))
plan_execute = function("lockstep_plan_execute", status, address, address, address, address)
plan_destroy = function("lockstep_plan_destroy", None, address)
TRANSPOSE, SQUARE_SUM, REDUCE = 0, 2, 3
SUM, SUM_OF_SQUARES, F64 = 0, 5, 4


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got}, not {wanted}; {last_error().decode()}")


context = address()
expect("a context", context_create(None, ctypes.byref(context)), 0)
options = options_defaults()
expect("the size of options", options.size, ctypes.sizeof(Options))
options.backend = b"cpu"
src = array.array("d", [1, 2, 3, 4, 5, 6])
there = src.buffer_info()[0]


def result_of(op, desc, count, with_plan):
    dst = array.array("d", [0] * count)
    to = dst.buffer_info()[0]
    if with_plan:
        plan = address()
        expect("a plan", plan_create(context, op, ctypes.byref(desc), ctypes.byref(options), ctypes.byref(plan)), 0)
        expect("its execution", plan_execute(plan, there, to, None), 0)
        plan_destroy(plan)
    else:
        expect("a call", execute(context, op, ctypes.byref(desc), there, to, ctypes.byref(options)), 0)
    return list(dst)


for with_plan in (False, True):
    expect("transpose", result_of(TRANSPOSE, transpose_packed(8, 2, 3), 6, with_plan), [1, 4, 2, 5, 3, 6])
    expect("sums", result_of(REDUCE, reduce_rows(SUM, F64, 2, 3, 3), 2, with_plan), [6, 15])
    expect("squares", result_of(SQUARE_SUM, reduce_rows(SUM_OF_SQUARES, F64, 2, 3, 3), 2, with_plan), [14, 77])
wrong = execute(context, REDUCE, ctypes.byref(transpose_packed(8, 2, 3)), there, there, None)
expect("another op's description", (wrong, b"lockstep_reduce_desc" in last_error()), (1, True))
context_destroy(context)
