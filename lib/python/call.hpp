// call.hpp - one call on its way: what the arguments say, the description for C, where the result goes.
#pragma once

#include <algorithm>

#include "exchange.hpp"

namespace lockstep::python {

struct context_object {
  PyObject_HEAD shared<lockstep_context*> handle;
  shared<Py_ssize_t> users;  // calls that run on it
  shared<bool> closed;
  shared<bool> on_cpu;  // bound to the CPU by name
  shared<bool> warm;    // a call has run on it, so that its backends are loaded
};

// The arguments that every operation takes, and the scope around it.
struct settings {
  settings() = default;
  ~settings();
  settings(const settings&) = delete;
  settings& operator=(const settings&) = delete;

  context_object* context = nullptr;
  lockstep_options options = lockstep_options_defaults();
  PyObject* out = nullptr;  // borrowed, NULL when there is none
  void* stream = nullptr;   // the caller's
  void* queue = nullptr;    // of device data: the stream that the call comes on, once x is known
  bool wait = false;        // an array's library works on another stream
  bool check = false;       // wait for what only the device finds
  bool copy = true;         // arrays may be copied first
  char device[16] = "";     // the backend that device data is computed by
  ref scope;                // keeps the texts in options alive
};

struct call {
  explicit call(lockstep_op which) : op(which), reduce{} {}
  lockstep_op op;
  union {
    lockstep_transpose_desc transpose;
    lockstep_permute_desc permute;
    lockstep_reduce_desc reduce;
    lockstep_stencil_desc stencil;
    lockstep_shuffle_desc shuffle;
    lockstep_normalize_desc normalize;
    lockstep_scan_desc scan;
    lockstep_sums_desc sums;
    lockstep_reduce_axes_desc reduce_axes;
    lockstep_convert_desc convert;
    lockstep_map_desc map;  // begins as convert does
  };
  const void* description() const { return &reduce; }  // where each of them lies
  // Room for any of them.
  static constexpr size_t description_bytes =
      std::max({sizeof(lockstep_transpose_desc), sizeof(lockstep_permute_desc), sizeof(lockstep_reduce_desc),
                sizeof(lockstep_stencil_desc), sizeof(lockstep_shuffle_desc), sizeof(lockstep_normalize_desc),
                sizeof(lockstep_scan_desc), sizeof(lockstep_sums_desc), sizeof(lockstep_reduce_axes_desc),
                sizeof(lockstep_convert_desc), sizeof(lockstep_map_desc)});
  // the result
  element type;
  bool same_dtype = true;  // the result has the source's dtype, whatever it is
  bool scalar = false;     // every axis is reduced
  int rank = 0;
  int64_t shape[max_rank];
  int axes[max_rank];  // permute, transpose: axis k of the result is axes[k] of the source
  int inner = 0;       // normalize: how many axes a row holds; scan: the axis, -1 for all
  int behind = 0;      // normalize: how many axes follow a row's
  double coefficients[2 * 16 * 3 + 1];
};

struct result {
  array dst;
  ref object;
  bool scalar = false;
  bool adopt = false;  // object is a Buffer that the caller's library takes
  alignas(8) char value[8] = {};
};

// A source as C can take it: the caller's array, or a packed copy of it.
struct source {
  array direct, packed;
  ref copy;
  array* use = &direct;
};

using values = PyObject* [kw_count];

// Sorts a call's arguments by keyword; positional ones are names[0..]. The first `required` must be there.
bool parse(state& s, const char* function, const keyword* names, int positional, int count, int required,
           PyObject* const* arguments, Py_ssize_t given, PyObject* keywords, values& to);
bool read_settings(state& s, lockstep_op op, values& v, settings& to);
// Device data is computed where it lies: in its stream's order the CPU backend could not read it.
bool require_device(state& s, const settings& set, const array& x);
// may_repeat: an array with steps of 0 elements is taken as it is.
bool read_source(state& s, PyObject* object, const char* name, settings& set, source& to, bool may_repeat = false);
// Raises BufferError where the caller allows no copy: "copy is False, but NAME WHY".
bool may_copy(const settings& set, const char* name, const char* why);
// The source in packed C order, made by its own library.
bool make_packed(state& s, source& x, settings& set, const char* name);

// describe.cpp: the call's description from the source and the other arguments; place() adds the destination.
bool describe_permute(state& s, const array& x, call& c);
bool describe_convert(state& s, const array& x, values& v, call& c);
bool describe_map(state& s, const array& x, values& v, lockstep_function function, call& c);
bool describe_stencil(state& s, source& x, settings& set, values& v, call& c, bool may_copy, result& temporary);
bool describe_shuffle(state& s, const array& x, values& v, call& c);
// reductions.cpp
bool describe_reduce(state& s, source& x, settings& set, values& v, lockstep_reduction reduction, call& c,
                     bool may_copy, result& temporary);
bool describe_segments(state& s, source& x, settings& set, const array& offsets, values& v,
                       lockstep_reduction reduction, call& c);
// Where the first segment begins and the last one ends; the latter is within `length` elements.
bool ends_of(state& s, const array& offsets, int64_t length, int64_t* first, int64_t* last);
// Offsets as C takes them: of another type of integers, or not packed, by way of a copy.
bool read_offsets(state& s, settings& set, values& v, source& offsets);
bool packed_integers(state& s, settings& set, const char* of, source& to);
// The array that is multiplied with x or taken from it.
struct second {
  source y;
  result temporary;
};
bool describe_sums(state& s, source& x, settings& set, values& v, lockstep_sums_kind kind, call& c, bool may_copy,
                   result& temporary, second& other);
// The factors of map's values: of x's shape and type, and both laid out alike, packed if need be.
bool read_times(state& s, source& x, settings& set, values& v, bool may_copy, result& temporary, second& other);
// rows.cpp: what normalize takes besides its source, and both descriptions. elsewhere: the axes are not the last
// ones, or do not lie as C can take them; axes[0..inner) hold them.
struct sides {
  source weight, bias, residual, labels, gradient;
  array sum, weight_gradient, bias_gradient;
};
bool describe_normalize(state& s, source& x, settings& set, values& v, lockstep_normalization kind, call& c,
                        bool may_copy, result& temporary, sides& more, bool* elsewhere);
// Rows between offsets, of an x of one axis.
bool describe_ragged_rows(state& s, source& x, const array& offsets, settings& set, values& v,
                          lockstep_normalization kind, call& c, bool may_copy, result& temporary, sides& more);
bool describe_scan(state& s, source& x, settings& set, values& v, lockstep_reduction reduction, call& c, bool may_copy,
                   result& temporary, bool* elsewhere);
bool place_normalize(state& s, const array& dst, call& c);
bool place_scan(state& s, const array& dst, call& c);
bool scans(lockstep_dtype dtype);
bool same_device(state& s, const array& x, const array& side, const char* name);

// A packed copy of x, made by permute on the same stream. With axes NULL their order stays.
bool permuted(state& s, source& x, settings& set, const int* axes, result& temporary);
// Raises: a plan copies nothing. what is why it would have to. Returns false.
bool no_copy(state& s, const char* what);
// Through permute where the source is not packed.
bool packed_source(state& s, source& x, settings& set, result& temporary);
bool require_packed(state& s, const array& x);
bool require_packed_out(state& s, const array& dst);
bool place(state& s, const array& x, const array& dst, call& c);

// result.cpp
bool make_result(state& s, const call& c, const array& x, PyObject* out, void* stream, result& to);
// Takes the caller's out for a result of this type and shape beside x.
bool take_out(state& s, const element& type, int rank, const int64_t* shape, const array& x, PyObject* out,
              void* stream, result& to);
PyObject* finish_result(state& s, const call& c, const array& x, result& r);
// A number of NumPy, of like's type where it is given.
PyObject* number_of(state& s, const array* like, lockstep_dtype dtype, char* value);
// Memory from the source's library (or a Buffer) for an array of this shape.
bool allocate(state& s, const array& x, const element* type, int rank, const int64_t* shape, void* stream, result& to);

// moments.cpp: means and variances, which C writes in pairs. Parts of a pair; root asks for the variance's.
constexpr int part_mean = 1, part_variance = 2, part_root = 4;
PyObject* moments(state& s, call& c, settings& set, const array& x, int parts);

// calls.cpp
PyObject* execute(state& s, call& c, settings& set, array& x, result& r);
// What a call that has run gives: the result, or the exception of its status.
PyObject* conclude(state& s, const call& c, const array& x, result& r, lockstep_status status);
// To the exception of an overflow: the other results stand.
void attach_out(state& s, const call& c, const array& x, result& r);
lockstep_status run(call& c, settings& set, const array& x, const array& dst);
// Whether C is done sooner than other threads would have taken the interpreter's lock.
bool is_brief(const call& c, const settings& set, const context_object& context, const array& x, const array& dst);
// Device data is computed by its device's backend: auto would take the CPU where that has no kernel, which does not
// wait for the stream.
void stay_on_device(settings& set, const array& x);
// Whether a call with these arrays is queued on their stream, and the stream. A plan has its backend already.
void queue_on(settings& set, const array& x, const array& dst, bool planned = false);

int add_operations(PyObject* module);

// The function of lockstep that this thread's calls of C are for, as long as this lives.
class called_function {
 public:
  explicit called_function(const char* name) : before_(current) {
    if (!current) current = name;  // what that calls in turn is for it
  }
  ~called_function() { current = before_; }
  called_function(const called_function&) = delete;
  called_function& operator=(const called_function&) = delete;
  static inline thread_local const char* current = nullptr;

