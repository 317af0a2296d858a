/* group.h - many calls of one op at once. The conventions are those of lockstep.h. */
#ifndef LOCKSTEP_GROUP_H
#define LOCKSTEP_GROUP_H

#include "lockstep/lockstep.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- groups ------------------------------------------------------------ */

/* Computes   count calls of one op in one call: for each i what
 *            lockstep_execute(context, op, desc i, srcs[i], dsts[i], options) does. Meant
 *            for many small arrays (the norms of a model's gradients, small transposes),
 *            where a call for each costs more than the work.
 * Shapes     descs is an array of count descriptions. desc_bytes is the size of one
 *            (sizeof(lockstep_reduce_desc)), and so is the size member of each. Descriptions
 *            may differ in everything else. srcs and dsts are arrays of count pointers. All three
 *            are host memory, read during the call only.
 * Types      those of the op, in any mix.
 * Order      every result has the bits of its single call, whatever else is in the group.
 * How        the CPU shares out all calls of up to 256 KiB among one team of threads. CUDA
 *            runs calls of up to 2 MiB together, by one launch for each type of element:
 *            square_sum of floats (up to 64 MiB; norms of F64: 2 MiB, and 131,072 elements a
 *            sequence), transposes from src to dst, normalize (rows of up to 2,048 elements,
 *            results of the same type).
 *            The other calls, and calls of other ops on CUDA, run one after the other:
 *            correct, but slower. auto chooses one backend for all. A forced variant runs
 *            every call by itself; CUDA's "grouped", forced, is that kernel.
 * Memory     as the op. An array that the backend cannot reach makes its call run by itself.
 *            One call costs memory for a copy of the descriptions; a plan keeps it.
 * Aliasing   within each call as the op says. No dst, nor any other array that is written,
 *            may overlap an array of another call. Calls may share what is only read. Offsets
 *            in device memory are not known here: there lockstep cannot check src.
 * Exactness  that of the op.
 * Asynchrony blocks unless LOCKSTEP_ASYNC; on a stream, and in a captured graph, as the op. On the
 *            CPU, and if an array of any call has to be copied to the device or back, the whole
 *            group blocks all the same.
 *            options.workspace must hold what lockstep_plan_workspace says for a plan of the
 *            same group, in this call and in the plan's executions.
 * Empty      count 0: nothing happens. A description of an empty call does nothing.
 * Errors     those of the single calls; the text names the first description at fault
 *            ("descs[3]: ..."), but none where options are at fault. All are validated before
 *            any runs. After OVERFLOW or EMPTY the other calls have run too. Of several such
 *            calls, of either status, the first description's status and text are given, once:
 *            by the call if it blocks (see Asynchrony), else by lockstep_synchronize.
 *            INVALID_ARGUMENT also for arrays of two calls that overlap (with both numbers), a
 *            workspace that overlaps an array, a negative count, NULL for an array of count, a
 *            desc_bytes or a size member that no description of the op has.
 * Threads    safe. Source: lib/call/group.cpp, backends/<name>/group* */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_execute_group(lockstep_context* context, lockstep_op op,
                                                                       const void* descs, size_t desc_bytes,
                                                                       int64_t count, const void* const* srcs,
                                                                       void* const* dsts,
                                                                       const lockstep_options* options);

/* A plan of a group, as in lockstep_execute_group. It keeps the pointers, because the
 * backend's table of all calls holds them: execute and measure it with src and dst NULL.
 * An execution on a stream is one launch for each type of element. The arrays, and
 * offsets, must outlive the plan; offsets in host memory must not change. A captured
 * graph uses the plan's table: keep the plan as long as the graph, and wait for its work
 * on your streams before you destroy it. LOCKSTEP_TUNE is not for groups. A workspace
 * given here is the one for executions: the plan then allocates none.
 * Errors: those of lockstep_execute_group; INVALID_ARGUMENT (plan is NULL). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_group(lockstep_context* context, lockstep_op op,
                                                                    const void* descs, size_t desc_bytes, int64_t count,
                                                                    const void* const* srcs, void* const* dsts,
                                                                    const lockstep_options* options,
                                                                    lockstep_plan** plan);

#ifdef __cplusplus
}
#endif
#endif
