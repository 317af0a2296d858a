/* lockstep.h - the C ABI (C11). Memory-bound array operations with the same
 * bits on every backend: transpose, permute, square_sum, reduce, stencil,
 * shuffle, normalize, scan.
 *
 * Conventions that hold for every call
 *   Sizes, strides and leading dimensions are int64_t, counted in elements;
 *   sizes in bytes are size_t and say so in their name.
 *   Arguments come in the order (src, dst). A pointer needs the alignment of
 *   one element, no more, and may point to host, pinned, managed or device
 *   memory in any mix.
 *   Every function that can fail returns a lockstep_status. On anything but
 *   LOCKSTEP_OK lockstep_last_error() holds, for this thread, the argument, its
 *   value and the fix. (What destroys, names or counts something returns none: a
 *   count that fails is 0, a text "".) Any of them may be OUT_OF_MEMORY, or
 *   INTERNAL, a defect.
 *   The library never prints, aborts, throws through C, or changes the
 *   caller's current CUDA device, floating-point state or locale.
 *   Calls block until dst is complete, unless LOCKSTEP_ASYNC is set.
 *   src is only read, and may be read more than once; dst's elements lie apart.
 *   src and dst overlap where the bytes from the first to the last element of one
 *   meet those of the other: dst in the gaps between src's rows does too.
 *   An empty call (a size of 0 that leaves nothing to write) touches nothing: its
 *   types, sizes and flags are judged, its pointers and strides are not. Nor is the
 *   stride of an axis that has one element.
 *   Every function may be called from any thread; contexts are safe to share,
 *   a plan is executed by one thread at a time.
 *   All that is needed is an exported symbol, for bindings that read no headers.
 *   A struct with a size grows at its end only; a function that returns one by value
 *   returns what it did for ever: the longer one comes from a new symbol, to which
 *   this header then points the old name.
 * Source: this repository; the order of every sum is in lib/order.hpp. */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include <stddef.h>
#include <stdint.h>

#define LOCKSTEP_VERSION_MAJOR 0
#define LOCKSTEP_VERSION_MINOR 1
#define LOCKSTEP_VERSION_PATCH 0
#define LOCKSTEP_VERSION "0.1.0"
/* The number in the SONAME; it changes when a binary built before would break. */
#define LOCKSTEP_ABI_VERSION 0
/* The order that every sum and stencil of this release follows (lib/order.hpp). */
#define LOCKSTEP_ORDER_1 1

#if defined(__GNUC__)
#define LOCKSTEP_API __attribute__((visibility("default")))
#else
#define LOCKSTEP_API
#endif

