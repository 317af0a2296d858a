// group_time.cpp - what 1,000 small calls cost as a group, beside single calls: device time of a plan's execution
// (warm, and with cold caches), then the host's time of blocking plans, of groups in one call, and of single calls,
// blocking and queued. Medians, in microseconds.
//   group_time [BACKEND [PART OF A ROW'S NAME]]        BACKEND: cuda (default), cpu
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "lockstep/group.h"

namespace {

constexpr int samples = 21;

void check(lockstep_status status) {
  if (status == LOCKSTEP_OK) return;
  std::fprintf(stderr, "group_time: %s\n", lockstep_last_error());
  std::exit(1);
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double median(std::vector<double> all) {
  std::nth_element(all.begin(), all.begin() + static_cast<int64_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}
double host_us(int times, const std::function<void()>& body) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i) {
    const double begin = now_us();
    body();
    all.push_back(now_us() - begin);
  }
  return median(all);
}

struct shape {
  const char* name;
  lockstep_op op;
  lockstep_dtype dtype;
  int count;
  int64_t least, most;  // elements; of a side of a matrix; of each of 8 rows
};
constexpr shape shapes[] = {
    {"norms f32, 1 to 16 Ki", LOCKSTEP_SQUARE_SUM, LOCKSTEP_F32, 1000, 1, 16384},
    {"norms f32, 1 Ki", LOCKSTEP_SQUARE_SUM, LOCKSTEP_F32, 1000, 1024, 1024},
    {"norms f32, 16 Ki", LOCKSTEP_SQUARE_SUM, LOCKSTEP_F32, 1000, 16384, 16384},
    {"norms bf16, 1 to 16 Ki", LOCKSTEP_SQUARE_SUM, LOCKSTEP_BF16, 1000, 1, 16384},
    {"norms f64, 1 to 16 Ki", LOCKSTEP_SQUARE_SUM, LOCKSTEP_F64, 1000, 1, 16384},
    {"norms f32, 10,000 of 100", LOCKSTEP_SQUARE_SUM, LOCKSTEP_F32, 10000, 100, 100},
    {"transpose f32, 1 to 128", LOCKSTEP_TRANSPOSE, LOCKSTEP_F32, 1000, 1, 128},
    {"transpose f16, 64 x 64", LOCKSTEP_TRANSPOSE, LOCKSTEP_F16, 1000, 64, 64},
    {"transpose f64, 128 x 128", LOCKSTEP_TRANSPOSE, LOCKSTEP_F64, 1000, 128, 128},
    {"rms f32, rows of 1 to 2 Ki", LOCKSTEP_NORMALIZE, LOCKSTEP_F32, 1000, 1, 2048},
    {"rms bf16, rows of 1 Ki", LOCKSTEP_NORMALIZE, LOCKSTEP_BF16, 1000, 1024, 1024},
};

// The descriptions of a shape, as bytes, and how much each call reads and writes.
struct group {
  std::vector<unsigned char> descs;
  size_t desc_bytes = 0;
  std::vector<const void*> srcs;
  std::vector<void*> dsts;
  size_t src_bytes = 0, dst_bytes = 0, moved = 0;

