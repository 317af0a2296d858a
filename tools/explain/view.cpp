// view.cpp - see view.hpp.
#include "view.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

#include "cli.hpp"

namespace lockstep::tool::explain {
namespace {

// Steps whose requests look alike need one drawing: same places, lanes, costs and partner of the first lane.
std::string signature(const view& v, const std::vector<const request*>& step) {
  std::string text;
  for (const request* r : step)
    text += format_text("{}/{}/{}/{}/{}/{};", r->kernel, static_cast<int>(r->where), r->lanes.size(), r->met, r->ways,
                        array_of(v, *r).where == space::lanes ? r->lanes.front().first : 0);
  return text;
}

std::vector<size_t> choose(const view& v, const std::string& step) {
  std::vector<size_t> shown;
  if (step == "all") {
    for (size_t k = 0; k < v.steps.size(); ++k) shown.push_back(k);
  } else if (!step.empty()) {
    size_t number = 0;
    const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), number);
    if (error != std::errc() || *end != '\0' || number < 1 || number > v.steps.size())
      refuse("--step {}: this warp has steps 1 to {}; give one of them, or all", step, v.steps.size());
    shown.push_back(number - 1);
  } else {
    std::set<std::string> seen;
    for (size_t k = 0; k < v.steps.size() && v.steps[k].front()->kernel == 0; ++k)  // the finish is the same for all
      if (seen.insert(signature(v, v.steps[k])).second ||
          (v.how.classic && v.steps.size() <= 8 && v.how.op != "shuffle"))
        shown.push_back(k);
  }
  return shown;
}

// The threads that work between the barriers of the first kernel; empty if that never changes.
std::vector<level> levels_of(const view& v) {
  const launch& grid = v.t.launches.front();
  const int threads = grid.block_x * grid.block_y, warp = v.t.chip.warp;
  std::vector<level> all;
  for (int t = 0; t < threads; ++t)
    for (const event& e : v.t.of_thread(v.block, t)) {
      if (e.kernel != 0) continue;
      while (static_cast<int>(all.size()) <= e.phase)
        all.push_back({static_cast<int>(all.size()), std::vector<bool>(static_cast<size_t>(threads)), 0, 0, 0});
      all[static_cast<size_t>(e.phase)].works[static_cast<size_t>(t)] = true;
    }
  for (level& l : all)
    for (int t = 0, seen = -1; t < threads; ++t) {
      if (!l.works[static_cast<size_t>(t)]) continue;
      ++l.threads;
      l.warps += t / warp != seen;
      seen = t / warp;
    }
  for (const request& r : v.all)
    if (r.kernel == 0 && r.block == v.block && array_of(v, r).where == space::shared)
      all[static_cast<size_t>(r.phase)].wavefronts += r.met;
  std::erase_if(all, [](const level& l) { return l.threads == 0; });
  const bool changes = std::any_of(all.begin(), all.end(), [&](const level& l) { return l.threads != threads; });
  return all.size() > 1 && changes ? all : std::vector<level>();
}

}  // namespace

view make_view(const lesson& what, const settings& how, trace t, int block, int warp, const std::string& step) {
  view v{&what, how, std::move(t), {}, {}, block, warp, {}, {}, {}, false};
  v.all = v.t.requests();
  v.sums = summarize(v.t, v.all);
  std::tuple<int, int, int> last{-1, -1, -1};
  int blocks = 0, warps = 0;
  for (const request& r : v.all) {
    blocks = std::max(blocks, r.block + 1);
    warps = std::max(warps, r.warp + 1);
    if (r.block != block || r.warp != warp) continue;
    const std::tuple<int, int, int> now{r.kernel, r.phase, r.round};
    if (now != last) v.steps.emplace_back();
    last = now;
    v.steps.back().push_back(&r);
  }
  if (block < 0 || block >= blocks) refuse("--at-block {}: the grid has blocks 0 to {}", block, blocks - 1);
  if (warp < 0 || warp >= warps) refuse("--at-warp {}: a block has warps 0 to {}", warp, warps - 1);
  if (v.steps.empty())
    refuse("--at-block {} --at-warp {}: this warp touches nothing here; choose another", block, warp);
  v.shown = choose(v, step);
  v.asked = !step.empty();
  v.levels = levels_of(v);
  return v;
}

