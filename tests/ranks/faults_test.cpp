// faults_test.cpp - no rank hangs: whatever one rank does wrong, every rank returns in time, with the right status and
// a text that names the rank; and where the communicator can go on, it does.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <list>

#include "world.hpp"

namespace lockstep::ranks_test {
namespace {

using clock = std::chrono::steady_clock;
constexpr int64_t timeout_ms = 400;

enum class op { permute, reduce, columns, stencil, count };
const char* const op_names[] = {"permute", "reduce", "columns", "stencil"};

// What one rank does otherwise.
enum class twist {
  none,
  // Wrong in itself.
  null_grid,
  no_axes,
  too_many_parts,
  cuts_that_decrease,
  two_blocks_on_a_rank,
  bad_element_bytes,
  bad_operation,  // a perm that is none, a dtype that is none
  bad_flags,
  a_struct_of_another_size,
  // Fine in itself, but not what the others say.
  other_shape,
  other_cuts,
  other_order,
  other_operation,
  other_call,
  // At execution.
  null_data,
  null_parts,
  misaligned,
  no_stride,
  bad_options
};

struct world_of_one {
  std::vector<int64_t> cuts;
  std::vector<int32_t> order;
  lockstep_grid src{}, dst{};
  std::vector<std::vector<double>> memory;
  std::vector<lockstep_part> src_parts, dst_parts;
};

constexpr int64_t rows = 240, cols = 50;

lockstep_status make(op what, const member& m, twist t, world_of_one& w, lockstep_ranks_plan** plan) {
  const int64_t shape[] = {rows, t == twist::other_shape ? cols + 1 : cols};
  w.src = lockstep_grid_slabs(8, 2, shape, m.ranks);
  const int64_t turned[] = {shape[1], shape[0]};
  w.dst = lockstep_grid_slabs(8, 2, turned, m.ranks);
  w.order.clear();
  for (int32_t r = 0; r < m.ranks; ++r) w.order.push_back(r);
  if (t == twist::other_order) std::swap(w.order.front(), w.order.back());
  if (t == twist::two_blocks_on_a_rank) w.order.back() = w.order.front();
  w.src.order = w.order.data();
  w.cuts.clear();
  for (int32_t r = 0; r <= m.ranks; ++r) w.cuts.push_back(rows * r / m.ranks);
  if (t == twist::other_cuts) ++w.cuts[1];
  if (t == twist::cuts_that_decrease) w.cuts[1] = rows + 1;
  w.src.cuts[0] = w.cuts.data();
  if (t == twist::too_many_parts) w.src.parts[1] = m.ranks + 1;
  if (t == twist::bad_element_bytes) w.src.element_bytes = 3;
  if (t == twist::a_struct_of_another_size) w.src.size = 12;
  w.memory.clear(), w.src_parts.clear(), w.dst_parts.clear();
  for (int32_t s = 0; s < 2 * m.seats; ++s) w.memory.emplace_back(static_cast<size_t>((rows + 9) * (cols + 9)), 1.0);
  for (int32_t s = 0; s < m.seats; ++s) {
    int64_t low[2], length[2];
    const int64_t part[] = {rows, cols + 2};
    EXPECT_EQ(lockstep_grid_box(&w.dst, m.first + s, low, length), LOCKSTEP_OK);
    w.src_parts.push_back(lockstep_part_packed(w.memory[static_cast<size_t>(2 * s)].data(), 2, part));
    w.dst_parts.push_back(lockstep_part_packed(w.memory[static_cast<size_t>(2 * s + 1)].data(), 2, length));
  }
  lockstep_options o = lockstep_options_defaults();
  if (t == twist::bad_flags) o.flags = 1u << 20;
  const lockstep_grid* src = t == twist::null_grid ? nullptr : &w.src;
  const bool as_permute = (what == op::permute) != (t == twist::other_call);
  if (as_permute) {
    int32_t perm[] = {1, 0};
    if (t == twist::other_operation) perm[0] = 0, perm[1] = 1, w.dst = w.src;
    if (t == twist::bad_operation) perm[0] = 0;
    if (t == twist::no_axes) w.src.rank = 0;
    return lockstep_ranks_permute(m.comm, src, perm, &w.dst, &o, plan);
  }
  if (what == op::stencil) {
    double coefficients[] = {-1, 0.5, 0.25, 0.125, 0.0625};
    if (t == twist::other_operation) coefficients[2] = 0.3;
    const int64_t none[] = {1, 1};
    lockstep_stencil_desc d = lockstep_stencil_packed(LOCKSTEP_F64, 2, none, t == twist::no_axes ? 0 : 2, coefficients,
                                                      LOCKSTEP_BOUNDARY_WRAP);
    d.form = t == twist::bad_operation ? static_cast<lockstep_form>(77) : LOCKSTEP_SYMMETRIC;
    d.coefficient_count = 5;
    for (int32_t s = 0; s < m.seats; ++s) w.dst_parts[static_cast<size_t>(s)].strides[0] = cols;
    return lockstep_ranks_stencil(m.comm, src, &d, &o, plan);
  }
  lockstep_dtype dtype = LOCKSTEP_F64;
  if (t == twist::bad_operation) dtype = static_cast<lockstep_dtype>(77);
  const uint32_t axes = t == twist::no_axes ? 0u : what == op::columns ? 1u : 3u;
  return lockstep_ranks_reduce(m.comm, src, t == twist::other_operation ? LOCKSTEP_MAX : LOCKSTEP_SUM, dtype,
                               LOCKSTEP_F64, axes, nullptr, &o, plan);
}

lockstep_status execute(const member& m, twist t, int32_t seat, const world_of_one& w, lockstep_ranks_plan* plan) {
  static_cast<void>(m);
  std::vector<lockstep_part> src = w.src_parts;
  lockstep_part& p = src[static_cast<size_t>(seat)];
  if (t == twist::null_data) p.data = nullptr;
  if (t == twist::misaligned) p.data = static_cast<char*>(p.data) + 1;
  if (t == twist::no_stride) p.strides[0] = 0;
  lockstep_options o = lockstep_options_defaults();
  if (t == twist::bad_options) o.backend = "cpu";
  return lockstep_ranks_execute(plan, t == twist::null_parts ? nullptr : src.data(), w.dst_parts.data(), &o);
}

changes in_time(int64_t ms = timeout_ms) {
  changes c;
  c.options = [ms](int32_t, lockstep_comm_options& o) { o.timeout_ms = ms; };
  return c;
}

// The communicator still works.
void expect_health(op what, const member& m, const std::string& about) {
  world_of_one w;
  lockstep_ranks_plan* plan = nullptr;
  EXPECT_EQ(make(what, m, twist::none, w, &plan), LOCKSTEP_OK) << about << ": " << lockstep_last_error();
  if (plan == nullptr) return;
  EXPECT_EQ(execute(m, twist::none, 0, w, plan), LOCKSTEP_OK) << about << ": " << lockstep_last_error();
  lockstep_ranks_plan_destroy(plan);
}

void expect_text(const char* word, const std::string& about) {
  EXPECT_NE(std::string(lockstep_last_error()).find(word), std::string::npos)
      << about << ": the text lacks \"" << word << "\": " << lockstep_last_error();
}

std::vector<std::vector<int32_t>> worlds() {
  if (over_mpi()) return {one_each(rank_counts()[0])};
  return {one_each(2), one_each(4), one_each(7), {2, 2}, {1, 3}};
}
int32_t total(const std::vector<int32_t>& seats) {
  int32_t n = 0;
  for (const int32_t s : seats) n += s;
  return n;
}

// Communicators are made on all ranks or on none.
TEST(Faults, CommunicatorsThatCannotBeMade) {
  if (over_mpi()) return;
  constexpr int32_t processes = 3;
  enum { no_context, no_seats, unknown_backend, bad_timeout, bad_flags, other_message_bytes, bad_size, ways };
  for (int how = 0; how < ways; ++how)
    for (int32_t bad = 0; bad < processes; ++bad) {
      std::vector<lockstep_engine> engines(processes);
      ASSERT_EQ(lockstep_engine_local(processes, engines.data()), LOCKSTEP_OK);
      std::vector<std::thread> threads;
      for (int32_t p = 0; p < processes; ++p)
        threads.emplace_back([&, p] {
          const std::string about = format_text("way {}, rank {} wrong, rank {}", how, bad, p);
          const bool mine = p == bad;
          lockstep_context_options co = lockstep_context_defaults();
          co.backend = "cpu";
          lockstep_context* context = nullptr;
          ASSERT_EQ(lockstep_context_create(&co, &context), LOCKSTEP_OK);
          lockstep_comm_options o = lockstep_comm_defaults();
          o.timeout_ms = 20000;
          const char* names[] = {"no-such-backend"};
          if (mine && how == no_seats) o.seats = 0;
          if (mine && how == unknown_backend) o.backends = names;
          if (mine && how == bad_timeout) o.timeout_ms = -7;
          if (mine && how == bad_flags) o.flags = 64;
          if (mine && how == other_message_bytes) o.message_bytes = 4711;
          if (mine && how == bad_size) o.size = 3;
          lockstep_engine& e = engines[static_cast<size_t>(p)];
          lockstep_comm* comm = nullptr;
          const lockstep_status status =
              lockstep_comm_create(mine && how == no_context ? nullptr : context, &e, &o, &comm);
          EXPECT_EQ(comm, nullptr) << about;
          EXPECT_EQ(status, how == other_message_bytes ? LOCKSTEP_MISMATCH
                            : !mine                    ? LOCKSTEP_RANK_FAILED
                            : how == unknown_backend   ? LOCKSTEP_NO_BACKEND
                                                       : LOCKSTEP_INVALID_ARGUMENT)
              << about << ": " << lockstep_last_error();
          if (!mine && how != other_message_bytes) expect_text(format_text("rank {}: ", bad).c_str(), about);
          lockstep_comm_destroy(comm);
          e.close(e.user, 0);
          lockstep_context_destroy(context);
        });
      for (std::thread& t : threads) t.join();
      if (HasFailure()) return;
    }
}

TEST(Faults, PlansThatAreWrongInThemselves) {
  for (const auto& seats : worlds())
    for (int o = 0; o < static_cast<int>(op::count); ++o)
      for (int t = static_cast<int>(twist::null_grid); t <= static_cast<int>(twist::a_struct_of_another_size); ++t)
        for (const int32_t bad : {0, total(seats) - 1}) {
          const std::string about =
              format_text("{}, twist {}, {} processes, rank {} wrong", op_names[o], t, seats.size(), bad);
          run(
              seats,
              [&](member& m) {
                if (m.ranks == 1) return;
                const bool mine = bad >= m.first && bad < m.first + m.seats;
                world_of_one w;
                lockstep_ranks_plan* plan = nullptr;
                const lockstep_status status =
                    make(static_cast<op>(o), m, mine ? static_cast<twist>(t) : twist::none, w, &plan);
                EXPECT_EQ(plan, nullptr) << about;
                EXPECT_EQ(status, mine ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED)
                    << about << ": " << lockstep_last_error();
                if (!mine) expect_text(bad == 0 ? "rank 0: " : "rank ", about);
                expect_health(static_cast<op>(o), m, about);
              },
              in_time(20000));
          if (HasFailure()) return;
        }
}

TEST(Faults, PlansThatDiffer) {
  const std::pair<twist, const char*> twists[] = {{twist::other_shape, "shape[1]"},
                                                  {twist::other_cuts, "cuts[0][1]"},
                                                  {twist::other_order, "order[0]"},
                                                  {twist::other_operation, ""},
                                                  {twist::other_call, "the call"}};
  for (const auto& seats : worlds())
    for (int o = 0; o < static_cast<int>(op::count); ++o)
      for (const auto& [t, word] : twists)
        for (const int32_t bad : {0, total(seats) - 1}) {
          const std::string about = format_text("{}, twist {}, {} processes, rank {} differs", op_names[o],
                                                static_cast<int>(t), seats.size(), bad);
          run(
              seats,
              [&, t = t, word = word](member& m) {
                const bool mine = bad >= m.first && bad < m.first + m.seats;
                if (m.ranks == m.seats) return;
                world_of_one w;
                lockstep_ranks_plan* plan = nullptr;
                EXPECT_EQ(make(static_cast<op>(o), m, mine ? t : twist::none, w, &plan), LOCKSTEP_MISMATCH)
                    << about << ": " << lockstep_last_error();
                expect_text(word, about);
                expect_text("rank 0", about);
                expect_health(static_cast<op>(o), m, about);
              },
              in_time(20000));
          if (HasFailure()) return;
        }
}

TEST(Faults, ExecutionsThatAreWrongInThemselves) {
  for (const auto& seats : worlds())
    for (int o = 0; o < static_cast<int>(op::count); ++o)
      for (int t = static_cast<int>(twist::null_data); t <= static_cast<int>(twist::bad_options); ++t)
        for (const int32_t bad : {0, total(seats) - 1}) {
          const std::string about =
              format_text("{}, twist {}, {} processes, rank {} wrong", op_names[o], t, seats.size(), bad);
          run(
              seats,
              [&](member& m) {
                if (m.ranks == m.seats) return;
                const bool mine = bad >= m.first && bad < m.first + m.seats;
                world_of_one w;
                lockstep_ranks_plan* plan = nullptr;
                ASSERT_EQ(make(static_cast<op>(o), m, twist::none, w, &plan), LOCKSTEP_OK) << lockstep_last_error();
                for (int round = 0; round < 2; ++round) {
                  const lockstep_status status =
                      execute(m, mine ? static_cast<twist>(t) : twist::none, mine ? bad - m.first : 0, w, plan);
                  if (static_cast<op>(o) == op::stencil && !mine && status == LOCKSTEP_OK) {
                    // No neighbour of the failed one.
                  } else {
                    EXPECT_EQ(status, mine ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED)
                        << about << ": " << lockstep_last_error();
                    if (!mine) expect_text("rank ", about);
                  }
                  if (static_cast<op>(o) != op::stencil) continue;
                  EXPECT_EQ(lockstep_ranks_synchronize(m.comm), mine ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED)
                      << about;
                }
                EXPECT_EQ(execute(m, twist::none, 0, w, plan), LOCKSTEP_OK) << about << ": " << lockstep_last_error();
                EXPECT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OK) << about;
                lockstep_ranks_plan_destroy(plan);
              },
              in_time(20000));
          if (HasFailure()) return;
        }
}

// Every allocation of one rank fails once, while a plan is made and while it runs.
TEST(Faults, OutOfMemory) {
  struct hook {
    std::atomic<int64_t> left{INT64_MAX};
    static void* allocate(void* user, size_t bytes, size_t alignment) {
      auto* h = static_cast<hook*>(user);
      if (h->left.fetch_sub(1) <= 0) return nullptr;
      return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    }
    static void release(void*, void* pointer, size_t, size_t) { std::free(pointer); }
  };
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 4;
  if (ranks < 2) return;
  for (int o = 0; o < static_cast<int>(op::count); ++o) {
    int failed_plans = 0;
    for (int64_t fails_at = 0, done = 0; fails_at < 200 && done == 0; ++fails_at) {
      std::vector<hook> hooks(static_cast<size_t>(ranks));
      std::vector<lockstep_allocator> allocators;
      for (hook& h : hooks) allocators.push_back({&h, &hook::allocate, &hook::release});
      changes with = in_time(20000);
      with.context = [&](int32_t p, lockstep_context_options& co) {
        if (p == 1) co.allocator = &allocators[1];
      };
      std::atomic<bool> planned{true};
      const std::string about = format_text("{}, allocation {} fails", op_names[o], fails_at);
      run(
          one_each(ranks),
          [&](member& m) {
            world_of_one w;
            lockstep_ranks_plan* plan = nullptr;
            if (m.first == 1) hooks[1].left = fails_at;
            const lockstep_status status = make(static_cast<op>(o), m, twist::none, w, &plan);
            if (status != LOCKSTEP_OK) {
              planned = false;
              EXPECT_EQ(status, m.first == 1 ? LOCKSTEP_OUT_OF_MEMORY : LOCKSTEP_RANK_FAILED)
                  << about << lockstep_last_error();
              if (m.first != 1) expect_text("rank 1: ", about);
            } else {
              const lockstep_status ran = execute(m, twist::none, 0, w, plan);
              EXPECT_TRUE(ran == LOCKSTEP_OK || ran == (m.first == 1 ? LOCKSTEP_OUT_OF_MEMORY : LOCKSTEP_RANK_FAILED))
                  << about << ": " << lockstep_last_error();
            }
            if (m.first == 1) hooks[1].left = INT64_MAX;
            lockstep_ranks_plan_destroy(plan);
            expect_health(static_cast<op>(o), m, about);
          },
          with);
      if (HasFailure()) return;
      failed_plans += !planned;
      done = over_mpi() ? fails_at == 3 : planned.load();
    }
    EXPECT_TRUE(over_mpi() || failed_plans > 0);
  }
}

// One rank makes other calls than the rest.
TEST(Faults, OtherCallsThanTheRest) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 4;
  if (ranks < 2) return;
  for (int how = 0; how < 5; ++how)
    for (const int32_t bad : {0, ranks - 1}) {
      const std::string about = format_text("way {}, rank {}", how, bad);
      run(
          one_each(ranks),
          [&](member& m) {
            world_of_one a, b, c, e;
            lockstep_ranks_plan *permute = nullptr, *reduce = nullptr, *more = nullptr, *twin = nullptr;
            ASSERT_EQ(make(op::permute, m, twist::none, a, &permute), LOCKSTEP_OK);
            ASSERT_EQ(make(op::reduce, m, twist::none, b, &reduce), LOCKSTEP_OK);
            // Another plan whose messages are as long: only what they say of themselves tells them apart.
            ASSERT_EQ(make(op::permute, m, twist::none, c, &twin), LOCKSTEP_OK);
            const auto begin = clock::now();
            lockstep_status status = LOCKSTEP_OK;
            if (how == 4)
              status = execute(m, twist::none, 0, m.first == bad ? c : a, m.first == bad ? twin : permute);
            else if (m.first != bad)
              status = execute(m, twist::none, 0, a, permute);
            else if (how == 0)
              status = execute(m, twist::none, 0, b, reduce);
            else if (how == 1)
              status = make(op::permute, m, twist::none, e, &more);
            else if (how == 2)
              status = lockstep_ranks_synchronize(m.comm);
            else
              for (int k = 0; k < 3 && status == LOCKSTEP_OK; ++k) status = execute(m, twist::none, 0, b, reduce);
            EXPECT_TRUE(status == LOCKSTEP_MISMATCH || (status == LOCKSTEP_RANK_LOST && how != 4))
                << about << ": " << status << lockstep_last_error();
            EXPECT_LT(clock::now() - begin, std::chrono::milliseconds(timeout_ms + 1000)) << about;
            // Closed for good, on every rank.
            EXPECT_NE(execute(m, twist::none, 0, a, permute), LOCKSTEP_OK) << about;
            expect_text("closed", about);
            lockstep_comm_info info{};
            info.size = sizeof info;
            EXPECT_EQ(lockstep_comm_get(m.comm, &info), LOCKSTEP_OK);
            EXPECT_EQ(info.closed, 1) << about;
            EXPECT_STRNE(info.reason, "") << about;
            lockstep_ranks_plan_destroy(permute);
            lockstep_ranks_plan_destroy(reduce);
            lockstep_ranks_plan_destroy(more);
            lockstep_ranks_plan_destroy(twin);
          },
          in_time());
      if (HasFailure()) return;
    }
}

