// operations.cpp - see operations.hpp.
#include "operations.hpp"

#include <sys/mman.h>

#include <stdexcept>

#include "fake_cudart.hpp"
#include "lockstep/group.h"

namespace faults {
namespace {

void require(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error("the test's own runtime call failed");
}

constexpr int64_t million = 1 << 20;

lockstep_transpose_desc square(int64_t n) { return lockstep_transpose_packed(4, n, n); }
lockstep_permute_desc turned(int64_t a, int64_t b, int64_t c) {
  const int64_t shape[] = {a, b, c};
  const int32_t perm[] = {2, 0, 1};
  return lockstep_permute_packed(4, 3, shape, perm);
}
const double star[] = {0.5, 0.25, 1.0, 0.25, 0.5, 0.125, 0.25, 0.5, 1.0, 2.0, 1.0, 0.5, 0.25};
lockstep_stencil_desc stencil(int32_t rank, int64_t n, int32_t sweeps,
                              lockstep_boundary boundary = LOCKSTEP_BOUNDARY_MIRROR) {
  const int64_t shape[] = {n, n, n};
  lockstep_stencil_desc d = lockstep_stencil_packed(LOCKSTEP_F32, rank, shape, 1, star, boundary);
  d.sweeps = sweeps;
  return d;
}
lockstep_shuffle_desc shuffle(int64_t n) { return lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_DOWN, 4, n, 32, 1); }

using context = lockstep_context*;
using status = lockstep_status;

// first(), then each next one while all is well.
template <class... Steps>
status in_turn(const Steps&... steps) {
  status s = LOCKSTEP_OK;
  (void)((s = steps(), s == LOCKSTEP_OK) && ...);
  return s;
}

template <class Desc, class Create>
status planned(context c, world& w, const Desc& d, const Create& create, const void* src, void* dst) {
  lockstep_plan* plan = nullptr;
  status s = create(c, &d, &w.options, &plan);
  lockstep_options o = lockstep_options_defaults();
  for (int twice = 0; twice < 2 && s == LOCKSTEP_OK; ++twice) s = lockstep_plan_execute(plan, src, dst, &o);
  lockstep_plan_destroy(plan);
  return s;
}

status memory_of(context c, lockstep_memory kind, world& w) {
  void* p = nullptr;
  status s = lockstep_alloc(c, "cuda", kind, 5000, &p);
  if (s != LOCKSTEP_OK) return p == nullptr ? s : LOCKSTEP_INTERNAL;
  s = in_turn([&] { return lockstep_copy(c, "cuda", w.host_a.data(), p, 5000); },
              [&] { return lockstep_copy(c, "cuda", p, w.host_b.data(), 5000); });
  w.text = lockstep_last_error();
  const status freed = lockstep_free(c, "cuda", kind, 5000, p);
  return s != LOCKSTEP_OK ? s : freed;
}

status locked(context c, world& w) {
  unsigned char* const a = w.host_a.data() + 4096;
  status s = lockstep_pin(c, "cuda", a, 5000);
  if (s != LOCKSTEP_OK) return s;
  s = lockstep_copy(c, "cuda", a, w.device_a, 5000);
  w.text = lockstep_last_error();
  const status gone = lockstep_unpin(c, "cuda", a);
  if (s == LOCKSTEP_OK) w.text = lockstep_last_error();
  if (gone != LOCKSTEP_OK) (void)lockstep_unpin(c, "cuda", a);  // what was not let go can be, later
  return s != LOCKSTEP_OK ? s : gone;
}

status measured(context c, world& w) {
  lockstep_plan* plan = nullptr;
  const lockstep_shuffle_desc d = shuffle(million);
  double ms[3];
  status s = lockstep_plan_shuffle(c, &d, &w.options, &plan);
  if (s == LOCKSTEP_OK) s = lockstep_plan_measure(plan, w.device_a, w.device_b, LOCKSTEP_COLD, 3, ms);
  lockstep_plan_destroy(plan);
  return s;
}

}  // namespace

namespace {
std::vector<unsigned char> shared_a, shared_b;
}
void world::prepare() {
  for (auto* all : {&shared_a, &shared_b}) {
    all->reserve(bytes);
    constexpr uintptr_t page = 4096;  // large pages: a fork copies their tables, 40 % of a child's time else
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(all->data()) + page - 1) / page * page;
    (void)madvise(reinterpret_cast<void*>(begin), bytes - page, MADV_HUGEPAGE);
    all->resize(bytes);
  }
  for (size_t i = 0; i < bytes; ++i) shared_a[i] = static_cast<unsigned char>((i * 2654435761u >> 13) % 61);
}