const array& array_of(const view& v, const request& r) {
  return v.t.arrays[static_cast<size_t>(v.t.at(r.where).array)];
}

window window_of(const view& v, const request& r, int64_t most_rows, int64_t most_columns) {
  const array& a = array_of(v, r);
  std::set<int64_t> rows;
  int64_t left = a.columns, right = 0;
  for (const touch& t : r.lanes)
    for (int64_t e = t.first; e < t.first + t.width; ++e) {
      rows.insert(e / a.columns);
      left = std::min(left, e % a.columns), right = std::max(right, e % a.columns);
    }
  const int64_t all_rows = (a.elements + a.columns - 1) / a.columns;
  if (all_rows <= most_rows && (all_rows <= 8 || rows.size() * 4 >= static_cast<size_t>(all_rows)))
    for (int64_t k = 0; k < all_rows; ++k) rows.insert(k);  // small enough to be seen whole
  window w{{}, 0, a.columns};
  if (a.columns > most_columns) {
    const int64_t unit = a.where == space::global ? std::max<int64_t>(1, v.t.chip.segment_bytes / a.bytes) : 1;
    w.first_column =
        std::max<int64_t>(0, std::min(left / unit * unit, (a.columns - most_columns + unit - 1) / unit * unit));
    w.columns = std::min(a.columns - w.first_column, most_columns);
  }
  int64_t last = -1, drawn = 0;
  for (const int64_t row : rows) {
    if (drawn == most_rows) {
      w.rows_left_out = static_cast<int64_t>(rows.size()) - drawn;
      w.rows.push_back(-1);
      break;
    }
    if (row != last + 1) w.rows.push_back(-1);
    w.rows.push_back(row);
    last = row;
    ++drawn;
  }
  if (w.rows_left_out == 0 && last != all_rows - 1) w.rows.push_back(-1);
  return w;
}

int lane_at(const request& r, int64_t element) {
  int lane = -1;
  for (const touch& t : r.lanes)
    if (element >= t.first && element < t.first + t.width) lane = lane == -1 ? t.lane : -2;
  return lane;
}
std::string lane_text(int lane) {
  if (lane == -1) return ".";
  if (lane == -2) return "*";
  return std::string(1, static_cast<char>(lane < 10 ? '0' + lane : 'a' + lane - 10));
}

std::string name_of(const view& v, const summary& s) {
  const array& a = v.t.arrays[static_cast<size_t>(s.where->array)];
  return format_text("{} {}{}",
                     a.where == space::lanes ? "exchange"
                     : s.where->writes       ? "write"
                                             : "read",
                     a.name, s.where->part.empty() ? "" : ", " + s.where->part);
}

std::vector<std::pair<std::string, std::string>> facts(const view& v) {
  const launch& grid = v.t.launches.front();
  const std::string block =
      grid.block_y > 1 ? format_text("{} x {}", grid.block_x, grid.block_y) : format_text("{}", grid.block_x);
  const array& src = v.t.arrays.front();
  const std::string size =
      v.how.op == "transpose" ? format_text("{} x {}", v.how.rows, v.how.columns) : format_text("{}", src.elements);
  std::vector<std::pair<std::string, std::string>> all = {
      {"Array", format_text("{} elements of {} bytes", size, src.bytes)}};
  if (v.how.op == "stencil")
    all.emplace_back("Stencil", format_text("radius {}, boundary {}{}", v.how.radius, v.how.boundary,
                                            v.how.sweeps > 1 ? format_text(", {} sweeps", v.how.sweeps) : ""));
  if (v.how.op == "shuffle")
    all.emplace_back("Shuffle", format_text("{} by {}, width {}", v.how.kind, v.how.operand, v.how.width));
  all.emplace_back("Grid", format_text("{} {} of {} {}", grid.blocks, grid.blocks == 1 ? "block" : "blocks", block,
                                       block == "1" ? "thread" : "threads"));
  all.emplace_back("Machine", format_text("warps of {} {}, segments of {} bytes, {} {} of 4 bytes", v.t.chip.warp,
                                          v.t.chip.warp == 1 ? "lane" : "lanes", v.t.chip.segment_bytes, v.t.chip.banks,
                                          v.t.chip.banks == 1 ? "bank" : "banks"));
  return all;
}
std::string headline(const view& v) {
  std::string line;
  for (const auto& [name, value] : facts(v)) line += (line.empty() ? "" : "; ") + value;
  return line;
}

