// coverage.cpp - records what ran; a row or a cell of the matrix that never ran is a failure.
#include "runner.hpp"

namespace lockstep::cases {
namespace {
std::string key(const std::string& backend, lockstep_op op, const std::string& name) {
  return backend + " " + lockstep_op_name(op) + " " + name;
}
}  // namespace

void coverage::add(const subject& s, const target& t, const outcome& o) {
  if (o.beyond_the_backend()) ++beyond_cells_[key(t.backend, s.c.op, s.c.cell)];
  if (o.what == verdict::refused || o.variant.empty()) return;  // empty inputs run nothing
  ++rows_[key(t.backend, s.c.op, o.variant)];
  if (!t.variant.empty()) return;
  const std::string cell = key(t.backend, s.c.op, s.c.cell);
  if (o.what == verdict::equal)
    ++cells_[cell];
  else
    ++failed_cells_[cell];
}

size_t coverage::ran(const std::string& backend, lockstep_op op, const std::string& variant) const {
  const auto found = rows_.find(key(backend, op, variant));
  return found == rows_.end() ? 0 : found->second;
}

std::string coverage::idle_rows(const std::string& backend, lockstep_op op) const {
  std::string idle;
  for (const row& r : rows_of(backend, op))
    if (ran(backend, op, r.name) == 0) idle += (idle.empty() ? "" : ", ") + r.name;
  return idle;
}

std::vector<std::string> coverage::idle_cells(const std::string& backend, lockstep_op op) const {
  std::vector<std::string> idle;
  for (const std::string& cell : matrix(op, backend)) {
    const std::string name = key(backend, op, cell);
    if ((cells_.count(name) == 0 && beyond_cells_.count(name) == 0) || failed_cells_.count(name) != 0)
      idle.push_back(cell);
  }
  return idle;
}

}  // namespace lockstep::cases
