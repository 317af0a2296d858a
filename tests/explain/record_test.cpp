// record_test.cpp - lanes of the real kernels against their replay. The kernels are built
// with -DLOCKSTEP_RECORD (backends/cuda/kernel/record.cuh): every thread logs the addresses that
// it touches, in order. A log must be what lockstep explain replays, access by access.
// Exits 77 without a device.
#include "kernel/record.cuh"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lessons.hpp"
#include "lockstep/backend.h"

extern "C" const lockstep_backend* lockstep_backend_entry(const lockstep_host* host);

namespace lockstep::tool::explain {
namespace {

std::string last_error;
const lockstep_backend* backend = nullptr;
lockstep_queue* queue = nullptr;

void must(lockstep_status status, const char* what) {
  if (status != LOCKSTEP_OK) throw std::runtime_error(std::string(what) + ": " + last_error);
}
void must(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code));
}

struct device_memory {
  void* at = nullptr;
  explicit device_memory(size_t bytes) {
    must(cudaMalloc(&at, std::max<size_t>(bytes, 256)), "cudaMalloc");
    must(cudaMemset(at, 0, std::max<size_t>(bytes, 256)), "cudaMemset");
  }
  ~device_memory() { cudaFree(at); }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
};

// The call that settings describe, on zeroed device memory.
lockstep_call call_of(const settings& s, std::vector<double>& coefficients) {
  lockstep_call call;
  std::memset(&call, 0, sizeof call);
  if (s.op == "transpose") {
    call.op = LOCKSTEP_TRANSPOSE;
    lockstep_transpose_desc& d = call.transpose;
    d = lockstep_transpose_packed(static_cast<size_t>(s.element_bytes), s.rows, s.columns);
    d.batch = 1, d.src_ld = s.columns, d.dst_ld = s.rows;
    d.src_batch_stride = d.dst_batch_stride = s.rows * s.columns;
  } else if (s.op == "square_sum") {
    call.op = LOCKSTEP_SQUARE_SUM;
    call.reduce =
        lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, s.element_bytes == 8 ? LOCKSTEP_F64 : LOCKSTEP_F32, s.n, 1);
    call.reduce.sequence_stride = 0;  // as the library hands on a single sequence
  } else if (s.op == "stencil") {
    call.op = LOCKSTEP_STENCIL;
    const std::vector<std::string> boundaries = {"nearest", "mirror", "reflect", "wrap", "constant", "valid"};
    const lockstep_boundary values[] = {LOCKSTEP_BOUNDARY_NEAREST,  LOCKSTEP_BOUNDARY_MIRROR,
                                        LOCKSTEP_BOUNDARY_REFLECT,  LOCKSTEP_BOUNDARY_WRAP,
                                        LOCKSTEP_BOUNDARY_CONSTANT, LOCKSTEP_BOUNDARY_VALID};
    coefficients.assign(static_cast<size_t>(2 * s.radius + 1), 1.0);
    call.stencil = lockstep_stencil_packed(
        s.element_bytes == 4 ? LOCKSTEP_F32 : LOCKSTEP_F64, 1, &s.n, s.radius, coefficients.data(),
        values[std::find(boundaries.begin(), boundaries.end(), s.boundary) - boundaries.begin()]);
    call.stencil.src_batch_stride = call.stencil.dst_batch_stride = s.n;
  } else {
    call.op = LOCKSTEP_SHUFFLE;
    const lockstep_shuffle_kind kind = s.kind == "idx"    ? LOCKSTEP_SHUFFLE_IDX
                                       : s.kind == "up"   ? LOCKSTEP_SHUFFLE_UP
                                       : s.kind == "down" ? LOCKSTEP_SHUFFLE_DOWN
                                                          : LOCKSTEP_SHUFFLE_XOR;
    call.shuffle = lockstep_shuffle_warps(kind, static_cast<size_t>(s.element_bytes), s.n, s.width, s.operand);
  }
  return call;
}

const lockstep_variant* row_of(lockstep_op op, const std::string& name) {
  for (size_t k = 0; k < backend->tables[op].count; ++k)
    if (backend->tables[op].rows[k].name == name) return &backend->tables[op].rows[k];
  return nullptr;
}

std::string text_of(const cuda::seen_access& a) {
  return "place " + std::to_string(a.site) + " " + std::to_string(a.bytes) + " bytes at " + std::to_string(a.offset);
}

// What a replay says that every thread of the blocks does, all kernels.
class program {
 public:
  explicit program(const trace& t) : t_(t) {
    const launch& grid = t.launches.front();
    threads = grid.block_x * grid.block_y;
    closes = t.launches.size() > 1 && t.launches.back().last_block;
    blocks = closes ? grid.blocks : std::min(grid.blocks, 32);
  }
  int threads, blocks;
  bool closes;  // one block does more than its part: the replay has that with block 0

