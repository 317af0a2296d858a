// runs.cpp - see reduce.hpp: a rank's parts of its sequences as runs of sequences with one stride. Calls of lockstep.h
// over them, and copies of their elements.
#include "devices.hpp"
#include "reduce.hpp"

namespace lockstep::ranks {

lockstep_status partial_work::call(const reduce_seat& s, const wanted& w, const strided& x, const strided& other,
                                   int64_t count, int64_t length, void* out) const {
  lockstep_options options = comm.options_of(s.seat);
  lockstep_status status = LOCKSTEP_OK;
  if (w.terms) {
    lockstep_sums_desc d =
        lockstep_sums_rows(*w.terms, plan.dtype, count, length, x.sequence_stride, other.data, other.sequence_stride);
    d.result = w.result;
    d.element_stride = x.element_stride;
    d.other_element_stride = other.element_stride;
    d.correction = w.correction;
    if (plan.how == family::digest) options = lockstep_options_defaults(), options.backend = "cpu";
    status = lockstep_sums(comm.context, &d, x.data, out, &options);
  } else {
    lockstep_reduce_desc d = lockstep_reduce_rows(w.reduction, plan.dtype, count, length, x.sequence_stride);
    d.result = w.result;
    d.element_stride = x.element_stride;
    status = lib::kind_of(w.reduction).op == LOCKSTEP_SQUARE_SUM
                 ? lockstep_square_sum(comm.context, &d, x.data, out, &options)
                 : lockstep_reduce(comm.context, &d, x.data, out, &options);
  }
  if (status != LOCKSTEP_OK && status != LOCKSTEP_OVERFLOW) throw error{status, lockstep_last_error()};
  return status;
}

template <class Visit>
void partial_work::each_array(const reduce_seat& s, const Visit& visit) const {
  visit(s.view, 0);
  if (s.other.data != nullptr) visit(s.other, 1);
}

void partial_work::each_run(const reduce_seat& s, int64_t first, const visit_run& visit) const {
  const auto bytes = static_cast<int64_t>(plan.element_bytes);
  const auto other_bytes = s.other_bytes != 0 ? static_cast<int64_t>(s.other_bytes) : bytes;
  // The last axes count as one run if they have a common stride, in both arrays.
  int64_t count = 1, step[2] = {0, 0};
  int k = s.view.axes - 1;
  for (; k >= 0; --k) {
    const auto i = static_cast<size_t>(k);
    if (s.view.length[i] == 1) continue;
    bool continues = true;
    each_array(s, [&](const sequence_view& v, size_t array) {
      if (count == 1)
        step[array] = v.stride[i];
      else
        continues = continues && v.stride[i] == step[array] * count;
    });
    if (!continues) break;
    count *= s.view.length[i];
  }
  for (int64_t q = 0; q < s.sequences; q += count) {
    strided at[2] = {};
    each_array(s, [&](const sequence_view& v, size_t array) {
      int64_t left = q / count, offset = (first - s.first) * v.element_stride;
      for (int j = k; j >= 0; --j) {
        const auto i = static_cast<size_t>(j);
        offset += left % v.length[i] * v.stride[i];
        left /= v.length[i];
      }
      at[array] = {v.data + offset * (array == 0 ? bytes : other_bytes), v.element_stride, step[array]};
    });
    visit(at[0], at[1], q, count);
  }
}

// Elements [first, first + length) of every sequence here.
lockstep_status partial_work::over_runs(const reduce_seat& s, const wanted& w, int64_t first, int64_t length,
                                        char* out) const {
  lockstep_status status = LOCKSTEP_OK;
  each_run(s, first, [&](const strided& x, const strided& other, int64_t q, int64_t count) {
    if (call(s, w, x, other, count, length, out + q * static_cast<int64_t>(w.bytes())) != LOCKSTEP_OK)
      status = LOCKSTEP_OVERFLOW;
  });
  return status;
}

void partial_work::gather(const reduce_seat& s, int64_t first, int64_t count, void* to, int64_t ld) const {
  each_array(s, [&](const sequence_view& v, size_t array) {
    box b;
    b.rank = v.axes + 1;
    std::array<int64_t, LOCKSTEP_MAX_RANK> from{}, into{};
    int64_t stride = ld * plan.arrays();
    for (int k = v.axes - 1; k >= 0; --k) {
      const auto i = static_cast<size_t>(k);
      b.length[i] = v.length[i];
      from[i] = v.stride[i];
      into[i] = stride;
      stride *= v.length[i];
    }
    const auto last = static_cast<size_t>(v.axes);
    b.length[last] = count;
    from[last] = v.element_stride;
    into[last] = plan.arrays();
    copy_box(comm, s.seat, plan.element_bytes, b,
             v.data + (first - s.first) * v.element_stride * static_cast<int64_t>(plan.element_bytes), from.data(),
             static_cast<char*>(to) + array * plan.element_bytes, into.data());
  });
}

void partial_work::gather_one(const reduce_seat& s, int64_t sequence, int64_t first, int64_t count, void* to) const {
  each_array(s, [&](const sequence_view& v, size_t array) {
    int64_t offset = (first - s.first) * v.element_stride, left = sequence;
    for (int k = v.axes - 1; k >= 0; --k) {
      const auto i = static_cast<size_t>(k);
      offset += left % v.length[i] * v.stride[i];
      left /= v.length[i];
    }
    box b;
    b.rank = 1;
    b.length[0] = count;
    const int64_t step = plan.arrays();
    copy_box(comm, s.seat, plan.element_bytes, b, v.data + offset * static_cast<int64_t>(plan.element_bytes),
             &v.element_stride, static_cast<char*>(to) + array * plan.element_bytes, &step);
  });
}

void partial_work::gather_some(const reduce_seat& s, int64_t low, int64_t high, int64_t first, int64_t count, void* to,
                               int64_t ld) const {
  if (low == 0 && high == s.sequences) return gather(s, first, count, to, ld);
  for (int64_t q = low; q < high; ++q)
    gather_one(s, q, first, count, static_cast<char*>(to) + static_cast<size_t>((q - low) * ld) * plan.copied_bytes());
}

void partial_work::direct(const reduce_seat& s, char* results) const {
  over_runs(s, {plan.terms, plan.reduction, plan.result, plan.correction}, s.first, plan.length, results);
}

}  // namespace lockstep::ranks
