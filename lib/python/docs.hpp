// docs.hpp - the docstrings of the operations, in the order of calls.cpp's table.
#pragma once

namespace lockstep::python {

// clang-format off
#define DOC_SIGNATURE "out=None, stream=None, context=None, backend=None, variant=None, check=False, copy=None)\n--\n\n"
#define DOC_OTHERS \
  "out : array, optional\n" \
  "    Array for the result, with its shape and dtype, on the device of `x`. It is returned.\n" \
  "\n" DOC_OTHER_PARAMETERS
#define DOC_OTHER_PARAMETERS \
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
  "    False: raise BufferError if an array would have to be copied first.\n" \
  "\n"
#define DOC_KEEPDIMS \
  "keepdims : bool, default False\n" \
  "    Leave reduced axes in the shape, with length one.\n"
#define DOC_WHERE \
  "where : array of bool, optional\n" \
  "    The elements to take, by a mask that broadcasts to `x`. A copy is made, with the value that changes nothing in place\n" \
  "    of the others.\n"
#define DOC_INITIAL \
  "initial : number, optional\n" \
  "    Joined with each result last; it is the result of no elements.\n"
#define DOC_ROUNDED \
  "dtype : dtype, optional\n" \
  "    Type of a float result, rounded once from double.\n"
#define DOC_SUM_DTYPE \
  "dtype : dtype, optional\n" \
  "    \"float64\" for the double that was summed; \"float32\", \"float16\" or \"bfloat16\" for one final rounding of it. Default: the\n" \
  "    dtype of `x`, float32 for 16-bit floats. Integers and bool give int64, uint64 gives uint64.\n"
#define DOC_OF_TYPE "The array type of `x`; a NumPy scalar if a NumPy array is reduced to one element."
#define DOC_SUMS_RETURN "Returns\n-------\narray\n    " DOC_OF_TYPE "\n\n"
#define DOC_ANY_AXES \
  "Any axes are reduced without a copy. If they are not one sequence after another in memory, the C library's reduce_axes runs,\n" \
  "and `variant` names one of its kernels.\n"
#define DOC_IN_ORDER \
  "Floats are added in double by a fixed tree over the sequence's own indices (order 1), so the bits depend on nothing but\n" \
  "the elements and their order. Integers are exact; Overflow is raised if the sum does not fit 64 bits.\n"
// A reduction: its signature between x and out, what it does, its own arguments, result, notes, and an example, which
// follows ">>> ls.NAME(".
#define DOC_REDUCES(name, own, does, arguments, result, notes, example) \
  name "(x, axis=None, " own DOC_SIGNATURE does "\n" \
  "\nParameters\n----------\n" \
  "x : array\n" \
  "    Floats of 16, 32 or 64 bits, integers or bool.\n" \
  "axis : int or tuple of int, optional\n" \
  "    Axes to reduce; all by default. The elements of each result are taken in the order of the array.\n" \
  arguments DOC_OTHERS "Returns\n-------\narray\n    " result "\n" \
  "\nNotes\n-----\n" notes "\nExamples\n--------\n>>> ls." name "(" example "\n"
#define DOC_SUMMED "dtype=None, *, keepdims=False, where=None, initial=None, "
#define DOC_CHOSEN "*, keepdims=False, where=None, "
#define DOC_EXTREME "*, keepdims=False, where=None, initial=None, "
// The same of each segment.
#define DOC_SEGMENTS(name, own, does, arguments, raises, example) \
  "segment_" name "(x, offsets, *, " own DOC_SIGNATURE does "\n" \
  "\nParameters\n----------\n" \
  "x : array\n" \
  "    Segments are cut from its first axis, and are reduced along it. Floats of 16, 32 or 64 bits, integers or bool.\n" \
  "offsets : array of integers, or a list\n" \
  "    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they\n" \
  "    are on a device, the device checks them, and wrong ones raise an error where an overflow does: in this call with\n" \
  "    ``check=True``, else in `synchronize`. If `x` has several axes, they are read back, which waits for them.\n" \
  arguments DOC_OTHERS \
  "Returns\n-------\narray\n" \
  "    One result per segment, of the shape of the other axes, with the bits of `" name "` of that slice alone.\n" \
  "\n" raises "Examples\n--------\n>>> ls.segment_" name "(np.array(" example "\n"
#define DOC_EMPTY "Raises\n------\nEmpty\n    A segment has no element.\n\n"
#define DOC_OVERFLOW "Raises\n------\nOverflow\n    The exact result of integers does not fit 64 bits.\n\n"

constexpr const char* docs[] = {
"transpose(x, axes=None, *, "
DOC_SIGNATURE R"doc(Exchange the last two axes; those before them are a batch.

Parameters
----------
x : array
    At least two axes; elements of 1, 2, 4, 8 or 16 bytes of any type.
axes : sequence of int, optional
    All axes in the order that the result has them, as of `permute`. Without it only the last two change places, where
    `numpy.transpose` reverses all: three axes or more without it give a UserWarning, `matrix_transpose` none.
)doc" DOC_OTHERS R"doc(Returns
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
DOC_SIGNATURE R"doc(Copy an array with its axes in another order.

Parameters
----------
x : array
    Elements of 1, 2, 4, 8 or 16 bytes of any type; after neighbours have been merged, at most 8 axes.
axes : tuple of int
    Axis k of the result is axis ``axes[k]`` of `x`, as in NumPy's transpose; the result is always a packed copy.
)doc" DOC_OTHERS R"doc(Returns
-------
array
    Packed, the array type of `x`.

Examples
--------
>>> ls.permute(np.zeros((2, 3, 4)), (2, 0, 1)).shape
(4, 2, 3)
)doc",

DOC_REDUCES("sum", DOC_SUMMED, "Sum the elements, with the same bits on every machine.",
  DOC_SUM_DTYPE "    The exact sum of integers may come as float64 or float32 too, by one rounding.\n"
  DOC_KEEPDIMS DOC_WHERE DOC_INITIAL,
  DOC_OF_TYPE,
  DOC_IN_ORDER DOC_ANY_AXES
  "With `where`, the bits are those of the sum with +0.0 in place of the other elements.\n",
  "np.ones((2, 3), \"f4\"), axis=1)\narray([3., 3.], dtype=float32)\n"
  ">>> ls.sum(np.array([1.0, np.nan, 2.0]), where=[True, False, True])\nnp.float64(3.0)\n"
  ">>> ls.sum(np.array([2**62, 2**62]))\nTraceback (most recent call last):\n    ...\n"
  "lockstep.Overflow: the exact sum of sequence 0 does not fit I64, dst[0] holds 9223372036854775807; sum shorter sequences or floats"),

DOC_REDUCES("square_sum", "dtype=None, *, keepdims=False, where=None, ", "Sum the squares of the elements.",
  DOC_SUM_DTYPE DOC_KEEPDIMS DOC_WHERE,
  DOC_OF_TYPE,
  DOC_IN_ORDER DOC_ANY_AXES,
  "np.array([3.0, 4.0]))\nnp.float64(25.0)"),

DOC_REDUCES("norm", "*, dtype=None, keepdims=False, ord=2, where=None, ", "The Euclidean norm: the correctly rounded root of the sum of squares.",
  "dtype : dtype, optional\n"
  "    \"float64\", \"float32\", \"float16\" or \"bfloat16\", by one rounding; by default the dtype of `x`, for 16-bit floats float32,\n"
  "    for integers float64.\n"
  DOC_KEEPDIMS
  "ord : 2\n"
  "    The 2-norm of the elements, also of a matrix; others are refused. `numpy.linalg.norm` has ord where this has axis: a second\n"
  "    argument of a matrix without a name gives a UserWarning.\n"
  DOC_WHERE,
  DOC_OF_TYPE,
  "Rescaled if plain squares would overflow or lose bits. For integers it is the root of the exact sum, in float64.\n"
  DOC_ANY_AXES,
  "np.array([1e200, 0.0]))\nnp.float64(1e+200)"),

DOC_REDUCES("max", DOC_EXTREME, "The greatest element.",
  DOC_KEEPDIMS DOC_WHERE DOC_INITIAL,
  DOC_OF_TYPE,
  "If there is a NaN, the result is the canonical NaN. -0.0 is less than +0.0. Empty is raised if there are no elements, or `where`\ntakes none of them, and there is no `initial`.\n",
  "np.array([[1, 5], [7, 2]]), axis=1)\narray([5, 7])\n>>> ls.max(np.array([]), initial=0)\nnp.float64(0.0)"),

DOC_REDUCES("min", DOC_EXTREME, "The least element.",
  DOC_KEEPDIMS DOC_WHERE DOC_INITIAL,
  DOC_OF_TYPE,
  "If there is a NaN, the result is the canonical NaN. -0.0 is less than +0.0. Empty is raised if there are no elements, or `where`\ntakes none of them, and there is no `initial`.\n",
  "np.array([0.0, -0.0]))\nnp.float64(-0.0)"),

DOC_REDUCES("argmax", "*, keepdims=False, ", "Where the greatest element is.",
  DOC_KEEPDIMS,
  "int64, the array type of `x`.",
  "The first NaN if there is one, else the lowest index of equal elements. Over several axes the index counts in C order.\n",
  "np.array([1.0, np.nan, 5.0]))\nnp.int64(1)"),

DOC_REDUCES("argmin", "*, keepdims=False, ", "Where the least element is.",
  DOC_KEEPDIMS,
  "int64, the array type of `x`.",
  "The first NaN if there is one, else the lowest index of equal elements. Over several axes the index counts in C order.\n",
  "np.array([3, 1, 1]))\nnp.int64(1)"),

DOC_REDUCES("count_nonzero", DOC_CHOSEN, "How many elements are not 0.",
  DOC_KEEPDIMS DOC_WHERE,
  "int64, the array type of `x`.",
  "-0.0 is 0, NaN is not. Exact.\n",
  "np.array([0.0, np.nan, 2.0]))\nnp.int64(2)"),

DOC_REDUCES("any", DOC_CHOSEN, "Whether an element is not 0.",
  DOC_KEEPDIMS DOC_WHERE,
  "bool, the array type of `x`.",
  "-0.0 is 0, NaN is not. Of no elements: False.\n",
  "np.array([0, 0, 3]))\nnp.True_"),

DOC_REDUCES("all", DOC_CHOSEN, "Whether no element is 0.",
  DOC_KEEPDIMS DOC_WHERE,
  "bool, the array type of `x`.",
  "-0.0 is 0, NaN is not. Of no elements: True.\n",
  "np.array([1, 0, 3]))\nnp.False_"),

DOC_REDUCES("prod", DOC_SUMMED, "Multiply the elements.",
  DOC_ROUNDED DOC_KEEPDIMS DOC_WHERE DOC_INITIAL,
  "float64 for float64; float32 for other floats, unless `dtype` names float64, float16 or bfloat16; int64 for integers and bool, uint64 for uint64.",
  "Floats are multiplied in double in the fixed order; the bits depend on nothing but the elements and their order. Integers are\nexact: what does not fit raises Overflow. Of no elements: 1.\n",
  "np.array([2.0, 3.0, 4.0]))\nnp.float64(24.0)"),

DOC_REDUCES("nansum", DOC_SUMMED, "Sum the elements that are not NaN.",
  DOC_ROUNDED DOC_KEEPDIMS DOC_WHERE DOC_INITIAL,
  "As `sum`.",
  "The bits of `sum` with +0.0 in place of each NaN.\n",
  "np.array([1.0, np.nan, 2.0]))\nnp.float64(3.0)"),

DOC_REDUCES("nanmax", DOC_EXTREME, "The greatest element that is not NaN.",
  DOC_KEEPDIMS DOC_WHERE DOC_INITIAL,
  "The dtype and array type of `x`.",
  "NaN if there is no number. -0.0 is less than +0.0.\n",
  "np.array([1.0, np.nan, 2.0]))\nnp.float64(2.0)"),

DOC_REDUCES("nanmin", DOC_EXTREME, "The least element that is not NaN.",
  DOC_KEEPDIMS DOC_WHERE DOC_INITIAL,
  "The dtype and array type of `x`.",
  "NaN if there is no number. -0.0 is less than +0.0.\n",
  "np.array([1.0, np.nan, 2.0]))\nnp.float64(1.0)"),

DOC_SEGMENTS("sum", "dtype=None, ", "Sum each segment of an array.", "dtype : dtype, optional\n    As for the whole array's operation.\n", DOC_OVERFLOW,
  "[0, 1, 2, 3, 4, 5]), [0, 2, 6])\narray([ 1, 14])"),

DOC_SEGMENTS("square_sum", "dtype=None, ", "Sum the squares of each segment.", "dtype : dtype, optional\n    As for the whole array's operation.\n", DOC_OVERFLOW,
  "[0, 1, 2, 3, 4, 5]), [0, 2, 6])\narray([ 1, 54])"),

DOC_SEGMENTS("norm", "dtype=None, ", "The Euclidean norm of each segment.", "dtype : dtype, optional\n    As for the whole array's operation.\n", "",
  "[3.0, 4.0, 2.0]), [0, 2, 3])\narray([5., 2.])"),

DOC_SEGMENTS("max", "", "The greatest element of each segment.", "", DOC_EMPTY,
  "[3, 4, 2]), [0, 2, 3])\narray([4, 2])"),

DOC_SEGMENTS("min", "", "The least element of each segment.", "", DOC_EMPTY,
  "[3, 4, 2]), [0, 2, 3])\narray([3, 2])"),

DOC_SEGMENTS("argmax", "", "Where in each segment its greatest element is.", "", DOC_EMPTY,
  "[3, 4, 2]), [0, 2, 3])\narray([1, 0])"),

DOC_SEGMENTS("argmin", "", "Where in each segment its least element is.", "", DOC_EMPTY,
  "[3, 4, 2]), [0, 2, 3])\narray([0, 0])"),

DOC_SEGMENTS("count_nonzero", "", "How many elements of each segment are not 0.", "", "",
  "[3, 0, 2]), [0, 2, 3])\narray([1, 1])"),

DOC_SEGMENTS("any", "", "Whether an element of each segment is not 0.", "", "",
  "[3, 0, 0]), [0, 2, 3])\narray([ True, False])"),

DOC_SEGMENTS("all", "", "Whether no element of each segment is 0.", "", "",
  "[3, 0, 2]), [0, 2, 3])\narray([False,  True])"),

DOC_SEGMENTS("prod", "dtype=None, ", "Multiply the elements of each segment.", DOC_ROUNDED, DOC_OVERFLOW,
  "[3, 4, 2]), [0, 2, 3])\narray([12,  2])"),

DOC_SEGMENTS("nansum", "dtype=None, ", "Sum the elements of each segment that are not NaN.", DOC_ROUNDED, "",
  "[1.0, np.nan, 2.0]), [0, 2, 3])\narray([1., 2.])"),

DOC_SEGMENTS("nanmax", "", "The greatest element of each segment that is not NaN.", "", DOC_EMPTY,
  "[1.0, np.nan, 2.0]), [0, 2, 3])\narray([1., 2.])"),

DOC_SEGMENTS("nanmin", "", "The least element of each segment that is not NaN.", "", DOC_EMPTY,
  "[1.0, np.nan, 2.0]), [0, 2, 3])\narray([1., 2.])"),

"stencil(x, weights, *, radius=None, mode='reflect', cval=0.0, sweeps=1, form='auto', axes=None, "
DOC_SIGNATURE R"doc(Correlate with a star: the element itself and, on each axis, its neighbours on both sides.

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
)doc" DOC_OTHERS R"doc(Returns
-------
array
    The array type and dtype of `x`.

Notes
-----
The first tap is a rounded product, each further one a fused multiply-add in the dtype of `x`, in the order of memory. A weight of
zero is a tap too: 0 * inf is NaN. A square number of weights on two axes, as 9, is a star's too, which a UserWarning says
unless `radius` is given or the weights come from `star` or `laplace_weights`; `correlate` takes kernels.

Examples
--------
>>> ls.stencil(np.array([0.0, 0.0, 1.0, 0.0]), [1, -2, 1], mode="constant")
array([ 0.,  1., -2.,  1.])
)doc",

"shuffle(x, kind, operand, *, width=32, "
DOC_SIGNATURE R"doc(CUDA's warp shuffles over an array of warps.

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
)doc" DOC_OTHERS R"doc(Returns
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
