// docs_rows.hpp - the docstrings of normalize, softmax and scan; behind those of docs.hpp in calls.cpp's table.
#pragma once

#include "docs.hpp"

namespace lockstep::python {

// clang-format off
#define DOC_ROWS \
  "axis : int or tuple of int, default -1\n" \
  "    The axes of a row: each row is normalised by itself. Packed copies are made of arrays that are not in C order, and where these axes are not neighbours.\n" \
  "weight, bias : array, optional\n" \
  "    Of the shape of a row, in the dtype of `x` or float32: the result is ``normalised * weight + bias``.\n"
#define DOC_RESIDUAL \
  "residual : array, optional\n" \
  "    Of the shape and dtype of `x`: added to it first, rounded to that dtype.\n" \
  "residual_out : array, optional\n" \
  "    Array for that sum; may be `residual` or `x`.\n" \
  "dtype : dtype, optional\n" \
  "    Of the result: \"float16\", \"bfloat16\" or \"float32\"; default: that of `x`. There is one rounding.\n"

#define DOC_EXPONENTIALS \
  "axis : int or tuple of int, default -1\n" \
  "    The axes of a row: each row is taken by itself. Packed copies are made of arrays that are not in C order, and where these axes are not neighbours.\n" \
  "scale : float, default 1.0\n" \
  "    Factor of the elements, rounded in double; not 0.\n"

// Of each segment.
#define DOC_RAGGED(name, labels, does, of_labels, gives, notes, example) \
  "segment_" name "(x, " labels "offsets, *, scale=1.0, dtype=None, " DOC_SIGNATURE does "\n" \
  "\nParameters\n----------\n" \
  "x : array of float16, bfloat16, float32 or float64\n" \
  "    Segments are cut from its first axis, and each is a row. If there are several axes, packed copies are made.\n" \
  of_labels \
  "offsets : array of integers, or a list\n" \
  "    One more than the number of segments: segment s holds ``x[offsets[s]:offsets[s + 1]]``. They must not decrease. If they\n" \
  "    are on a device, the first and the last one are read back, which waits for them; all of them where x has several axes.\n" \
  "scale : float, default 1.0\n" \
  "    Factor of the elements, rounded in double; not 0.\n" \
  "dtype : dtype, optional\n" \
  "    Of the result: \"float16\", \"bfloat16\" or \"float32\"; default: that of `x`. There is one rounding.\n" \
  DOC_OTHERS "Returns\n-------\narray\n    " gives "\n" \
  "\nNotes\n-----\n" \
  "A segment has the bits that `" name "` gives for it alone. " notes "\n" \
  "\nExamples\n--------\n>>> ls.segment_" name "(np.array(" example "\n"
#define DOC_RAGGED_ALL "The array type and shape of `x`: the offsets begin at 0 and end at its length. ``out=x`` replaces it."
#define DOC_RAGGED_ONE "The array type of `x`, one result per segment, of the shape of the other axes."

// The greatest or least element so far.
#define DOC_RUNNING_EXTREME(name, which, first, example) \
  name "(x, axis=None, *, exclusive=False, " DOC_SIGNATURE "The " which " element so far.\n" \
  "\nParameters\n----------\n" \
  "x : array\n" \
  "    As for `cumsum`.\n" \
  "axis : int, optional\n" \
  "    The axis along which it runs; default: all elements in C order, and the result has one axis.\n" \
  "exclusive : bool, default False\n" \
  "    Leave each element out: the first is " first ".\n" \
  DOC_OTHERS "Returns\n-------\narray\n    The array type and dtype of `x`.\n" \
  "\nNotes\n-----\n" \
  "From a NaN on all results are NaN. -0.0 is less than +0.0.\n" \
  "\nExamples\n--------\n>>> ls." name "(np.array([" example "\n"

constexpr const char* row_docs[] = {
"normalize(x, axis=-1, *, weight=None, bias=None, eps=1e-12, residual=None, residual_out=None, dtype=None, "
DOC_SIGNATURE R"doc(Divide each row by its 2-norm, as torch.nn.functional.normalize.

Parameters
----------
x : array of float16, bfloat16, float32 or float64
)doc" DOC_ROWS R"doc(eps : float, default 1e-12
    The divisor if the norm is less.
)doc" DOC_RESIDUAL DOC_OTHERS R"doc(Returns
-------
array
    The array type and shape of `x`; ``out=x`` normalises in place.

Notes
-----
Computed in double; a row has the same bits in any batch, with any number of threads. `norm` gives the norm alone.

Examples
--------
>>> ls.normalize(np.array([[3.0, 4.0], [0.0, 2.0]]))
array([[0.6, 0.8],
       [0. , 1. ]])
)doc",

"rms_norm(x, axis=-1, *, weight=None, bias=None, eps=1e-06, residual=None, residual_out=None, dtype=None, "
DOC_SIGNATURE R"doc(Divide each row by the root of the mean of its squares, as torch.nn.functional.rms_norm.

Parameters
----------
x : array of float16, bfloat16, float32 or float64
)doc" DOC_ROWS R"doc(eps : float, default 1e-6
    Added to the mean before the root is taken.
)doc" DOC_RESIDUAL DOC_OTHERS R"doc(Returns
-------
array
    The array type and shape of `x`; ``out=x`` normalises in place.

Notes
-----
Computed in double; a row has the same bits in any batch, with any number of threads. Squares are not rescaled: a float64 row
of elements beyond about 1e154 gives zeros, one below about 1e-154 infinities with ``eps=0``; `normalize` does rescale.

Examples
--------
>>> ls.rms_norm(np.array([1.0, 7.0]), eps=0)
array([0.2, 1.4])
>>> ls.rms_norm(np.array([1.0, 7.0]), eps=0, weight=np.array([10.0, 1.0]))
array([2. , 1.4])
)doc",

