/* ranks.h - lockstep's operations on arrays that are cut over many ranks: the
 * processes of an MPI job, the threads of a program, the GPUs of a process, or any
 * mix. C11; link with liblockstep_ranks and liblockstep.
 *
 * The bits are those of the one call on the whole array (lockstep.h), whatever the
 * number of ranks, the cuts and the transport: order id 1 holds across ranks.
 *
 * Conventions beside those of lockstep.h
 *   Collective means that every process of the communicator makes the call, in the
 *   same order; what the ranks must say alike is compared, and a difference is
 *   LOCKSTEP_MISMATCH on every rank, with the argument and two ranks named.
 *   A failure of one rank is LOCKSTEP_RANK_FAILED on the others, with that rank and
 *   its reason. No call waits for ever: a rank that gives no sign for timeout_ms is
 *   LOCKSTEP_RANK_LOST, and the communicator is then closed, for good: every later
 *   call fails at once. Only a NULL communicator or plan makes a process stay away
 *   from a call; the others find out by their deadline.
 *   A communicator and its plans belong to one thread at a time. */
#ifndef LOCKSTEP_RANKS_H
#define LOCKSTEP_RANKS_H

#include <lockstep/engine.h>
#include <lockstep/lockstep.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- communicators ------------------------------------------------------ */

typedef struct lockstep_comm lockstep_comm;
typedef struct lockstep_ranks_plan lockstep_ranks_plan;

enum {
  LOCKSTEP_ABORT_ON_LOSS = 1u /* end the whole job where a rank is lost, if the transport can */
};

typedef struct lockstep_comm_options {
  size_t size;                 /* sizeof(lockstep_comm_options) */
  int32_t seats;               /* ranks that this process holds, 1 to 1,024 */
  const char* const* backends; /* the backend of each seat, "cpu" or "cuda:1"; NULL, or a NULL among them: the
                                * context's */
  int64_t timeout_ms;          /* 0: LOCKSTEP_RANKS_TIMEOUT (ms), else 60,000; -1: wait for ever */
  uint32_t flags;              /* LOCKSTEP_ABORT_ON_LOSS */
  int64_t message_bytes;       /* of data at most that one message holds, to 1 GiB, the same on every rank (but a
                                * leaf of one sequence travels whole): a pair of processes takes that much memory
                                * twice, a reduction a few times. 0: 32 MiB */
} lockstep_comm_options;

static inline lockstep_comm_options lockstep_comm_defaults(void) {
  lockstep_comm_options o = {sizeof(lockstep_comm_options), 1, 0, 0, 0, 0};
  return o;
}

/* A communicator over a transport; collective. Ranks are numbered process by
 * process. The context must outlive the communicator; each process has its own.
 * On success the engine belongs to the communicator, which closes it; on a failure
 * it stays the caller's. options may be NULL.
 * Errors: INVALID_ARGUMENT (NULL, a malformed engine or option), OUT_OF_MEMORY,
 * RANK_FAILED, RANK_LOST. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_comm_create(lockstep_context* context,
                                                                     const lockstep_engine* engine,
                                                                     const lockstep_comm_options* options,
                                                                     lockstep_comm** comm);
/* A communicator whose ranks are all seats of this process. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_comm_local(lockstep_context* context,
                                                                    const lockstep_comm_options* options,
                                                                    lockstep_comm** comm);
/* One rank of a communicator that is not there: plans for any number of ranks can be made and estimated, not run, and
 * take no memory for data. Local. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_comm_dry(lockstep_context* context, int32_t ranks,
                                                                  int32_t rank, lockstep_comm** comm);
/* Transports between `processes` threads of this process, one for each: each thread
 * makes a communicator with its own. Errors: INVALID_ARGUMENT (engines is NULL,
 * processes not 1 to 1,024), OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_engine_local(int32_t processes, lockstep_engine* engines);

/* Destroys a communicator; NULL is allowed. Its plans must be destroyed before.
 * Collective where MPI's MPI_Comm_free is; local where it was closed. */
LOCKSTEP_API void lockstep_comm_destroy(lockstep_comm* comm);

typedef struct lockstep_comm_info {
  size_t size; /* sizeof(lockstep_comm_info) */
  int32_t ranks;
  int32_t rank;  /* of this process's first seat */
  int32_t seats; /* of this process */
  int32_t processes;
  const char* engine; /* the transport's name */
  int32_t closed;
  const char* reason; /* why it was closed, "" while it is not */
} lockstep_comm_info;
/* The texts live as long as the communicator. Errors: INVALID_ARGUMENT. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_comm_get(const lockstep_comm* comm, lockstep_comm_info* info);

/* Finishes the asynchronous executions of this process, waits for those of all ranks
 * and tells of the first failure of any rank that it has not told of before, of an
 * execution that waited too: its own status on the rank that failed, RANK_FAILED on
 * the others. Collective. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_synchronize(lockstep_comm* comm);

/* ---- how a global array lies on ranks ----------------------------------- */

/* Axis k of the array is cut into parts[k] pieces; the blocks that this gives are
 * numbered row-major and lie on rank 0, 1, ... or as order says. Ranks beyond the
 * last block hold nothing. The same on every rank. */
