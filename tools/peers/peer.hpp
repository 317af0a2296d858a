// peer.hpp - what the peer programs share: the command line, a case's data, timing,
// the line of JSON. A peer's result is compared with lockstep's CPU result first.
#pragma once

#include <lockstep/lockstep.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cases.hpp"
#include "data.hpp"

namespace lockstep::peers {

struct arguments {
  std::string backend = "cpu";
  int threads = 0;
  double seconds = 0.3;
  bool cold = false;
  std::vector<std::string> cases;
};
inline arguments parse(int argc, char** argv) {
  arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--cold") a.cold = true;
    else if (word == "--backend" && i + 1 < argc) a.backend = argv[++i];
    else if (word == "--threads" && i + 1 < argc) a.threads = std::atoi(argv[++i]);
    else if (word == "--seconds" && i + 1 < argc) a.seconds = std::atof(argv[++i]);
    else a.cases.push_back(word);
  }
  return a;
}

// A case with its input, and lockstep's own result to compare with.
struct subject {
  cases::test_case c;
  std::vector<unsigned char> src, want;
  explicit subject(const std::string& name) : c(cases::parse(name)), src(std::max<size_t>(c.src.span_bytes(), 1)), want(c.dst.span_bytes()) {
    bench_data::fill(c, src.data());
    lockstep_context_options o = lockstep_context_defaults();
    o.backend = "cpu";
    lockstep_context* context = nullptr;
    if (lockstep_context_create(&o, &context) != LOCKSTEP_OK ||
        cases::call(context, c, src.data(), want.data(), c.offsets.empty() ? nullptr : c.offsets.data(), nullptr) != LOCKSTEP_OK)
      std::fprintf(stderr, "%s: %s\n", name.c_str(), lockstep_last_error());
    lockstep_context_destroy(context);
  }
  // "bits equal", "within 1e-07", or "WRONG" for moved data that differs.
  std::string compare(const void* got) const {
    if (std::memcmp(got, want.data(), want.size()) == 0) return "bits equal";
    if (c.op == LOCKSTEP_TRANSPOSE || c.op == LOCKSTEP_PERMUTE) return "WRONG";
    double worst = 0;
    const auto at = [&](const void* p, size_t i) {
      if (c.dst.element_bytes == 4) {
        float v;
        std::memcpy(&v, static_cast<const unsigned char*>(p) + i * 4, 4);
        return static_cast<double>(v);
      }
      double v;
      std::memcpy(&v, static_cast<const unsigned char*>(p) + i * 8, 8);
      return v;
    };
    double scale = 0;
    for (size_t i = 0; i < want.size() / c.dst.element_bytes; ++i) scale = std::max(scale, std::abs(at(want.data(), i)));
    for (size_t i = 0; i < want.size() / c.dst.element_bytes; ++i) worst = std::max(worst, std::abs(at(got, i) - at(want.data(), i)) / std::max(scale, 1e-300));
    char text[64];
    std::snprintf(text, sizeof text, "within %.0e of the largest", worst);
    return text;
  }
  std::string compare_value(double got, double wanted) const {
    char text[64];
    std::snprintf(text, sizeof text, got == wanted ? "equal" : "relative error %.0e", std::abs(got - wanted) / std::max(std::abs(wanted), 1e-300));
    return text;
  }
};

inline void print(const std::string& name, const std::string& peer, const std::vector<double>& ms, const std::string& checked) {
  std::printf("{\"name\": \"%s\", \"peer\": \"%s\", \"checked\": \"%s\", \"ms\": [", name.c_str(), peer.c_str(), checked.c_str());
  for (size_t i = 0; i < ms.size(); ++i) std::printf("%s%.6g", i == 0 ? "" : ", ", ms[i]);
  std::printf("]}\n");
  std::fflush(stdout);
}

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Host time: as the library times its own CPU calls (short ones several times over).
template <class Body>
std::vector<double> time_host(const arguments& a, const Body& body) {
  body();
  const double begin = now_ms();
  body();
  const double once = now_ms() - begin;
  static std::vector<unsigned char> evict;
  if (a.cold && evict.empty()) evict.resize(size_t{256} << 20);
  const int runs = a.cold || once > 0.05 ? 1 : static_cast<int>(0.05 / std::max(once, 1e-4)) + 1;
  std::vector<double> ms;
  for (const double start = now_ms(); ms.size() < 15 || (now_ms() - start < a.seconds * 1e3 && ms.size() < 400);) {
    if (a.cold) std::memset(evict.data(), static_cast<int>(ms.size()), evict.size());
    const double t = now_ms();
    for (int r = 0; r < runs; ++r) body();
    ms.push_back((now_ms() - t) / runs);
    if (now_ms() - start > 20e3) break;
  }
  return ms;
}

}  // namespace lockstep::peers
