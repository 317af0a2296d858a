// docs.hpp - the docstrings of the operations, in the order of calls.cpp's table.
#pragma once

namespace lockstep::python {

// clang-format off
#define LOCKSTEP_SIGNATURE "out=None, stream=None, context=None, backend=None, variant=None, check=False, copy=None)\n--\n\n"
#define LOCKSTEP_OTHERS \
  "out : array, optional\n" \
  "    Array for the result, with its shape and dtype, on the device of `x`. It is returned.\n" \
  "\n" \
  "Other Parameters\n" \
  "----------------\n" \
  "stream : int or stream, optional\n" \
  "    CUDA stream for device data, instead of the current one of the array's library. The call then waits for the result.\n" \
  "context : Context, optional\n" \
  "backend, variant : str, optional\n" \
  "    For this call only. What is named runs, or it is an error.\n" \
  "check : bool, default False\n" \
  "    For device data: wait for the result, and raise errors that only the device can find.\n" \
  "copy : bool, optional\n" \
  "    False: raise BufferError if an array would have to be copied first.\n"

constexpr const char* docs[] = {
"transpose(x, axes=None, *, "
LOCKSTEP_SIGNATURE R"doc(Exchange the last two axes; those before them are a batch.

Parameters
----------
x : array
    At least two axes; elements of 1, 2, 4, 8 or 16 bytes of any type.
axes : sequence of int, optional
    All axes in the order that the result has them, as of `permute`. Without it only the last two change places, where
    `numpy.transpose` reverses all.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    Packed, the array type of `x`; with ``out=x`` a square matrix is transposed in place.

Notes
-----
Bits are copied: NaN payloads and -0.0 survive. If `x` is not a batch of matrices in memory, it runs as `permute`.

Examples
--------
>>> ls.transpose(np.array([[1, 2, 3], [4, 5, 6]]))
array([[1, 4],
       [2, 5],
       [3, 6]])
)doc",

"permute(x, axes, *, "
LOCKSTEP_SIGNATURE R"doc(Copy an array with its axes in another order.

Parameters
----------
x : array
    Elements of 1, 2, 4, 8 or 16 bytes of any type; after neighbours have been merged, at most 8 axes.
axes : tuple of int
    Axis k of the result is axis ``axes[k]`` of `x`, as in NumPy's transpose; the result is always a packed copy.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    Packed, the array type of `x`.

Examples
--------
>>> ls.permute(np.zeros((2, 3, 4)), (2, 0, 1)).shape
(4, 2, 3)
)doc",

"sum(x, axis=None, *, dtype=None, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(Sum the elements, with the same bits on every machine.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
dtype : dtype, optional
    "float64" for the double that was summed; "float32", "float16" or "bfloat16" for one final rounding of it. Default: the
    dtype of `x`, float32 for 16-bit floats. Integers and bool give int64, uint64 gives uint64. The exact sum of
    integers may come as float64 or float32 too, by one rounding.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    The array type of `x`; a NumPy scalar if a NumPy array is reduced to one element.

Notes
-----
Floats are added in double by a fixed tree over the sequence's own indices (order 1), so the bits depend on nothing but
the elements and their order. Integers are exact; Overflow is raised if the sum does not fit 64 bits.
Any axes are reduced without a copy. If they are not one sequence after another in memory, the C library's reduce_axes runs,
and `variant` names one of its kernels.

Examples
--------
>>> ls.sum(np.ones((2, 3), "f4"), axis=1)
array([3., 3.], dtype=float32)
>>> ls.sum(np.array([2**62, 2**62]))
Traceback (most recent call last):
    ...
lockstep.Overflow: the exact sum of sequence 0 does not fit I64, dst[0] holds 9223372036854775807; sum shorter sequences or floats
)doc",

"square_sum(x, axis=None, *, dtype=None, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(Sum the squares of the elements.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
dtype : dtype, optional
    "float64" for the double that was summed; "float32", "float16" or "bfloat16" for one final rounding of it. Default: the
    dtype of `x`, float32 for 16-bit floats. Integers and bool give int64, uint64 gives uint64.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    The array type of `x`; a NumPy scalar if a NumPy array is reduced to one element.

Notes
-----
Floats are added in double by a fixed tree over the sequence's own indices (order 1), so the bits depend on nothing but
the elements and their order. Integers are exact; Overflow is raised if the sum does not fit 64 bits.
Any axes are reduced without a copy. If they are not one sequence after another in memory, the C library's reduce_axes runs,
and `variant` names one of its kernels.