  template <class Desc>
  void add(const Desc& d, size_t in, size_t out, char* src, char* dst) {
    const auto* at = reinterpret_cast<const unsigned char*>(&d);
    descs.insert(descs.end(), at, at + sizeof d);
    desc_bytes = sizeof d;
    srcs.push_back(src + src_bytes);
    dsts.push_back(dst + dst_bytes);
    src_bytes += (in + 255) / 256 * 256;
    dst_bytes += (out + 15) / 16 * 16;
    moved += in + out;
  }
};

group group_of(const shape& s, char* src, char* dst) {
  group g;
  std::mt19937 random(7);
  const auto draw = [&] {
    return s.least + static_cast<int64_t>(random() % static_cast<uint64_t>(s.most - s.least + 1));
  };
  const size_t bytes = lockstep_dtype_bytes(s.dtype);
  for (int i = 0; i < s.count; ++i) {
    const int64_t n = draw();
    const auto elements = [&](int64_t k) { return static_cast<size_t>(n * k) * bytes; };
    if (s.op == LOCKSTEP_SQUARE_SUM) {
      g.add(lockstep_reduce_full(LOCKSTEP_NORM2, s.dtype, n, 1), elements(1), 8, src, dst);
    } else if (s.op == LOCKSTEP_TRANSPOSE) {
      const int64_t cols = draw();
      g.add(lockstep_transpose_packed(bytes, n, cols), elements(cols), elements(cols), src, dst);
    } else {
      g.add(lockstep_normalize_rows(LOCKSTEP_NORMALIZE_RMS, s.dtype, 8, n, 1e-5), elements(8), elements(8), src, dst);
    }
  }
  return g;
}

void measure(lockstep_context* c, const shape& s, const group& g) {
  lockstep_plan* plan = nullptr;
  const int64_t count = s.count;
  check(
      lockstep_plan_group(c, s.op, g.descs.data(), g.desc_bytes, count, g.srcs.data(), g.dsts.data(), nullptr, &plan));
  lockstep_run_info info{};
  info.size = sizeof info;
  check(lockstep_plan_get(plan, &info));
  std::vector<double> warm(samples), cold(samples);
  check(lockstep_plan_measure(plan, nullptr, nullptr, 0, samples, warm.data()));
  check(lockstep_plan_measure(plan, nullptr, nullptr, LOCKSTEP_COLD, samples, cold.data()));
  lockstep_options queued = lockstep_options_defaults();
  queued.flags = LOCKSTEP_ASYNC;
  const auto each = [&](const lockstep_options* o) {
    for (int i = 0; i < s.count; ++i)
      check(lockstep_execute(c, s.op, g.descs.data() + static_cast<size_t>(i) * g.desc_bytes,
                             g.srcs[static_cast<size_t>(i)], g.dsts[static_cast<size_t>(i)], o));
    if (o != nullptr) check(lockstep_synchronize(c));
  };
  each(nullptr);  // warms up
  const double blocking = host_us(samples, [&] { check(lockstep_plan_execute(plan, nullptr, nullptr, nullptr)); });
  const double at_once = host_us(samples, [&] {
    check(lockstep_execute_group(c, s.op, g.descs.data(), g.desc_bytes, count, g.srcs.data(), g.dsts.data(), nullptr));
  });
  std::printf("%-28s %-10s %6d %8.1f | %9.2f %9.2f | %9.2f %9.1f | %9.0f %9.0f\n", s.name, info.variant, s.count,
              static_cast<double>(g.moved) / 1e6, median(warm) * 1e3, median(cold) * 1e3, blocking, at_once,
              host_us(3, [&] { each(nullptr); }), host_us(3, [&] { each(&queued); }));
  std::fflush(stdout);
  lockstep_plan_destroy(plan);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const backend = argc > 1 ? argv[1] : "cuda";
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = backend;
  lockstep_context* c = nullptr;
  check(lockstep_context_create(&o, &c));
  const lockstep_memory kind = std::strcmp(backend, "cpu") == 0 ? LOCKSTEP_HOST : LOCKSTEP_DEVICE;
  std::printf("%-28s %-10s %6s %8s | %9s %9s | %9s %9s | %9s %9s\n", "us", "variant", "calls", "MB", "warm", "cold",
              "blocking", "one call", "singles", "queued");
  for (const shape& s : shapes) {
    if (argc > 2 && std::strstr(s.name, argv[2]) == nullptr) continue;
    const group sizes = group_of(s, nullptr, nullptr);
    void *src = nullptr, *dst = nullptr;
    check(lockstep_alloc(c, backend, kind, sizes.src_bytes, &src));
    check(lockstep_alloc(c, backend, kind, sizes.dst_bytes, &dst));
    std::mt19937 random(1);
    std::vector<uint16_t> bits(sizes.src_bytes / 2);
    for (uint16_t& b : bits) b = static_cast<uint16_t>(0x3800 + random() % 0x800);  // ordinary floats of every width
    check(lockstep_copy(c, backend, bits.data(), src, sizes.src_bytes));
    measure(c, s, group_of(s, static_cast<char*>(src), static_cast<char*>(dst)));
    check(lockstep_free(c, backend, kind, sizes.src_bytes, src));
    check(lockstep_free(c, backend, kind, sizes.dst_bytes, dst));
  }
  lockstep_context_destroy(c);
}
