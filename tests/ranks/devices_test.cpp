// devices_test.cpp - what is special about seats on devices: which data plane runs and why not the others, memory that
// is not the device's, streams of the caller, asynchronous chains, a device that does not finish.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "lockstep/backend_peer.h"
#include "world.hpp"

namespace lockstep::ranks_test {
namespace {

// "fake" or "cuda": the backend that LOCKSTEP_TEST_DEVICES names first.
std::string backend() {
  const std::string all = std::getenv("LOCKSTEP_TEST_DEVICES") != nullptr ? std::getenv("LOCKSTEP_TEST_DEVICES") : "";
  return all.substr(0, all.find(':'));
}
std::string device(int number) { return format_text("{}:{}", backend(), number); }

struct Devices : testing::Test {
  void SetUp() override {
    if (backend().empty()) GTEST_SKIP() << "LOCKSTEP_TEST_DEVICES names no device";
    lockstep_context_options o = lockstep_context_defaults();
    o.backend = "cpu";
    o.threads = 1;
    ASSERT_EQ(lockstep_context_create(&o, &context), LOCKSTEP_OK) << lockstep_last_error();
    const lockstep_peer_table* table = nullptr;
    int32_t number = 0;
    several = lockstep_peers_get(device(1).c_str(), &table, &number) == LOCKSTEP_OK;
  }
  void TearDown() override { lockstep_context_destroy(context); }

  lockstep_comm* open(const std::vector<std::string>& seats, const char* data, int64_t timeout_ms = 0,
                      int64_t message_bytes = 0) {
    std::vector<const char*> names;
    for (const std::string& s : seats) names.push_back(s.empty() ? nullptr : s.c_str());
    lockstep_comm_options o = lockstep_comm_defaults();
    o.seats = static_cast<int32_t>(seats.size());
    o.backends = names.data();
    o.data = data;
    o.timeout_ms = timeout_ms;
    o.message_bytes = message_bytes;
    lockstep_comm* comm = nullptr;
    status = lockstep_comm_local(context, &o, &comm);
    text = lockstep_last_error();
    return comm;
  }
  void expect_planes(const std::vector<std::string>& seats, const char* named, const char* data,
                     const std::string& why) {
    lockstep_comm* comm = open(seats, named);
    ASSERT_NE(comm, nullptr) << text;
    lockstep_comm_info info{};
    info.size = sizeof info;
    ASSERT_EQ(lockstep_comm_get(comm, &info), LOCKSTEP_OK);
    EXPECT_STREQ(info.data, data) << joined(seats, ",");
    EXPECT_NE(std::string(info.why).find(why), std::string::npos) << joined(seats, ",") << ": " << info.why;
    lockstep_comm_destroy(comm);
  }
  void expect_refusal(const std::vector<std::string>& seats, const char* named, lockstep_status want,
                      const char* word) {
    lockstep_comm* comm = open(seats, named);
    EXPECT_EQ(status, want) << text;
    EXPECT_NE(text.find(word), std::string::npos) << text;
    lockstep_comm_destroy(comm);
  }

