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
