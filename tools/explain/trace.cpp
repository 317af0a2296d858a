// trace.cpp - see trace.hpp.
#include "trace.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

namespace lockstep::tool::explain {

void trace::start(launch grid) {
  const auto blocks = static_cast<size_t>(grid.blocks), threads = static_cast<size_t>(grid.block_x) * grid.block_y;
  if (threads_.size() < blocks) threads_.resize(blocks);
  for (size_t b = 0; b < blocks; ++b)
    if (threads_[b].size() < threads) threads_[b].resize(threads);
  launches.push_back(std::move(grid));
}

void trace::thread(int block, int x, int y) {
  now_ = &threads_.at(static_cast<size_t>(block)).at(static_cast<size_t>(y) * launches.back().block_x + x);
  phase_ = 0;
}

void trace::access(site where, int round, int64_t first, int width) {
  now_->push_back({where, static_cast<int>(launches.size()) - 1, phase_, round, first, width});
  ++events_;
}

const std::vector<event>& trace::of_thread(int block, int t) const {
  return threads_.at(static_cast<size_t>(block)).at(static_cast<size_t>(t));
}

const place& trace::at(site where) const {
  for (const place& p : places)
    if (p.where == where) return p;
  throw std::logic_error("explain: an access at a place that the lesson does not describe");
}

std::vector<request> trace::requests() const {
  std::vector<request> all;
  for (size_t block = 0; block < threads_.size(); ++block)
    for (size_t begin = 0; begin < threads_[block].size(); begin += chip.warp) {
      // kernel, phase, round, how often the thread has been here in this round, order in the source, width: lanes that
      // move 16 bytes and lanes that move 4 run different instructions
      using key = std::tuple<int, int, int, int, int, int>;
      std::map<key, request> warp;
      for (int lane = 0; lane < chip.warp && begin + lane < threads_[block].size(); ++lane) {
        std::map<std::tuple<int, int, int, site>, int> before;
        for (const event& e : threads_[block][begin + lane]) {
          const int again = before[{e.kernel, e.phase, e.round, e.where}]++;
          int line = 0;
          while (places[static_cast<size_t>(line)].where != e.where) ++line;
          request& r = warp[{e.kernel, e.phase, e.round, again, line, e.width}];
          r.kernel = e.kernel, r.block = static_cast<int>(block), r.warp = static_cast<int>(begin) / chip.warp;
          r.phase = e.phase, r.round = e.round, r.where = e.where;
          r.lanes.push_back({lane, e.first, e.width});
        }
      }
      for (auto& [unused, r] : warp) {
        count(r, arrays[static_cast<size_t>(at(r.where).array)], chip);
        all.push_back(std::move(r));
      }
    }
  return all;
}

namespace {

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A wavefront of shared memory gives each bank's word once. Lanes of more than 4 bytes are
// served in as many groups as their bytes fill all banks; within a group, every further
// word of a bank is a wavefront of its own (but for those of a lane wider than all banks).
void count_banks(request& r, const array& a, const machine& chip) {
  const int bank_row = chip.banks * 4;
  const int bytes = r.lanes.front().width * a.bytes, group = std::max(1, std::min(chip.warp, bank_row / bytes));
  const int least = std::max(1, bytes / bank_row);  // wavefronts of a lane by itself
  for (int first = 0; first < chip.warp; first += group) {
    std::map<int64_t, std::set<int64_t>> words;  // of a bank
    bool any = false;
    for (const touch& t : r.lanes) {
      if (t.lane < first || t.lane >= first + group) continue;
      any = true;
      for (int64_t word = t.first * a.bytes / 4; word * 4 < (t.first + t.width) * a.bytes; ++word)
        words[word % chip.banks].insert(word);
    }
    if (!any) continue;
    size_t fullest = 1;
    for (const auto& [bank, distinct] : words) fullest = std::max(fullest, distinct.size());
    r.met += static_cast<int>(fullest);
    r.needed += least;
    r.ways = std::max(r.ways, static_cast<int>(fullest) / least);
  }
}

}  // namespace

void count(request& r, const array& a, const machine& chip) {
  std::set<int64_t> elements, segments;
  for (const touch& t : r.lanes)
    for (int64_t e = t.first; e < t.first + t.width; ++e) {
      elements.insert(e);
      segments.insert(e * a.bytes / chip.segment_bytes);
      segments.insert((e * a.bytes + a.bytes - 1) / chip.segment_bytes);
    }
  r.bytes_used = static_cast<int64_t>(elements.size()) * a.bytes;
  if (a.where == space::global) {
    r.met = static_cast<int>(segments.size());
    r.needed = static_cast<int>(up(r.bytes_used, chip.segment_bytes));
  } else if (a.where == space::shared) {
    count_banks(r, a, chip);
  } else if (a.where == space::constant) {
    r.met = static_cast<int>(elements.size());
    r.needed = 1;
  } else {
    for (const touch& t : r.lanes) r.met += t.first == t.lane;
  }
}

double summary::efficiency(const machine& chip, const array& a) const {
  if (met == 0) return 1;
  return a.where == space::global ? static_cast<double>(bytes_used) / static_cast<double>(met * chip.segment_bytes)
                                  : static_cast<double>(needed) / static_cast<double>(met);
}

std::vector<summary> summarize(const trace& t, const std::vector<request>& all) {
  std::vector<summary> list;
  for (const place& p : t.places) {
    summary s;
    s.where = &p;
    const bool shared = t.arrays[static_cast<size_t>(p.array)].where == space::shared;
    for (const request& r : all) {
      if (r.where != p.where) continue;
      s.least_met = s.requests == 0 ? r.met : std::min(s.least_met, r.met);
      ++s.requests;
      s.lanes += static_cast<int64_t>(r.lanes.size());
      s.met += r.met, s.needed += r.needed, s.bytes_used += r.bytes_used;
      s.most_ways = std::max(s.most_ways, r.ways), s.most_met = std::max(s.most_met, r.met);
      const double taught = p.taught ? p.taught(r) : -1;
      if (taught < 0) continue;
      ++s.judged;
      s.agreed += taught == (shared ? r.ways : r.met);
      s.taught_least = s.judged == 1 ? taught : std::min(s.taught_least, taught);
      s.taught_most = std::max(s.taught_most, taught);
    }
    if (s.requests > 0) list.push_back(s);
  }
  return list;
}

}  // namespace lockstep::tool::explain