/* LOCKSTEP_INT: any int may stand in an enum's place, and be refused, in C++ as in C. */
#ifdef __cplusplus
#define LOCKSTEP_NODISCARD [[nodiscard]]
#define LOCKSTEP_INT : int
extern "C" {
#else
#define LOCKSTEP_NODISCARD
#define LOCKSTEP_INT
#endif

/* ---- status ------------------------------------------------------------ */

typedef enum lockstep_status LOCKSTEP_INT {
  LOCKSTEP_OK = 0,
  LOCKSTEP_INVALID_ARGUMENT = 1, /* a value no backend could accept */
  LOCKSTEP_UNSUPPORTED = 2,      /* valid, but the named backend or variant has no kernel for it */
  LOCKSTEP_NO_BACKEND = 3,       /* the named backend is unknown or cannot run here */
  LOCKSTEP_NO_VARIANT = 4,       /* the named variant is unknown */
  LOCKSTEP_OUT_OF_MEMORY = 5,    /* host or device allocation failed; nothing was lost */
  LOCKSTEP_OVERFLOW = 6,         /* an exact integer does not fit the result; dst holds the saturated value */
  LOCKSTEP_EMPTY = 7,            /* min, max, argmin, argmax of an empty sequence */
  LOCKSTEP_BACKEND_FAILED = 8,   /* the backend reported a failure; see lockstep_last_error */
  LOCKSTEP_BACKEND_LOST = 9,     /* the backend failed for good (a sticky device error), and its device memory
                                  * with it, which must not be passed again; others still work */
  LOCKSTEP_INTERNAL = 10,        /* a defect in lockstep; please report it */
  /* Of calls over many ranks (ranks.h) only. */
  LOCKSTEP_RANK_FAILED = 11, /* another rank's part of the call failed; the text names that rank and its reason */
  LOCKSTEP_RANK_LOST = 12,   /* a rank gave no sign in time, or its transport failed: the communicator is closed */
  LOCKSTEP_MISMATCH = 13     /* ranks described different things, or made different calls */
} lockstep_status;

/* The name of a status, "LOCKSTEP_OVERFLOW" for example. Never NULL. */
LOCKSTEP_API const char* lockstep_status_name(lockstep_status status);

/* The text of this thread's last failed call, "" if there was none. Valid
 * until this thread's next lockstep call. */
LOCKSTEP_API const char* lockstep_last_error(void);
/* Sets that text: for libraries above this one, whose calls fail in the same way.
 * It is cut at 1,023 bytes; NULL stands for "". */
LOCKSTEP_API void lockstep_set_error(const char* text);

/* "0.1.0": the version of the library that is loaded. */
LOCKSTEP_API const char* lockstep_version(void);

/* ---- types ------------------------------------------------------------- */

typedef enum lockstep_dtype LOCKSTEP_INT {
  LOCKSTEP_F16 = 1,  /* IEEE binary16 */
  LOCKSTEP_BF16 = 2, /* bfloat16 */
  LOCKSTEP_F32 = 3,
  LOCKSTEP_F64 = 4,
  LOCKSTEP_I32 = 5,
  LOCKSTEP_I64 = 6,
  LOCKSTEP_I8 = 7,
  LOCKSTEP_I16 = 8,
  LOCKSTEP_U8 = 9,
  LOCKSTEP_U16 = 10,
  LOCKSTEP_U32 = 11,
  LOCKSTEP_U64 = 12,
  LOCKSTEP_BOOL = 13 /* a byte: 0 is false, any other true; results are 0 and 1 */
} lockstep_dtype;

/* What there is to know of each of them, one row a type, in the order of their
 * numbers: ROW(name, bytes, kind, dtype of a sum, NumPy's type, C++ type). kind is
 * 'f' for floats, 'i' and 'u' for signed and unsigned integers, 'b' for truths. */
#define LOCKSTEP_DTYPES(ROW)                  \
  ROW(F16, 2, 'f', F64, "<f2", f16)           \
  ROW(BF16, 2, 'f', F64, "|V2", bf16)         \
  ROW(F32, 4, 'f', F64, "<f4", float)         \
  ROW(F64, 8, 'f', F64, "<f8", double)        \
  ROW(I32, 4, 'i', I64, "<i4", std::int32_t)  \
  ROW(I64, 8, 'i', I64, "<i8", std::int64_t)  \
  ROW(I8, 1, 'i', I64, "|i1", std::int8_t)    \
  ROW(I16, 2, 'i', I64, "<i2", std::int16_t)  \
  ROW(U8, 1, 'u', I64, "|u1", std::uint8_t)   \
  ROW(U16, 2, 'u', I64, "<u2", std::uint16_t) \
  ROW(U32, 4, 'u', I64, "<u4", std::uint32_t) \
  ROW(U64, 8, 'u', U64, "<u8", std::uint64_t) \
  ROW(BOOL, 1, 'b', I64, "|b1", bool)

/* Bytes of one element, 0 for a value that is no dtype. */
LOCKSTEP_API size_t lockstep_dtype_bytes(lockstep_dtype dtype);

/* The kind of that table, 0 for a value that is no dtype. */
LOCKSTEP_API char lockstep_dtype_kind(lockstep_dtype dtype);

typedef enum lockstep_op LOCKSTEP_INT {
  LOCKSTEP_TRANSPOSE = 0,
  LOCKSTEP_PERMUTE = 1,
  LOCKSTEP_SQUARE_SUM = 2,
  LOCKSTEP_REDUCE = 3,
  LOCKSTEP_STENCIL = 4,
  LOCKSTEP_SHUFFLE = 5,
  LOCKSTEP_NORMALIZE = 6,
  LOCKSTEP_SCAN = 7,
  LOCKSTEP_OP_COUNT = 8
} lockstep_op;

/* "transpose", "permute", ...; NULL for a value that is no op. */
LOCKSTEP_API const char* lockstep_op_name(lockstep_op op);

/* ---- contexts ---------------------------------------------------------- */

typedef struct lockstep_context lockstep_context;
typedef struct lockstep_plan lockstep_plan;

/* Where lockstep takes the host memory from that goes with the data: workspaces,
 * copies of what the CPU cannot reach, LOCKSTEP_HOST of lockstep_alloc, and the
 * queues that calls run on. Small objects (contexts, plans, texts) are operator
 * new's, page-locked and device memory the driver's. allocate returns NULL when
 * there is none; alignment is a power of two. */
typedef struct lockstep_allocator {
  void* user;
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  void (*release)(void* user, void* pointer, size_t bytes, size_t alignment);
} lockstep_allocator;

enum {
  LOCKSTEP_ASYNC = 1u,       /* return once the work is queued; see lockstep_synchronize */
  LOCKSTEP_NO_FALLBACK = 2u, /* auto must not move a call to another backend after a failure (it never does
                              * where that failure has spoilt src: in place, once begun) */
  LOCKSTEP_DEVICE_DATA = 4u, /* plans: src and dst will be device memory (guides auto) */
  /* Plans, when they are made (see there): */
  LOCKSTEP_TUNE = 16u,  /* take the row that was measured to be the fastest: measured now where none is known */
  LOCKSTEP_RETUNE = 32u /* measure now, whatever is known */
};

typedef struct lockstep_context_options {
  size_t size;                         /* sizeof(lockstep_context_options) */
  const char* backend;                 /* NULL: LOCKSTEP_BACKEND, else "auto"; "cpu", "cuda", "cuda:1" */
  const char* variants;                /* NULL: LOCKSTEP_VARIANT; "transpose=tiled,reduce=ref": read from the
                                        * left, the last entry of an op holds, "auto" lifts one, an empty
                                        * entry means nothing; "": none */
  const char* cpu_isa;                 /* NULL: LOCKSTEP_CPU_ISA, else the best, as for ""; "baseline", "avx2" or
                                        * "avx512", tuned for the chip at hand; all give the same bits */
  int32_t threads;                     /* 0: LOCKSTEP_NUM_THREADS, else what the affinity mask,
                                        * the cgroup quota and OMP_NUM_THREADS allow */
  uint32_t flags;                      /* LOCKSTEP_NO_FALLBACK */
  const lockstep_allocator* allocator; /* NULL: aligned_alloc; copied */
} lockstep_context_options;

LOCKSTEP_API lockstep_context_options lockstep_context_defaults(void);

/* Creates a context. options may be NULL. Cheap: no thread is started and no
 * device touched before the first call that needs one.
 * Errors: INVALID_ARGUMENT (context is NULL, a malformed option, an unknown flag
 * or ISA, more threads than 4096), NO_BACKEND / NO_VARIANT (a name that is
 * unknown or cannot run here), OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_context_create(const lockstep_context_options* options,
                                                                        lockstep_context** context);

/* Destroys a context; NULL is allowed. Waits for its queued work, but for that on
 * callers' streams, which may be gone: wait for those, or give them back
 * (lockstep_release_stream), before. Memory from lockstep_alloc must be released
 * before. */
LOCKSTEP_API void lockstep_context_destroy(lockstep_context* context);

/* Binds a live context to another backend ("auto", "cpu", "cuda", "cuda:1").
 * Calls that already run finish on the old one; asynchronous ones are not waited
 * for: lockstep_synchronize before the new one uses their results. Errors:
 * INVALID_ARGUMENT (NULL, a malformed name), NO_BACKEND (unknown, or cannot run
 * here), OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_context_set_backend(lockstep_context* context,
                                                                             const char* backend);

/* Forces a variant for an op on this context; NULL or "auto" lifts it.
 * A call whose backend lacks it is UNSUPPORTED. Errors: INVALID_ARGUMENT (context
 * is NULL, no such op), NO_VARIANT when no known backend has it, OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_context_set_variant(lockstep_context* context, lockstep_op op,
                                                                             const char* variant);

/* Waits for this context's asynchronous calls and returns the first failure
 * among them (overflow, empty sequence, a device error) that has not been
 * returned before: a backend that has computed already, as the CPU, reports at
 * the call itself. Calls without a stream run in order on each device; a plan
 * has a queue of its own. Work on LOCKSTEP_STREAM_PER_THREAD is waited for by the
 * thread that queued it. Errors besides: INVALID_ARGUMENT (context is NULL). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_synchronize(lockstep_context* context);

/* CUDA's two default streams, which have no handle of their own: NULL as a stream
 * means one of lockstep's. The legacy stream (handle 0 of the runtime, PyTorch's
 * default) orders with every blocking stream; the per-thread one belongs to the
 * calling thread, which alone waits for it. */
#define LOCKSTEP_STREAM_LEGACY ((void*)1)
#define LOCKSTEP_STREAM_PER_THREAD ((void*)2)

/* Options of one call; NULL stands for the defaults. */
typedef struct lockstep_options {
  size_t size;            /* sizeof(lockstep_options) */
  const char* backend;    /* NULL: the context's */
  const char* variant;    /* NULL: the context's, else the best that takes the call */
  uint32_t flags;         /* LOCKSTEP_ASYNC | LOCKSTEP_NO_FALLBACK | LOCKSTEP_DEVICE_DATA; plans LOCKSTEP_TUNE too */
  void* stream;           /* the backend's own stream type (a cudaStream_t), or LOCKSTEP_STREAM_LEGACY or
                           * _PER_THREAD; NULL: one of lockstep's. It must live until an asynchronous call on
                           * it has been waited for (lockstep_synchronize) */
  void* workspace;        /* memory the backend can reach, aligned to 256 bytes, apart from all arrays of the call
                           * (else INVALID_ARGUMENT, under auto too: name the backend that it is for);
                           * how far offsets in device memory reach into src, only the caller knows. NULL:
                           * lockstep's own. What auto falls back to after a failure takes its own */
  size_t workspace_bytes; /* size of workspace; see lockstep_plan_workspace */
} lockstep_options;

LOCKSTEP_API lockstep_options lockstep_options_defaults(void);

/* Gives back what a context keeps for a caller's stream (a queue with device memory
 * of its own, made by the first call on it), before the stream is destroyed or when
 * it is no longer used. Waits for lockstep's work on it; a failure of that work is
 * told by lockstep_synchronize. A call on it that comes later, or waits for its
 * turn, makes a new one. A stream that was never used is fine. What is not given
 * back goes with the context, which never waits for a caller's stream.
 * Errors: INVALID_ARGUMENT (context, backend or stream NULL, "auto"), NO_BACKEND,
 * OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_release_stream(lockstep_context* context, const char* backend,
                                                                        void* stream);

/* What this thread's last executed call did. The texts are valid until this
 * thread's next lockstep call; why is cut at 2,047 bytes. Errors:
 * INVALID_ARGUMENT (info is NULL or of unknown size). */
typedef struct lockstep_run_info {
  size_t size;            /* sizeof(lockstep_run_info) */
  const char* backend;    /* "cpu" */
  const char* variant;    /* "tiled"; "" when the input was empty and nothing ran */
  const char* why;        /* why not the others: "cuda: no NVIDIA driver (...); ..." */
  int32_t device;         /* device index within the backend */
  int32_t order;          /* LOCKSTEP_ORDER_1, or 0 for a variant with its own order */
  size_t workspace_bytes; /* workspace that the call used */
  size_t staged_bytes;    /* bytes copied because a pointer was out of the backend's reach */
} lockstep_run_info;
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_last_run(lockstep_run_info* info);

/* ---- what there is ----------------------------------------------------- */

typedef struct lockstep_backend_info {
  size_t size;             /* sizeof(lockstep_backend_info) */
  const char* name;        /* "cpu", "cuda" */
  const char* description; /* one line; "" while it cannot be loaded */
  const char* path;        /* file of the module, "" when built in */
  const char* reason;      /* why it is not usable, "" when it is */
  int32_t usable;
  int32_t devices;
} lockstep_backend_info;

/* Backends in the order auto considers them. Loads the modules. The texts stay
 * valid until the process ends. Errors: INVALID_ARGUMENT (index beyond the count,
 * info NULL or of unknown size). */
LOCKSTEP_API int32_t lockstep_backend_count(void);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_backend_get(int32_t index, lockstep_backend_info* info);
/* The folders searched for modules, ':' between them, with the reason behind a
 * folder that was refused. */
LOCKSTEP_API const char* lockstep_backend_path(void);

typedef struct lockstep_device_info {
  size_t size;      /* sizeof(lockstep_device_info) */
  char name[128];   /* "NVIDIA H200", "AMD EPYC ..." */
  char detail[256]; /* one line: driver, compute capability, ISA, caches */
  int64_t memory_bytes;
  int64_t last_level_cache_bytes;
  int32_t processors; /* multiprocessors; for the CPU, threads used */
  int32_t usable;
} lockstep_device_info;
/* A device of a usable backend ("cuda"; what follows a ':' is ignored). Errors:
 * INVALID_ARGUMENT (backend or info NULL, no such device), NO_BACKEND (unknown, or
 * cannot run here), BACKEND_FAILED, BACKEND_LOST. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_device_get(const char* backend, int32_t device,
                                                                    lockstep_device_info* info);

enum {
  LOCKSTEP_OWN_ORDER = 1u, /* its order is its lesson: own bits, never chosen by auto */
  LOCKSTEP_LIBRARY = 2u,   /* calls Thrust, CUB ...: for comparison, never chosen by auto */
  LOCKSTEP_LESSON = 4u,    /* keeps the bits, but only to teach: never chosen by auto */
  LOCKSTEP_REFERENCE = 8u  /* plain loops, the definition in code: never chosen by auto */
};
typedef struct lockstep_variant_info {
  size_t size;      /* sizeof(lockstep_variant_info) */
  const char* name; /* "tiled_padded" */
  const char* idea; /* what it does and what it teaches, one line */
  uint32_t flags;
} lockstep_variant_info;
/* Rows of a backend's table ("cuda" and "cuda:1" share one), best first; 0 when the backend or op has none.
 * Errors of lockstep_variant_get: INVALID_ARGUMENT (backend or info NULL, no such
 * op, index beyond the count), NO_BACKEND (unknown). */