"layer_norm(x, axis=-1, *, weight=None, bias=None, eps=1e-05, residual=None, residual_out=None, dtype=None, "
DOC_SIGNATURE R"doc(Subtract each row's mean and divide by its standard deviation, as torch.nn.functional.layer_norm.

Parameters
----------
x : array of float16, bfloat16, float32 or float64
)doc" DOC_ROWS R"doc(eps : float, default 1e-5
    Added to the variance before the root is taken.
)doc" DOC_RESIDUAL DOC_OTHERS R"doc(Returns
-------
array
    The array type and shape of `x`; ``out=x`` normalises in place.

Notes
-----
Computed in double, the variance about each leaf's own mean, so that a large mean causes no cancellation. A row has the
same bits in any batch, with any number of threads. A row of equal elements gives 0, with ``eps=0`` NaN.

Examples
--------
>>> ls.layer_norm(np.array([2.0, 4.0, 4.0, 6.0, 4.0, 4.0]), eps=0).round(3)
array([-1.732,  0.   ,  0.   ,  1.732,  0.   ,  0.   ])
)doc",

"rms_norm_backward(x, gradient, axis=-1, *, weight=None, eps=1e-06, residual=None, weight_gradient=None, bias_gradient=None, "
DOC_SIGNATURE R"doc(The gradients of `rms_norm`: of `x`, and on demand of weight and bias, in one call.

Parameters
----------
x : array of float16, bfloat16, float32 or float64
    What `rms_norm` was given; where that wrote ``residual_out``, give this and no residual.
gradient : array
    Of the shape and dtype of `x`: the gradient of the result.
axis, weight, eps, residual
    As they were given to `rms_norm`.
weight_gradient, bias_gradient : array, optional
    Arrays for the gradients of weight and bias: packed, of the shape of a row, in the dtype of `x` or float32, weight's too. Of an
    empty `x` they stay as they are.
)doc" DOC_OTHERS R"doc(Returns
-------
array
    The gradient of `x` (and of the residual), of its shape and dtype; ``out=x`` overwrites it.

Notes
-----
Computed in double; sums follow the fixed order, those of weight and bias down the rows: the same bits with any number of threads, on
CPU and GPU.

Examples
--------
>>> x, g = np.array([[1.0, 7.0]]), np.array([[1.0, 0.0]])
>>> of_weight = np.empty(2)
>>> ls.rms_norm_backward(x, g, eps=0, weight_gradient=of_weight).round(3)
array([[ 0.196, -0.028]])
>>> of_weight.round(3)
array([0.2, 0. ])
)doc",

