// cases.hpp - the calls that tests, `lockstep verify` and benches run, as data.
// A case is its name: transpose/b4/17x33/ld40,20/batch3,5,7/off1,0/special/seed9
// parses to the public description, the recipe of its buffers and nothing else,
// so that a failure prints one word that reruns it. One file an op says which
// tokens it knows and lists its cases.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/lockstep.h"

namespace lockstep::cases {

// What an input holds. Made of integer arithmetic only, so that every machine
// makes the same bits (fill.cpp).
enum class fill {
  random,    // raw bits for moved data; floats of magnitude 2^-8 to 2^8; integers of full range
  special,   // random with NaN payloads of both signs, infinities, both zeros, denormals, extremes
  finite,    // special without NaN and infinity
  ties,      // few distinct values, both zeros among them
  zeros,     // -0.0, or 0
  wide,      // floats over the dtype's whole exponent range
  huge,      // f64 whose squares overflow
  tiny,      // f64 whose squares underflow, denormals among them
  one_nan,   // random with one NaN
  small,     // integers within +-2^20
  cross,     // i64 sums that pass MAX and MIN and come back
  over,      // i64 sums just past MAX
  under,     // i64 sums just past MIN
  sparse,    // one element in a thousand is not zero
  positive,  // random, floats without their signs
  units,     // near 1 or -1, for products
  equal,     // of floats: all the same
  nearly     // of floats: all the same but one
};

// An array as axes of counts and strides (elements), outermost first.
struct view {
  int rank = 0;
  int64_t first = 0;
  int64_t counts[8] = {};
  int64_t strides[8] = {};
  size_t element_bytes = 0;

  void axis(int64_t count, int64_t stride);
  int64_t elements() const;   // product of counts
  size_t span_bytes() const;  // from the base to the end of the last element; 0 when empty
};

struct test_case {
  std::string name;
  lockstep_op op = LOCKSTEP_TRANSPOSE;
  // The description of this op; the others are unused. Pointers in them are set
  // by describe().
  lockstep_transpose_desc transpose{};
  lockstep_permute_desc permute{};
  lockstep_reduce_desc reduce{};  // SQUARE_SUM too
  lockstep_stencil_desc stencil{};
  lockstep_shuffle_desc shuffle{};
  lockstep_normalize_desc normalize{};
  lockstep_scan_desc scan{};
  lockstep_sums_desc sums{};
  lockstep_reduce_axes_desc reduce_axes{};
  lockstep_convert_desc convert{};
  lockstep_map_desc map{};
  std::vector<unsigned char> weight, bias, residual;  // of a normalization; empty where there is none
  std::vector<unsigned char> gradient;                // of its kinds *_BACKWARD
  // Of these too: where a call writes the gradients, empty where they are not wanted.
  mutable std::vector<unsigned char> weight_gradient, bias_gradient;
  std::vector<unsigned char> other;   // of sums of two arrays, of map with times
  std::vector<int64_t> offsets;       // of a segmented reduction
  std::vector<double> given;          // of a normalization whose statistics are given
  std::vector<unsigned char> prefix;  // of a scan: the elements before each sequence, packed
  std::vector<unsigned char> before;  // what the call is told of them
  std::vector<double> coefficients;   // of a stencil, in the case's form

