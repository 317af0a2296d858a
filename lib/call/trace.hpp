// trace.hpp - with LOCKSTEP_TRACE=FILE every call appends one line to a file: op, backend,
// variant, bytes, why other backends were passed over. The library itself never prints.
#pragma once

#include "run.hpp"

namespace lockstep::lib {
// Why the file of LOCKSTEP_TRACE cannot be written, for the first caller only; "" afterwards and when it can. A write
// that fails is known to the next call.
const char* trace_trouble() noexcept;
void trace(const prepared_call& prepared, const choice& chosen, size_t staged_bytes, lockstep_status status) noexcept;
}  // namespace lockstep::lib
