// abi.cpp - bad inputs through the C ABI: each error of lockstep.h's doc blocks, its
// code, and a text that names the argument, its value and the fix; dst untouched.
#include <algorithm>
#include <cstring>
#include <functional>

#include "check.hpp"
#include "context_of.hpp"

namespace lockstep::check {
namespace {

alignas(256) unsigned char src_bytes[1 << 16], dst_bytes[1 << 16];
const int64_t forty = int64_t{1} << 40;

class Abi : public testing::Test {
 protected:
  void SetUp() override { std::memset(dst_bytes, 0xA5, sizeof dst_bytes); }
  void TearDown() override {
    EXPECT_TRUE(std::all_of(dst_bytes, dst_bytes + sizeof dst_bytes, [](unsigned char b) { return b == 0xA5; }))
        << "a refused call wrote to dst";
  }
  void refused(const char* what, lockstep_status got, lockstep_status want,
               std::initializer_list<const char*> fragments) {
    EXPECT_EQ(got, want) << what << ": " << lockstep_status_name(got) << " " << lockstep_last_error();
    const std::string text = lockstep_last_error();
    for (const char* fragment : fragments)
      EXPECT_NE(text.find(fragment), std::string::npos) << what << ": \"" << text << "\" lacks \"" << fragment << "\"";
  }
  // A description that is good but for what change does to it.
  template <class Desc, class Run>
  void bad(const char* what, Desc d, const std::function<void(Desc&)>& change, Run run,
           std::initializer_list<const char*> fragments, lockstep_status want = LOCKSTEP_INVALID_ARGUMENT) {
    change(d);
    refused(what, run(context, &d, src_bytes, dst_bytes, nullptr), want, fragments);
  }
  const cases::context_of own{"cpu"};
  lockstep_context* const context = own.self;
};

TEST_F(Abi, ContextsAndOptions) {
  using O = lockstep_context_options;
  const auto create = [&](const char* what, const std::function<void(O&)>& change, lockstep_status want,
                          std::initializer_list<const char*> fragments) {
    O o = lockstep_context_defaults();
    change(o);
    lockstep_context* c = context;
    refused(what, lockstep_context_create(&o, &c), want, fragments);
    EXPECT_EQ(c, nullptr) << what;
  };
  const lockstep_status invalid = LOCKSTEP_INVALID_ARGUMENT;
  refused("no context", lockstep_context_create(nullptr, nullptr), invalid, {"context is NULL"});
  create("size 0", [](O& o) { o.size = 0; }, invalid, {"options->size is 0", "sizeof"});
  create("size large", [](O& o) { o.size = 4096; }, invalid, {"options->size is 4096"});
  create("backend", [](O& o) { o.backend = "abacus"; }, LOCKSTEP_NO_BACKEND,
         {"options.backend", "\"abacus\"", "known are auto", "cpu"});
  create("device", [](O& o) { o.backend = "cpu:7"; }, LOCKSTEP_NO_BACKEND, {"\"cpu:7\"", "1 device"});
  create("no device", [](O& o) { o.backend = "cpu:x"; }, invalid, {"\"cpu:x\"", "cuda:1"});
  create("empty device", [](O& o) { o.backend = "cpu:"; }, invalid, {"\"cpu:\""});
  create("auto:1", [](O& o) { o.backend = "auto:1"; }, invalid, {"\"auto:1\""});
  create("empty backend", [](O& o) { o.backend = ""; }, LOCKSTEP_NO_BACKEND, {"options.backend is \"\""});
  create("no pair", [](O& o) { o.variants = "transpose"; }, invalid, {"options.variants", "op=variant"});
  create("no op", [](O& o) { o.variants = "add=ref"; }, invalid, {"\"add=ref\""});
  create("no variant", [](O& o) { o.variants = "transpose=magic"; }, LOCKSTEP_NO_VARIANT, {"\"magic\"", "cpu:ref"});
  create("retired variant", [](O& o) { o.variants = "permute=runs"; }, LOCKSTEP_NO_VARIANT,
         {"no longer has", "use \"gather\""});
  create("isa", [](O& o) { o.cpu_isa = "mmx"; }, invalid, {"options.cpu_isa", "\"mmx\"", "baseline"});
  create("isa of before", [](O& o) { o.cpu_isa = "avx512_zen4"; }, invalid, {"\"avx512_zen4\"", "avx512:zen4"});
  create("tuning", [](O& o) { o.cpu_isa = "baseline:zen9"; }, invalid, {"\"baseline:zen9\"", "default, zen4"});
  setenv("LOCKSTEP_CPU_ISA", "abc", 1);
  create("isa of the environment", [](O&) {}, invalid, {"LOCKSTEP_CPU_ISA", "\"abc\"", "baseline"});
  unsetenv("LOCKSTEP_CPU_ISA");
  create("threads", [](O& o) { o.threads = -1; }, invalid, {"options.threads is -1", "1 to 4096"});
  create("many threads", [](O& o) { o.threads = 4097; }, invalid, {"4097"});
  create("flags", [](O& o) { o.flags = 0x80000002u; }, invalid,
         {"options.flags is 0x80000002", "0x80000000", "LOCKSTEP_NO_FALLBACK"});
  create("a flag of calls", [](O& o) { o.flags = LOCKSTEP_ASYNC; }, invalid, {"options.flags is 0x1"});
  const lockstep_allocator half = {nullptr, nullptr, nullptr};
  create("allocator", [&](O& o) { o.allocator = &half; }, invalid, {"options.allocator", "both"});
  refused("set_backend without a context", lockstep_context_set_backend(nullptr, "cpu"), invalid, {"context is NULL"});
  refused("set_backend NULL", lockstep_context_set_backend(context, nullptr), invalid, {"backend is NULL"});
  refused("set_backend", lockstep_context_set_backend(context, "abacus"), LOCKSTEP_NO_BACKEND, {"abacus"});
  refused("set_variant", lockstep_context_set_variant(context, LOCKSTEP_REDUCE, "magic"), LOCKSTEP_NO_VARIANT,
          {"reduce", "magic"});
  refused("set_variant of no op", lockstep_context_set_variant(context, static_cast<lockstep_op>(17), "ref"), invalid,
          {"op is 17"});
  refused("synchronize", lockstep_synchronize(nullptr), invalid, {"context is NULL"});

  const auto d = lockstep_transpose_packed(4, 4, 4);
  const auto with = [&](const char* what, const std::function<void(lockstep_options&)>& change, lockstep_status want,
                        std::initializer_list<const char*> fragments) {
    lockstep_options o = lockstep_options_defaults();
    change(o);
    refused(what, lockstep_transpose(context, &d, src_bytes, dst_bytes, &o), want, fragments);
  };
  with("options size", [](lockstep_options& o) { o.size = 3; }, invalid, {"options->size is 3"});
  with("options backend", [](lockstep_options& o) { o.backend = "abacus"; }, LOCKSTEP_NO_BACKEND,
       {"options.backend", "abacus"});
  with("options flags", [](lockstep_options& o) { o.flags = LOCKSTEP_ASYNC | 16u; }, invalid,
       {"options.flags is 0x11", "0x10", "LOCKSTEP_ASYNC", "LOCKSTEP_NO_FALLBACK", "LOCKSTEP_DEVICE_DATA"});
  with("a flag of executions", [](lockstep_options& o) { o.flags = LOCKSTEP_PLACED; }, invalid,
       {"options.flags is 0x40", "LOCKSTEP_PLACED"});
  with("a flag of measuring", [](lockstep_options& o) { o.flags = LOCKSTEP_COLD; }, invalid, {"options.flags is 0x8"});
  with("options variant", [](lockstep_options& o) { o.variant = "magic"; }, LOCKSTEP_NO_VARIANT,
       {"options.variant", "magic"});
}

TEST_F(Abi, OffsetsThatMayNotReachBeyondSrc) {
  const float x[] = {1, 2, 4, 8};
  const int64_t offsets[] = {0, 1, 4};
  double sums[2] = {};
  auto d = lockstep_reduce_segments(LOCKSTEP_SUM, LOCKSTEP_F32, 2, offsets);
  lockstep_options o = lockstep_options_defaults();
  o.flags = LOCKSTEP_BOUNDED;
  for (const char* backend : {"cpu", "auto"}) {
    o.backend = backend;
    d.length = 4;
    ASSERT_EQ(lockstep_reduce(context, &d, x, sums, &o), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_TRUE(sums[0] == 1 && sums[1] == 14);
    d.length = 3;
    refused("offsets beyond src", lockstep_reduce(context, &d, x, sums, &o), LOCKSTEP_INVALID_ARGUMENT,
            {"offsets[2] is 4", "src has 3 elements"});
    d.length = -1;
    refused("length of src", lockstep_reduce(context, &d, x, sums, &o), LOCKSTEP_INVALID_ARGUMENT, {"length is -1"});
    lockstep_plan* plan = nullptr;
    d.length = 4;
    ASSERT_EQ(lockstep_plan_reduce(context, &d, &o, &plan), LOCKSTEP_OK) << lockstep_last_error();
    sums[1] = 0;
    EXPECT_EQ(lockstep_plan_execute(plan, x, sums, nullptr), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_EQ(sums[1], 14);
    lockstep_plan_destroy(plan);
    d.length = 3;
    ASSERT_EQ(lockstep_plan_reduce(context, &d, &o, &plan), LOCKSTEP_OK) << lockstep_last_error();
    refused("offsets of a plan", lockstep_plan_execute(plan, x, sums, nullptr), LOCKSTEP_INVALID_ARGUMENT,
            {"src has 3 elements"});
    lockstep_plan_destroy(plan);
  }
  o.flags = 0;  // length means nothing then
  EXPECT_EQ(lockstep_reduce(context, &d, x, sums, &o), LOCKSTEP_OK) << lockstep_last_error();
  o.flags = LOCKSTEP_BOUNDED;
  const auto dot = lockstep_sums_segments(LOCKSTEP_SUMS_DOT, LOCKSTEP_F32, 2, offsets, x);
  refused("a flag of reduce", lockstep_sums(context, &dot, x, sums, &o), LOCKSTEP_INVALID_ARGUMENT,
          {"LOCKSTEP_BOUNDED", "lockstep_sums", "reduce and square_sum"});
}

TEST_F(Abi, WhatThereIs) {
  const lockstep_status invalid = LOCKSTEP_INVALID_ARGUMENT;
  lockstep_backend_info backend{};
  backend.size = sizeof backend;
  refused("index", lockstep_backend_get(-1, &backend), invalid, {"index is -1"});
  refused("index past", lockstep_backend_get(lockstep_backend_count(), &backend), invalid, {"numbered from 0"});
  refused("no info", lockstep_backend_get(0, nullptr), invalid, {"info is NULL"});
  backend.size = 1;
  refused("info size", lockstep_backend_get(0, &backend), invalid, {"info->size is 1"});
  lockstep_device_info device{};
  device.size = sizeof device;
  refused("no backend", lockstep_device_get(nullptr, 0, &device), invalid, {"backend is NULL"});
  refused("unknown backend", lockstep_device_get("abacus", 0, &device), LOCKSTEP_NO_BACKEND, {"abacus"});
  refused("device", lockstep_device_get("cpu", 1, &device), invalid, {"device is 1", "has 1"});
  lockstep_variant_info variant{};
  variant.size = sizeof variant;
  refused("variant", lockstep_variant_get("cpu", LOCKSTEP_SHUFFLE, 1000, &variant), invalid,
          {"index is 1000", "shuffle"});
  refused("op", lockstep_variant_get("cpu", static_cast<lockstep_op>(-1), 0, &variant), invalid, {"op is -1"});
  EXPECT_EQ(lockstep_variant_count("abacus", LOCKSTEP_REDUCE), 0);
  EXPECT_NE(std::string(lockstep_last_error()).find("\"abacus\", which is not a known backend; known are auto"),
            std::string::npos)
      << lockstep_last_error();
  for (const char* name : {"cpu:", "cpu:x", "cpu:-1", "auto:0"}) {
    refused(name, lockstep_variant_get(name, LOCKSTEP_SHUFFLE, 0, &variant), invalid, {name, "write a backend", "cpu"});
    refused(name, lockstep_device_get(name, 0, &device), invalid, {name, "write a backend", "cpu"});
  }
  refused("auto", lockstep_variant_get("auto", LOCKSTEP_SHUFFLE, 0, &variant), invalid, {"backend is \"auto\""});
  EXPECT_EQ(lockstep_variant_get("cpu:7", LOCKSTEP_SHUFFLE, 0, &variant), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_EQ(lockstep_variant_count("cpu", LOCKSTEP_OP_COUNT), 0);
  EXPECT_EQ(lockstep_op_name(LOCKSTEP_OP_COUNT), nullptr);
  EXPECT_EQ(lockstep_dtype_bytes(static_cast<lockstep_dtype>(0)), 0u);
  EXPECT_STREQ(lockstep_status_name(static_cast<lockstep_status>(99)), "(not a lockstep_status)");
  refused("last_run", lockstep_last_run(nullptr), invalid, {"info is NULL"});
}

TEST_F(Abi, AnyOp) {
  const lockstep_status invalid = LOCKSTEP_INVALID_ARGUMENT;
  const auto d = lockstep_transpose_packed(4, 4, 4);
  for (const int op : {-1, int{LOCKSTEP_OP_COUNT}, 1 << 30}) {
    const std::string text = "op is " + std::to_string(op);
    refused("no op", lockstep_execute(context, static_cast<lockstep_op>(op), &d, src_bytes, dst_bytes, nullptr),
            invalid, {text.c_str(), "lockstep_op"});
    lockstep_plan* plan = nullptr;
    refused("no op", lockstep_plan_create(context, static_cast<lockstep_op>(op), &d, nullptr, &plan), invalid,
            {text.c_str()});
  }
  for (int op = 0; op < LOCKSTEP_OP_COUNT; ++op) {
    const auto any = static_cast<lockstep_op>(op);
    refused("no desc", lockstep_execute(context, any, nullptr, src_bytes, dst_bytes, nullptr), invalid,
            {"desc is NULL", "_desc"});
    size_t bytes[64] = {3};
    refused("a size that none had", lockstep_execute(context, any, bytes, src_bytes, dst_bytes, nullptr), invalid,
            {"desc->size is 3", "sizeof of lockstep_", "_desc ("});
    refused("no context", lockstep_execute(nullptr, LOCKSTEP_TRANSPOSE, &d, src_bytes, dst_bytes, nullptr), invalid,
            {"context is NULL"});
  }
  refused("another op's", lockstep_execute(context, LOCKSTEP_STENCIL, &d, src_bytes, dst_bytes, nullptr), invalid,
          {"desc->size is 72", "lockstep_stencil_desc", "152"});
  refused("no plan", lockstep_plan_create(context, LOCKSTEP_TRANSPOSE, &d, nullptr, nullptr), invalid,
          {"plan is NULL"});
}

TEST_F(Abi, MakersOfNothing) {
  const lockstep_status invalid = LOCKSTEP_INVALID_ARGUMENT;
  const int64_t shape[] = {4, 4};
  const int32_t perm[] = {1, 0};
  const double taps[5] = {};
  const auto permuted = [&](int32_t rank, const int64_t* sizes, const int32_t* axes) {
    const auto d = lockstep_permute_packed(4, rank, sizes, axes);
    return lockstep_permute(context, &d, src_bytes, dst_bytes, nullptr);
  };
  refused("no shape", permuted(2, nullptr, perm), invalid, {"shape[0] is -1"});
  refused("no perm", permuted(2, shape, nullptr), invalid, {"perm[0] is -1"});
  refused("nothing", permuted(2, nullptr, nullptr), invalid, {"is -1"});
  refused("rank", permuted(9, nullptr, nullptr), invalid, {"rank is 9"});
  const auto swept = [&](int32_t rank, const int64_t* sizes, const double* weights) {
    const auto d = lockstep_stencil_packed(LOCKSTEP_F32, rank, sizes, 1, weights, LOCKSTEP_BOUNDARY_VALID);
    return lockstep_stencil(context, &d, src_bytes, dst_bytes, nullptr);
  };
  refused("no shape", swept(2, nullptr, taps), invalid, {"shape[0] is -1"});
  refused("no coefficients", swept(2, shape, nullptr), invalid, {"coefficients is NULL"});
  refused("rank", swept(0, nullptr, nullptr), invalid, {"rank is 0"});
}

TEST_F(Abi, Memory) {
  const lockstep_status invalid = LOCKSTEP_INVALID_ARGUMENT;
  void* p = dst_bytes;
  refused("no pointer", lockstep_alloc(context, "cpu", LOCKSTEP_HOST, 8, nullptr), invalid, {"pointer is NULL"});
  refused("no context", lockstep_alloc(nullptr, "cpu", LOCKSTEP_HOST, 8, &p), invalid, {"context is NULL"});
  refused("no backend", lockstep_alloc(context, nullptr, LOCKSTEP_HOST, 8, &p), invalid, {"backend is NULL"});
  refused("auto", lockstep_alloc(context, "auto", LOCKSTEP_HOST, 8, &p), invalid, {"\"auto\""});
  refused("kind", lockstep_alloc(context, "cpu", static_cast<lockstep_memory>(9), 8, &p), invalid, {"kind is 9"});
  refused("device", lockstep_alloc(context, "cpu", LOCKSTEP_DEVICE, 8, &p), LOCKSTEP_UNSUPPORTED, {"LOCKSTEP_HOST"});
  refused("too much", lockstep_alloc(context, "cpu", LOCKSTEP_HOST, SIZE_MAX - 5, &p), LOCKSTEP_OUT_OF_MEMORY,
          {"bytes"});
  EXPECT_EQ(p, nullptr);
  refused("copy", lockstep_copy(context, "cpu", nullptr, dst_bytes, 8), invalid, {"src is NULL"});
  refused("copy to", lockstep_copy(context, "cpu", src_bytes, nullptr, 8), invalid, {"dst is NULL"});
  refused("pin on auto", lockstep_pin(context, "auto", dst_bytes, 8), invalid, {"\"auto\""});
  refused("pin without a context", lockstep_pin(nullptr, "cpu", dst_bytes, 8), invalid, {"context is NULL"});
  refused("unpin without a backend", lockstep_unpin(context, nullptr, dst_bytes), invalid, {"backend is NULL"});
  refused("pin", lockstep_pin(context, "cpu", dst_bytes, 8), LOCKSTEP_UNSUPPORTED, {"cpu page-locks no memory"});
  refused("unpin", lockstep_unpin(context, "cpu", dst_bytes), LOCKSTEP_UNSUPPORTED, {"cpu page-locks no memory"});
}

TEST_F(Abi, Transpose) {
  using D = lockstep_transpose_desc;
  const auto good = lockstep_transpose_packed(4, 6, 5);
  const auto t = [&](const char* what, const std::function<void(D&)>& change,
                     std::initializer_list<const char*> fragments) {
    bad<D>(what, good, change, lockstep_transpose, fragments);
  };
  t("size", [](D& d) { d.size = 0; }, {"desc->size is 0"});
  t("element_bytes", [](D& d) { d.element_bytes = 3; }, {"element_bytes is 3", "1, 2, 4, 8 or 16"});
  t("no bytes", [](D& d) { d.element_bytes = 0; }, {"element_bytes is 0"});
  t("rows", [](D& d) { d.rows = -1; }, {"rows is -1", "0 or more"});
  t("cols", [](D& d) { d.cols = -2; }, {"cols is -2"});
  t("batch", [](D& d) { d.batch = -3; }, {"batch is -3"});
  t("src_ld", [](D& d) { d.src_ld = 4; }, {"src_ld is 4", "5 columns"});
  t("dst_ld", [](D& d) { d.dst_ld = 5; }, {"dst_ld is 5", "6 elements"});
  t("dst batch", [](D& d) { d.batch = 2, d.src_batch_stride = 30, d.dst_batch_stride = 29; },
    {"dst_batch_stride is 29", "30 elements"});
  t("src batch", [](D& d) { d.batch = 2, d.src_batch_stride = -1, d.dst_batch_stride = 30; },
    {"src_batch_stride is -1"});
  t("product", [](D& d) { d = lockstep_transpose_packed(4, forty, forty); }, {"2^63-1"});
  t("bytes", [](D& d) { d = lockstep_transpose_packed(16, forty, 1 << 20); }, {"2^63-1 bytes"});
  t("span", [](D& d) { d.src_ld = INT64_MAX; }, {"2^63-1"});
  refused("no context", lockstep_transpose(nullptr, &good, src_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"context is NULL"});
  refused("no desc", lockstep_transpose(context, nullptr, src_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"desc is NULL"});
  refused("no src", lockstep_transpose(context, &good, nullptr, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"src is NULL", "120 bytes"});
  refused("no dst", lockstep_transpose(context, &good, src_bytes, nullptr, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"dst is NULL"});
  refused("misaligned", lockstep_transpose(context, &good, src_bytes + 2, dst_bytes, nullptr),
          LOCKSTEP_INVALID_ARGUMENT, {"src is", "4-byte"});
  refused("misaligned dst", lockstep_transpose(context, &good, src_bytes, dst_bytes + 1, nullptr),
          LOCKSTEP_INVALID_ARGUMENT, {"dst is"});
  refused("overlap", lockstep_transpose(context, &good, dst_bytes + 116, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap", "src == dst"});
  refused("beyond memory",
          lockstep_transpose(context, &good, reinterpret_cast<void*>(UINTPTR_MAX - 7 - 3 * 4), dst_bytes, nullptr),
          LOCKSTEP_INVALID_ARGUMENT, {"address space"});
  auto padded = good;
  padded.src_ld = 7;
  refused("in place", lockstep_transpose(context, &padded, dst_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap", "src_ld 7"});
  auto pitches = lockstep_transpose_packed(4, 5, 5);
  pitches.dst_ld = 6;
  refused("a square of two pitches in place", lockstep_transpose(context, &pitches, dst_bytes, dst_bytes, nullptr),
          LOCKSTEP_INVALID_ARGUMENT, {"overlap"});
}

TEST_F(Abi, Permute) {
  using D = lockstep_permute_desc;
  const int64_t shape[] = {3, 4, 5};
  const int32_t perm[] = {2, 0, 1};
  const auto good = lockstep_permute_packed(4, 3, shape, perm);
  const auto p = [&](const char* what, const std::function<void(D&)>& change,
                     std::initializer_list<const char*> fragments) {
    bad<D>(what, good, change, lockstep_permute, fragments);
  };
  p("rank 0", [](D& d) { d.rank = 0; }, {"rank is 0", "1 to 8"});
  p("rank 9", [](D& d) { d.rank = 9; }, {"rank is 9"});
  p("element_bytes", [](D& d) { d.element_bytes = 5; }, {"element_bytes is 5"});
  p("twice", [](D& d) { d.perm[2] = 2; }, {"perm[2] is 2", "once"});
  p("axis", [](D& d) { d.perm[0] = 3; }, {"perm[0] is 3"});
  p("negative axis", [](D& d) { d.perm[1] = -1; }, {"perm[1] is -1"});
  p("shape", [](D& d) { d.shape[1] = -4; }, {"shape[1] is -4"});
  p("src stride", [](D& d) { d.src_strides[0] = 0; }, {"src_strides[0] is 0"});
  p("dst stride", [](D& d) { d.dst_strides[2] = -1; }, {"dst_strides[2] is -1"});
  p("dst overlaps itself", [](D& d) { d.dst_strides[0] = 11; }, {"dst_strides[0] is 11", "12 elements"});
  p("large", [](D& d) { d.shape[0] = forty, d.shape[1] = forty; }, {"2^63-1"});
  refused("in place", lockstep_permute(context, &good, dst_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap"});
}

TEST_F(Abi, ReduceAndSquareSum) {
  using D = lockstep_reduce_desc;
  const auto good = lockstep_reduce_rows(LOCKSTEP_SUM, LOCKSTEP_F32, 4, 5, 5);
  const auto r = [&](const char* what, const std::function<void(D&)>& change,
                     std::initializer_list<const char*> fragments) {
    bad<D>(what, good, change, lockstep_reduce, fragments);
  };
  r("squares", [](D& d) { d.reduction = LOCKSTEP_NORM2; }, {"reduction is NORM2", "lockstep_square_sum"});
  r("no reduction", [](D& d) { d.reduction = static_cast<lockstep_reduction>(-1); }, {"reduction is -1"});
  r("dtype", [](D& d) { d.dtype = static_cast<lockstep_dtype>(14); }, {"dtype is 14", "F16, BF16, F32, F64, I32, I64"});
  r("result", [](D& d) { d.result = LOCKSTEP_I64; },
    {"result is I64", "SUM of F32 gives F64", "LOCKSTEP_F32, F16 or BF16 for one final rounding"});
  r("result of max", [](D& d) { d.reduction = LOCKSTEP_MAX, d.result = LOCKSTEP_F64; },
    {"result is F64", "MAX of F32 gives F32", "set result to LOCKSTEP_F32"});
  r("count", [](D& d) { d.count = -1; }, {"count is -1"});
  r("length", [](D& d) { d.length = -1; }, {"length is -1"});
  r("stride", [](D& d) { d.element_stride = 0; }, {"element_stride is 0"});
  r("sequence stride", [](D& d) { d.sequence_stride = -5; }, {"sequence_stride is -5"});
  r("large", [](D& d) { d.count = forty, d.length = forty; }, {"2^63-1"});
  const int64_t falls[] = {0, 5, 3, 9}, negative[] = {-1, 5, 6, 9};
  r("offsets fall", [&](D& d) { d.count = 3, d.offsets = falls; }, {"offsets[2] is 3", "offsets[1], 5"});
  r("negative offset", [&](D& d) { d.count = 3, d.offsets = negative; }, {"offsets[0] is -1"});
  const int64_t last_falls[] = {0, 5, 6, 3};
  r("the last offset falls", [&](D& d) { d.count = 3, d.offsets = last_falls; }, {"offsets[3] is 3", "offsets[2], 6"});
  // Only the last segment reaches dst.
  const int64_t far[] = {0, 1, 2, 40};
  auto segments = good;
  segments.count = 3, segments.offsets = far;
  refused("overlap of the last segment", lockstep_reduce(context, &segments, dst_bytes, dst_bytes + 64, nullptr),
          LOCKSTEP_INVALID_ARGUMENT, {"overlap", "160 bytes"});
  // Nothing before the first offset is touched.
  const int64_t late[] = {16, 17, 18, 40};
  segments.offsets = late;
  alignas(8) float both[40] = {};
  EXPECT_EQ(lockstep_reduce(context, &segments, both, both, nullptr), LOCKSTEP_OK) << lockstep_last_error();
  refused("overlap of the first segment", lockstep_reduce(context, &segments, dst_bytes, dst_bytes + 48, nullptr),
          LOCKSTEP_INVALID_ARGUMENT, {"overlap"});
  r("misaligned offsets",
    [&](D& d) { d.count = 1, d.offsets = reinterpret_cast<const int64_t*>(reinterpret_cast<const char*>(falls) + 4); },
    {"offsets is", "8-byte"});
  r("offsets over dst", [&](D& d) { d.count = 3, d.offsets = reinterpret_cast<const int64_t*>(dst_bytes); },
    {"overlap"});
  refused("overlap", lockstep_reduce(context, &good, dst_bytes, dst_bytes + 8, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap"});
  refused("dst alignment", lockstep_reduce(context, &good, src_bytes, dst_bytes + 4, nullptr),
          LOCKSTEP_INVALID_ARGUMENT, {"dst is", "8-byte"});
  using S = lockstep_reduce_desc;
  const auto square = lockstep_reduce_full(LOCKSTEP_NORM2, LOCKSTEP_F16, 10, 1);
  bad<S>("sum", square, [](S& d) { d.reduction = LOCKSTEP_SUM; }, lockstep_square_sum,
         {"reduction is SUM;", "SUM_OF_SQUARES, NORM2", "lockstep_reduce"});
  bad<S>("dtype 14", square, [](S& d) { d.dtype = static_cast<lockstep_dtype>(14); }, lockstep_square_sum,
         {"dtype is 14"});
  bad<S>("norm to i64", square, [](S& d) { d.result = LOCKSTEP_I64; }, lockstep_square_sum, {"NORM2"});
}

TEST_F(Abi, Stencil) {
  using D = lockstep_stencil_desc;
  const int64_t shape[] = {20, 30};
  const double c[64] = {0.5, 0.25};
  const auto good = lockstep_stencil_packed(LOCKSTEP_F32, 2, shape, 2, c, LOCKSTEP_BOUNDARY_MIRROR);
  const auto s = [&](const char* what, const std::function<void(D&)>& change,
                     std::initializer_list<const char*> fragments) {
    bad<D>(what, good, change, lockstep_stencil, fragments);
  };
  s("dtype", [](D& d) { d.dtype = LOCKSTEP_I32; }, {"dtype is I32", "F32 and F64"});
  s("rank 0", [](D& d) { d.rank = 0; }, {"rank is 0"});
  s("rank 4", [](D& d) { d.rank = 4; }, {"rank is 4"});
  s("radius 0", [](D& d) { d.radius = 0; }, {"radius is 0"});
  s("radius 9", [](D& d) { d.radius = 9; }, {"radius is 9", "1 to 8"});
  s("radius 17", [](D& d) { d.rank = 1, d.radius = 17; }, {"radius is 17", "1 to 16"});
  s("form", [](D& d) { d.form = static_cast<lockstep_form>(3); }, {"form is 3"});
  s("boundary", [](D& d) { d.boundary = static_cast<lockstep_boundary>(6); }, {"boundary is 6"});
  s("count", [](D& d) { d.coefficient_count = 8; }, {"coefficient_count is 8", "take 9"});
  s("count of form", [](D& d) { d.form = LOCKSTEP_SYMMETRIC; }, {"coefficient_count is 9", "take 5"});
  s("no coefficients", [](D& d) { d.coefficients = nullptr; }, {"coefficients is NULL", "9 doubles"});
  s("centre", [](D& d) { d.form = LOCKSTEP_ANTISYMMETRIC, d.coefficient_count = 5; },
    {"coefficients[0] is 0.5", "antisymmetric"});
  s("sweeps", [](D& d) { d.sweeps = 0; }, {"sweeps is 0"});
  s("batch", [](D& d) { d.batch = -1; }, {"batch is -1"});
  s("shape", [](D& d) { d.shape[1] = -1; }, {"shape[1] is -1"});
  s("valid", [](D& d) { d.boundary = LOCKSTEP_BOUNDARY_VALID, d.sweeps = 5; }, {"shape[0] is 20", "takes away 20"});
  s("src stride", [](D& d) { d.src_strides[0] = 29; }, {"src", "29", "30 elements"});
  s("dst stride", [](D& d) { d.dst_strides[0] = 29; }, {"dst", "29"});
  s("inner stride", [](D& d) { d.src_strides[1] = 2; }, {"innermost", "must be 1"});
  s("batch stride", [](D& d) { d.batch = 2, d.src_batch_stride = 600, d.dst_batch_stride = 599; }, {"599", "batch"});
  s("large", [](D& d) { d.shape[0] = forty, d.shape[1] = forty, d.src_strides[0] = d.dst_strides[0] = forty; },
    {"2^63-1"});
  refused("overlap", lockstep_stencil(context, &good, dst_bytes, dst_bytes + 400, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap"});
}

TEST_F(Abi, Shuffle) {
  using D = lockstep_shuffle_desc;
  const auto good = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_XOR, 4, 64, 32, 1);
  const auto s = [&](const char* what, const std::function<void(D&)>& change,
                     std::initializer_list<const char*> fragments) {
    bad<D>(what, good, change, lockstep_shuffle, fragments);
  };
  s("kind", [](D& d) { d.kind = static_cast<lockstep_shuffle_kind>(4); }, {"kind is 4"});
  s("element_bytes", [](D& d) { d.element_bytes = 2; }, {"element_bytes is 2", "4 or 8"});
  s("count", [](D& d) { d.count = 33; }, {"count is 33", "pad src by 31"});
  s("negative count", [](D& d) { d.count = -32; }, {"count is -32"});
  for (const int width : {0, 3, 64, -4}) s("width", [&](D& d) { d.width = width; }, {"width is"});
  s("mask", [](D& d) { d.operand = 32; }, {"mask", "is 32", "0 to 31"});
  s("negative mask", [](D& d) { d.operand = -1; }, {"is -1"});
  s("up", [](D& d) { d.kind = LOCKSTEP_SHUFFLE_UP, d.operand = -1; }, {"delta", "is -1"});
  s("down", [](D& d) { d.kind = LOCKSTEP_SHUFFLE_DOWN, d.operand = -7; }, {"delta", "is -7"});
  refused("overlap", lockstep_shuffle(context, &good, dst_bytes, dst_bytes + 128, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap"});
}

TEST_F(Abi, Normalize) {
  using D = lockstep_normalize_desc;
  const auto good = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_RMS, LOCKSTEP_F32, 4, 8, 1e-5);
  const auto n = [&](const char* what, const std::function<void(D&)>& change,
                     std::initializer_list<const char*> fragments) {
    bad<D>(what, good, change, lockstep_normalize, fragments);
  };
  n("kind", [](D& d) { d.kind = static_cast<lockstep_normalization>(9); }, {"kind is 9", "LOCKSTEP_NORMALIZE_L2"});
  n("dtype", [](D& d) { d.dtype = LOCKSTEP_I64; }, {"dtype is I64", "F16"});
  n("dtype 0", [](D& d) { d.dtype = static_cast<lockstep_dtype>(0); }, {"dtype is 0"});
  n("result", [](D& d) { d.result = LOCKSTEP_F64; }, {"result is F64", "F16, BF16 or F32"});
  n("weights", [](D& d) { d.weight_dtype = LOCKSTEP_F16; }, {"weight_dtype is F16", "are F32"});
  n("large", [](D& d) { d.count = d.length = forty, d.src_stride = d.dst_stride = forty; }, {"2^63-1"});
  n("eps", [](D& d) { d.eps = -1e-9; }, {"eps is -1e-09", "0 or more"});
  n("sum", [](D& d) { d.sum = dst_bytes + 512; }, {"sum is 0x", "residual is NULL"});
  n("weight", [](D& d) { d.weight = src_bytes + 2; }, {"weight is 0x", "not aligned to its 4-byte elements"});
  n("residual", [](D& d) { d.residual = dst_bytes; }, {"residual", "overlap", "give dst memory of its own"});
  n("stride", [](D& d) { d.dst_stride = 7; }, {"dst_stride is 7", "8 or more"});
  n("negative inner", [](D& d) { d.inner = -1; }, {"inner is -1"});
  n("inner", [](D& d) { d.inner = 3; }, {"inner is 3", "count is 4", "a multiple of inner"});
  n("stride of blocks", [](D& d) { d.inner = 2; }, {"dst_stride is 8", "16 or more, length * inner"});
  n("given", [](D& d) { d.given = reinterpret_cast<const double*>(src_bytes + 4); },
    {"given is 0x", "not aligned to its 8-byte elements"});
  const auto softmax = [&](const char* what, lockstep_normalization kind, const std::function<void(D&)>& change,
                           std::initializer_list<const char*> fragments) {
    n(
        what, [&](D& d) { d.kind = kind, d.scale = 1, change(d); }, fragments);
  };
  softmax("scale", LOCKSTEP_NORMALIZE_SOFTMAX, [](D& d) { d.scale = 0; }, {"scale is 0", "other than 0"});
  softmax("weight", LOCKSTEP_NORMALIZE_LOG_SOFTMAX, [](D& d) { d.weight = src_bytes; },
          {"weight is 0x", "LOG_SOFTMAX has none"});
  softmax("result", LOCKSTEP_NORMALIZE_SOFTMAX, [](D& d) { d.result = LOCKSTEP_F64; },
          {"result is F64", "F16, BF16 or F32"});
  softmax("no labels", LOCKSTEP_NORMALIZE_PICKED, [](D&) {}, {"labels is NULL", "one per row"});
  static const int64_t labels[] = {0, 7, 8, -1};
  softmax("labels", LOCKSTEP_NORMALIZE_PICKED, [](D& d) { d.labels = labels; }, {"labels[2] is 8", "0 to 7"});
  const auto backward = [&](const char* what, const std::function<void(D&)>& change,
                            std::initializer_list<const char*> fragments) {
    n(
        what, [&](D& d) { d.kind = LOCKSTEP_NORMALIZE_LAYER_BACKWARD, d.gradient = src_bytes, change(d); }, fragments);
  };
  backward("inner", [](D& d) { d.inner = 2; }, {"inner is 2", "LAYER_BACKWARD takes contiguous rows"});
  backward("no gradient", [](D& d) { d.gradient = nullptr; }, {"gradient is NULL", "count rows"});
  backward("bias", [](D& d) { d.bias = src_bytes; }, {"bias is 0x", "LAYER_BACKWARD has none"});
  backward("sum", [](D& d) { d.sum = d.bias_gradient = dst_bytes + 512; }, {"sum is 0x", "has none"});
  static const double pairs[16] = {};
  backward("given", [](D& d) { d.given = pairs; }, {"given is 0x", "has none"});
  backward("result", [](D& d) { d.result = LOCKSTEP_BF16; }, {"result is BF16", "are F32 too"});
  backward("eps", [](D& d) { d.eps = -1; }, {"eps is -1"});
  softmax("empty", LOCKSTEP_NORMALIZE_LOGSUMEXP, [](D& d) { d.length = 0; }, {"length is 0", "1 element or more"});
  softmax("stride", LOCKSTEP_NORMALIZE_LOGSUMEXP, [](D& d) { d.dst_stride = 0; }, {"dst_stride is 0", "1 or more"});
  static const int64_t cuts[] = {0, 3, 3, 8, 7}, late[] = {0, 2, 5, 6, 7};
  const auto segments = [&](const char* what, lockstep_normalization kind, const std::function<void(D&)>& change,
                            std::initializer_list<const char*> fragments) {
    softmax(
        what, kind, [&](D& d) { d.offsets = late, change(d); }, fragments);
  };
  n("offsets of rows", [](D& d) { d.offsets = late; }, {"offsets is 0x", "RMS has none"});
  segments("offsets fall", LOCKSTEP_NORMALIZE_SOFTMAX, [](D& d) { d.offsets = cuts; },
           {"offsets[4] is 7", "less than offsets[3], 8"});
  segments("residual", LOCKSTEP_NORMALIZE_SOFTMAX, [](D& d) { d.residual = src_bytes; },
           {"residual is 0x", "segments"});
  segments("label", LOCKSTEP_NORMALIZE_PICKED, [](D& d) { d.labels = late; }, {"labels[2] is 5", "0 to 0"});
  segments("empty", LOCKSTEP_NORMALIZE_PICKED, [](D& d) { d.count = 2, d.offsets = cuts, d.labels = cuts; },
           {"labels[1] is 3", "segment 1 is empty"});
  segments("stride", LOCKSTEP_NORMALIZE_LOGSUMEXP, [](D& d) { d.dst_stride = 0; }, {"dst_stride is 0", "1 or more"});
  refused("overlap", lockstep_normalize(context, &good, dst_bytes, dst_bytes + 64, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap"});
  D other = good;  // in place the types are the same
  other.result = LOCKSTEP_F16;
  refused("cast", lockstep_normalize(context, &other, dst_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap"});
  refused("NULL", lockstep_normalize(context, nullptr, src_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"desc is NULL"});
  refused("plan", lockstep_plan_normalize(context, &good, nullptr, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"plan is NULL"});
}

TEST_F(Abi, Scan) {
  using D = lockstep_scan_desc;
  const auto good = lockstep_scan_rows(LOCKSTEP_SUM, LOCKSTEP_F32, 4, 8, 8);
  const auto n = [&](const char* what, const std::function<void(D&)>& change,
                     std::initializer_list<const char*> fragments) {
    bad<D>(what, good, change, lockstep_scan, fragments);
  };
  n("reduction", [](D& d) { d.reduction = LOCKSTEP_NORM2; }, {"reduction is NORM2", "SUM, MIN and MAX"});
  n("dtype", [](D& d) { d.dtype = LOCKSTEP_BOOL; }, {"dtype is BOOL", "F16"});
  n("result", [](D& d) { d.result = LOCKSTEP_BF16; }, {"result is BF16", "gives F32 or F64"});
  n("large", [](D& d) { d.count = d.length = forty, d.sequence_stride = d.dst_sequence_stride = forty; }, {"2^63-1"});
  n("exclusive", [](D& d) { d.exclusive = -1; }, {"exclusive is -1", "0 or 1"});
  n("results on each other", [](D& d) { d.dst_sequence_stride = 7; }, {"dst_sequence_stride is 7", "span 8"});
  n("stride", [](D& d) { d.element_stride = -2; }, {"element_stride is -2", "1 or more"});
  refused("overlap", lockstep_scan(context, &good, dst_bytes, dst_bytes + 64, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap"});
  D wide = good;  // in place the types are the same
  wide.result = LOCKSTEP_F64;
  refused("wider", lockstep_scan(context, &wide, dst_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap"});
  int64_t offsets[] = {0, 3, 2};
  const auto segments = lockstep_scan_segments(LOCKSTEP_SUM, LOCKSTEP_F32, 2, offsets);
  refused("offsets", lockstep_scan(context, &segments, src_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"offsets[2] is 2", "must not decrease"});
}

TEST_F(Abi, Sums) {
  using D = lockstep_sums_desc;
  const auto good = lockstep_sums_rows(LOCKSTEP_SUMS_DOT, LOCKSTEP_F32, 4, 8, 8, src_bytes + 256, 8);
  const auto n = [&](const char* what, const std::function<void(D&)>& change,
                     std::initializer_list<const char*> fragments) {
    bad<D>(what, good, change, lockstep_sums, fragments);
  };
  n("kind", [](D& d) { d.kind = static_cast<lockstep_sums_kind>(6); }, {"kind is 6", "LOCKSTEP_SUMS_DOT"});
  n("digest", [](D& d) { d.kind = LOCKSTEP_SUMS_DIGEST, d.other = nullptr; }, {"result is F", "two U64"});
  n("index", [](D& d) { d.kind = LOCKSTEP_SUMS_DIGEST, d.other = nullptr, d.result = LOCKSTEP_U64, d.correction = 12; },
    {"correction is 12", "multiple of 8"});
  refused("digest", lockstep_digest(context, LOCKSTEP_F32, 4, src_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"digest is NULL"});
  n("dtype", [](D& d) { d.dtype = static_cast<lockstep_dtype>(14); }, {"dtype is 14", "F16, BF16"});
  n("variance", [](D& d) { d.kind = LOCKSTEP_SUMS_MEAN_VARIANCE, d.other = nullptr, d.dtype = LOCKSTEP_I32; },
    {"dtype is I32", "MEAN_VARIANCE takes F16"});
  n("result", [](D& d) { d.result = LOCKSTEP_I64; }, {"result is I64", "DOT of F32 gives F64", "LOCKSTEP_F32, F16"});
  n("exact", [](D& d) { d.dtype = LOCKSTEP_U8; }, {"result is F64", "DOT of U8 gives I64"});
  n("correction", [](D& d) { d.correction = 1; }, {"correction is 1", "0: only MEAN_VARIANCE divides, DOT does not"});
  n("no other", [](D& d) { d.other = nullptr; }, {"other is NULL", "pass the second one"});
  n("other of one array", [](D& d) { d.kind = LOCKSTEP_SUMS_ABSOLUTE; }, {"other is 0x", "set other to NULL"});
  n("misaligned", [](D& d) { d.other = src_bytes + 2; }, {"other is 0x", "not aligned to its 4-byte elements"});
  n("over dst", [](D& d) { d.other = dst_bytes; }, {"other", "overlap", "give dst memory of its own"});
  n("large", [](D& d) { d.count = d.length = forty, d.sequence_stride = forty; }, {"2^63-1"});
  n("large other", [](D& d) { d.other_sequence_stride = INT64_MAX / 2; }, {"other would span", "2^63-1"});
  n("stride", [](D& d) { d.other_element_stride = 0; }, {"other_element_stride is 0", "1 or more"});
  refused("overlap", lockstep_sums(context, &good, dst_bytes, dst_bytes + 64, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap"});
  int64_t offsets[] = {0, 3, 2};
  auto segments = lockstep_sums_segments(LOCKSTEP_SUMS_DOT, LOCKSTEP_F32, 2, offsets, src_bytes);
  refused("offsets", lockstep_sums(context, &segments, src_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"offsets[2] is 2", "must not decrease"});
  offsets[2] = 40, segments.other = dst_bytes + 64;  // only its end is other's
  refused("other of segments", lockstep_sums(context, &segments, src_bytes, dst_bytes + 200, nullptr),
          LOCKSTEP_INVALID_ARGUMENT, {"other", "160 bytes", "overlap"});
  segments.other = nullptr;
  refused("no other of segments", lockstep_sums(context, &segments, src_bytes, dst_bytes, nullptr),
          LOCKSTEP_INVALID_ARGUMENT, {"other is NULL", "160 bytes"});
  const auto wide = lockstep_sums_full(LOCKSTEP_SUMS_MEAN_VARIANCE, LOCKSTEP_F32, 4, nullptr);
  refused("two results", lockstep_sums(context, &wide, dst_bytes + 8, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap", "16 bytes"});
}

TEST_F(Abi, ReduceAxes) {
  using D = lockstep_reduce_axes_desc;
  const int64_t shape[] = {3, 4, 5};
  const int32_t axes[] = {0, 2};
  const auto good = lockstep_reduce_axes_packed(LOCKSTEP_SUM, LOCKSTEP_F32, 3, shape, 2, axes);
  const auto n = [&](const char* what, const std::function<void(D&)>& change,
                     std::initializer_list<const char*> fragments) {
    bad<D>(what, good, change, lockstep_reduce_axes, fragments);
  };
  n("rank", [](D& d) { d.rank = -1; }, {"rank is -1", "1 to 8"});
  n("axis_count", [](D& d) { d.axis_count = 4; }, {"axis_count is 4", "1 to 3 axes"});
  n("axis", [](D& d) { d.axes[1] = 3; }, {"axes[1] is 3", "0 to 2"});
  n("twice", [](D& d) { d.axes[1] = 0; }, {"axes[1] is 0 again", "once"});
  n("shape", [](D& d) { d.shape[2] = -5; }, {"shape[2] is -5", "0 or more"});
  n("stride", [](D& d) { d.src_strides[1] = -5; }, {"src_strides[1] is -5", "0 or more"});
  n("large", [](D& d) { d.shape[0] = d.shape[2] = forty; }, {"the product of shape", "axis 2 has", "2^63-1"});
  n("result", [](D& d) { d.reduction = LOCKSTEP_MAX; }, {"result is F64", "MAX of F32 gives F32"});
  refused("overlap", lockstep_reduce_axes(context, &good, dst_bytes, dst_bytes + 64, nullptr),
          LOCKSTEP_INVALID_ARGUMENT, {"overlap"});
  const D none = lockstep_reduce_axes_packed(LOCKSTEP_SUM, LOCKSTEP_F32, 3, nullptr, 2, axes);
  refused("no shape", lockstep_reduce_axes(context, &none, src_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"shape[0] is -1"});
}

TEST_F(Abi, Convert) {
  using D = lockstep_convert_desc;
  const int64_t shape[] = {3, 4, 5};
  const int32_t perm[] = {2, 0, 1}, twice[] = {2, 0, 2};
  const auto good = lockstep_convert_packed(LOCKSTEP_F32, LOCKSTEP_F16, 1, 3, shape, perm);
  const auto n = [&](const char* what, const std::function<void(D&)>& change,
                     std::initializer_list<const char*> fragments) {
    bad<D>(what, good, change, lockstep_convert, fragments);
  };
  n("dtype", [](D& d) { d.dtype = lockstep_dtype(14); }, {"dtype is ", "every lockstep_dtype, 1 to 13"});
  n("result", [](D& d) { d.result = lockstep_dtype(0); }, {"result is ", "every lockstep_dtype, 1 to 13"});
  n("rank", [](D& d) { d.rank = -1; }, {"rank is -1", "1 to 8"});
  n("shape", [](D& d) { d.shape[2] = -5; }, {"shape[2] is -5", "0 or more"});
  n("stride", [](D& d) { d.src_strides[1] = -5; }, {"src_strides[1] is -5", "1 or more"});
  n("dst stride", [](D& d) { d.dst_strides[2] = 0; }, {"dst_strides[2] is 0", "1 or more"});
  n("itself", [](D& d) { d.dst_strides[0] = 2; }, {"dst_strides[0] is 2", "span"});
  n("large", [](D& d) { d.shape[0] = d.shape[2] = forty; }, {"the product of shape", "2^63-1"});
  refused("overlap", lockstep_convert(context, &good, dst_bytes, dst_bytes + 64, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap"});
  refused("in place", lockstep_convert(context, &good, dst_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap"});
  refused("odd", lockstep_convert(context, &good, src_bytes, dst_bytes + 1, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"dst is 0x", "not aligned to its 2-byte elements"});
  D none = lockstep_convert_packed(LOCKSTEP_F32, LOCKSTEP_F16, 1, 3, nullptr, perm);
  refused("no shape", lockstep_convert(context, &none, src_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"shape[0] is -1"});
  none = lockstep_convert_packed(LOCKSTEP_F32, LOCKSTEP_F16, 1, 3, shape, twice);
  refused("an axis twice", lockstep_convert(context, &none, src_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"shape[0] is -1"});
}

TEST_F(Abi, Map) {
  using D = lockstep_map_desc;
  const int64_t shape[] = {3, 4, 5};
  const int32_t perm[] = {2, 0, 1};
  const auto good = lockstep_map_packed(LOCKSTEP_MAP_EXP, LOCKSTEP_F32, LOCKSTEP_F16, 3, shape, perm);
  EXPECT_EQ(good.size, sizeof good);
  EXPECT_EQ(good.scale, 1);
  for (int f = -1; f <= LOCKSTEP_FUNCTION_COUNT; ++f) {
    const char* const name = lockstep_function_name(static_cast<lockstep_function>(f));
    EXPECT_EQ(name != nullptr, f >= 0 && f < LOCKSTEP_FUNCTION_COUNT) << f;
  }
  const auto n = [&](const char* what, const std::function<void(D&)>& change,
                     std::initializer_list<const char*> fragments) {
    bad<D>(what, good, change, lockstep_map, fragments);
  };
  n("function", [](D& d) { d.function = static_cast<lockstep_function>(14); }, {"function is 14", "0 to 13"});
  n("dtype", [](D& d) { d.dtype = LOCKSTEP_I32; }, {"dtype is I32", "map takes F16, BF16 and F32"});
  n("result", [](D& d) { d.result = LOCKSTEP_BOOL; }, {"result is BOOL", "map takes F16, BF16 and F32"});
  n("rank", [](D& d) { d.rank = 9; }, {"rank is 9", "1 to 8"});
  n("shape", [](D& d) { d.shape[2] = -5; }, {"shape[2] is -5", "0 or more"});
  n("stride", [](D& d) { d.src_strides[1] = -5; }, {"src_strides[1] is -5", "1 or more"});
  n("itself", [](D& d) { d.dst_strides[0] = 2; }, {"dst_strides[0] is 2", "span"});
  n("misaligned", [](D& d) { d.times = src_bytes + 2; }, {"times is 0x", "not aligned to its 4-byte elements"});
  n("over dst", [](D& d) { d.times = dst_bytes; }, {"times", "overlap", "give dst memory of its own"});
  D d = good;
  d.dtype = LOCKSTEP_F64;
  refused("f64", lockstep_map(context, &d, src_bytes, dst_bytes, nullptr), LOCKSTEP_UNSUPPORTED,
          {"dtype is F64", "map takes F16, BF16 and F32"});
  const D other_type = lockstep_map_packed(LOCKSTEP_MAP_EXP, LOCKSTEP_F32, LOCKSTEP_F16, 3, shape, nullptr),
          other_strides = lockstep_map_packed(LOCKSTEP_MAP_EXP, LOCKSTEP_F32, LOCKSTEP_F32, 3, shape, perm);
  for (const D& moved : {good, other_type, other_strides})
    refused("in place", lockstep_map(context, &moved, dst_bytes, dst_bytes, nullptr), LOCKSTEP_INVALID_ARGUMENT,
            {"overlap"});
  d = lockstep_map_packed(LOCKSTEP_MAP_SQRT, LOCKSTEP_F32, LOCKSTEP_F32, 3, shape, nullptr);
  alignas(16) float values[60];
  for (int i = 0; i < 60; ++i) values[i] = static_cast<float>(i * i);
  ASSERT_EQ(lockstep_map(context, &d, values, values, nullptr), LOCKSTEP_OK) << lockstep_last_error();
  for (int i = 0; i < 60; ++i) EXPECT_EQ(values[i], static_cast<float>(i));
  // A program that was built before `times` gives what lies behind its description no meaning.
  d.size = offsetof(D, times), d.times = dst_bytes;
  for (int i = 0; i < 60; ++i) values[i] = static_cast<float>(i * i);
  ASSERT_EQ(lockstep_map(context, &d, values, values, nullptr), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_EQ(values[59], 59.0F);
  d.size = sizeof d, d.times = nullptr;
  refused("half in place", lockstep_map(context, &d, values, values + 4, nullptr), LOCKSTEP_INVALID_ARGUMENT,
          {"overlap"});
}

TEST_F(Abi, Plans) {
  const lockstep_status invalid = LOCKSTEP_INVALID_ARGUMENT;
  const auto d = lockstep_transpose_packed(4, 4, 4);
  lockstep_plan* plan = nullptr;
  size_t bytes = 0;
  refused("no plan", lockstep_plan_transpose(context, &d, nullptr, nullptr), invalid, {"plan is NULL"});
  refused("no context", lockstep_plan_transpose(nullptr, &d, nullptr, &plan), invalid, {"context is NULL"});
  refused("no desc", lockstep_plan_transpose(context, nullptr, nullptr, &plan), invalid, {"desc is NULL"});
  refused("execute", lockstep_plan_execute(nullptr, src_bytes, dst_bytes, nullptr), invalid, {"plan is NULL"});
  refused("workspace", lockstep_plan_workspace(nullptr, &bytes), invalid, {"plan is NULL"});
  const int64_t shape[] = {100};
  const double c[] = {1, 2, 1};
  auto sweeps = lockstep_stencil_packed(LOCKSTEP_F64, 1, shape, 1, c, LOCKSTEP_BOUNDARY_WRAP);
  sweeps.sweeps = 4;
  lockstep_options o = lockstep_options_defaults();
  o.variant = "ref";
  ASSERT_EQ(lockstep_plan_stencil(context, &sweeps, &o, &plan), LOCKSTEP_OK) << lockstep_last_error();
  ASSERT_EQ(lockstep_plan_workspace(plan, &bytes), LOCKSTEP_OK);
  ASSERT_GT(bytes, 256u);  // two sweeps need an array between them
  refused("no bytes", lockstep_plan_workspace(plan, nullptr), invalid, {"bytes is NULL"});
  refused("NULL src", lockstep_plan_execute(plan, nullptr, dst_bytes, nullptr), invalid, {"src is NULL"});
  double ms[2];
  refused("measure flags", lockstep_plan_measure(plan, src_bytes, dst_bytes, LOCKSTEP_ASYNC, 2, ms), invalid,
          {"flags is 0x1", "LOCKSTEP_COLD"});
  refused("limit flags", lockstep_measure_limit(context, "cpu", LOCKSTEP_LIMIT_COPY, 4096, 9, 2, ms), invalid,
          {"flags is 0x9", "0x1 means nothing"});
  lockstep_plan* none = nullptr;
  o.flags = 128;
  refused("execute flags", lockstep_plan_execute(plan, src_bytes, dst_bytes, &o), invalid, {"options.flags is 0x80"});
  o.flags = LOCKSTEP_PLACED;  // of executions only
  refused("plan flags", lockstep_plan_transpose(context, &d, &o, &none), invalid, {"options.flags is 0x40"});
  o.flags = 0;
  alignas(256) static unsigned char workspace[8192];
  o.workspace = workspace;
  o.workspace_bytes = bytes - 1;
  refused("small workspace", lockstep_plan_execute(plan, src_bytes, dst_bytes, &o), invalid,
          {"workspace_bytes is", std::to_string(bytes).c_str()});
  o.workspace = workspace + 8;
  o.workspace_bytes = bytes;
  refused("crooked workspace", lockstep_plan_execute(plan, src_bytes, dst_bytes, &o), invalid, {"256"});
  static double out[100];
  o.workspace = workspace;
  EXPECT_EQ(lockstep_plan_execute(plan, src_bytes, out, &o), LOCKSTEP_OK) << lockstep_last_error();
  lockstep_plan_destroy(plan);
  lockstep_plan_destroy(nullptr);
  lockstep_context_destroy(nullptr);
}

// A plan's story is told once and stands while only it runs; others tell theirs between.
TEST_F(Abi, StoriesOfPlans) {
  const auto told = [] {
    lockstep_run_info info{};
    info.size = sizeof info;
    EXPECT_EQ(lockstep_last_run(&info), LOCKSTEP_OK);
    return info;
  };
  const auto d = lockstep_transpose_packed(4, 2, 3);
  lockstep_options forced = lockstep_options_defaults();
  forced.variant = "ref";
  lockstep_plan *ref = nullptr, *best = nullptr;
  ASSERT_EQ(lockstep_plan_transpose(context, &d, &forced, &ref), LOCKSTEP_OK) << lockstep_last_error();
  ASSERT_EQ(lockstep_plan_transpose(context, &d, nullptr, &best), LOCKSTEP_OK) << lockstep_last_error();
  alignas(16) uint32_t out[6] = {};
  const auto run = [&](lockstep_plan* plan, const void* src) {
    EXPECT_EQ(lockstep_plan_execute(plan, src, out, nullptr), LOCKSTEP_OK) << lockstep_last_error();
    return told();
  };
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_STREQ(run(ref, src_bytes).variant, "ref");
    EXPECT_STRNE(run(best, src_bytes).variant, "ref");
  }
  const std::string variant = told().variant;
  EXPECT_EQ(told().workspace_bytes, 0u);
  EXPECT_GT(run(best, out).workspace_bytes, 0u) << "a rectangle in place";
  EXPECT_EQ(run(best, src_bytes).workspace_bytes, 0u);
  EXPECT_NE(lockstep_plan_execute(best, nullptr, out, nullptr), LOCKSTEP_OK);
  EXPECT_STREQ(told().variant, "") << "a call that failed leaves no story of an earlier one";
  EXPECT_EQ(run(best, src_bytes).variant, variant);
  lockstep_plan_destroy(ref);
  lockstep_plan_destroy(best);
}

}  // namespace
}  // namespace lockstep::check