  lockstep_context* context = nullptr;
  bool several = false;
  lockstep_status status = LOCKSTEP_OK;
  std::string text;
};

TEST_F(Devices, PlanesAndReasons) {
  const std::string a = device(0), b = device(1);
  expect_planes({a, a}, nullptr, "direct", "engine: direct needs no copy");
  expect_planes({a, a, a}, "engine", "engine", "direct: options.data is \"engine\"");
  expect_planes({a, a}, "staged", "staged", "engine: options.data is \"staged\"");
  expect_planes({a, "cpu"}, nullptr, "staged", "engine: rank 1 computes on cpu");
  expect_planes({a, "cpu", a}, nullptr, "direct, staged", "engine: rank 1 computes on cpu");
  expect_planes({a, ""}, nullptr, "staged", "rank 1 has no backend of its own");
  expect_planes({"cpu", "cpu"}, nullptr, "staged", "direct: rank 0 computes on cpu");
  expect_refusal({a, "cpu"}, "engine", LOCKSTEP_UNSUPPORTED, "rank 1 computes on cpu");
  expect_refusal({a, "cpu"}, "direct", LOCKSTEP_UNSUPPORTED, "rank 1 computes on cpu");
  expect_refusal({a}, "pear", LOCKSTEP_INVALID_ARGUMENT, "known are");
  expect_refusal({a, backend() + ":99"}, nullptr, LOCKSTEP_NO_BACKEND, "options.backends[1]");
  if (!several) return;
  expect_planes({a, b, a}, nullptr, "direct, engine", "staged: all data stays on devices");
  expect_planes({a, b}, "engine", "engine", "direct: options.data is \"engine\"");
  if (backend() != "fake") return;
  expect_planes({a, b}, nullptr, "direct, engine", "staged: all data stays on devices");
  expect_planes({a, b}, "direct", "direct", "engine: options.data is \"direct\"");
  const std::string c = device(2);
  expect_refusal({b, c}, "direct", LOCKSTEP_UNSUPPORTED, "rank 1 is on");
  expect_planes({b, c}, nullptr, "engine", "direct: rank 0 is on " + b + " and rank 1 is on " + c);
  expect_planes({b, c}, nullptr, "engine", "fake:1 cannot access fake:2, so the driver copies through host");
}

TEST_F(Devices, PlanesOfManyProcesses) {
  changes with;
  with.options = [](int32_t, lockstep_comm_options& o) { o.data = nullptr; };
  run(
      {2, 1},
      [&](member& m) {
        lockstep_comm_info info{};
        info.size = sizeof info;
        ASSERT_EQ(lockstep_comm_get(m.comm, &info), LOCKSTEP_OK);
        const std::string data = info.data;  // three GPUs exchange by NCCL, if it is there
        EXPECT_TRUE(data.find("staged") != data.npos || data.find("nccl") != data.npos) << data;
        if (data == "direct, engine, nccl") return;  // only staged needs a reason
        EXPECT_NE(std::string(info.why).find("there are ranks of other processes"), std::string::npos) << info.why;
      },
      with);
}

// A block of the seat's device, or of other memory.
struct device_block {
  lockstep_context* context;
  std::string name;
  size_t bytes;
  void* data = nullptr;
  lockstep_memory kind;
  device_block(lockstep_context* c, std::string n, size_t elements)
      : context(c),
        name(std::move(n)),
        bytes(elements * sizeof(float)),
        kind(name == "cpu" ? LOCKSTEP_HOST : LOCKSTEP_DEVICE) {
    EXPECT_EQ(lockstep_alloc(context, name.c_str(), kind, bytes, &data), LOCKSTEP_OK) << lockstep_last_error();
  }
  ~device_block() { EXPECT_EQ(lockstep_free(context, name.c_str(), kind, bytes, data), LOCKSTEP_OK); }
  device_block(const device_block&) = delete;
  device_block& operator=(const device_block&) = delete;
  void write(const float* from) const {
    EXPECT_EQ(lockstep_copy(context, name.c_str(), from, data, bytes), LOCKSTEP_OK) << lockstep_last_error();
  }
  std::vector<float> read() const {
    std::vector<float> to(bytes / sizeof(float));
    EXPECT_EQ(lockstep_copy(context, name.c_str(), data, to.data(), bytes), LOCKSTEP_OK) << lockstep_last_error();
    return to;
  }
};

// A transpose of an array in slabs, with blocks on the seats' devices.
struct transpose {
  int64_t rows, cols;
  lockstep_grid src, dst;
  std::vector<float> whole;
  std::vector<std::unique_ptr<device_block>> from, to, back;
  std::vector<lockstep_part> in, out, again;
  lockstep_ranks_plan *turn = nullptr, *return_ = nullptr;

