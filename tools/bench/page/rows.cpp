// rows.cpp - see rows.hpp.
#include "rows.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "../bench.hpp"
#include "../judge.hpp"
#include "cases.hpp"

namespace lockstep::tool::bench {

using nlohmann::ordered_json;

namespace {

// The whole number that ends where the first of these words begins; 0 if there is none.
int64_t number_before(const std::string& text, const char* word) {
  const size_t end = std::min(text.find(word), text.size());
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  int64_t number = 0;
  std::from_chars(text.data() + begin, text.data() + end, number);
  return number;
}

// The numbers of a shape such as "7x8"; none if the word is not one.
std::vector<int64_t> sizes_of(std::string_view token) {
  std::vector<int64_t> sizes;
  const char* at = token.data();
  const char* const end = at + token.size();
  const bool named = token.starts_with('n');
  for (at += named;; ++at) {
    int64_t size = 0;
    const auto [rest, code] = std::from_chars(at, end, size);
    if (code != std::errc{} || size < 0 || *at == '-') return {};
    sizes.push_back(size);
    at = rest;
    if (at == end) return named && sizes.size() > 1 ? std::vector<int64_t>() : sizes;
    if (*at != 'x') return {};
  }
}

}  // namespace

std::string place_of(const ordered_json& run, const ordered_json& result) {
  const ordered_json& meta = run.at("meta");
  const std::string backend = result.at("backend");
  std::string text = result.at("device");
  if (backend == "cpu") {
    int threads = meta.value("threads", 0);
    const std::string detail = meta.at("devices").at(backend).value("detail", "");
    if (threads == 0) threads = static_cast<int>(number_before(detail, " thread"));
    if (const auto cpu = meta.find("cpu"); cpu != meta.end()) {  // several processors are named "AMD EPYC"
      if (cpu->contains("chip"))
        text += format_text(" ({})", cpu->at("chip").get<std::string>());
      else if (cpu->contains("family"))
        text += format_text(" (family {}, model {}, stepping {})", cpu->at("family").get<std::string>(),
                            cpu->value("model", "?"), cpu->value("stepping", "?"));
    }
    if (threads != 0) text += format_text(", {} thread{}", threads, threads == 1 ? "" : "s");
  } else {
    const std::string memory = meta.value("memory", "device");
    text += format_text(", {} {}memory", memory, memory == "device" ? "" : "host ");
  }
  return result.value("cold", false) ? text + ", cold caches" : text;
}

namespace {

// The name with its sizes replaced: "" for shapes that are no series of one size.
std::string family_of(const std::string& name) {
  std::string out;
  bool sized = false;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    std::string token = name.substr(begin, end - begin);
    const std::vector<int64_t> sizes = sizes_of(token);
    if (sizes.size() == 2) {
      const int64_t a = sizes[0], b = sizes[1];
      if (std::max(a, b) - std::min(a, b) > 2) return "";
      token = a == b ? "n×n" : format_text("n{}1×n{}1", a > b ? '+' : '-', a > b ? '-' : '+');
      sized = true;
    } else if (sizes.size() == 3 && sizes[0] == sizes[1] && sizes[1] == sizes[2]) {
      token = "n×n×n", sized = true;
    } else if (sizes.size() == 1) {
      token = "n", sized = true;
    }
    out += (out.empty() ? "" : "/") + token;
    begin = end + 1;
  }
  return sized ? out : "";
}

double operations_of(const std::string& name) {
  const cases::test_case t = cases::parse_timed(name, true);
  const auto elements = static_cast<double>(t.src.elements());
  if (t.op == LOCKSTEP_SQUARE_SUM) return 2 * elements;  // a product and a sum
  if (t.op != LOCKSTEP_STENCIL) return elements;         // an addition or comparison; or the move
  // Per output a product, then a product and a sum for every other tap.
  const double taps = 2.0 * t.stencil.radius * t.stencil.rank + 1;
  return (2 * taps - 1) * static_cast<double>(t.dst.elements()) * t.stencil.sweeps;
}

row row_of(const ordered_json& run, const ordered_json& from, size_t index) {
  row r;
  r.run = index;
  r.place = place_of(run, from);
  r.name = from.at("name"), r.op = from.at("op"), r.backend = from.at("backend"), r.source = from.at("source");
  r.variant = from.at("variant"), r.idea = from.value("idea", ""), r.checked = from.value("checked", ""),
  r.limit = from.at("limit");
  r.on_cpu = r.backend == "cpu";
  r.bytes = from.at("bytes"), r.ms = from.at("median_ms"), r.noise = from.at("noise"), r.gb_s = from.at("gb_s");
  r.limit_gb_s = from.at("limit_gb_s"), r.fraction = from.at("fraction");
  r.best_peer = from.value("best_peer", ""), r.verdict = from.value("verdict", "");
  r.over_best = from.value("over_best_peer", from.value("ratio", 0.0));
  r.float_peer = from.value("float_peer", ""), r.float_verdict = from.value("float_verdict", "");
  r.over_float = from.value("over_float_peer", 0.0);
  r.own_order = r.checked.starts_with("own order");
  r.library = r.ours() && r.variant == "thrust";
  if (r.idea.empty() && r.ours()) r.idea = idea_of(r.backend, r.op, r.variant);  // of files that do not say it
  r.family = family_of(r.name);
  r.operations = operations_of(r.name);
  return r;
}

void name_places(material& all) {
  std::vector<std::string> cpus;
  all.places.clear();
  for (const row& r : all.rows) {
    std::vector<std::string>& list = r.on_cpu ? cpus : all.places;
    if (std::find(list.begin(), list.end(), r.place) == list.end()) list.push_back(r.place);
  }
  all.places.insert(all.places.end(), cpus.begin(), cpus.end());
}

}  // namespace

