// docs_sums.hpp - the docstrings of sums of two arrays, means and variances; behind those of docs_rows.hpp.
#pragma once

#include "docs.hpp"

namespace lockstep::python {

// clang-format off
#define DOC_TWO \
  "x : array\n" \
  "    Floats of 16, 32 or 64 bits, integers or bool.\n" \
  "y : array\n" \
  "    The dtype of `x`, and its shape; or the shape of the reduced axes, so that every result has the same `y`.\n" \
  "axis : int or tuple of int, optional\n" \
  "    Axes to reduce; all by default.\n"
#define DOC_SUMS_NOTES \
  "A packed copy is made first if the axes are not one sequence after another in memory.\n" \
  "\n"
#define DOC_MOMENTS \
  "x : array\n" \
  "    Floats of 16, 32 or 64 bits; integers and bool, whose mean is the exact sum by one division, and whose variance is that\n" \
  "    of the numbers as float64.\n" \
  "axis : int or tuple of int, optional\n" \
  "    Axes to reduce; all by default.\n"
#define DOC_CORRECTION \
  "correction : int, default 0\n" \
  "    The squares are divided by n - correction: 1 for the variance of a sample.\n" \
  "ddof : int, optional\n" \
  "    NumPy's name of correction.\n"
#define DOC_MOMENTS_DTYPE \
  "dtype : dtype, optional\n" \
  "    \"float64\" for the double that was computed; \"float32\", \"float16\" or \"bfloat16\" for one final rounding of it. Default: the\n" \
  "    dtype of `x`, float32 for 16-bit floats.\n"

constexpr const char* sums_docs[] = {
"dot(x, y, axis=None, *, dtype=None, keepdims=False, "
DOC_SIGNATURE R"doc(Sum the products of two arrays' elements, with the same bits on every machine.

Parameters
----------
)doc" DOC_TWO DOC_SUM_DTYPE DOC_KEEPDIMS DOC_OTHERS DOC_SUMS_RETURN R"doc(Notes
-----
Floats are added in double by fused multiply-adds in the tree of `sum`: the dot product of an array with itself is its
`square_sum`, bit for bit. Integers are exact; Overflow is raised if the sum does not fit 64 bits. For bool it is the
number of places where both are true. Unlike numpy.dot it multiplies no matrices.
)doc" DOC_SUMS_NOTES R"doc(Examples
--------
>>> ls.dot(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))
np.float64(32.0)
>>> ls.dot(np.array([[1, 2], [3, 4]]), np.array([10, 1]), axis=1)
array([12, 34])
)doc",

"squared_distance(x, y, axis=None, *, dtype=None, keepdims=False, "
DOC_SIGNATURE R"doc(Sum the squares of the differences of two arrays' elements.

Parameters
----------
)doc" DOC_TWO DOC_SUM_DTYPE DOC_KEEPDIMS DOC_OTHERS DOC_SUMS_RETURN R"doc(Notes
-----
A difference is rounded to double once, squared and added by one fused multiply-add in the tree of `sum`. Integers are
exact; Overflow is raised if the sum does not fit 64 bits.
)doc" DOC_SUMS_NOTES R"doc(Examples
--------
>>> ls.squared_distance(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([3.0, 4.0]), axis=1)
array([25., 13.])
)doc",

"l1_distance(x, y, axis=None, *, dtype=None, keepdims=False, "
DOC_SIGNATURE R"doc(Sum the absolute differences of two arrays' elements: the distance in the 1-norm.

Parameters
----------
)doc" DOC_TWO DOC_SUM_DTYPE DOC_KEEPDIMS DOC_OTHERS DOC_SUMS_RETURN R"doc(Notes
-----
Differences are rounded to double once and added in the tree of `sum`. Integers are exact; Overflow is raised if the sum
does not fit 64 bits. For bool it is the number of places where exactly one is true.
)doc" DOC_SUMS_NOTES R"doc(Examples
--------
>>> ls.l1_distance(np.array([1, 2, 3]), np.array([3, 2, 0]))
np.int64(5)
)doc",

"l1_norm(x, axis=None, dtype=None, *, keepdims=False, where=None, "
DOC_SIGNATURE R"doc(Sum the absolute values: the 1-norm.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
axis : int or tuple of int, optional
    Axes to reduce; all by default.
)doc" DOC_SUM_DTYPE DOC_KEEPDIMS DOC_WHERE DOC_OTHERS DOC_SUMS_RETURN R"doc(Notes
-----
Added in double by the tree of `sum`. Integers are exact; Overflow is raised if the sum does not fit 64 bits.
)doc" DOC_SUMS_NOTES R"doc(Examples
--------
>>> ls.l1_norm(np.array([3.0, -4.0]))
np.float64(7.0)
)doc",

