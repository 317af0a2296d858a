// host.cu - E9: copies between host and device, from pageable and from page-locked memory.
// Idea    cudaMemcpy of 64 KiB to 256 MiB, timed by the host's clock: copies of pageable
//         memory hold the calling thread while the driver stages them
// Moves   each byte once over the link
// Limit   the link, each way; for pageable memory the driver's staging copy
// Watch   pages that were never written may be one page of zeros: both sides are filled
#include <fstream>

#include "bench.cuh"
#include "rows.hpp"

namespace lockstep::probe {
namespace {

class pinned {
 public:
  explicit pinned(size_t bytes) {
    PROBE_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&data_), bytes, cudaHostAllocDefault));
  }
  ~pinned() {
    if (cudaFreeHost(data_) != cudaSuccess) (void)cudaGetLastError();
  }
  pinned(const pinned&) = delete;
  pinned& operator=(const pinned&) = delete;
  uint32_t* data() const { return data_; }

 private:
  uint32_t* data_ = nullptr;
};

class stream {
 public:
  stream() { PROBE_CUDA(cudaStreamCreateWithFlags(&s_, cudaStreamNonBlocking)); }
  ~stream() {
    if (cudaStreamDestroy(s_) != cudaSuccess) (void)cudaGetLastError();
  }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  operator cudaStream_t() const { return s_; }

 private:
  cudaStream_t s_ = nullptr;
};

void fill(uint32_t* words, size_t n, uint32_t salt) {
  for (size_t i = 0; i < n; ++i) words[i] = word_value(static_cast<uint32_t>(i)) + salt;
}
uint32_t sum_of(const uint32_t* words, size_t n) {
  uint32_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += words[i];
  return sum;
}
uint32_t sum_of(const device_array<uint32_t>& words, size_t n) {
  std::vector<uint32_t> copy(n);
  PROBE_CUDA(cudaMemcpy(copy.data(), words, n * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  return sum_of(copy.data(), n);
}

// The link's bandwidth one way, by what the kernel says of the slot; 0 if a virtual machine hides it.
double link_gb_s(int device) {
  char id[32] = "";
  if (cudaDeviceGetPCIBusId(id, sizeof id, device) != cudaSuccess) return 0;
  std::string path = "/sys/bus/pci/devices/";
  for (const char* c = id; *c != '\0'; ++c) path += static_cast<char>(std::tolower(*c));
  double transfers = 0, lanes = 0;  // "32.0 GT/s PCIe", "16"
  std::ifstream(path + "/max_link_speed") >> transfers;
  std::ifstream(path + "/max_link_width") >> lanes;
  return lanes > 0 && lanes <= 32 ? transfers * lanes / 8 * 128 / 130 : 0;
}

}  // namespace

void e9_host(bench& b) {
  constexpr size_t most = size_t{256} << 20, most_words = most / 4;
  const pinned locked_up(most), locked_down(most);
  std::vector<uint32_t> pageable_up(most_words), pageable_down(most_words);
  const device_array<uint32_t> up(most_words), down(most_words);
  fill(locked_up.data(), most_words, 1);
  fill(pageable_up.data(), most_words, 2);
  fill(locked_down.data(), most_words, 0);
  fill(pageable_down.data(), most_words, 0);
  {
    std::vector<uint32_t> there(most_words);
    fill(there.data(), most_words, 3);
    PROBE_CUDA(cudaMemcpy(down, there.data(), most, cudaMemcpyHostToDevice));
  }
  const stream one, other;
  // Sums of the first n words of each source: word_value is linear.
  const auto expected = [](size_t n, uint32_t salt) {
    uint32_t sum = 0;
    for (size_t i = 0; i < n; ++i) sum += word_value(static_cast<uint32_t>(i)) + salt;
    return sum;
  };
  if (const double link = link_gb_s(b.device_number()); link > 0) b.fact("link", link, "GB/s");
  for (size_t bytes = size_t{64} << 10; bytes <= most; bytes *= 4) {
    const size_t n = bytes / 4;
    const auto report = [&](const char* name, const stats& ms, uint32_t got, uint32_t want, double moved) {
      b.report(name, "", "GB/s", static_cast<double>(bytes), ms.rate(moved * 1e-6), got, want);
    };
    const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind) {
      return b.host_milliseconds([&] {
        PROBE_CUDA(cudaMemcpyAsync(to, from, bytes, kind, one));
        PROBE_CUDA(cudaStreamSynchronize(one));
      });
    };
    const auto moved = static_cast<double>(bytes);
    stats t = copy(up, locked_up.data(), cudaMemcpyHostToDevice);
    report("up, page-locked", t, sum_of(up, n), expected(n, 1), moved);
    t = copy(up, pageable_up.data(), cudaMemcpyHostToDevice);
    report("up, pageable", t, sum_of(up, n), expected(n, 2), moved);
    t = copy(locked_down.data(), down, cudaMemcpyDeviceToHost);
    report("down, page-locked", t, sum_of(locked_down.data(), n), expected(n, 3), moved);
    t = copy(pageable_down.data(), down, cudaMemcpyDeviceToHost);
    report("down, pageable", t, sum_of(pageable_down.data(), n), expected(n, 3), moved);
    t = b.host_milliseconds([&] {
      PROBE_CUDA(cudaMemcpyAsync(up, locked_up.data(), bytes, cudaMemcpyHostToDevice, one));
      PROBE_CUDA(cudaMemcpyAsync(locked_down.data(), down, bytes, cudaMemcpyDeviceToHost, other));
      PROBE_CUDA(cudaStreamSynchronize(one));
      PROBE_CUDA(cudaStreamSynchronize(other));
    });
    report("both at once, page-locked", t, sum_of(up, n) + sum_of(locked_down.data(), n),
           expected(n, 1) + expected(n, 3), 2 * moved);
  }
}

}  // namespace lockstep::probe