  std::vector<event> of(int block, int thread, bool last) const {
    std::vector<event> all = t_.of_thread(block, thread);
    if (!closes) return all;
    std::erase_if(all, [](const event& e) { return e.kernel != 0; });
    if (last)
      for (const event& e : t_.of_thread(0, thread))
        if (e.kernel != 0) all.push_back(e);
    return all;
  }
  size_t most() const {
    size_t most = 0;
    for (int b = 0; b < blocks; ++b)
      for (int k = 0; k < threads; ++k) most = std::max(most, of(b, k, true).size());
    return most;
  }
  // The block whose thread 0 did more than its part; -1: none.
  int last_of(const std::vector<uint32_t>& many) const {
    int last = -1;
    for (int b = 0; closes && b < blocks; ++b)
      if (many[static_cast<size_t>(b) * threads] > of(b, 0, false).size()) {
        if (last >= 0) throw std::runtime_error("two blocks took themselves for the last");
        last = b;
      }
    if (closes && last < 0) throw std::runtime_error("no block was the last");
    return last;
  }

 private:
  const trace& t_;
};

// Runs a lesson's kernel and its replay; returns how many accesses were compared.
int64_t compare(settings s) {
  const lesson& what = find_lesson(s);
  if (s.banks == 0) s.banks = s.warp;
  const trace t = what.replay(s);
  std::vector<double> coefficients;
  lockstep_call call = call_of(s, coefficients);
  const lockstep_variant* row = row_of(call.op, s.variant);
  if (row == nullptr) throw std::runtime_error("the CUDA table has no such variant");
  const device_memory src(static_cast<size_t>(t.arrays[0].elements * t.arrays[0].bytes)),
      dst(static_cast<size_t>(t.arrays[1].elements * t.arrays[1].bytes) + 64);
  call.src = src.at, call.dst = dst.at;
  if (row->refuses != nullptr && row->refuses(queue, &call) != nullptr)
    throw std::runtime_error(std::string("refused: ") + row->refuses(queue, &call));
  call.workspace_bytes = row->workspace != nullptr ? row->workspace(queue, &call) : 0;
  const device_memory workspace(call.workspace_bytes);
  call.workspace = workspace.at;

  const program should_do(t);
  const int threads = should_do.threads, blocks = should_do.blocks;
  const size_t most = should_do.most();
  const auto all = static_cast<uint32_t>(blocks * threads), capacity = static_cast<uint32_t>(most + 4);
  const device_memory accesses(size_t{all} * capacity * sizeof(cuda::seen_access)), counts(all * sizeof(uint32_t));
  const cuda::seen_log log{static_cast<cuda::seen_access*>(accesses.at), static_cast<uint32_t*>(counts.at), all,
                           capacity, src.at};
  for (cuda::seen_file* file = cuda::seen_file::first; file != nullptr; file = file->next)
    must(file->open(log), "opening the log");
  must(row->launch(queue, &call), "launch");
  must(backend->finish(queue), "finish");
  std::vector<cuda::seen_access> seen(size_t{all} * capacity);
  std::vector<uint32_t> many(all);
  must(cudaMemcpy(seen.data(), accesses.at, seen.size() * sizeof seen[0], cudaMemcpyDefault), "cudaMemcpy");
  must(cudaMemcpy(many.data(), counts.at, many.size() * sizeof many[0], cudaMemcpyDefault), "cudaMemcpy");
  const int last = should_do.last_of(many);

  int64_t compared = 0;
  for (int b = 0; b < blocks; ++b)
    for (int k = 0; k < threads; ++k) {
      const std::vector<event> should = should_do.of(b, k, b == last);
      const size_t thread = static_cast<size_t>(b) * threads + k;
      const std::string who = "block " + std::to_string(b) + ", thread " + std::to_string(k);
      for (size_t e = 0; e < should.size() && e < many[thread]; ++e) {
        const array& a = t.arrays[static_cast<size_t>(t.at(should[e].where).array)];
        const cuda::seen_access expected{static_cast<int>(should[e].where), should[e].width * a.bytes,
                                         a.where == space::lanes ? should[e].first : should[e].first * a.bytes};
        const cuda::seen_access& was = seen[thread * capacity + e];
        if (was.site != expected.site || was.bytes != expected.bytes || was.offset != expected.offset)
          throw std::runtime_error(who + ", access " + std::to_string(e) + ": the kernel touched " + text_of(was) +
                                   ", explain says " + text_of(expected));
        ++compared;
      }
      if (many[thread] != should.size())
        throw std::runtime_error(who + ": the kernel touched memory " + std::to_string(many[thread]) +
                                 " times, explain says " + std::to_string(should.size()));
    }
  return compared;
}

int resident_blocks() {  // as full_blocks in square_sum/lessons.cu
  int processors = 0, threads = 0;
  must(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "attribute");
  must(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, 0), "attribute");
  return processors * (threads / 256);
}