"mean(x, axis=None, dtype=None, *, keepdims=False, where=None, "
DOC_SIGNATURE R"doc(The mean: the sum as `sum` adds it, divided by the number of elements.

Parameters
----------
)doc" DOC_MOMENTS DOC_MOMENTS_DTYPE DOC_KEEPDIMS DOC_WHERE DOC_OTHERS DOC_SUMS_RETURN R"doc(Notes
-----
Sum and quotient are doubles; the quotient is rounded to the result's dtype once. The mean of equal float64 elements is
that element, the mean of no elements NaN.
)doc" DOC_SUMS_NOTES R"doc(Examples
--------
>>> ls.mean(np.array([[1.0, 2.0], [3.0, 5.0]]), axis=1)
array([1.5, 4. ])
)doc",

"var(x, axis=None, dtype=None, *, correction=0, ddof=None, keepdims=False, where=None, "
DOC_SIGNATURE R"doc(The variance: the mean of the squares about the mean.

Parameters
----------
)doc" DOC_MOMENTS DOC_CORRECTION DOC_MOMENTS_DTYPE DOC_KEEPDIMS DOC_WHERE DOC_OTHERS DOC_SUMS_RETURN R"doc(Notes
-----
Computed in double in one pass, the squares of each leaf about its own mean, so that a large mean causes no cancellation.
NaN if there are no more than `correction` elements.
)doc" DOC_SUMS_NOTES R"doc(Examples
--------
>>> ls.var(np.array([1e9 + 1, 1e9 + 2, 1e9 + 3]), correction=1)
np.float64(1.0)
)doc",

"std(x, axis=None, dtype=None, *, correction=0, ddof=None, keepdims=False, where=None, "
DOC_SIGNATURE R"doc(The standard deviation: the root of the variance.

Parameters
----------
)doc" DOC_MOMENTS DOC_CORRECTION R"doc(dtype : dtype, optional
    "float64" or "float32"; by default the dtype of `x`, for 16-bit floats float32.
)doc" DOC_KEEPDIMS DOC_WHERE DOC_OTHERS DOC_SUMS_RETURN R"doc(Notes
-----
The correctly rounded root of the variance in double, rounded to the result's dtype once more. On a device the array's
library takes the root; arrays without such a library (numba, `empty`) are refused.

Examples
--------
>>> ls.std(np.array([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]))
np.float64(2.0)
)doc",

"convert(x, dtype, *, axes=None, scale=1.0, "
DOC_SIGNATURE R"doc(Convert to another type, times a scale, with the axes in any order, in one pass over memory.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
dtype : dtype
    A float type, "float16" to "float64", an integer type or "bool"; it may be that of `x`.
axes : tuple of int, optional
    Axis k of the result is axis ``axes[k]`` of `x`, as for `permute`.
scale : float, default 1.0
    The factor of each element.
)doc" DOC_OTHERS R"doc(Returns
-------
array
    Packed, the array type of `x`.

Notes
-----
``x * scale`` is rounded to double, then to the result. As floats, values beyond the largest number become infinities, and every NaN
the canonical quiet NaN; integers without a scale are rounded once. As integers, numbers lose their fraction, as by
`numpy.ndarray.astype`, but what does not fit becomes the type's least or greatest value, where NumPy wraps, and NaN becomes 0. As bool,
what is not 0 is True, NaN too.

Examples
--------
>>> ls.convert(np.array([[1.0, 2.0], [3.0, 70000.0]]), "float16", axes=(1, 0), scale=0.5)
array([[5.0e-01, 1.5e+00],
       [1.0e+00, 3.5e+04]], dtype=float16)
>>> ls.convert(np.array([1.9, -1.9, 300.0, np.nan]), "uint8")
array([  1,   0, 255,   0], dtype=uint8)
)doc",

"mean_var(x, axis=None, dtype=None, *, correction=0, ddof=None, keepdims=False, where=None, "
DOC_SIGNATURE R"doc(Mean and variance by one pass over the elements.

Parameters
----------
)doc" DOC_MOMENTS DOC_CORRECTION DOC_MOMENTS_DTYPE DOC_KEEPDIMS DOC_WHERE R"doc(out : tuple of two arrays, optional
    Arrays for mean and variance, with their shape and dtype, on the device of `x`.

)doc" DOC_OTHER_PARAMETERS R"doc(Returns
-------
tuple of two arrays
    Mean and variance, the array type of `x`; NumPy scalars if a NumPy array is reduced to one element.

Notes
-----
The bits of `mean` and `var`. A plan of it gives one array, with one more axis of two: mean, variance.
)doc" DOC_SUMS_NOTES R"doc(Examples
--------
>>> mean, variance = ls.mean_var(np.array([[1.0, 3.0], [2.0, 2.0]]), axis=1)
>>> mean, variance
(array([2., 2.]), array([1., 0.]))
)doc",

};
// clang-format on

}  // namespace lockstep::python
