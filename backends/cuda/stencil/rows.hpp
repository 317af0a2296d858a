// rows.hpp - the launchers that the table in stencil.cu names.
#pragma once

#include "../device/queue.hpp"

namespace lockstep::cuda::stencil {

lockstep_status launch_wide(lockstep_queue&, const lockstep_call&);
lockstep_status launch_folded(lockstep_queue&, const lockstep_call&);
lockstep_status launch_global(lockstep_queue&, const lockstep_call&);
lockstep_status launch_direct(lockstep_queue&, const lockstep_call&);
const char* direct_refuses(const lockstep_queue*, const lockstep_call*);
int direct_yields(const lockstep_queue*, const lockstep_call*);
const char* small_refuses(const lockstep_queue*, const lockstep_call*);     // offsets of 32 bits
bool ragged_rows(const lockstep_stencil_desc&);                             // not of whole 16 bytes
double streamed_cost(const lockstep_queue&, const lockstep_stencil_desc&);  // of a sweep of rank 3, in microseconds
lockstep_status launch_marched(lockstep_queue&, const lockstep_call&);
const char* marched_refuses(const lockstep_queue*, const lockstep_call*);
int marched_yields(const lockstep_queue*, const lockstep_call*);
lockstep_status launch_streamed(lockstep_queue&, const lockstep_call&);
const char* streamed_refuses(const lockstep_queue*, const lockstep_call*);
int streamed_yields(const lockstep_queue*, const lockstep_call*);
lockstep_status launch_registers(lockstep_queue&, const lockstep_call&);
const char* registers_refuses(const lockstep_queue*, const lockstep_call*);
int registers_yields(const lockstep_queue*, const lockstep_call*);
size_t registers_workspace(const lockstep_queue*, const lockstep_call*);
lockstep_status launch_sweeps_streamed(lockstep_queue&, const lockstep_call&);
const char* sweeps_streamed_refuses(const lockstep_queue*, const lockstep_call*);
int sweeps_streamed_yields(const lockstep_queue*, const lockstep_call*);
size_t sweeps_streamed_workspace(const lockstep_queue*, const lockstep_call*);
lockstep_status launch_sweeps_planes(lockstep_queue&, const lockstep_call&);
const char* sweeps_planes_refuses(const lockstep_queue*, const lockstep_call*);
int sweeps_planes_yields(const lockstep_queue*, const lockstep_call*);
size_t sweeps_planes_workspace(const lockstep_queue*, const lockstep_call*);
lockstep_status launch_planes(lockstep_queue&, const lockstep_call&);
const char* planes_refuses(const lockstep_queue*, const lockstep_call*);
int planes_yields(const lockstep_queue*, const lockstep_call*);

enum class coefficients { constant, ldg, restricted, parameter };
template <coefficients where, int block, bool fold = false>
lockstep_status launch_shared(lockstep_queue&, const lockstep_call&);
const char* constant_refuses(const lockstep_queue*, const lockstep_call*);
const char* folded_refuses(const lockstep_queue*, const lockstep_call*);  // r + 1 coefficients for pairs
const char* folded_constant_refuses(const lockstep_queue*, const lockstep_call*);
size_t shared_workspace(const lockstep_queue*, const lockstep_call*);  // sweeps and device coefficients

}  // namespace lockstep::cuda::stencil
