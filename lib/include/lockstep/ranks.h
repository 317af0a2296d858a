/* ranks.h - lockstep's operations on arrays that are divided among many ranks: the
 * processes of an MPI job, the threads of a program, the GPUs of a process, or any
 * mix. C11; link with liblockstep_ranks and liblockstep.
 *
 * The bits are those of one call on the whole array (lockstep.h), for any number of
 * ranks, any division and any transport: order id 1 holds across ranks.
 *
 * Conventions in addition to those of lockstep.h
 *   Collective means that every process of the communicator makes the call, in the
 *   same order. Arguments that must agree are compared; a difference is
 *   LOCKSTEP_MISMATCH on every rank, and the error names the argument and two ranks.
 *   A failure of one rank is LOCKSTEP_RANK_FAILED on the others; the error names that
 *   rank and its reason. No call waits for ever: a rank that does not answer for
 *   timeout_ms is LOCKSTEP_RANK_LOST. The communicator is then closed for good, and
 *   every later call fails at once. MPI_Finalize may then wait for the lost rank for ever:
 *   end the job with MPI_Abort. A process that passes a NULL communicator or plan does not
 *   take part in the call; the others fail at their deadline.
 *   A communicator and its plans may be used by only one thread at a time; over MPI which threads may call depends on
 *   the level at which it was initialized (ranks_mpi.h).
 *   "rank" of a grid is its number of axes, as in lockstep.h; "rank" of a communicator and in error texts is one of the
 *   participants. */
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
  LOCKSTEP_ABORT_ON_LOSS = 1u /* end the whole job when a rank is lost, if the transport can */
};

typedef struct lockstep_comm_options {
  size_t size;                 /* sizeof(lockstep_comm_options) */
  int32_t seats;               /* ranks that this process holds, 1 to 1,024 */
  const char* const* backends; /* the backend of each seat, "cpu" or "cuda:1"; NULL, or a NULL among them: the
                                * context's */
  int64_t timeout_ms;          /* 0: LOCKSTEP_RANKS_TIMEOUT (ms), else 60,000; -1: wait for ever */
  uint32_t flags;              /* LOCKSTEP_ABORT_ON_LOSS */
  int64_t message_bytes;       /* most bytes of data in one message, up to 1 GiB, the same on every rank (a leaf of
                                * one sequence is sent whole even if it is longer). Each pair of processes needs
                                * twice that much memory, a reduction a few times that. 0: 32 MiB */
  const char* data;            /* how ranks on GPUs exchange data (see lockstep_comm_get): "direct", "engine", "nccl" or
                                * "staged", used or UNSUPPORTED; NULL: the best for each pair */
} lockstep_comm_options;

LOCKSTEP_API lockstep_comm_options lockstep_comm_defaults(void);

/* Creates a communicator over a transport; collective. Ranks are numbered process by
 * process. Each process passes a context of its own, which must outlive the
 * communicator. On success the communicator owns the engine and closes it; after a
 * failure the caller still owns it. options may be NULL.
 * Errors: INVALID_ARGUMENT (NULL, a malformed engine or option), NO_BACKEND (options.backends), UNSUPPORTED
 * (options.data), MISMATCH (options that differ between ranks), OUT_OF_MEMORY, RANK_FAILED, RANK_LOST. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_comm_create(lockstep_context* context,
                                                                     const lockstep_engine* engine,
                                                                     const lockstep_comm_options* options,
                                                                     lockstep_comm** comm);
/* What a process calls that cannot call lockstep_comm_create, because its own part of the program failed: it takes part
 * in the creation and tells the others why, who get RANK_FAILED with this text. The engine stays the caller's.
 * Returns INVALID_ARGUMENT with that text. Collective. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_comm_refuse(const lockstep_engine* engine,
                                                                     const lockstep_comm_options* options,
                                                                     const char* why);
/* The milliseconds that a communicator with these options waits, -1: for ever. options may be NULL; malformed ones,
 * which lockstep_comm_create refuses, wait a minute. */