typedef struct lockstep_grid {
  size_t size; /* sizeof(lockstep_grid) */
  size_t element_bytes;
  int32_t rank; /* axes, 1 to 8 */
  int64_t shape[LOCKSTEP_MAX_RANK];
  int32_t parts[LOCKSTEP_MAX_RANK];       /* product at most the number of ranks */
  const int64_t* cuts[LOCKSTEP_MAX_RANK]; /* parts[k] + 1 ascending numbers from 0 to shape[k]; equal neighbours: an
                                           * empty piece; NULL: even, the longer pieces first */
  const int32_t* order;                   /* the rank of each block; NULL: 0, 1, ... */
} lockstep_grid;

/* The array cut along its outermost axis only. */
static inline lockstep_grid lockstep_grid_slabs(size_t element_bytes, int32_t rank, const int64_t* shape,
                                                int32_t parts) {
  lockstep_grid g = {sizeof(lockstep_grid), element_bytes, rank, {0}, {0}, {0}, 0};
  if (rank < 1 || rank > LOCKSTEP_MAX_RANK) return g;
  for (int32_t k = 0; k < rank; ++k) {
    g.shape[k] = shape[k];
    g.parts[k] = k == 0 ? parts : 1;
  }
  return g;
}

enum {
  LOCKSTEP_REST_FIRST = 0u, /* the first pieces are the longer ones */
  LOCKSTEP_REST_LAST = 1u   /* the last ones are */
};
/* Even cuts on every axis, at multiples of align: 2,048 on the axis of a long sum
 * keeps the leaves of the fixed order whole, so that no element has to travel.
 * cuts_storage holds the sum of parts[k] + 1 numbers and outlives the grid's use.
 * Errors: INVALID_ARGUMENT. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_grid_even(lockstep_grid* grid, int64_t align, uint32_t rest,
                                                                   int64_t* cuts_storage);
/* The block of a rank: its first element's index and its lengths on each axis. A rank
 * without a block, or with an empty one, has a length of 0. Errors: INVALID_ARGUMENT. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_grid_box(const lockstep_grid* grid, int32_t rank, int64_t* low,
                                                                  int64_t* length);

/* The memory of one seat's block. */
typedef struct lockstep_part {
  size_t size; /* sizeof(lockstep_part) */
  void* data;  /* the block's first element; may be NULL where the block is empty */
  int64_t strides[LOCKSTEP_MAX_RANK];
} lockstep_part;

/* A packed block of these lengths. */
static inline lockstep_part lockstep_part_packed(void* data, int32_t rank, const int64_t* length) {
  lockstep_part p = {sizeof(lockstep_part), data, {0}};
  uint64_t stride = 1;
  for (int32_t k = rank - 1; k >= 0 && rank <= LOCKSTEP_MAX_RANK; --k) {
    p.strides[k] = (int64_t)stride;
    stride *= (uint64_t)(length[k] > 0 ? length[k] : 1);
  }
  return p;
}

/* ---- plans --------------------------------------------------------------- */

/* Making a plan is collective: arguments are checked, compared between the ranks,
 * and memory is taken, so that it succeeds on all ranks or on none. options.backend
 * and variant must be NULL: a seat's backend was chosen with the communicator. A
 * workspace named here says that the caller will bring one to each execution, and the
 * plan takes none of its own; the ranks need not do alike.
 * Errors of all plans: INVALID_ARGUMENT, MISMATCH, RANK_FAILED, RANK_LOST,
 * OUT_OF_MEMORY. */