LOCKSTEP_API int32_t lockstep_variant_count(const char* backend, lockstep_op op);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_variant_get(const char* backend, lockstep_op op, int32_t index,
                                                                     lockstep_variant_info* info);

/* Where auto's estimates for host data come from: measured times of typical calls
 * on the CPU and, trips over the link included, on a device. `lockstep calibrate`
 * measures them; without its file the library uses figures of another machine. */
typedef struct lockstep_model_info {
  size_t size;        /* sizeof(lockstep_model_info) */
  const char* source; /* "built-in", or the path of the file in force */
  const char* path;   /* the file looked for (LOCKSTEP_CALIBRATION, else lockstep/calibration in
                       * XDG_CACHE_HOME or ~/.cache), "" where that is switched off */
  const char* reason; /* why no file is in force: there is none, it was made on other hardware, it is
                       * not to be trusted ...; "" when one is */
} lockstep_model_info;
/* A context reads its file once, when auto first needs it or here. The texts live
 * as long as the context. Errors: INVALID_ARGUMENT (NULL), OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_model_get(lockstep_context* context,
                                                                   lockstep_model_info* info);

/* Rows chosen by measuring (LOCKSTEP_TUNE, `lockstep tune`) that are in force here. */
typedef struct lockstep_tuning_info {
  size_t size;         /* sizeof(lockstep_tuning_info) */
  const char* path;    /* the file looked for (LOCKSTEP_TUNING, else lockstep/tuning in XDG_CACHE_HOME or
                        * ~/.cache), "" where that is switched off (LOCKSTEP_TUNING is "off") */
  const char* reason;  /* why nothing of the file is in force, "" when it is */
  const char* choices; /* of this version of the library on this machine's devices, a line each: "cpu (2 threads,
                        * best isa) transpose b4 ...: tiled 12.1 us, blocked 14.6" */
  int32_t count;       /* lines of choices */
} lockstep_tuning_info;
/* The texts are valid until this thread's next call of this function. Errors:
 * INVALID_ARGUMENT (NULL), OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_tuning_get(lockstep_context* context,
                                                                    lockstep_tuning_info* info);

/* ---- memory ------------------------------------------------------------ */

