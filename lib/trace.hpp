// trace.hpp - LOCKSTEP_TRACE=FILE appends one line a call: op, backend, variant,
// bytes, why not the others. The library itself never prints.
#pragma once

#include "run.hpp"

namespace lockstep::lib {
void trace(const prepared_call& prepared, const choice& chosen, size_t staged_bytes, lockstep_status status) noexcept;
}