int look_of_peer(const std::string& name) {
  const std::string_view first = std::string_view(name).substr(0, name.find(' '));
  constexpr std::pair<std::string_view, int> looks[] = {
      {"CUB", 1},      {"Halide", 1}, {"PyTorch", 2},  {"CuPy", 3},   {"std::transform_reduce,", 3},
      {"cuBLAS", 4},   {"NumPy", 4},  {"OpenBLAS", 4}, {"Thrust", 5}, {"Eigen", 5},
      {"cuTENSOR", 7}, {"oneDNN", 7}, {"NPP", 6},      {"omp", 6}};
  for (const auto& [peer, look] : looks)
    if (first == peer) return look;
  int sum = 0;
  for (const char c : first) sum += static_cast<unsigned char>(c);
  return 1 + sum % 7;
}

material read_runs(std::vector<ordered_json> runs, const std::vector<std::string>& names) {
  material all;
  all.runs = std::move(runs);
  for (size_t i = 0; i < all.runs.size(); ++i) {
    try {
      judge(all.runs[i]);
      for (const ordered_json& result : all.runs[i].at("benchmarks"))
        if (!result.contains("memory"))  // those are whole calls, without a limit: choices.cpp
          all.rows.push_back(row_of(all.runs[i], result, i));
    } catch (const std::exception& error) {
      fail("{} is no result of lockstep bench --json: {}", i < names.size() ? names[i] : "this run", error.what());
    }
  }
  name_places(all);
  return all;
}

material without_samples(const material& all) {
  material rest = all;
  std::erase_if(rest.rows, [&](const row& r) { return all.runs[r.run].at("meta").contains("sample"); });
  name_places(rest);
  return rest;
}

std::vector<best> best_rows(const material& all, const std::string& place) {
  std::vector<best> found;
  std::map<std::string, size_t> at;  // by case
  for (const row& r : all.rows) {
    if (r.place != place || !r.ours() || r.own_order || r.library) continue;
    const auto [known, fresh] = at.emplace(r.name, found.size());
    if (fresh)
      found.push_back({&r, {}});
    else if (r.gb_s > found[known->second].ours->gb_s)
      found[known->second].ours = &r;
  }
  for (best& one : found) {
    for (const row& r : all.rows)
      if (!r.ours() && r.place == place && r.name == one.ours->name && r.run == one.ours->run) one.peers.push_back(&r);
    std::sort(one.peers.begin(), one.peers.end(), [](const row* a, const row* b) { return a->gb_s > b->gb_s; });
  }
  return found;
}

std::vector<best> headline_rows(const material& all, const std::string& place) {
  std::vector<best> found = best_rows(all, place);
  std::map<std::string, std::pair<int, double>> families;  // how many sizes, and the largest
  for (const best& one : found) {
    auto& [count, largest] = families[one.ours->family];
    ++count, largest = std::max(largest, one.ours->bytes);
  }
  std::erase_if(found, [&](const best& one) {
    const auto& [count, largest] = families[one.ours->family];
    return !one.ours->family.empty() && count > 5 && one.ours->bytes < largest;
  });
  return found;
}

std::string place_in(const material& all, size_t run, const std::string& backend) {
  for (const row& r : all.rows)
    if (r.run == run && r.backend == backend) return r.place;
  return "";
}

std::string percent(double fraction) { return format_text("{:.0f} %", 100 * fraction); }
std::string factor_text(double f) {
  return f < 9.995 ? format_text("{:.2f} ×", f) : pages::text_of(f, pages::unit::factor);
}
std::string gb_s_text(double gb_s) { return pages::text_of(gb_s, pages::unit::number) + " GB/s"; }

}  // namespace lockstep::tool::bench