  view src, dst;
  int dtype = 0;  // lockstep_dtype of src's elements; 0 for bits that are only moved
  fill what = fill::random;
  uint64_t seed = 1;
  int64_t src_shift = 0, dst_shift = 0;  // elements off a 64-byte boundary (or off a guard page)
  bool in_place = false;
  bool bare = false;  // not to be run: a byte stands for each array beside src, whose elements would take time to draw
  std::string cell;   // the cell of the matrix that it stands for (matrix.cpp)
  // Of a group (group.cpp): its calls, and where the arrays of each begin in src and dst, in bytes. Else empty.
  std::vector<test_case> members;
  std::vector<size_t> src_at, dst_at;
};

enum class level { quick, full };

// Throws std::invalid_argument with the token that does not fit. bare: as test_case says.
test_case parse(const std::string& name, bool bare = false);
// A case, or a group of calls of one (group.cpp), as benches time them.
test_case parse_timed(const std::string& name, bool bare = false);
// The names of an op's cases. seed goes into every name.
std::vector<std::string> list(lockstep_op op, level depth, uint64_t seed);

// One file an op: parse_<op> fills what comes after the op's name.
class tokens;
void parse_transpose(tokens& in, test_case& c);
void parse_permute(tokens& in, test_case& c);
void parse_reduction(tokens& in, test_case& c);  // square_sum and reduce
void parse_stencil(tokens& in, test_case& c);
void parse_shuffle(tokens& in, test_case& c);
void parse_normalize(tokens& in, test_case& c);
void parse_scan(tokens& in, test_case& c);
void parse_sums(tokens& in, test_case& c);
void parse_reduce_axes(tokens& in, test_case& c);
void parse_convert(tokens& in, test_case& c);
void parse_map(tokens& in, test_case& c);
std::vector<std::string> list_transpose(level depth);
std::vector<std::string> list_permute(level depth);
std::vector<std::string> list_square_sum(level depth);
std::vector<std::string> list_reduce(level depth);
std::vector<std::string> list_more_reductions(lockstep_op op);  // those from COUNT_NONZERO on, all dtypes
std::vector<std::string> list_more_types(lockstep_op op);       // both, of the dtypes that came later
std::vector<std::string> list_stencil(level depth);
std::vector<std::string> list_shuffle(level depth);
std::vector<std::string> list_normalize(level depth);
std::vector<std::string> list_scan(level depth);
std::vector<std::string> list_sums(level depth);
std::vector<std::string> list_reduce_axes(level depth);
std::vector<std::string> list_convert(level depth);
std::vector<std::string> list_map(level depth);

// Where a call finds its arrays besides src and dst, if it has them; NULL but for offsets: in the case itself.
struct arrays_beside {
  const int64_t* offsets;
  const void *weight = nullptr, *bias = nullptr, *residual = nullptr, *other = nullptr, *gradient = nullptr;
  const void *given = nullptr, *before = nullptr;
  void *weight_gradient = nullptr, *bias_gradient = nullptr;
  arrays_beside(const int64_t* at) : offsets(at) {}
};

// The call itself, through the C ABI.
lockstep_status call(lockstep_context* context, const test_case& c, const void* src, void* dst,
                     const arrays_beside& beside, const lockstep_options* options);
// A plan of it; the arrays must outlive the plan.
lockstep_status plan(lockstep_context* context, const test_case& c, const arrays_beside& beside,
                     const lockstep_options* options, lockstep_plan** out);
// A plan of a group, all of whose arrays lie in src and dst.
lockstep_status plan_group(lockstep_context* context, const test_case& group, const void* src, void* dst,
                           const lockstep_options* options, lockstep_plan** out);

// "f16", by lockstep.h's table.
const std::string& dtype_name(int dtype);
const std::vector<std::string>& reduction_names();
const std::vector<std::string>& dtype_names();  // by number

// Fills span_bytes() bytes at base: gaps with poison that would show in any
// result, elements with what the case asks for.
void fill_src(const test_case& c, unsigned char* base);
// What lies around and between: differs from position to position, and is NaN,
// a large or a very negative number to whoever reads it as an element.
void poison(unsigned char* base, size_t bytes, size_t element_bytes, uint64_t salt);

// The same rules once more, written for these tests without a helper shared with
// the library (oracle.cpp): what `ref` is checked against. dst holds the poison
// before, the result afterwards. first is the first sequence that the error names.
struct expectation {
  lockstep_status status = LOCKSTEP_OK;
  int64_t first = -1;
};
expectation oracle(const test_case& c, const unsigned char* src, unsigned char* dst);

// c.normalize with the case's weight, bias, residual and gradients.
lockstep_normalize_desc with_sides(const test_case& c);
// c.scan with what stands before it.
lockstep_scan_desc with_before(const test_case& c);
// What c.scan is told of c.prefix.
std::vector<unsigned char> state_of_prefix(const test_case& c);
void oracle_normalize(const test_case& c, const unsigned char* src, unsigned char* dst);
void oracle_convert(const test_case& c, const unsigned char* src, unsigned char* dst);
void oracle_map(const test_case& c, const unsigned char* src, unsigned char* dst);
expectation oracle_scan(const test_case& c, const unsigned char* src, unsigned char* dst);
// c.sums with the case's other; offsets where the case has any.
lockstep_sums_desc with_other(const test_case& c, const int64_t* offsets);
expectation oracle_sums(const test_case& c, const unsigned char* src, unsigned char* dst);
// The mean of a row, at least one element, and the sum of the squares about it.
void oracle_moments(const std::vector<double>& x, bool f64, double& mean, double& squares);
// An element of a float dtype as a double; y rounded to one, ties to even, NaN as the canonical one.
double float_element(int dtype, const unsigned char* p, int64_t i);
void store_element(int dtype, unsigned char* p, int64_t i, double y);

// An element of an integer dtype, or of BOOL.
__extension__ using signed_wide = __int128;
signed_wide as_integer(const unsigned char* p, int dtype);

// Offsets of count segments, the first at first: layout 0: even, all of that length; 1: mixed, of that
// length on average; 2: nonempty, the same without empty ones; 3: lopsided, short ones around one of that length.
void draw_offsets(tokens& in, test_case& c, int layout, int64_t count, int64_t length, int64_t first = 0);

uint64_t mix(uint64_t x);  // a 64-bit finaliser: every bit of x reaches every bit of the result

}  // namespace lockstep::cases