LOCKSTEP_API int64_t lockstep_comm_timeout(const lockstep_comm_options* options);
/* A communicator whose ranks are all seats of this process. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_comm_local(lockstep_context* context,
                                                                    const lockstep_comm_options* options,
                                                                    lockstep_comm** comm);
/* One rank of an imaginary communicator: plans for any number of ranks can be made and estimated; executing one is
 * UNSUPPORTED. They take no memory for data. Local. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_comm_dry(lockstep_context* context, int32_t ranks,
                                                                  int32_t rank, lockstep_comm** comm);
/* Transports between threads of this process: fills engines with one for each of
 * `processes` threads, and each thread makes a communicator with its own. Errors:
 * INVALID_ARGUMENT (engines is NULL, processes not 1 to 1,024), OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_engine_local(int32_t processes, lockstep_engine* engines);

/* Destroys a communicator; NULL is allowed. Destroy its plans first. Processes that still call with theirs are told at
 * once that this one is gone: RANK_LOST. Over MPI it is collective, as MPI_Comm_free is, and waits at most the timeout
 * for the others. It is local when the communicator was closed. */
LOCKSTEP_API void lockstep_comm_destroy(lockstep_comm* comm);
/* Closes a communicator without the others, as before an exception leaves the part of the program that they share:
 * their calls fail at once with RANK_LOST and this text. It can then only be destroyed. NULL, and a communicator that
 * is closed already, are allowed. Local. */
LOCKSTEP_API void lockstep_comm_leave(lockstep_comm* comm, const char* why);

typedef struct lockstep_comm_info {
  size_t size; /* sizeof(lockstep_comm_info) */
  int32_t ranks;
  int32_t rank;  /* of this process's first seat */
  int32_t seats; /* of this process */
  int32_t processes;
  const char* engine; /* the transport's name */
  int32_t closed;
  const char* reason; /* why it was closed, "" while it is not */
  const char* data;   /* the data planes in use, "engine" or "direct, staged" */
  const char* why;    /* why not the others: "direct: rank 0 is on cuda:0 and rank 1 is on cuda:1" */
} lockstep_comm_info;
/* Describes a communicator. Data planes of pairs of ranks:
 * - direct: ranks of this process on one GPU, or boxes of at most 16 MiB between GPUs whose kernels can write to each
 *   other's memory: one call, from block to block. Named, it takes boxes of any size; a block in memory that its owner
 *   keeps from other GPUs goes by engine.
 * - engine: ranks of this process on GPUs of one backend: the sender packs bands of at most message_bytes (0: 64 MiB)
 *   on its GPU, and copy engines put their rows in place. Takes three bands of memory on each GPU. A GPU that cannot
 *   access the other copies through host memory; why says so.
 * - nccl: ranks of different processes, each on a GPU of its own: packed pieces of at most message_bytes / (GPUs - 1)
 *   (0: 256 MiB / (GPUs - 1)), sent by NCCL 2.14 or later while the next are packed. Takes four of them on each GPU,
 *   and a second or so when the communicator is made. LOCKSTEP_NCCL, the absolute path of the library's file, names it;
 *   without that it is the one that the program has loaded, or the system's; if there is none, the pair is staged. If
 *   NCCL_NVLS_ENABLE is not set, it is set to 0: sends do not use multicast. The pairs of one process use the two
 *   above.
 * - staged: through host memory, by messages or within the process: all other pairs.
 * Partial results of reductions go through host memory, and so do their results, unless every rank gets at least 64 KiB
 * of them from each rank: those stay on the GPUs.
 * The texts live as long as the communicator. Errors: INVALID_ARGUMENT. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_comm_get(const lockstep_comm* comm, lockstep_comm_info* info);

/* Finishes the asynchronous executions of this process, waits for those of all ranks
 * and returns the first failure of any rank that it has not returned before. Failures
 * of blocking executions count too. The rank that failed gets its own status, the
 * others RANK_FAILED. Collective. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_synchronize(lockstep_comm* comm);

/* ---- how a global array is divided -------------------------------------- */

/* Axis k of the array is cut into parts[k] pieces. The resulting blocks are numbered
 * row-major and belong to rank 0, 1, ... or to those that order gives. Ranks beyond
 * the last block hold nothing. The same on every rank. */
