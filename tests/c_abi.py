"""The descriptions and numbers of lockstep.h for ctypes."""
import ctypes as C

i32, i64, size_t, f64, ptr = C.c_int32, C.c_int64, C.c_size_t, C.c_double, C.c_void_p


def struct(name, *fields):
    return type(name, (C.Structure,), {"_fields_": [("size", size_t), *fields]})


Transpose = struct("Transpose", ("element_bytes", size_t), ("rows", i64), ("cols", i64), ("src_ld", i64), ("dst_ld", i64),
                   ("batch", i64), ("src_batch_stride", i64), ("dst_batch_stride", i64))
Permute = struct("Permute", ("element_bytes", size_t), ("rank", i32), ("perm", i32 * 8), ("shape", i64 * 8),
                 ("src_strides", i64 * 8), ("dst_strides", i64 * 8))
Reduce = struct("Reduce", ("reduction", i32), ("dtype", i32), ("result", i32), ("count", i64), ("length", i64),
                ("element_stride", i64), ("sequence_stride", i64), ("offsets", ptr))
Stencil = struct("Stencil", ("dtype", i32), ("form", i32), ("boundary", i32), ("rank", i32), ("radius", i32),
                 ("coefficient_count", i32), ("sweeps", i32), ("coefficients", ptr), ("value", f64), ("shape", i64 * 3),
                 ("src_strides", i64 * 3), ("dst_strides", i64 * 3), ("batch", i64), ("src_batch_stride", i64),
                 ("dst_batch_stride", i64))
Shuffle = struct("Shuffle", ("kind", i32), ("element_bytes", size_t), ("count", i64), ("width", i32), ("operand", i32))

Normalize = struct("Normalize", ("kind", i32), ("dtype", i32), ("result", i32), ("weight_dtype", i32), ("count", i64),
                   ("length", i64), ("src_stride", i64), ("dst_stride", i64), ("residual_stride", i64), ("sum_stride", i64),
                   ("eps", f64), ("weight", ptr), ("bias", ptr), ("residual", ptr), ("sum", ptr), ("offsets", ptr), ("given", ptr),
                   ("gradient", ptr), ("gradient_stride", i64), ("weight_gradient", ptr), ("bias_gradient", ptr),
                   ("inner", i64))

Scan = struct("Scan", ("reduction", i32), ("dtype", i32), ("result", i32), ("count", i64), ("length", i64), ("element_stride", i64),
              ("sequence_stride", i64), ("offsets", ptr), ("dst_element_stride", i64), ("dst_sequence_stride", i64), ("exclusive", i32))

Sums = struct("Sums", ("kind", i32), ("dtype", i32), ("result", i32), ("count", i64), ("length", i64), ("element_stride", i64),
              ("sequence_stride", i64), ("offsets", ptr), ("other", ptr), ("other_element_stride", i64), ("other_sequence_stride", i64),
              ("correction", i64))

ReduceAxes = struct("ReduceAxes", ("reduction", i32), ("dtype", i32), ("result", i32), ("rank", i32), ("axis_count", i32), ("axes", i32 * 8),
                    ("shape", i64 * 8), ("src_strides", i64 * 8))

Convert = struct("Convert", ("dtype", i32), ("result", i32), ("scale", f64), ("rank", i32), ("shape", i64 * 8), ("src_strides", i64 * 8),
                 ("dst_strides", i64 * 8))

Map = struct("Map", *Convert._fields_[1:], ("function", i32))

SUM, MIN, MAX, ARGMIN, ARGMAX, SSQ, NORM2 = range(7)
F16, BF16, F32, F64, I32, I64, I8, I16, U8, U16, U32, U64, BOOL = range(1, 14)
OK, OVERFLOW, EMPTY = 0, 6, 7