std::string not_drawn(const view& v, const char* like) {
  if (v.shown.size() == v.steps.size()) return {};
  if (v.asked) return format_text("This warp has {} steps.", v.steps.size());
  size_t first = v.steps.size();  // of what follows the kernel itself
  while (first > 0 && v.steps[first - 1].front()->kernel > 0) --first;
  std::string text;
  if (v.shown.size() < first) text = format_text("The other steps of this warp look like {}. ", like);
  if (first < v.steps.size())
    text += format_text("Steps {} to {} are those of {}. ", first + 1, v.steps.size(),
                        v.t.launches[static_cast<size_t>(v.steps[first].front()->kernel)].name);
  text.pop_back();
  return text;
}
std::string other_steps(const view& v) {
  const std::string text = not_drawn(v);
  return text.empty() ? text : format_text("{} To see them: --step all, or --step 1 to {}.", text, v.steps.size());
}

std::string work_title(const view& v) {
  return format_text("The threads of block {} that are at work, from barrier to barrier", v.block);
}
std::string name_of(const level& l) { return l.barrier == 0 ? "at first" : format_text("after barrier {}", l.barrier); }
std::string text_of(const view& v, const level& l) {
  const auto all = static_cast<int>(l.works.size()), warps = (all + v.t.chip.warp - 1) / v.t.chip.warp;
  std::string text = format_text("{} of {} threads, {} of {} warps", l.threads, all, l.warps, warps);
  if (l.wavefronts > 0) text += format_text("; {} wavefront{}", l.wavefronts, l.wavefronts == 1 ? "" : "s");
  return text;
}

std::string step_title(const view& v, size_t step) {
  const request& r = *v.steps[step].front();
  std::string title = format_text("step {} of {}", step + 1, v.steps.size());
  if (v.t.launches.size() > 1) title += ", " + v.t.launches[static_cast<size_t>(r.kernel)].name;
  if (r.phase > 0) title += format_text(", after barrier {}", r.phase);
  return title;
}

std::string key_of(const view& v, const std::vector<size_t>& steps, const std::string& frames) {
  bool global = false, shared = false;
  int most_bytes = 0;  // of a lane's access to shared memory
  for (const size_t step : steps)
    for (const request* r : v.steps[step]) {
      const array& a = array_of(v, *r);
      global |= a.where == space::global;
      if (a.where != space::shared) continue;
      shared = true;
      most_bytes = std::max(most_bytes, r->lanes.front().width * a.bytes);
    }
  std::string key;
  if (global)
    key += format_text(
        "{}: the segments of {} bytes that memory moves for the request; \"used\" is what lanes asked for "
        "of them. ",
        frames, v.t.chip.segment_bytes);
  if (shared)
    key +=
        "A row of shared memory lies across all banks: lanes on different words of one column conflict and go one "
        "after another, a wavefront each. ";
  if (const int at_once = std::max(1, v.t.chip.banks * 4 / std::max(1, most_bytes)); shared && at_once < v.t.chip.warp)
    key += format_text("With {} bytes a lane only {} of {} lanes go at once, and only those conflict. ", most_bytes,
                       at_once, v.t.chip.warp);
  if (!key.empty()) key.pop_back();
  return key;
}

std::string caption(const view& v, const request& r) {
  const place& p = v.t.at(r.where);
  const array& a = array_of(v, r);
  const char* did = p.writes ? "written" : "read";
  const std::string lanes = static_cast<int>(r.lanes.size()) == v.t.chip.warp ? "all lanes"
                            : r.lanes.size() == 1                             ? "1 lane"
                                                  : format_text("{} of {} lanes", r.lanes.size(), v.t.chip.warp);
  if (a.where == space::lanes) return "values exchanged by " + lanes;
  return format_text("{}{} {} by {}", a.name, p.part.empty() ? "" : " (" + p.part + ")", did, lanes);
}

