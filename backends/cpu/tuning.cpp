// tuning.cpp - the rows of tuning.hpp, and the sizes of the machine's caches.
#include "tuning.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace lockstep::cpu {
namespace {

// Zen 4 executes 512-bit operations as two 256-bit halves.
tuning zen4(const caches& has) {
  tuning t{"zen4", has};
  t.halves = true;
  t.reductions.two_streams_of_2_bytes = false;  // for 2 bytes one stream in small steps is faster
  t.reductions.cached_4 = has.l3 / 4 * 3;       // floats are converted four at a time
  return t;
}

}  // namespace

caches machine_caches() {
  caches has;
  const long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE),
             l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (l1 > 0) has.l1 = l1;
  has.l2 = l2 > 0 ? l2 : 256 << 10;  // unknown: a size that every core has
  // A virtual machine may report the host's whole cache; a group of cores shares 32 MiB of it.
  if (l3 > 0) has.l3 = std::min(static_cast<int64_t>(l3), has.l3);
  has.l3 = std::max(has.l3, has.l2);
  return has;
}

const tuning* find_tuning(const char* name) {
  static const tuning rows[] = {{"default", machine_caches()}, zen4(machine_caches())};
  for (const tuning& row : rows)
    if (std::strcmp(row.name, name) == 0) return &row;
  return nullptr;
}

}  // namespace lockstep::cpu
