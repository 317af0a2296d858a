// runner.hpp - runs a case on a row and compares all that the call may and may not
// have touched: the result's bits, gaps, what lies around every buffer, the input,
// status, error text, the caller's floating-point state.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cases.hpp"

namespace lockstep::cases {

enum class place {
  host_front,  // starts right behind an unmapped page
  host_back,   // ends right before one
  device,      // src, dst and offsets in device memory
  mixed        // src in device memory, dst and offsets in host memory
};
// What the caller's thread has set when it calls.
enum class arithmetic { usual, flush_denormals, upward, downward, towards_zero };

// How the call is made.
enum class way { direct, planned, queued };

struct target {
  std::string backend = "cpu";
  std::string variant;  // "": the row that auto picks within the backend
  std::string isa;      // "": the best
  int threads = 0;
  place where = place::host_back;
  arithmetic caller = arithmetic::usual;
  way how = way::direct;
  bool own_order = false;  // compare within the error bound, not by bits
  std::string text() const;
};

enum class verdict { equal, refused, differs };
struct outcome {
  verdict what = verdict::equal;
  std::string text;     // why it differs or was refused
  std::string variant;  // what ran
  // A row whose instructions this processor, or the level asked for, lacks: no case can run on it.
  bool beyond_the_processor() const { return what == verdict::refused && text.find("needs AVX") != std::string::npos; }
  // A call of a type or op that the library has and this backend was written before (lockstep_backend.reads).
  bool beyond_the_backend() const {
    return what == verdict::refused && text.find("has no kernels for") != std::string::npos;
  }
};

// A case with its buffers' contents and what must come out.
struct subject {
  test_case c;
  std::vector<unsigned char> src, before, after;              // dst's bytes before and after the call
  std::vector<unsigned char> weight_gradient, bias_gradient;  // afterwards, where a call writes them
  expectation want;
  explicit subject(test_case of);
};

struct row {
  std::string backend;
  lockstep_op op;
  std::string name;
  uint32_t flags;
};
// The rows of every usable backend (of one, of one op).
std::vector<row> rows_of(const std::string& backend, lockstep_op op);
std::vector<std::string> usable_backends();
std::vector<std::string> isa_levels();  // those this processor has, the least first

class runner {
 public:
  runner();
  ~runner();
  runner(const runner&) = delete;
  runner& operator=(const runner&) = delete;
  outcome run(const subject& s, const target& t);

 private:
  struct buffers;
  std::map<std::string, lockstep_context*> contexts_;
  std::unique_ptr<buffers> buffers_;
  lockstep_context* context_of(const target& t);
};

// Which (backend, op, variant) ran how many cases, and which cells auto ran.
class coverage {
 public:
  void add(const subject& s, const target& t, const outcome& o);
  // Rows of backend that never ran a case, "" when there is none.
  std::string idle_rows(const std::string& backend, lockstep_op op) const;
  // Cells of the matrix that auto never ran on backend, or ran with a difference; not those beyond the backend.
  std::vector<std::string> idle_cells(const std::string& backend, lockstep_op op) const;
  size_t ran(const std::string& backend, lockstep_op op, const std::string& variant) const;

 private:
  std::map<std::string, size_t> rows_, cells_, failed_cells_, beyond_cells_;
};

// Within the error bound of any order of the same operations (own-order rows):
// integers exact. "" or what is wrong.
std::string outside_bound(const subject& s, const unsigned char* got);

// The matrix (matrix.cpp): every cell that must work on a backend, "reduce sum f32 rows".
std::vector<std::string> matrix(lockstep_op op, const std::string& backend = "cpu");

// One number over the results of a fixed list of cases: two machines with the same
// bits have the same digest. "oracle" computes it without the library; isa and threads are the CPU's ("" and 0: the
// best, all). Throws std::runtime_error when a call fails.
// Each list of cases has its own: what is added later leaves a number that stands.
enum class cases_of {
  order1,
  more_types,
  times,
  normalize,
  scan,
  sums,
  reduce_axes,
  convert,
  more_reductions,
  map,
  softmax,
  digest,
  gradients
};
std::string digest(const std::string& backend, const std::string& isa = "", int threads = 0,
                   cases_of list = cases_of::order1);

// The same with calls of another making.
using caller = std::function<lockstep_status(const test_case& c, const unsigned char* src, unsigned char* dst)>;
std::string digest_by(const caller& make, cases_of list = cases_of::order1);

// Prints the case that was running when the program is killed by a signal.
void report_crashes();

}  // namespace lockstep::cases