typedef enum lockstep_memory LOCKSTEP_INT {
  LOCKSTEP_HOST = 0,    /* ordinary (pageable) host memory */
  LOCKSTEP_PINNED = 1,  /* page-locked host memory */
  LOCKSTEP_MANAGED = 2, /* migrates between host and device */
  LOCKSTEP_DEVICE = 3   /* device memory */
} lockstep_memory;

/* Memory of a named backend ("cuda", "cuda:1", "cpu") for callers without a
 * toolkit of their own. The CPU backend knows LOCKSTEP_HOST only.
 * 0 bytes are none: *pointer is NULL, whatever the kind. lockstep_free takes the
 * same kind and bytes; a NULL pointer is allowed.
 * Errors: INVALID_ARGUMENT (context, backend or the place for the pointer NULL,
 * "auto", no such kind), NO_BACKEND, UNSUPPORTED (a kind the backend lacks),
 * OUT_OF_MEMORY, BACKEND_FAILED, BACKEND_LOST. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_alloc(lockstep_context* context, const char* backend,
                                                               lockstep_memory kind, size_t bytes, void** pointer);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_free(lockstep_context* context, const char* backend,
                                                              lockstep_memory kind, size_t bytes, void* pointer);
/* Copies bytes between any two kinds of memory the backend knows; blocks. Errors:
 * INVALID_ARGUMENT (context, backend, src or dst NULL, "auto"), NO_BACKEND,
 * OUT_OF_MEMORY, BACKEND_FAILED, BACKEND_LOST. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_copy(lockstep_context* context, const char* backend,
                                                              const void* src, void* dst, size_t bytes);

/* ---- transpose --------------------------------------------------------- */

/* Computes   dst[b][j][i] = src[b][i][j]   for b < batch, i < rows, j < cols.
 * Shapes     src: rows x cols, row-major, src_ld >= cols elements from row to
 *            row; dst: cols x rows, dst_ld >= rows; matrices of a batch are
 *            *_batch_stride elements apart.
 * Types      any element of 1, 2, 4, 8 or 16 bytes; bits are copied.
 * Memory     host, pinned, managed or device, in any mix.
 * Aliasing   src == dst transposes in place: square with src_ld == dst_ld, or
 *            contiguous rectangular (src_ld == cols, dst_ld == rows); matrices of
 *            a batch then lie equally far apart in src and dst, and do not overlap
 *            (src_batch_stride == dst_batch_stride). Any other overlap is an error.
 * Exactness  bit copies: NaN payloads and -0.0 survive.
 * Asynchrony blocks unless LOCKSTEP_ASYNC.
 * Empty      rows, cols or batch 0: nothing is touched, pointers may be NULL.
 * Strides    src_batch_stride is 0 or more: matrices of src may overlap, or be one
 *            and the same; dst_batch_stride leaves dst's matrices apart.
 * Errors     INVALID_ARGUMENT (NULL, misaligned or overlapping pointers,
 *            negative sizes, ld too small, element_bytes not 1/2/4/8/16, a
 *            product of sizes past 2^63-1, an unknown flag), UNSUPPORTED (a forced variant),
 *            NO_BACKEND, NO_VARIANT, OUT_OF_MEMORY, BACKEND_FAILED, BACKEND_LOST.
 * Threads    safe. Source: backends/<name>/transpose.* */
typedef struct lockstep_transpose_desc {
  size_t size; /* sizeof(lockstep_transpose_desc) */
  size_t element_bytes;
  int64_t rows, cols;
  int64_t src_ld, dst_ld;
  int64_t batch, src_batch_stride, dst_batch_stride;
} lockstep_transpose_desc;

/* One packed rows x cols matrix; change the fields for anything else. */
LOCKSTEP_API lockstep_transpose_desc lockstep_transpose_packed(size_t element_bytes, int64_t rows, int64_t cols);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_transpose(lockstep_context* context,
                                                                   const lockstep_transpose_desc* desc, const void* src,
                                                                   void* dst, const lockstep_options* options);

/* ---- permute ----------------------------------------------------------- */

#define LOCKSTEP_MAX_RANK 8

/* Computes   dst[i_perm[0], i_perm[1], ...] = src[i_0, i_1, ...]: axis k of dst
 *            is axis perm[k] of src (NumPy's transpose with axes).
 * Shapes     shape[k] and src_strides[k] belong to axis k of src,
 *            dst_strides[k] to axis k of dst; strides in elements, >= 1 where
 *            the axis is longer than one; rank 1 to 8. Axes may lie in any order
 *            in memory (column-major too), on both sides.
 * Aliasing   src and dst must not overlap; dst's elements must not either:
 *            each dst stride, from the smallest up, is at least what the axes of
 *            smaller strides span. Elements of src may overlap.
 * Everything else as for lockstep_transpose. Errors besides: perm is no
 * permutation of 0..rank-1. */
typedef struct lockstep_permute_desc {
  size_t size; /* sizeof(lockstep_permute_desc) */
  size_t element_bytes;
  int32_t rank;
  int32_t perm[LOCKSTEP_MAX_RANK];
  int64_t shape[LOCKSTEP_MAX_RANK];
  int64_t src_strides[LOCKSTEP_MAX_RANK];
  int64_t dst_strides[LOCKSTEP_MAX_RANK];
} lockstep_permute_desc;

/* A packed array in, a packed array out. A rank outside 1..8, or
 * NULL for an array, gives a description that every call refuses. */
LOCKSTEP_API lockstep_permute_desc lockstep_permute_packed(size_t element_bytes, int32_t rank, const int64_t* shape,
                                                           const int32_t* perm);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_permute(lockstep_context* context,
                                                                 const lockstep_permute_desc* desc, const void* src,
                                                                 void* dst, const lockstep_options* options);

/* ---- square_sum and reduce --------------------------------------------- */

typedef enum lockstep_reduction LOCKSTEP_INT {
  LOCKSTEP_SUM = 0,
  LOCKSTEP_MIN = 1,
  LOCKSTEP_MAX = 2,
  LOCKSTEP_ARGMIN = 3,
  LOCKSTEP_ARGMAX = 4,
  LOCKSTEP_SUM_OF_SQUARES = 5,
  LOCKSTEP_NORM2 = 6
} lockstep_reduction;