world::world() : host_a(shared_a), host_b(shared_b), offsets{0, 10, 10, 4096, 100000} {
  require(cudaSetDevice(0));
  require(cudaMalloc(&device_a, bytes));
  require(cudaMalloc(&device_b, bytes));
  require(cudaHostAlloc(&pinned_a, bytes, 0));
  require(cudaHostAlloc(&pinned_b, bytes, 0));
  require(cudaMallocManaged(&managed, bytes, cudaMemAttachGlobal));
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  require(cudaSetDevice(1));  // the caller's device is not the one that is used
  require(cudaMalloc(&other_device, bytes));
  options.backend = "cuda";
}
world::~world() {
  fake::fail(0, cudaSuccess);
  (void)cudaStreamDestroy(stream);
  for (void* p : {device_a, device_b, other_device, managed}) (void)cudaFree(p);
  for (void* p : {pinned_a, pinned_b}) (void)cudaFreeHost(p);
}

std::vector<operation> operations() {
  std::vector<operation> all;
  const auto add = [&](const char* name, std::function<status(context, world&)> run, bool large = false,
                       long keeps = 0) {
    all.push_back({name, std::move(run), large, keeps});
  };
  // Every op on device memory.
  add("transpose", [](context c, world& w) {
    const auto small = lockstep_transpose_packed(4, 65, 33), wide = square(1024);
    return in_turn([&] { return lockstep_transpose(c, &small, w.device_a, w.device_b, &w.options); },
                   [&] { return lockstep_transpose(c, &wide, w.device_a, w.device_b, &w.options); },
                   [&] { return lockstep_transpose(c, &wide, w.device_a, w.device_a, &w.options); });
  });
  add("permute", [](context c, world& w) {
    const auto plain = turned(64, 96, 80), narrow = turned(1000, 7, 3);
    return in_turn([&] { return lockstep_permute(c, &plain, w.device_a, w.device_b, &w.options); },
                   [&] { return lockstep_permute(c, &narrow, w.device_a, w.device_b, &w.options); });
  });
  add("square_sum", [](context c, world& w) {
    const auto f32 = lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, million, 1);
    const auto f64 = lockstep_reduce_full(LOCKSTEP_NORM2, LOCKSTEP_F64, million, 1);
    return in_turn([&] { return lockstep_square_sum(c, &f32, w.device_a, w.device_b, &w.options); },
                   [&] { return lockstep_square_sum(c, &f64, w.device_a, w.device_b, &w.options); });
  });
  add("reduce", [](context c, world& w) {
    const auto sum = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F64, million, 1);
    const auto columns = lockstep_reduce_columns(LOCKSTEP_SUM, LOCKSTEP_F32, 1000, 300, 300);
    const auto rows = lockstep_reduce_rows(LOCKSTEP_ARGMAX, LOCKSTEP_I32, 700, 900, 900);
    return in_turn([&] { return lockstep_reduce(c, &sum, w.device_a, w.device_b, &w.options); },
                   [&] { return lockstep_reduce(c, &columns, w.device_a, w.device_b, &w.options); },
                   [&] { return lockstep_reduce(c, &rows, w.device_a, w.device_b, &w.options); });
  });
  add("reduce segments, offsets and dst on the host", [](context c, world& w) {
    const auto d = lockstep_reduce_segments(LOCKSTEP_SUM, LOCKSTEP_F32, 4, w.offsets.data());
    return lockstep_reduce(c, &d, w.device_a, w.host_b.data(), &w.options);
  });
  add("scan", [](context c, world& w) {
    const auto sum = lockstep_scan_full(LOCKSTEP_SUM, LOCKSTEP_F32, million);
    const auto columns = lockstep_scan_columns(LOCKSTEP_SUM, LOCKSTEP_I32, 3000, 50, 50);
    return in_turn([&] { return lockstep_scan(c, &sum, w.device_a, w.device_b, &w.options); },
                   [&] { return lockstep_scan(c, &columns, w.device_a, w.device_b, &w.options); });
  });
  add("stencil", [](context c, world& w) {
    const auto line = stencil(1, 100000, 3), plane = stencil(2, 512, 2), cube = stencil(3, 128, 1),
               wrap = stencil(2, 300, 1, LOCKSTEP_BOUNDARY_WRAP);
    return in_turn([&] { return lockstep_stencil(c, &line, w.device_a, w.device_b, &w.options); },
                   [&] { return lockstep_stencil(c, &plane, w.device_a, w.device_b, &w.options); },
                   [&] { return lockstep_stencil(c, &cube, w.device_a, w.device_b, &w.options); },
                   [&] { return lockstep_stencil(c, &wrap, w.device_a, w.device_b, &w.options); });
  });
  // Twice as many calls as there are slots, half of them on either stream: a slot changes hands.
  add(
      "stencil, coefficients in __constant__ memory",
      [](context c, world& w) {
        const auto line = stencil(1, 1000, 1);
        lockstep_options o = w.options;
        o.flags |= LOCKSTEP_ASYNC;
        o.variant = "shared_constant";
        for (int i = 0; i < 64; ++i) {
          o.stream = i < 32 ? nullptr : w.stream;
          if (const status s = lockstep_stencil(c, &line, w.device_a, w.device_b, &o); s != LOCKSTEP_OK) return s;
        }
        return lockstep_synchronize(c);
      },
      false, 32);  // a slot's event
  add("shuffle", [](context c, world& w) {
    const auto d = shuffle(million);
    return lockstep_shuffle(c, &d, w.device_a, w.device_b, &w.options);
  });
  // Other kinds of memory, whole.
  add("pageable host memory", [](context c, world& w) {
    const auto d = square(300);
    return lockstep_transpose(c, &d, w.host_a.data(), w.host_b.data(), &w.options);
  });
  add("pageable host memory in place, and a dst with gaps", [](context c, world& w) {
    const auto d = square(300);
    lockstep_transpose_desc gaps = d;
    gaps.dst_ld = 320;
    return in_turn([&] { return lockstep_transpose(c, &d, w.host_b.data(), w.host_b.data(), &w.options); },
                   [&] { return lockstep_transpose(c, &gaps, w.host_a.data(), w.host_b.data(), &w.options); });
  });
  add("pinned, managed and another device's memory", [](context c, world& w) {
    const auto d = square(300);
    return in_turn([&] { return lockstep_transpose(c, &d, w.pinned_a, w.managed, &w.options); },
                   [&] { return lockstep_transpose(c, &d, w.other_device, w.pinned_b, &w.options); });
  });
  add("another device's memory, out of a pool", [](context c, world& w) {
    void* other = nullptr;
    status s = lockstep_alloc(c, "cuda:1", LOCKSTEP_DEVICE, 300 * 300 * 4, &other);
    if (s != LOCKSTEP_OK) return s;
    const auto d = square(300);
    s = in_turn([&] { return lockstep_transpose(c, &d, other, w.device_a, &w.options); },
                [&] { return lockstep_transpose(c, &d, w.device_a, other, &w.options); });
    w.text = lockstep_last_error();
    const status freed = lockstep_free(c, "cuda:1", LOCKSTEP_DEVICE, 300 * 300 * 4, other);
    return s != LOCKSTEP_OK ? s : freed;
  });
  // Slab by slab; and one way, by the copy crew.
  add(
      "slabs of pageable memory",
      [](context c, world& w) {
        const auto d = shuffle(10 * million);
        return lockstep_shuffle(c, &d, w.host_a.data(), w.host_b.data(), &w.options);
      },
      true);
  add(
      "slabs of pinned memory",
      [](context c, world& w) {
        const auto d = square(3200);
        return lockstep_transpose(c, &d, w.pinned_a, w.pinned_b, &w.options);
      },
      true);
  add(
      "slabs with scratch, from pinned to pageable memory",
      [](context c, world& w) {
        const auto d = stencil(2, 3072, 20);
        return lockstep_stencil(c, &d, w.pinned_a, w.host_b.data(), &w.options);
      },
      true);
  add(
      "a long upload",
      [](context c, world& w) {
        const auto d = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, 10 * million, 1);
        return lockstep_reduce(c, &d, w.host_a.data(), w.host_b.data(), &w.options);
      },
      true);
  add(
      "a long download",
      [](context c, world& w) {
        const auto d = shuffle(10 * million);
        return lockstep_shuffle(c, &d, w.device_a, w.host_b.data(), &w.options);
      },
      true);
  // Plans, queues, memory, measuring.
  add("plans", [](context c, world& w) {
    const auto sum = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, million, 1);
    const auto sweeps = stencil(2, 256, 20);
    return in_turn([&] { return planned(c, w, sum, lockstep_plan_reduce, w.device_a, w.device_b); },
                   [&] { return planned(c, w, sweeps, lockstep_plan_stencil, w.host_a.data(), w.host_b.data()); });
  });
  // Two that run together, and one too long for that.
  add("a group and its plan", [](context c, world& w) {
    lockstep_reduce_desc descs[3];
    const void* srcs[3];
    void* dsts[3];
    const int64_t lengths[3] = {100, 5000, 300000};
    for (int i = 0; i < 3; ++i) {
      descs[i] = lockstep_reduce_full(LOCKSTEP_NORM2, LOCKSTEP_F32, lengths[i], 1);
      srcs[i] = w.device_a;
      dsts[i] = static_cast<double*>(w.device_b) + i;
    }
    lockstep_options async = w.options;
    async.flags |= LOCKSTEP_ASYNC;
    async.stream = w.stream;
    lockstep_plan* plan = nullptr;
    const status s = in_turn(
        [&] {
          return lockstep_execute_group(c, LOCKSTEP_SQUARE_SUM, descs, sizeof descs[0], 3, srcs, dsts, &w.options);
        },
        [&] {
          return lockstep_plan_group(c, LOCKSTEP_SQUARE_SUM, descs, sizeof descs[0], 3, srcs, dsts, &w.options, &plan);
        },
        [&] { return lockstep_plan_execute(plan, nullptr, nullptr, nullptr); },
        [&] { return lockstep_plan_execute(plan, nullptr, nullptr, &async); }, [&] { return lockstep_synchronize(c); });
    w.text = lockstep_last_error();
    lockstep_plan_destroy(plan);
    return s;
  });
  add("an asynchronous call", [](context c, world& w) {
    const auto d = square(300);
    const auto sum = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, million, 1);
    lockstep_options o = w.options;
    o.flags |= LOCKSTEP_ASYNC;
    return in_turn([&] { return lockstep_transpose(c, &d, w.device_a, w.device_b, &o); },
                   [&] { return lockstep_reduce(c, &sum, w.device_a, w.device_b, &o); },
                   [&] { return lockstep_synchronize(c); });
  });
  add("the caller's stream", [](context c, world& w) {
    const auto d = square(300);
    lockstep_options o = w.options;
    o.stream = w.stream;
    return in_turn([&] { return lockstep_transpose(c, &d, w.device_a, w.device_b, &o); },
                   [&] { return lockstep_transpose(c, &d, w.host_a.data(), w.host_b.data(), &o); });
  });
  add("a captured stream", [](context c, world& w) {
    const auto d = square(300);
    const auto sweeps = stencil(2, 256, 20);
    lockstep_options o = w.options;
    o.stream = w.stream;
    o.flags |= LOCKSTEP_ASYNC;
    fake::capture(w.stream, true);
    const status s = in_turn([&] { return lockstep_transpose(c, &d, w.device_a, w.device_b, &o); },
                             [&] { return lockstep_stencil(c, &sweeps, w.device_a, w.device_b, &o); });
    fake::capture(w.stream, false);
    w.text = lockstep_last_error();
    const status late = lockstep_synchronize(c);  // also fetches what a failed call left for it
    return s != LOCKSTEP_OK ? s : late;
  });
  add("device memory", [](context c, world& w) { return memory_of(c, LOCKSTEP_DEVICE, w); });
  add("pinned memory", [](context c, world& w) { return memory_of(c, LOCKSTEP_PINNED, w); });
  add("managed memory", [](context c, world& w) { return memory_of(c, LOCKSTEP_MANAGED, w); });
  add("memory of the caller's, page-locked", locked);
  add("a device's description", [](context, world&) {
    lockstep_device_info info{};
    info.size = sizeof info;
    return lockstep_device_get("cuda", 0, &info);
  });
  add("measuring", measured);
  add("limits", [](context c, world&) {
    double ms[2];
    for (const lockstep_limit limit :
         {LOCKSTEP_LIMIT_COPY, LOCKSTEP_LIMIT_READ, LOCKSTEP_LIMIT_LAUNCH, LOCKSTEP_LIMIT_BOTH_PINNED,
          LOCKSTEP_LIMIT_UPLOAD_PAGEABLE, LOCKSTEP_LIMIT_FMA_F32, LOCKSTEP_LIMIT_FMA_F64})
      if (const status s = lockstep_measure_limit(c, "cuda", limit, million, 0, 2, ms); s != LOCKSTEP_OK) return s;
    return LOCKSTEP_OK;
  });
  return all;
}

