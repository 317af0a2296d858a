// seam.hpp - the interface to the CUDA probes. They are in a module of their own,
// probe-cuda.so beside the backend modules, so that the program does not depend on CUDA. Its
// one exported symbol is lockstep_probe_module.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::probe {

constexpr uint32_t module_abi = 1;

// One measurement. got is computed from every value that the probe read, expected by plain
// loops on the host. If the compiler had removed loads, they would differ.
struct reading {
  const char* row;          // "E3"; "device" for facts about the device
  const char* name;         // "stride 2"; the points of a series share one
  const char* kernel;       // as a profiler shows it; "" when no kernel is measured
  const char* unit;         // "cycles", "GB/s" ...
  double x;                 // a point's place in its series, NAN otherwise
  double value, low, high;  // median and quartiles
  uint64_t got, expected;
};
using sink = void (*)(void* user, const reading* one);

// Functions that can fail write a sentence to why.
struct module {
  uint32_t abi, size;
  int32_t (*devices)(char* why, size_t why_bytes);  // 0: none, and why
  // Measures one row; row "device" gives the facts. seconds: what one measurement may
  // take; 0: one launch each and no warm-up, as profilers want it. 0 when it went well.
  int32_t (*run)(int32_t device, const char* row, double seconds, sink to, void* user, char* why, size_t why_bytes);
  // The device's name; then what it runs under.
  const char* (*name)(int32_t device);
  const char* (*detail)(int32_t device);
};
using module_fn = const module* (*)();

}  // namespace lockstep::probe
