// rows.hpp - results of `lockstep bench --json`, of one run or of several files, as the
// sections of the page take them.
#pragma once

#include <string>
#include <vector>

#include "../../json.hpp"
#include "../../pages/page.hpp"

namespace lockstep::tool::bench {

struct row {
  size_t run = 0;     // which file
  std::string place;  // "NVIDIA H200, device memory", "AMD EPYC, 2 threads"
  bool on_cpu = false;
  std::string name, op, backend, source, variant, idea, checked, limit;
  bool own_order = false, library = false;
  double bytes = 0, ms = 0, noise = 0, gb_s = 0, limit_gb_s = 0, fraction = 0;
  std::string family;     // cases that differ in size alone: "transpose/b4/n×n"; "" where there are no others
  double operations = 0;  // arithmetic; an element that is only moved counts as one
  // As judge (judge.hpp) wrote them. Of ours: the peer that it is compared with, and a faster one that adds in float.
  std::string best_peer, verdict, float_peer, float_verdict;
  double over_best = 0, over_float = 0;
  bool ours() const { return source == "lockstep"; }
};

struct material {
  std::vector<nlohmann::ordered_json> runs;
  std::vector<row> rows;
  std::vector<std::string> places;  // in order of appearance, CPU last
};

// Throws failure, naming the file, where one is not what bench writes.
material read_runs(std::vector<nlohmann::ordered_json> runs, const std::vector<std::string>& names);

// The rows that no sample drew: a sample's have a section of their own, and rounds too few for a verdict.
material without_samples(const material& all);

// Each case's fastest row of ours at a place, in the files' order; with the peers of that
// run, if any.
struct best {
  const row* ours;
  std::vector<const row*> peers;  // fastest first
};
std::vector<best> best_rows(const material& all, const std::string& place);

// The place of a run's rows on a backend; "" where it has none.
std::string place_in(const material& all, size_t run, const std::string& backend);
// Cache sizes, as the device's description names them.
std::vector<pages::mark> caches_of(const material& all, size_t run, const std::string& backend);

// Of these, what an overview shows: of a case in more than five sizes the largest alone.
std::vector<best> headline_rows(const material& all, const std::string& place);

// Of a row of a run's "benchmarks": its device, its memory or its threads.
std::string place_of(const nlohmann::ordered_json& run, const nlohmann::ordered_json& result);

// The colour and the mark of a peer, 1 to 7, by the first word of its name: the same on every page. 0 is ours.
int look_of_peer(const std::string& name);

std::string percent(double fraction);
std::string gb_s_text(double gb_s);
std::string factor_text(double factor);

// The sections, in order; each adds itself where there is something to show.
void add_verdict(pages::page& p, const material& all);
void add_method(pages::page& p, const material& all);
void add_limits(pages::page& p, const material& all);
void add_sample(pages::page& p, const material& all);
void add_fractions(pages::page& p, const material& all);
void add_roofline(pages::page& p, const material& all);
void add_ladder(pages::page& p, const material& all);
void add_sweep(pages::page& p, const material& all);
void add_crossover(pages::page& p, const material& all);
void add_choices(pages::page& p, const material& all);
void add_peers(pages::page& p, const material& all);
void add_skipped(pages::page& p, const material& all);

}  // namespace lockstep::tool::bench