/* Computes   one result for each of count sequences: element i of sequence s is
 *            src[s * sequence_stride + i * element_stride], i < length; or,
 *            where offsets is not NULL, src[(offsets[s] + i) * element_stride]
 *            with i < offsets[s+1] - offsets[s] (length is then ignored, and
 *            sequence_stride too). element_stride is 1 or more, sequence_stride 0
 *            or more: sequences may share elements, with 0 all of them.
 * Types      lockstep_reduce: SUM, MIN, MAX, ARGMIN, ARGMAX; lockstep_square_sum:
 *            SUM_OF_SQUARES, NORM2; each of all dtypes. (The sum of BOOL is how
 *            many are true.)
 * Results    dst[s], packed: I64 for ARGMIN and ARGMAX (an index within the
 *            sequence); for SUM and SUM_OF_SQUARES of integers I64, of U64 U64;
 *            src's dtype for MIN and MAX; F64 for float sums, squares and norms
 *            and for NORM2 of integers, or F32, F16 or BF16 where result says so
 *            (one final rounding of the double, to nearest even).
 * Exactness  order id 1 (lib/order.hpp): floats are summed in double by a fixed
 *            tree over the sequence's own indices, so the bits depend on
 *            nothing but the elements and their order. Relative error of a sum
 *            of n terms <= (16 + 7 + ceil(log2(n/2048))) * 2^-53 * sum|x| /
 *            |sum x|. Integer results are exact. NORM2 is the correctly rounded
 *            root of that sum (of the exact sum for integers), rescaled where
 *            plain squares would overflow or lose bits.
 *            NaN wins MIN, MAX (stored as the canonical quiet NaN), ARGMIN,
 *            ARGMAX (its first index); -0.0 < +0.0; the lowest index wins a tie.
 * Memory     host, pinned, managed or device, in any mix, for src, dst and offsets.
 * Aliasing   dst must not overlap src or offsets.
 * Empty      count 0: nothing happens. An empty sequence sums to +0.0 or 0; MIN,
 *            MAX, ARGMIN, ARGMAX of it are LOCKSTEP_EMPTY and its result is
 *            left as it was.
 * Errors     OVERFLOW: the exact integer result does not fit I64 (U64: U64); dst[s]
 *            then holds INT64_MAX or INT64_MIN (UINT64_MAX), every other sequence
 *            its result, and the error names the first such sequence. EMPTY likewise.
 *            INVALID_ARGUMENT (a dtype, reduction or result that do not belong
 *            together, offsets that decrease or are negative, strides too small,
 *            overlap), UNSUPPORTED (offsets in device memory with src where the
 *            backend cannot reach it), and those of lockstep_transpose.
 * Asynchrony blocks unless LOCKSTEP_ASYNC; then OVERFLOW and EMPTY come from lockstep_synchronize, or from the call
 *            where the backend has computed already (the CPU does).
 * Threads    safe. Source: backends/<name>/square_sum.*, reduce.* */
typedef struct lockstep_reduce_desc {
  size_t size; /* sizeof(lockstep_reduce_desc) */
  lockstep_reduction reduction;
  lockstep_dtype dtype;
  lockstep_dtype result;
  int64_t count, length;
  int64_t element_stride, sequence_stride;
  const int64_t* offsets; /* NULL, or count + 1 element offsets */
} lockstep_reduce_desc;

/* The dtype of a result unless the caller asks for a narrower float. */
LOCKSTEP_API lockstep_dtype lockstep_default_result(lockstep_reduction reduction, lockstep_dtype dtype);
/* n elements, stride elements apart, to one result. */
LOCKSTEP_API lockstep_reduce_desc lockstep_reduce_full(lockstep_reduction reduction, lockstep_dtype dtype, int64_t n,
                                                       int64_t stride);
/* Each row of a row-major rows x cols matrix to one of rows results. */
LOCKSTEP_API lockstep_reduce_desc lockstep_reduce_rows(lockstep_reduction reduction, lockstep_dtype dtype, int64_t rows,
                                                       int64_t cols, int64_t ld);
/* Each column of a row-major rows x cols matrix to one of cols results. */
LOCKSTEP_API lockstep_reduce_desc lockstep_reduce_columns(lockstep_reduction reduction, lockstep_dtype dtype,
                                                          int64_t rows, int64_t cols, int64_t ld);
/* Segment s holds src[offsets[s]] up to, not including, src[offsets[s+1]]. */
LOCKSTEP_API lockstep_reduce_desc lockstep_reduce_segments(lockstep_reduction reduction, lockstep_dtype dtype,
                                                           int64_t segments, const int64_t* offsets);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_square_sum(lockstep_context* context,
                                                                    const lockstep_reduce_desc* desc, const void* src,
                                                                    void* dst, const lockstep_options* options);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_reduce(lockstep_context* context,
                                                                const lockstep_reduce_desc* desc, const void* src,
                                                                void* dst, const lockstep_options* options);

/* ---- stencil ----------------------------------------------------------- */

/* What stands beyond the ends of an axis a b c d; names as scipy.ndimage has them. */
typedef enum lockstep_boundary LOCKSTEP_INT {
  LOCKSTEP_BOUNDARY_NEAREST = 0,  /* a a a | a b c d | d d d */
  LOCKSTEP_BOUNDARY_MIRROR = 1,   /* d c b | a b c d | c b a */
  LOCKSTEP_BOUNDARY_REFLECT = 2,  /* c b a | a b c d | d c b */
  LOCKSTEP_BOUNDARY_WRAP = 3,     /* b c d | a b c d | a b c */
  LOCKSTEP_BOUNDARY_CONSTANT = 4, /* v v v | a b c d | v v v */
  LOCKSTEP_BOUNDARY_VALID = 5     /* dst is 2 * radius shorter an axis and sweep */
} lockstep_boundary;

typedef enum lockstep_form LOCKSTEP_INT {
  LOCKSTEP_GENERAL = 0,      /* 2*radius*rank + 1 coefficients, taps in increasing memory address */
  LOCKSTEP_SYMMETRIC = 1,    /* 1 + radius*rank: centre, then k = 1..radius of each axis, outermost
                              * first; c_k weighs x[-k] and x[+k] */
  LOCKSTEP_ANTISYMMETRIC = 2 /* as symmetric with -c_k for x[-k]; the centre must be 0 */
} lockstep_form;

/* Computes   a correlation over a star: the taps are the centre and, on each
 *            axis, the radius neighbours on both sides. sweeps > 1 applies it
 *            again to its own result.
 * Shapes     rank 1 to 3; shape outermost first; the innermost stride is 1,
 *            src_strides and dst_strides (elements; entries 0..rank-1) give the
 *            others, at least what the axes within them span; batch arrays
 *            *_batch_stride apart, likewise. Under VALID dst is
 *            shape - 2 * radius * sweeps on each axis.
 * Types      F32 (arithmetic in f32) or F64; coefficients and value are given
 *            in double and rounded once to dtype. radius 1-16 for rank 1, 1-8
 *            for rank 2 and 3. coefficients: host memory, read during the call
 *            (copied by a plan).
 * Exactness  order id 1: the first tap is a rounded product, each further tap
 *            one fused multiply-add, taps in increasing memory address, the
 *            centre once. Same bits everywhere. A NaN result is the canonical
 *            quiet NaN. Error <= taps * 2^-24 (f32) * sum|c x|. The variant
 *            "folded" (own order, never chosen by auto) adds x[-k] + x[+k] first,
 *            which may overflow where the taps one by one do not.
 * Memory     host, pinned, managed or device, in any mix.
 * Aliasing   src and dst must not overlap.
 * Asynchrony blocks unless LOCKSTEP_ASYNC.
 * Empty      an axis or batch of 0: nothing happens.
 * Errors     INVALID_ARGUMENT (radius, form and coefficient_count that do not
 *            fit, VALID on an axis of at most 2 * radius * sweeps, sweeps < 1,
 *            strides too small, a non-zero centre for ANTISYMMETRIC, overlap),
 *            and those of lockstep_transpose.
 * Threads    safe. Source: backends/<name>/stencil.* */
