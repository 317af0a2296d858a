// peer.hpp - what the C++ peer programs share: a case with bench's own data, the check of a peer's result, timing, and
// the lines of JSON. bench starts a program once, as PEER --backend cpu --threads 2 --seconds 0.3 [--cold] [--sample],
// and writes one case a line: its name, lockstep's own milliseconds, a stencil's coefficients. File 3 holds the case's
// src, file 4 lockstep's result, file 5 the arrays beside src (weight, bias, residual or the second of two), which
// tests/cases makes from the name too. Behind a group's milliseconds stand its arrays' lengths. For each way in which
// the program can compute the case it answers
//   {"name": "transpose/b4/512x512", "peer": "OpenBLAS 0.3.21 omatcopy", "checked": "bits equal", "waits": true}
// and waits. bench then writes how many samples it wants, again and again, and the program answers {"ms": [...]}; 0
// ends this way. A way that does not wait gives its "ms" at once; none if its result is wrong. {"done": true} ends the
// case.
#pragma once

#include <lockstep/lockstep.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cases.hpp"
#include "samples.hpp"

namespace lockstep::peers {

struct arguments {
  std::string backend = "cpu";
  int threads = 0;
  double seconds = 0.3;
  bool cold = false;
  bool sample = false;  // shapes of every kind: the general ways too
};

// Memory like that of bench: page aligned, from the C library, every page touched.
class block {
 public:
  // Runs touch(first, last) over the bytes, half of them on another thread, because first touches are slow.
  template <class Touch>
  void* take(size_t bytes, const Touch& touch) {
    if (bytes > bytes_ || memory_ == nullptr) {
      memory_.reset();
      bytes_ = (std::max<size_t>(bytes, 1) + 4095) / 4096 * 4096;
      memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(4096, bytes_)));
      if (memory_ == nullptr) std::fprintf(stderr, "no memory for %zu bytes\n", bytes), std::exit(1);
    }
    const size_t half = bytes / 2 / 4096 * 4096;
    std::thread other([&] { touch(memory_.get() + half, half, bytes); });
    touch(memory_.get(), size_t{0}, half);
    other.join();
    return memory_.get();
  }
  // A program keeps its memory while others run, so large blocks are given back.
  void release_large() {
    if (bytes_ > size_t{256} << 20) memory_.reset(), bytes_ = 0;
  }

 private:
  std::unique_ptr<unsigned char, void (*)(void*)> memory_{nullptr, std::free};
  size_t bytes_ = 0;
};

