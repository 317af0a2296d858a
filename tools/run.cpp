// run.cpp - lockstep run OP in.npy -o out.npy: one op on one array.
#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "bits/normalizations.hpp"
#include "bits/reductions.hpp"
#include "call.hpp"
#include "json.hpp"
#include "option_names.hpp"
#include "progress.hpp"

namespace lockstep::tool {
namespace {

using nlohmann::ordered_json;

constexpr int64_t most_printed = 1000;  // results shown as text; more belong into a file

struct run_options {
  place where;
  request what;
  std::string input, output, axes, coefficients, json;
  int64_t axis = 0;
  bool quiet = false;
};

template <class Number>
std::vector<Number> numbers(const std::string& text, const char* option) {
  std::vector<Number> list;
  if (text.empty()) return list;
  for (const char *at = text.data(), *end = at + text.size();; ++at) {
    while (at != end && *at == ' ') ++at;
    Number value{};
    const auto [rest, code] = std::from_chars(at, end, value);
    if (code != std::errc{} || (rest != end && *rest != ','))
      refuse("{} is \"{}\"; write numbers with commas between them, \"1,2,3\"", option, text);
    list.push_back(value);
    at = rest;
    if (at == end) return list;
  }
}

template <class Number>
Number at(const char* data, int64_t i) {
  Number value;
  std::memcpy(&value, data + static_cast<size_t>(i) * sizeof value, sizeof value);
  return value;
}

double of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude = exponent == 31
                               ? (fraction != 0 ? NAN : INFINITY)
                               : std::ldexp(exponent == 0 ? fraction : 1024 + fraction, std::max(exponent, 1) - 25);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

// Calls body(value) with element i as the widest integer of its kind, or as its own float type.
template <class Body>
auto with_value(const std::string& descr, const char* data, int64_t i, const Body& body) {
  const std::string type = descr.substr(1);
  if (type == "f8") return body(at<double>(data, i));
  if (type == "f4") return body(at<float>(data, i));
  if (type == "f2") return body(static_cast<float>(of_half(at<uint16_t>(data, i))));
  if (type == "V2") return body(std::bit_cast<float>(uint32_t{at<uint16_t>(data, i)} << 16));
  if (type == "i8") return body(at<int64_t>(data, i));
  if (type == "u8") return body(at<uint64_t>(data, i));
  if (type == "i4") return body(int64_t{at<int32_t>(data, i)});
  if (type == "u4") return body(uint64_t{at<uint32_t>(data, i)});
  if (type == "i2") return body(int64_t{at<int16_t>(data, i)});
  if (type == "u2") return body(uint64_t{at<uint16_t>(data, i)});
  return type == "i1" ? body(int64_t{at<int8_t>(data, i)}) : body(uint64_t{at<uint8_t>(data, i)});
}

// The shortest text that reads back as the same bits (NaN payloads aside).
std::string text_of(const std::string& descr, const char* data, int64_t i) {
  return with_value(descr, data, i, [](auto value) { return format_text("{}", value); });
}

// JSON has no NaN and no infinity, so they are strings.
ordered_json json_of(const std::string& descr, const char* data, int64_t i) {
  return with_value(descr, data, i, [&](auto value) -> ordered_json {
    if constexpr (std::is_integral_v<decltype(value)>)
      return value;
    else if (!std::isfinite(value))
      return text_of(descr, data, i);
    else
      return ordered_json::parse(text_of(descr, data, i));
  });
}

bool printable(const request& what) {
  return what.op == LOCKSTEP_SQUARE_SUM || what.op == LOCKSTEP_REDUCE || what.op == LOCKSTEP_SUMS ||
         what.op == LOCKSTEP_REDUCE_AXES;
}

struct ran {
  std::string backend, variant, why;
  int device = 0, order = 0;
  size_t workspace_bytes = 0, staged_bytes = 0;
  double seconds = 0;
};

ran execute(const call& c, lockstep_context* context, const run_options& o, const char* src, char* dst) {
  lockstep_options options = lockstep_options_defaults();
  if (!o.where.variant.empty()) options.variant = o.where.variant.c_str();
  const progress shown(lockstep_op_name(o.what.op), 0);
  const auto begin = std::chrono::steady_clock::now();
  try {
    check(c.run(context, src, dst, &options));
  } catch (const usage_error& error) {
    throw usage_error(call_in_options(error.what()));
  } catch (const failure& error) {
    throw failure(call_in_options(error.what()));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  lockstep_run_info info{};
  info.size = sizeof info;
  check(lockstep_last_run(&info));
  return {info.backend, info.variant,         info.why,          info.device,
          info.order,   info.workspace_bytes, info.staged_bytes, took.count()};
}

std::string story(const ran& r) {
  if (r.variant.empty()) return "nothing to do: the input is empty";
  return format_text("ran on {} as {} in {}{}", r.backend, r.variant, time_text(r.seconds),
                     r.why.empty() ? "" : " (" + r.why + ")");
}

int run(const run_options& o) {
  take_stdout(
      {{"--json", o.json}, {"--weight-gradient", o.what.weight_gradient}, {"--bias-gradient", o.what.bias_gradient}});
  if (o.output == "-" && o.json == "-") refuse("--json and -o both want stdout; give one of them a file");
  const context context(o.where);
  const array given = read_npy(o.input);
  const array wide = widened(o.what.op, given);
  const bool any_order = o.what.op == LOCKSTEP_PERMUTE || o.what.op == LOCKSTEP_CONVERT || o.what.op == LOCKSTEP_MAP;
  const array in = any_order ? wide : in_c_order(context, wide);
  const call c = make_call(o.what, in);
  if (o.output.empty() && (!printable(o.what) || c.result.elements() > most_printed))
    refuse("the result has {} elements; say where they go with -o FILE, or -o - for stdout", c.result.elements());

  ran r;
  ordered_json values;
  std::string text;
  if (o.output.empty()) {
    array result = make_array(c.result.descr, c.result.shape);
    r = execute(c, context, o, in.data, writable(result));
    if (!o.json.empty() && c.result.shape.empty()) values = json_of(c.result.descr, result.data, 0);
    for (int64_t i = 0; i < c.result.elements(); ++i) {
      if (!o.json.empty() && !c.result.shape.empty()) values.push_back(json_of(c.result.descr, result.data, i));
      text += text_of(c.result.descr, result.data, i) + "\n";
    }
  } else {
    output_npy out(o.output, c.result);
    r = execute(c, context, o, in.data, out.data());
    out.commit();
  }
  for (const auto& [file, column] : c.columns) {
    output_npy out(file, column.header);
    std::memcpy(out.data(), column.data, column.header.data_bytes());
    out.commit();
  }

  if (!o.json.empty()) {
    ordered_json report = {{"op", lockstep_op_name(o.what.op)}, {"input", o.input},
                           {"input_dtype", given.header.descr}, {"input_shape", in.header.shape},
                           {"dtype", c.result.descr},           {"shape", c.result.shape}};
    if (o.output.empty())
      report["result"] = values;
    else
      report["output"] = o.output;
    report.update({{"backend", r.backend},
                   {"device", r.device},
                   {"variant", r.variant},
                   {"why", r.why},
                   {"order", r.order},
                   {"workspace_bytes", r.workspace_bytes},
                   {"staged_bytes", r.staged_bytes},
                   {"seconds", r.seconds}});
    write_file(o.json, report.dump(2) + "\n");
    if (o.json == "-") return 0;
  }
  put(text);
  if (!o.quiet)
    print_error("{} {}{}{} -> {}{}: {}\n", lockstep_op_name(o.what.op), given.header.descr, shape_text(in.header.shape),
                in.header.descr == given.header.descr ? "" : " as " + in.header.descr, c.result.descr,
                shape_text(c.result.shape), story(r));
  return 0;
}

// The names of the reductions that op does, its first the default.
void add_reduction(lockstep_op op, command command, run_options& o) {
  std::vector<std::string> names;
  for (const lib::reduction_kind& kind : lib::reductions)
    if (op == LOCKSTEP_REDUCE_AXES || kind.op == op) names.push_back(kind.option);
  o.what.reduction = names.front();
  command.add("--reduction", o.what.reduction, "what becomes of the elements")
      .type_name("NAME")
      .one_of(names)
      .show_default();
}
void add_layout(lockstep_op op, command command, run_options& o) {
  add_reduction(op, command, o);
  command.add("--axis", o.axis, "reduce along this axis, -1 for the last (default: the whole array)").type_name("K");
  command.add("--offsets", o.what.offsets, "reduce segments: a 1-D .npy of i8, segment s is [offsets[s], offsets[s+1])")
      .type_name("FILE.npy");
  command.add("--result", o.what.result, "type of a float result: default (f64), f64, f32, f16 or bf16")
      .type_name("TYPE")
      .one_of({"default", "f64", "f32", "f16", "bf16"});
}

void add_options(lockstep_op op, command command, run_options& o) {
  switch (op) {
    case LOCKSTEP_PERMUTE:
      command.add("--axes", o.axes, "axis k of the result is axis AXES[k] of the input (default: reversed)")
          .type_name("2,0,1");
      break;
    case LOCKSTEP_SQUARE_SUM:
      add_layout(op, command, o);
      command.add("--bf16", o.what.bf16, "2-byte integers in the file are bfloat16 bits");
      break;
    case LOCKSTEP_REDUCE: add_layout(op, command, o); break;
    case LOCKSTEP_STENCIL:
      command.add("--coefficients", o.coefficients, "weights, by increasing address; see --form")
          .type_name("A,B,C")
          .required();
      command.add("--radius", o.what.radius, "neighbours on each side").type_name("R").required();
      command
          .add("--form", o.what.form, "general (2*radius*rank+1 weights), symmetric or antisymmetric (1+radius*rank)")
          .type_name("NAME")
          .one_of({"general", "symmetric", "antisymmetric"});
      command.add("--boundary", o.what.boundary, "nearest, mirror, reflect, wrap, constant or valid")
          .type_name("NAME")
          .one_of({"nearest", "mirror", "reflect", "wrap", "constant", "valid"});
      command.add("--value", o.what.value, "what lies outside under --boundary constant").type_name("X");
      command.add("--sweeps", o.what.sweeps, "apply it so many times").type_name("N");
      command.add("--rank", o.what.rank, "axes of the stencil, the last ones; the others are a batch (default: all)")
          .type_name("1..3");
      break;
    case LOCKSTEP_SHUFFLE:
      command.add("--kind", o.what.kind, "idx, up, down or xor")
          .type_name("NAME")
          .one_of({"idx", "up", "down", "xor"})
          .required();
      command.add("--width", o.what.width, "lanes of a segment: 1, 2, 4, 8, 16 or 32").type_name("W");
      command.add("--operand", o.what.operand, "the lane, delta or mask").type_name("N").required();
      break;
    case LOCKSTEP_NORMALIZE: {
      std::vector<std::string> kinds;
      for (const lib::normalization_kind& kind : lib::normalizations) kinds.emplace_back(kind.option);
      command
          .add("--kind", o.what.kind,
               "l2 (x / norm), rms (x / root mean square), layer (mean 0, deviation 1), softmax, log_softmax, "
               "logsumexp (one result per row), picked (log_softmax of the element that --labels names in each row), "
               "rms_backward or layer_backward (the gradient of the input of rms and layer)")
          .type_name("NAME")
          .one_of(kinds)
          .required();
      command.add("--scale", o.what.scale, "of softmax and what follows it: multiply the elements by this first")
          .type_name("X")
          .show_default();
      command.add("--labels", o.what.labels, "of picked: a place in each row, from 0, as int64").type_name("FILE.npy");
      command
          .add("--offsets", o.what.offsets,
               "of softmax and what follows it: rows are segments of a 1-D array, row s is [offsets[s], offsets[s+1])")
          .type_name("FILE.npy");
      command.add("--axis", o.axis, "rows are along this axis (default: -1, the last)").type_name("K");
      command.add("--eps", o.what.eps, "least norm of l2; added to the mean square of rms and layer")
          .type_name("X")
          .show_default();
      command.add("--weight", o.what.weight, "multiply each column by this, a 1-D .npy").type_name("FILE.npy");
      command.add("--bias", o.what.bias, "then add this").type_name("FILE.npy");
      command
          .add("--gradient", o.what.gradient,
               "of the kinds _backward: the gradient of the result, an array like the input")
          .type_name("FILE.npy");
      command
          .add("--weight-gradient", o.what.weight_gradient, "of the kinds _backward: write the gradient of the weight")
          .type_name("OUT.npy");
      command.add("--bias-gradient", o.what.bias_gradient, "of the kinds _backward: write the gradient of the bias")
          .type_name("OUT.npy");
      command.add("--residual", o.what.residual, "an array like the input, added to it first").type_name("FILE.npy");
      command.add("--result", o.what.result, "type of the result: default (the input's), f16, bf16, f32 or f64")
          .type_name("TYPE")
          .one_of({"default", "f16", "bf16", "f32", "f64"});
      command.add("--bf16", o.what.bf16, "2-byte integers in the files are bfloat16 bits");
      break;
    }
    case LOCKSTEP_SCAN:
      o.what.reduction = "sum";
      command.add("--reduction", o.what.reduction, "sum, min or max")
          .type_name("NAME")
          .one_of({"sum", "min", "max"})
          .show_default();
      command.add("--axis", o.axis, "along this axis, -1 for the last (default: the whole array)").type_name("K");
      command.add("--exclusive", o.what.exclusive, "of the elements before each, itself not among them");
      command.add("--result", o.what.result, "type of a float sum: default (the input's), f32 or f64")
          .type_name("TYPE")
          .one_of({"default", "f32", "f64"});
      command.add("--bf16", o.what.bf16, "2-byte integers in the file are bfloat16 bits");
      break;
    case LOCKSTEP_SUMS:
      command
          .add("--kind", o.what.kind,
               "dot (x * y), sqdiff ((x - y)^2), absdiff (|x - y|), abs (|x|) or meanvar (mean and variance)")
          .type_name("NAME")
          .one_of({"dot", "sqdiff", "absdiff", "abs", "meanvar"})
          .required();
      command.add("--other", o.what.other, "y, an array like the input").type_name("FILE.npy");
      command.add("--rows", o.what.rows, "of each row, along the last axis (default: of the whole array)");
      command.add("--correction", o.what.correction, "the variance divides by so much less than the number of elements")
          .type_name("N");
      command.add("--result", o.what.result, "type of a float result: default (f64), f64, f32, f16 or bf16")
          .type_name("TYPE")
          .one_of({"default", "f64", "f32", "f16", "bf16"});
      command.add("--bf16", o.what.bf16, "2-byte integers in the files are bfloat16 bits");
      break;
    case LOCKSTEP_REDUCE_AXES:
      command.add("--axes", o.axes, "the axes to reduce, -1 for the last").type_name("0,2").required();
      add_reduction(op, command, o);
      command.add("--result", o.what.result, "type of a float result: default (f64), f64, f32, f16 or bf16")
          .type_name("TYPE")
          .one_of({"default", "f64", "f32", "f16", "bf16"});
      command.add("--bf16", o.what.bf16, "2-byte integers in the file are bfloat16 bits");
      break;
    case LOCKSTEP_MAP: {
      std::vector<std::string> functions;
      for (int f = 0; f < LOCKSTEP_FUNCTION_COUNT; ++f)
        functions.emplace_back(lockstep_function_name(static_cast<lockstep_function>(f)));
      command.add("--function", o.what.function, "exp, log, tanh, silu, gelu ...")
          .type_name("NAME")
          .one_of(functions)
          .required();
      command.add("--times", o.what.times, "an array like the input, whose elements the values are multiplied by")
          .type_name("FILE.npy");
      [[fallthrough]];
    }
    case LOCKSTEP_CONVERT:
      command
          .add("--result", o.what.result,
               "type of the result: default (the input's), f16, bf16, f32, f64, and of convert i8 to i64, u8 to u64, "
               "bool")
          .type_name("TYPE")
          .one_of(
              {"default", "f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"});
      command.add("--scale", o.what.scale, "multiply by this before rounding").type_name("X").show_default();
      command.add("--axes", o.axes, "axis k of the result is axis AXES[k] of the input (default: as they are)")
          .type_name("2,0,1");
      command.add("--bf16", o.what.bf16, "2-byte integers in the file are bfloat16 bits");
      break;
    case LOCKSTEP_TRANSPOSE:
    case LOCKSTEP_OP_COUNT: break;
  }
}

constexpr std::pair<lockstep_op, const char*> ops[] = {
    {LOCKSTEP_TRANSPOSE, "Swap the last two axes; earlier axes are a batch"},
    {LOCKSTEP_PERMUTE, "Reorder the axes, up to 8 of them"},
    {LOCKSTEP_SQUARE_SUM, "Sum of squares or 2-norm: of all, along an axis, of segments"},
    {LOCKSTEP_REDUCE, "sum, min, max, argmin, argmax: of all, along an axis, of segments"},
    {LOCKSTEP_STENCIL, "Correlate with a star of weights in 1, 2 or 3 dimensions"},
    {LOCKSTEP_SHUFFLE, "CUDA's warp shuffles over an array of 32-lane warps"},
    {LOCKSTEP_NORMALIZE, "Rows (along the last axis) divided by their norm, root mean square or deviation"},
    {LOCKSTEP_SCAN, "Running sums, minima or maxima: of all, or along an axis"},
    {LOCKSTEP_SUMS, "Dot products, distances, 1-norms, means and variances: of all, or of each row"},
    {LOCKSTEP_REDUCE_AXES, "Any reduction over any axes: sum, min, norm2 ..."},
    {LOCKSTEP_CONVERT, "Another float type, times a scale, the axes in any order"},
    {LOCKSTEP_MAP, "exp, log, tanh, silu, gelu ... of each element, correctly rounded"}};

}  // namespace

void run_command(command root, action& chosen) {
  auto command = root.add_command("run", "Run one op on a .npy array");
  command.require_command();
  for (const auto& [op, help] : ops) {
    auto one = command.add_command(lockstep_op_name(op), help);
    auto o = std::make_shared<run_options>();
    o->what.op = op;
    one.add("input", o->input, "a .npy file, - for stdin").required().type_name("IN.npy");
    one.add("-o,--output", o->output, "where the result goes, - for stdout (default for results: printed as text)")
        .type_name("OUT.npy");
    add_options(op, one, *o);
    add_place(one, o->where);
    one.add_json(o->json, "report, and results that are printed, as JSON");
    one.add("-q,--quiet", o->quiet, "do not say on stderr what ran");
    one.when_called([&chosen, o, one] {
      const bool along_one = o->what.op == LOCKSTEP_SQUARE_SUM || o->what.op == LOCKSTEP_REDUCE ||
                             o->what.op == LOCKSTEP_SCAN || o->what.op == LOCKSTEP_NORMALIZE;
      if (along_one && one.find("--axis").given()) o->what.axis = o->axis;
      chosen = [o] {
        o->what.axes = numbers<int64_t>(o->axes, "--axes");
        o->what.coefficients = numbers<double>(o->coefficients, "--coefficients");
        return run(*o);
      };
    });
  }
}

}  // namespace lockstep::tool