typedef struct lockstep_stencil_desc {
  size_t size; /* sizeof(lockstep_stencil_desc) */
  lockstep_dtype dtype;
  lockstep_form form;
  lockstep_boundary boundary;
  int32_t rank;
  int32_t radius;
  int32_t coefficient_count;
  int32_t sweeps;
  const double* coefficients;
  double value; /* LOCKSTEP_BOUNDARY_CONSTANT */
  int64_t shape[3];
  int64_t src_strides[3];
  int64_t dst_strides[3];
  int64_t batch, src_batch_stride, dst_batch_stride;
} lockstep_stencil_desc;

/* One packed array, one sweep, general form; dst_strides are those of dst's own
 * (under VALID smaller) shape. As for lockstep_permute_packed a rank outside 1..3,
 * or NULL for shape, gives what every call refuses. */
LOCKSTEP_API lockstep_stencil_desc lockstep_stencil_packed(lockstep_dtype dtype, int32_t rank, const int64_t* shape,
                                                           int32_t radius, const double* coefficients,
                                                           lockstep_boundary boundary);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_stencil(lockstep_context* context,
                                                                 const lockstep_stencil_desc* desc, const void* src,
                                                                 void* dst, const lockstep_options* options);

/* ---- shuffle ----------------------------------------------------------- */

typedef enum lockstep_shuffle_kind LOCKSTEP_INT {
  LOCKSTEP_SHUFFLE_IDX = 0,  /* read lane operand of the own segment, modulo width, negatives too */
  LOCKSTEP_SHUFFLE_UP = 1,   /* read lane - operand; the lowest lanes of a segment keep their value */
  LOCKSTEP_SHUFFLE_DOWN = 2, /* read lane + operand; the highest lanes keep theirs */
  LOCKSTEP_SHUFFLE_XOR = 3   /* read lane ^ operand; a lane of a later segment is not read (own value) */
} lockstep_shuffle_kind;

/* Computes   CUDA's warp shuffles over an array of warps: src is count elements,
 *            each 32 consecutive ones a warp, cut into segments of width lanes;
 *            dst[i] is the value that the shuffle delivers to lane i % 32.
 * Shapes     count is a multiple of 32, src and dst are packed.
 * Types      elements of 4 or 8 bytes; bits are copied.
 * Operand    IDX: any int32; UP, DOWN: >= 0, at width and beyond every lane
 *            keeps its value; XOR: 0 to 31.
 * Memory     host, pinned, managed or device, in any mix.
 * Aliasing   src == dst, or no overlap.
 * Exactness  bit copies: NaN payloads and -0.0 survive.
 * Asynchrony blocks unless LOCKSTEP_ASYNC.
 * Empty      count 0: nothing happens.
 * Errors     INVALID_ARGUMENT (count no multiple of 32, width not 1, 2, 4, 8,
 *            16 or 32, a negative delta, a mask outside 0..31, element_bytes
 *            not 4 or 8), and those of lockstep_transpose.
 * Threads    safe. Source: CUDA C++ Programming Guide, "Warp Shuffle
 *            Functions"; backends/<name>/shuffle.* */
typedef struct lockstep_shuffle_desc {
  size_t size; /* sizeof(lockstep_shuffle_desc) */
  lockstep_shuffle_kind kind;
  size_t element_bytes;
  int64_t count;
  int32_t width;
  int32_t operand;
} lockstep_shuffle_desc;

LOCKSTEP_API lockstep_shuffle_desc lockstep_shuffle_warps(lockstep_shuffle_kind kind, size_t element_bytes,
                                                          int64_t count, int32_t width, int32_t operand);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_shuffle(lockstep_context* context,
                                                                 const lockstep_shuffle_desc* desc, const void* src,
                                                                 void* dst, const lockstep_options* options);

/* ---- normalize --------------------------------------------------------- */

typedef enum lockstep_normalization LOCKSTEP_INT {
  LOCKSTEP_NORMALIZE_L2 = 0,   /* the row divided by its 2-norm */
  LOCKSTEP_NORMALIZE_RMS = 1,  /* divided by the root of the mean of its squares */
  LOCKSTEP_NORMALIZE_LAYER = 2 /* less its mean, divided by its standard deviation */
} lockstep_normalization;

/* Computes   each of count rows x of length elements by itself, in double:
 *              h = x, or x + residual rounded to dtype; sum = h where it is given
 *              L2     m = 0; d = norm2(h), eps where that is less (F.normalize)
 *              RMS    m = 0; d = sqrt(sumsq(h) / length + eps)
 *              LAYER  m = mean(h); d = sqrt(M2(h) / length + eps)
 *              t = (h - m) / d for F64, (h - m) * (1 / d) for the others
 *              y = t, t * weight, t + bias or fma(t, weight, bias)
 *            and dst = y, rounded once to result.
 * Shapes     row r begins at src + r * src_stride elements, its elements are
 *            neighbours; dst, residual and sum likewise. Strides of dst and sum are
 *            length or more, those of src and residual 0 or more. weight and bias:
 *            NULL, or length packed elements, the same for every row. sum only
 *            together with residual.
 * Types      dtype (src, residual, sum): F16, BF16, F32, F64. result (dst): dtype,
 *            F16, BF16 or F32. weight_dtype (weight and bias): dtype or F32.
 * Exactness  order id 1 (lib/order.hpp, order_rows.hpp): sumsq is SUM_OF_SQUARES and norm2 NORM2 of
 *            lockstep_square_sum in F64, mean the SUM of the row / length. M2, the
 *            squares of h less their mean, is summed leaf by leaf about each leaf's
 *            own mean, and leaves join by Chan's formula (order::moments): it does
 *            not cancel where the mean is large. Quotients, roots and 1 / d are
 *            rounded once each, in double. So a row has the same bits in any batch,
 *            with any number of threads. A NaN result is result's canonical quiet
 *            NaN. Relative error of d <= (16 + 7 + ceil(log2(length / 2048)) + 4) *
 *            2^-53 for L2 and RMS, and for LAYER twice that times (1 + |m| / the
 *            standard deviation). L2 of F64 is rescaled like NORM2; in RMS and LAYER
 *            of F64, squares beyond 2^1023 are infinite (dst is 0 or NaN).
 *            A NaN makes its row NaN; an infinity makes it 0 and itself NaN, under
 *            LAYER the whole row NaN. With eps 0 a row of zeros (LAYER: of equal
 *            elements) is NaN.
 * Memory     host, pinned or managed memory for all of them. Device memory: where
 *            the backend that owns it has this op. They are used where they lie, and
 *            not copied to another backend's memory: UNSUPPORTED.
 * Aliasing   src == dst normalises in place, where result == dtype and src_stride ==
 *            dst_stride. sum may be src, or residual, with the same stride (src or
 *            residual then becomes h). No other overlap of what is written.
 * Lifetime   weight, bias, residual and sum are read and written during the call; a
 *            plan keeps their addresses, and they must outlive it.
 * Asynchrony blocks unless LOCKSTEP_ASYNC.
 * Empty      count or length 0: nothing happens.
 * Errors     INVALID_ARGUMENT (a kind, dtype, result or weight_dtype that is none of
 *            the above, eps negative, infinite or NaN, strides too small, sum without
 *            residual, NULL, misaligned or overlapping pointers), UNSUPPORTED (an
 *            array that the backend cannot reach), and those of lockstep_transpose.
 * Threads    safe. Source: backends/<name>/normalize.*; Chan, Golub and LeVeque,
 *            "Updating formulae and a pairwise algorithm for computing sample
 *            variances", 1979. */