typedef struct lockstep_grid {
  size_t size; /* sizeof(lockstep_grid) */
  size_t element_bytes;
  int32_t rank; /* axes, 1 to 8 */
  int64_t shape[LOCKSTEP_MAX_RANK];
  int32_t parts[LOCKSTEP_MAX_RANK];       /* product at most the number of ranks */
  const int64_t* cuts[LOCKSTEP_MAX_RANK]; /* parts[k] + 1 ascending numbers from 0 to shape[k]; two equal numbers
                                           * make an empty piece; NULL: even, the longer pieces first */
  const int32_t* order;                   /* the rank of each block; NULL: 0, 1, ... */
} lockstep_grid;

/* The array cut along its outermost axis only. A rank outside 1..8, or NULL for shape,
 * gives a grid that every call refuses. */
LOCKSTEP_API lockstep_grid lockstep_grid_slabs(size_t element_bytes, int32_t rank, const int64_t* shape, int32_t parts);

enum {
  LOCKSTEP_REST_FIRST = 0u, /* the first pieces are the longer ones */
  LOCKSTEP_REST_LAST = 1u   /* the last pieces are the longer ones */
};
/* Even cuts on every axis, at multiples of align. With 2,048 on the axis of a long sum
 * the leaves of the fixed order stay whole, so that no element has to be sent.
 * cuts_storage has room for the sum of parts[k] + 1 numbers and must outlive the grid.
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
  void*
      stream; /* of a seat on a GPU: the caller's, on which the block is ready and the seat's calls are enqueued; that
               * of dst goes before that of src. NULL: options.stream, and if that is NULL one of the communicator's */
} lockstep_part;

/* A packed block of these lengths. A rank outside 1..8, or NULL for length, gives strides
 * of 0. */
LOCKSTEP_API lockstep_part lockstep_part_packed(void* data, int32_t rank, const int64_t* length);
/* One element: dst of a reduction that keeps no axis. */
LOCKSTEP_API lockstep_part lockstep_part_scalar(void* data);
/* A block of these lengths within packed memory that also holds its ghosts: width[k] elements on both sides of axis k,
 * so that memory has the product of length[k] + 2 * width[k] elements. data is the block's own first element, as
 * lockstep_ranks_halo wants it. A rank outside 1..8, a negative length or width, or NULL gives a part without data,
 * which every call refuses. */
LOCKSTEP_API lockstep_part lockstep_part_with_ghosts(void* memory, size_t element_bytes, int32_t rank,
                                                     const int64_t* length, const int64_t* width);

/* ---- plans --------------------------------------------------------------- */

/* Making a plan is collective: arguments are checked and compared between the ranks,
 * and memory is allocated, so that it succeeds on all ranks or on none. options.backend
 * and variant must be NULL: a seat's backend was chosen with the communicator. Naming
 * a workspace here promises one at each execution, so the plan allocates none; each
 * rank may decide that for itself.
 * Every plan may fail with INVALID_ARGUMENT, MISMATCH, RANK_FAILED, RANK_LOST or
 * OUT_OF_MEMORY. */

