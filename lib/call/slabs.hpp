// slabs.hpp - cutting a call on host memory into parts whose upload, computation
// and download can overlap.
#pragma once

#include <vector>

#include "run.hpp"

namespace lockstep::lib {
// Parts of about slab_bytes each that together give the bits of the whole call; empty
// when the call cannot be cut or is too small for it to pay.
std::vector<lockstep_slab> cut(const prepared_call& prepared, size_t slab_bytes);

// Named in the table of ops (ops/ops.cpp).
std::vector<lockstep_slab> cut_transpose(const prepared_call& prepared, size_t slab_bytes);
std::vector<lockstep_slab> cut_permute(const prepared_call& prepared, size_t slab_bytes);
std::vector<lockstep_slab> cut_stencil(const prepared_call& prepared, size_t slab_bytes);
std::vector<lockstep_slab> cut_shuffle(const prepared_call& prepared, size_t slab_bytes);
}  // namespace lockstep::lib
