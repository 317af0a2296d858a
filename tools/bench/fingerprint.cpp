// fingerprint.cpp - see fingerprint.hpp; the table is made at build time.
#include "fingerprint.hpp"

#include <cstdlib>

#include "fingerprints.hpp"

namespace lockstep::tool::bench {
namespace {

// As row_of in tools/fingerprint.py.
std::string tuning_row(const std::string& backend, const std::string& detail) {
  if (backend == "cpu") return detail.find("zen4") != std::string::npos ? "zen4" : "default";
  const size_t at = detail.find("sm_");
  const int major = at == std::string::npos ? 0 : std::atoi(detail.c_str() + at + 3) / 10;
  return major >= 9 ? "hopper" : major == 8 ? "ampere" : "default";
}

}  // namespace

std::string fingerprint_of(const std::string& backend, const std::string& detail, const std::string& op,
                           const std::string& name) {
  const std::string kind = backend.substr(0, backend.find(':')), row = tuning_row(kind, detail);
  const std::string of = (name.starts_with("group/") ? "group/" : "") + op;
  for (const made_of& one : fingerprints)
    if (kind == one.backend && row == one.row && of == one.op) return one.fingerprint;
  return "";
}

}  // namespace lockstep::tool::bench