/* What a process calls in place of one of the calls below if it cannot make it, because its own part of the program
 * failed: the others get RANK_FAILED with this text. Returns INVALID_ARGUMENT with that text. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_refuse(lockstep_comm* comm, const char* why);

/* Computes   dst[i_perm[0], i_perm[1], ...] = src[i_0, i_1, ...] as lockstep_permute does, from the blocks of one grid
 *            to those of another: dst->shape[k] is src->shape[perm[k]]. perm {1, 0} transposes. The identity
 *            0, 1, ... redistributes: slabs to pencils, other cuts, everything to one rank.
 * Strides    those of the parts: blocks may lie within arrays with ghosts (lockstep_part_with_ghosts), whose other
 *            elements are neither read nor written.
 * Aliasing   a seat's dst may begin where its src does: in place. Its memory must then hold both blocks. If dst is
 *            divided as src is, perm is its own inverse and the strides are the same, as in a transpose of squares,
 *            pieces are swapped, which takes memory for two of them (at most 1 MiB each, 16 MiB on a GPU). In other
 *            cases, and between GPUs of one process, each seat copies its block first, to memory that the plan keeps
 *            from its first such execution on. What is in the block after a failure is not defined. Any other overlap
 *            of a seat's src and dst, each from its first to its last element, is INVALID_ARGUMENT; blocks of
 *            different seats must not overlap.
 * Exactness  bit copies.
 * Moves      every element once; twice where 18 processes or more have less than 64 KiB for each other: by groups. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_permute(lockstep_comm* comm, const lockstep_grid* src,
                                                                       const int32_t* perm, const lockstep_grid* dst,
                                                                       const lockstep_options* options,
                                                                       lockstep_ranks_plan** plan);

/* Computes   the reduction over the axes in `axes` (bit k: axis k of src), for each
 *            index of the others; the sequence of a result is the elements in
 *            row-major order over the reduced axes.
 * Results    a row-major array over the kept axes; one element of rank 1 if no axis
 *            is kept. dst NULL: every rank gets the whole array, packed by the strides
 *            of its part. Otherwise dst has the shape of the kept axes, and every
 *            rank gets its block.
 * Types      every reduction, dtype and result of lockstep_reduce and lockstep_square_sum.
 * Exactness  the bits of those calls on each whole sequence.
 * Moves      partial results. Sums, products, squares and norms of floats, whose order shows
 *            in the bits, also move the elements of leaves (2,048 elements of a sequence)
 *            that a cut divides. If a rank's part of their sequence is not contiguous within
 *            the sequence, or if ranks share leaves of many sequences (vectors that are added
 *            element by element), the array is redistributed first, over all ranks and at
 *            leaves: none gets more than about its share. To avoid that for an array cut on several
 *            axes, reduce one axis at a time, innermost first, or call
 *            lockstep_ranks_reduce_blocks; the bits then are others.
 * Status     OVERFLOW and EMPTY as lockstep_reduce, the same on every rank. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_reduce(lockstep_comm* comm, const lockstep_grid* src,
                                                                      lockstep_reduction reduction,
                                                                      lockstep_dtype dtype, lockstep_dtype result,
                                                                      uint32_t axes, const lockstep_grid* dst,
                                                                      const lockstep_options* options,
                                                                      lockstep_ranks_plan** plan);

/* Computes   SUM, NAN_SUM, PROD, SUM_OF_SQUARES or NORM2 of all elements in the order of the grid: each block in the
 *            fixed order, as lockstep_reduce does it with result F64 over the block's elements in row-major order; then
 *            the blocks' results, in the grid's order, as the leaves of the fixed tree. An empty block is +0.0, 1 in a
 *            product.
 * Results    one element, on every rank.
 * Types      F16, BF16, F32 and F64; any result of lockstep_reduce. Other types and reductions, whose order shows in no
 *            bit, are UNSUPPORTED: call lockstep_ranks_reduce.
 * Exactness  the same bits for the same cuts, on any machine, whichever ranks have the blocks. Other cuts give other
 *            bits, and a grid of one block those of lockstep_reduce. NORM2 of F64 is scaled as by lockstep_square_sum,
 *            by the whole array's exponent.
 * Moves      8 bytes per block, in about log2(ranks) messages: what a norm in a solver wants. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_reduce_blocks(
    lockstep_comm* comm, const lockstep_grid* src, lockstep_reduction reduction, lockstep_dtype dtype,
    lockstep_dtype result, const lockstep_options* options, lockstep_ranks_plan** plan);

/* A sum of one array or of two, for lockstep_ranks_reduce_several. */
typedef struct lockstep_ranks_term {
  lockstep_op op; /* LOCKSTEP_REDUCE, LOCKSTEP_SQUARE_SUM or LOCKSTEP_SUMS */
  int32_t of;     /* of REDUCE: LOCKSTEP_SUM or LOCKSTEP_NAN_SUM; of SQUARE_SUM: LOCKSTEP_SUM_OF_SQUARES; of SUMS:
                   * LOCKSTEP_SUMS_DOT, _SQUARED_DIFFERENCES, _ABSOLUTE_DIFFERENCES or _ABSOLUTE */
} lockstep_ranks_term;
/* Computes   count sums of all elements in one reduction, each in the order of the grid
 *            (lockstep_ranks_reduce_blocks): the dot products and norms of a solver's step cost
 *            the messages of one.
 * Shapes     all arrays are divided as src is. An execution's src has the parts of each
 *            term's array for each seat of this process, term by term; of a term of two
 *            arrays the first's, and behind them the second's.
 * Results    an array of count elements, on every rank, by the stride of its part. terms are
 *            copied.
 * Types      F16, BF16, F32 and F64, the same for all; results F64, or rounded once to F32,
 *            F16 or BF16.
 * Exactness  each has the bits of lockstep_ranks_reduce_blocks; sums of lockstep_sums are
 *            added in the same order.
 * Aliasing   arrays may be each other.
 * Moves      8 bytes per block and term, in about log2(ranks) messages.
 * Errors     INVALID_ARGUMENT: count is not 1 to 1,024, terms is NULL or has another term.
 *            UNSUPPORTED: other types. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_reduce_several(
    lockstep_comm* comm, const lockstep_grid* src, const lockstep_ranks_term* terms, int32_t count,
    lockstep_dtype dtype, lockstep_dtype result, const lockstep_options* options, lockstep_ranks_plan** plan);

/* Computes   a sum of lockstep_sums over the axes in `axes`, as lockstep_ranks_reduce does: DOT, SQUARED_DIFFERENCES
 *            and ABSOLUTE_DIFFERENCES of two arrays; ABSOLUTE, MEAN_VARIANCE with correction 0 and DIGEST of one.
 * Shapes     both arrays are divided as src is. An execution's src has the parts of the first array for each seat of
 *            this process, and behind them those of the second, which errors call other.
 * Results    as lockstep_ranks_reduce. MEAN_VARIANCE and DIGEST have two for each sequence:
 *            one more axis of 2 behind the kept axes, which dst must not cut; an array of 2
 *            if no axis is kept.
 * Types      those of lockstep_sums, and its results.
 * Exactness  the bits of lockstep_sums on each whole sequence.
 * Aliasing   the second array may be the first.
 * Moves      as lockstep_ranks_reduce, for two arrays twice the elements; DIGEST as sums of floats. A block on a GPU is
 *            read twice for MEAN_VARIANCE, and copied to the host for DIGEST.
 * Status     OVERFLOW as lockstep_sums, the same on every rank. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_sums(
    lockstep_comm* comm, const lockstep_grid* src, lockstep_sums_kind kind, lockstep_dtype dtype, lockstep_dtype result,
    uint32_t axes, const lockstep_grid* dst, const lockstep_options* options, lockstep_ranks_plan** plan);

/* The same for MEAN_VARIANCE with another correction: 1 for the variance of a sample. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_mean_variance(
    lockstep_comm* comm, const lockstep_grid* src, lockstep_dtype dtype, lockstep_dtype result, uint32_t axes,
    int64_t correction, const lockstep_grid* dst, const lockstep_options* options, lockstep_ranks_plan** plan);

enum { LOCKSTEP_RANKS_WEIGHT = 1u, LOCKSTEP_RANKS_BIAS = 2u, LOCKSTEP_RANKS_RESIDUAL = 4u };
/* Computes   lockstep_normalize of the rows of the whole array, which lie along the last axis of src and may be cut
 *            among ranks: norms, softmax and its kin, with desc's kind, dtype, result, weight_dtype, and eps or scale.
 *            Its sizes, strides and pointers are ignored (lockstep_normalize_rows with 0 rows makes it); arrays says
 *            which arrays there are besides.
 * Shapes     an execution's src has, for each seat of this process, the parts of src. Behind them come, where there
 *            are such, the parts of residual, divided as src is; of weight and of bias, each of rank 1, for the columns
 *            of the seat's block; and for PICKED those of labels, int64_t, for the rows of the seat's block: columns of
 *            the whole array. dst has the parts of the results, divided as src is, and with residual those of sum.
 *            LOGSUMEXP and PICKED have one result for each row, which every rank gets that has a part of the row: the
 *            results of the block's rows, an array of all axes but the last (of rank 1 if there is none). All these
 *            ranks must have the same labels. Rows are contiguous: the last stride is 1.
 * Aliasing   as lockstep_normalize: dst may be src, and sum src or residual, block by block with the same strides.
 * Exactness  the bits of one lockstep_normalize of the whole array.
 * Moves      as the reductions of rows that it is made of, by lockstep_ranks_reduce: NORM2, SUM_OF_SQUARES or
 *            MEAN_VARIANCE; from SOFTMAX on the rows' extremes and sums. Two doubles a row come back. A block on a
 *            GPU is read and written there.
 * Empty      rows of length 0: nothing happens.
 * Errors     those of lockstep_normalize. INVALID_ARGUMENT: arrays has other bits, or a weight or bias for a kind from
 *            SOFTMAX on; a label outside its row. UNSUPPORTED: a kind *_BACKWARD. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_normalize(lockstep_comm* comm, const lockstep_grid* src,
                                                                         const lockstep_normalize_desc* desc,
                                                                         uint32_t arrays,
                                                                         const lockstep_options* options,
                                                                         lockstep_ranks_plan** plan);

/* Computes   lockstep_scan along one axis of src, which may be cut among ranks: for each element the sum or the extreme
 *            of those up to it; exclusive 1: of those before it.
 * Shapes     dst is divided as src is.
 * Types      every reduction, dtype and result of lockstep_scan.
 * Exactness  the bits of lockstep_scan on each whole sequence.
 * Aliasing   dst may be src, if dtype is result and the strides are the same, or does not overlap it.
 * Moves      what stands before each rank's stretch, at most about log2(length / 2048) doubles a sequence, in about
 *            log2(ranks) + 1 messages; and of sums of floats the elements of the leaf that a stretch begins in, at most
 *            2,048 a sequence. If ranks share the leaves of many sequences, the array is moved to other cuts and the
 *            results back. A block on a GPU is scanned there, but for that leaf.
 * Errors     INVALID_ARGUMENT: axis is not an axis of src; and those of lockstep_scan.
 * Status     OVERFLOW, the same on every rank: a sum of integers does not fit I64; the error names the first rank that
 *            found one. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_scan(lockstep_comm* comm, const lockstep_grid* src,
                                                                    lockstep_reduction reduction, lockstep_dtype dtype,
                                                                    lockstep_dtype result, int32_t axis,
                                                                    int32_t exclusive, const lockstep_options* options,
                                                                    lockstep_ranks_plan** plan);

/* Computes   the stencil of lockstep_stencil on the whole array: desc gives dtype, form, boundary, rank, radius,
 *            coefficients, sweeps and value. Its shape, strides and batch are ignored, because the grid has them. A
 *            grid with one more axis in front is a batch of arrays.
 * Shapes     dst is divided as src is. Under VALID its block is the part of src's block that is at least
 *            radius * sweeps from each end of the whole array, and may be empty. The innermost stride is 1.
 * Aliasing   src and dst must not overlap.
 * Exactness  the bits of one call on the whole array.
 * Moves      radius * sweeps layers of elements along each inner side of a block, from all ranks that hold them.
 *            Meanwhile each rank computes the elements that do not need them.
 * Status     the ranks that exchange with a failed rank get its failure at once, all others from
 *            lockstep_ranks_synchronize. This holds for every plan. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_stencil(lockstep_comm* comm, const lockstep_grid* grid,
                                                                       const lockstep_stencil_desc* desc,
                                                                       const lockstep_options* options,
                                                                       lockstep_ranks_plan** plan);

/* Fills     the ghost elements around each block: width[k] on both sides of axis k, with corners. The caller's memory
 *           must have room for them around dst[seat].data; src of the execution is ignored. Ghosts beyond the whole
 *           array get what the boundary says: folded elements, or value as F32 or F64; VALID leaves them unchanged.
 * Status    as for lockstep_ranks_stencil. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_halo(lockstep_comm* comm, const lockstep_grid* grid,
                                                                    const int64_t* width, lockstep_boundary boundary,
                                                                    double value, const lockstep_options* options,
                                                                    lockstep_ranks_plan** plan);

/* The same for several arrays that are divided alike, in the messages of one: dst of the execution has the parts of the
 * first field for each seat of this process, and behind them those of the next. fields: 1 to 1,024. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_halo_fields(
    lockstep_comm* comm, const lockstep_grid* grid, const int64_t* width, lockstep_boundary boundary, double value,
    int32_t fields, const lockstep_options* options, lockstep_ranks_plan** plan);

/* Runs a plan: collective. src and dst have one element for each seat of this process, and for
 * each array of a plan of several. options may be NULL; only ASYNC, stream, workspace and
 * workspace_bytes are used, and ranks may give different ones.
 * Memory     host, pinned, managed or device memory. A block of a seat on a GPU belongs in that
 *            GPU's memory; other memory is copied, slowly, and refused (INVALID_ARGUMENT) if
 *            options.data named "direct" or "engine".
 * Stream     of all seats on a GPU whose parts name none; seats on the CPU ignore it. A stream
 *            belongs to one GPU, so name those of several in their parts. They must live until
 *            the communicator is destroyed or released with lockstep_release_stream after
 *            lockstep_ranks_synchronize.
 * Workspace  host memory for messages and partial results, aligned to 256 bytes, of at least
 *            lockstep_ranks_workspace bytes, not used for anything else until the execution is
 *            done (after RANK_LOST: until the communicator is destroyed). If the plan has none
 *            and none is given, each execution allocates its own; if that fails on a rank, the
 *            communicator is closed. Memory on GPUs, for borders of stencils and arrays that are
 *            redistributed, belongs to the plan.
 * Asynchrony blocks unless LOCKSTEP_ASYNC. With it, the call sends what it can and returns OK, or
 *            an error in the arguments. What seats on GPUs of this process do for each other is
 *            all enqueued then, and later work on a seat's stream sees the result. There is no
 *            background thread: lockstep_ranks_synchronize, the next call with this communicator,
 *            or destroying the plan does the rest, in the order of the calls. Keep src, dst and
 *            the workspace unchanged until then; the lockstep_part structs are not needed any
 *            more. lockstep_ranks_synchronize returns what failed, OVERFLOW and EMPTY too. The
 *            timeout runs only while a rank waits, so all ranks must reach the waiting call
 *            within timeout_ms of each other. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_execute(lockstep_ranks_plan* plan,
                                                                       const lockstep_part* src,
                                                                       const lockstep_part* dst,
                                                                       const lockstep_options* options);
/* For a program that computes while asynchronous executions go on: moves the messages of all executions of the
 * communicator as far as they have come, without waiting, and says whether those of this plan are finished on this
 * process. Then it returns the first failure of theirs that it has not returned before. Computing starts in here too,
 * as soon as what it needs has come. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_test(lockstep_ranks_plan* plan, int32_t* done);
/* Waits for the executions of this plan on this process, and those before them, and returns the first failure as
 * lockstep_ranks_test does. Not collective: other ranks need not have finished. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_wait(lockstep_ranks_plan* plan);
/* Bytes of workspace that an execution needs on this process. Errors: INVALID_ARGUMENT. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_workspace(const lockstep_ranks_plan* plan,
                                                                         size_t* bytes);

/* For programs that keep plans: in place of making the same plan again, compares it between the
 * ranks. Collective. Returns MISMATCH if another rank makes a plan or names another one, and
 * RANK_FAILED if one calls lockstep_ranks_refuse; the communicator stays open. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_agree(lockstep_ranks_plan* plan);

/* What one execution costs this process, computed without running it. */
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
  double ms; /* time of the messages: for each step, messages * latency + the larger of bytes out and in / speed;
              * 0 without a link. Computation, which hides part of it, is not included */
} lockstep_ranks_cost;
/* link may be NULL. NORM2 of F64 needs a second pass for very large or small values, which is not counted. Local.
 * Errors: INVALID_ARGUMENT. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_ranks_estimate(const lockstep_ranks_plan* plan,
                                                                        const lockstep_ranks_link* link,
                                                                        lockstep_ranks_cost* cost);

/* Destroys a plan; NULL is allowed. Local. Finishes the plan's asynchronous executions first. */
LOCKSTEP_API void lockstep_ranks_plan_destroy(lockstep_ranks_plan* plan);

#ifdef __cplusplus
}
#endif
#endif
