// docs_functions.hpp - the docstrings of functions of each element; behind those of docs_sums.hpp.
#pragma once

#include "docs.hpp"

namespace lockstep::python {

// clang-format off
#define DOC_EACH \
  "Parameters\n" \
  "----------\n" \
  "x : array of float16, bfloat16 or float32\n" \
  "dtype : dtype, optional\n" \
  "    \"float16\", \"bfloat16\" or \"float32\"; by default that of `x`.\n" \
  "scale : float, default 1.0\n" \
  "    Factor of the value, applied before it is rounded.\n" \
  "times : array, optional\n" \
  "    Of the shape and dtype of `x`; each value is multiplied by its element: ``silu(x, times=y)`` is a gated unit.\n"
#define DOC_RETURNED \
  "Returns\n" \
  "-------\n" \
  "array\n" \
  "    Packed, the array type of `x`; ``out=x`` computes in place.\n" \
  "\n" \
  "Notes\n" \
  "-----\n" \
  "Correctly rounded: the number of the result's dtype that is nearest to the exact value, on every machine. With a scale\n" \
  "the value in double is within about one unit in its last place, then multiplied and rounded. With `times` that double is not\n" \
  "rounded: its exact product with the element of `times` is, once.\n" \
  "\n" \
  "Examples\n" \
  "--------\n"

constexpr const char* function_docs[] = {
"exp(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(e to the power of each element.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.exp(np.array([0, 1, -1], "f4"))
array([1.        , 2.7182817 , 0.36787945], dtype=float32)
)doc",

"expm1(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(e to the power of each element, minus 1; accurate near 0 too.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.expm1(np.array([0, 1e-08, 1], "f4"))
array([0.0000000e+00, 9.9999999e-09, 1.7182819e+00], dtype=float32)
)doc",

"log(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(The natural logarithm of each element.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.log(np.array([1, 2, 10], "f4"))
array([0.       , 0.6931472, 2.3025851], dtype=float32)
)doc",

"log1p(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(The natural logarithm of 1 plus each element; accurate near 0 too.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.log1p(np.array([0, 1e-08, 1], "f4"))
array([0.000000e+00, 1.000000e-08, 6.931472e-01], dtype=float32)
)doc",

"sqrt(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(The square root of each element.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.sqrt(np.array([0, 2, 4], "f4"))
array([0.       , 1.4142135, 2.       ], dtype=float32)
)doc",

"rsqrt(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(1 divided by the square root of each element.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.rsqrt(np.array([1, 2, 4], "f4"))
array([1.        , 0.70710677, 0.5       ], dtype=float32)
)doc",

"reciprocal(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(1 divided by each element.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.reciprocal(np.array([1, 3, -4], "f4"))
array([ 1.        ,  0.33333334, -0.25      ], dtype=float32)
)doc",

"tanh(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(The hyperbolic tangent of each element.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.tanh(np.array([0, 0.5, -1], "f4"))
array([ 0.        ,  0.46211717, -0.7615942 ], dtype=float32)
)doc",

"sigmoid(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(1 / (1 + exp(-x)) for each element x.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.sigmoid(np.array([0, 1, -1], "f4"))
array([0.5       , 0.7310586 , 0.26894143], dtype=float32)
)doc",

"silu(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(x / (1 + exp(-x)) for each element x.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.silu(np.array([0, 1, -1], "f4"))
array([ 0.        ,  0.7310586 , -0.26894143], dtype=float32)
)doc",

"gelu(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(x (1 + erf(x / sqrt(2))) / 2 for each element x.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.gelu(np.array([0, 1, -1], "f4"))
array([ 0.        ,  0.8413448 , -0.15865526], dtype=float32)
)doc",

"gelu_tanh(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 for each element x.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.gelu_tanh(np.array([0, 1, -1], "f4"))
array([ 0.        ,  0.841192  , -0.15880801], dtype=float32)
)doc",

"erf(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(The error function of each element.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.erf(np.array([0, 0.5, -1], "f4"))
array([ 0.       ,  0.5204999, -0.8427008], dtype=float32)
)doc",

"softplus(x, dtype=None, *, scale=1.0, times=None, "
DOC_SIGNATURE R"doc(log(1 + exp(x)) for each element x.

)doc" DOC_EACH DOC_OTHERS DOC_RETURNED R"doc(>>> ls.softplus(np.array([0, 1, -1], "f4"))
array([0.6931472, 1.3132616, 0.3132617], dtype=float32)
)doc",

"matrix_transpose(x, *, "
DOC_SIGNATURE R"doc(Exchange the last two axes, as `transpose` without axes; those before them are a batch.

Parameters
----------
x : array
    At least two axes; elements of 1, 2, 4, 8 or 16 bytes of any type.
)doc" DOC_OTHERS R"doc(Returns
-------
array
    Packed, the array type of `x`.

Examples
--------
>>> ls.matrix_transpose(np.zeros((2, 3, 4))).shape
(2, 4, 3)
)doc",

"vdot(x, y, *, dtype=None, "
DOC_SIGNATURE R"doc(Sum the products of all elements of two arrays: `dot` over all axes.

Parameters
----------
x : array
    Floats of 16, 32 or 64 bits, integers or bool.
y : array
    The dtype and shape of `x`.
)doc" DOC_SUM_DTYPE DOC_OTHERS DOC_SUMS_RETURN R"doc(Examples
--------
>>> ls.vdot(np.array([[1, 2], [3, 4]]), np.array([[1, 0], [0, 1]]))
np.int64(5)
)doc",

};
// clang-format on

}  // namespace lockstep::python
