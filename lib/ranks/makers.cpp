// makers.cpp - default options, grids and packed parts: exported functions, so that bindings can call them without
// reading the header.
#include "lockstep/ranks.h"

lockstep_comm_options lockstep_comm_defaults() {
  lockstep_comm_options o = {};
  o.size = sizeof o;
  o.seats = 1;
  return o;
}

lockstep_grid lockstep_grid_slabs(size_t element_bytes, int32_t rank, const int64_t* shape, int32_t parts) {
  lockstep_grid g = {};
  g.size = sizeof g;
  g.element_bytes = element_bytes;
  g.rank = rank;
  if (rank < 1 || rank > LOCKSTEP_MAX_RANK || shape == nullptr) return g;
  for (int32_t k = 0; k < rank; ++k) {
    g.shape[k] = shape[k];
    g.parts[k] = k == 0 ? parts : 1;
  }
  return g;
}

lockstep_part lockstep_part_packed(void* data, int32_t rank, const int64_t* length) {
  lockstep_part p = {};
  p.size = sizeof p;
  p.data = data;
  if (rank < 1 || rank > LOCKSTEP_MAX_RANK || length == nullptr) return p;
  uint64_t stride = 1;  // unsigned: a product that is too large wraps here, and the call refuses it
  for (int32_t k = rank - 1; k >= 0; --k) {
    p.strides[k] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(length[k] > 0 ? length[k] : 1);
  }
  return p;
}

lockstep_part lockstep_part_scalar(void* data) {
  const int64_t one = 1;
  return lockstep_part_packed(data, 1, &one);
}

lockstep_part lockstep_part_with_ghosts(void* memory, size_t element_bytes, int32_t rank, const int64_t* length,
                                        const int64_t* width) {
  bool valid = rank >= 1 && rank <= LOCKSTEP_MAX_RANK && length != nullptr && width != nullptr && memory != nullptr;
  int64_t all[LOCKSTEP_MAX_RANK] = {};
  for (int32_t k = 0; valid && k < rank; ++k)
    valid = width[k] >= 0 && length[k] >= 0 && !__builtin_mul_overflow(width[k], int64_t{2}, &all[k]) &&
            !__builtin_add_overflow(all[k], length[k], &all[k]);
  lockstep_part p = lockstep_part_packed(nullptr, valid ? rank : 0, all);
  uintptr_t offset = 0;  // unsigned, as the strides
  for (int32_t k = 0; valid && k < rank; ++k)
    offset += static_cast<uintptr_t>(width[k]) * static_cast<uintptr_t>(p.strides[k]);
  if (valid) p.data = static_cast<char*>(memory) + offset * element_bytes;
  return p;
}
