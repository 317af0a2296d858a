// groups_alone.cpp - a group's calls by way of other calls, each by itself; and that nothing of the caller's is written
// before the last call of a group is known to be taken.
#include "groups.hpp"
#include "lockstep/group.h"

namespace lockstep::python {

bool group_of_calls::take_alone(state& s, Py_ssize_t i, const values& of_call) {
  if (for_plan) return no_copy(s, "this array needs one");
  if (stack)
    return raise(s, LOCKSTEP_UNSUPPORTED, "it goes only by way of a copy; omit stack, or give one that does not"),
           false;
  if (!may_copy(set, "x", "cannot be read as it is")) return false;
  std::copy(of_call, of_call + kw_count, alone.emplace_back(alone_call{i, {}}).v);
  return true;
}

// Into memory of its own where apart collects what waits, else into the caller's out.
bool group_of_calls::run_one_alone(state& s, alone_call& one, std::vector<waiting>* apart) {
  PyObject* const out = one.v[kw_out];
  if (apart && out) one.v[kw_out] = nullptr;
  if (PyObject*& sum = one.v[kw_residual_out]; apart && sum) {
    const ref name(PyUnicode_FromString(keyword_names[kw_residual_out]));
    ref copy = name ? call_helper(s, "packed", sum, name.get()) : ref();
    if (!copy) return false;
    PyObject* const given = std::exchange(sum, copy.get());
    apart->push_back({one.index, std::move(copy), given});
  }
  PyObject* arguments[kw_count];
  Py_ssize_t given = 0;
  const ref names(PyList_New(0));
  arguments[0] = one.v[kw_x];
  for (int k = 0; names && k < kw_count; ++k) {
    if (!one.v[k] || k == kw_x || k == kw_stack) continue;
    if (PyList_Append(names.get(), s.names[k]) != 0) return false;
    arguments[++given] = one.v[k];
  }
  const ref keywords(names ? PyList_AsTuple(names.get()) : nullptr);
  ref made(keywords ? operate(s, which, arguments, 1, keywords.get()) : nullptr);
  if (!made) return false;
  ref& given_back = results[static_cast<size_t>(one.index)].object;
  if (apart && out) {
    given_back = ref::borrowed(out);
    apart->push_back({one.index, std::move(made), out});
  } else {
    given_back = std::move(made);
  }
  return true;
}

bool group_of_calls::fits(state& s, const waiting& w) {
  array made;
  result to;
  return import_array(s, w.made.get(), "x", false, set.stream, made) &&
         take_out(s, made.type, made.rank, made.shape, made, w.out, set.stream, to);
}

// Beside others their results wait until the last of them has run and each out is known to fit.
bool group_of_calls::run_alone(state& s) {
  std::vector<waiting> apart;
  const bool others = alone.size() + calls.size() > 1;
  for (alone_call& one : alone)
    if (!run_one_alone(s, one, others ? &apart : nullptr)) return name_the_array(one.index), false;
  for (const waiting& w : apart)
    if (!fits(s, w)) return name_the_array(w.index), false;
  if (apart.empty()) return true;
  const ref keywords(PyDict_New());
  for (const keyword k : {kw_stream, kw_context, kw_backend, kw_check})
    if (!keywords || (v[k] && PyDict_SetItem(keywords.get(), s.names[k], v[k]) != 0)) return false;
  for (const waiting& w : apart)
    if (!call_helper(s, "copy_into", w.made.get(), w.out, keywords.get())) return name_the_array(w.index), false;
  return true;
}

// Each op is planned. Of device data by the CPU, which needs no table of the calls, because a stream may be capturing;
// but a forced variant is the device's.
bool group_of_calls::check_each_op(state& s) {
  if (calls.size() + alone.size() < 2) return true;
  alignas(256) static char anywhere[256];  // the plan then takes no memory
  lockstep_options options = set.options;
  options.workspace = anywhere;
  options.workspace_bytes = sizeof anywhere;
  for (const calls_of_op& of : calls) {
    options.variant = of.variant;
    options.backend = on_device && !of.variant ? "cpu" : set.options.backend;
    lockstep_status status;
    {
      const without_gil released;
      lockstep_plan* plan = nullptr;
      status = lockstep_plan_group(set.context->handle, of.op, of.descs.data(), of.desc_bytes(), of.count(),
                                   of.srcs.data(), of.dsts.data(), &options, &plan);
      lockstep_plan_destroy(plan);
    }
    if (status != LOCKSTEP_OK) return raise_of_group(s, status, of), false;
  }
  return true;
}

}  // namespace lockstep::python