typedef struct lockstep_normalize_desc {
  size_t size; /* sizeof(lockstep_normalize_desc) */
  lockstep_normalization kind;
  lockstep_dtype dtype;
  lockstep_dtype result;
  lockstep_dtype weight_dtype;
  int64_t count, length;
  int64_t src_stride, dst_stride;
  int64_t residual_stride, sum_stride;
  double eps;
  const void* weight;   /* NULL: 1 */
  const void* bias;     /* NULL: 0 */
  const void* residual; /* NULL: none */
  void* sum;            /* NULL: not wanted */
} lockstep_normalize_desc;

/* Packed rows to packed rows of the same type, without weight, bias and residual. */
LOCKSTEP_API lockstep_normalize_desc lockstep_normalize_rows(lockstep_normalization kind, lockstep_dtype dtype,
                                                             int64_t rows, int64_t cols, double eps);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_normalize(lockstep_context* context,
                                                                   const lockstep_normalize_desc* desc, const void* src,
                                                                   void* dst, const lockstep_options* options);

/* ---- scan -------------------------------------------------------------- */

/* Computes   for every element of count sequences the reduction of the sequence's
 *            elements up to it, itself among them; exclusive: of those before it.
 * Shapes     sequences are a lockstep_reduce_desc's: its members stand here with the
 *            same meaning. The result of element i of sequence s goes to
 *            dst[s * dst_sequence_stride + i * dst_element_stride]; with offsets to
 *            dst[(offsets[s] + i) * dst_element_stride]. dst_element_stride is 1 or
 *            more, and results lie apart: dst_sequence_stride is at least what a
 *            sequence's results span, or dst_element_stride what those of all
 *            sequences at one index span.
 * Types      SUM, MIN and MAX of F16, BF16, F32, F64, I32 and I64. result: dtype for
 *            MIN and MAX; I64 for SUM of integers; F64, F32 or dtype for SUM of
 *            floats, rounded once.
 * Exactness  order id 1 (lib/order_rows.hpp): a float SUM at element i is, in double,
 *            (before + row) + group: what order id 1's tree gives for the whole
 *            leaves before i's, the rows of 128 before i's in its leaf, and the
 *            elements up to i in its row. It depends on nothing behind i, and every
 *            term is fixed before any worker starts. Relative error of n terms <= (16 + 7 +
 *            ceil(log2(n/2048)) + 36) * 2^-53 * sum|x| / |sum x|. An exclusive result is
 *            bit for bit the inclusive one of the element before. Integers are exact.
 *            A NaN makes all that follow NaN (the canonical quiet one), MIN and MAX
 *            too; -0.0 < +0.0.
 *            The first exclusive result is +0.0 or 0 for SUM, for MIN the largest
 *            value of dtype, infinity for floats, for MAX the smallest.
 * Memory     host, pinned or managed memory for src, dst and offsets. Device memory:
 *            where the backend that owns it has this op, else UNSUPPORTED.
 * Aliasing   src == dst is in place, where dtype == result and dst's strides are
 *            src's. Otherwise dst must not overlap src or offsets.
 * Asynchrony blocks unless LOCKSTEP_ASYNC.
 * Empty      count 0, length 0, an empty segment: nothing happens.
 * Errors     OVERFLOW: an exact sum does not fit I64; its result is INT64_MAX or
 *            INT64_MIN, later ones that fit are exact again, and the error names the
 *            first such sequence. INVALID_ARGUMENT (a dtype, reduction or result that
 *            do not belong together, offsets that decrease or are negative, strides
 *            too small, overlap), and those of lockstep_transpose.
 * Threads    safe. Source: backends/<name>/scan.* */
typedef struct lockstep_scan_desc {
  size_t size; /* sizeof(lockstep_scan_desc) */
  lockstep_reduction reduction;
  lockstep_dtype dtype;
  lockstep_dtype result;
  int64_t count, length;
  int64_t element_stride, sequence_stride;
  const int64_t* offsets; /* NULL, or count + 1 element offsets */
  int64_t dst_element_stride, dst_sequence_stride;
  int32_t exclusive; /* 0 or 1 */
} lockstep_scan_desc;

/* The whole of n elements; each row, and each column, of a row-major rows x cols
 * matrix; segments. Results lie as the elements do, of dtype (I64: sums of integers). */
LOCKSTEP_API lockstep_scan_desc lockstep_scan_full(lockstep_reduction reduction, lockstep_dtype dtype, int64_t n);
LOCKSTEP_API lockstep_scan_desc lockstep_scan_rows(lockstep_reduction reduction, lockstep_dtype dtype, int64_t rows,
                                                   int64_t cols, int64_t ld);
LOCKSTEP_API lockstep_scan_desc lockstep_scan_columns(lockstep_reduction reduction, lockstep_dtype dtype, int64_t rows,
                                                      int64_t cols, int64_t ld);
LOCKSTEP_API lockstep_scan_desc lockstep_scan_segments(lockstep_reduction reduction, lockstep_dtype dtype,
                                                       int64_t segments, const int64_t* offsets);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_scan(lockstep_context* context, const lockstep_scan_desc* desc,
                                                              const void* src, void* dst,
                                                              const lockstep_options* options);

/* ---- any op ------------------------------------------------------------ */

/* Runs the op that its number names, as the call of that op's own name does:
 * lockstep_execute(context, LOCKSTEP_TRANSPOSE, &desc, src, dst, options) is
 * lockstep_transpose(context, &desc, src, dst, options). desc is the description of
 * that op (lockstep_reduce_desc for SQUARE_SUM too), whose first member is its size.
 * For bindings and for tables of calls, where a type an op is in the way.
 * Errors: those of the call; INVALID_ARGUMENT (no such op, a size that the op's
 * description never had). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_execute(lockstep_context* context, lockstep_op op,
                                                                 const void* desc, const void* src, void* dst,
                                                                 const lockstep_options* options);

/* ---- plans ------------------------------------------------------------- */