  transpose(lockstep_context* c, lockstep_comm* comm, const std::vector<std::string>& seats, int64_t r, int64_t n)
      : rows(r), cols(n) {
    const auto parts = static_cast<int32_t>(seats.size());
    const int64_t shape[] = {rows, cols}, turned[] = {cols, rows};
    src = lockstep_grid_slabs(4, 2, shape, parts), dst = lockstep_grid_slabs(4, 2, turned, parts);
    for (int64_t i = 0; i < rows * cols; ++i) whole.push_back(static_cast<float>(i));
    for (int32_t s = 0; s < parts; ++s) {
      int64_t low[2], length[2], to_low[2], to_length[2];
      EXPECT_EQ(lockstep_grid_box(&src, s, low, length), LOCKSTEP_OK);
      EXPECT_EQ(lockstep_grid_box(&dst, s, to_low, to_length), LOCKSTEP_OK);
      const std::string& name = seats[static_cast<size_t>(s)];
      const auto elements = [](const int64_t* l) { return static_cast<size_t>(l[0] * l[1]); };
      from.push_back(std::make_unique<device_block>(c, name, elements(length)));
      to.push_back(std::make_unique<device_block>(c, name, elements(to_length)));
      back.push_back(std::make_unique<device_block>(c, name, elements(length)));
      from.back()->write(whole.data() + low[0] * cols);
      in.push_back(lockstep_part_packed(from.back()->data, 2, length));
      out.push_back(lockstep_part_packed(to.back()->data, 2, to_length));
      again.push_back(lockstep_part_packed(back.back()->data, 2, length));
    }
    const int32_t perm[] = {1, 0};
    EXPECT_EQ(lockstep_ranks_permute(comm, &src, perm, &dst, nullptr, &turn), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_EQ(lockstep_ranks_permute(comm, &dst, perm, &src, nullptr, &return_), LOCKSTEP_OK) << lockstep_last_error();
  }
  void close() {
    lockstep_ranks_plan_destroy(std::exchange(turn, nullptr));
    lockstep_ranks_plan_destroy(std::exchange(return_, nullptr));
  }
  std::vector<float> wanted(size_t seat) const {  // of dst's block
    int64_t low[2], length[2];
    EXPECT_EQ(lockstep_grid_box(&dst, static_cast<int32_t>(seat), low, length), LOCKSTEP_OK);
    std::vector<float> want;
    for (int64_t i = 0; i < length[0]; ++i)
      for (int64_t j = 0; j < rows; ++j) want.push_back(whole[static_cast<size_t>(j * cols + low[0] + i)]);
    return want;
  }
};

TEST_F(Devices, MemoryThatIsNotTheSeats) {
  const std::vector<std::string> seats = {device(0), device(0)};
  lockstep_comm* comm = open(seats, "engine");
  ASSERT_NE(comm, nullptr) << text;
  {
    transpose t(context, comm, seats, 40, 30);
    std::vector<float> host(40 * 30);
    const auto refuses = [&](void* data, const std::string& words) {
      std::vector<lockstep_part> in = t.in;
      in[1].data = data;
      EXPECT_EQ(lockstep_ranks_execute(t.turn, in.data(), t.out.data(), nullptr), LOCKSTEP_INVALID_ARGUMENT) << words;
      EXPECT_NE(std::string(lockstep_last_error()).find(words), std::string::npos) << lockstep_last_error();
      EXPECT_EQ(lockstep_ranks_synchronize(comm), LOCKSTEP_INVALID_ARGUMENT);  // once more
    };
    refuses(nullptr, "src[1].data is NULL");
    refuses(host.data(), "src[1].data is host memory, but rank 1 is on " + device(0));
    if (several) {
      const device_block other(context, device(1), 40 * 30);
      refuses(other.data, "src[1].data is memory of device 1, but rank 1 is on " + device(0));
    }
    // The communicator still works.
    ASSERT_EQ(lockstep_ranks_execute(t.turn, t.in.data(), t.out.data(), nullptr), LOCKSTEP_OK) << lockstep_last_error();
    for (size_t s = 0; s < seats.size(); ++s) EXPECT_EQ(t.to[s]->read(), t.wanted(s));
    t.close();
  }
  lockstep_comm_destroy(comm);
}

struct placement {
  std::vector<std::string> seats;
  const char* data;
};
std::vector<placement> placements(bool several) {
  const std::string a = device(0), b = device(1);
  std::vector<placement> all = {{{a, a, a}, nullptr}, {{a, a, a}, "engine"}, {{a, a}, "staged"}};
  if (several) all.push_back({{a, b}, nullptr}), all.push_back({{b, a, b, device(0)}, "engine"});
  return all;
}

// The blocks are written on the callers' streams just before, and read on them just after, without anybody waiting.
TEST_F(Devices, StreamsOfTheCaller) {
  for (const placement& p : placements(several))
    for (const bool in_parts : {true, false}) {
      const bool one_device = std::count(p.seats.begin(), p.seats.end(), p.seats[0]) == std::ssize(p.seats);
      if (!in_parts && !one_device) continue;
      lockstep_comm* comm = open(p.seats, p.data, 0, 2048);
      ASSERT_NE(comm, nullptr) << text;
      {
        transpose t(context, comm, p.seats, 64, 48);
        struct caller {
          const lockstep_peer_table* table = nullptr;
          int32_t device = 0;
          void* stream = nullptr;
          std::unique_ptr<device_block> before, after, other;
        };
        std::vector<caller> callers(p.seats.size());
        for (size_t s = 0; s < callers.size(); ++s) {
          caller& c = callers[s];
          ASSERT_EQ(lockstep_peers_get(p.seats[s].c_str(), &c.table, &c.device), LOCKSTEP_OK);
          if (in_parts || s == 0)
            ASSERT_EQ(c.table->stream_create(c.device, &c.stream), LOCKSTEP_OK);
          else
            c.stream = callers[0].stream;
          c.before = std::make_unique<device_block>(context, p.seats[s], t.from[s]->bytes / sizeof(float));
          c.after = std::make_unique<device_block>(context, p.seats[s], t.to[s]->bytes / sizeof(float));
          c.other = std::make_unique<device_block>(context, p.seats[s], t.to[s]->bytes / sizeof(float));
          c.before->write(t.from[s]->read().data());
          c.other->write(std::vector<float>(t.to[s]->bytes / sizeof(float), -2.0f).data());
        }
        const auto copy = [&](size_t s, const device_block& from, const device_block& to) {
          const auto n = static_cast<int64_t>(from.bytes / sizeof(float));
          const int32_t same[] = {0};
          const lockstep_permute_desc d = lockstep_permute_packed(sizeof(float), 1, &n, same);
          lockstep_options o = lockstep_options_defaults();
          o.backend = p.seats[s].c_str();
          o.flags = LOCKSTEP_ASYNC;
          o.stream = callers[s].stream;
          EXPECT_EQ(lockstep_permute(context, &d, from.data, to.data, &o), LOCKSTEP_OK) << lockstep_last_error();
        };
        for (int round = 0; round < 10; ++round) {
          for (size_t s = 0; s < callers.size(); ++s)
            t.from[s]->write(std::vector<float>(t.from[s]->bytes / sizeof(float), -1.0f).data());
          lockstep_options o = lockstep_options_defaults();
          o.flags = LOCKSTEP_ASYNC;
          if (!in_parts) o.stream = callers[0].stream;
          std::vector<lockstep_part> out = t.out;
          for (size_t s = 0; s < callers.size(); ++s) {
            copy(s, *callers[s].before, *t.from[s]);
            copy(s, *callers[s].other, *t.to[s]);  // what is written to dst before stays under the results
            if (in_parts) out[s].stream = callers[s].stream;
          }
          ASSERT_EQ(lockstep_ranks_execute(t.turn, t.in.data(), out.data(), &o), LOCKSTEP_OK) << lockstep_last_error();
          for (size_t s = 0; s < callers.size(); ++s) copy(s, *t.to[s], *callers[s].after);
          ASSERT_EQ(lockstep_synchronize(context), LOCKSTEP_OK) << lockstep_last_error();
          for (size_t s = 0; s < callers.size(); ++s)
            ASSERT_EQ(callers[s].after->read(), t.wanted(s))
                << joined(p.seats, ",") << ", plane " << (p.data != nullptr ? p.data : "any") << ", seat " << s;
        }
        EXPECT_EQ(lockstep_ranks_synchronize(comm), LOCKSTEP_OK) << lockstep_last_error();
        for (size_t s = 0; s < callers.size(); ++s) {
          if (!in_parts && s > 0) continue;
          EXPECT_EQ(lockstep_release_stream(context, p.seats[s].c_str(), callers[s].stream), LOCKSTEP_OK);
          callers[s].table->stream_destroy(callers[s].device, callers[s].stream);
        }
        t.close();
      }
      lockstep_comm_destroy(comm);
    }
}

// What each reads, the one before has written, and nobody waits between.
TEST_F(Devices, AsynchronousChains) {
  for (const placement& p : placements(several)) {
    lockstep_comm* comm = open(p.seats, p.data, 0, 4096);
    ASSERT_NE(comm, nullptr) << text;
    {
      transpose t(context, comm, p.seats, 100, 70);
      lockstep_options o = lockstep_options_defaults();
      o.flags = LOCKSTEP_ASYNC;
      for (int round = 0; round < 5; ++round) {
        ASSERT_EQ(lockstep_ranks_execute(t.turn, (round == 0 ? t.in : t.again).data(), t.out.data(), &o), LOCKSTEP_OK)
            << lockstep_last_error();
        ASSERT_EQ(lockstep_ranks_execute(t.return_, t.out.data(), t.again.data(), &o), LOCKSTEP_OK);
      }
      if (p.data != nullptr)
        ASSERT_EQ(lockstep_ranks_synchronize(comm), LOCKSTEP_OK) << lockstep_last_error();
      else
        t.close();  // waits, too
      for (size_t s = 0; s < p.seats.size(); ++s) EXPECT_EQ(t.back[s]->read(), t.from[s]->read()) << "seat " << s;
      t.close();
    }
    lockstep_comm_destroy(comm);
  }
}

// Offsets of which the first is far into the arrays: what lies before is not copied, and the results are the CPU's.
TEST_F(Devices, CopiesBeginAtTheFirstOffset) {
  constexpr int64_t lead = 1'000'000 + 77, n = 1000, all = lead + n;
  std::vector<float> x(all, -7), y(all, -9);
  for (int64_t i = lead; i < all; ++i)
    x[static_cast<size_t>(i)] = static_cast<float>(i % 37), y[static_cast<size_t>(i)] = 2;
  const std::vector<int64_t> offsets = {lead, lead + 3, lead + 3, lead + 600, all};
  constexpr int64_t segments = 4;
  const auto compare = [&](const char* what, const auto& call, size_t bytes) {
    std::vector<double> want(all, -1), got(all, -1);
    lockstep_options o = lockstep_options_defaults();
    ASSERT_EQ(call(want.data(), &o), LOCKSTEP_OK) << what << ": " << lockstep_last_error();
    const std::string name = device(0);
    o.backend = name.c_str();
    ASSERT_EQ(call(got.data(), &o), LOCKSTEP_OK) << what << ": " << lockstep_last_error();
    lockstep_run_info info{};
    info.size = sizeof info;
    ASSERT_EQ(lockstep_last_run(&info), LOCKSTEP_OK);
    EXPECT_EQ(info.backend, backend()) << what;
    EXPECT_GE(info.staged_bytes, bytes) << what;
    EXPECT_LE(info.staged_bytes, bytes + 4096) << what;
    EXPECT_EQ(std::memcmp(got.data(), want.data(), all * sizeof(double)), 0) << what;
  };
  compare(
      "reduce",
      [&](double* dst, const lockstep_options* o) {
        const auto d = lockstep_reduce_segments(LOCKSTEP_SUM, LOCKSTEP_F32, segments, offsets.data());
        return lockstep_reduce(context, &d, x.data(), dst, o);
      },
      n * 4);
  compare(
      "square_sum",
      [&](double* dst, const lockstep_options* o) {
        const auto d = lockstep_reduce_segments(LOCKSTEP_NORM2, LOCKSTEP_F32, segments, offsets.data());
        return lockstep_square_sum(context, &d, x.data(), dst, o);
      },
      n * 4);
  compare(
      "scan",
      [&](double* dst, const lockstep_options* o) {
        const auto d = lockstep_scan_segments(LOCKSTEP_SUM, LOCKSTEP_F32, segments, offsets.data());
        return lockstep_scan(context, &d, x.data(), dst, o);
      },
      n * 4 + n * lockstep_dtype_bytes(lockstep_scan_segments(LOCKSTEP_SUM, LOCKSTEP_F32, 0, nullptr).result));
  compare(
      "scan in place",
      [&](double* dst, const lockstep_options* o) {
        auto* const floats = reinterpret_cast<float*>(dst);
        std::copy(x.begin(), x.end(), floats);
        const auto d = lockstep_scan_segments(LOCKSTEP_MAX, LOCKSTEP_F32, segments, offsets.data());
        return lockstep_scan(context, &d, floats, floats, o);
      },
      n * 4);
  compare(
      "sums",
      [&](double* dst, const lockstep_options* o) {
        const auto d = lockstep_sums_segments(LOCKSTEP_SUMS_DOT, LOCKSTEP_F32, segments, offsets.data(), y.data());
        return lockstep_sums(context, &d, x.data(), dst, o);
      },
      n * 8);
}

// Counts what a context's backends allocate: the fake takes its page-locked memory from there.
struct counted {
  size_t taken = 0, held = 0;
  lockstep_allocator allocator{this,
                               [](void* user, size_t bytes, size_t alignment) {
                                 auto& c = *static_cast<counted*>(user);
                                 ++c.taken, ++c.held;
                                 return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
                               },
                               [](void* user, void* pointer, size_t, size_t) {
                                 --static_cast<counted*>(user)->held;
                                 std::free(pointer);
                               }};
};

// Locking pages takes milliseconds and stops all devices, so a plan uses what the one before has given back.
TEST_F(Devices, PageLockedMemoryIsKept) {
  if (backend() != "fake") return;  // CUDA has an allocator of its own
  counted all;
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "cpu";
  o.threads = 1;
  o.allocator = &all.allocator;
  lockstep_context* const of_blocks = context;
  ASSERT_EQ(lockstep_context_create(&o, &context), LOCKSTEP_OK) << lockstep_last_error();
  const std::vector<std::string> seats = {device(0), "cpu", device(3)};
  lockstep_comm* comm = open(seats, nullptr);
  ASSERT_NE(comm, nullptr) << text;
  // A sum over the middle of an array needs a packed copy of each block, and joins on the host.
  const auto sum = [&](int64_t rows) {
    const int64_t cube[] = {3, rows, 70};
    const lockstep_grid g = lockstep_grid_slabs(4, 3, cube, 3);
    std::vector<std::vector<float>> blocks(3, std::vector<float>(static_cast<size_t>(rows) * 70, 1));
    std::vector<float> result(70);
    std::vector<lockstep_part> in, out;
    for (auto& b : blocks) {
      const int64_t length[] = {1, rows, 70};
      in.push_back(lockstep_part_packed(b.data(), 3, length));
      out.push_back(lockstep_part_packed(result.data(), 1, length + 2));
    }
    lockstep_ranks_plan* plan = nullptr;
    ASSERT_EQ(lockstep_ranks_reduce(comm, &g, LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F32, 3, nullptr, nullptr, &plan),
              LOCKSTEP_OK)
        << lockstep_last_error();
    for (int round = 0; round < 2; ++round)
      ASSERT_EQ(lockstep_ranks_execute(plan, in.data(), out.data(), nullptr), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_EQ(result, std::vector<float>(70, static_cast<float>(3 * rows)));
    lockstep_ranks_plan_destroy(plan);
  };
  const auto transposed = [&] {
    transpose t(of_blocks, comm, seats, 90, 70);
    ASSERT_EQ(lockstep_ranks_execute(t.turn, t.in.data(), t.out.data(), nullptr), LOCKSTEP_OK) << lockstep_last_error();
    for (size_t s = 0; s < seats.size(); ++s) EXPECT_EQ(t.to[s]->read(), t.wanted(s));
    t.close();
  };
  transposed(), sum(50);
  const size_t locked = all.taken;
  for (int round = 0; round < 3; ++round) transposed(), sum(50), sum(49);
  EXPECT_EQ(all.taken - locked, 0u) << "allocations of plans whose sizes were there before";
  lockstep_comm_destroy(comm);
  lockstep_context_destroy(std::exchange(context, of_blocks));
  EXPECT_EQ(all.held, 0u) << "blocks that were not given back";
}

// The stream of a seat is busy for longer than the deadline.
TEST_F(Devices, AStreamThatTakesTooLong) {
  const std::vector<std::string> seats = {device(0), device(0)};
  lockstep_comm* comm = open(seats, "engine", 30);
  ASSERT_NE(comm, nullptr) << text;
  {
    transpose t(context, comm, seats, 40, 30);
    const int64_t n = backend() == "fake" ? 1024 : 8192;
    const device_block big(context, device(0), static_cast<size_t>(n * n)),
        other(context, device(0), static_cast<size_t>(n * n));
    const lockstep_peer_table* table = nullptr;
    int32_t number = 0;
    void* stream = nullptr;
    ASSERT_EQ(lockstep_peers_get(device(0).c_str(), &table, &number), LOCKSTEP_OK);
    ASSERT_EQ(table->stream_create(number, &stream), LOCKSTEP_OK);
    lockstep_options o = lockstep_options_defaults();
    o.backend = seats[0].c_str();
    o.flags = LOCKSTEP_ASYNC;
    o.stream = stream;
    const lockstep_transpose_desc d = lockstep_transpose_packed(4, n, n);
    for (int k = 0; k < 1000; ++k)
      ASSERT_EQ(lockstep_transpose(context, &d, big.data, other.data, &o), LOCKSTEP_OK) << lockstep_last_error();
    t.out[1].stream = stream;
    EXPECT_EQ(lockstep_ranks_execute(t.turn, t.in.data(), t.out.data(), nullptr), LOCKSTEP_RANK_LOST);
    EXPECT_NE(std::string(lockstep_last_error()).find("did not finish its work in 30 ms"), std::string::npos)
        << lockstep_last_error();
    EXPECT_EQ(lockstep_ranks_execute(t.turn, t.in.data(), t.out.data(), nullptr), LOCKSTEP_RANK_LOST);
    EXPECT_EQ(lockstep_release_stream(context, seats[0].c_str(), stream), LOCKSTEP_OK);  // waits
    t.close();
    lockstep_comm_destroy(std::exchange(comm, nullptr));
    table->stream_destroy(number, stream);
  }
}

}  // namespace
}  // namespace lockstep::ranks_test
