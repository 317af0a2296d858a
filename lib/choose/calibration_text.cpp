// calibration_text.cpp - reads a calibration file's text into a cost model:
//   lockstep-calibration 3
//   device cpu AMD EPYC ...; avx512, 16 threads, ...
//   bytes 4096 16384 ...
//   time cpu 16 transpose 2.1 2.9 ...       microseconds at each size, by threads
//   time cuda pinned transpose 14.2 ...     by where the data is
//   end
// Every line is checked, and nothing of a file with a mistake is used.

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

#include "../status.hpp"
#include "calibration.hpp"

namespace lockstep::lib {
namespace {

constexpr double least_us = 1e-3, most_us = 1e9;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

template <class T>
bool number(std::string_view text, T& value) {
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} && rest == text.data() + text.size();
}

template <class Names>
int index_of(const Names& names, std::string_view word) {
  return static_cast<int>(std::find(names.begin(), names.end(), word) - names.begin());
}

// What has been read so far; complete() refuses a file that lacks something.
class reader {
 public:
  explicit reader(const device_names& here) : here_(here) {}

  void line(std::string_view text) {
    const auto words = words_of(text);
    if (++number_ == 1) return first(words);
    if (words.empty() || words[0].front() == '#') return;
    if (ended_) refuse("there is text after the end");
    if (words.size() == 1 && words[0] == "end") ended_ = true;
    if (ended_) return;
    if (words[0] == "device" && words.size() > 2) return device(std::string(words[1]), text);
    if (words[0] == "bytes") return bytes(words);
    if (words[0] == "time" && words.size() == 4 + cost::sizes.size()) return time(words);
    refuse("\"{}\" is not understood", text.substr(0, 60));
  }

  void complete() const {
    if (number_ == 0) refuse("is empty");
    if (!ended_) refuse("is cut short: it does not say \"end\"");
    if (!sized_) refuse("has no line of bytes");
    if (cpu_.empty()) refuse("has no times of the CPU");
    for (const auto& [backend, named] : named_)
      if (named && backend != "cpu" && devices_.count(backend) == 0) refuse("has no times of {}", backend);
    const auto whole = [](const std::string& what, const cost::curves& curves) {
      for (int w = 0; w < cost::works; ++w)
        if (curves[static_cast<size_t>(w)].front() == 0)
          fail(LOCKSTEP_INTERNAL, "has no {} of {}", cost::work_names[static_cast<size_t>(w)], what);
    };
    for (const auto& [threads, curves] : cpu_) whole(format_text("the CPU with {} threads", threads), curves);
    for (const auto& [backend, all] : devices_)
      for (size_t p = 0; p < cost::places; ++p) whole(format_text("{} {}", backend, cost::place_names[p]), all[p]);
  }

  // Backends that are not in the file keep the built-in figures.
  void put_into(cost::model& model) {
    model.cpu = std::move(cpu_);
    for (auto& [backend, curves] : devices_) model.devices[backend] = curves;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(LOCKSTEP_INTERNAL, "line {}: {}", number_, vformat_text(format, fmt::make_format_args(args...)));
  }

  void first(const std::vector<std::string_view>& words) const {
    if (words.size() != 2 || words[0] != "lockstep-calibration") refuse("this is not a calibration file");
    if (words[1] != "3") refuse("version {}; this library reads version 3", words[1].substr(0, 20));
  }

  void device(const std::string& backend, std::string_view text) {
    const size_t name_at = text.find(backend, std::strlen("device")) + backend.size() + 1;
    const std::string_view made_for = text.substr(std::min(name_at, text.size()));
    const auto now = here_.find(backend);
    if (now == here_.end()) refuse("it was made with {} ({}), which does not run here", backend, made_for);
    if (made_for != now->second) refuse("it was made for {} \"{}\", this is \"{}\"", backend, made_for, now->second);
    named_[backend] = true;
  }

  void bytes(const std::vector<std::string_view>& words) {
    sized_ = words.size() == cost::sizes.size() + 1;
    for (size_t k = 0; sized_ && k < cost::sizes.size(); ++k) {
      double size = 0;
      sized_ = number(words[k + 1], size) && size == cost::sizes[k];
    }
    if (!sized_) refuse("other sizes than this library's");
  }

  void time(const std::vector<std::string_view>& words) {
    const std::string backend(words[1]);
    if (!named_[backend]) refuse("times of {} without a line that names its device", backend.substr(0, 40));
    const int work = index_of(cost::work_names, words[3]);
    if (work == cost::works) refuse("\"{}\" is not a kind of work", words[3].substr(0, 40));
    cost::curve& curve = curves_of(backend, words[2])[static_cast<size_t>(work)];
    if (curve.front() != 0) refuse("the same times twice");
    for (size_t k = 0; k < curve.size(); ++k)
      if (!number(words[k + 4], curve[k]) || !(curve[k] >= least_us && curve[k] <= most_us))
        refuse("\"{}\" is not a time; times are {} to {} microseconds", words[k + 4].substr(0, 40), least_us, most_us);
  }

  cost::curves& curves_of(const std::string& backend, std::string_view which) {
    if (backend == "cpu") {
      int threads = 0;
      if (!number(which, threads) || threads < 1 || threads > 4096)
        refuse("\"{}\" is not a thread count", which.substr(0, 40));
      return cpu_[threads];
    }
    const int place = index_of(cost::place_names, which);
    if (place == cost::places)
      refuse("\"{}\" is not a place; use {}", which.substr(0, 40), joined(cost::place_names, ", "));
    return devices_[backend][static_cast<size_t>(place)];
  }

  const device_names& here_;
  std::map<std::string, bool> named_;
  std::map<int, cost::curves> cpu_;
  std::map<std::string, std::array<cost::curves, cost::places>> devices_;
  size_t number_ = 0;
  bool sized_ = false, ended_ = false;
};

}  // namespace

std::string parse_calibration(const std::string& text, const device_names& here, cost::model& model) {
  reader lines(here);
  try {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      lines.line(std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
    }
    lines.complete();
  } catch (const error& e) {
    return e.text;
  }
  lines.put_into(model);
  return "";
}

}  // namespace lockstep::lib
