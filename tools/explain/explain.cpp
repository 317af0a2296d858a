// explain.cpp - lockstep explain OP --variant V: what each lane of a variant's kernel
// reads and writes, replayed from the kernel's own index arithmetic and drawn.
#include "cli.hpp"
#include "file.hpp"
#include "view.hpp"

namespace lockstep::tool {
namespace explain {

namespace {

struct options : settings {
  int at_block = -1, at_warp = -1;  // -1: the lesson's
  std::string step, svg, html;
  bool list = false;
  std::string json;
};

int list(const std::string& op) {
  for (const auto* lessons : all_lessons())
    for (const lesson& l : *lessons)
      if (op.empty() || op == l.op) print("{:<4} {:<10} {}\n", l.row, l.op, l.variant);
  return 0;
}

// Options that not every op has. Internally 0 means the lesson's default, so users cannot pass 0.
struct own_option {
  const char *name, *ops;
  bool counts;
};
constexpr own_option own_options[] = {{"--rows", "transpose", true},
                                      {"--columns", "transpose", true},
                                      {"--tile", "transpose", true},
                                      {"--n", "square_sum, stencil and shuffle", true},
                                      {"--block", "square_sum, stencil and shuffle", true},
                                      {"--blocks", "square_sum", true},
                                      {"--partial-bytes", "square_sum", true},
                                      {"--radius", "stencil", true},
                                      {"--boundary", "stencil", false},
                                      {"--sweeps", "stencil", true},
                                      {"--kind", "shuffle", false},
                                      {"--width", "shuffle", true},
                                      {"--operand", "shuffle", false},
                                      {"--banks", "", true}};

void check_options(const command& command, const options& o) {
  for (const own_option& own : own_options) {
    const option given = command.find(own.name);
    if (!given.given()) continue;
    if (*own.ops != '\0' && std::string(own.ops).find(o.op) == std::string::npos)
      refuse("{} {}: of {}, not of {}; leave it out", own.name, given.value(), own.ops, o.op);
    if (own.counts && given.number() == 0) refuse("{} 0: give 1 or more, or leave it out", own.name);
    if (o.variant == "serial" && (given.name() == "--block" || given.name() == "--blocks"))
      refuse("{} {}: variant serial is one thread; leave it out", own.name, given.value());
  }
}

int run(options o, const command& command) {
  if (o.list) return list(o.op);
  if (o.op.empty())
    refuse("name an operation (transpose, square_sum, stencil or shuffle), or --list; see lockstep explain --help");
  const lesson& what = find_lesson(o);
  check_options(command, o);
  if (o.classic) o.warp = 2, o.segment = 2;
  require_power_of_two("--warp", o.warp);
  require_range("--warp", o.warp, 1, 32);
  require_power_of_two("--segment", o.segment);
  require_range("--segment", o.segment, 1, 1024);
  if (o.banks == 0) o.banks = o.warp;
  require_power_of_two("--banks", o.banks);
  require_range("--banks", o.banks, 1, 64);
  take_stdout({{"--svg", o.svg}, {"--html", o.html}, {"--json", o.json}});
  trace t = what.replay(o);
  const int block = o.at_block < 0 ? t.best_block : o.at_block, warp = o.at_warp < 0 ? t.best_warp : o.at_warp;
  const view v = make_view(what, o, std::move(t), block, warp, o.step);
  if (!o.svg.empty()) write_file(o.svg, svg_of(v));
  if (!o.html.empty()) write_file(o.html, html_of(v));
  if (!o.json.empty()) write_file(o.json, json_of(v));
  if (o.svg.empty() && o.html.empty() && o.json.empty()) put(text_of(v, 98));
  return 0;
}

}  // namespace
}  // namespace explain

void explain_command(command root, action& chosen) {
  auto command = root.add_command(
      "explain", "Draw what each lane of a variant's kernel reads and writes: coalescing, bank conflicts, shuffles");
  auto o = std::make_shared<explain::options>();
  command.add("op", o->op, "transpose, square_sum, stencil or shuffle")
      .one_of({"transpose", "square_sum", "stencil", "shuffle"});
  command.add("--variant", o->variant, "which kernel; --list names them (default: the op's first lesson)")
      .type_name("NAME");
  command.add("--list", o->list, "the variants that can be explained");
  const auto classic = command.add("--classic", o->classic,
                                   "the textbook's small machine: warps of 2, segments of 2 elements, a 4 x 4 matrix");
  command.add("--rows", o->rows, "of the matrix (default 32)").type_name("N");
  command.add("--columns", o->columns, "of the matrix (default 32)").type_name("N");
  command.add("--n", o->n, "elements, for square_sum, stencil and shuffle").type_name("N");
  command.add("--element-bytes", o->element_bytes, "bytes of an element (default 4)")
      .type_name("N")
      .one_of({1, 2, 4, 8, 16});
  command.add("--warp", o->warp, "lanes of a warp (default 32)").type_name("N").excludes(classic);
  command.add("--segment", o->segment, "elements of src that global memory moves at once (default 8: 32 bytes)")
      .type_name("N")
      .excludes(classic);
  command.add("--banks", o->banks, "of shared memory, 4 bytes each (default: as many as lanes)").type_name("N");
  command.add("--tile", o->tile, "transpose: elements of a tile's side (default 32)").type_name("N");
  command.add("--block", o->block, "square_sum, stencil, shuffle: threads of a block (default: the kernel's)")
      .type_name("N");
  command.add("--blocks", o->blocks, "square_sum: blocks of the grid (default 32)").type_name("N");
  command.add("--partial-bytes", o->partial_bytes, "square_sum: bytes of a partial sum, 4, 8 or 16 (default 8: double)")
      .type_name("N");
  command.add("--radius", o->radius, "stencil: taps on either side (default 4; sweeps_streamed and sweeps_planes 1)")
      .type_name("N");
  command
      .add("--sweeps", o->sweeps,
           "stencil: sweeps of a pass, of the variants that take several (default 4; sweeps_planes 3)")
      .type_name("N");
  command.add("--boundary", o->boundary, "stencil: nearest, mirror, reflect, wrap, constant or valid (default nearest)")
      .type_name("NAME")
      .one_of({"nearest", "mirror", "reflect", "wrap", "constant", "valid"});
  command.add("--kind", o->kind, "shuffle: idx, up, down or xor (default xor)")
      .type_name("NAME")
      .one_of({"idx", "up", "down", "xor"});
  command.add("--width", o->width, "shuffle: lanes of a segment (default: the warp)").type_name("N");
  command.add("--operand", o->operand, "shuffle: source lane, delta or mask (default 1)").type_name("N");
  command.add("--at-block", o->at_block, "the block to draw (default: one that shows the lesson)")
      .type_name("N")
      .between(0, INT_MAX);
  command.add("--at-warp", o->at_warp, "the warp of that block").type_name("N").between(0, INT_MAX);
  command.add("--step", o->step, "draw this step of the warp, or all (default: each kind once)").type_name("N|all");
  command.add("--svg", o->svg, "write the picture here; - for stdout").type_name("FILE");
  command.add("--html", o->html, "write a page with the pictures here, which needs no network; - for stdout")
      .type_name("FILE");
  command.add_json(o->json, "every request, for programs,");
  command.when_called([&chosen, o, command] { chosen = [o, command] { return explain::run(*o, command); }; });
}

}  // namespace lockstep::tool
