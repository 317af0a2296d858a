// exact_sums.cpp - exact sums and sums of squares of integers.
// Idea    64-bit lanes keep two sums of each term t: of t itself, modulo 2^64, and of t >> 32. Together they give
//         the exact sum of up to 2^32 terms: the low halves add up to the first less 2^32 times the second.
//         Squares of i64 are three such terms (schoolbook, 32-bit digits).
// Moves   every element read once; 24 bytes written for each chunk
// Limit   L2: 5 or 7 operations for each vector of i32 squares; DRAM: the read limit
// Watch   two squares of i32 fit one u64 (2 * 2^62), four do not
// Source  this repository
#include "exact_rows.hpp"
#include "narrow_sums.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {

extern const exact_sum_kernels exact_sums_table;
const exact_sum_kernels exact_sums_table = {{
    {rows<i32_sum>, two<i32_sum>, columns<i32_sum>},
    {rows<i64_sum>, two<i64_sum>, columns<i64_sum>},
    {narrow_rows<i8_packed>, narrow_two<i8_packed>, columns<small_sum<int8_t>>},
    {narrow_rows<i16_packed>, narrow_two<i16_packed>, columns<small_sum<int16_t>>},
    {narrow_rows<u8_packed>, narrow_two<u8_packed>, columns<small_sum<uint8_t>>},
    {narrow_rows<u16_packed>, narrow_two<u16_packed>, columns<small_sum<uint16_t>>},
    {rows<small_sum<uint32_t>>, two<small_sum<uint32_t>>, columns<small_sum<uint32_t>>},
    {rows<u64_sum>, two<u64_sum>, columns<u64_sum>},
    {narrow_rows<bool_packed>, narrow_two<bool_packed>, columns<bool_sum>},
    {rows<i32_square>, two<i32_square>, columns<i32_square>},
    {rows<i64_square>, two<i64_square>, columns<i64_square>},
    {narrow_rows<i8_squares>, narrow_two<i8_squares>, columns<small_square<int8_t>>},
    {narrow_rows<i16_squares>, narrow_two<i16_squares>, columns<small_square<int16_t>>},
    {narrow_rows<u8_squares>, narrow_two<u8_squares>, columns<small_square<uint8_t>>},
    {narrow_rows<u16_squares>, narrow_two<u16_squares>, columns<small_square<uint16_t>>},
    {rows<u32_square>, two<u32_square>, columns<u32_square>},
    {rows<u64_square>, two<u64_square>, columns<u64_square>},
    {narrow_rows<bool_packed>, narrow_two<bool_packed>, columns<bool_sum>},
}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
