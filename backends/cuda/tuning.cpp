// tuning.cpp - the rows of tuning.hpp.
#include "tuning.hpp"

#include "device/device.hpp"

namespace lockstep::cuda {
namespace {

// Kernels may say which lines the L2 is to keep.
tuning ampere(const chip& has) {
  tuning t{"ampere", has};
  t.moves.keeps_reads = true;
  return t;
}

// And a copy engine beside each SM fills shared memory.
tuning hopper(const chip& has) {
  tuning t = ampere(has);
  t.name = "hopper";
  t.reductions.copy_engine = true;
  return t;
}

}  // namespace

tuning tuning_for(const device_facts& facts) {
  const chip has{facts.processors, facts.l2_bytes};
  return facts.major >= 9 ? hopper(has) : facts.major == 8 ? ampere(has) : tuning{"default", has};
}

}  // namespace lockstep::cuda
