// replay_test.cpp - auto's choice by the built-in model for every call of the committed
// crossover runs, and its cost by the times recorded there.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cases.hpp"
#include "choose/calibration.hpp"
#include "ops/ops.hpp"

namespace {
using namespace lockstep::lib;
namespace cases = lockstep::cases;
using nlohmann::json;

constexpr double allowed = 1.1;

// What the model is told of a case.
cost::call cost_call(const cases::test_case& c) {
  prepared_call p;
  void (*weigh)(const prepared_call&, cost::call&) = weigh_reduce;
  switch (c.op) {
    case LOCKSTEP_TRANSPOSE: p.call.transpose = c.transpose, weigh = weigh_transpose; break;
    case LOCKSTEP_PERMUTE: p.call.permute = c.permute, weigh = weigh_permute; break;
    case LOCKSTEP_STENCIL:
      p.call.stencil = c.stencil, weigh = weigh_stencil;
      p.coefficients.resize(static_cast<size_t>(2 * c.stencil.radius * c.stencil.rank + 1));
      break;
    case LOCKSTEP_SHUFFLE: weigh = weigh_shuffle; break;
    default: p.call.reduce = c.reduce;
  }
  static char matrix[2];  // addresses only
  p.call.src = matrix;
  p.call.dst = matrix + (c.in_place ? 0 : 1);
  if (!c.offsets.empty()) p.call.reduce.offsets = c.offsets.data();
  p.element_bytes = c.src.element_bytes;
  p.moved_bytes = static_cast<size_t>(c.src.elements()) * c.src.element_bytes +
                  static_cast<size_t>(c.dst.elements()) * c.dst.element_bytes + c.offsets.size() * sizeof(int64_t);
  cost::call seen;
  seen.bytes = static_cast<double>(p.moved_bytes);
  weigh(p, seen);
  return seen;
}

struct recorded {
  std::map<std::string, double> ms;  // by backend
};

// By case and kind of memory, in the file's order of names.
std::map<std::pair<std::string, std::string>, recorded> calls_of(const json& run) {
  std::map<std::pair<std::string, std::string>, recorded> calls;
  for (const json& row : run.at("benchmarks"))
    calls[{row.at("name"), row.at("memory")}].ms[row.at("backend")] = row.at("median_ms");
  return calls;
}

int threads_of(const json& run) {
  if (const int named = run.at("meta").at("threads"); named > 0) return named;
  const std::string detail = run.at("meta").at("devices").at("cpu").at("detail");
  const size_t end = detail.find(" threads");
  return std::stoi(detail.substr(detail.rfind(' ', end - 1) + 1));
}

// Calls that the model sends to the slower side, and by how much: as they were last looked into.
struct exceptions {
  const char* file;
  std::map<std::string, double> factors;  // by "case in memory"
};
const exceptions known[] = {{"crossover-h200-calibrated.json",
                             {{"reduce/sum/f32/nonempty/22321x40 in pinned", 1.28},
                              {"reduce/sum/f32/nonempty/2790178x40 in pageable", 1.33},
                              {"stencil/f32/symmetric/nearest/r1/7654x7655 in pageable", 1.56},
                              {"stencil/f32/symmetric/nearest/r1/7654x7655 in pinned", 1.13},
                              {"stencil/f32/symmetric/nearest/r4/132x132x134 in pinned", 1.87},
                              {"stencil/f32/symmetric/nearest/r4/227x227x227 in pinned", 1.15},
                              {"stencil/f32/symmetric/nearest/r4/26x26x27 in pinned", 1.74},
                              {"stencil/f32/symmetric/nearest/r4/45x45x46 in pageable", 1.29},
                              {"stencil/f32/symmetric/nearest/r4/77x77x79 in pageable", 1.13},
                              {"stencil/f32/symmetric/nearest/r4/93750/sweeps10 in pinned", 1.42},
                              {"transpose/b1/78125000x3 in pinned", 1.16},
                              {"transpose/b2/7654x15310 in pinned", 1.30},
                              {"transpose/b4/395x1186/inplace in pinned", 1.37},
                              {"transpose/b4/4419x13259/inplace in pinned", 1.74},
                              {"transpose/b4/7654x7654 in pinned", 1.32},
                              {"transpose/b4/883x2654/inplace in pinned", 1.11}}},
                            {"crossover-h200.json",
                             {{"reduce/sum/f32/nonempty/22321x40 in pinned", 1.11},
                              {"stencil/f32/symmetric/nearest/r1/7654x7655 in pinned", 1.13},
                              {"stencil/f32/symmetric/nearest/r4/132x132x134 in pinned", 1.59},
                              {"stencil/f32/symmetric/nearest/r4/26x26x27 in pageable", 1.26},
                              {"stencil/f32/symmetric/nearest/r4/45x45x46 in pageable", 1.12},
                              {"stencil/f32/symmetric/nearest/r4/93750/sweeps10 in pinned", 1.17},
                              {"transpose/b2/7654x15310 in pinned", 1.39},
                              {"transpose/b4/395x1186/inplace in pinned", 1.36},
                              {"transpose/b4/4419x13259/inplace in pinned", 1.53},
                              {"transpose/b4/7654x7654 in pinned", 1.15},
                              {"transpose/b4/883x2654/inplace in pinned", 1.11}}},
                            {"crossover-h200-2-threads.json",
                             {{"reduce/max/f32/rows/23437x1000 in pinned", 1.18},
                              {"reduce/max/i32/full/23437500 in pinned", 1.14},
                              {"square_sum/norm2/f64/full/11718750 in pinned", 1.13},
                              {"stencil/f32/symmetric/mirror/r2/11718750 in pinned", 1.18},
                              {"stencil/f32/symmetric/nearest/r1/1530x1531 in pinned", 1.19},
                              {"stencil/f32/symmetric/nearest/r4/93750/sweeps10 in pinned", 1.24},
                              {"transpose/b8/5412x5412/inplace in pageable", 1.28}}}};

TEST(replay, the_built_in_model_on_recorded_times) {
  const cost::model model = built_in_model();
  for (const exceptions& one : known) {
    std::ifstream in(std::string(RESULTS) + "/" + one.file);
    ASSERT_TRUE(in) << one.file;
    const json run = json::parse(in);
    const int threads = threads_of(run);
    size_t calls = 0, within = 0;
    std::set<std::string> missed;
    for (const auto& [key, times] : calls_of(run)) {
      const auto cpu = times.ms.find("cpu"), device = times.ms.find("cuda");
      ASSERT_NE(device, times.ms.end()) << key.first;
      ++calls;
      if (cpu == times.ms.end()) {  // it cannot run there, and auto does not ask the model
        ++within;
        continue;
      }
      const cases::test_case c = cases::parse(key.first);
      const cost::call call = cost_call(c);
      const cost::place where = key.second == "device"   ? cost::on_device
                                : key.second == "pinned" ? cost::pinned
                                                         : cost::pageable;
      const double there = cost::device_us(model, call, "cuda", where, threads);
      const double here =
          cost::cpu_us(model, call, threads) + (where == cost::on_device ? cost::trips_us(model, call, "cuda") : 0);
      const double took = there < here ? device->second : cpu->second,
                   over = took / std::min(cpu->second, device->second);
      if (over <= allowed) {
        ++within;
        continue;
      }
      const std::string name = key.first + " in " + key.second;
      missed.insert(name);
      const auto expected = one.factors.find(name);
      EXPECT_TRUE(expected != one.factors.end() && over <= expected->second + 0.005)
          << one.file << ": " << name << " (" << cost::work_names[call.what] << "): " << over
          << " times the better; expected " << here << " us on the CPU and " << there << " there, recorded "
          << cpu->second * 1e3 << " and " << device->second * 1e3;
    }
    for (const auto& [name, factor] : one.factors)
      EXPECT_TRUE(missed.count(name)) << one.file << ": " << name << " is within now";
    std::printf("%s: %zu of %zu calls within %.1f times the better\n", one.file, within, calls, allowed);
  }
}

}  // namespace
