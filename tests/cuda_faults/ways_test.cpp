// ways_test.cpp - which row of reduce and square_sum takes which call, by the kernels that are launched: on the
// scripted runtime, whose chip has 132 multiprocessors and 50 MiB of L2.
#include <gtest/gtest.h>

#include <algorithm>

#include "child.hpp"
#include "fake_cudart.hpp"
#include "operations.hpp"

namespace faults {
namespace {

constexpr size_t room = size_t{2} << 30;

struct one_call {
  lockstep_reduce_desc d;
  std::string row, kernels;  // what runs, as "reduce_tree join_partials"
  size_t off = 0;            // bytes that src is off
};

bool squares(const lockstep_reduce_desc& d) {
  return d.reduction == LOCKSTEP_SUM_OF_SQUARES || d.reduction == LOCKSTEP_NORM2;
}

// The names of the kernels since the last time, without their types.
std::string kernels() {
  std::string names;
  for (const fake::started& one : fake::last_started()) {
    std::string name = one.kernel.substr(0, one.kernel.find('<'));
    const size_t space = name.rfind(' '), colons = name.rfind(':');
    name =
        name.substr(std::max(space == std::string::npos ? 0 : space + 1, colons == std::string::npos ? 0 : colons + 1));
    names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

class arrays {
 public:
  arrays() {
    good_ = cudaMalloc(&src_, room) == cudaSuccess && cudaMalloc(&dst_, room) == cudaSuccess;
    lockstep_context_options o = lockstep_context_defaults();
    o.backend = "cuda";
    o.threads = 1;
    good_ = good_ && lockstep_context_create(&o, &context_) == LOCKSTEP_OK;
  }
  ~arrays() {
    lockstep_context_destroy(context_);
    (void)cudaFree(src_);
    (void)cudaFree(dst_);
  }
  arrays(const arrays&) = delete;
  arrays& operator=(const arrays&) = delete;
  bool good() const { return good_; }

  lockstep_status run(const one_call& call, const char* variant) {
    lockstep_options o = options(variant);
    return squares(call.d) ? lockstep_square_sum(context_, &call.d, src(call), dst_, &o)
                           : lockstep_reduce(context_, &call.d, src(call), dst_, &o);
  }
  lockstep_status run_planned(const one_call& call, const char* variant) {
    lockstep_options o = options(variant);
    lockstep_plan* plan = nullptr;
    lockstep_status s = squares(call.d) ? lockstep_plan_square_sum(context_, &call.d, &o, &plan)
                                        : lockstep_plan_reduce(context_, &call.d, &o, &plan);
    o.variant = nullptr;
    if (s == LOCKSTEP_OK) s = lockstep_plan_execute(plan, src(call), dst_, &o);
    text_ = lockstep_last_error();
    lockstep_plan_destroy(plan);
    return s;
  }
  const std::string& text() const { return text_; }

 private:
  static lockstep_options options(const char* variant) {
    lockstep_options o = lockstep_options_defaults();
    o.backend = "cuda";
    o.variant = variant;
    o.flags = LOCKSTEP_ASYNC;
    return o;
  }
  const void* src(const one_call& call) const { return static_cast<char*>(src_) + call.off; }

  void *src_ = nullptr, *dst_ = nullptr;
  lockstep_context* context_ = nullptr;
  bool good_ = false;
  std::string text_;
};

std::string ran() {
  lockstep_run_info info{};
  info.size = sizeof info;
  return lockstep_last_run(&info) == LOCKSTEP_OK ? info.variant : "nothing";
}

lockstep_reduce_desc rows(lockstep_reduction what, lockstep_dtype dtype, int64_t count, int64_t length,
                          int64_t pitch = 0) {
  return lockstep_reduce_rows(what, dtype, count, length, pitch == 0 ? length : pitch);
}
lockstep_reduce_desc columns(lockstep_reduction what, lockstep_dtype dtype, int64_t length, int64_t count) {
  return lockstep_reduce_columns(what, dtype, length, count, count);
}
lockstep_reduce_desc strided(lockstep_reduce_desc d) {
  d.element_stride = 2, d.sequence_stride *= 2;
  return d;
}
// Segments of ten elements.
lockstep_reduce_desc segments(int64_t count) {
  static const std::vector<int64_t> offsets = [] {
    std::vector<int64_t> all;
    for (int64_t s = 0; s <= 500000; ++s) all.push_back(s * 10);
    return all;
  }();
  return lockstep_reduce_segments(LOCKSTEP_SUM, LOCKSTEP_F32, count, offsets.data());
}

constexpr lockstep_reduction sum = LOCKSTEP_SUM, largest = LOCKSTEP_ARGMAX, ssq = LOCKSTEP_SUM_OF_SQUARES,
                             norm = LOCKSTEP_NORM2;
constexpr lockstep_dtype f16 = LOCKSTEP_F16, f32 = LOCKSTEP_F32, f64 = LOCKSTEP_F64, i32 = LOCKSTEP_I32;

std::vector<one_call> calls() {
  return {
      {rows(sum, f32, 100000, 32), "split_rows", "reduce_split"},
      {rows(sum, f32, 100000, 32), "staged_rows", "reduce_rows", 4},
      {rows(sum, f32, 100000, 32, 33), "staged_rows", "reduce_rows"},
      {rows(sum, f32, 100000, 32, 40), "short_rows", "reduce_packed", 4},
      {rows(sum, f32, 1000, 32), "short_rows", "reduce_packed"},
      {rows(sum, f64, 100000, 32), "short_rows", "reduce_packed"},
      {rows(ssq, f16, 100000, 300), "staged_rows", "reduce_rows"},
      {rows(largest, i32, 100000, 448), "staged_rows", "reduce_rows"},
      {rows(largest, i32, 100000, 449), "row_pairs", "reduce_row_pairs"},
      {strided(rows(sum, f32, 100000, 32)), "short_rows", "reduce_packed"},
      {strided(rows(sum, f32, 1000, 1000)), "warps", "reduce_warp"},
      {rows(sum, f32, 1000, 0), "warps", "reduce_warp"},
      {rows(sum, f32, 16384, 4096), "lane_rows", "reduce_lane_rows"},
      {rows(sum, f32, 100, 4097), "lane_rows", "reduce_lane_rows"},
      {rows(sum, f32, 100, 6000), "lane_rows", "reduce_lane_rows", 4},
      {rows(sum, f32, 1000, 6000), "shuffle or lanes", "reduce_tree"},
      {rows(LOCKSTEP_MAX, f32, 16384, 8192), "streams", "reduce_tree"},
      {rows(LOCKSTEP_MAX, f32, 16384, 8192), "shuffle or lanes", "reduce_tree", 4},
      {lockstep_reduce_full(sum, f32, 1 << 28, 1), "streams", "reduce_tree"},
      {lockstep_reduce_full(ssq, f32, 1 << 28, 1), "streams", "reduce_tree"},
      {lockstep_reduce_full(ssq, f16, 1 << 28, 1), "shuffle or lanes", "reduce_tree"},
      {lockstep_reduce_full(ssq, f32, 1 << 20, 1), "shuffle or lanes", "reduce_tree"},
      {lockstep_reduce_full(norm, f64, 1 << 20, 1), "shuffle or lanes", "reduce_tree reduce_tree reduce_tree"},
      {lockstep_reduce_full(norm, f64, 5000, 1), "shuffle or lanes", "reduce_tree"},
      {columns(sum, f32, 100, 100000), "short_columns", "reduce_short_columns"},
      {columns(norm, f64, 100, 100000), "short_columns", "reduce_short_columns"},
      {columns(sum, f32, 100, 1000), "column_quads", "reduce_columns"},
      {columns(sum, f32, 100, 1001), "columns", "reduce_columns"},
      {columns(sum, f32, 5000, 8000), "column_quads", "reduce_columns join_few_partials"},
      {columns(sum, f32, 5000, 1000), "columns", "reduce_columns join_partials"},
      {columns(norm, f64, 100, 1000), "columns", "reduce_columns reduce_columns reduce_columns"},
      {columns(sum, f32, 12, 1000), "short_columns", "reduce_short_columns"},
      {columns(sum, f32, 4, 1000000), "few_rows", "sum_few_rows"},
      {columns(sum, f64, 16, 1000000), "few_rows", "sum_few_rows"},
      {columns(sum, f32, 4, 1000001), "short_columns", "reduce_short_columns"},
      {columns(sum, f32, 4, 1000000), "short_columns", "reduce_short_columns", 4},
      {columns(sum, f32, 17, 1000000), "short_columns", "reduce_short_columns"},
      {columns(ssq, f32, 4, 1000000), "short_columns", "reduce_short_columns"},
      {columns(ssq, f16, 5000, 1000), "columns", "reduce_columns join_partials"},
      {columns(ssq, f16, 5000, 2000), "column_pairs", "reduce_columns join_partials"},
      {columns(ssq, f16, 5000, 2000), "columns", "reduce_columns join_partials", 2},
      {columns(ssq, f16, 5000, 1001), "columns", "reduce_columns join_partials"},
      {columns(sum, f32, 5000, 3), "shuffle or lanes", "reduce_tree"},
      {columns(sum, f32, 50, 3), "short_rows", "reduce_packed"},
      {segments(1000), "segments", "reduce_few_segments reduce_listed"},
      {segments(20000), "segments", "reduce_segments reduce_listed"},
      {segments(500000), "segments_staged", "reduce_segments reduce_listed"},
  };
}

std::string row_of(const one_call& call) {
  if (call.row != "shuffle or lanes") return call.row;
  return squares(call.d) ? "shuffle" : "lanes";
}

// Every way to a row by itself: auto's, a plan's whose pointers are not known when it is made, and by name.
void each_call_has_its_row(report& r) {
  arrays all;
  r.expect(all.good(), lockstep_last_error());
  for (const one_call& call : calls()) {
    const lockstep_reduce_desc& d = call.d;
    const std::string row = row_of(call);
    r.step(row + ": reduction " + std::to_string(d.reduction) + ", dtype " + std::to_string(d.dtype) + ", " +
           std::to_string(d.count) + " x " + std::to_string(d.length) + ", " + std::to_string(call.off) + " bytes off");
    for (const char* way : {"auto", "a plan", "by name"}) {
      (void)fake::last_started();
      const lockstep_status s = way == std::string("auto")     ? all.run(call, nullptr)
                                : way == std::string("a plan") ? all.run_planned(call, nullptr)
                                                               : all.run(call, row.c_str());
      r.expect(s == LOCKSTEP_OK, std::string(way) + ": " + lockstep_last_error());
      const std::string variant = ran(), launched = kernels();
      r.expect(variant == row, std::string(way) + " took " + variant);
      r.expect(launched == call.kernels, std::string(way) + " launched " + launched);
    }
  }
  r.expect(fake::misuse().empty(), fake::misuse());
}
TEST(ways, each_call_has_its_row) { EXPECT_EQ(in_child(each_call_has_its_row), ""); }

// Older chips have no copy engine.
void without_a_copy_engine(report& r) {
  fake::chips chips;
  chips.major = 8;
  fake::use(chips);
  arrays all;
  r.expect(all.good(), lockstep_last_error());
  const one_call call{rows(sum, f32, 100000, 33), "", ""};
  r.expect(all.run(call, nullptr) == LOCKSTEP_OK && ran() == "short_rows", ran());
  r.expect(all.run(call, "staged_rows") == LOCKSTEP_UNSUPPORTED, lockstep_last_error());
}
TEST(ways, without_a_copy_engine) { EXPECT_EQ(in_child(without_a_copy_engine), ""); }

// A named row of a plan does not give way to another.
void a_named_row_stays(report& r) {
  arrays all;
  const one_call off{rows(sum, f32, 100000, 32), "", "", 4};
  r.expect(all.run_planned(off, "split_rows") == LOCKSTEP_UNSUPPORTED, "ran " + ran());
  r.expect(all.text().find("begin at multiples of 16 bytes") != std::string::npos, all.text());
}
TEST(ways, a_named_row_of_a_plan_stays) { EXPECT_EQ(in_child(a_named_row_stays), ""); }

// Names that are gone lead to those that came.
void retired_names(report& r) {
  arrays all;
  const one_call call{rows(sum, f32, 1000, 32), "", ""};
  r.expect(all.run(call, "shuffle") == LOCKSTEP_NO_VARIANT, "ran " + ran());
  const std::string text = lockstep_last_error();
  r.expect(text.find("no longer has the variant \"shuffle\"; use \"lanes\"") != std::string::npos, text);
}
TEST(ways, retired_names) { EXPECT_EQ(in_child(retired_names), ""); }

}  // namespace
}  // namespace faults