 private:
  const char* before_;
};

// watch.cpp: tells of a call that has run; false with an exception of who was told.
bool after_call(state& s, lockstep_op op);
// Whether each call is to be told: somebody records, or the logger "lockstep" is not known to be silent.
bool is_watched(state& s);

// context.cpp, plan.cpp, buffer.cpp
context_object* default_context(state& s);  // borrowed
// A context in use for as long as it lives; false with an exception where it is closed.
bool use_context(state& s, context_object* context);
void release_user(context_object* context);
bool add_context(state& s);
bool add_plan(state& s);
bool add_group_plan(state& s);  // group_plan.cpp
// A plan of this call for arrays like x; it keeps what holds the other arrays.
PyObject* make_plan(state& s, const call& c, settings& set, const array& x, PyObject* kept);
// What every array that a plan is given must look like.
struct layout {
  element type;
  bool on_device;
  int device, rank;
  int64_t shape[max_rank], strides[max_rank];

  bool is_of(const array& a) const {
    if (a.type != type || a.on_device() != on_device || (on_device && a.device.id != device) || a.rank != rank)
      return false;
    for (int k = 0; k < rank; ++k)
      if (a.shape[k] != shape[k] || (shape[k] > 1 && a.strides[k] != strides[k] && a.size > 0)) return false;
    return true;
  }
  void take(const array& a) {
    type = a.type;
    on_device = a.on_device();
    device = a.device.id;
    rank = a.rank;
    for (int k = 0; k < rank; ++k) shape[k] = a.shape[k], strides[k] = a.strides[k];
  }
};
lockstep_plan* handle_of_plan(PyObject* plan);
PyObject* list_of(const double* numbers, int count);
// A text of what a plan has chosen; a getter's closure says where it is in lockstep_run_info.
PyObject* text_of_choice(state& s, const lockstep_plan* plan, void* place);
inline PyObject* or_none(PyObject* object) { return object ? object : Py_None; }
inline void* place_of(size_t offset) { return reinterpret_cast<void*>(offset); }

// kept.cpp
void forget_kept(state& s);
bool add_buffer(state& s);
// A Buffer of the source's device.
PyObject* make_buffer(state& s, const element& type, int rank, const int64_t* shape, lockstep_memory kind,
                      const char* backend, int device, bool with_memory = true);

// xla.cpp: a call as an XLA program keeps it, (call, description, coefficients, shape, dtype); and its custom calls by
// platform.
PyObject* write_down(state& s, const call& c, const array& x, const values& v);
PyObject* xla_handlers(PyObject* module, PyObject*);

bool read_text(state& s, PyObject* object, const char* name, const char** to);
bool read_axes(state& s, PyObject* object, const char* name, int rank, int* axes, int* count);
bool read_integer(state& s, PyObject* object, const char* name, long long low, long long high, long long* to);
bool read_flag(PyObject* object, bool* to);
bool read_double(state& s, PyObject* object, const char* name, double* to);
// The argument dtype, where it is given: the dtype plain, or a float of the named sizes.
constexpr unsigned floats_of_32 = 1, floats_of_16 = 2;
struct results {
  lockstep_dtype plain;
  unsigned floats;
};
bool read_result(state& s, PyObject* object, results allowed, lockstep_dtype* to);

}  // namespace lockstep::python
