// trace.hpp - LOCKSTEP_TRACE=FILE appends one line a call: op, backend, variant,
// bytes, why not the others. The library itself never prints.
#pragma once

#include "run.hpp"

namespace lockstep::lib {
// Why LOCKSTEP_TRACE cannot be written, told to the first caller alone; "" afterwards and where it can.
const char* trace_trouble() noexcept;
void trace(const prepared_call& prepared, const choice& chosen, size_t staged_bytes, lockstep_status status) noexcept;
}  // namespace lockstep::lib
