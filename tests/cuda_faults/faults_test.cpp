// faults_test.cpp - the CUDA module on the fake runtime: machines without a usable GPU, and
// the N-th runtime call failing for every N. Kernels do nothing there, so the tests check
// statuses, texts, leaks, and the CPU's results after a fallback.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <set>

#include "child.hpp"
#include "fake_cudart.hpp"
#include "operations.hpp"

namespace faults {
namespace {

std::string text_of(lockstep_status s) {
  return std::string(lockstep_status_name(s)) + " \"" + lockstep_last_error() + "\"";
}

lockstep_backend_info cuda() {
  lockstep_backend_info info{};
  for (int32_t i = 0; i < lockstep_backend_count(); ++i) {
    info.size = sizeof info;
    if (lockstep_backend_get(i, &info) == LOCKSTEP_OK && std::string(info.name) == "cuda") return info;
  }
  return {};
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

lockstep_context* context_of(const char* backend) {
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = backend;
  o.threads = 1;
  lockstep_context* c = nullptr;
  (void)lockstep_context_create(&o, &c);
  return c;
}

// The CPU serves under auto and says why cuda does not; naming cuda is an error.
void expect_cpu_only(report& r, const std::string& reason) {
  const lockstep_backend_info info = cuda();
  r.expect(info.name != nullptr, "the module was not found");
  if (info.name == nullptr) return;
  r.expect(info.usable == 0 && has(info.reason, reason),
           std::string("cuda's reason is \"") + info.reason + "\", without \"" + reason + "\"");
  r.expect(cudaPeekAtLastError() == cudaSuccess || has(reason, "lost"), "an error stays behind");
  lockstep_context* none = context_of("cuda");
  r.expect(none == nullptr && has(lockstep_last_error(), reason), std::string("naming cuda: ") + lockstep_last_error());
  lockstep_context* c = context_of("auto");
  const float src[] = {1, 2, 3, 4, 5, 6}, want[] = {1, 4, 2, 5, 3, 6};
  float dst[6] = {};
  const lockstep_transpose_desc d = lockstep_transpose_packed(4, 2, 3);
  lockstep_options o = lockstep_options_defaults();
  const lockstep_status s = lockstep_transpose(c, &d, src, dst, &o);
  r.expect(s == LOCKSTEP_OK && std::memcmp(dst, want, sizeof dst) == 0, "auto: " + text_of(s));
  lockstep_run_info ran{};
  ran.size = sizeof ran;
  const bool told = lockstep_last_run(&ran) == LOCKSTEP_OK;
  r.expect(told && std::string(ran.backend) == "cpu" && has(ran.why, reason),
           std::string("last_run.why is \"") + ran.why + "\"");
  o.backend = "cuda";
  const lockstep_status named = lockstep_transpose(c, &d, src, dst, &o);
  r.expect(named == LOCKSTEP_NO_BACKEND && has(lockstep_last_error(), reason),
           "a call that names cuda: " + text_of(named));
  lockstep_context_destroy(c);
}

void expect_reason(const fake::chips& chips, const std::string& reason) {
  EXPECT_EQ(in_child([&](report& r) {
              r.step("a machine of its own");
              fake::use(chips);
              expect_cpu_only(r, reason);
              r.expect(fake::live() == 0 && fake::misuse().empty(), fake::listed() + " " + fake::misuse());
            }),
            "");
}

TEST(machines, no_driver) {
  expect_reason({.devices = 0, .driver = 0, .start = cudaErrorInsufficientDriver}, "no NVIDIA driver");
}
TEST(machines, old_driver) {
  expect_reason({.devices = 1, .driver = 11040, .start = cudaErrorInsufficientDriver}, "serves CUDA 11.4, older than");
}
TEST(machines, no_device) { expect_reason({.devices = 0, .start = cudaErrorNoDevice}, "shows no device"); }
TEST(machines, a_count_of_none) { expect_reason({.devices = 0}, "shows no device"); }
TEST(machines, a_driver_that_does_not_start) {
  expect_reason({.devices = 1, .start = cudaErrorInitializationError}, "does not start");
}
TEST(machines, a_chip_too_old) { expect_reason({.major = 6, .minor = 0}, "sm_60 chip; the kernels need sm_75"); }
TEST(machines, a_chip_newer_than_the_code) {
  expect_reason({.major = 10, .minor = 0}, "sm_100 chip, but this build has code for");
}

TEST(machines, a_usable_one) {
  EXPECT_EQ(in_child([](report& r) {
              r.step("usable");
              const lockstep_backend_info info = cuda();
              r.expect(info.usable != 0 && info.devices == 2 && std::string(info.reason).empty(),
                       info.reason != nullptr ? info.reason : "not found");
            }),
            "");
}

// Whether src == dst is known only when a plan runs: it has a row for either.
void plans_of_either_kind(report& r) {
  lockstep_context* c = context_of("cuda");
  void *a = nullptr, *b = nullptr;
  constexpr size_t bytes = 96 * 96 * 4;
  const bool memory = lockstep_alloc(c, "cuda", LOCKSTEP_DEVICE, bytes, &a) == LOCKSTEP_OK &&
                      lockstep_alloc(c, "cuda", LOCKSTEP_DEVICE, bytes, &b) == LOCKSTEP_OK;
  r.expect(memory, "no memory");
  const auto ran = [&](const lockstep_transpose_desc& d, const char* forced, void* dst) -> std::string {
    lockstep_options o = lockstep_options_defaults();
    o.variant = forced;
    o.flags = LOCKSTEP_DEVICE_DATA;
    lockstep_plan* plan = nullptr;
    lockstep_run_info info{};
    info.size = sizeof info;
    lockstep_status s = lockstep_plan_transpose(c, &d, &o, &plan);
    if (s == LOCKSTEP_OK) s = lockstep_plan_execute(plan, a, dst, nullptr);
    const std::string text = s == LOCKSTEP_OK ? "" : text_of(s);
    if (s == LOCKSTEP_OK && lockstep_last_run(&info) != LOCKSTEP_OK) return "no story";
    size_t workspace = 0;
    if (s == LOCKSTEP_OK && lockstep_plan_workspace(plan, &workspace) == LOCKSTEP_OK &&
        workspace < info.workspace_bytes)
      return "a workspace that the plan did not announce";
    const std::string variant = s == LOCKSTEP_OK ? info.variant : text;
    lockstep_plan_destroy(plan);
    return variant;
  };
  const auto expect = [&](const std::string& got, const std::string& want) {
    r.expect(has(got, want), "ran " + got + ", not " + want);
  };
  const lockstep_transpose_desc square = lockstep_transpose_packed(4, 96, 96),
                                packed = lockstep_transpose_packed(4, 96, 32);
  const auto expect_apart = [&](const std::string& got) {  // which of them depends on the chip
    const std::set<std::string> apart = {"tiles", "gather", "wide"};
    r.expect(apart.count(got) == 1, "ran " + got + ", not a row for two arrays");
  };
  r.step("auto");
  expect_apart(ran(square, nullptr, b));
  expect(ran(square, nullptr, a), "swap_tiles");
  expect_apart(ran(packed, nullptr, b));
  expect(ran(packed, nullptr, a), "through_workspace");
  r.step("forced");
  expect(ran(square, "swap_tiles", a), "swap_tiles");
  expect(ran(square, "swap_tiles", b), "does not take two arrays");
  expect(ran(square, "wide", a), "does not take src == dst");
  expect(ran(square, "through_workspace", a), "through_workspace");
  expect(ran(packed, "swap_tiles", a), "only for square");
  r.expect(lockstep_free(c, "cuda", LOCKSTEP_DEVICE, bytes, a) == LOCKSTEP_OK &&
               lockstep_free(c, "cuda", LOCKSTEP_DEVICE, bytes, b) == LOCKSTEP_OK,
           "free");
  lockstep_context_destroy(c);
}
TEST(plans, a_row_for_two_arrays_and_one_for_in_place) { EXPECT_EQ(in_child(plans_of_either_kind), ""); }

// ---- the N-th call fails ------------------------------------------------------

// Calls that may fail without the operation failing: what gives back or asks for
// leave, what has another way (no pool: cudaMalloc), what only finds out where memory is.
const std::set<std::string> forgiven = {
    "cuStreamWriteValue32",  "cudaGetDriverEntryPoint", "cudaFree",         "cudaFreeAsync",
    "cudaFreeHost",          "cudaStreamDestroy",       "cudaEventDestroy", "cudaMemPoolDestroy",
    "cudaMemPoolCreate",     "cudaMemPoolSetAttribute", "cudaSetDevice",    "cudaThreadExchangeStreamCaptureMode",
    "cudaStreamIsCapturing", "cudaPointerGetAttributes"};

struct failing {
  cudaError_t error;
  lockstep_status status;
  const char* name;
};
constexpr failing out_of_memory = {cudaErrorMemoryAllocation, LOCKSTEP_OUT_OF_MEMORY, "out of memory"};
constexpr failing refused = {cudaErrorLaunchOutOfResources, LOCKSTEP_BACKEND_FAILED, "not sticky"};
constexpr failing lost = {cudaErrorIllegalAddress, LOCKSTEP_BACKEND_LOST, "sticky"};

// After any call: the runtime is as the caller left it.
void expect_calm(report& r, bool clean = true) {
  if (clean) r.expect(cudaPeekAtLastError() == cudaSuccess, "an error stays behind for the caller's next check");
  fake::fail(0, cudaSuccess);
  int device = -1;
  if (clean) (void)cudaGetDevice(&device);
  r.expect(!clean || device == 1, "the caller's device is now " + std::to_string(device));
  if (clean) (void)cudaSetDevice(1);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  const cudaStreamCaptureMode usual = mode;
  if (clean) (void)cudaThreadExchangeStreamCaptureMode(&mode);
  r.expect(mode == usual, "the thread's capture mode has changed");
  r.expect(fake::misuse().empty(), fake::misuse());
}
// Memory is given back without its device being current, if need be.
bool is_forgiven() {
  const std::string call = fake::failed_call();
  return forgiven.count(call) != 0 ||
         (call == "cudaGetDevice" && fake::next_call() == "cudaThreadExchangeStreamCaptureMode") ||
         (call == "cudaStreamSynchronize" && fake::next_call() == "cudaEventDestroy");
}
void expect_status(report& r, const failing& f, lockstep_status s, const std::string& kept, bool captured) {
  const std::string text = kept.empty() ? lockstep_last_error() : kept, call = fake::failed_call();
  if (s == LOCKSTEP_OK) return r.expect(is_forgiven(), "OK although " + call + " failed, before " + fake::next_call());
  // Without leave, or knowledge of the memory, a captured stream cannot take the call.
  const bool capture = captured && is_forgiven() && (s == LOCKSTEP_BACKEND_FAILED || s == LOCKSTEP_INVALID_ARGUMENT);
  r.expect(s == f.status || capture, std::string(lockstep_status_name(s)) + " \"" + text + "\" after " + call);
  r.expect(has(text, "cuda"), "the text \"" + text + "\" does not name cuda");
}

void sweep(report& r, const operation& op, const failing& f) {
  world w;
  long counted = 0;
  const auto step = [&](const std::string& what) { r.step(op.name + ", " + f.name + ": " + what); };
  for (long n = 1;; ++n) {
    const long before = fake::live();
    lockstep_context* c = context_of("cuda");
    if (c == nullptr) return r.expect(false, "no context: " + std::string(lockstep_last_error()));
    step("call " + std::to_string(n));
    fake::fail(n, f.error);
    w.text.clear();
    const lockstep_status s = op.run(c, w);
    const bool reached = !fake::failed_call().empty();
    const long calls = fake::calls();
    if (reached)
      expect_status(r, f, s, w.text, op.name == "a captured stream");
    else
      r.expect(s == LOCKSTEP_OK, "without a failure: " + text_of(s));
    expect_calm(r);
    step("once more after call " + std::to_string(n));
    const lockstep_status again = op.run(c, w);
    r.expect(again == LOCKSTEP_OK, text_of(again));
    expect_calm(r);
    step("destroy after call " + std::to_string(n));
    if (!reached) fake::fail(n - calls, f.error);  // the context's end fails now
    lockstep_context_destroy(c);
    const bool end_reached = !reached && !fake::failed_call().empty();
    expect_calm(r);
    r.expect(fake::live() == before + (n == 1 ? op.keeps : 0),
             "leaks: " + std::to_string(before) + " objects before, now " + fake::listed());
    if (!reached && !end_reached) break;
    ++counted;
    if (r.failed() && n > 2000) break;
  }
  r.note(op.name + " " + std::to_string(counted) + "; ");
}

class every_call : public testing::TestWithParam<failing> {};

TEST_P(every_call, small) {
  for (const operation& op : operations()) {
    if (op.large) continue;
    std::string notes;
    EXPECT_EQ(in_child([&](report& r) { sweep(r, op, GetParam()); }, &notes), "");
    std::printf("  %s\n", notes.c_str());
  }
}
TEST_P(every_call, large) {
  for (const operation& op : operations()) {
    if (!op.large) continue;
    std::string notes;
    EXPECT_EQ(in_child([&](report& r) { sweep(r, op, GetParam()); }, &notes), "");
    std::printf("  %s\n", notes.c_str());
  }
}
// What may not be page-locked, and what was not, is told by name.
TEST(pinning, refuses_by_name) {
  EXPECT_EQ(in_child([](report& r) {
              r.step("pages");
              lockstep_context* c = context_of("cuda");
              static unsigned char page_after_page[4 * 4096];
              unsigned char* const mine = page_after_page + 100;
              const auto refused = [&](lockstep_status s, lockstep_status want, const std::string& part) {
                r.expect(s == want && has(lockstep_last_error(), part), part + ": " + text_of(s));
              };
              void *device = nullptr, *pinned = nullptr;
              r.expect(lockstep_alloc(c, "cuda", LOCKSTEP_DEVICE, 4096, &device) == LOCKSTEP_OK &&
                           lockstep_alloc(c, "cuda", LOCKSTEP_PINNED, 4096, &pinned) == LOCKSTEP_OK,
                       "no memory");
              const long before = fake::live();
              const lockstep_status invalid = LOCKSTEP_INVALID_ARGUMENT;
              refused(lockstep_pin(c, "cuda", nullptr, 8), invalid, "pointer is NULL but 8 bytes");
              refused(lockstep_pin(c, "cuda", mine, SIZE_MAX), invalid, "beyond the address space");
              refused(lockstep_pin(c, "cuda", device, 8), invalid, "only host memory is page-locked");
              refused(lockstep_pin(c, "cuda", pinned, 8), invalid, "page-locked already");
              refused(lockstep_pin(c, "cuda", reinterpret_cast<void*>(64), 8), invalid, "cannot be page-locked");
              refused(lockstep_pin(c, "cpu", mine, 8), LOCKSTEP_UNSUPPORTED, "cpu page-locks no memory");
              refused(lockstep_unpin(c, "cpu", mine), LOCKSTEP_UNSUPPORTED, "cpu page-locks no memory");
              refused(lockstep_unpin(c, "cuda", mine), invalid, "has locked nothing");
              refused(lockstep_unpin(c, "cuda", pinned), invalid, "has locked nothing");
              r.expect(fake::live() == before, "a refused call has locked something");
              r.expect(lockstep_pin(c, "cuda", mine, 0) == LOCKSTEP_OK && fake::live() == before, "0 bytes");
              r.expect(lockstep_unpin(c, "cuda", nullptr) == LOCKSTEP_OK, "unpin of NULL");
              r.step("twice");
              r.expect(lockstep_pin(c, "cuda", mine, 9000) == LOCKSTEP_OK, lockstep_last_error());
              r.expect(fake::live() == before + 1, "nothing is locked");
              refused(lockstep_pin(c, "cuda", mine + 8000, 4000), invalid, "page-locked already");
              refused(lockstep_unpin(c, "cuda", mine + 8), invalid, "has locked nothing");
              r.expect(lockstep_unpin(c, "cuda", mine) == LOCKSTEP_OK, lockstep_last_error());
              r.expect(lockstep_free(c, "cuda", LOCKSTEP_DEVICE, 4096, device) == LOCKSTEP_OK &&
                           lockstep_free(c, "cuda", LOCKSTEP_PINNED, 4096, pinned) == LOCKSTEP_OK,
                       "free");
              lockstep_context_destroy(c);
              r.expect(fake::misuse().empty(), fake::misuse());
            }),
            "");
}

// Rows of the CPU look at the offsets of segments when one of them is chosen.
TEST(offsets_of_the_device, are_not_read_by_the_cpu) {
  EXPECT_EQ(in_child([](report& r) {
              lockstep_context* c = context_of("cpu");
              void *offsets = nullptr, *src = nullptr;
              float sums[4] = {};
              r.expect(lockstep_alloc(c, "cuda", LOCKSTEP_DEVICE, 64, &offsets) == LOCKSTEP_OK &&
                           lockstep_alloc(c, "cuda", LOCKSTEP_DEVICE, 4096, &src) == LOCKSTEP_OK,
                       "no memory");
              const auto refused = [&](const char* step, lockstep_status s) {
                r.step(step);
                r.expect(s == LOCKSTEP_UNSUPPORTED &&
                             has(lockstep_last_error(), "offsets are device memory, which it cannot read"),
                         text_of(s));
              };
              const auto d = lockstep_reduce_segments(LOCKSTEP_SUM, LOCKSTEP_F32, 4, static_cast<int64_t*>(offsets));
              refused("call", lockstep_reduce(c, &d, src, sums, nullptr));
              refused("nothing to read", lockstep_reduce(c, &d, nullptr, sums, nullptr));
              lockstep_plan* plan = nullptr;
              refused("plan", lockstep_plan_reduce(c, &d, nullptr, &plan));
              r.step("end");
              r.expect(lockstep_free(c, "cuda", LOCKSTEP_DEVICE, 64, offsets) == LOCKSTEP_OK &&
                           lockstep_free(c, "cuda", LOCKSTEP_DEVICE, 4096, src) == LOCKSTEP_OK,
                       "free");
              lockstep_context_destroy(c);
            }),
            "");
}

// A hold that is over before its samples are queued: their times would hold the host's waits.
TEST(measuring, refuses_what_a_late_host_queued) {
  EXPECT_EQ(in_child([](report& r) {
              r.step("a late host");
              lockstep_context* c = context_of("cuda");
              double ms[5];
              const auto limit = [&] { return lockstep_measure_limit(c, "cuda", LOCKSTEP_LIMIT_LAUNCH, 0, 0, 5, ms); };
              fake::late_host(true);
              const long before = fake::launches();
              const lockstep_status late = limit();
              r.expect(late == LOCKSTEP_BACKEND_FAILED && has(lockstep_last_error(), "less busy"), text_of(late));
              r.expect(fake::launches() - before > 3 * 2, "it did not try again");
              fake::late_host(false);
              const lockstep_status held = limit();
              r.expect(held == LOCKSTEP_OK, text_of(held));
              lockstep_context_destroy(c);
            }),
            "");
}

// In a process whose first call is the operation: the module loads, devices are
// asked and pools are made while the runtime fails.
TEST(first_call, fails) {
  for (const failing& f : {out_of_memory, refused}) {
    std::string went_wrong;
    bool reached = true;
    long n = 1;
    for (; reached && went_wrong.empty(); ++n) {
      std::string notes;
      went_wrong = in_child(
          [&](report& r) {
            r.step(std::string("first use, ") + f.name + ": call " + std::to_string(n));
            world w;
            w.options.backend = "auto";
            w.options.flags = LOCKSTEP_DEVICE_DATA;
            const long before = fake::live();
            fake::fail(n, f.error);
            lockstep_context* c = context_of("auto");
            const lockstep_transpose_desc d = lockstep_transpose_packed(4, 100, 100);
            const lockstep_status s = lockstep_transpose(c, &d, w.host_a.data(), w.host_b.data(), &w.options);
            r.expect(s == LOCKSTEP_OK, text_of(s));
            lockstep_run_info ran{};
            ran.size = sizeof ran;
            (void)lockstep_last_run(&ran);
            const std::string call = fake::failed_call();
            const bool by_cpu = std::string(ran.backend) == "cpu";
            if (!call.empty()) r.note("reached");
            // Calls 2 to 5 ask for the devices' capabilities while the module loads: the other device's is enough.
            if (call.empty())
              r.expect(!by_cpu, std::string("the CPU ran: ") + ran.why);
            else if (by_cpu)
              r.expect(has(ran.why, "cuda: ") && (has(ran.why, "memory") || has(ran.why, "Resources")),
                       call + ", why: " + ran.why);
            else if (n < 2 || n > 5)
              r.expect(is_forgiven(), "cuda ran although " + call + " failed");
            expect_calm(r);
            lockstep_context_destroy(c);
            r.expect(fake::live() == before, "leaks: " + fake::listed());
            r.expect(fake::pools() <= 1, std::to_string(fake::pools()) + " pools for one device");
          },
          &notes);
      reached = notes == "reached";
    }
    EXPECT_EQ(went_wrong, "");
    std::printf("  %s: %ld calls\n", f.name, n - 2);
  }
}

// ---- a sticky error loses cuda and nothing else --------------------------------
TEST(lost_device, leaves_the_cpu) {
  for (const operation& op : operations()) {
    long calls = 0;
    std::string notes;
    EXPECT_EQ(in_child(
                  [&](report& r) {
                    r.step(op.name + ": counted");
                    world w;
                    lockstep_context* c = context_of("cuda");
                    fake::fail(0, cudaSuccess);
                    r.expect(op.run(c, w) == LOCKSTEP_OK, lockstep_last_error());
                    r.note(std::to_string(fake::calls()));
                  },
                  &notes),
              "");
    calls = std::atol(notes.c_str());
    ASSERT_GT(calls, 0) << op.name;
    const long step = std::max(1L, calls / (op.large ? 12 : 300));  // 300: every call of all but the two longest
    for (long n = 1; n <= calls; n += step)
      ASSERT_EQ(in_child([&](report& r) {
                  r.step(op.name + ", sticky from call " + std::to_string(n));
                  world w;
                  lockstep_context* c = context_of("cuda");
                  fake::fail(n, lost.error, true);
                  const lockstep_status s = op.run(c, w);
                  const std::string text = w.text.empty() ? lockstep_last_error() : w.text, call = fake::failed_call();
                  if (s == LOCKSTEP_OK) return r.expect(is_forgiven(), "OK although " + call + " failed");
                  r.expect(s == LOCKSTEP_BACKEND_LOST || s == LOCKSTEP_NO_BACKEND, text_of(s) + " after " + call);
                  r.expect(has(text, "cuda") && has(text, "lost"), text);
                  r.expect(fake::misuse().empty(), fake::misuse());
                  lockstep_context* other = context_of("auto");
                  // Device memory is gone; the host must not look at it.
                  const lockstep_transpose_desc d = lockstep_transpose_packed(4, 30, 30);
                  lockstep_options o = lockstep_options_defaults();
                  for (const char* backend : {"auto", "cpu"}) {
                    o.backend = backend;
                    const lockstep_status gone = lockstep_transpose(other, &d, w.device_a, w.host_b.data(), &o);
                    r.expect(gone == LOCKSTEP_BACKEND_LOST,
                             std::string("device memory, ") + backend + ": " + text_of(gone));
                  }
                  expect_cpu_only(r, "lost");
                  lockstep_context_destroy(other);
                  lockstep_context_destroy(c);
                  r.expect(fake::misuse().empty(), fake::misuse());
                }),
                "");
  }
}

// ---- under auto the CPU ends the call ------------------------------------------
void sweep_auto(report& r, const host_call& call, const failing& f, bool allowed) {
  world w;
  lockstep_context* cpu = context_of("cpu");
  w.options.backend = "cpu";
  r.step(call.name + " on the CPU");
  r.expect(call.run(cpu, w) == LOCKSTEP_OK, lockstep_last_error());
  const std::vector<unsigned char> want(w.host_b.begin(),
                                        w.host_b.begin() + static_cast<std::ptrdiff_t>(call.result_bytes));
  w.options.backend = nullptr;
  w.options.flags = LOCKSTEP_DEVICE_DATA;
  if (!allowed) w.options.flags |= LOCKSTEP_NO_FALLBACK;
  long fallen = 0;
  for (long n = 1;; ++n) {
    r.step(call.name + (allowed ? "" : ", no fallback") + ", " + f.name + ": call " + std::to_string(n));
    const long before = fake::live();
    lockstep_context* c = context_of("auto");
    std::fill_n(w.host_b.begin(), call.result_bytes, static_cast<unsigned char>(0xee));
    fake::fail(n, f.error);
    const lockstep_status s = call.run(c, w);
    const std::string failed = fake::failed_call();
    if (!allowed) {
      if (!failed.empty()) expect_status(r, f, s, "", false);
    } else {
      r.expect(s == LOCKSTEP_OK, text_of(s) + " after " + failed);
      lockstep_run_info ran{};
      ran.size = sizeof ran;
      (void)lockstep_last_run(&ran);
      if (s == LOCKSTEP_OK && std::string(ran.backend) == "cpu") {
        ++fallen;
        r.expect(std::equal(want.begin(), want.end(), w.host_b.begin()),
                 "the CPU's result has other bits after " + failed);
        r.expect(has(ran.why, "cuda: ") && (has(ran.why, "memory") || has(ran.why, "Resources")),
                 failed + ", why: " + ran.why);
      } else if (s == LOCKSTEP_OK) {
        r.expect(failed.empty() || is_forgiven(), "cuda ended the call although " + failed + " failed");
      }
    }
    expect_calm(r);
    lockstep_context_destroy(c);
    r.expect(fake::live() == before, "leaks: " + fake::listed());
    if (failed.empty()) break;
  }
  r.expect(!allowed || fallen > 5, "only " + std::to_string(fallen) + " calls fell back");
}

TEST(under_auto, the_cpu_ends_the_call) {
  for (const host_call& call : host_calls())
    for (const failing& f : {out_of_memory, refused})
      for (const bool allowed : {true, false})
        EXPECT_EQ(in_child([&](report& r) { sweep_auto(r, call, f, allowed); }), "");
}

// ---- streams of the caller's ------------------------------------------------------
TEST(streams, take_the_work_by_name_and_are_given_back) {
  EXPECT_EQ(in_child([](report& r) {
              world w;
              lockstep_context* c = context_of("cuda");
              const lockstep_transpose_desc d = lockstep_transpose_packed(4, 300, 200);
              lockstep_options o = w.options;
              const auto call = [&](void* stream) {
                o.stream = stream;
                const lockstep_status s = lockstep_transpose(c, &d, w.device_a, w.device_b, &o);
                r.expect(s == LOCKSTEP_OK, text_of(s));
              };
              call(nullptr);  // what the process and the context keep
              for (void* stream : {LOCKSTEP_STREAM_LEGACY, LOCKSTEP_STREAM_PER_THREAD, static_cast<void*>(w.stream)}) {
                r.step("stream " + std::to_string(reinterpret_cast<uintptr_t>(stream)));
                const long before = fake::live(), launched = fake::launches_on(static_cast<cudaStream_t>(stream));
                call(stream);
                r.expect(fake::launches_on(static_cast<cudaStream_t>(stream)) > launched, "launched elsewhere");
                call(stream);
                for (int twice = 0; twice < 2; ++twice) {
                  const lockstep_status s = lockstep_release_stream(c, "cuda", stream);
                  r.expect(s == LOCKSTEP_OK, text_of(s));
                  r.expect(fake::live() == before, "kept after it was given back: " + fake::listed());
                }
                call(stream);  // which makes a queue anew
              }
              r.step("given back while others wait for their turn");
              const auto in_turn = [&](bool gives_back) {
                lockstep_options of_thread = w.options;
                of_thread.stream = LOCKSTEP_STREAM_LEGACY;
                lockstep_status s = LOCKSTEP_OK;
                for (int i = 0; i < 3000 && s == LOCKSTEP_OK; ++i)
                  s = gives_back ? lockstep_release_stream(c, "cuda", of_thread.stream)
                                 : lockstep_transpose(c, &d, w.device_a, w.device_b, &of_thread);
                return s;
              };
              std::vector<std::future<lockstep_status>> all;
              for (const bool gives_back : {false, true, false, true, false})
                all.push_back(std::async(std::launch::async, in_turn, gives_back));
              for (auto& one : all) r.expect(one.get() == LOCKSTEP_OK, "a call or a release failed");
              r.step("a stream that is gone");
              cudaStream_t gone = nullptr;
              (void)cudaSetDevice(0);
              r.expect(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking) == cudaSuccess, "no stream");
              o.flags |= LOCKSTEP_ASYNC;
              call(gone);
              r.expect(lockstep_synchronize(c) == LOCKSTEP_OK, lockstep_last_error());
              (void)cudaStreamDestroy(gone);
              lockstep_context_destroy(c);
              r.expect(fake::misuse().empty(), fake::misuse());
            }),
            "");
}

INSTANTIATE_TEST_SUITE_P(faults, every_call, testing::Values(out_of_memory, refused));

}  // namespace
}  // namespace faults

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  faults::world::prepare();
  return RUN_ALL_TESTS();
}
