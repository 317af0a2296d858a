// pairs.cpp - rows of floats: sums of products, of differences squared and without their sign, and of magnitudes.
// Idea    the lanes of a leaf in registers, as float_sums.cpp holds them, two arrays side by side
// Moves   both arrays read once
// Limit   the read limit in DRAM; conversions to double in L2
// Watch   kinds of one array do not read the second
// Source  lib/bits/order.hpp
#include "../sums_kernels.hpp"
#include "pair_terms.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

template <class E, class Enter, int V>
__attribute__((noinline)) void rows_of(const rows_of_two& r, int64_t count, double* out) {
  typedef const typename E::type* elements;
  const row_leaf<E, V> leaf(r.n);
  each_leaf<leaf.unrolled>(count, out, [=, x = static_cast<elements>(r.x), x_stride = r.x_stride](int64_t s) {
    const elements p = x + s * x_stride;
    return leaf(p, takes_two<Enter> ? static_cast<elements>(r.y) + s * r.y_stride : p, Enter{});
  });
}
template <class E, class Enter>
void rows(const rows_of_two& r, int64_t count, double* out) {
  by_length<E>(r.n, [&](auto v) { rows_of<E, Enter, v.value>(r, count, out); });
}

}  // namespace

#define LOCKSTEP_FLOAT_KINDS(E) \
  { rows<E, products<E>>, rows<E, squared_distances>, rows<E, distances>, rows<E, magnitudes> }
extern const pair_kernels pair_sums_table;
const pair_kernels pair_sums_table = {{LOCKSTEP_FLOAT_KINDS(f16_element), LOCKSTEP_FLOAT_KINDS(bf16_element),
                                       LOCKSTEP_FLOAT_KINDS(f32_element), LOCKSTEP_FLOAT_KINDS(f64_element)}};
#undef LOCKSTEP_FLOAT_KINDS

}  // namespace lockstep::cpu::LOCKSTEP_ISA