"layer_norm_backward(x, gradient, axis=-1, *, weight=None, eps=1e-05, residual=None, weight_gradient=None, bias_gradient=None, "
DOC_SIGNATURE R"doc(The gradients of `layer_norm`: of `x`, and on demand of weight and bias, in one call.

Parameters
----------
x : array of float16, bfloat16, float32 or float64
    What `layer_norm` was given; where that wrote ``residual_out``, give this and no residual.
gradient : array
    Of the shape and dtype of `x`: the gradient of the result.
axis, weight, eps, residual
    As they were given to `layer_norm`.
weight_gradient, bias_gradient : array, optional
    Arrays for the gradients of weight and bias: packed, of the shape of a row, in the dtype of `x` or float32, weight's too. Of an
    empty `x` they stay as they are.
)doc" DOC_OTHERS R"doc(Returns
-------
array
    The gradient of `x` (and of the residual), of its shape and dtype; ``out=x`` overwrites it.

Notes
-----
Computed in double; sums follow the fixed order, those of weight and bias down the rows: the same bits with any number of threads, on
CPU and GPU.

Examples
--------
>>> x, g = np.array([[1.0, 2.0, 6.0]]), np.array([[1.0, 1.0, 0.0]])
>>> of_weight = np.empty(3)
>>> ls.layer_norm_backward(x, g, eps=0, weight_gradient=of_weight).round(3)
array([[-0.044,  0.055, -0.011]])
>>> of_weight.round(3)
array([-0.926, -0.463,  0.   ])
)doc",

"softmax(x, axis=-1, *, scale=1.0, residual=None, residual_out=None, dtype=None, "
DOC_SIGNATURE R"doc(Exponentials of each row divided by their sum, as torch.softmax, with the same bits on every machine.

Parameters
----------
x : array of float16, bfloat16, float32 or float64
)doc" DOC_EXPONENTIALS DOC_RESIDUAL DOC_OTHERS R"doc(Returns
-------
array
    The array type and shape of `x`; ``out=x`` replaces it.

Notes
-----
Computed in double from the row's largest element on, so nothing overflows, and rounded once: results of 16 and 32 bits are
within 0.51 units in the last place. Elements of -inf, such as those of a mask, give exactly 0. A row of only -inf gives
NaN, and so does a row that has inf or NaN.

Examples
--------
>>> ls.softmax(np.array([[0.0, 0.0], [-np.inf, 5.0]]))
array([[0.5, 0.5],
       [0. , 1. ]])
)doc",

"log_softmax(x, axis=-1, *, scale=1.0, residual=None, residual_out=None, dtype=None, "
DOC_SIGNATURE R"doc(Logarithms of `softmax`, as torch.log_softmax, without rounding that first.

Parameters
----------
x : array of float16, bfloat16, float32 or float64
)doc" DOC_EXPONENTIALS DOC_RESIDUAL DOC_OTHERS R"doc(Returns
-------
array
    The array type and shape of `x`; ``out=x`` replaces it.

Notes
-----
As for `softmax`, but elements of -inf give -inf. `picked` gives one element of each row alone.

Examples
--------
>>> ls.log_softmax(np.array([0.0, 0.0, -np.inf])).round(4)
array([-0.6931, -0.6931,    -inf])
)doc",

"logsumexp(x, axis=-1, *, keepdims=False, scale=1.0, residual=None, residual_out=None, dtype=None, "
DOC_SIGNATURE R"doc(Logarithm of the sum of each row's exponentials, as torch.logsumexp.

Parameters
----------
x : array of float16, bfloat16, float32 or float64
)doc" DOC_EXPONENTIALS DOC_KEEPDIMS DOC_RESIDUAL DOC_OTHERS R"doc(Returns
-------
array
    The array type of `x`, without the axes of a row.

Notes
-----
``dtype="float64"`` gives the double that is rounded otherwise. A row of only -inf gives -inf; one that has inf gives inf.
An empty row is an error.

Examples
--------
>>> ls.logsumexp(np.array([[0.0, 0.0], [-np.inf, 5.0]])).round(4)
array([0.6931, 5.    ])
)doc",

"picked(x, labels, axis=-1, *, keepdims=False, scale=1.0, residual=None, residual_out=None, dtype=None, "
DOC_SIGNATURE R"doc(The element of `log_softmax` that a label names in each row, without the other elements.