// Shapes of each op that its kernels meet differently.
std::vector<settings> shapes_of(const lesson& l) {
  std::vector<settings> list;
  settings s;
  s.op = l.op, s.variant = l.variant;
  const std::string name = l.variant;
  if (name == "wide" && s.op == "transpose") {  // full tiles that get the first shape
    for (const int bytes : {1, 2, 4, 8, 16}) s.rows = 512, s.columns = 512, s.element_bytes = bytes, list.push_back(s);
  } else if (s.op == "transpose") {
    for (const auto& [rows, columns] : {std::pair{32, 32}, {64, 96}, {45, 70}, {1, 130}, {130, 3}, {256, 256}})
      for (const int bytes : {1, 2, 4, 8, 16})
        s.rows = rows, s.columns = columns, s.element_bytes = bytes, list.push_back(s);
  } else if (s.op == "square_sum" && name == "shuffle") {  // tails of a leaf, tasks beyond a warp's width
    for (const int64_t n : {2049, 4096, 5 * 2048, 20011, 32768, 300001, 1 << 20})
      for (const int bytes : {4, 8}) s.n = n, s.element_bytes = bytes, list.push_back(s);
  } else if (s.op == "square_sum") {
    const bool fills = name.ends_with("_full") || name.ends_with("_fma") || name.starts_with("conflict");
    for (const int64_t n : {int64_t{1}, int64_t{1000}, int64_t{20011}})
      s.n = n, s.blocks = fills ? resident_blocks() : 0, list.push_back(s);
  } else if (s.op == "stencil") {
    for (const int64_t n : {33, 300, 8200, 10007})
      for (const char* boundary : {"nearest", "mirror", "reflect", "wrap", "constant", "valid"})
        for (const int radius : {2, 4, 7})
          for (const int bytes : {4, 8})
            s.n = n, s.boundary = boundary, s.radius = radius, s.element_bytes = bytes, list.push_back(s);
  } else {
    for (const char* kind : {"idx", "up", "down", "xor"})
      for (const int width : {1, 8, 16, 32})
        for (const int operand : {0, 3, 17})
          for (const int64_t n : {512, 1056})
            s.n = n, s.kind = kind, s.width = width, s.operand = operand, s.element_bytes = n == 512 ? 4 : 8,
            list.push_back(s);
  }
  return list;
}

class recorded : public testing::TestWithParam<const lesson*> {};
TEST_P(recorded, as_explain_replays) {
  if (backend == nullptr) GTEST_SKIP() << "no usable CUDA device";
  int64_t compared = 0;
  for (const settings& s : shapes_of(*GetParam())) {
    SCOPED_TRACE("rows " + std::to_string(s.rows) + " columns " + std::to_string(s.columns) + " n " +
                 std::to_string(s.n) + " element bytes " + std::to_string(s.element_bytes) + " radius " +
                 std::to_string(s.radius) + " " + s.boundary + " " + s.kind + " width " + std::to_string(s.width) +
                 " operand " + std::to_string(s.operand));
    try {
      compared += compare(s);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
      return;
    }
  }
  EXPECT_GT(compared, 0);
  std::printf("  %lld accesses equal\n", static_cast<long long>(compared));
}
std::vector<const lesson*> every_lesson() {
  std::vector<const lesson*> all;
  for (const auto* lessons : all_lessons())
    for (const lesson& l : *lessons)
      if (!std::string(l.variant).starts_with("sweeps_"))
        all.push_back(&l);  // not recorded; explain_sweeps checks them
  return all;
}
INSTANTIATE_TEST_SUITE_P(all, recorded, testing::ValuesIn(every_lesson()),
                         [](const auto& info) { return std::string(info.param->op) + "_" + info.param->variant; });

bool open_backend() {
  static const lockstep_host host{LOCKSTEP_BACKEND_ABI, sizeof(lockstep_host),
                                  [](const char* text) { last_error = text; }};
  backend = lockstep_backend_entry(&host);
  int32_t devices = 0;
  if (backend == nullptr || backend->devices(&devices) != LOCKSTEP_OK || devices == 0) return backend = nullptr, false;
  lockstep_queue_options options{};
  options.size = sizeof options;
  static const lockstep_allocator allocator{nullptr,
                                            [](void*, size_t bytes, size_t alignment) {
                                              return std::aligned_alloc(
                                                  alignment, (bytes + alignment - 1) / alignment * alignment);
                                            },
                                            [](void*, void* pointer, size_t, size_t) { std::free(pointer); }};
  options.allocator = &allocator;
  must(backend->queue_create(&options, &queue), "queue_create");
  return true;
}

}  // namespace
}  // namespace lockstep::tool::explain

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!lockstep::tool::explain::open_backend()) {
    std::printf("no usable CUDA device: %s\n", lockstep::tool::explain::last_error.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
