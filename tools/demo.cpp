// demo.cpp - lockstep demo: the four families on real input, on every usable backend.
// Each result is compared bit for bit with the CPU's plain loops before it is timed, and
// each time is shown with the memory limit of the same run.
#include "demo.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "import.hpp"
#include "json.hpp"
#include "limits.hpp"
#include "progress.hpp"

namespace lockstep::tool {
namespace {

using nlohmann::ordered_json;

struct demo_options {
  place where;
  input_paths paths;
  std::string pictures, json;
  bool quick = false;
};

// The CPU, last of the list, first of the table.
std::vector<std::string> backends_of(const demo_options& o) {
  std::vector<std::string> names =
      o.where.backend.empty() ? usable_backends() : named_backends({o.where.backend}, o.where);
  std::reverse(names.begin(), names.end());
  return names;
}

// Memory of a backend with a copy of src in it, and room for dst.
class device_copy {
 public:
  device_copy(lockstep_context* context, const std::string& backend, const void* src, size_t bytes)
      : context_(context), backend_(backend), bytes_(bytes) {
    check(lockstep_alloc(context, backend.c_str(), LOCKSTEP_DEVICE, bytes, &pointer_));
    if (src != nullptr) check(lockstep_copy(context, backend.c_str(), src, pointer_, bytes));
  }
  ~device_copy() { (void)lockstep_free(context_, backend_.c_str(), LOCKSTEP_DEVICE, bytes_, pointer_); }
  device_copy(const device_copy&) = delete;
  device_copy& operator=(const device_copy&) = delete;
  void* pointer() const { return pointer_; }

