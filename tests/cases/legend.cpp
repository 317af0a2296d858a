// legend.cpp - see legend.hpp.
#include "legend.hpp"

namespace lockstep::cases {

std::span<const legend_line> legend() {
  static constexpr legend_line lines[] = {
      {"transpose/b4/17x33", "elements of 4 bytes; 17 rows, 33 columns"},
      {"permute/b4/3x5x7/perm2,0,1", "sizes, outermost axis first; axis k of the result is axis perm[k] of the input"},
      {"reduce/sum/f32/full/1000", "sum, min, max, argmin or argmax; type; layout; elements"},
      {"square_sum/ssq/f32/full/1000", "ssq: sum of squares, norm2: its square root"},
      {"stencil/f32/symmetric/nearest/r4/64x64", "type; form of the weights; boundary; radius 4; sizes"},
      {"shuffle/b4/xor/w32/op1/n1024", "bytes of an element; kind; width 32; operand 1; elements"},
      {"sums/dot/f32/rows/17x33",
       "dot, sqdiff, absdiff (of two arrays), abs or meanvar; type; layout full, rows, columns or segments; /shared: "
       "one row of "
       "the "
       "second array for all"},
      {"reduce_axes/sum/f32/5x6x7/axes0,2",
       "a reduction of reduce or square_sum; type; sizes; axes to reduce; /pad3: gaps of 3 elements; /backwards: the "
       "first "
       "axis lies innermost"},
      {"convert/f32/f16/3x5x7/perm2,0,1",
       "types of input and result; sizes and perm as for permute; /by_half: times 0.5 (by_minus3, by_255th, by_tenth, "
       "by_2p20, by_2m140, by_1e300, by_zero, by_infinity, by_nan)"},
      {"map/exp/f32/f16/3x5x7/perm2,0,1", "a function; otherwise as convert, times 0.5 or 2^20 (by_half, by_2p20)"},
      {"reduce/max/f32/rows/17x33", "layout rows: a result for each of 17 rows"},
      {"reduce/max/f32/columns/17x33", "layout columns: a result for each of 33 columns"},
      {"reduce/sum/f32/strided/1000/stride3", "layout strided: every third element"},
      {"reduce/sum/f32/even/17x33",
       "17 segments of 33 elements; mixed: of 0 to 66; nonempty: of 1 to 66; lopsided: one of 33, the others of 0 to "
       "3"},
      {"/to_f32", "the result is rounded to f32"},
      {"/ld40,20", "leading dimensions of input and result, in elements"},
      {"/batch3,5,7", "3 arrays, gaps of 5 elements between inputs, of 7 between results"},
      {"/pad1,2", "gaps of 1 element behind each row of the input, of 2 behind each of the result"},
      {"/inplace", "the result takes the input's place"},
      {"/sweeps8", "the stencil is applied 8 times"},
      {"/off1,3", "input and result begin 1 and 3 elements behind a 64-byte boundary"},
      {"/seed9", "the seed of the input's values"},
      {"/special", "what the input holds: random without a word; special has NaN, infinities and denormals"}};
  return lines;
}

}  // namespace lockstep::cases
