// call.cpp - see call.hpp.
#include "call.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "axes.hpp"
#include "bits/normalizations.hpp"
#include "bits/reductions.hpp"

namespace lockstep::tool {
namespace {

template <class Value, size_t n>
Value named(const std::array<std::pair<const char*, Value>, n>& table, const std::string& name, const char* option) {
  std::string known;
  for (const auto& [text, value] : table) {
    if (name == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  refuse("{} is \"{}\"; known are {}", option, name, known);
}

constexpr auto reductions = [] {
  std::array<std::pair<const char*, lockstep_reduction>, lib::reduction_count> names;
  for (size_t r = 0; r < names.size(); ++r) names[r] = {lib::reductions[r].option, static_cast<lockstep_reduction>(r)};
  return names;
}();
constexpr std::array<std::pair<const char*, lockstep_boundary>, 6> boundaries{{{"nearest", LOCKSTEP_BOUNDARY_NEAREST},
                                                                               {"mirror", LOCKSTEP_BOUNDARY_MIRROR},
                                                                               {"reflect", LOCKSTEP_BOUNDARY_REFLECT},
                                                                               {"wrap", LOCKSTEP_BOUNDARY_WRAP},
                                                                               {"constant", LOCKSTEP_BOUNDARY_CONSTANT},
                                                                               {"valid", LOCKSTEP_BOUNDARY_VALID}}};
constexpr std::array<std::pair<const char*, lockstep_form>, 3> forms{
    {{"general", LOCKSTEP_GENERAL}, {"symmetric", LOCKSTEP_SYMMETRIC}, {"antisymmetric", LOCKSTEP_ANTISYMMETRIC}}};
constexpr std::array<std::pair<const char*, lockstep_shuffle_kind>, 4> kinds{{{"idx", LOCKSTEP_SHUFFLE_IDX},
                                                                              {"up", LOCKSTEP_SHUFFLE_UP},
                                                                              {"down", LOCKSTEP_SHUFFLE_DOWN},
                                                                              {"xor", LOCKSTEP_SHUFFLE_XOR}}};

constexpr auto normalizations = [] {
  std::array<std::pair<const char*, lockstep_normalization>, LOCKSTEP_NORMALIZATION_COUNT> names;
  for (size_t k = 0; k < names.size(); ++k)
    names[k] = {lib::normalizations[k].option, static_cast<lockstep_normalization>(k)};
  return names;
}();
constexpr std::array<std::pair<const char*, lockstep_sums_kind>, 5> sums_kinds{
    {{"dot", LOCKSTEP_SUMS_DOT},
     {"sqdiff", LOCKSTEP_SUMS_SQUARED_DIFFERENCES},
     {"absdiff", LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES},
     {"abs", LOCKSTEP_SUMS_ABSOLUTE},
     {"meanvar", LOCKSTEP_SUMS_MEAN_VARIANCE}}};
constexpr std::array<std::pair<const char*, lockstep_dtype>, 13> casts{{{"f16", LOCKSTEP_F16},
                                                                        {"bf16", LOCKSTEP_BF16},
                                                                        {"f32", LOCKSTEP_F32},
                                                                        {"f64", LOCKSTEP_F64},
                                                                        {"i8", LOCKSTEP_I8},
                                                                        {"i16", LOCKSTEP_I16},
                                                                        {"i32", LOCKSTEP_I32},
                                                                        {"i64", LOCKSTEP_I64},
                                                                        {"u8", LOCKSTEP_U8},
                                                                        {"u16", LOCKSTEP_U16},
                                                                        {"u32", LOCKSTEP_U32},
                                                                        {"u64", LOCKSTEP_U64},
                                                                        {"bool", LOCKSTEP_BOOL}}};

call transpose(const array& in) {
  const std::vector<int64_t>& shape = in.header.shape;
  if (shape.size() < 2) refuse("transpose needs an array of 2 axes or more, this one is {}", shape_text(shape));
  const int64_t rows = shape.end()[-2], cols = shape.end()[-1];
  lockstep_transpose_desc d = lockstep_transpose_packed(in.header.element_bytes(), rows, cols);
  d.batch = product(shape.data(), shape.data() + shape.size() - 2);
  d.src_batch_stride = d.dst_batch_stride = rows * cols;
  call c{in.header, {}, {}, {}};
  std::swap(c.result.shape.end()[-2], c.result.shape.end()[-1]);
  c.run = [d](auto* context, auto* src, auto* dst, auto* options) {
    return lockstep_transpose(context, &d, src, dst, options);
  };
  c.plan = [d](auto* context, auto* options, auto** plan) {
    return lockstep_plan_transpose(context, &d, options, plan);
  };
  return c;
}

call permute(const request& what, const array& in) {
  const std::vector<int64_t>& shape = in.header.shape;
  std::vector<int64_t> reversed(shape.size());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const std::vector<int32_t> perm = perm_of(what.axes, shape, reversed);
  const moved_axes axes = axes_of("permute", in.header, perm);
  lockstep_permute_desc d =
      lockstep_permute_packed(in.header.element_bytes(), axes.rank(), axes.shape.data(), axes.perm.data());
  std::copy(axes.strides.begin(), axes.strides.end(), d.src_strides);
  call c{in.header, {}, {}, {}};
  c.result.fortran = false;
  c.result.shape = shape_of(shape, perm);
  c.run = [d](auto* context, auto* src, auto* dst, auto* options) {
    return lockstep_permute(context, &d, src, dst, options);
  };
  c.plan = [d](auto* context, auto* options, auto** plan) { return lockstep_plan_permute(context, &d, options, plan); };
  return c;
}

// Rank, types, axes and the result's header of convert and map, whose descriptions begin alike.
struct moved {
  lockstep_convert_desc desc;
  call made;
};
moved moved_call(const request& what, const array& in) {
  const std::vector<int64_t>& shape = in.header.shape;
  std::vector<int64_t> kept(shape.size());
  std::iota(kept.begin(), kept.end(), 0);
  const std::vector<int32_t> perm = perm_of(what.axes, shape, kept);
  const moved_axes axes = axes_of(lockstep_op_name(what.op), in.header, perm);
  const lockstep_dtype dtype = dtype_of(in.header, what.bf16);
  const lockstep_dtype result = what.result == "default" ? dtype : named(casts, what.result, "--result");
  moved m{lockstep_convert_packed(dtype, result, what.scale, axes.rank(), axes.shape.data(), axes.perm.data()),
          {in.header, {}, {}, {}}};
  m.made.result.descr = descr_of(result);
  m.made.result.fortran = false;
  m.made.result.shape = shape_of(shape, perm);
  for (size_t k = 0; k < axes.shape.size(); ++k)
    m.desc.src_strides[k] = axes.strides[static_cast<size_t>(axes.perm[k])];
  return m;
}

call convert(const request& what, const array& in) {
  auto [d, c] = moved_call(what, in);
  c.run = [d = d](auto* context, auto* src, auto* dst, auto* options) {
    return lockstep_convert(context, &d, src, dst, options);
  };
  c.plan = [d = d](auto* context, auto* options, auto** plan) {
    return lockstep_plan_convert(context, &d, options, plan);
  };
  return c;
}

// A second array like the input, which the call keeps.
const void* like_input(const request& what, const std::string& file, const char* option, const array& in, call& c) {
  c.keeps.push_back(read_npy(file));
  const npy::header &given = c.keeps.back().header, &wanted = in.header;
  if (given.shape != wanted.shape || (given.fortran != wanted.fortran && wanted.shape.size() > 1))
    refuse("{} {}: needs a packed array {} in {} order, this is {}", option, file, shape_text(wanted.shape),
           wanted.fortran ? "Fortran" : "C", shape_text(given.shape));
  if (dtype_of(given, what.bf16) != dtype_of(wanted, what.bf16))
    refuse("{} is {}, the input {}; give one type", option, given.descr, wanted.descr);
  return c.keeps.back().data;
}

call map(const request& what, const array& in) {
  auto [as, c] = moved_call(what, in);
  lockstep_map_desc d{};
  std::memcpy(&d, &as, sizeof as);
  d.size = sizeof d;
  int f = 0;
  while (f < LOCKSTEP_FUNCTION_COUNT && what.function != lockstep_function_name(static_cast<lockstep_function>(f))) ++f;
  d.function = static_cast<lockstep_function>(f);
  if (!what.times.empty()) d.times = like_input(what, what.times, "--times", in, c);
  c.run = [d](auto* context, auto* src, auto* dst, auto* options) {
    return lockstep_map(context, &d, src, dst, options);
  };
  c.plan = [d](auto* context, auto* options, auto** plan) { return lockstep_plan_map(context, &d, options, plan); };
  return c;
}

lockstep_dtype result_of(const request& what, lockstep_reduction reduction, lockstep_dtype dtype) {
  const lockstep_dtype standard = lockstep_default_result(reduction, dtype);
  if (what.result == "f16") return LOCKSTEP_F16;  // the library refuses it if it does not fit
  if (what.result == "bf16") return LOCKSTEP_BF16;
  return what.result == "default" ? standard : what.result == "f32" ? LOCKSTEP_F32 : LOCKSTEP_F64;
}

// The offsets of a segmented call: at least one, the last within the input.
array offsets_of(const request& what, const array& in) {
  array offsets = what.segments ? *what.segments : read_npy(what.offsets);
  if (offsets.header.descr != "<i8" || offsets.header.shape.size() != 1 || offsets.header.shape[0] < 1)
    refuse("--offsets {}: needs a 1-D array of i8 with at least one entry, this is {} {}", what.offsets,
           offsets.header.descr, shape_text(offsets.header.shape));
  const int64_t last = reinterpret_cast<const int64_t*>(offsets.data)[offsets.header.shape[0] - 1];
  if (last > in.header.elements())
    refuse("--offsets {}: the last is {}, beyond the {} elements of the input", what.offsets, last,
           in.header.elements());
  return offsets;
}

call reduce(const request& what, const array& in) {
  const auto reduction = named(reductions, what.reduction, "--reduction");
  if (const lockstep_op op = lib::kind_of(reduction).op; op != what.op)
    refuse("--reduction {} belongs to {}", what.reduction, lockstep_op_name(op));
  const lockstep_dtype dtype = dtype_of(in.header, what.bf16);
  const std::vector<int64_t>& shape = in.header.shape;
  lockstep_reduce_desc d = lockstep_reduce_full(reduction, dtype, in.header.elements(), 1);
  d.result = result_of(what, reduction, dtype);
  call c{{descr_of(d.result), false, {}, 0}, {}, {}, {}};
  int64_t outer = 1;  // calls: sequences of a middle axis have no single stride
  if (!what.offsets.empty() || what.segments) {
    if (what.axis) refuse("--axis and --offsets exclude each other; give one");
    array offsets = offsets_of(what, in);
    d.count = offsets.header.shape[0] - 1;
    d.length = 0;
    d.offsets = reinterpret_cast<const int64_t*>(offsets.data);
    c.result.shape = {d.count};
    c.keeps.push_back(std::move(offsets));
  } else if (what.axis) {
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t axis = *what.axis < 0 ? *what.axis + rank : *what.axis;
    if (rank == 0) refuse("--axis is {}, the array has no axes; leave --axis out", *what.axis);
    if (axis < 0 || axis >= rank)
      refuse("--axis is {}, the array {} has axes 0 to {}", *what.axis, shape_text(shape), rank - 1);
    const int64_t inner = product(shape.data() + axis + 1, shape.data() + rank);
    outer = product(shape.data(), shape.data() + axis);
    d.length = shape[static_cast<size_t>(axis)];
    d.element_stride = inner == 0 ? 1 : inner;
    d.count = inner;
    d.sequence_stride = 1;
    if (inner == 1) {  // the last axis: every row in one call
      d.count = std::exchange(outer, 1);
      d.sequence_stride = d.length;
    }
    c.result.shape = shape;
    c.result.shape.erase(c.result.shape.begin() + axis);
  }
  const bool squares = what.op == LOCKSTEP_SQUARE_SUM;
  const auto run = squares ? lockstep_square_sum : lockstep_reduce;
  const size_t src_step = static_cast<size_t>(d.length * d.count) * in.header.element_bytes();
  const size_t dst_step = static_cast<size_t>(d.count) * lockstep_dtype_bytes(d.result);
  c.run = [=](auto* context, const void* src, void* dst, auto* options) {
    lockstep_status status = LOCKSTEP_OK;
    for (int64_t i = 0; i < outer && status == LOCKSTEP_OK; ++i)
      status = run(context, &d, static_cast<const char*>(src) + static_cast<size_t>(i) * src_step,
                   static_cast<char*>(dst) + static_cast<size_t>(i) * dst_step, options);
    return status;
  };
  const auto plan = squares ? lockstep_plan_square_sum : lockstep_plan_reduce;
  if (outer == 1)
    c.plan = [d, plan](auto* context, auto* options, auto** made) { return plan(context, &d, options, made); };
  return c;
}

call stencil(const request& what, const array& in) {
  const std::vector<int64_t>& shape = in.header.shape;
  const int rank = what.rank != 0 ? what.rank : static_cast<int>(shape.size());
  if (rank < 1 || rank > 3 || static_cast<size_t>(rank) > shape.size())
    refuse("the array {} has {} axes; name 1 to 3 of them, the last ones, with --rank", shape_text(shape),
           shape.size());
  if (what.radius < 1) refuse("--radius is {}; give 1 or more", what.radius);
  if (what.sweeps < 1) refuse("--sweeps is {}; give 1 or more", what.sweeps);
  const size_t first = shape.size() - static_cast<size_t>(rank);
  lockstep_stencil_desc d =
      lockstep_stencil_packed(dtype_of(in.header, false), rank, shape.data() + first, what.radius,
                              what.coefficients.data(), named(boundaries, what.boundary, "--boundary"));
  d.form = named(forms, what.form, "--form");
  d.sweeps = what.sweeps;
  d.value = what.value;
  d.coefficient_count = static_cast<int32_t>(what.coefficients.size());
  d.batch = product(shape.data(), shape.data() + first);
  call c{in.header, {}, {}, {}};
  if (d.boundary == LOCKSTEP_BOUNDARY_VALID) {
    const int64_t lost = int64_t{2} * what.radius * what.sweeps;
    for (size_t k = first; k < shape.size(); ++k) {
      if (shape[k] != 0 && shape[k] <= lost)
        refuse("--boundary valid takes {} elements from each axis, axis {} has {}", lost, k, shape[k]);
      c.result.shape[k] = std::max<int64_t>(0, shape[k] - lost);
    }
    for (int k = rank - 2; k >= 0; --k)
      d.dst_strides[k] = d.dst_strides[k + 1] * c.result.shape[first + static_cast<size_t>(k) + 1];
  }
  d.src_batch_stride = product(shape.data() + first, shape.data() + shape.size());
  d.dst_batch_stride = product(c.result.shape.data() + first, c.result.shape.data() + shape.size());
  const std::vector<double> coefficients = what.coefficients;
  c.run = [d, coefficients](auto* context, auto* src, auto* dst, auto* options) {
    lockstep_stencil_desc own = d;
    own.coefficients = coefficients.data();
    return lockstep_stencil(context, &own, src, dst, options);
  };
  c.plan = [d, coefficients](auto* context, auto* options, auto** plan) {
    lockstep_stencil_desc own = d;
    own.coefficients = coefficients.data();
    return lockstep_plan_stencil(context, &own, options, plan);
  };
  return c;
}

call shuffle(const request& what, const array& in) {
  const lockstep_shuffle_desc d = lockstep_shuffle_warps(named(kinds, what.kind, "--kind"), in.header.element_bytes(),
                                                         in.header.elements(), what.width, what.operand);
  call c{in.header, {}, {}, {}};
  c.run = [d](auto* context, auto* src, auto* dst, auto* options) {
    return lockstep_shuffle(context, &d, src, dst, options);
  };
  c.plan = [d](auto* context, auto* options, auto** plan) { return lockstep_plan_shuffle(context, &d, options, plan); };
  return c;
}

// Along an axis, or over the whole array in C order if no axis is named.
call scan(const request& what, const array& in) {
  const lockstep_dtype dtype = dtype_of(in.header, what.bf16);
  const std::vector<int64_t>& shape = in.header.shape;
  const auto rank = static_cast<int64_t>(shape.size());
  lockstep_scan_desc d =
      lockstep_scan_full(named(reductions, what.reduction, "--reduction"), dtype, in.header.elements());
  int64_t outer = 1;  // calls: sequences of a middle axis have no single stride
  if (what.axis) {
    const int64_t axis = *what.axis < 0 ? *what.axis + rank : *what.axis;
    if (axis < 0 || axis >= rank)
      refuse("--axis is {}, the array {} has axes 0 to {}", *what.axis, shape_text(shape), rank - 1);
    const int64_t n = shape[static_cast<size_t>(axis)], inner = product(shape.data() + axis + 1, shape.data() + rank);
    outer = product(shape.data(), shape.data() + axis);
    d = inner == 1 ? lockstep_scan_rows(d.reduction, dtype, std::exchange(outer, 1), n, n)
                   : lockstep_scan_columns(d.reduction, dtype, n, inner, inner);
  }
  d.exclusive = what.exclusive ? 1 : 0;
  if (what.result != "default") d.result = what.result == "f32" ? LOCKSTEP_F32 : LOCKSTEP_F64;
  call c{in.header, {}, {}, {}};
  c.result.descr = descr_of(d.result);
  const size_t src_step = static_cast<size_t>(d.length * d.count) * in.header.element_bytes();
  const size_t dst_step = static_cast<size_t>(d.length * d.count) * lockstep_dtype_bytes(d.result);
  c.run = [=](auto* context, const void* src, void* dst, auto* options) {
    lockstep_status status = LOCKSTEP_OK;
    for (int64_t i = 0; i < outer && status == LOCKSTEP_OK; ++i)
      status = lockstep_scan(context, &d, static_cast<const char*>(src) + static_cast<size_t>(i) * src_step,
                             static_cast<char*>(dst) + static_cast<size_t>(i) * dst_step, options);
    return status;
  };
  if (outer == 1)
    c.plan = [d](auto* context, auto* options, auto** plan) { return lockstep_plan_scan(context, &d, options, plan); };
  return c;
}

// Rows are along the last axis, or along the one that is named.
call normalize(const request& what, const array& in) {
  const std::vector<int64_t>& shape = in.header.shape;
  if (shape.empty()) refuse("normalize needs an array of 1 axis or more, this one has none");
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t named_axis = what.axis.value_or(-1), axis = named_axis < 0 ? named_axis + rank : named_axis;
  if (axis < 0 || axis >= rank)
    refuse("--axis is {}, the array {} has axes 0 to {}", named_axis, shape_text(shape), rank - 1);
  const int64_t length = shape[static_cast<size_t>(axis)];
  const lockstep_dtype dtype = dtype_of(in.header, what.bf16);
  const lockstep_normalization kind = named(normalizations, what.kind, "--kind");
  const lib::normalization_kind& about = lib::kind_of(kind);
  lockstep_normalize_desc d = lockstep_normalize_axis(kind, dtype, product(shape.data(), shape.data() + axis), length,
                                                      product(shape.data() + axis + 1, shape.data() + rank),
                                                      about.exponential ? what.scale : what.eps);
  if (what.result != "default") d.result = named(casts, what.result, "--result");
  call c{in.header, {}, {}, {}};
  c.result.descr = descr_of(d.result);
  if (about.one_result) c.result.shape.erase(c.result.shape.begin() + axis);
  c.keeps.reserve(6);
  if (!what.offsets.empty()) {
    if (shape.size() != 1) refuse("--offsets cut an array of 1 axis, this one has {}", shape.size());
    c.keeps.push_back(offsets_of(what, in));
    const auto* first = reinterpret_cast<const int64_t*>(c.keeps.back().data);
    const int64_t segments = c.keeps.back().header.shape[0] - 1;
    if (!about.one_result && (first[0] != 0 || first[segments] != shape[0]))
      refuse("--offsets {}: they begin at {} and end at {}; give offsets from 0 to {}, the length of the input",
             what.offsets, first[0], first[segments], shape[0]);
    d.count = segments, d.length = 0, d.offsets = first;
    if (about.one_result) c.result.shape = {segments};
  }
  if ((kind == LOCKSTEP_NORMALIZE_PICKED) != !what.labels.empty())
    refuse("--labels FILE.npy goes with --kind picked: give both, or none");
  const auto side = [&](const std::string& file, const char* option, const std::vector<int64_t>& wanted) {
    c.keeps.push_back(read_npy(file));
    const array& given = c.keeps.back();
    if (given.header.shape != wanted || (given.header.fortran && wanted.size() > 1))
      refuse("{} {}: needs a packed array {} in C order, this is {}", option, file, shape_text(wanted),
             shape_text(given.header.shape));
    return &given;
  };
  for (const auto& [file, option, to] :
       {std::tuple{&what.weight, "--weight", &d.weight}, {&what.bias, "--bias", &d.bias}}) {
    if (file->empty()) continue;
    const array* given = side(*file, option, {length});
    d.weight_dtype = dtype_of(given->header, what.bf16);  // the library refuses one that does not fit
    *to = given->data;
  }
  if (!what.weight.empty() && !what.bias.empty() && c.keeps[0].header.descr != c.keeps[1].header.descr)
    refuse("--weight is {} and --bias {}; give one type", c.keeps[0].header.descr, c.keeps[1].header.descr);
  if (!what.labels.empty()) {
    const array* given = side(what.labels, "--labels", c.result.shape);
    if (given->header.descr != "<i8")
      refuse("--labels {}: needs elements <i8, these are {}", what.labels, given->header.descr);
    d.labels = static_cast<const int64_t*>(static_cast<const void*>(given->data));
  }
  if (!what.residual.empty()) {
    const array* given = side(what.residual, "--residual", shape);
    if (dtype_of(given->header, what.bf16) != dtype)
      refuse("--residual is {}, the input {}; give one type", given->header.descr, in.header.descr);
    d.residual = given->data;
  }
  if (about.backward != !what.gradient.empty())
    refuse("--gradient FILE.npy goes with --kind rms_backward and layer_backward: give both, or none");
  if (!what.gradient.empty()) d.gradient = like_input(what, what.gradient, "--gradient", in, c);
  for (const auto& [file, option, to] : {std::tuple{&what.weight_gradient, "--weight-gradient", &d.weight_gradient},
                                         {&what.bias_gradient, "--bias-gradient", &d.bias_gradient}}) {
    if (file->empty()) continue;
    if (!about.backward) refuse("{} goes with --kind rms_backward and layer_backward; leave it out", option);
    if (*file == "-") refuse("{} is -; name a file, stdout is for the result", option);
    c.columns.emplace_back(*file, make_array(descr_of(d.weight_dtype), {length}));
    *to = writable(c.columns.back().second);
  }
  c.run = [d](auto* context, auto* src, auto* dst, auto* options) {
    return lockstep_normalize(context, &d, src, dst, options);
  };
  c.plan = [d](auto* context, auto* options, auto** plan) {
    return lockstep_plan_normalize(context, &d, options, plan);
  };
  return c;
}

// Of the whole array, or of each row along the last axis; a mean and a variance are a last axis of two.
call sums(const request& what, const array& in) {
  const std::vector<int64_t>& shape = in.header.shape;
  if (what.rows && shape.empty()) refuse("--rows needs an array of 1 axis or more, this one has none");
  const lockstep_dtype dtype = dtype_of(in.header, what.bf16);
  const lockstep_sums_kind kind = named(sums_kinds, what.kind, "--kind");
  const int64_t length = what.rows ? shape.back() : in.header.elements();
  const int64_t count = what.rows ? product(shape.data(), shape.data() + shape.size() - 1) : 1;
  lockstep_sums_desc d = lockstep_sums_rows(kind, dtype, count, length, length, nullptr, length);
  d.correction = what.correction;
  if (what.result != "default") d.result = named(casts, what.result, "--result");
  call c{in.header, {}, {}, {}};
  c.result.descr = descr_of(d.result);
  c.result.shape.resize(what.rows ? shape.size() - 1 : 0);
  if (kind == LOCKSTEP_SUMS_MEAN_VARIANCE) c.result.shape.push_back(2);
  if (kind <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES && what.other.empty())
    refuse("--kind {} is of two arrays; name the second one with --other", what.kind);
  if (!what.other.empty()) {
    d.other = like_input(what, what.other, "--other", in, c);
  }
  c.run = [d](auto* context, auto* src, auto* dst, auto* options) {
    return lockstep_sums(context, &d, src, dst, options);
  };
  c.plan = [d](auto* context, auto* options, auto** plan) { return lockstep_plan_sums(context, &d, options, plan); };
  return c;
}

// The axes that are named; the others' array, in C order, is the result's.
call reduce_axes(const request& what, const array& in) {
  const std::vector<int64_t>& shape = in.header.shape;
  const auto rank = static_cast<int64_t>(shape.size());
  if (rank < 1) refuse("reduce_axes takes arrays of 1 axis or more, this one is {}", shape_text(shape));
  std::vector<int32_t> axes;
  std::vector<bool> goes(shape.size());
  for (const int64_t axis : what.axes) {
    if (axis < -rank || axis >= rank)
      refuse("--axes has {}, the array {} has axes 0 to {}", axis, shape_text(shape), rank - 1);
    axes.push_back(static_cast<int32_t>(axis < 0 ? axis + rank : axis));
    if (goes[static_cast<size_t>(axes.back())]) refuse("--axes has {} twice; name each axis once", axes.back());
    goes[static_cast<size_t>(axes.back())] = true;
  }
  const reduced_axes left = axes_of(shape, goes, axes);
  lockstep_reduce_axes_desc d =
      lockstep_reduce_axes_packed(named(reductions, what.reduction, "--reduction"), dtype_of(in.header, what.bf16),
                                  static_cast<int32_t>(left.shape.size()), left.shape.data(),
                                  static_cast<int32_t>(left.going.size()), left.going.data());
  if (what.result != "default") d.result = named(casts, what.result, "--result");
  call c{in.header, {}, {}, {}};
  c.result.descr = descr_of(d.result);
  c.result.shape.clear();
  for (int64_t k = 0; k < rank; ++k)
    if (std::find(axes.begin(), axes.end(), k) == axes.end()) c.result.shape.push_back(shape[static_cast<size_t>(k)]);
  c.run = [d](auto* context, auto* src, auto* dst, auto* options) {
    return lockstep_reduce_axes(context, &d, src, dst, options);
  };
  c.plan = [d](auto* context, auto* options, auto** plan) {
    return lockstep_plan_reduce_axes(context, &d, options, plan);
  };
  return c;
}

}  // namespace

lockstep_dtype dtype_of(const npy::header& h, bool bf16) {
  if (h.descr == "|V2" || h.descr == "<V2" || (bf16 && (h.descr == "<u2" || h.descr == "<i2"))) return LOCKSTEP_BF16;
#define LOCKSTEP_ROW(name, bytes, kind, sum, numpy, type) \
  if (h.descr.substr(1) == (numpy) + 1) return LOCKSTEP_##name;
  LOCKSTEP_DTYPES(LOCKSTEP_ROW)
#undef LOCKSTEP_ROW
  refuse(
      "elements of type {} can be moved but not computed with; convert them to b, i, u or f of 1 to 8 bytes (astype)",
      h.descr);
}

std::string descr_of(lockstep_dtype dtype) {
#define LOCKSTEP_ROW(name, bytes, kind, sum, numpy, type) \
  case LOCKSTEP_##name: return numpy;
  switch (dtype) { LOCKSTEP_DTYPES(LOCKSTEP_ROW) }
#undef LOCKSTEP_ROW
  return "";
}

call make_call(const request& what, const array& in) {
  switch (what.op) {
    case LOCKSTEP_TRANSPOSE: return transpose(in);
    case LOCKSTEP_PERMUTE: return permute(what, in);
    case LOCKSTEP_SQUARE_SUM:
    case LOCKSTEP_REDUCE: return reduce(what, in);
    case LOCKSTEP_STENCIL: return stencil(what, in);
    case LOCKSTEP_SHUFFLE: return shuffle(what, in);
    case LOCKSTEP_NORMALIZE: return normalize(what, in);
    case LOCKSTEP_SCAN: return scan(what, in);
    case LOCKSTEP_SUMS: return sums(what, in);
    case LOCKSTEP_REDUCE_AXES: return reduce_axes(what, in);
    case LOCKSTEP_CONVERT: return convert(what, in);
    case LOCKSTEP_MAP: return map(what, in);
    case LOCKSTEP_OP_COUNT: break;
  }
  refuse("op {} is unknown", static_cast<int>(what.op));
}

array widened(lockstep_op op, const array& in) {
  const std::string& descr = in.header.descr;
  const auto from = [&]<class From>(From) {
    array out = make_array("<f4", in.header.shape);
    out.header.fortran = in.header.fortran;
    const auto* values = reinterpret_cast<const From*>(in.data);
    std::copy(values, values + in.header.elements(), reinterpret_cast<float*>(writable(out)));
    return out;
  };
  if (op != LOCKSTEP_STENCIL) return in;
  if (descr == "|u1" || descr == "|b1") return from(uint8_t{});
  if (descr == "|i1") return from(int8_t{});
  if (descr == "<u2") return from(uint16_t{});
  return descr == "<i2" ? from(int16_t{}) : in;
}

array in_c_order(lockstep_context* context, const array& in) {
  if (!in.header.fortran || in.header.shape.size() < 2) return in;
  request identity;
  identity.op = LOCKSTEP_PERMUTE;
  identity.axes.resize(in.header.shape.size());
  std::iota(identity.axes.begin(), identity.axes.end(), 0);
  const call c = make_call(identity, in);
  array out = make_array(c.result.descr, c.result.shape);
  check(c.run(context, in.data, writable(out), nullptr));
  return out;
}

}  // namespace lockstep::tool
