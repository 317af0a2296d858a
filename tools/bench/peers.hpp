// peers.hpp - times of other libraries for the case that was just timed. They run in
// separate small programs (tools/peers), so that this program links none of them.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>

#include "bench.hpp"

namespace lockstep::tool::bench {

// The programs of a folder, started once, fed case by case beside ours. A folder
// without any is an error; a program that fails becomes a line of report::skipped.
class peer_crew {
 public:
  peer_crew(const options& asked, const std::string& backend, report& out);
  ~peer_crew();
  peer_crew(const peer_crew&) = delete;

  // Gives every program the case of `ours`, with numbers that its name does not tell, its src, the arrays beside it and
  // lockstep's result, and appends the answers. again(n, src) takes n samples of ours; with programs that support it,
  // ours and theirs alternate.
  typedef std::function<std::vector<double>(int32_t, const void* src)> sampler;
  typedef std::span<const unsigned char> data;
  void measure(const result& ours, const std::vector<double>& numbers, data src, data want, data sides,
               const sampler& again);

 private:
  struct program;
  // One method of a program for a case, and the times of its rounds so far.
  struct way {
    const program* of;
    std::string name, checked;
    bool turns;  // it alternates with ours; else its times came at once
    std::vector<double> ms = {}, ratios = {};
    std::vector<std::array<double, 2>> rounds = {};  // medians of ours and its, milliseconds
  };
  bool due(const std::vector<double>& ratios) const;  // more rounds
  bool open(const way& w) const { return w.turns && due(w.ratios); }
  // The case once by all programs, and later by those of `ways` whose verdict may still change.
  void sit(const result& ours, const std::string& request, const void* src, const sampler& again, size_t most,
           std::vector<way>& ways);
  // Adds rounds until the verdict is final or there are `most`. False if the program did not answer.
  bool take_turns(program& one, const sampler& again, const void* src, const result& ours, size_t most, way& theirs);

  std::vector<std::unique_ptr<program>> programs_;
  report& out_;
  bool on_cpu_, one_core_;  // one core: shared by all, where each has one thread
  bool sample_;             // a fixed number of rounds each
  int src_file_ = -1, want_file_ = -1, sides_file_ = -1;
};

}  // namespace lockstep::tool::bench
