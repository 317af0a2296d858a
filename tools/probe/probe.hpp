// probe.hpp - rows of the memory hierarchy: what is taught, what is measured, whether
// they agree.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "seam.hpp"

namespace lockstep::tool::probe {

using lockstep::probe::reading;

struct measured {
  std::string row, name, kernel, unit;
  double x, value, low, high;
  uint64_t got, expected;
  bool right() const { return got == expected; }
};

// All readings of one run.
class readings {
 public:
  void add(const reading& one) {
    keep({one.row, one.name, one.kernel, one.unit, one.x, one.value, one.low, one.high, one.got, one.expected});
  }
  void keep(measured one) { all_.push_back(std::move(one)); }
  const measured* find(const std::string& row, const std::string& name, double x = NAN) const;
  double value(const std::string& row, const std::string& name, double x = NAN) const;  // NAN when there is none
  double fact(const std::string& name) const { return value("device", name); }
  std::vector<const measured*> series(const std::string& row, const std::string& name) const;
  const std::vector<measured>& all() const { return all_; }

 private:
  std::vector<measured> all_;
};

// A prediction: an interval and how it reads. The tolerances are chosen with the rule,
// before anything is measured, and are printed with it.
struct range {
  double low, high;
  std::string text;
  std::string rule = {};  // where the numbers come from
  bool holds(double v) const { return v >= low && v <= high; }
  // Whether it is too wide to prove much: a factor of three between its ends, or only one end.
  bool is_bound() const { return high > low && !(low > 0 && high < 3 * low); }
  range by(std::string why) const { return {low, high, text, std::move(why)}; }
};
range about(double v, double tolerance);  // v +- a fraction of it
range exactly(double v);
range between(double low, double high);
range at_least(double v);
range at_most(double v);
range no_rule();  // contains nothing: for measurements without a rule

// An interval set after such a device had been measured and the rule had failed. It is not
// a prediction, so a measurement within it does not count as agreement with a rule.
struct fit {
  range seen;
  std::string why;  // why the rule fails, as far as that is known
};

// fitted: the rule's prediction fails, the interval that was set afterwards holds;
// wrong: the values that the probe read are not what the host expects.
enum class verdict { agrees, moved_on, fitted, differs, wrong };
const char* text(verdict v);

struct line {
  std::string name, unit, kernel;
  std::optional<range> taught;  // set if an older rule predicts something else
  range now;                    // the rule that should hold on this device, as it was before one was measured
  double value, low, high;
  bool right;
  verdict said;
  std::optional<fit> after;  // only where the rule was seen to fail
  // The basis of the verdict besides the device's counters: "rule" or "fitted".
  const char* witness() const { return said == verdict::fitted ? "fitted" : "rule"; }
  // The value with as many digits as it takes to see on which side of the prediction it lies.
  std::string figure() const;
};
struct point {
  double x, y;
  std::optional<double> predicted;
  std::optional<double> fitted = {};
  std::optional<range> within = {};  // the rule's interval, where this point is judged by it
};
struct mark {
  double x;
  std::string label;
};
struct series {
  std::string name, x_name, y_name;
  bool x_log = false, y_log = false;
  std::vector<point> points;
  std::vector<mark> marks;
};
// Readings of one row side by side.
struct bars {
  std::string title, unit;
  std::vector<std::pair<std::string, double>> values;  // by the names of lines, where they are judged
};
// A line of the summary picture (E15).
struct memory {
  std::string name, where, seen_by, lives, cached, size;
  double latency_cycles, gb_s;  // NAN where nothing is measured
};
struct row {
  std::string id, counterpart, backend, title;
  std::string taught, today, lesson;
  std::vector<line> lines;
  std::vector<series> plots;
  std::vector<bars> columns;
  std::vector<memory> picture;
  verdict said() const;
  // A text, and the lines that it is said of.
  struct remark {
    std::string what, lines;
  };
  std::vector<remark> rules() const;   // where predictions come from
  std::vector<remark> fitted() const;  // why only what was set afterwards holds

  // Judges one reading; nothing is added when the device gave none.
  void judge(const measured* m, const range& now, const std::optional<range>& taught = {},
             const std::optional<fit>& after = {});
  // The same for a value derived from several readings.
  void judge(const std::string& name, const std::string& unit, double value, const range& now,
             const std::optional<range>& taught = {}, const std::optional<fit>& after = {});
  // Draws readings of this row; those that the device did not give are left out.
  void bar(const std::string& title, const readings& all, const std::vector<const char*>& names);
};

// A row of the ladder on one backend.
struct kind {
  const char *id, *counterpart, *backend, *title;
  std::vector<const char*> measures;  // rows whose readings it needs, its own first
  void (*judge)(row& out, const readings& all);
};
std::vector<kind> kinds();
row judged(const kind& k, const readings& all);
// In rows/.
std::vector<kind> shared_kinds();     // E2, E3, E11, E12
std::vector<kind> global_kinds();     // E7, E8, E9
std::vector<kind> cached_kinds();     // E4, E5, E6
std::vector<kind> chip_kinds();       // E1, E10, E13, E14, E15
constexpr double intel = 1, amd = 2;  // the fact "vendor" of row "host"; 0: another
std::vector<kind> host_kinds();       // H1-H8

// Measures rows on the CPU; false when this machine cannot, and why.
struct host_limits {
  double seconds = 0.05;
  int threads = 1;
};
bool measure_on_cpu(const std::string& row, const host_limits& limits, readings& to, std::string& why);
std::string cpu_name();

// The CUDA probes of this machine.
class cuda_module {
 public:
  cuda_module();  // finds and loads it; usable() false and why() when there is none
  bool usable() const { return table_ != nullptr && devices_ > 0; }
  const std::string& why() const { return why_; }
  std::string name() const;
  std::string detail() const;
  bool measure(const std::string& row, double seconds, readings& to, std::string& why) const;

 private:
  const lockstep::probe::module* table_ = nullptr;
  int32_t devices_ = 0;
  std::string why_, path_;
};

struct report {
  std::vector<std::pair<std::string, std::string>> machine;  // date, commit ...
  struct device {
    std::string backend, name, detail;
  };
  std::vector<device> devices;
  std::vector<row> rows;
  std::vector<std::string> missing;
  readings all;
};
// Lines by verdict, in words: what rules foretold is counted apart from what was fitted, and from bounds.
std::string tally(const std::vector<row>& rows);
std::string json_text(const report& all);
void print_table(const report& all);
void write_html(const report& all, const std::string& path);
// picture.cpp: E15 as a drawing, and the rules of its classes.
std::string picture_svg(const std::vector<memory>& all);
const char* picture_style();
// The readings of a file that --json wrote; its rows are not judged yet.
report read_results(const std::string& path);

}  // namespace lockstep::tool::probe
