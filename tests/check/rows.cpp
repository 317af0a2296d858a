// rows.cpp - the chain of trust over the cases. Every row of every backend is
// compared with the oracle's bits: `ref` first, then each CPU row at each ISA level
// and thread count, then the rows of the other backends from host and device memory.

#include <set>

#include "check.hpp"
#include "text.hpp"

namespace lockstep::check {
namespace {
using namespace cases;

class Rows : public testing::TestWithParam<lockstep_op> {};

// This run's part of the op's cases, drawn evenly from all kinds of them.
std::vector<std::string> cases_of(lockstep_op op) {
  std::vector<std::string> all = list(op, depth, seed), kept;
  for (size_t i = 0; i < all.size(); ++i)
    if (only.empty() ? mix(i) % parts == part : all[i] == only) kept.push_back(std::move(all[i]));
  return kept;
}

TEST_P(Rows, ReferenceEqualsOracle) {
  const lockstep_op op = GetParam();
  runner run;
  int failures = 0;
  for (const std::string& name : cases_of(op)) {
    const subject s(parse(name));
    ASSERT_EQ(name, s.c.name);
    for (const place where : {place::host_front, place::host_back}) {
      target t;
      t.variant = "ref";
      t.threads = 1;
      t.where = where;
      const outcome o = run.run(s, t);
      ASSERT_NE(o.what, verdict::refused) << name << ": ref must take every call: " << o.text;
      if (!report(s, t, o, failures)) return;
    }
  }
}

TEST_P(Rows, EveryCpuRowAtEveryLevelAndThreadCount) {
  const lockstep_op op = GetParam();
  const std::vector<row> rows = rows_of("cpu", op);
  ASSERT_FALSE(rows.empty());
  std::vector<std::string> variants = {""};  // what auto picks
  for (const row& r : rows)
    if (r.name != "ref") variants.push_back(r.name);
  runner run;
  coverage seen;
  std::set<std::string> beyond;  // rows that this processor lacks the instructions for
  int failures = 0;
  uint64_t turn = seed;
  for (const std::string& name : cases_of(op)) {
    const subject s(parse(name));
    for (const std::string& variant : variants)
      for (const std::string& level : isa_levels())
        for (const int threads : {1, 2, 3, 7, 0}) {
          // Large inputs show their tails at any thread count, so one a level will do.
          if (s.src.size() > (1u << 18) && threads != static_cast<int>(mix(turn) % 4)) continue;
          target t;
          t.variant = variant;
          t.isa = level;
          t.threads = threads;
          t.where = mix(++turn) % 2 == 0 ? place::host_front : place::host_back;
          t.caller = static_cast<arithmetic>(mix(turn + 1000) % 5);
          t.how = static_cast<way>(mix(turn + 2000) % 3);
          for (const row& r : rows)
            t.own_order = t.own_order || (r.name == variant && (r.flags & LOCKSTEP_OWN_ORDER) != 0);
          const outcome o = run.run(s, t);
          seen.add(s, t, o);
          if (o.beyond_the_processor()) beyond.insert(variant);
          if (o.what == verdict::refused && variant.empty()) {
            ADD_FAILURE() << name << ": auto must take every call: " << o.text;
            if (++failures >= 10) return;
          }
          if (!report(s, t, o, failures)) return;
        }
  }
  std::string idle;
  for (const row& r : rows) {
    if (r.name != "ref" && seen.ran("cpu", op, r.name) == 0 && beyond.count(r.name) == 0) idle += " " + r.name;
    if (r.name != "ref")
      std::printf("  cpu %s %s: %zu runs\n", lockstep_op_name(op), r.name.c_str(), seen.ran("cpu", op, r.name));
  }
  if (parts > 1 || !only.empty()) return;  // a part need not run every row
  EXPECT_EQ(idle, "") << "rows that no case ran";
  for (const std::string& cell : seen.idle_cells("cpu", op))
    ADD_FAILURE() << "cell of the matrix that auto never ran: " << cell;
}

// A module that computes in host memory has none.
bool has_device_memory(const std::string& backend) {
  lockstep_context* context = nullptr;
  if (lockstep_context_create(nullptr, &context) != LOCKSTEP_OK) return false;
  void* pointer = nullptr;
  const bool has = lockstep_alloc(context, backend.c_str(), LOCKSTEP_DEVICE, 256, &pointer) != LOCKSTEP_UNSUPPORTED;
  if (pointer != nullptr) (void)lockstep_free(context, backend.c_str(), LOCKSTEP_DEVICE, 256, pointer);
  lockstep_context_destroy(context);
  return has;
}

TEST_P(Rows, EveryRowOfOtherBackends) {
  const lockstep_op op = GetParam();
  std::vector<std::string> others;
  for (const std::string& backend : usable_backends())
    if (required.empty() ? backend != "cpu" : backend == required) others.push_back(backend);
  if (!required.empty() && others.empty()) FAIL() << required << " is not usable";
  if (others.empty()) GTEST_SKIP() << "no usable backend besides the CPU";
  for (const std::string& backend : others) {
    std::vector<row> rows = rows_of(backend, op);
    rows.insert(rows.begin(), row{backend, op, "", 0});
    runner run;
    coverage seen;
    int failures = 0;
    for (const std::string& name : cases_of(op)) {
      const subject s(parse(name));
      for (const row& r : rows)
        for (const place where : {place::device, place::host_back, place::mixed}) {
          if (where != place::host_back && !has_device_memory(backend)) continue;
          if (where == place::mixed && (s.c.in_place || mix(s.src.size()) % 4 != 0)) continue;
          if (where == place::mixed && !s.c.offsets.empty()) continue;  // device src needs device offsets
          target t;
          t.backend = backend;
          t.variant = r.name;
          t.where = where;
          t.how = static_cast<way>(mix(s.src.size() + static_cast<uint64_t>(where)) % 3);
          t.own_order = (r.flags & LOCKSTEP_OWN_ORDER) != 0;
          const outcome o = run.run(s, t);
          seen.add(s, t, o);
          if (!report(s, t, o, failures)) return;
          if (o.what == verdict::refused && r.name.empty() && !o.beyond_the_backend()) {
            ADD_FAILURE() << name << " on " << backend << ": auto must take every call: " << o.text;
            if (++failures >= 10) return;
          }
        }
    }
    for (const row& r : rows)
      std::printf("  %s %s %s: %zu runs\n", backend.c_str(), lockstep_op_name(op), r.name.c_str(),
                  seen.ran(backend, op, r.name));
    if (parts > 1 || !only.empty()) continue;
    EXPECT_EQ(seen.idle_rows(backend, op), "") << "rows of " << backend << " that no case ran";
    for (const std::string& cell : seen.idle_cells(backend, op))
      ADD_FAILURE() << backend << ": cell of the matrix that never ran: " << cell;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Rows, every_op(), op_name);

}  // namespace
}  // namespace lockstep::check
