// faults.cpp - makes the N-th allocation of the library fail, for every N: the call returns
// a status, nothing leaks, and the same context works again.
#include <atomic>
#include <cstdlib>

#include "check.hpp"

namespace lockstep::check {
namespace {
using namespace cases;

struct accountant {
  int fail_at = -1, calls = 0, live = 0;
  int64_t bytes = 0;
  bool misuse = false;
  static void* allocate(void* user, size_t size, size_t alignment) {
    auto& a = *static_cast<accountant*>(user);
    if (++a.calls == a.fail_at) return nullptr;
    ++a.live;
    a.bytes += static_cast<int64_t>(size);
    a.misuse = a.misuse || size == 0 || (alignment & (alignment - 1)) != 0;
    return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  }
  static void release(void* user, void* pointer, size_t size, size_t) {
    auto& a = *static_cast<accountant*>(user);
    --a.live;
    a.bytes -= static_cast<int64_t>(size);
    a.misuse = a.misuse || pointer == nullptr;
    std::free(pointer);
  }
};

// One of every op, on ref and auto, directly and by plan; memory of the backend.
// The first status that is not OK; what came out is compared when all went well.
lockstep_status everything(lockstep_context* context, bool& wrong) {
  for (const char* name :
       {"transpose/b4/70x50", "transpose/b4/17x33/inplace", "permute/b4/6x5x4x3/perm3,2,1,0",
        "square_sum/norm2/f64/full/5000/huge", "square_sum/ssq/f32/columns/300x70", "reduce/sum/f32/full/100000",
        "reduce/sum/i64/columns/100x40/small", "reduce/argmax/f32/nonempty/20x30",
        "stencil/f32/general/mirror/r4/100/sweeps3", "stencil/f64/general/wrap/r2/9x10x35",
        "stencil/f32/general/valid/r2/60x61/sweeps4", "shuffle/b4/idx/w16/op3/n96",
        "normalize/layer/f16/1x300001/weight", "scan/sum/f32/columns/5000x40", "sums/sqdiff/f32/full/300000",
        "reduce_axes/sum/f32/31x3x700/axes0,2", "convert/f32/f16/300x131/perm1,0/by_tenth"}) {
    const subject s(parse(name));
    if (rows_of("cpu", s.c.op).empty()) continue;
    for (const bool planned : {false, true})
      for (const char* variant : {"ref", "auto"}) {
        std::vector<unsigned char> src = s.src, dst = s.before;
        void* from = s.c.in_place ? dst.data() : src.data();
        lockstep_options o = lockstep_options_defaults();
        o.variant = variant;
        lockstep_status status = LOCKSTEP_OK;
        if (planned) {
          lockstep_plan* p = nullptr;
          status = plan(context, s.c, s.c.offsets.data(), &o, &p);
          for (int twice = 0; twice < 2 && status == LOCKSTEP_OK; ++twice) {
            dst = s.before;
            status = lockstep_plan_execute(p, from, dst.data(), nullptr);
          }
          lockstep_plan_destroy(p);
        } else {
          status = call(context, s.c, from, dst.data(), s.c.offsets.data(), &o);
        }
        if (status != LOCKSTEP_OK) return status;
        wrong = wrong || dst != s.after;
      }
  }
  void* p = nullptr;
  const lockstep_status status = lockstep_alloc(context, "cpu", LOCKSTEP_HOST, 12345, &p);
  if (status != LOCKSTEP_OK) return status;
  return lockstep_free(context, "cpu", LOCKSTEP_HOST, 12345, p);
}

TEST(Faults, EveryAllocationMayFail) {
  int last = 0;
  for (int n = 1; n < 10000; ++n) {
    accountant books;
    books.fail_at = n;
    const lockstep_allocator allocator = {&books, accountant::allocate, accountant::release};
    lockstep_context_options o = lockstep_context_defaults();
    o.backend = "cpu";
    o.threads = 2;
    o.allocator = &allocator;
    lockstep_context* context = nullptr;
    bool wrong = false;
    lockstep_status status = lockstep_context_create(&o, &context);
    if (status == LOCKSTEP_OK) status = everything(context, wrong);
    const bool reached = books.calls >= n;
    books.fail_at = -1;
    if (reached) {
      EXPECT_EQ(status, LOCKSTEP_OUT_OF_MEMORY) << "allocation " << n << ": " << lockstep_last_error();
      EXPECT_STRNE(lockstep_last_error(), "");
    }
    if (context != nullptr) {  // the next allocation succeeds: all works again
      EXPECT_EQ(everything(context, wrong), LOCKSTEP_OK)
          << "after allocation " << n << " failed: " << lockstep_last_error();
    } else {
      EXPECT_EQ(status, LOCKSTEP_OUT_OF_MEMORY);
    }
    EXPECT_FALSE(wrong) << n;
    lockstep_context_destroy(context);
    EXPECT_EQ(books.live, 0) << "leak after allocation " << n;
    EXPECT_EQ(books.bytes, 0) << "sizes given back differ, allocation " << n;
    EXPECT_FALSE(books.misuse) << n;
    if (!reached || HasFailure()) break;
    last = n;
  }
  std::printf("  %d allocations, each failed once\n", last);
  EXPECT_GE(last, 3);  // the context's queue, and workspaces
}

// Neither where the plan has taken its workspace nor where the caller brings one. (operator new and malloc:
// allocations.cpp.)
TEST(Faults, APlanAllocatesNothingWhenExecuted) {
  for (const bool brought : {false, true}) {
    accountant books;
    const lockstep_allocator allocator = {&books, accountant::allocate, accountant::release};
    lockstep_context_options o = lockstep_context_defaults();
    o.backend = "cpu";
    o.threads = 2;
    o.allocator = &allocator;
    lockstep_context* context = nullptr;
    ASSERT_EQ(lockstep_context_create(&o, &context), LOCKSTEP_OK);
    alignas(256) static unsigned char memory[1 << 21];
    lockstep_options own = lockstep_options_defaults();
    own.workspace = memory;
    own.workspace_bytes = sizeof memory;
    const lockstep_options* const options = brought ? &own : nullptr;
    for (const char* name :
         {"transpose/b4/70x50", "transpose/b4/64x64/inplace", "permute/b4/6x5x4x3/perm3,2,1,0",
          "square_sum/ssq/f32/full/100000", "reduce/sum/f32/full/1048576", "reduce/argmax/f32/columns/300x20",
          "stencil/f32/general/mirror/r4/1000/sweeps3", "shuffle/b4/idx/w16/op3/n96",
          "normalize/layer/f16/1x300001/weight", "scan/sum/f32/columns/5000x40", "sums/sqdiff/f32/full/300000",
          "reduce_axes/sum/f32/31x3x700/axes0,2", "convert/f32/f16/300x131/perm1,0/by_tenth"}) {
      const subject s(parse(name));
      lockstep_plan* p = nullptr;
      const int before = books.calls;
      ASSERT_EQ(plan(context, s.c, nullptr, options, &p), LOCKSTEP_OK) << lockstep_last_error();
      size_t bytes = 0;
      ASSERT_EQ(lockstep_plan_workspace(p, &bytes), LOCKSTEP_OK);
      ASSERT_LE(bytes, sizeof memory);
      std::vector<unsigned char> src = s.src, dst = s.before;
      const int planned = books.calls;
      if (brought) {
        EXPECT_LE(planned, before + 1) << name << ": a queue at most";
      }
      ASSERT_EQ(lockstep_plan_execute(p, s.c.in_place ? dst.data() : src.data(), dst.data(), options), LOCKSTEP_OK)
          << name << " " << lockstep_last_error();
      EXPECT_EQ(books.calls, planned) << name;
      EXPECT_TRUE(dst == s.after) << name;
      lockstep_plan_destroy(p);
    }
    lockstep_context_destroy(context);
    EXPECT_EQ(books.live, 0);
  }
}

}  // namespace
}  // namespace lockstep::check