/* A plan fixes backend, device, variant and workspace for a call that is
 * repeated: executing it allocates nothing. options as for the call itself
 * (LOCKSTEP_DEVICE_DATA tells auto where the data will live). Stream and workspace
 * are given at execution; naming one here says that the caller will bring it, and
 * the plan takes no workspace of its own. The context must outlive the plan;
 * offsets of a segmented reduction must outlive it too.
 * Memory is taken later only for the first execution on a caller's stream, for the
 * first in place (src == dst) where that needs more than two arrays do, for a
 * workspace that was to be brought and was not, for copies of data that the
 * backend cannot reach, for a failure's text, and for threads that are made.
 * Tuning: with LOCKSTEP_TUNE the rows of the backend that auto may take for the call
 * (none of LOCKSTEP_OWN_ORDER, LIBRARY, LESSON, REFERENCE, and none that refuses it)
 * are timed in turns, on memory that the library takes and fills itself, on a queue
 * of its own. The fastest is remembered, in the file that lockstep_tuning_get names,
 * for calls of the same class: library version, backend, device with its driver or
 * ISA, threads, op, types, layout, and sizes to a power of two. What segments hold is
 * not part of it. From then on plans of that class take that row, with the flag
 * (which then measures nothing) or without it; calls without a plan never look. A
 * forced variant wins; a row that refuses the call, or is not there, is passed over.
 * Every row gives the same bits. Measuring takes about twenty times the call for each
 * row, memory for src and dst, and host offsets are read. Not while a stream is being
 * captured: it allocates. A file that cannot be trusted, read or written is no
 * failure: the choice holds for this context's plans, and why tells.
 * Errors: those of the call but for its pointers; INVALID_ARGUMENT (plan is NULL;
 * LOCKSTEP_TUNE with a stream); UNSUPPORTED (LOCKSTEP_TUNE with offsets in device
 * memory); OUT_OF_MEMORY (its workspace; with LOCKSTEP_TUNE its arrays). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_transpose(lockstep_context* context,
                                                                        const lockstep_transpose_desc* desc,
                                                                        const lockstep_options* options,
                                                                        lockstep_plan** plan);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_permute(lockstep_context* context,
                                                                      const lockstep_permute_desc* desc,
                                                                      const lockstep_options* options,
                                                                      lockstep_plan** plan);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_square_sum(lockstep_context* context,
                                                                         const lockstep_reduce_desc* desc,
                                                                         const lockstep_options* options,
                                                                         lockstep_plan** plan);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_reduce(lockstep_context* context,
                                                                     const lockstep_reduce_desc* desc,
                                                                     const lockstep_options* options,
                                                                     lockstep_plan** plan);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_stencil(lockstep_context* context,
                                                                      const lockstep_stencil_desc* desc,
                                                                      const lockstep_options* options,
                                                                      lockstep_plan** plan);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_shuffle(lockstep_context* context,
                                                                      const lockstep_shuffle_desc* desc,
                                                                      const lockstep_options* options,
                                                                      lockstep_plan** plan);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_normalize(lockstep_context* context,
                                                                        const lockstep_normalize_desc* desc,
                                                                        const lockstep_options* options,
                                                                        lockstep_plan** plan);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_scan(lockstep_context* context,
                                                                   const lockstep_scan_desc* desc,
                                                                   const lockstep_options* options,
                                                                   lockstep_plan** plan);
/* A plan of any op, as lockstep_execute is a call of any. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_create(lockstep_context* context, lockstep_op op,
                                                                     const void* desc, const lockstep_options* options,
                                                                     lockstep_plan** plan);

/* What a plan has chosen, as lockstep_last_run tells it of a call: backend, variant
 * (of two arrays where there are rows for both), why, device, order, workspace.
 * The texts are valid until this thread's next call of this function. Errors:
 * INVALID_ARGUMENT (NULL, info of unknown size). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_get(const lockstep_plan* plan, lockstep_run_info* info);

/* Bytes of workspace that an execution needs at most (0: none). Errors:
 * INVALID_ARGUMENT (plan or bytes is NULL). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_workspace(const lockstep_plan* plan, size_t* bytes);

/* Runs the plan on src and dst. options may be NULL; of them flags' ASYNC,
 * stream, workspace and workspace_bytes count. Errors: those of the call;
 * INVALID_ARGUMENT (plan is NULL, a workspace smaller than this execution needs);
 * UNSUPPORTED (a forced variant that does not take these pointers). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_execute(lockstep_plan* plan, const void* src, void* dst,
                                                                      const lockstep_options* options);

/* Destroys a plan; NULL is allowed. Waits for its queued work, but for that on a
 * caller's stream; a failure is told by lockstep_synchronize. */
LOCKSTEP_API void lockstep_plan_destroy(lockstep_plan* plan);

/* ---- measuring --------------------------------------------------------- */

enum {
  LOCKSTEP_COLD = 8u /* empty the caches before each sample; else data stays where the last run left it */
};

/* Times the plan on src and dst, samples times, into ms[0..samples-1]
 * (milliseconds, in the order taken; overwrites dst). Device time where the
 * backend has a clock of its own (queued behind a blocking kernel, so that
 * launch cost is hidden) and src and dst are in its reach; otherwise host time
 * of the whole call, staging included. Without LOCKSTEP_COLD a sample may be the
 * mean of several runs back to back. Warms up first. flags: LOCKSTEP_COLD.
 * Errors: those of lockstep_plan_execute; INVALID_ARGUMENT (samples < 1, ms
 * NULL, an unknown flag). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_measure(lockstep_plan* plan, const void* src, void* dst,
                                                                      uint32_t flags, int32_t samples, double* ms);

typedef enum lockstep_limit LOCKSTEP_INT {
  LOCKSTEP_LIMIT_COPY = 0,            /* read bytes / 2, write bytes / 2 */
  LOCKSTEP_LIMIT_READ = 1,            /* read bytes */
  LOCKSTEP_LIMIT_LAUNCH = 2,          /* an almost empty kernel, back to back; bytes is ignored */
  LOCKSTEP_LIMIT_UPLOAD_PINNED = 3,   /* host to device */
  LOCKSTEP_LIMIT_DOWNLOAD_PINNED = 4, /* device to host */
  LOCKSTEP_LIMIT_BOTH_PINNED = 5,     /* bytes / 2 each way at once */
  LOCKSTEP_LIMIT_UPLOAD_PAGEABLE = 6,
  LOCKSTEP_LIMIT_DOWNLOAD_PAGEABLE = 7,
  LOCKSTEP_LIMIT_FMA_F32 = 8, /* bytes: operations of fused multiply-adds, two each; moves nothing */
  LOCKSTEP_LIMIT_FMA_F64 = 9
} lockstep_limit;

/* Times the fastest known way ("best of several") to move bytes, or to do so many
 * operations, on a backend ("cpu", "cuda:1") with this context's threads: the
 * limit that a result is a fraction of. Allocates what it needs. The results of
 * multiply-adds are compared with the host's. Errors: NO_BACKEND, UNSUPPORTED (a
 * limit that the backend does not have), INVALID_ARGUMENT, OUT_OF_MEMORY,
 * BACKEND_FAILED (results differ). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_measure_limit(lockstep_context* context, const char* backend,
                                                                       lockstep_limit limit, size_t bytes,
                                                                       uint32_t flags, int32_t samples, double* ms);

#ifdef __cplusplus
}
#endif
#endif
