// estimate.cpp - see estimate.hpp.
#include "estimate.hpp"

#include "../ops/ops.hpp"

namespace lockstep::lib {

cost::call cost_call(const prepared_call& prepared) {
  cost::call seen;
  seen.what = cost::rows;
  seen.bytes = static_cast<double>(prepared.moved_bytes);
  if (const op_row& row = row_of(prepared.call.op); row.weigh != nullptr) row.weigh(prepared, seen);
  return seen;
}

comparison compare(const calibration& figures, const prepared_call& prepared, const backend_entry& device,
                   cost::place where, int threads) {
  const cost::call call = cost_call(prepared);
  const bool device_data = where == cost::on_device;
  if (threads <= 0) threads = figures.threads;
  return {&device, &figures, cost::device_us(figures.model, call, device.name(), where, threads),
          cost::cpu_us(figures.model, call, threads) +
              (device_data ? cost::trips_us(figures.model, call, device.name()) : 0),
          device_data};
}

std::string in_words(const comparison& compared, std::string_view basis) {
  const std::string& name = compared.device->name();
  const std::string figures = format_text("{:.3g} us against {:.3g}{}", compared.there_us, compared.here_us, basis);
  if (compared.device_data)
    return format_text(
        "{}: the data is in its memory, but the CPU needs less time even with the copies over the link ({})", name,
        figures);
  if (compared.pays()) return format_text("cpu: {} needs less time, copies over the link included ({})", name, figures);
  return format_text("{}: the data is in host memory, and one trip over the link costs more than the CPU needs ({})",
                     name, figures);
}

}  // namespace lockstep::lib
