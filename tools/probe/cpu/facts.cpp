// facts.cpp - the CPU's description of itself, and its clock by dependent additions; the
// table of functions that measure each row.
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <unistd.h>

#include <fstream>
#include <stdexcept>

#include "cpu.hpp"

namespace lockstep::tool::probe {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string text; std::getline(info, text);)
    if (text.rfind("model name", 0) == 0 && text.find(": ") != std::string::npos)
      return text.substr(text.find(": ") + 2);
  return "CPU";
}

namespace {

// Whose processor it is, and the bytes that a load moves at once: wider vectors go in pieces. AMD's processors tell the
// width of their data path (CPUID Fn8000_001A, AMD64 Architecture Programmer's Manual, volume 3); Intel's load what
// their instructions name (Intel 64 and IA-32 Optimization Reference Manual, 248966, tables of cache parameters).
double vendor() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel") ? intel : __builtin_cpu_is("amd") ? amd : 0;
#else
  return 0;
#endif
}
double path_bytes() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (vendor() == amd && __get_cpuid(0x8000001A, &a, &b, &c, &d) != 0)
    return std::min(vector_bytes(), (a & 8) != 0 ? 64 : (a & 4) != 0 ? 32 : 16);
#endif
  return vector_bytes();
}

}  // namespace

// A virtual machine may report the host's whole L3 in one place and its own share in the
// other: the smaller one counts.
double l3_bytes() {
  double kib = 0;
  std::ifstream("/sys/devices/system/cpu/cpu0/cache/index3/size") >> kib;  // "32768K"
  const auto said = static_cast<double>(sysconf(_SC_LEVEL3_CACHE_SIZE));
  return kib > 0 ? std::min(kib * 1024, said > 0 ? said : INFINITY) : said;
}

void host_facts(const host_row& r) {
  const auto fact = [&](const char* name, const char* unit, double v) { r.report(name, unit, NAN, {v, v, v}, 0, 0); };
  fact("l1_bytes", "B", static_cast<double>(sysconf(_SC_LEVEL1_DCACHE_SIZE)));
  fact("l2_bytes", "B", static_cast<double>(sysconf(_SC_LEVEL2_CACHE_SIZE)));
  fact("l3_bytes", "B", l3_bytes());
  fact("line_bytes", "B", static_cast<double>(sysconf(_SC_LEVEL1_DCACHE_LINESIZE)));
  fact("page_bytes", "B", static_cast<double>(sysconf(_SC_PAGESIZE)));
  fact("vector_bytes", "B", vector_bytes());
  fact("path_bytes", "B", path_bytes());
  fact("vendor", "", vendor());
  fact("threads", "", r.limits().threads);
  // One cycle each, because every add waits for the one before. It adds a register, because recent cores add small
  // constants during renaming, which takes no time.
  constexpr int adds = 8192;
  const timed t = nanoseconds(r.limits(), [] {
    uint64_t x = 0, y = 3;
    opaque(y);
    for (int i = 0; i < adds; i += 16) {
#pragma GCC unroll 16
      for (int k = 0; k < 16; ++k) {
        x += y;
        opaque(x);
      }
    }
    return x;
  });
  r.report("clock_ghz", "GHz", NAN, t.ns.rate(adds), t.sum, uint64_t{3} * adds);
}

bool measure_on_cpu(const std::string& row, const host_limits& limits, readings& to, std::string& why) {
  const std::pair<const char*, void (*)(const host_row&)> rows[] = {
      {"host", host_facts},
      {"H1", h1_working_set},
      {"H2", h2_strides},
      {"H3", h3_borders},
      {"H4", h4_tlb},
      {"H5",
       [](const host_row& r) {
         if (!h5_streaming(r))
           throw std::runtime_error("this processor's streaming stores are not written here; x86-64 has them");
       }},
      {"H6", h6_aliasing},
      {"H7",
       [](const host_row& r) {
         if (r.limits().threads < 2) throw std::runtime_error("it takes two threads");
         h7_false_sharing(r);
       }},
      {"H8", h8_threads}};
  for (const auto& [id, measure] : rows) {
    if (row != id) continue;
    try {
      measure(host_row(id, limits, to));
      return true;
    } catch (const std::bad_alloc&) {
      why = "not enough memory; 1 GiB will do";
    } catch (const std::exception& e) {
      why = e.what();
    }
    return false;
  }
  why = "no probe of that name";
  return false;
}

}  // namespace lockstep::tool::probe