std::string cost(const view& v, const request& r) {
  const array& a = array_of(v, r);
  if (a.where == space::lanes)
    return r.met == 0   ? "registers, no memory; every lane receives another's value"
           : r.met == 1 ? "registers, no memory; 1 lane keeps its own value"
                        : format_text("registers, no memory; {} lanes keep their own value", r.met);
  if (a.where == space::constant)
    return r.met == 1 ? "1 word for all lanes" : format_text("{} words, one after another", r.met);
  if (a.where == space::shared)
    return r.ways > 1   ? format_text("{}-way conflict: {} wavefronts, {} needed", r.ways, r.met, r.needed)
           : r.met == 1 ? "no conflict: 1 wavefront"
                        : format_text("no conflict: {} wavefronts, {} needed", r.met, r.needed);
  return format_text("{} segment{}, {} needed: {:.3g} % used", r.met, r.met == 1 ? "" : "s", r.needed,
                     100.0 * static_cast<double>(r.bytes_used) / (static_cast<double>(r.met) * v.t.chip.segment_bytes));
}

bool wasteful(const view& v, const request& r) {
  const array& a = array_of(v, r);
  return a.where == space::shared ? r.ways > 1 : a.where != space::lanes && r.met > r.needed;
}

verdict_text verdict_of(const view& v, const summary& s) {
  const array& a = v.t.arrays[static_cast<size_t>(s.where->array)];
  const bool shared = a.where == space::shared;
  verdict_text text{true, {}, {}, {}};
  const auto range = [](double least, double most) {
    return least == most ? format_text("{:.4g}", most) : format_text("{:.4g} to {:.4g}", least, most);
  };
  const auto many = [&](double least, double most, const char* what) {
    return format_text("{} {}{}", range(least, most), what, most == 1 ? "" : "s");
  };
  if (a.where == space::lanes)
    text.counted = s.most_met == 0   ? "every lane receives another's value"
                   : s.most_met == 1 ? "1 lane keeps its own value"
                                     : format_text("{} lanes keep their own value", range(s.least_met, s.most_met));
  else if (a.where == space::constant)
    text.counted = many(s.least_met, s.most_met, "word") + " a request";
  else if (shared)
    text.counted = s.most_ways <= 1
                       ? "no conflict"
                       : format_text("{}-way conflict at most; {} wavefronts, {} needed", s.most_ways, s.met, s.needed);
  else
    text.counted = format_text("{} a request, {:.3g} % of their bytes used", many(s.least_met, s.most_met, "segment"),
                               100 * s.efficiency(v.t.chip, a));
  if (s.judged == 0) {
    text.verdict = s.where->taught ? "the rule speaks of full warps; there is none here" : "";
    return text;
  }
  if (shared)
    text.taught = s.taught_most <= 1 ? "no conflict" : range(s.taught_least, s.taught_most) + "-way";
  else if (a.where == space::lanes)
    text.taught = s.taught_most == 0   ? "none keeps its own"
                  : s.taught_most == 1 ? "1 keeps its own"
                                       : range(s.taught_least, s.taught_most) + " keep their own";
  else
    text.taught = many(s.taught_least, s.taught_most, a.where == space::global ? "segment" : "word");
  text.agrees = s.agreed == s.judged;
  if (text.agrees) {
    text.verdict = s.judged == s.requests
                       ? "as taught"
                       : format_text("as taught (the rule speaks of {} of {} requests)", s.judged, s.requests);
    return text;
  }
  text.verdict = format_text("differs in {} of {} requests", s.judged - s.agreed, s.judged);
  if (a.where == space::global && a.columns * a.bytes % v.t.chip.segment_bytes != 0)
    text.verdict += format_text(": rows of {} bytes do not start on a segment", a.columns * a.bytes);
  return text;
}

}  // namespace lockstep::tool::explain
