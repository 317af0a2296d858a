// cost.hpp - auto's estimate of the time of a call on host memory, on the CPU and on a
// device with the copies over the link: measured times of typical calls, one curve over
// the bytes moved for each kind of work, place of the data and thread count.
// `lockstep calibrate` measures the same kinds, places and sizes.
#pragma once

#include <array>
#include <map>
#include <string>

namespace lockstep::lib::cost {

// Kinds of work whose speeds differ by more than their size and place explain. Some have three
// kinds, for elements of 4 bytes, finer (1 and 2) and wider (8 and 16), because the speed of
// transposing tiles in registers depends on the element.
enum work : int {
  shuffle,
  rows,  // permutations that keep rows whole
  transpose,
  transpose_fine,
  transpose_wide,
  ragged,  // transposes whose dst rows do not start at cache lines: no non-temporal stores
  thin,
  thin_fine,
  thin_wide,  // transposes of fewer than 128 columns: short rows in src
  flat,
  flat_fine,
  flat_wide,  // transposes of fewer than 128 rows: short rows in dst
  narrow,
  narrow_fine,
  narrow_wide,  // transposes and permutations with fewer than 8 elements in a row of src or dst
  permute,
  permute_fine,
  permute_wide,  // of three and more axes
  swap,
  swap_fine,
  swap_wide,  // square matrices in place
  in_place,   // other matrices in place
  square_sum,
  reduce,
  arg_reduce,
  short_rows,  // sequences of fewer than 256 elements
  segments,    // the same with offsets
  columns,     // sequences with an element stride
  line_stencil,
  line_sweeps,   // many_sweeps of the same
  star_stencil,  // rank 2 and 3, per 25 taps
  works
};
constexpr std::array<const char*, works> work_names = {
    "shuffle",      "rows",        "transpose",    "transpose_fine", "transpose_wide", "ragged",    "thin",
    "thin_fine",    "thin_wide",   "flat",         "flat_fine",      "flat_wide",      "narrow",    "narrow_fine",
    "narrow_wide",  "permute",     "permute_fine", "permute_wide",   "swap",           "swap_fine", "swap_wide",
    "in_place",     "square_sum",  "reduce",       "arg_reduce",     "short_rows",     "segments",  "columns",
    "line_stencil", "line_sweeps", "star_stencil"};

// The kind for an element size, given the kind for 4 bytes.
constexpr work of_elements(work of_four, size_t bytes) {
  return static_cast<work>(of_four + (bytes < 4 ? 1 : bytes > 4 ? 2 : 0));
}

constexpr double many_sweeps = 9;

// Where src and dst are. Pageable memory is copied by the host's threads, by all or by one.
// The last place is for CPU calls on device memory. They have times of their own, because
// their copies do not overlap with the work and so take up to 5 times as long.
enum place : int { on_device, pinned, pageable, alone, away, places };
constexpr std::array<const char*, places> place_names = {"device", "pinned", "pageable", "alone", "away"};

// Bytes moved (read plus written), from a few cache lines to more than any cache.
constexpr std::array<double, 10> sizes = {4096.0,    16384.0,    65536.0,    262144.0,    1048576.0,
                                          4194304.0, 16777216.0, 67108864.0, 268435456.0, 1073741824.0};

using curve = std::array<double, sizes.size()>;  // microseconds of a call of each size
using curves = std::array<curve, works>;

struct model {
  std::map<int, curves> cpu;                                  // by threads
  std::map<std::string, std::array<curves, places>> devices;  // by backend
};

// The properties of a call that the model uses.
struct call {
  work what = shuffle;
  double bytes = 0;  // moved by one sweep
  double sweeps = 1;
  double taps = 25;      // of a star
  bool together = true;  // a device has a row that takes several sweeps in one pass over memory
};

double cpu_us(const model& m, const call& c, int threads);
// where: on_device, pinned or pageable. A backend that the model does not know counts as "cuda".
double device_us(const model& m, const call& c, const std::string& backend, place where, int threads);
// The time to copy a device's data to the host and the results back.
double trips_us(const model& m, const call& c, const std::string& backend);

}  // namespace lockstep::lib::cost