Examples
--------
>>> ls.square_sum(np.array([3.0, 4.0]))
np.float64(25.0)
)doc",

"norm(x, axis=None, *, dtype=None, keepdims=False, ord=2, "
LOCKSTEP_SIGNATURE R"doc(The Euclidean norm: the correctly rounded root of the sum of squares.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
dtype : dtype, optional
    "float64", "float32", "float16" or "bfloat16", by one rounding; by default the dtype of `x`, for 16-bit floats float32,
    for integers float64.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
ord : 2
    The 2-norm of the elements, also of a matrix; others are refused. `numpy.linalg.norm` has ord where this has axis.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    The array type of `x`; a NumPy scalar if a NumPy array is reduced to one element.

Notes
-----
Rescaled if plain squares would overflow or lose bits. For integers it is the root of the exact sum, in float64.
Any axes are reduced without a copy. If they are not one sequence after another in memory, the C library's reduce_axes runs,
and `variant` names one of its kernels.

Examples
--------
>>> ls.norm(np.array([1e200, 0.0]))
np.float64(1e+200)
)doc",

"max(x, axis=None, *, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(The greatest element.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    The array type of `x`; a NumPy scalar if a NumPy array is reduced to one element.

Notes
-----
If there is a NaN, the result is the canonical NaN. -0.0 is less than +0.0. Empty is raised if there are no elements.

Examples
--------
>>> ls.max(np.array([[1, 5], [7, 2]]), axis=1)
array([5, 7])
)doc",

"min(x, axis=None, *, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(The least element.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    The array type of `x`; a NumPy scalar if a NumPy array is reduced to one element.

Notes
-----
If there is a NaN, the result is the canonical NaN. -0.0 is less than +0.0. Empty is raised if there are no elements.

Examples
--------
>>> ls.min(np.array([0.0, -0.0]))
np.float64(-0.0)
)doc",

"argmax(x, axis=None, *, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(Where the greatest element is.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    int64, the array type of `x`.

Notes
-----
The first NaN if there is one, else the lowest index of equal elements. Over several axes the index counts in C order.

Examples
--------
>>> ls.argmax(np.array([1.0, np.nan, 5.0]))
np.int64(1)
)doc",

"argmin(x, axis=None, *, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(Where the least element is.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    int64, the array type of `x`.

Notes
-----
The first NaN if there is one, else the lowest index of equal elements. Over several axes the index counts in C order.

Examples
--------
>>> ls.argmin(np.array([3, 1, 1]))
np.int64(1)
)doc",

"count_nonzero(x, axis=None, *, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(How many elements are not 0.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    int64, the array type of `x`.

Notes
-----
-0.0 is 0, NaN is not. Exact.

Examples
--------
>>> ls.count_nonzero(np.array([0.0, np.nan, 2.0]))
np.int64(2)
)doc",

"any(x, axis=None, *, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(Whether an element is not 0.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    bool, the array type of `x`.

Notes
-----
-0.0 is 0, NaN is not. Of no elements: False.

Examples
--------
>>> ls.any(np.array([0, 0, 3]))
np.True_
)doc",

"all(x, axis=None, *, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(Whether no element is 0.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    bool, the array type of `x`.

Notes
-----
-0.0 is 0, NaN is not. Of no elements: True.

Examples
--------
>>> ls.all(np.array([1, 0, 3]))
np.False_
)doc",

"prod(x, axis=None, *, dtype=None, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(Multiply the elements.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
dtype : dtype, optional
    Type of a float result, rounded once from double.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    float64 for float64; float32 for other floats, unless `dtype` names float64, float16 or bfloat16; int64 for integers and bool, uint64 for uint64.

Notes
-----
Floats are multiplied in double in the fixed order; the bits depend on nothing but the elements and their order. Integers are
exact: what does not fit raises Overflow. Of no elements: 1.

Examples
--------
>>> ls.prod(np.array([2.0, 3.0, 4.0]))
np.float64(24.0)
)doc",

"nansum(x, axis=None, *, dtype=None, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(Sum the elements that are no NaN.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
dtype : dtype, optional
    Type of a float result, rounded once from double.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    As `sum`.

Notes
-----
The bits of `sum` with +0.0 in place of each NaN.

Examples
--------
>>> ls.nansum(np.array([1.0, np.nan, 2.0]))
np.float64(3.0)
)doc",

"nanmax(x, axis=None, *, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(The greatest element that is no NaN.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    The dtype and array type of `x`.

Notes
-----
NaN if there is no number. -0.0 is less than +0.0.

