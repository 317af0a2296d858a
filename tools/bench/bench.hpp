// bench.hpp - types shared by the files of `lockstep bench`.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../cli.hpp"
#include "../json.hpp"
#include "timing.hpp"
#include "verdict.hpp"

namespace lockstep::tool::bench {

// A line of a preset: a case by its name (tests/cases), and the variants to time:
// "auto", or "all" for every row that takes it (the ladder).
struct line {
  std::string name;
  std::string variants = "auto";
};
std::vector<line> preset(const std::string& preset, const std::string& backend);
std::vector<std::string> preset_names();
std::vector<line> cliffs(const std::string& backend);

struct options {
  place where;
  std::vector<std::string> backends;
  std::string preset = "quick", filter, variants;
  std::vector<std::string> cases;
  bool cold = false, verify = true;
  double seconds = 0;                                  // time a measurement may take; 0: the preset's
  std::string memory = "device";                       // where a GPU's src and dst lie: device, pinned or pageable
  std::string note;                                    // goes into the results: a driver's version
  std::string peers;                                   // folder of peer programs, "" for none
  int64_t sample = -1, count = 110, first = 0;         // a sample's seed, and which of its draws (sample.hpp)
  std::string sample_ops = "old";                      // its distribution
  std::string against;                                 // regular expression: the peers that a sample is judged against
  std::function<void(const struct report&)> progress;  // called after each case
};

struct result {
  std::string name, op, backend, variant, device, source;  // source: "lockstep", or a peer with its version
  bool cold = false, by_auto = false;                      // by_auto: the variant was not named
  double bytes = 0;  // compulsory: each input byte read once, each output byte written once (a sweep)
  timing time;
  std::string limit;                             // "copy", "read", or "link" (both ways at once, pinned)
  double limit_gb_s = 0;                         // best of our limit kernels and of everything timed for this case
  std::string memory;                            // of a crossover: where src and dst lie
  double over_better = 0;                        // of a crossover's auto: its time over the better of CPU and device
  pairing beside;                                // of a peer: the rounds in which it and ours took turns
  std::vector<std::array<double, 2>> rounds_ms;  // of a peer: the medians of ours and its in each round
  std::vector<double> round_ms;                  // of a crossover: the medians of each round
  std::string checked;                           // "bits equal", "within 1e-5", "not checked: ..."
  double gb_s() const { return time.median > 0 ? bytes / time.median * 1e-6 : 0; }
  double fraction() const { return limit_gb_s > 0 ? gb_s() / limit_gb_s : 0; }
};

struct report {
  nlohmann::ordered_json machine;  // device, driver, CPU, commit, date, threads
  std::map<std::string, nlohmann::ordered_json> limits;
  std::vector<result> results;
  std::vector<std::string> skipped;  // "case: reason"
  std::vector<std::string> wrong;    // likewise: ours, with other bits than the oracle's; the program's exit code is 1
};

// The preset crossover (crossover.cpp).
void measure_crossover(const options& asked, report& out);
void print_crossover(const report& all);
// The cases that are timed on a backend.
std::vector<line> lines_of(const options& asked, const std::string& backend);
report measure_all(const options& asked);
// The idea of a variant from its table; "" if the table is not available.
std::string idea_of(const std::string& backend, const std::string& op, const std::string& variant);
nlohmann::ordered_json to_json(const report& all);
void print_table(const report& all);
// One offline page of charts (page/); runs as to_json makes them, names for errors.
void write_page(std::vector<nlohmann::ordered_json> runs, const std::vector<std::string>& names,
                const std::string& path);
// In the layout and under the names of NVBench's JSON (nvbench.cpp).
void write_nvbench(const report& all, const std::string& path);
void write_csv(const report& all, const std::string& path);
// Prints FAST, SLOW, SAME or unclear a row; 1 when any is SLOW. Both as to_json makes them.
int compare(const nlohmann::ordered_json& before, const nlohmann::ordered_json& after);

}  // namespace lockstep::tool::bench
