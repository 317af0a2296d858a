// moments.cpp - means, variances and standard deviations: C writes pairs, which become one array each.
// Idea    the host's pairs lie in memory of this call; a device's are allocated by the array's library and taken apart
//         by permute on the same stream.
// Watch   the root is taken of the variance in double: its own rounding is the second
#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "call.hpp"

namespace lockstep::python {
namespace {

// The arrays of the caller's out: one, or of mean_var two.
bool outs_of(state& s, PyObject* out, int parts, PyObject* (&to)[2]) {
  to[0] = to[1] = nullptr;
  if (!out) return true;
  if (parts != (part_mean | part_variance)) return to[parts != part_mean] = out, true;
  if (!PyTuple_Check(out) || PyTuple_Size(out) != 2)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "out is %R; give a tuple of two arrays, for the mean and the variance",
                 out),
           false;
  to[0] = PyTuple_GetItem(out, 0);
  to[1] = PyTuple_GetItem(out, 1);
  return true;
}

// Memory for count pairs of the description's result.
struct pair_memory {
  std::unique_ptr<char[]> bytes;
  result on_device;
  array host;
  array* use = &host;
};

bool allocate_pairs(state& s, const call& c, const element& type, settings& set, const array& x, int64_t count,
                    pair_memory& to) {
  const int64_t shape[2] = {count, 2};
  if (x.on_device()) {
    to.use = &to.on_device.dst;
    return allocate(s, x, &type, 2, shape, set.stream, to.on_device);
  }
  const size_t bytes = static_cast<size_t>(count) * 2 * static_cast<size_t>(type.bytes);
  to.bytes.reset(new (std::nothrow) char[bytes ? bytes : 1]);
  if (!to.bytes)
    return raise(s, LOCKSTEP_OUT_OF_MEMORY, "no memory for %zd pairs", static_cast<Py_ssize_t>(count)), false;
  to.host.data = to.bytes.get();
  to.host.type = type;
  to.host.rank = c.rank;
  to.host.size = count * 2;
  return true;
}

// One half of the host's pairs, or the root of it.
void take_host_part(const array& pairs, const element& type, int which, int64_t count, char* to) {
  const char* from = pairs.data + which * pairs.type.bytes;
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * type.bytes, from + 2 * i * type.bytes, static_cast<size_t>(type.bytes));
}
template <class T>
void take_root(const array& pairs, int64_t count, char* to) {
  const double* variance = reinterpret_cast<const double*>(pairs.data) + 1;
  for (int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(to)[i] = static_cast<T>(std::sqrt(variance[2 * i]));
}

// `rows` rows of count elements, every second one of a device's pairs from `which` on, to rows `apart` elements apart.
bool take_device_parts(state& s, settings& set, const array& x, const array& pairs, int which, int rows, int64_t count,
                       const array& dst, int64_t apart) {
  array from, to;  // to: how dst lies
  from.data = pairs.data + which * pairs.type.bytes;
  from.type = to.type = pairs.type;
  from.device = x.device;
  from.device_known = x.device_known;
  from.producer = x.producer;
  from.object = x.object;
  from.stream = x.stream;
  from.rank = to.rank = 2;
  from.shape[0] = to.shape[0] = rows, from.shape[1] = to.shape[1] = count;
  from.strides[0] = 1, from.strides[1] = 2, to.strides[0] = apart, to.strides[1] = 1;
  from.size = to.size = rows * count;
  call move(LOCKSTEP_PERMUTE);
  move.axes[0] = 0, move.axes[1] = 1;
  if (!describe_permute(s, from, move) || !place(s, from, to, move)) return false;
  set.options.variant = nullptr;  // it names one of sums
  queue_on(set, from, dst);
  const lockstep_status status = run(move, set, from, dst);
  return status == LOCKSTEP_OK ? after_call(s, LOCKSTEP_PERMUTE) : (raise_status(s, status), false);
}

// Elements from the means to the variances, if they may be the rows of one array that is apart from the pairs; else 0.
int64_t apart_in_one(const array& means, const array& variances, const array& pairs, int64_t count) {
  const auto first = reinterpret_cast<uintptr_t>(means.data), second = reinterpret_cast<uintptr_t>(variances.data);
  const auto from = reinterpret_cast<uintptr_t>(pairs.data), bytes = static_cast<uintptr_t>(pairs.type.bytes);
  const auto row = static_cast<uintptr_t>(count) * bytes;
  if (count == 0 || !means.on_device() || !variances.on_device() || means.device.type != variances.device.type ||
      means.device.id != variances.device.id || means.elsewhere != variances.elsewhere ||
      means.producer != variances.producer || second < first || second - first < row || (second - first) % bytes != 0)
    return 0;
  return from >= second + row || from + 2 * row <= first ? static_cast<int64_t>((second - first) / bytes) : 0;
}

}  // namespace

PyObject* moments(state& s, call& c, settings& set, const array& x, int parts) {
  const bool root = parts == part_root;
  PyObject* outs[2];
  if (!outs_of(s, set.out, parts, outs)) return nullptr;
  if (root && c.type.bytes < 4)
    return raise_dtype(s, "dtype is %s; a standard deviation comes as float64 or float32",
                       dtype_name(dtype_of(c.type)));
  if (root) c.sums.result = LOCKSTEP_F64;
  const element type = root ? element_of(LOCKSTEP_F64) : c.type;
  int64_t count = 1;
  for (int k = 0; k < c.rank; ++k) count *= c.shape[k];
  pair_memory pairs;
  result each[2];
  const bool wanted[2] = {(parts & part_mean) != 0, (parts & (part_variance | part_root)) != 0};
  for (int i = 0; i < 2; ++i)
    if (wanted[i] && (!make_result(s, c, x, outs[i], set.stream, each[i]) || !require_packed_out(s, each[i].dst)))
      return nullptr;
  if (!allocate_pairs(s, c, type, set, x, count, pairs)) return nullptr;
  queue_on(set, x, *pairs.use);
  if (pairs.on_device.adopt) set.options.flags &= ~unsigned{LOCKSTEP_ASYNC};
  const lockstep_status status = run(c, set, x, *pairs.use);
  if (status != LOCKSTEP_OK) return raise_status(s, status);
  set.context->warm = true;
  if (!after_call(s, c.op)) return nullptr;
  const int64_t apart =
      x.on_device() && wanted[0] && wanted[1] ? apart_in_one(each[0].dst, each[1].dst, *pairs.use, count) : 0;
  if (apart != 0 && !take_device_parts(s, set, x, *pairs.use, 0, 2, count, each[0].dst, apart)) return nullptr;
  ref made[2];
  for (int i = 0; i < 2; ++i) {
    if (!wanted[i]) continue;
    char* const to = each[i].dst.data;
    if (x.on_device()) {
      if (apart == 0 && !take_device_parts(s, set, x, *pairs.use, i, 1, count, each[i].dst, count)) return nullptr;
    } else if (!root) {
      take_host_part(*pairs.use, c.type, i, count, to);
    } else if (c.type.bytes == 4) {
      take_root<float>(*pairs.use, count, to);
    } else {
      take_root<double>(*pairs.use, count, to);
    }
    if (!(made[i] = ref(finish_result(s, c, x, each[i])))) return nullptr;
  }
  if (parts == (part_mean | part_variance)) return PyTuple_Pack(2, made[0].get(), made[1].get());
  return (made[0] ? made[0] : made[1]).release();
}

}  // namespace lockstep::python
