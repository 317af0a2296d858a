// groups.hpp - many calls of one operation: what each is for C, and where its result goes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operations.hpp"

namespace lockstep::python {

// One call while it is taken in. It stays where C reads memory that it holds.
struct group_item {
  group_item(const operation& o, settings& set) : call(o, set) {}
  prepared call;
  result to;
};

struct group_result {
  ref object;
  bool scalar = false;  // a number of NumPy, which C writes into value
  bool adopt = false;   // object is a Buffer that the array's library takes
  element type;
  alignas(8) char value[8] = {};
};

// Calls of one op of C: reductions of axes that lie apart are another than those of rows.
struct calls_of_op {
  lockstep_op op;
  const char* variant;
  std::vector<unsigned char> descs{};
  std::vector<const void*> srcs{};
  std::vector<void*> dsts{};
  std::vector<Py_ssize_t> index{};  // of the array

  int64_t count() const { return static_cast<int64_t>(srcs.size()); }
  size_t desc_bytes() const { return srcs.empty() ? 0 : descs.size() / srcs.size(); }
};

// What goes by way of other calls, and so by itself.
struct alone_call {
  Py_ssize_t index;  // of the array
  values v;          // borrowed from the group's tuples
};
// A result that waits until all calls have been taken.
struct waiting {
  Py_ssize_t index;  // of the array
  ref made;
  PyObject* out;  // borrowed
};

// Bytes of the caller's that a call reads or writes.
struct touched {
  const char *begin, *end;
  bool written;
  Py_ssize_t index;  // of the array
};

// Where an array lay when a plan was made.
struct memory_place {
  Py_ssize_t index;  // of the array, or of the one that it is an argument beside
  PyObject* object;  // borrowed from the plan's tuples
  const kind* producer;
  const char* data;
  std::vector<int64_t> layout;  // shape, then strides

  bool is_of(const array& a) const;
};

struct group_of_calls {
  explicit group_of_calls(const operation& o) : which(o) {}
  const operation& which;
  settings set;
  values v{};          // as given; borrowed
  ref arrays;          // a tuple
  ref each[kw_count];  // tuples of the arguments that every array has its own of
  bool for_plan = false, stack = false;
  bool async = true;  // nothing has to wait
  const char* variant = nullptr;
  std::vector<group_result> results;
  result stacked;
  std::vector<calls_of_op> calls;
  std::vector<alone_call> alone;
  std::vector<std::unique_ptr<group_item>> held;
  std::vector<memory_place> places;  // of a plan
  std::vector<touched> memory;       // where the caller gives out
  // Of the first array, as of all.
  bool on_device = false;
  int device = 0;
  library from = numpy;

  group_of_calls(const group_of_calls&) = delete;
  group_of_calls& operator=(const group_of_calls&) = delete;

  Py_ssize_t count() const { return PyTuple_Size(arrays.get()); }
  bool read(state& s, PyObject* const* a, Py_ssize_t n, PyObject* keywords);
  // Takes all arrays in. An error names the array.
  bool take_all(state& s);
  // The flags of a call on all of them; stream is the one it comes on.
  void set_flags(void* stream);
  // Before anything of the caller's is written: what C would refuse of any op it refuses here.
  bool check_each_op(state& s);
  bool run_alone(state& s);
  // Whether the arrays of a plan still lie where they did: an array may come to stand for other memory.
  bool in_place(state& s) const;
  // The results as Python gets them; NULL with an exception.
  PyObject* give(state& s);

 private:
  bool take(state& s, Py_ssize_t i);
  bool take_alone(state& s, Py_ssize_t i, const values& of_call);
  bool run_one_alone(state& s, alone_call& one, std::vector<waiting>* apart);
  bool fits(state& s, const waiting& w);
  bool one_place(state& s, const array& x);
  bool place_stacked(state& s, Py_ssize_t i, const call& c, const array& x, array& dst);
  void note_place(Py_ssize_t i, const array& a);
  void note_memory(Py_ssize_t i, const array& x, const array& dst);
  bool lie_apart(state& s);
};

// Before the text of the exception that is set: whose array it is about.
void name_the_array(Py_ssize_t i);

// Runs a C call on the calls of each op, then tells of them: the first failure's exception, with its arrays' numbers.
// Calls after OVERFLOW and EMPTY run too.
template <class Run>
bool run_each_op(state& s, group_of_calls& g, Run&& run_one);
// Sets the exception of a failure, in whose text C counts the calls of one op: name(k) stands for "descs[k]".
void raise_of_calls(state& s, lockstep_status status, const std::function<std::string(size_t)>& name);
void raise_of_group(state& s, lockstep_status status, const calls_of_op& of);

template <class Run>
bool run_each_op(state& s, group_of_calls& g, Run&& run_one) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  bool overflow = false;
  for (size_t k = 0; k < g.calls.size(); ++k) {
    const lockstep_status status = run_one(k);
    if (status == LOCKSTEP_OK) {
      g.set.context->warm = true;
      if (after_call(s, g.calls[k].op)) continue;
    } else if (!type) {
      raise_of_group(s, status, g.calls[k]);
      overflow = status == LOCKSTEP_OVERFLOW;
    }
    if (!type) PyErr_Fetch(&type, &value, &trace);
    if (status != LOCKSTEP_OVERFLOW && status != LOCKSTEP_EMPTY) break;
  }
  if (!type) return true;
  if (overflow) {  // the others' results stand
    PyErr_NormalizeException(&type, &value, &trace);
    const ref out(g.give(s));
    if (out) PyObject_SetAttrString(value, "out", out.get());
    PyErr_Clear();
  }
  PyErr_Restore(type, value, trace);
  return false;
}

}  // namespace lockstep::python
