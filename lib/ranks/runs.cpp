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
    if (plan.how == family::digest) options = on_the_cpu();
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
  const size_t bytes[] = {plan.element_bytes, s.other_bytes != 0 ? s.other_bytes : plan.element_bytes};
  std::vector<const int64_t*> strides;
  each_array(s, [&](const sequence_view& v, size_t) { strides.push_back(v.stride.data()); });
  each_run_of(s.sequences, s.view.axes, s.view.length.data(), strides, [&](const run_of_elements& run) {
    strided at[2] = {};
    each_array(s, [&](const sequence_view& v, size_t array) {
      const int64_t offset = run.at[array] + (first - s.first) * v.element_stride;
      at[array] = {v.data + offset * static_cast<int64_t>(bytes[array]), v.element_stride, run.step[array]};
    });
    visit(at[0], at[1], run.first, run.count);
  });
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
    const copied_view part(v, count, plan.arrays(), ld * plan.arrays());
    copy_box(comm, s.seat, plan.element_bytes, part.all,
             v.data + (first - s.first) * v.element_stride * static_cast<int64_t>(plan.element_bytes),
             part.stride.data(), static_cast<char*>(to) + array * plan.element_bytes, part.copied.data());
  });
}

void partial_work::gather_one(const reduce_seat& s, int64_t sequence, int64_t first, int64_t count, void* to) const {
  each_array(s, [&](const sequence_view& v, size_t array) {
    const int64_t offset =
        (first - s.first) * v.element_stride + place_of(sequence, v.axes, v.length.data(), v.stride.data());
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