// One rank sleeps beyond the deadline, or goes away: before it plans, before it executes.
TEST(Faults, ARankThatGivesNoSign) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 5;
  if (ranks < 2) return;
  for (const bool goes_away : {false, true})
    for (const bool while_planning : {false, true})
      for (int o = 0; o < static_cast<int>(op::count); ++o)
        for (const int32_t bad : {0, 2 % ranks}) {
          const std::string about =
              format_text("{}, rank {} {} while {}", op_names[o], bad, goes_away ? "goes away" : "sleeps",
                          while_planning ? "planning" : "running");
          std::atomic<int> back{0};
          run(
              one_each(ranks),
              [&](member& m) {
                world_of_one w;
                lockstep_ranks_plan* plan = nullptr;
                const auto wait = [&] {
                  if (m.first != bad) return;
                  if (over_mpi() || !goes_away)
                    std::this_thread::sleep_for(std::chrono::milliseconds(3 * timeout_ms));
                  else
                    while (back < ranks - 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                };
                auto begin = clock::now();
                if (while_planning) wait();
                lockstep_status status = make(static_cast<op>(o), m, twist::none, w, &plan);
                if (!while_planning) {
                  ASSERT_EQ(status, LOCKSTEP_OK) << about << lockstep_last_error();
                  begin = clock::now();
                  wait();
                  // Who is no neighbour of the silent one hears of it by those that are.
                  for (int k = 0; k < 4 && status == LOCKSTEP_OK && (m.first != bad || !goes_away); ++k)
                    status = execute(m, twist::none, 0, w, plan);
                  if (m.first == bad && goes_away) status = LOCKSTEP_RANK_LOST;
                }
                // What the sleeper waited for had come before the others gave up; its next call tells it.
                if (m.first == bad && status == LOCKSTEP_OK) {
                  lockstep_ranks_plan* more = nullptr;
                  status = make(static_cast<op>(o), m, twist::none, w, &more);
                }
                EXPECT_EQ(status, LOCKSTEP_RANK_LOST) << about << ": " << lockstep_last_error();
                if (m.first != bad) {
                  expect_text(format_text("rank {}", bad).c_str(), about);
                  EXPECT_LT(clock::now() - begin, std::chrono::milliseconds(timeout_ms + 1000)) << about;
                  begin = clock::now();
                  EXPECT_EQ(make(static_cast<op>(o), m, twist::none, w, &plan), LOCKSTEP_RANK_LOST) << about;
                  EXPECT_LT(clock::now() - begin, std::chrono::milliseconds(50)) << about;
                }
                ++back;
                lockstep_ranks_plan_destroy(plan);
              },
              in_time());
          if (HasFailure()) return;
        }
}

