/* backend.h - the interface between the library and a backend: one struct of functions and one table of variants per
 * op. The CPU backend is built in; any other is a module lockstep-<name>.so that exports lockstep_backend_entry.
 * The library validates and completes every call before a backend sees it: all defaults are filled in, products of
 * sizes fit int64_t, nothing is empty (count, batch and every axis >= 1; only sequences of a reduction may have length
 * 0), and the queue's device can reach src, dst and offsets. A backend is called under the default
 * floating-point environment (round to nearest, denormals kept); threads that it starts must set their own. It may
 * fork in any function, or ask the library about backends: no lock of the library is held while it runs.
 * Texts of a module (names, ideas, descriptions) are UTF-8 without control characters, or it is refused. A file is
 * refused before it is loaded where other users may write to it, or where its ELF header, segments or dynamic section
 * reach beyond it. More cannot be known: bytes that were damaged elsewhere are loaded, and may end the process. */
#ifndef LOCKSTEP_BACKEND_H
#define LOCKSTEP_BACKEND_H

#include "lockstep/lockstep.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOCKSTEP_BACKEND_ABI 2u
/* Which dtypes a backend knows; see lockstep_backend.reads.
 *   1  the dtypes up to I64; F32, F64, I32 and I64 for lockstep_reduce; results of
 *      F32, F64, I32 and I64
 *   2  every dtype of LOCKSTEP_DTYPES, for each reduction up to NORM2 and its results
 *   3  the reductions from COUNT_NONZERO on
 *   4  the kinds of normalize from SOFTMAX to PICKED and their offsets, DIGEST of sums,
 *      times of map
 *   5  the kinds *_BACKWARD of normalize
 *   6  given of normalize
 *   7  before of scan
 *   8  inner of normalize; 9: length of reduce beside offsets, 0 or what no offset may exceed */
#define LOCKSTEP_BACKEND_READS 9u

/* Functions of the library for a backend. Outlives the backend. */
typedef struct lockstep_host {
  uint32_t abi; /* LOCKSTEP_BACKEND_ABI of the library */
  uint32_t size;
  void (*set_error)(const char* text); /* this thread's lockstep_last_error; copied */
} lockstep_host;

/* Where calls run: a device, a stream, cached scratch. Defined by each backend;
 * used by one thread at a time. */
typedef struct lockstep_queue lockstep_queue;

typedef struct lockstep_queue_options {
  uint32_t size;
  int32_t device;
  int32_t threads;                     /* CPU: 0 for the default */
  const char* cpu_isa;                 /* CPU: NULL for the best */
  void* stream;                        /* the caller's native stream; NULL: the queue makes its own */
  const lockstep_allocator* allocator; /* for host memory; never NULL, outlives the queue */
} lockstep_queue_options;

typedef struct lockstep_call {
  lockstep_op op;
  const void* src;
  void* dst;
  void* workspace; /* variant->workspace() bytes, aligned to 256; not initialised */
  size_t workspace_bytes;
  union { /* by op; reduce also for LOCKSTEP_SQUARE_SUM */
    lockstep_transpose_desc transpose;
    lockstep_permute_desc permute;
    lockstep_reduce_desc reduce;
    lockstep_stencil_desc stencil; /* form GENERAL; coefficients expanded, in double */
    lockstep_shuffle_desc shuffle;
    lockstep_normalize_desc normalize;     /* its arrays are within the queue's reach */
    lockstep_scan_desc scan;               /* begins as a lockstep_reduce_desc does */
    lockstep_sums_desc sums;               /* so does this; other is within the queue's reach */
    lockstep_reduce_axes_desc reduce_axes; /* axes ascend; a reduced axis may have length 0 */
    lockstep_convert_desc convert;
    lockstep_map_desc map; /* begins as a lockstep_convert_desc does */
  };
} lockstep_call;

/* One row of a table: one variant. The tables are the only list of variants. Rows
 * are ordered best first; auto takes the first row without a LOCKSTEP_* flag that
 * neither refuses nor yields. */
typedef struct lockstep_variant {
  const char* name;
  const char* idea;
  uint32_t flags; /* LOCKSTEP_OWN_ORDER | LOCKSTEP_LIBRARY | LOCKSTEP_LESSON | LOCKSTEP_REFERENCE */
  /* Why this row cannot run the call ("needs rows * cols < 2^31"); NULL: it can. A
   * NULL member means that it can run every call. A row that is merely slow for a
   * call must not refuse it: use yields, the order of the table or LOCKSTEP_LESSON. */
  const char* (*refuses)(const lockstep_queue* queue, const lockstep_call* call);
  /* Not 0: another row is faster for this call. Only auto asks. NULL: never yields. */
  int (*yields)(const lockstep_queue* queue, const lockstep_call* call);
  size_t (*workspace)(const lockstep_queue* queue, const lockstep_call* call); /* NULL: none */
  /* Runs or enqueues the call. Returns failures found at once, with set_error's
   * text; later ones come from finish. */
  lockstep_status (*launch)(lockstep_queue* queue, const lockstep_call* call);
} lockstep_variant;