std::vector<host_call> host_calls() {
  return {
      {"a small transpose",
       [](context c, world& w) {
         const auto d = square(300);
         return lockstep_transpose(c, &d, w.host_a.data(), w.host_b.data(), &w.options);
       },
       360000},
      {"a sum",
       [](context c, world& w) {
         const auto d = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, million, 1);
         return lockstep_reduce(c, &d, w.host_a.data(), w.host_b.data(), &w.options);
       },
       8},
      {"a stencil with scratch",
       [](context c, world& w) {
         const auto d = stencil(2, 256, 20);
         return lockstep_stencil(c, &d, w.host_a.data(), w.host_b.data(), &w.options);
       },
       256 * 256 * 4},
      {"segments",
       [](context c, world& w) {
         const auto d = lockstep_reduce_segments(LOCKSTEP_SUM, LOCKSTEP_F32, 4, w.offsets.data());
         return lockstep_reduce(c, &d, w.host_a.data(), w.host_b.data(), &w.options);
       },
       32},
      {"slabs",
       [](context c, world& w) {
         const auto d = shuffle(10 * million);
         return lockstep_shuffle(c, &d, w.host_a.data(), w.host_b.data(), &w.options);
       },
       static_cast<size_t>(40 * million)},
  };
}

}  // namespace faults
