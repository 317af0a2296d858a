// limits.cpp - see limits.hpp.
#include "limits.hpp"

#include <algorithm>

namespace lockstep::tool::bench {

void limits::of_backend(const std::string& backend) {
  const double launch = measured(backend, LOCKSTEP_LIMIT_LAUNCH, 0).median;
  nlohmann::ordered_json& found = out_.limits[backend];
  found["launch_us"] = launch * 1e3;
  constexpr std::pair<const char*, lockstep_limit> arithmetic[] = {{"fma_f32_gflop_s", LOCKSTEP_LIMIT_FMA_F32},
                                                                   {"fma_f64_gflop_s", LOCKSTEP_LIMIT_FMA_F64}};
  for (const auto& [name, kind] : arithmetic)
    if (const double rate = gflop_s(backend, kind, launch); rate > 0) found[name] = rate;
  if (backend == "cpu") return;
  constexpr std::pair<const char*, lockstep_limit> links[] = {
      {"upload_pinned_gb_s", LOCKSTEP_LIMIT_UPLOAD_PINNED},
      {"download_pinned_gb_s", LOCKSTEP_LIMIT_DOWNLOAD_PINNED},
      {"both_pinned_gb_s", LOCKSTEP_LIMIT_BOTH_PINNED},
      {"upload_pageable_gb_s", LOCKSTEP_LIMIT_UPLOAD_PAGEABLE},
      {"download_pageable_gb_s", LOCKSTEP_LIMIT_DOWNLOAD_PAGEABLE}};
  constexpr size_t link_bytes = size_t{256} << 20;
  for (const auto& [name, kind] : links)
    found[name] = static_cast<double>(link_bytes) / measured(backend, kind, link_bytes).median * 1e-6;
  if (asked_.memory != "pageable") return;
  try {
    found["host_copies_gb_s"] = host_copies_gb_s(context_, backend);
  } catch (const failure& error) {
    out_.skipped.push_back(format_text("host copies beside {}: {}", backend, error.what()));
  }
}

double limits::of_case(const std::string& backend, bool reads_only, double bytes) {
  // The same number of bytes as the case moves, so that caches count alike;
  // beyond 2 GiB nothing changes any more.
  const auto size = static_cast<size_t>(std::min(bytes, 2147483648.0));
  if (backend != "cpu" && asked_.memory != "device")  // both ways at once; a reduction only uploads
    return static_cast<double>(size) /
           measured(backend, reads_only ? LOCKSTEP_LIMIT_UPLOAD_PINNED : LOCKSTEP_LIMIT_BOTH_PINNED, size).median *
           1e-6;
  const auto key = std::make_tuple(backend, reads_only, size);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const timing time = measured(backend, reads_only ? LOCKSTEP_LIMIT_READ : LOCKSTEP_LIMIT_COPY, size);
  const double gb_s = static_cast<double>(size) / time.median * 1e-6;
  out_.limits[backend][reads_only ? "read_gb_s" : "copy_gb_s"][format_text("{}", size)] = gb_s;
  return known_[key] = gb_s;
}

timing limits::measured(const std::string& backend, lockstep_limit kind, size_t bytes) {
  std::vector<double> ms(asked_.cold ? 11 : 15);
  check(lockstep_measure_limit(context_, backend.c_str(), kind, bytes,
                               asked_.cold ? static_cast<uint32_t>(LOCKSTEP_COLD) : 0u, static_cast<int32_t>(ms.size()),
                               ms.data()));
  return summarise(std::move(ms));
}

// As many operations as take a millisecond, and ten empty calls. 0 if the backend does not measure it, or gets wrong
// results; that is reported, and the cases are still timed.
double limits::gflop_s(const std::string& backend, lockstep_limit kind, double launch_ms) {
  for (size_t operations = size_t{1} << 24;; operations *= 8) {
    std::vector<double> ms(15);
    const lockstep_status status = lockstep_measure_limit(context_, backend.c_str(), kind, operations, 0,
                                                          static_cast<int32_t>(ms.size()), ms.data());
    if (status == LOCKSTEP_UNSUPPORTED) return 0;
    if (status != LOCKSTEP_OK) {
      out_.skipped.push_back(format_text("the ceiling of arithmetic on {}: {}", backend, lockstep_last_error()));
      return 0;
    }
    // The fastest sample, because other load on the machine is not part of the limit.
    const double best = *std::min_element(ms.begin(), ms.end());
    if (best > std::clamp(10 * launch_ms, 1.0, 50.0) || operations > size_t{1} << 44)
      return static_cast<double>(operations) / best * 1e-6;
  }
}

}  // namespace lockstep::tool::bench