Examples
--------
>>> ls.nanmax(np.array([1.0, np.nan, 2.0]))
np.float64(2.0)
)doc",

"nanmin(x, axis=None, *, keepdims=False, "
LOCKSTEP_SIGNATURE R"doc(The least element that is no NaN.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default. The elements of each result are taken in the order of the array.
keepdims : bool, default False
    Leave reduced axes in the shape, with length one.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    The dtype and array type of `x`.

Notes
-----
NaN if there is no number. -0.0 is less than +0.0.

Examples
--------
>>> ls.nanmin(np.array([1.0, np.nan, 2.0]))
np.float64(1.0)
)doc",

"segment_sum(x, offsets, *, dtype=None, "
LOCKSTEP_SIGNATURE R"doc(Sum each segment of an array.

Parameters
----------
x : array
    Segments are cut from its first axis, and are reduced along it. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of integers, or a list
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it; all of them where x has several axes.
dtype : dtype, optional
    As for the whole array's operation.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, of the shape of the other axes, with the bits of the operation on that slice alone.

Examples
--------
>>> ls.segment_sum(np.arange(6), np.array([0, 2, 6]))
array([ 1, 14])
)doc",

"segment_square_sum(x, offsets, *, dtype=None, "
LOCKSTEP_SIGNATURE R"doc(Sum the squares of each segment.

Parameters
----------
x : array
    Segments are cut from its first axis, and are reduced along it. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of integers, or a list
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it; all of them where x has several axes.
dtype : dtype, optional
    As for the whole array's operation.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, of the shape of the other axes, with the bits of the operation on that slice alone.

Examples
--------
>>> ls.segment_square_sum(np.arange(6), np.array([0, 2, 6]))
array([ 1, 54])
)doc",

"segment_norm(x, offsets, *, dtype=None, "
LOCKSTEP_SIGNATURE R"doc(The Euclidean norm of each segment.

Parameters
----------
x : array
    Segments are cut from its first axis, and are reduced along it. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of integers, or a list
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it; all of them where x has several axes.
dtype : dtype, optional
    As for the whole array's operation.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, of the shape of the other axes, with the bits of the operation on that slice alone.

Examples
--------
>>> ls.segment_norm(np.array([3.0, 4.0, 2.0]), np.array([0, 2, 3]))
array([5., 2.])
)doc",

"segment_max(x, offsets, *, "
LOCKSTEP_SIGNATURE R"doc(The greatest element of each segment.

Parameters
----------
x : array
    Segments are cut from its first axis, and are reduced along it. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of integers, or a list
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it; all of them where x has several axes.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, of the shape of the other axes, with the bits of the operation on that slice alone.

Raises
------
Empty
    A segment has no element.

Examples
--------
>>> ls.segment_max(np.array([3, 4, 2]), np.array([0, 2, 3]))
array([4, 2])
)doc",

"segment_min(x, offsets, *, "
LOCKSTEP_SIGNATURE R"doc(The least element of each segment.

Parameters
----------
x : array
    Segments are cut from its first axis, and are reduced along it. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of integers, or a list
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it; all of them where x has several axes.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, of the shape of the other axes, with the bits of the operation on that slice alone.

Raises
------
Empty
    A segment has no element.

Examples
--------
>>> ls.segment_min(np.array([3, 4, 2]), np.array([0, 2, 3]))
array([3, 2])
)doc",

"segment_argmax(x, offsets, *, "
LOCKSTEP_SIGNATURE R"doc(Where in each segment its greatest element is.

Parameters
----------
x : array
    Segments are cut from its first axis, and are reduced along it. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of integers, or a list
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it; all of them where x has several axes.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, of the shape of the other axes, with the bits of the operation on that slice alone.

Raises
------
Empty
    A segment has no element.

Examples
--------
>>> ls.segment_argmax(np.array([3, 4, 2]), np.array([0, 2, 3]))
array([1, 0])
)doc",

"segment_argmin(x, offsets, *, "
LOCKSTEP_SIGNATURE R"doc(Where in each segment its least element is.

Parameters
----------
x : array
    Segments are cut from its first axis, and are reduced along it. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of integers, or a list
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it; all of them where x has several axes.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, of the shape of the other axes, with the bits of the operation on that slice alone.

Raises
------
Empty
    A segment has no element.

Examples
--------
>>> ls.segment_argmin(np.array([3, 4, 2]), np.array([0, 2, 3]))
array([0, 0])
)doc",

"segment_count_nonzero(x, offsets, *, "
LOCKSTEP_SIGNATURE R"doc(`count_nonzero` of each segment of an array.