Its negative is the cross-entropy of each row: ``-picked(logits, labels)`` is torch.nn.functional.cross_entropy with
``reduction="none"``.

Parameters
----------
x : array of float16, bfloat16, float32 or float64
labels : array of integers
    Of the shape of `x` without the axes of a row: a place in the row each, from 0 on.
)doc" DOC_EXPONENTIALS DOC_KEEPDIMS DOC_RESIDUAL DOC_OTHERS R"doc(Returns
-------
array
    The array type of `x`, without the axes of a row.

Notes
-----
``dtype="float64"`` gives the double that is rounded otherwise. A label outside of its row raises InvalidArgument; on
CUDA that row's result is left as it was.

Examples
--------
>>> ls.picked(np.array([[0.0, 0.0], [-np.inf, 5.0]]), np.array([1, 1])).round(4)
array([-0.6931,  0.    ])
)doc",

DOC_RAGGED("softmax", "", "Exponentials of each segment divided by their sum: attention over the neighbours of a node, or the words of a sentence.", "",
DOC_RAGGED_ALL, "An empty segment has no results.",
"[0.0, 0.0, 5.0]), [0, 2, 3])\narray([0.5, 0.5, 1. ])"),
DOC_RAGGED("log_softmax", "", "Logarithms of `segment_softmax`, without rounding that first.", "",
DOC_RAGGED_ALL, "An empty segment has no results.",
"[0.0, 0.0, 5.0]), [0, 2, 3]).round(4)\narray([-0.6931, -0.6931,  0.    ])"),
DOC_RAGGED("logsumexp", "", "Logarithm of the sum of each segment's exponentials.", "",
DOC_RAGGED_ONE, "``dtype=\"float64\"`` gives the double that is rounded otherwise. An empty segment gives -inf.",
"[0.0, 0.0, 5.0]), [0, 2, 2, 3]).round(4)\narray([0.6931,   -inf, 5.    ])"),
DOC_RAGGED("picked", "labels, ", "The element of `segment_log_softmax` that a label names in each segment, without the other elements.",
"labels : array of integers\n    A place in each segment, from 0 on; of the shape of the result.\n",
DOC_RAGGED_ONE, "``dtype=\"float64\"`` gives the double that is rounded otherwise. A label outside of its segment raises InvalidArgument,\nand so does an empty segment; on CUDA its result is left as it was.",
"[0.0, 0.0, 5.0]), [1, 0], [0, 2, 3]).round(4)\narray([-0.6931,  0.    ])"),

"cumsum(x, axis=None, *, dtype=None, exclusive=False, "
DOC_SIGNATURE R"doc(Running sums, with the same bits on every machine.

Parameters
----------
x : array
    Floats, bool, or integers other than uint64. Integers below 32 bits and uint32 are converted first, exactly.
axis : int, optional
    The axis along which it runs; default: all elements in C order, and the result has one axis. If sequences are not one
    stride apart, packed copies are made.
dtype : dtype, optional
    "float64" for the doubles that were summed. Default: one rounding to the dtype of `x`, for 16-bit floats to float32
    (or to their own dtype, if it is named). Integers give int64.
exclusive : bool, default False
    Leave each element out of its own sum: the first is 0.
)doc" DOC_OTHERS R"doc(Returns
-------
array
    The array type of `x`.

Notes
-----
The sum before each leaf of 2,048 elements has the bits that `sum` gives for those elements. Later elements never change an
earlier result. Integers are exact: Overflow is raised if a sum does not fit 64 bits.

Examples
--------
>>> ls.cumsum(np.array([1, 2, 3]))
array([1, 3, 6])
>>> ls.cumsum(np.array([1, 2, 3]), exclusive=True)
array([0, 1, 3])
)doc",

DOC_RUNNING_EXTREME("cummax", "greatest", "-inf, or the least integer", "1.0, 5.0, 2.0]))\narray([1., 5., 5.])"),
DOC_RUNNING_EXTREME("cummin", "least", "inf, or the greatest integer", "3.0, 5.0, 2.0]))\narray([3., 3., 2.])"),

};
// clang-format on

}  // namespace lockstep::python