/* Part of a call on host memory, for backends that overlap upload, compute and
 * download. Its src is src_bytes contiguous bytes from src_offset; its result is
 * dst_rows rows of dst_width bytes, dst_pitch apart in the caller's memory from
 * dst_offset on, and packed on the device behind dst_skip bytes that are not
 * wanted. The call's strides are those of the device copies. */
typedef struct lockstep_slab {
  lockstep_call call; /* src, dst, workspace: the backend's own */
  size_t src_offset, src_bytes;
  size_t dst_offset, dst_width, dst_rows, dst_pitch;
  size_t dst_skip, dst_device_bytes;
} lockstep_slab;

typedef struct lockstep_table {
  const lockstep_variant* rows; /* NULL with count 0: the op is not supported */
  size_t count;
} lockstep_table;

/* Members are only added at the end, so size says which exist. measure, limit,
 * run_slabs, remark, pin and unpin may be NULL, the other functions may not. lockstep_call never
 * grows, because lockstep_slab contains it. */
typedef struct lockstep_backend {
  uint32_t abi; /* LOCKSTEP_BACKEND_ABI that it was built with */
  uint32_t size;
  const char* name;
  const char* description;

  /* Usable devices; a failure (set_error says why) makes the backend unusable. */
  lockstep_status (*devices)(int32_t* count);
  lockstep_status (*device_info)(int32_t device, lockstep_device_info* info);

  lockstep_status (*queue_create)(const lockstep_queue_options* options, lockstep_queue** queue);
  void (*queue_destroy)(lockstep_queue* queue); /* waits for its work */
  /* Waits for the queue's work and returns the first failure since the last
   * finish. */
  lockstep_status (*finish)(lockstep_queue* queue);
  /* Scratch of at least bytes, aligned to 256, kept by the queue and valid until
   * the next call that asks for more. */
  lockstep_status (*scratch)(lockstep_queue* queue, size_t bytes, void** pointer);

  lockstep_status (*allocate)(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void** pointer);
  void (*release)(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void* pointer);
  /* In queue order; the host sees the result after finish. */
  lockstep_status (*copy)(lockstep_queue* queue, const void* src, void* dst, size_t bytes);
  /* locate: the kind of memory at an address and the device that owns it, -1 for host
   * memory. reachable: whether the queue's kernels can use the address directly at
   * full speed; if not, the library copies the data. */
  void (*locate)(const void* pointer, lockstep_memory* kind, int32_t* device);
  int (*reachable)(const lockstep_queue* queue, const void* pointer);

  /* Indexed by lockstep_op. An op at or beyond the count is not supported, so a module
   * still works with a later library that has more ops. */
  const lockstep_table* tables;
  size_t table_count;

  /* Times a row samples times, in milliseconds, as lockstep_plan_measure says; the
   * queue can reach all pointers. */
  lockstep_status (*measure)(lockstep_queue* queue, const lockstep_variant* variant, const lockstep_call* call,
                             uint32_t flags, int32_t samples, double* ms);
  /* Times the fastest way to move bytes, as lockstep_measure_limit says. */
  lockstep_status (*limit)(lockstep_queue* queue, lockstep_limit limit, size_t bytes, uint32_t flags, int32_t samples,
                           double* ms);
  /* Runs a call on host memory slab by slab and waits for it. NULL: the library
   * copies whole arrays. */
  lockstep_status (*run_slabs)(lockstep_queue* queue, const lockstep_variant* variant, const lockstep_slab* slabs,
                               size_t count, const void* src, void* dst);
  /* A note about the queue's last call for lockstep_last_run ("3 threads could not be
   * made"); NULL when there is none. Valid until this thread's next call. */
  const char* (*remark)(const lockstep_queue* queue);
  /* The LOCKSTEP_BACKEND_READS that its rows were written for; 0, or a shorter struct:
   * 1. The library passes a backend no call that needs more, so that a backend never
   * sees a dtype or a member that it does not know. */
  uint32_t reads;
  /* Page-locks host memory of the caller's for all devices, as lockstep_pin says, and lets it go. bytes is not 0
   * and the range does not wrap. NULL: UNSUPPORTED. */
  lockstep_status (*pin)(lockstep_queue* queue, void* pointer, size_t bytes);
  lockstep_status (*unpin)(lockstep_queue* queue, void* pointer);
} lockstep_backend;

/* The one symbol of a module. Returns NULL, with set_error's reason, when it
 * cannot serve this library at all (another ABI, an init that fails). */
typedef const lockstep_backend* (*lockstep_backend_entry_fn)(const lockstep_host* host);
#define LOCKSTEP_BACKEND_ENTRY "lockstep_backend_entry"

#ifdef __cplusplus
}
#endif
#endif