 private:
  lockstep_context* context_;
  const std::string backend_;
  size_t bytes_;
  void* pointer_ = nullptr;
};

timing measure(lockstep_context* context, const std::string& backend, const call& c, const demo_case& one, char* dst,
               int samples) {
  lockstep_options options = lockstep_options_defaults();
  options.backend = backend.c_str();
  const bool on_device = backend != "cpu";
  if (on_device) options.flags = LOCKSTEP_DEVICE_DATA;
  lockstep_plan* made = nullptr;
  check(c.plan(context, &options, &made));
  const std::unique_ptr<lockstep_plan, decltype(&lockstep_plan_destroy)> plan(made, lockstep_plan_destroy);
  if (!on_device) return time_plan(plan.get(), one.src.data, dst, 0, samples);
  const device_copy src(context, backend, one.src.data, one.src.header.data_bytes());
  const device_copy result(context, backend, nullptr, c.result.data_bytes());
  return time_plan(plan.get(), src.pointer(), result.pointer(), 0, samples);
}

struct demo_row {
  std::string backend, variant, why, error, meaning;
  bool equal = false;
  timing time;
  double limit_share = 0, bytes = 0;
};

demo_row run_on(lockstep_context* context, limits& known, const std::string& backend, const demo_case& one,
                const call& c, const array& reference, int samples, array& result) {
  demo_row row;
  row.backend = backend;
  row.bytes = static_cast<double>(one.src.header.data_bytes() + c.result.data_bytes());
  lockstep_options options = lockstep_options_defaults();
  options.backend = backend.c_str();
  if (c.run(context, one.src.data, writable(result), &options) != LOCKSTEP_OK) {
    row.error = lockstep_last_error();
    return row;
  }
  lockstep_run_info info{};
  info.size = sizeof info;
  check(lockstep_last_run(&info));
  row.variant = info.variant;
  row.why = info.why;
  row.equal = std::memcmp(result.data, reference.data, c.result.data_bytes()) == 0;
  if (!row.equal) {
    row.error = "its bits are not those of the plain loops";
    return row;
  }
  row.meaning = one.meaning(c, result.data);
  row.time = measure(context, backend, c, one, writable(result), samples);
  // The limit is a copy if much is written, else a read.
  const bool reads = c.result.data_bytes() * 8 < one.src.header.data_bytes();
  const auto kind = reads ? LOCKSTEP_LIMIT_READ : LOCKSTEP_LIMIT_COPY;
  const double limit = known.seconds(backend, kind, static_cast<size_t>(row.bytes), 0) * one.what.sweeps;
  row.bytes *= one.what.sweeps;
  row.limit_share = row.time.seconds > 0 ? limit / row.time.seconds : 0;
  return row;
}

void show_inputs(const real_input& in, const style& s) {
  const std::pair<const found_input*, const array*> all[] = {{&in.picture_from, &in.picture},
                                                             {&in.signal_from, &in.signal},
                                                             {&in.table_from, &in.table},
                                                             {&in.text_from, &in.text}};
  for (const auto& [from, data] : all) {
    print("{:<8} {}, {} {} ({})\n         {}{}{}\n", from->role, from->what, data->header.descr,
          shape_text(data->header.shape), bytes_text(static_cast<double>(data->header.data_bytes())), s.dim, from->path,
          s.off);
    if (!from->missing.empty())
      print("         {}the packaged {} is missing: apt-get install {}{}\n", s.bad, from->role, from->missing, s.off);
  }
  print("\n");
}

void show_row(const demo_case& one, const demo_row& row, bool first, const style& s) {
  const std::string head = format_text("{:<10} {:<27}", first ? one.family : "", first ? one.name : "");
  if (!row.error.empty()) {
    print("{} {:<6} {}{}{}\n", head, row.backend, s.bad, row.error, s.off);
    return;
  }
  print("{} {:<6} {:<22} {:>10} +-{:>3.0f} % {:>7.1f} GB/s {}{:>4.0f} %{}  {}equal{}{}{}\n", head, row.backend,
        row.variant, time_text(row.time.seconds), 50 * row.time.spread, row.bytes / row.time.seconds * 1e-9, s.bold,
        100 * row.limit_share, s.off, s.good, s.off, row.meaning.empty() ? "" : "  ", row.meaning);
}

ordered_json json_of(const demo_case& one, const demo_row& row) {
  return {{"family", one.family},
          {"case", one.name},
          {"op", lockstep_op_name(one.what.op)},
          {"dtype", one.src.header.descr},
          {"shape", one.src.header.shape},
          {"backend", row.backend},
          {"variant", row.variant},
          {"why", row.why},
          {"error", row.error},
          {"bits_equal", row.equal},
          {"seconds", row.time.seconds},
          {"spread", row.time.spread},
          {"samples_ms", row.time.samples_ms},
          {"bytes", row.bytes},
          {"fraction_of_limit", row.limit_share},
          {"meaning", row.meaning}};
}

// The pictures of the README: unchanged, transposed, and its edges. The edge filter runs on
// the picture of 480 pixels, because edges of the full size would average out.
void write_pictures(lockstep_context* context, const std::string& folder, const demo_case& one, const array& result) {
  if (one.what.op == LOCKSTEP_TRANSPOSE) {
    write_picture(folder + "/picture.png", thinned(as_picture(one.src, 0, 255), 480));
    write_picture(folder + "/transposed.png", thinned(as_picture(result, 0, 255), 270));
  } else if (one.what.op == LOCKSTEP_STENCIL && result.header.shape.size() == 2) {
    const array small = gray(thinned(as_picture(one.src, 0, 255), 480));
    array edges = make_array("<f4", small.header.shape);
    check(make_call(one.what, small).run(context, small.data, writable(edges), nullptr));
    write_picture(folder + "/edges.png", as_picture(edges, -160, 160));
  }
}

int demo(const demo_options& o) {
  const bool piped = take_stdout({{"--json", o.json}});
  if (!o.pictures.empty() && !std::filesystem::is_directory(o.pictures))  // checked before minutes of work
    fail("--pictures: there is no folder {}; make it first", o.pictures);
  const context context(o.where);
  const style s = stdout_style();
  real_input in;
  {
    const progress shown("reading real input", 0);
    in = find_real_input(o.paths);
  }
  if (!piped) show_inputs(in, s);
  if (const std::string busy = busy_machine(); !busy.empty() && !piped) print("{}{}{}\n\n", s.bad, busy, s.off);
  const std::vector<std::string> backends = backends_of(o);
  const int samples = o.quick ? 3 : 15;
  limits known(context, samples);
  ordered_json report = {{"inputs", ordered_json::array()}, {"rows", ordered_json::array()}};
  for (const found_input* from : {&in.picture_from, &in.signal_from, &in.table_from, &in.text_from})
    report["inputs"].push_back(
        {{"role", from->role}, {"path", from->path}, {"missing_package", from->missing}, {"what", from->what}});

  if (!piped)
    print("{}{:<10} {:<27} {:<6} {:<22} {:>10} {:>7} {:>12} {:>6}  bits{}\n", s.bold, "family", "case", "on", "variant",
          "time", "spread", "", "limit", s.off);
  int compared = 0, equal = 0, failed = 0;
  for (const demo_case& one : demo_cases(in)) {
    const call c = make_call(one.what, one.src);
    array reference = make_array(c.result.descr, c.result.shape), result = make_array(c.result.descr, c.result.shape);
    lockstep_options plain = lockstep_options_defaults();
    plain.backend = "cpu";
    plain.variant = "ref";
    const bool has_reference = c.run(context, one.src.data, writable(reference), &plain) == LOCKSTEP_OK;
    const std::string no_reference = has_reference ? "" : lockstep_last_error();
    bool first = true;
    for (const std::string& backend : backends) {
      demo_row row;
      row.backend = backend;
      row.error = no_reference;
      if (has_reference) {
        const progress shown(format_text("{} on {}", one.name, backend), 0);
        std::memset(writable(result), 0xA5, c.result.data_bytes());
        row = run_on(context, known, backend, one, c, reference, samples, result);
      }
      compared += row.variant.empty() ? 0 : 1;
      equal += row.equal ? 1 : 0;
      failed += row.error.empty() ? 0 : 1;
      report["rows"].push_back(json_of(one, row));
      if (!piped) show_row(one, row, first, s), flush();
      first = false;
    }
    if (has_reference && !o.pictures.empty()) write_pictures(context, o.pictures, one, reference);
  }
  if (!o.json.empty()) write_file(o.json, report.dump(2) + "\n");
  if (!piped)
    print(
        "\n{} of {} results have the bits of the CPU's plain loops. \"limit\" is the fraction of the fastest copy (of "
        "the\n"
        "fastest read, for reductions) of as many bytes on the same backend and threads, in this run.\n\n"
        "Next: lockstep explain transpose         what each thread of a GPU kernel reads and writes\n"
        "      lockstep bench --html bench.html   every operation beside this machine's limits, as a page\n"
        "      lockstep probe                     what this machine's memory can do, and why\n"
        "      man lockstep                       your own arrays: import, run, export\n",
        equal, compared);
  return failed == 0 ? 0 : 1;
}

}  // namespace

void demo_command(command root, action& chosen) {
  auto o = std::make_shared<demo_options>();
  auto command = root.add_command(
      "demo", "Run the four families on real input, on every backend: bits, time, fraction of the limit");
  command.add("--picture", o->paths.picture, "another picture (PNG, JPEG, PBM, PGM, PPM)").type_name("FILE");
  command.add("--signal", o->paths.signal, "another signal (WAV, .npy of f4 or f8)").type_name("FILE");
  command.add("--table", o->paths.table, "another table (GTX, numbers, .npy of f4 or f8)").type_name("FILE");
  command.add("--text", o->paths.text, "another text").type_name("FILE");
  command.add("--pictures", o->pictures, "write the resulting pictures to this folder, as PNG").type_name("FOLDER");
  command.add("--quick", o->quick, "3 samples in place of 15");
  command.add_json(o->json, "the results for programs");
  command.add("--backend", o->where.backend, "only this one (default: every usable one)").type_name("NAME");
  command.add("--threads", o->where.threads, "CPU threads, 0 for the default").type_name("N").between(0, 4096);
  command.add("--isa", o->where.isa, "CPU instruction set").type_name("NAME");
  command.when_called([&chosen, o] { chosen = [o] { return demo(*o); }; });
}

}  // namespace lockstep::tool