/* Computes   dst[i_perm[0], i_perm[1], ...] = src[i_0, i_1, ...] as lockstep_permute does, from the blocks of one grid
 *            to those of another: dst->shape[k] is src->shape[perm[k]]. perm {1, 0} transposes; 0, 1, ...
 * redistributes: slabs to pencils, other cuts, everything to one rank. Exactness  bit copies. Moves      every element
 * once, between each pair of ranks the one box that they share. src and dst must not overlap. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_permute(lockstep_comm* comm, const lockstep_grid* src,
                                                                       const int32_t* perm, const lockstep_grid* dst,
                                                                       const lockstep_options* options,
                                                                       lockstep_ranks_plan** plan);

/* Computes   the reduction over the axes in `axes` (bit k: axis k of src), for each
 *            index of the others; the sequence of a result is the elements in
 *            row-major order over the reduced axes.
 * Results    an array over the axes that are kept, row-major (one element, of
 *            rank 1, where none is). dst NULL: every rank gets all of it, at
 *            data with these strides; else its shape is that of the kept axes, and
 *            every rank gets its block.
 * Exactness  the bits of lockstep_reduce and lockstep_square_sum on each whole
 *            sequence, for their reductions, types and result types.
 * Moves      partial results, and the elements of leaves (2,048 elements of a
 *            sequence) that a cut goes through. Where a cut goes along an axis so
 *            that a rank's part of a sequence is not one run of it, the array is
 *            redistributed first: to reduce a block-cut array over several axes
 *            without that, reduce the innermost axis first, which has bits of its own.
 * Status     OVERFLOW and EMPTY as lockstep_reduce, the same on every rank. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_reduce(lockstep_comm* comm, const lockstep_grid* src,
                                                                      lockstep_reduction reduction,
                                                                      lockstep_dtype dtype, lockstep_dtype result,
                                                                      uint32_t axes, const lockstep_grid* dst,
                                                                      const lockstep_options* options,
                                                                      lockstep_ranks_plan** plan);

/* Computes   the stencil of lockstep_stencil on the whole array: desc gives dtype, form, boundary, rank, radius,
 *            coefficients, sweeps and value; its shape, strides and batch are ignored, for the grid has them. A grid of
 *            one more axis in front is a batch of arrays.
 * Shapes     dst's block lies as src's does. Under VALID it is the part of src's block that is at least
 *            radius * sweeps from each end of the whole array, and may be empty. The innermost stride is 1.
 * Exactness  the bits of the one call; src's values are those of all ranks when this begins.
 * Moves      radius * sweeps layers along the sides where the array goes on, from however many ranks hold them;
 *            meanwhile each rank computes what needs none of them. src and dst must not overlap.
 * Status     a failure is told to the ranks that exchange with the failed one, and to all by
 *            lockstep_ranks_synchronize; as for every plan. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_stencil(lockstep_comm* comm, const lockstep_grid* grid,
                                                                       const lockstep_stencil_desc* desc,
                                                                       const lockstep_options* options,
                                                                       lockstep_ranks_plan** plan);

/* Fills     the ghosts around each block: width[k] elements on both sides of axis k, corners too, which the caller's
 *           memory must have around dst[seat].data (src of the execution is ignored). Beyond the array the boundary
 *           says what they hold: folded elements, or value, in F32 or F64; VALID leaves them as they are.
 * Status    as for lockstep_ranks_stencil. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_halo(lockstep_comm* comm, const lockstep_grid* grid,
                                                                    const int64_t* width, lockstep_boundary boundary,
                                                                    double value, const lockstep_options* options,
                                                                    lockstep_ranks_plan** plan);

/* Runs a plan: collective. src and dst have one element for each seat of this
 * process. options may be NULL; of them ASYNC, stream, workspace and workspace_bytes
 * count, which the ranks may give differently.
 * Stream     the one that the calls of seats on a GPU go to, in order; those on the CPU
 *            have none and ignore it.
 * Workspace  host memory for messages and partial results, aligned to 256 bytes, of at
 *            least lockstep_ranks_workspace bytes, which nothing else uses until the
 *            execution is done (after RANK_LOST: until the communicator is destroyed).
 *            Where a plan has none and is brought none, each execution takes its own;
 *            a rank that has no memory for it closes the communicator.
 * Asynchrony blocks unless LOCKSTEP_ASYNC. Then it sends what it can and returns: OK,
 *            or what is wrong with the arguments. The rest happens in the order of the
 *            calls, when lockstep_ranks_synchronize, another call with this
 *            communicator, or the plan's end comes to it; there is no thread behind it.
 *            src, dst and the workspace stay as they are until then, the parts' structs
 *            need not. lockstep_ranks_synchronize tells what failed, OVERFLOW and EMPTY
 *            too. Nobody counts time while nobody waits; but ranks that wait do, so all
 *            must come to it within timeout_ms of each other. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_execute(lockstep_ranks_plan* plan,
                                                                       const lockstep_part* src,
                                                                       const lockstep_part* dst,
                                                                       const lockstep_options* options);
/* Bytes of workspace that an execution needs on this process. Errors: INVALID_ARGUMENT. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_workspace(const lockstep_ranks_plan* plan,
                                                                         size_t* bytes);

/* What one execution costs this process, found without running it. */
typedef struct lockstep_ranks_link {
  size_t size;            /* sizeof(lockstep_ranks_link) */
  double latency_us;      /* of a message */
  double gigabytes_per_s; /* 10^9 bytes, into or out of a process */
} lockstep_ranks_link;
typedef struct lockstep_ranks_cost {
  size_t size;      /* sizeof(lockstep_ranks_cost) */
  int32_t steps;    /* rounds of messages, one after the other */
  int64_t messages; /* sent */
  int64_t bytes_out, bytes_in;
  int64_t workspace_bytes; /* as lockstep_ranks_workspace */
  double ms; /* of the messages: for each step, messages * latency + the larger of bytes out and in / speed;
              * 0 where no link is given. The computing, which partly hides it, is not in it */
} lockstep_ranks_cost;
/* link may be NULL. The second pass of NORM2 of F64, which data out of range need, is not counted. Local. Errors:
 * INVALID_ARGUMENT. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_estimate(const lockstep_ranks_plan* plan,
                                                                        const lockstep_ranks_link* link,
                                                                        lockstep_ranks_cost* cost);

/* Destroys a plan; NULL is allowed. Local; what is still to do asynchronously is done before. */
LOCKSTEP_API void lockstep_ranks_plan_destroy(lockstep_ranks_plan* plan);

#ifdef __cplusplus
}
#endif
#endif
