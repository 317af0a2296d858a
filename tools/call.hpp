// call.hpp - one call of an op on an array: the options of the command line turned
// into a description, the result's type and shape, and the call itself.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli.hpp"
#include "file.hpp"

namespace lockstep::tool {

struct request {
  lockstep_op op = LOCKSTEP_TRANSPOSE;
  bool bf16 = false;
  std::vector<int64_t> axes;  // permute (empty: reversed), reduce_axes, convert, map (empty: as they are)
  std::string reduction, result = "default";
  std::optional<int64_t> axis;
  std::string offsets;                   // a .npy file of i8 ...
  std::shared_ptr<array> segments;       // ... or the array itself
  int rank = 0, radius = 1, sweeps = 1;  // rank 0: the array's
  std::vector<double> coefficients;
  std::string form = "general", boundary = "nearest";
  double value = 0;
  std::string kind = "idx";  // shuffle's, and normalize's
  double eps = 1e-5;
  bool exclusive = false;                      // scan
  std::string weight, bias, residual;          // .npy files of a normalization
  std::string labels;                          // a .npy file of picked
  std::string gradient;                        // a .npy file of the kinds *_backward ...
  std::string weight_gradient, bias_gradient;  // ... and those that they write
  std::string other;                           // a .npy file of sums of two arrays
  std::string times;                           // a .npy file of map
  bool rows = false;                           // sums: a result a row
  int64_t correction = 0;                      // of a variance
  double scale = 1;                            // convert, map, softmax and its kin
  std::string function;                        // map
  int width = 32, operand = 0;
};

struct call {
  npy::header result;        // type and shape of what run writes
  std::vector<array> keeps;  // memory that the description points to
  std::function<lockstep_status(lockstep_context*, const void* src, void* dst, const lockstep_options*)> run;
  // The same as a plan; empty where the call is really several (reduce along a middle axis).
  std::function<lockstep_status(lockstep_context*, const lockstep_options*, lockstep_plan**)> plan;
  std::vector<std::pair<std::string, array>> columns = {};  // what run writes besides, and the files it goes to
};

// Throws usage_error if the options do not fit the array. in is in C order; permute, convert
// and map take Fortran order too.
call make_call(const request& what, const array& in);

// The array that op computes with: a stencil gets small integers (a picture, say) as f4, which holds them exactly;
// other arrays are unchanged.
array widened(lockstep_op op, const array& in);
// `in` itself if it is in C order, else a copy in C order (made by lockstep_permute).
array in_c_order(lockstep_context* context, const array& in);

// The dtype of an element type; bf16 as "|V2", or any 2-byte integer with the flag.
lockstep_dtype dtype_of(const npy::header& h, bool bf16);
std::string descr_of(lockstep_dtype dtype);

}  // namespace lockstep::tool