Parameters
----------
x : array
    One axis. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of int64
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, with the bits of `count_nonzero` of that slice alone.
)doc",

"segment_any(x, offsets, *, "
LOCKSTEP_SIGNATURE R"doc(`any` of each segment of an array.

Parameters
----------
x : array
    One axis. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of int64
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, with the bits of `any` of that slice alone.
)doc",

"segment_all(x, offsets, *, "
LOCKSTEP_SIGNATURE R"doc(`all` of each segment of an array.

Parameters
----------
x : array
    One axis. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of int64
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, with the bits of `all` of that slice alone.
)doc",

"segment_prod(x, offsets, *, dtype=None, "
LOCKSTEP_SIGNATURE R"doc(`prod` of each segment of an array.

Parameters
----------
x : array
    One axis. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of int64
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it.
dtype : dtype, optional
    Type of a float result, rounded once from double.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, with the bits of `prod` of that slice alone.

Raises
------
Overflow
    A product of integers does not fit.
)doc",

"segment_nansum(x, offsets, *, dtype=None, "
LOCKSTEP_SIGNATURE R"doc(`nansum` of each segment of an array.

Parameters
----------
x : array
    One axis. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of int64
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it.
dtype : dtype, optional
    Type of a float result, rounded once from double.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, with the bits of `nansum` of that slice alone.
)doc",

"segment_nanmax(x, offsets, *, "
LOCKSTEP_SIGNATURE R"doc(`nanmax` of each segment of an array.

Parameters
----------
x : array
    One axis. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of int64
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, with the bits of `nanmax` of that slice alone.

Raises
------
Empty
    A segment has no element.
)doc",

"segment_nanmin(x, offsets, *, "
LOCKSTEP_SIGNATURE R"doc(`nanmin` of each segment of an array.

Parameters
----------
x : array
    One axis. Floats of 16, 32 or 64 bits, integers or bool.
offsets : array of int64
    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they
    are on a device, the last one is read back, which waits for it.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    One result per segment, with the bits of `nanmin` of that slice alone.

Raises
------
Empty
    A segment has no element.
)doc",

"stencil(x, weights, *, radius=None, mode='reflect', cval=0.0, sweeps=1, form='auto', axes=None, "
LOCKSTEP_SIGNATURE R"doc(Correlate with a star: the element itself and, on each axis, its neighbours on both sides.

Parameters
----------
x : array of float32 or float64
weights : sequence of float
    "general": ``2 * radius * rank + 1``, in the order in which the neighbours lie in memory (`star` makes it from those of
    each axis); "symmetric" and "antisymmetric": the centre, then 1 to radius of each axis, outermost first.
radius : int, optional
    1 to 16 for one axis, 1 to 8 for two or three; else from the number of weights.
mode : {"reflect", "mirror", "nearest", "wrap", "constant", "valid"}
    What stands beyond the ends, by SciPy's names; "valid" makes the result shorter by ``2 * radius * sweeps``.
cval : float
    The value of "constant".
sweeps : int, default 1
    How often the stencil is applied, each time to its own result.
form : {"auto", "general", "symmetric", "antisymmetric"}
    "auto" is general, or symmetric where `radius` and the number of weights say so.
axes : int or tuple of int, optional
    The last axes, one to three; those before them are a batch. All by default.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    The array type and dtype of `x`.

Notes
-----
The first tap is a rounded product, each further one a fused multiply-add in the dtype of `x`, in the order of memory. A weight of
zero is a tap too: 0 * inf is NaN.

Examples
--------
>>> ls.stencil(np.array([0.0, 0.0, 1.0, 0.0]), [1, -2, 1], mode="constant")
array([ 0.,  1., -2.,  1.])
)doc",

"shuffle(x, kind, operand, *, width=32, "
LOCKSTEP_SIGNATURE R"doc(CUDA's warp shuffles over an array of warps.

Parameters
----------
x : array
    Elements of 4 or 8 bytes, a multiple of 32 of them; each 32 in C order are a warp.
kind : {"idx", "up", "down", "xor"}
    Read the lane `operand` of the own segment, the lane `operand` below or above, or the lane whose number differs in
    these bits.
operand : int
width : {1, 2, 4, 8, 16, 32}
    Lanes of a segment.
)doc" LOCKSTEP_OTHERS R"doc(Returns
-------
array
    What the shuffle delivers to each lane.

Examples
--------
>>> ls.shuffle(np.arange(32), "xor", 1)[:4]
array([1, 0, 3, 2])
)doc",

};
// clang-format on

}  // namespace lockstep::python
