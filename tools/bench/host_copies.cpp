// host_copies.cpp - the limit of calls on pageable host memory: copies by as many threads as the CUDA backend uses
// (backends/cuda/device/pipeline.cpp), through an equally small ring of page-locked slabs, but without device and
// waits.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "limits.hpp"
#include "memory.hpp"

namespace lockstep::tool::bench {
namespace {
constexpr size_t each_way = size_t{512} << 20, slabs = 3, largest = size_t{32} << 20;

int crew_size() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::clamp(cores / 2, 1, 8);
}

// Thread `index` of a crew moves its part of every slab.
void move(unsigned char* to, const unsigned char* from, bool up, size_t slab, int index, int crew) {
  const size_t part = slab / static_cast<size_t>(crew), first = part * static_cast<size_t>(index);
  for (size_t at = 0; at + slab <= each_way; at += slab) {
    const size_t ring = at / slab % slabs * slab;
    std::memcpy(to + (up ? ring : at) + first, from + (up ? at : ring) + first, part);
  }
}
}  // namespace

double host_copies_gb_s(lockstep_context* context, const std::string& backend) {
  const block src(context, "cpu", LOCKSTEP_HOST, each_way), dst(context, "cpu", LOCKSTEP_HOST, each_way);
  const block up(context, backend, LOCKSTEP_PINNED, slabs * largest);
  const block down(context, backend, LOCKSTEP_PINNED, slabs * largest);
  for (const block* one : {&src, &dst, &up, &down}) std::memset(one->data(), 1, one->bytes());
  const int crew = crew_size();
  double best = 0;
  for (size_t slab = size_t{2} << 20; slab <= largest; slab *= 4) {
    std::vector<double> ms;
    for (int sample = 0; sample < 5; ++sample) {
      std::atomic<bool> go = false;
      std::vector<std::jthread> threads;
      for (int i = 0; i < crew; ++i) {
        threads.emplace_back([&, i] { go.wait(false), move(up.data(), src.data(), true, slab, i, crew); });
        threads.emplace_back([&, i] { go.wait(false), move(dst.data(), down.data(), false, slab, i, crew); });
      }
      const double begin = now_ms();
      go = true;
      go.notify_all();
      threads.clear();  // waits for them
      ms.push_back(now_ms() - begin);
    }
    best = std::max(best, 2.0 * each_way / summarise(std::move(ms)).median * 1e-6);
  }
  return best;
}

}  // namespace lockstep::tool::bench
