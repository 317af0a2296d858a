// calibrate.cpp - lockstep calibrate: times typical calls on this machine's CPU and
// devices and writes the times to the file that the library reads (lib/choose/calibration.cpp).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>

#include "../lib/choose/cost.hpp"
#include "bench/calls.hpp"
#include "file.hpp"
#include "progress.hpp"

namespace lockstep::tool {
namespace {

namespace cost = lib::cost;
using bench::call_memory;

// The case that represents a kind of work and moves about that many bytes.
cases::test_case typical(cost::work what, double bytes) {
  // If there are three kinds by element size, the first gives the shape.
  constexpr int element_bytes[] = {4, 2, 8};
  const cost::work of_three[] = {cost::transpose, cost::thin, cost::flat, cost::narrow, cost::permute, cost::swap};
  const auto first =
      std::find_if(std::begin(of_three), std::end(of_three), [&](int w) { return w <= what && what < w + 3; });
  const int kind = first != std::end(of_three) ? what - *first : 0, b = element_bytes[kind];
  const auto n = static_cast<int64_t>(bytes / 2 / b);  // elements in and as many out
  // Not powers of two, which are slower in caches than other sizes.
  const auto side = [](int64_t elements, double power) {
    const auto s = std::max<int64_t>(1, static_cast<int64_t>(std::pow(static_cast<double>(elements), 1 / power)));
    return (s & (s - 1)) == 0 ? s - s / 16 : s;
  };
  const int64_t square = side(n, 2), tall = side(n / 2, 2), cube = side(n, 3);
  const int64_t lines = square / 32 * 32 + (square < 32 ? square : 0);  // rows of whole cache lines
  std::string name;
  switch (static_cast<cost::work>(what - kind)) {
    case cost::shuffle: name = format_text("shuffle/b4/xor/w32/op1/n{}", n / 32 * 32); break;
    case cost::rows: name = format_text("permute/b4/{0}x{0}x{1}/perm1,0,2", cube, n / cube / cube); break;
    case cost::transpose: name = format_text("transpose/b{}/{}x{}", b, lines, n / lines); break;
    case cost::ragged: name = format_text("transpose/b4/{}x{}", square | 1, n / (square | 1)); break;
    case cost::thin: name = format_text("transpose/b{}/{}x16", b, n / 16); break;
    case cost::flat: name = format_text("transpose/b{}/16x{}", b, n / 16); break;
    case cost::narrow: name = format_text("transpose/b{}/{}x3", b, n / 3); break;
    case cost::permute: name = format_text("permute/b{0}/{1}x{1}x{2}/perm2,1,0", b, cube, n / cube / cube); break;
    case cost::swap: name = format_text("transpose/b{0}/{1}x{1}/inplace", b, square); break;
    case cost::in_place: name = format_text("transpose/b4/{}x{}/inplace", tall, n / tall); break;
    case cost::square_sum: name = format_text("square_sum/ssq/f32/full/{}", 2 * n); break;
    case cost::reduce: name = format_text("reduce/sum/f32/full/{}", 2 * n); break;
    case cost::arg_reduce: name = format_text("reduce/argmax/f32/full/{}", 2 * n); break;
    case cost::short_rows: name = format_text("reduce/sum/f32/rows/{}x32", 2 * n / 34); break;
    case cost::segments: name = format_text("reduce/sum/f32/nonempty/{}x32", 2 * n / 36); break;
    case cost::columns: name = format_text("reduce/sum/f32/columns/{0}x{0}", side(2 * n, 2)); break;
    case cost::line_stencil: name = format_text("stencil/f32/symmetric/nearest/r4/{}", n); break;
    case cost::line_sweeps:
      name = format_text("stencil/f32/symmetric/nearest/r4/{}/sweeps{}", n, cost::many_sweeps);
      break;
    default: name = format_text("stencil/f32/symmetric/nearest/r4/{0}x{0}x{1}", cube, n / cube / cube);
  }
  return cases::parse(name);
}

std::string device_name(const char* backend) {
  lockstep_device_info info{};
  info.size = sizeof info;
  check(lockstep_device_get(backend, 0, &info));
  return format_text("{}; {}", info.name, info.detail);
}

int default_threads() {
  lockstep_device_info info{};
  info.size = sizeof info;
  check(lockstep_device_get("cpu", 0, &info));
  return std::max(info.processors, 1);
}

// Usable backends besides the CPU that have device memory.
std::vector<std::string> devices() {
  std::vector<std::string> names;
  const context any;
  for (int32_t i = 0; i < lockstep_backend_count(); ++i) {
    lockstep_backend_info info{};
    info.size = sizeof info;
    check(lockstep_backend_get(i, &info));
    if (info.usable == 0 || std::string(info.name) == "cpu") continue;
    void* memory = nullptr;
    const lockstep_status status = lockstep_alloc(any, info.name, LOCKSTEP_DEVICE, 4096, &memory);
    if (status == LOCKSTEP_UNSUPPORTED) continue;  // a module that computes in host memory
    check(status);
    check(lockstep_free(any, info.name, LOCKSTEP_DEVICE, 4096, memory));
    names.push_back(info.name);
  }
  return names;
}

// From a call this long the time of longer calls can be computed.
constexpr double long_us = 50e3;

class calibrator {
 public:
  calibrator(double largest, double seconds) : largest_(largest), seconds_(seconds) {
    text_ = "lockstep-calibration 3\n";
    char date[32];
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::strftime(date, sizeof date, "%Y-%m-%d", &parts);
    text_ += format_text("# lockstep {}, {}; microseconds a call by bytes moved\ndevice cpu {}\n", lockstep_version(),
                         date, device_name("cpu"));
    devices_ = devices();
    for (const std::string& backend : devices_)
      text_ += format_text("device {} {}\n", backend, device_name(backend.c_str()));
    text_ += "bytes";
    for (const double size : cost::sizes) text_ += format_text(" {}", size);
    text_ += '\n';
    for (int t = 1; t < default_threads(); t *= t < 4 ? 2 : 4) threads_.push_back(t);
    threads_.push_back(default_threads());
  }