// ---- a transport that fails ---------------------------------------------------------

enum class broken { isend, irecv, test, short_receive, twice, reordered, garbage, count };

struct wrapper {
  lockstep_engine inner{};
  broken how{};
  int64_t at = 0, calls = 0;  // the call that goes wrong
  std::vector<char> copy;
  struct held {
    int32_t to;
    std::vector<char> data;
  };
  std::list<held> kept;  // sent later than what follows

  bool now(broken what) { return how == what && calls++ == at; }
  static int isend(void* user, int32_t to, const void* data, size_t bytes, void** request) {
    auto* w = static_cast<wrapper*>(user);
    if (w->now(broken::isend)) return 77;
    if (w->now(broken::garbage)) {
      w->copy.assign(static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
      w->copy[0] = static_cast<char>(w->copy[0] + 1);
      return w->inner.isend(w->inner.user, to, w->copy.data(), bytes, request);
    }
    if (w->now(broken::twice)) {
      void* first = nullptr;
      w->copy.assign(static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
      const int result = w->inner.isend(w->inner.user, to, w->copy.data(), bytes, &first);
      if (result != 0) return result;
    }
    if (w->now(broken::reordered)) {
      // The next message to that process overtakes this one, which the sender takes for sent.
      w->kept.push_back({to, {static_cast<const char*>(data), static_cast<const char*>(data) + bytes}});
      *request = w;  // stands for a request that is done
      return 0;
    }
    const int result = w->inner.isend(w->inner.user, to, data, bytes, request);
    for (auto k = w->kept.begin(); k != w->kept.end(); ++k)
      if (k->to == to && !k->data.empty()) {
        void* late = nullptr;
        const int also = w->inner.isend(w->inner.user, to, k->data.data(), k->data.size(), &late);
        k->to = -1;
        if (also != 0) return also;
      }
    return result;
  }
  static int irecv(void* user, int32_t from, void* data, size_t bytes, void** request) {
    auto* w = static_cast<wrapper*>(user);
    return w->now(broken::irecv) ? 78 : w->inner.irecv(w->inner.user, from, data, bytes, request);
  }
  static int test(void* user, void** request, int* done, size_t* received) {
    auto* w = static_cast<wrapper*>(user);
    if (*request == w) return *done = 1, *request = nullptr, 0;
    if (w->how == broken::test && w->calls++ == w->at) return 79;
    const int result = w->inner.test(w->inner.user, request, done, received);
    if (result == 0 && *done != 0 && *received > 8 && w->now(broken::short_receive)) *received -= 8;
    return result;
  }
  static const char* error(void*, int result) { return result == 77 ? "no route" : "the wire is cut"; }
  static void close(void* user, int clean) {
    auto* w = static_cast<wrapper*>(user);
    w->inner.close(w->inner.user, clean);
    delete w;
  }
};

TEST(Faults, ATransportThatFails) {
  if (over_mpi()) return;
  for (int how = 0; how < static_cast<int>(broken::count); ++how)
    for (const int64_t at : {0, 1, 2, 4, 9})
      for (int o = 0; o < static_cast<int>(op::count); ++o) {
        const std::string about = format_text("{}, way {}, call {}", op_names[o], how, at);
        std::vector<wrapper*> wrappers(4);
        changes with = in_time(200);
        with.engine = [&](int32_t p, lockstep_engine& e) {
          if (p != 1) return;
          auto* w = new wrapper;
          w->inner = e;
          w->how = broken::count;  // not yet: the communicator is made first
          wrappers[1] = w;
          e.user = w;
          e.isend = &wrapper::isend;
          e.irecv = &wrapper::irecv;
          e.test = &wrapper::test;
          e.error = &wrapper::error;
          e.close = &wrapper::close;
        };
        std::atomic<int> lost{0};
        run(
            one_each(4),
            [&](member& m) {
              if (m.first == 1) wrappers[1]->how = static_cast<broken>(how), wrappers[1]->at = at;
              const auto begin = clock::now();
              lockstep_status status = LOCKSTEP_OK;
              for (int k = 0; k < 12 && status == LOCKSTEP_OK; ++k) {  // what came twice shows with what comes next
                world_of_one w;
                lockstep_ranks_plan* plan = nullptr;
                status = make(static_cast<op>(o), m, twist::none, w, &plan);
                if (status == LOCKSTEP_OK) status = execute(m, twist::none, 0, w, plan);
                lockstep_ranks_plan_destroy(plan);
              }
              EXPECT_TRUE(status == LOCKSTEP_RANK_LOST || status == LOCKSTEP_MISMATCH)
                  << about << ", rank " << m.first << ": " << lockstep_status_name(status) << lockstep_last_error();
              lost += status != LOCKSTEP_OK;
              EXPECT_LT(clock::now() - begin, std::chrono::milliseconds(2 * timeout_ms + 1000)) << about;
            },
            with);
        EXPECT_EQ(lost, 4) << about;
        if (HasFailure()) return;
      }
}

// Messages that arrive late, in bursts, never change a result.
TEST(Faults, AnyDelays) {
  if (over_mpi()) return;
  struct slow {
    lockstep_engine inner{};
    std::mt19937_64 draw;
    static int isend(void* u, int32_t to, const void* d, size_t b, void** r) {
      auto* s = static_cast<slow*>(u);
      return s->inner.isend(s->inner.user, to, d, b, r);
    }
    static int irecv(void* u, int32_t from, void* d, size_t b, void** r) {
      auto* s = static_cast<slow*>(u);
      return s->inner.irecv(s->inner.user, from, d, b, r);
    }
    static int test(void* u, void** r, int* done, size_t* n) {
      auto* s = static_cast<slow*>(u);
      *done = 0;
      if (s->draw() % 8 != 0) return 0;
      return s->inner.test(s->inner.user, r, done, n);
    }
    static const char* error(void*, int) { return ""; }
    static void close(void* u, int clean) {
      auto* s = static_cast<slow*>(u);
      s->inner.close(s->inner.user, clean);
      delete s;
    }
  };
  for (uint64_t seed = 0; seed < 10; ++seed) {
    changes with = in_time(20000);
    with.engine = [&](int32_t p, lockstep_engine& e) {
      auto* s = new slow{e, std::mt19937_64(seed * 100 + static_cast<uint64_t>(p))};
      e = {sizeof e,    LOCKSTEP_ENGINE_ABI, 0,
           s,           e.processes,         e.process,
           "slow",      &slow::isend,        &slow::irecv,
           &slow::test, &slow::error,        nullptr,
           &slow::close};
    };
    run(
        one_each(6),
        [&](member& m) {
          const int64_t n = 100003, shape[] = {n};
          const std::vector<unsigned char> whole = data_of(LOCKSTEP_F32, n, "wide", 3);
          const lockstep_grid g = lockstep_grid_slabs(4, 1, shape, m.ranks);
          block mine(g, m.first, false);
          mine.fill(g, whole.data());
          double sum = 0, want = 0;
          const int64_t one = 1;
          const lockstep_part out = lockstep_part_packed(&sum, 1, &one);
          lockstep_ranks_plan* plan = nullptr;
          ASSERT_EQ(
              lockstep_ranks_reduce(m.comm, &g, LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F64, 1, nullptr, nullptr, &plan),
              LOCKSTEP_OK)
              << lockstep_last_error();
          for (int k = 0; k < 5; ++k)
            ASSERT_EQ(lockstep_ranks_execute(plan, &mine.part, &out, nullptr), LOCKSTEP_OK) << lockstep_last_error();
          lockstep_ranks_plan_destroy(plan);
          const lockstep_reduce_desc d = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, n, 1);
          ASSERT_EQ(lockstep_reduce(m.context, &d, whole.data(), &want, nullptr), LOCKSTEP_OK);
          EXPECT_EQ(std::memcmp(&sum, &want, sizeof sum), 0);
        },
        with);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace lockstep::ranks_test