// Some programs are built with -ffast-math, under which std::isnan is false.
inline double or_infinity(double off) {
  return (std::bit_cast<uint64_t>(off) << 1) > 0xFFE0000000000000u ? 1e300 : off;
}
inline std::string words(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
// A result of sums in other orders or precisions; beyond 10 % it is called wrong.
inline std::string compare_values(double worst) {
  if (worst == 0) return "equal";
  return words(worst < 0.1 ? "relative error %.0e" : "WRONG: relative error %.0e", worst);
}

// A case, its data and lockstep's result. src and dst are made when they are asked for.
class subject {
 public:
  cases::test_case c;
  const arguments& a;

  subject(const std::string& request, const arguments& how, block& src, block& dst)
      : c(cases::parse_timed(request.substr(0, request.find(' ')))),
        a(how),
        src_(src),
        dst_(dst),
        name_(c.name),
        ours_ms_(std::atof(request.substr(name_.size()).c_str())) {}
  ~subject() {
    if (src_data_ != nullptr) munmap(src_data_, src_bytes());
    if (want_ != nullptr) munmap(want_, std::max<size_t>(c.dst.span_bytes(), 1));
  }
  subject(const subject&) = delete;

  template <class T = unsigned char>
  const T* src() {
    if (src_data_ == nullptr) src_data_ = mmap(nullptr, src_bytes(), PROT_READ, MAP_SHARED | MAP_POPULATE, 3, 0);
    if (src_data_ == MAP_FAILED) std::perror("src"), std::exit(1);
    return static_cast<const T*>(src_data_);
  }
  template <class T = unsigned char>
  T* dst() {
    if (dst_data_ == nullptr)
      dst_data_ = dst_.take(c.dst.span_bytes(),
                            [](unsigned char* to, size_t first, size_t last) { std::memset(to, 0xA5, last - first); });
    return static_cast<T*>(dst_data_);
  }
  template <class T = unsigned char>
  const T* want() {
    if (want_ == nullptr) want_ = mmap(nullptr, std::max<size_t>(c.dst.span_bytes(), 1), PROT_READ, MAP_SHARED, 4, 0);
    if (want_ == MAP_FAILED) std::perror("want"), std::exit(1);
    return static_cast<const T*>(want_);
  }

  // ---- checks ------------------------------------------------------------------
  std::string bits(const void* got) {
    return std::memcmp(got, want(), c.dst.span_bytes()) == 0 ? "bits equal" : "WRONG: bits differ from a copy's";
  }
  // n results of one type against n of lockstep's of another.
  template <class Want, class Got>
  std::string values(const Got* got, int64_t n) {
    double worst = 0, scale = 0;
    for (int64_t i = 0; i < n; ++i) scale = std::max(scale, std::abs(static_cast<double>(want<Want>()[i])));
    for (int64_t i = 0; i < n; ++i) {
      worst =
          std::max(worst, or_infinity(std::abs(static_cast<double>(got[i]) - static_cast<double>(want<Want>()[i]))));
    }
    return compare_values(worst / std::max(scale, 1e-300));
  }
  // A group's: n(member) results of each call, in an array like lockstep's.
  template <class Want, class Count>
  std::string grouped(const Want* got, const Count& n) {
    double worst = 0, scale = 0;
    for (size_t k = 0; k < c.members.size(); ++k) {
      const auto at = static_cast<int64_t>(c.dst_at[k] / sizeof(Want));
      for (int64_t i = at; i < at + n(c.members[k]); ++i) {
        const auto right = static_cast<double>(want<Want>()[i]);
        scale = std::max(scale, std::abs(right));
        worst = std::max(worst, or_infinity(std::abs(static_cast<double>(got[i]) - right)));
      }
    }
    return compare_values(worst / std::max(scale, 1e-300));
  }
  // A stencil's results r or more from every edge, to 1e-5 of the largest: others fold, or use other bits.
  std::string inside(const float* got) {
    const auto& d = c.stencil;
    const int64_t r = d.radius, nx = d.shape[d.rank - 1], ny = d.rank > 1 ? d.shape[d.rank - 2] : 1,
                  nz = d.rank > 2 ? d.shape[0] : 1;
    const int64_t ry = d.rank > 1 ? r : 0, rz = d.rank > 2 ? r : 0;
    double worst = 0, scale = 0;
    for (int64_t z = rz; z < nz - rz; ++z)
      for (int64_t y = ry; y < ny - ry; ++y)
        for (int64_t x = r, at = (z * ny + y) * nx + r; x < nx - r; ++x, ++at) {
          worst = std::max(
              worst, or_infinity(std::abs(static_cast<double>(got[at]) - static_cast<double>(want<float>()[at]))));
          scale = std::max(scale, std::abs(static_cast<double>(want<float>()[at])));
        }
    worst /= std::max(scale, 1e-300);
    return words(worst < 1e-5 ? "inside within %.0e of the largest" : "WRONG: inside off by %.0e of the largest",
                 worst);
  }

  // ---- a peer's way: run once, check, time ----------------------------------------
  template <class Body, class Check>
  void time(const std::string& peer, const Body& body, const Check& check) {
    const double begin = now_ms();
    body();
    const double first = now_ms() - begin;
    const std::string checked = check();
    if (checked.rfind("WRONG", 0) == 0) return report(peer, checked, [] { return std::vector<double>{}; });
    if (first > 300 && first > 10 * ours_ms_ && !a.cold)
      return report(peer, checked, [&] { return std::vector<double>{first}; });
    std::printf("{\"name\": \"%s\", \"peer\": \"%s\", \"checked\": \"%s\", \"waits\": true}\n", name_.c_str(),
                peer.c_str(), checked.c_str());
    std::fflush(stdout);
    for (std::string turn; std::getline(std::cin, turn) && std::atoi(turn.c_str()) > 0;) {
      std::printf("{");
      list(timed(body, static_cast<size_t>(std::atoi(turn.c_str()))));
      std::fflush(stdout);
    }
  }
  // For other clocks, which take no turns: samples() is called where the result is right.
  template <class Samples>
  void report(const std::string& peer, const std::string& checked, const Samples& samples) {
    const std::vector<double> ms = checked.rfind("WRONG", 0) == 0 ? std::vector<double>{} : samples();
    std::printf("{\"name\": \"%s\", \"peer\": \"%s\", \"checked\": \"%s\", ", name_.c_str(), peer.c_str(),
                checked.c_str());
    list(ms);
  }

 private:
  size_t src_bytes() const { return std::max<size_t>(c.src.span_bytes(), 1); }
  static void list(const std::vector<double>& ms) {
    std::printf("\"ms\": [");
    for (size_t i = 0; i < ms.size(); ++i) std::printf("%s%.6g", i == 0 ? "" : ", ", ms[i]);
    std::printf("]}\n");
  }
  template <class Body>
  std::vector<double> timed(const Body& body, size_t count) const {
    if (!a.cold) return samples(count, body);
    static std::vector<unsigned char> evict(size_t{256} << 20);
    return samples(count, body, [] { std::memset(evict.data(), evict[0] + 1, evict.size()); });
  }

  block &src_, &dst_;
  std::string name_;
  double ours_ms_;
  void *src_data_ = nullptr, *dst_data_ = nullptr, *want_ = nullptr;
};

// ---- what a case is, as the peers ask ----------------------------------------------
inline bool plain_transpose(const cases::test_case& c) {
  const auto& t = c.transpose;
  return c.op == LOCKSTEP_TRANSPOSE && !c.in_place && t.batch == 1 && t.src_ld == t.cols && t.dst_ld == t.rows;
}
// A batch of them, one after the other.
inline bool packed_transposes(const cases::test_case& c) {
  const auto& t = c.transpose;
  return c.op == LOCKSTEP_TRANSPOSE && !c.in_place && t.src_ld == t.cols && t.dst_ld == t.rows &&
         (t.batch == 1 || (t.src_batch_stride == t.rows * t.cols && t.dst_batch_stride == t.rows * t.cols));
}
inline bool packed_permute(const cases::test_case& c) {
  if (c.op != LOCKSTEP_PERMUTE) return false;
  const auto& p = c.permute;
  int64_t src = 1, dst = 1;
  bool packed = true;
  for (int k = p.rank - 1; k >= 0; --k) {
    packed = packed && p.src_strides[k] == src && p.dst_strides[k] == dst;
    src *= p.shape[k], dst *= p.shape[p.perm[k]];
  }
  return packed;
}
inline bool reduction(const cases::test_case& c) {
  return (c.op == LOCKSTEP_SQUARE_SUM || c.op == LOCKSTEP_REDUCE) && c.offsets.empty() && c.reduce.element_stride == 1;
}
inline bool whole(const cases::test_case& c, lockstep_reduction what, lockstep_dtype dtype) {
  return reduction(c) && c.reduce.count == 1 && c.reduce.reduction == what && c.reduce.dtype == dtype;
}
inline bool rows(const cases::test_case& c, lockstep_reduction what, lockstep_dtype dtype) {
  return reduction(c) && c.reduce.count > 1 && c.reduce.sequence_stride == c.reduce.length &&
         c.reduce.reduction == what && c.reduce.dtype == dtype;
}
inline bool star(const cases::test_case& c, int rank) {
  const auto& d = c.stencil;
  return c.op == LOCKSTEP_STENCIL && d.dtype == LOCKSTEP_F32 && d.form == LOCKSTEP_SYMMETRIC && d.batch == 1 &&
         d.sweeps == 1 && d.radius == 4 && d.rank == rank && d.boundary != LOCKSTEP_BOUNDARY_VALID;
}

// Reads cases until bench closes its end; start(arguments) gives measure(subject&), which reports the ways that it has.
// Without groups it has no way to compute those.
template <class Start>
int serve(int argc, char** argv, const char* backend, const Start& start, bool groups = false) {
  arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--cold")
      a.cold = true;
    else if (word == "--sample")
      a.sample = true;
    else if (word == "--backend" && i + 1 < argc)
      a.backend = argv[++i];
    else if (word == "--threads" && i + 1 < argc)
      a.threads = std::atoi(argv[++i]);
    else if (word == "--seconds" && i + 1 < argc)
      a.seconds = std::atof(argv[++i]);
    else
      return std::fprintf(stderr, "%s: unknown argument %s; lockstep bench --peers runs this program\n", argv[0],
                          argv[i]),
             2;
  }
  if (a.backend.substr(0, a.backend.find(':')) != backend) return 0;  // nothing to offer there
  const auto measure = start(a);
  block src, dst;
  for (std::string request; std::getline(std::cin, request);) {
    {
      subject s(request, a, src, dst);
      if (groups || s.c.members.empty()) measure(s);
    }
    std::printf("{\"done\": true}\n");
    std::fflush(stdout);
    src.release_large(), dst.release_large();
  }
  return 0;
}

}  // namespace lockstep::peers
