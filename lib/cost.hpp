// cost.hpp - what auto expects a call on host memory to take, on the CPU and on a
// device with its trips over the link: measured times of typical calls, one curve
// over the bytes moved for each kind of work, place of the data and thread count.
// Whoever measures (lockstep calibrate) writes the same kinds, places and sizes.
#pragma once

#include <array>
#include <map>
#include <string>

namespace lockstep::lib::cost {

// Kinds of work whose speeds differ by more than size and place say.
enum work : int {
  shuffle,
  rows,          // permutations that keep rows whole
  transpose,
  thin,          // transposes of fewer than 128 rows or columns
  narrow,        // transposes and permutations with fewer than 8 elements in a row of src or dst
  permute,       // of three and more axes
  swap,          // square matrices in place
  in_place,      // other matrices in place
  square_sum,
  reduce,
  arg_reduce,
  short_rows,    // sequences of fewer than 256 elements
  segments,      // sequences of fewer, their ends in offsets
  columns,       // sequences of elements that lie apart
  line_stencil,
  star_stencil,  // rank 2 and 3, per 25 taps
  works
};
constexpr std::array<const char*, works> work_names = {
    "shuffle", "rows", "transpose", "thin", "narrow", "permute", "swap", "in_place", "square_sum", "reduce", "arg_reduce",
    "short_rows", "segments", "columns", "line_stencil", "star_stencil"};

// Where a device's src and dst lie.
enum place : int { on_device, pinned, pageable, places };
constexpr std::array<const char*, places> place_names = {"device", "pinned", "pageable"};

// Bytes moved (each read and written once): from a few cache lines to beyond any cache.
constexpr std::array<double, 10> sizes = {4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0,
                                          16777216.0, 67108864.0, 268435456.0, 1073741824.0};

using curve = std::array<double, sizes.size()>;  // microseconds of a call of each size
using curves = std::array<curve, works>;

struct model {
  std::map<int, curves> cpu;                               // by threads
  std::map<std::string, std::array<curves, places>> devices;  // by backend
};

// A call as the model sees it.
struct call {
  work what = shuffle;
  double bytes = 0;   // moved by one sweep
  double sweeps = 1;
  double taps = 25;   // of a star
};

double cpu_us(const model& m, const call& c, int threads);
// A backend that the model does not know counts as "cuda".
double device_us(const model& m, const call& c, const std::string& backend, place where);
// What it takes to bring a device's data to the host and the results back.
double trips_us(const model& m, const call& c, const std::string& backend);

}  // namespace lockstep::lib::cost