  std::string measure() {
    progress shown("calibrating", (threads_.size() + cost::places * devices_.size()) * cost::works);
    size_t done = 0;
    for (const int threads : threads_) {
      place where;
      where.backend = "cpu";
      where.threads = threads;
      const context c(where);
      call_memory memory(c, "cpu", LOCKSTEP_HOST);
      for (int w = 0; w < cost::works; ++w, shown.at(++done))
        add_line(c, memory, "cpu", format_text("{}", threads), static_cast<cost::work>(w));
    }
    constexpr lockstep_memory kinds[cost::places] = {LOCKSTEP_DEVICE, LOCKSTEP_PINNED, LOCKSTEP_HOST, LOCKSTEP_HOST,
                                                     LOCKSTEP_DEVICE};
    for (const std::string& backend : devices_) {
      for (size_t p = 0; p < cost::places; ++p) {
        place where;
        where.backend = p == cost::away ? "cpu" : backend;
        where.threads = p == cost::alone ? 1 : 0;
        const context c(where);
        call_memory memory(c, kinds[p] == LOCKSTEP_HOST ? "cpu" : backend, kinds[p]);
        for (int w = 0; w < cost::works; ++w, shown.at(++done))
          add_line(c, memory, backend, cost::place_names[p], static_cast<cost::work>(w), p == cost::away);
      }
    }
    return text_ + "end\n";
  }

 private:
  void add_line(const context& c, call_memory& memory, const std::string& backend, const std::string& which,
                cost::work what, bool is_away = false) {
    text_ += format_text("time {} {} {}", backend, which, cost::work_names[what]);
    // The CPU cannot read offsets in device memory; rows of as many elements need the same copies.
    if (is_away && what == cost::segments) what = cost::short_rows;
    const double most = std::min(largest_, cost::sizes.back());
    memory.prepare(typical(what, *std::prev(std::upper_bound(cost::sizes.begin(), cost::sizes.end(), most))));
    double us = 0;
    for (const double size : cost::sizes) {
      if (size <= most && us < long_us) {
        const cases::test_case t = typical(what, size);
        std::vector<double> ms;
        std::string ran;
        bench::time_calls(c, t, memory, lockstep_options_defaults(), seconds_, ms, ran);
        // The lower quartile, which other load on the machine disturbs least.
        std::sort(ms.begin(), ms.end());
        us = ms[ms.size() / 4] * 1e3;
      } else {
        us = std::min(us * 4, 1e9);  // the rate of the size before, at most 1000 s
      }
      text_ += format_text(" {:.4g}", us);
    }
    text_ += '\n';
  }

  double largest_, seconds_;
  std::string text_;
  std::vector<std::string> devices_;
  std::vector<int> threads_;
};

// The library's answer with the current LOCKSTEP_CALIBRATION.
lockstep_model_info model_in_force(const context& c) {
  lockstep_model_info info{};
  info.size = sizeof info;
  check(lockstep_model_get(c, &info));
  return info;
}

std::string own_path() {
  const context c;
  const lockstep_model_info info = model_in_force(c);
  if (*info.path == '\0') refuse("there is no place for the file: {}; name one with -o", info.reason);
  return info.path;
}

}  // namespace

void calibrate_command(command root, action& chosen) {
  struct settings {
    std::string path;
    double largest = cost::sizes.back(), seconds = 0.02;
  };
  auto command = root.add_command("calibrate", "Measure this machine, so that auto knows when a device pays");
  const auto s = std::make_shared<settings>();
  command
      .add("-o,--output", s->path, "where to write (default: where the library looks, see lockstep info); - is stdout")
      .type_name("FILE");
  command
      .add("--largest", s->largest,
           "bytes that the largest call may move; larger calls are assumed to have its rate (default: 1 GiB)")
      .type_name("BYTES")
      .between(cost::sizes.front(), cost::sizes.back());
  command.add("--seconds", s->seconds, "time that one measurement may take").between(0.0, 60.0);
  command.when_called([s, &chosen] {
    chosen = [s] {
      namespace fs = std::filesystem;
      const std::string path = s->path.empty() ? own_path() : s->path;
      std::error_code error;
      if (s->path.empty() && !fs::create_directories(fs::path(path).parent_path(), error) && error)
        fail("{} cannot be made: {}", fs::path(path).parent_path().string(), error.message());
      take_stdout({{"-o", path}});
      if (std::isnan(s->seconds)) refuse("--seconds is nan; give 0 to 60");
      if (std::isnan(s->largest))
        refuse("--largest is nan; give {:.0f} to {:.0f} bytes", cost::sizes.front(), cost::sizes.back());
      const std::string text = calibrator(s->largest, s->seconds).measure();
      write_file(path, text);
      if (path == "-") return 0;
      setenv("LOCKSTEP_CALIBRATION", fs::absolute(path).c_str(), 1);
      const context c;
      const lockstep_model_info now = model_in_force(c);
      if (*now.reason != '\0') fail("{} was written, but the library does not use it: {}", path, now.reason);
      print("{} written{}\n", path,
            s->path.empty() ? "; contexts made from now on use it" : "; LOCKSTEP_CALIBRATION names it to the library");
      return 0;
    };
  });
}

}  // namespace lockstep::tool
