/* lockstep.h - the C ABI (C11). Memory-bound array operations with the same
 * bits on every backend: transpose, permute, square_sum, reduce, stencil,
 * shuffle, normalize, scan, sums, reduce_axes, convert, map.
 *
 * Conventions that hold for every call
 *   Sizes, strides and leading dimensions are int64_t, counted in elements;
 *   sizes in bytes are size_t and say so in their name.
 *   Arguments come in the order (src, dst). A pointer needs the alignment of
 *   one element, no more, and may point to host, pinned, managed or device
 *   memory in any mix.
 *   Every function that can fail returns a lockstep_status. After a failure
 *   lockstep_last_error() gives, for this thread, the argument, its value and how
 *   to fix it. Functions that destroy, name or count something return no status: a
 *   count that fails is 0, a text is "". Every function may also return
 *   OUT_OF_MEMORY, or INTERNAL for a defect in lockstep.
 *   The library never prints, aborts, throws through C, or changes the
 *   caller's current CUDA device, floating-point state or locale.
 *   Calls block until dst is complete, unless LOCKSTEP_ASYNC is set.
 *   src is only read, and may be read more than once. No two elements of dst may
 *   share memory.
 *   src and dst overlap when their byte ranges, each from its first to its last
 *   element, have a byte in common. So dst placed in the gaps between src's rows
 *   overlaps src.
 *   An empty call (a size of 0, so that nothing is written) touches no memory. Its
 *   types, sizes and flags are checked; its pointers and strides are not. The stride
 *   of an axis with one element is never read, whatever an op says of its strides.
 *   Every function may be called from any thread; 64 KiB of its stack are enough. Where less than 768 KiB are left,
 *   and in coroutines, another thread does the CPU's work, some microseconds later. (A GPU's driver has its own needs.)
 *   Contexts may be shared between threads; a plan may be executed by only one thread at a time.
 *   Everything is available as an exported symbol, so bindings need not parse this header.
 *   A struct with a size member only ever grows at its end. A function that returns a
 *   struct by value never changes what it returns: a longer struct gets a new symbol,
 *   and this header maps the old name to it.
 * Source: this repository. share/doc/lockstep/order.md defines every bit of every result. */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include <stddef.h>
#include <stdint.h>

#define LOCKSTEP_VERSION_MAJOR 0
#define LOCKSTEP_VERSION_MINOR 2
#define LOCKSTEP_VERSION_PATCH 0
#define LOCKSTEP_VERSION "0.2.0"
/* The number in the SONAME; it changes when a binary built before would break. */
#define LOCKSTEP_ABI_VERSION 1
/* The order that every sum and stencil of this release follows (share/doc/lockstep/order.md). */
#define LOCKSTEP_ORDER_1 1

#if defined(__GNUC__)
#define LOCKSTEP_API __attribute__((visibility("default")))
#else
#define LOCKSTEP_API
#endif

/* LOCKSTEP_INT makes every enum an int in C++ too, so that a wrong value can be passed and refused. */
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
  LOCKSTEP_EMPTY = 7,            /* MIN to ARGMAX, NAN_MIN or NAN_MAX of an empty sequence */
  LOCKSTEP_BACKEND_FAILED = 8,   /* the backend reported a failure; see lockstep_last_error */
  LOCKSTEP_BACKEND_LOST = 9,     /* the backend failed for the rest of the process (a sticky device error); do not
                                  * pass its device memory again. Other backends still work */
  LOCKSTEP_INTERNAL = 10,        /* a defect in lockstep; please report it */
  /* Only from calls over many ranks (ranks.h). */
  LOCKSTEP_RANK_FAILED = 11, /* another rank's part of the call failed; the text names that rank and its reason */
  LOCKSTEP_RANK_LOST = 12,   /* a rank did not answer in time, or its transport failed: the communicator is closed */
  LOCKSTEP_MISMATCH = 13,    /* ranks described different things, or made different calls */
  LOCKSTEP_INTERRUPTED = 14  /* the program ended the call early; see lockstep_set_interrupt */
} lockstep_status;

/* The name of a status, "LOCKSTEP_OVERFLOW" for example. Never NULL. */
LOCKSTEP_API const char* lockstep_status_name(lockstep_status status);

/* The text of this thread's last failed call, "" if there was none. Valid
 * until this thread's next lockstep call. */
LOCKSTEP_API const char* lockstep_last_error(void);
/* Sets that text, for libraries built on this one. It is cut between characters at 1,023 bytes; NULL means "". As in
 * all texts of this library, control characters become '?' and bytes that are not UTF-8 are written as \xE9. */
LOCKSTEP_API void lockstep_set_error(const char* text);

/* The version of the loaded library, "0.2.0" for example. */
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

/* The properties of every dtype, one row each, in the order of their numbers:
 * ROW(name, bytes, kind, dtype of a sum, NumPy's type, C++ type). kind is 'f' for
 * floats, 'i' and 'u' for signed and unsigned integers, 'b' for booleans. */
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

/* Bytes of one element, 0 for a value that is not a dtype. */
LOCKSTEP_API size_t lockstep_dtype_bytes(lockstep_dtype dtype);

/* The kind as in LOCKSTEP_DTYPES, 0 for a value that is not a dtype. */
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
  LOCKSTEP_SUMS = 8,
  LOCKSTEP_REDUCE_AXES = 9,
  LOCKSTEP_CONVERT = 10,
  LOCKSTEP_MAP = 11,
  LOCKSTEP_OP_COUNT = 12
} lockstep_op;

/* "transpose", "permute", ...; NULL for a value that is not an op. */
LOCKSTEP_API const char* lockstep_op_name(lockstep_op op);

/* ---- contexts ---------------------------------------------------------- */

typedef struct lockstep_context lockstep_context;
typedef struct lockstep_plan lockstep_plan;

/* Allocates the host memory whose size depends on the data: workspaces, host copies
 * of device data, LOCKSTEP_HOST of lockstep_alloc, and the queues that calls run on.
 * Small objects (contexts, plans, texts) come from operator new, page-locked and
 * device memory from the driver. allocate returns NULL when there is no memory;
 * alignment is a power of two. */
typedef struct lockstep_allocator {
  void* user;
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  void (*release)(void* user, void* pointer, size_t bytes, size_t alignment);
} lockstep_allocator;

enum {
  LOCKSTEP_ASYNC = 1u,       /* return once the work is queued; see lockstep_synchronize */
  LOCKSTEP_NO_FALLBACK = 2u, /* auto must not move a call to another backend after a failure (it never does when
                              * the failed call was in place and may have overwritten src) */
  LOCKSTEP_DEVICE_DATA = 4u, /* plans: src and dst will be device memory (guides auto) */
  LOCKSTEP_PLACED = 64u,     /* executions of plans: src and dst are memory of the plan's device, which saves two
                              * questions to its driver; without effect on the CPU. If untrue, anything may happen */
  LOCKSTEP_BOUNDED = 128u, /* reduce and square_sum with offsets: length says how many elements of src they may name */
  /* Only when a plan is made; see "plans" below. */
  LOCKSTEP_TUNE = 16u,  /* take the variant measured to be fastest; measure now if none is remembered */
  LOCKSTEP_RETUNE = 32u /* measure now, even if a result is remembered */
};

typedef struct lockstep_context_options {
  size_t size;                         /* sizeof(lockstep_context_options) */
  const char* backend;                 /* NULL: LOCKSTEP_BACKEND, else "auto"; "cpu", "cuda", "cuda:1" */
  const char* variants;                /* NULL: LOCKSTEP_VARIANT; "transpose=tiled,reduce=ref" forces variants:
                                        * the last entry for an op counts, "auto" forces none, empty entries
                                        * are ignored; "": none */
  const char* cpu_isa;                 /* NULL: LOCKSTEP_CPU_ISA, else the best, as for ""; "baseline", "avx2" or
                                        * "avx512", each tuned for the chip it runs on; all give the same bits */
  int32_t threads;                     /* 0: LOCKSTEP_NUM_THREADS, else what the affinity mask,
                                        * the cgroup quota and OMP_NUM_THREADS allow */
  uint32_t flags;                      /* LOCKSTEP_NO_FALLBACK */
  const lockstep_allocator* allocator; /* NULL: aligned_alloc; copied */
} lockstep_context_options;

LOCKSTEP_API lockstep_context_options lockstep_context_defaults(void);

/* Creates a context. options may be NULL. Cheap: no thread is started and no
 * device touched before the first call that needs one.
 * Errors: INVALID_ARGUMENT (context is NULL, a malformed option or environment variable, an unknown flag
 * or ISA, more than 4096 threads), NO_BACKEND / NO_VARIANT (a name that is
 * unknown or cannot run here), OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_context_create(const lockstep_context_options* options,
                                                                        lockstep_context** context);

/* Destroys a context; NULL is allowed. Waits for its queued work, except work on
 * the caller's own streams, because those may no longer exist: wait for them first,
 * or release them with lockstep_release_stream. Free memory from lockstep_alloc
 * first. */
LOCKSTEP_API void lockstep_context_destroy(lockstep_context* context);

/* Binds a live context to another backend ("auto", "cpu", "cuda", "cuda:1").
 * Calls that already run finish on the old one. Asynchronous calls are not waited
 * for: call lockstep_synchronize before the new backend uses their results. Errors:
 * INVALID_ARGUMENT (NULL, a malformed name), NO_BACKEND (unknown, or cannot run
 * here), OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_context_set_backend(lockstep_context* context,
                                                                             const char* backend);

/* Forces a variant for an op on this context; NULL or "auto" removes that. A call on
 * a backend that lacks the variant is UNSUPPORTED. Errors: INVALID_ARGUMENT (context
 * is NULL, no such op), NO_VARIANT when no known backend has it, OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_context_set_variant(lockstep_context* context, lockstep_op op,
                                                                             const char* variant);

/* Waits for this context's asynchronous calls and returns the first failure
 * among them (overflow, empty sequence, a device error) that has not been
 * returned before. The CPU backend computes during the call and reports there.
 * Calls without a stream run in order on each device; a plan has its own queue.
 * Work on LOCKSTEP_STREAM_PER_THREAD is waited for only by the thread that queued
 * it. Further errors: INVALID_ARGUMENT (context is NULL). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_synchronize(lockstep_context* context);

/* CUDA's two default streams. They need names here because a NULL stream means one
 * of lockstep's own. The legacy stream (handle 0 in CUDA, PyTorch's default) is
 * ordered with every blocking stream. The per-thread stream belongs to the calling
 * thread, and only that thread waits for it. */
#define LOCKSTEP_STREAM_LEGACY ((void*)1)
#define LOCKSTEP_STREAM_PER_THREAD ((void*)2)

/* Options of one call; NULL means the defaults. */
typedef struct lockstep_options {
  size_t size;            /* sizeof(lockstep_options) */
  const char* backend;    /* NULL: the context's */
  const char* variant;    /* NULL: the context's, else the best that accepts the call */
  uint32_t flags;         /* LOCKSTEP_ASYNC | LOCKSTEP_NO_FALLBACK | LOCKSTEP_DEVICE_DATA | LOCKSTEP_BOUNDED; where a
                           * plan is made also LOCKSTEP_TUNE, LOCKSTEP_RETUNE; where it runs LOCKSTEP_PLACED */
  void* stream;           /* the backend's own stream type (a cudaStream_t), or LOCKSTEP_STREAM_LEGACY or
                           * _PER_THREAD; NULL: one of lockstep's. It must live until an asynchronous call on
                           * it has been waited for (lockstep_synchronize) */
  void* workspace;        /* memory that the backend can reach, aligned to 256 bytes, not overlapping any array of
                           * the call (else INVALID_ARGUMENT, also under auto, so name the backend). With offsets
                           * in device memory lockstep cannot check how much of src they cover. NULL: lockstep
                           * allocates. If auto falls back to another backend, that one uses its own */
  size_t workspace_bytes; /* size of workspace; see lockstep_plan_workspace */
} lockstep_options;

LOCKSTEP_API lockstep_options lockstep_options_defaults(void);

/* Lets a program end its long calls early, on Ctrl-C for example. While a call of this thread computes on the CPU,
 * ask(user) is called on this thread about every 100 ms, between two tasks. If it returns other than 0, the call ends
 * as soon as every thread has finished its task, usually within some milliseconds, as LOCKSTEP_INTERRUPTED. dst and
 * any other array that the call writes are then incomplete (in place, src is lost); contexts and plans can be used
 * again.
 * ask        NULL: calls are not interrupted, as at first. It may call lockstep, but not execute the plan that runs.
 * Not asked  in calls of less than 32 MiB read and written, which end soon, in variants named "ref", in measurements,
 *            and while a GPU computes.
 * Setting    It holds for this thread's calls, on every context, until it is set again; a call that runs keeps the
 *            function that it began with. Asynchrony: the CPU computes during an asynchronous call too, and asks.
 * Errors     none. */
LOCKSTEP_API void lockstep_set_interrupt(int (*ask)(void* user), void* user);

/* Releases what a context keeps for a caller's stream: a queue with its own device
 * memory, made by the first call on that stream. Call it before the stream is
 * destroyed or when it is no longer used. It waits for lockstep's work on the
 * stream; lockstep_synchronize reports a failure of that work. A later or waiting
 * call on the stream makes a new queue. A stream that was never used is fine. A
 * queue that is not released is destroyed with the context, without waiting.
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
  const char* why;        /* why other backends were not used: "cuda: no NVIDIA driver (...); ..." */
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
/* The folders searched for modules, separated by ':'. A refused folder is followed
 * by the reason. */
LOCKSTEP_API const char* lockstep_backend_path(void);

typedef struct lockstep_device_info {
  size_t size;      /* sizeof(lockstep_device_info) */
  char name[128];   /* "NVIDIA H200", "AMD EPYC ..." */
  char detail[256]; /* one line: driver, compute capability, ISA, caches */
  int64_t memory_bytes;
  int64_t last_level_cache_bytes;
  int32_t processors; /* SMs; for the CPU, threads used */
  int32_t usable;
} lockstep_device_info;
/* A device of a usable backend ("cuda"; "cuda:1" names the same backend, and device
 * counts). Errors: INVALID_ARGUMENT (backend or info NULL, a malformed name, no such
 * device), NO_BACKEND (unknown, or cannot run here), BACKEND_FAILED, BACKEND_LOST. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_device_get(const char* backend, int32_t device,
                                                                    lockstep_device_info* info);

enum {
  LOCKSTEP_OWN_ORDER = 1u, /* adds in another order, so its bits differ: never chosen by auto */
  LOCKSTEP_LIBRARY = 2u,   /* calls another library (Thrust, CUB, ...), for comparison: never chosen by auto */
  LOCKSTEP_LESSON = 4u,    /* same bits, there only to teach: never chosen by auto */
  LOCKSTEP_REFERENCE = 8u  /* plain loops that define the result: never chosen by auto */
};
typedef struct lockstep_variant_info {
  size_t size;      /* sizeof(lockstep_variant_info) */
  const char* name; /* "tiled_padded" */
  const char* idea; /* one line: how it works */
  uint32_t flags;
} lockstep_variant_info;
/* Variants of a backend ("cuda" and "cuda:1" have the same), best first; 0 when the backend or op has none, and where
 * lockstep_variant_get would give an error, which lockstep_last_error then tells.
 * Errors of lockstep_variant_get: INVALID_ARGUMENT (backend or info NULL, "auto", no such
 * op, index beyond the count), NO_BACKEND (unknown). */
LOCKSTEP_API int32_t lockstep_variant_count(const char* backend, lockstep_op op);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_variant_get(const char* backend, lockstep_op op, int32_t index,
                                                                     lockstep_variant_info* info);

/* Where auto's estimates for host data come from: measured times of typical calls
 * on the CPU and on a device, with the copies to and from it. `lockstep calibrate`
 * measures them; without its file the library uses figures from another machine. */
typedef struct lockstep_model_info {
  size_t size;        /* sizeof(lockstep_model_info) */
  const char* source; /* "built-in", or the path of the file in force */
  const char* path;   /* the file looked for (LOCKSTEP_CALIBRATION, else lockstep/calibration in
                       * XDG_CACHE_HOME or ~/.cache), "" when switched off */
  const char* reason; /* why no file is used: there is none, it was made on other hardware, others may write
                       * to it ...; "" when one is used */
} lockstep_model_info;
/* A context reads its file once: in this call, or earlier when auto needed it. The
 * texts live as long as the context. Errors: INVALID_ARGUMENT (NULL), OUT_OF_MEMORY. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_model_get(lockstep_context* context,
                                                                   lockstep_model_info* info);

/* Variants chosen by measuring (LOCKSTEP_TUNE, `lockstep tune`) that are used here. */
typedef struct lockstep_tuning_info {
  size_t size;         /* sizeof(lockstep_tuning_info) */
  const char* path;    /* the file looked for (LOCKSTEP_TUNING, else lockstep/tuning in XDG_CACHE_HOME or
                        * ~/.cache), "" when switched off (LOCKSTEP_TUNING is "off") */
  const char* reason;  /* why the file is not used, "" when it is */
  const char* choices; /* those for this library version and these devices, one line each: "cpu (2 threads,
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

/* Memory of a named backend ("cuda", "cuda:1", "cpu"), for callers who do not link
 * CUDA themselves. The CPU backend knows only LOCKSTEP_HOST. For 0 bytes *pointer is
 * NULL. lockstep_free takes the same kind and bytes; a NULL pointer is allowed.
 * Errors: INVALID_ARGUMENT (context, backend or pointer NULL,
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

/* Page-locks host memory that the caller has, so that calls on it cross the link without
 * a copy by the CPU, as on LOCKSTEP_PINNED; lockstep_unpin gives it back. Locking 1 GiB
 * takes longer than one call: it pays for memory that several calls use.
 * Memory     [pointer, pointer + bytes) of this process' own, readable and writable; it
 *            must stay allocated until lockstep_unpin. The system locks whole pages, and
 *            every device of the backend uses them. What else lies on these pages may be
 *            used as before.
 * Unpin      takes the pointer that was locked. No call may still use the memory.
 *            Memory of lockstep_alloc goes back by lockstep_free only.
 * Empty      0 bytes lock nothing, and lockstep_unpin of NULL does nothing.
 * Asynchrony both block.
 * Errors     INVALID_ARGUMENT (context, backend or pointer NULL, "auto", memory of a
 *            device, memory that is page-locked already in part or whole, that cannot be
 *            locked, or that lockstep_unpin does not know as locked), NO_BACKEND,
 *            UNSUPPORTED (a backend without a link, such as "cpu"), OUT_OF_MEMORY (more than
 *            the system lets a process lock), BACKEND_FAILED, BACKEND_LOST.
 * Threads    safe, but not for the same memory at once. Source: backends/cuda/device/memory.cpp */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_pin(lockstep_context* context, const char* backend,
                                                             void* pointer, size_t bytes);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_unpin(lockstep_context* context, const char* backend,
                                                               void* pointer);

/* ---- transpose --------------------------------------------------------- */

/* Computes   dst[b][j][i] = src[b][i][j]   for b < batch, i < rows, j < cols.
 * Shapes     src: rows x cols, row-major, src_ld >= cols elements from row to
 *            row (if there are several, as below); dst: cols x rows, dst_ld >= rows;
 *            matrices of a batch are *_batch_stride elements apart.
 * Types      any element of 1, 2, 4, 8 or 16 bytes; bits are copied.
 * Memory     host, pinned, managed or device, in any mix.
 * Aliasing   src == dst transposes in place: square with src_ld == dst_ld, or
 *            contiguous rectangular (src_ld == cols, dst_ld == rows). A batch then
 *            needs src_batch_stride == dst_batch_stride, and matrices that do not
 *            overlap. Any other overlap is an error.
 * Exactness  bit copies: NaN payloads and -0.0 survive.
 * Asynchrony blocks unless LOCKSTEP_ASYNC.
 * Empty      rows, cols or batch 0: nothing is touched, pointers may be NULL.
 * Strides    src_batch_stride is 0 or more: matrices of src may overlap, with 0 all
 *            are the same. dst_batch_stride must keep dst's matrices from overlapping.
 * Errors     INVALID_ARGUMENT (NULL, misaligned or overlapping pointers,
 *            negative sizes, ld too small, element_bytes not 1/2/4/8/16, a
 *            product of sizes past 2^63-1, an unknown flag), UNSUPPORTED (a forced variant), NO_BACKEND, NO_VARIANT,
 *            OUT_OF_MEMORY, BACKEND_FAILED, BACKEND_LOST, INTERRUPTED (lockstep_set_interrupt).
 * Threads    safe. Source: backends/<name>/transpose.* */
typedef struct lockstep_transpose_desc {
  size_t size; /* sizeof(lockstep_transpose_desc) */
  size_t element_bytes;
  int64_t rows, cols;
  int64_t src_ld, dst_ld;
  int64_t batch, src_batch_stride, dst_batch_stride;
} lockstep_transpose_desc;

/* One packed rows x cols matrix. For other layouts change the members. */
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
 * Aliasing   src and dst must not overlap, nor may elements of dst: sorted by size,
 *            each dst stride is at least what the axes of smaller strides span.
 *            Elements of src may overlap.
 * Everything else as for lockstep_transpose. Further errors: perm is not a
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

/* From a packed array to a packed array. A rank outside 1..8, or a NULL argument,
 * gives a description that every call refuses. */
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
  LOCKSTEP_NORM2 = 6,
  LOCKSTEP_COUNT_NONZERO = 7, /* how many elements are not 0; NaN is not 0 */
  LOCKSTEP_ANY = 8,           /* whether an element is not 0 */
  LOCKSTEP_ALL = 9,           /* whether no element is 0 */
  LOCKSTEP_PROD = 10,         /* the product */
  LOCKSTEP_NAN_SUM = 11,      /* SUM with +0.0 in place of each NaN */
  LOCKSTEP_NAN_MIN = 12,      /* MIN and MAX of the elements that are not NaN; NaN if there is none */
  LOCKSTEP_NAN_MAX = 13,
  LOCKSTEP_REDUCTION_COUNT = 14
} lockstep_reduction;

/* Computes   one result for each of count sequences: element i of sequence s is
 *            src[s * sequence_stride + i * element_stride], i < length; or,
 *            where offsets is not NULL, src[(offsets[s] + i) * element_stride]
 *            with i < offsets[s+1] - offsets[s] (sequence_stride is then ignored; length too, unless options.flags
 *            has LOCKSTEP_BOUNDED, see Errors). element_stride is 1 or more if length > 1 or offsets are given,
 *            sequence_stride 0 or more if count > 1: sequences may share elements.
 * Types      lockstep_square_sum: SUM_OF_SQUARES, NORM2; lockstep_reduce: all others.
 *            Both take every dtype. The sum of BOOL is the number of true elements.
 *            NAN_SUM, NAN_MIN and NAN_MAX of integers are SUM, MIN and MAX.
 * Results    dst[s], packed: I64 for ARGMIN and ARGMAX (an index within the
 *            sequence) and COUNT_NONZERO; BOOL for ANY and ALL; for SUM, NAN_SUM, PROD
 *            and SUM_OF_SQUARES of integers I64, of U64 U64; src's dtype for MIN, MAX,
 *            NAN_MIN and NAN_MAX; F64 for sums, products, squares and norms of floats
 *            and for NORM2 of integers. result may ask for F32, F16 or BF16 in place
 *            of F64: the double is rounded once, to nearest even.
 * Exactness  order id 1 (order.md): floats are summed in double by a fixed
 *            tree over the sequence's own indices, so the bits depend on
 *            nothing but the elements and their order. Relative error of a sum
 *            of n terms <= (16 + 7 + ceil(log2(n/2048))) * 2^-53 * sum|x| /
 *            |sum x|. PROD of floats multiplies in double over the same tree, with 1
 *            in place of missing elements; relative error <= n * 2^-53 unless a partial
 *            product overflows or underflows. Integer results are exact: a product is 0
 *            if an element is, however large the others are. NORM2 is the correctly rounded
 *            root of that sum (of the exact sum for integers), rescaled where
 *            plain squares would overflow or lose bits.
 *            If a sequence holds a NaN, MIN and MAX give the canonical quiet NaN,
 *            ARGMIN and ARGMAX the index of the first NaN. -0.0 < +0.0; among
 *            equal elements the lowest index counts.
 * Memory     host, pinned, managed or device, in any mix, for src, dst and offsets.
 * Aliasing   dst must not overlap src or offsets.
 * Empty      count 0: nothing happens. The sum of an empty sequence is +0.0 or 0, its
 *            product 1, ANY false, ALL true. MIN, MAX, ARGMIN, ARGMAX, NAN_MIN and NAN_MAX
 *            of one return LOCKSTEP_EMPTY and leave its result unchanged.
 * Errors     OVERFLOW: an exact integer result does not fit I64 (U64 for U64). dst[s]
 *            then holds INT64_MAX or INT64_MIN (UINT64_MAX), every other sequence
 *            has its result, and the error names the first such sequence. EMPTY likewise.
 *            INVALID_ARGUMENT (a dtype, reduction or result that do not belong
 *            together, offsets that decrease or are negative or, with LOCKSTEP_BOUNDED, more than length, of which no
 *            element is read; strides too small, overlap), UNSUPPORTED (offsets in device memory with src where the
 *            backend cannot reach it), and those of lockstep_transpose.
 * Asynchrony blocks unless LOCKSTEP_ASYNC; then OVERFLOW, EMPTY and errors of device offsets come from
 *            lockstep_synchronize, or from the call where the backend has computed already (the CPU does).
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

/* The dtype of a result by default. */
LOCKSTEP_API lockstep_dtype lockstep_default_result(lockstep_reduction reduction, lockstep_dtype dtype);
/* One result from n elements that lie stride elements apart. */
LOCKSTEP_API lockstep_reduce_desc lockstep_reduce_full(lockstep_reduction reduction, lockstep_dtype dtype, int64_t n,
                                                       int64_t stride);
/* One result for each row of a row-major rows x cols matrix. */
LOCKSTEP_API lockstep_reduce_desc lockstep_reduce_rows(lockstep_reduction reduction, lockstep_dtype dtype, int64_t rows,
                                                       int64_t cols, int64_t ld);
/* One result for each column of a row-major rows x cols matrix. */
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

/* The values assumed beyond the ends of an axis a b c d, named as in scipy.ndimage. */
typedef enum lockstep_boundary LOCKSTEP_INT {
  LOCKSTEP_BOUNDARY_NEAREST = 0,  /* a a a | a b c d | d d d */
  LOCKSTEP_BOUNDARY_MIRROR = 1,   /* d c b | a b c d | c b a */
  LOCKSTEP_BOUNDARY_REFLECT = 2,  /* c b a | a b c d | d c b */
  LOCKSTEP_BOUNDARY_WRAP = 3,     /* b c d | a b c d | a b c */
  LOCKSTEP_BOUNDARY_CONSTANT = 4, /* v v v | a b c d | v v v */
  LOCKSTEP_BOUNDARY_VALID = 5     /* none: each sweep shortens every axis of dst by 2 * radius */
} lockstep_boundary;

typedef enum lockstep_form LOCKSTEP_INT {
  LOCKSTEP_GENERAL = 0,      /* 2*radius*rank + 1 coefficients, taps in increasing memory address */
  LOCKSTEP_SYMMETRIC = 1,    /* 1 + radius*rank: centre, then k = 1..radius of each axis, outermost
                              * first; c_k multiplies x[-k] and x[+k] */
  LOCKSTEP_ANTISYMMETRIC = 2 /* as symmetric with -c_k for x[-k]; the centre must be 0 */
} lockstep_form;

/* Computes   a correlation over a star: the taps are the centre and, on each
 *            axis, the radius neighbours on both sides. sweeps > 1 applies it
 *            again to its own result.
 * Shapes     rank 1 to 3; shape outermost first; the innermost stride is 1 (axes longer than one),
 *            src_strides and dst_strides (elements; entries 0..rank-1) give the
 *            others, each at least what the inner axes span. The arrays of a batch
 *            are *_batch_stride elements apart. Under VALID dst has
 *            shape - 2 * radius * sweeps elements on each axis.
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

/* One packed array, one sweep, general form. dst is packed too; under VALID its shape
 * is smaller. A rank outside 1..3, or NULL for shape, gives a description that every
 * call refuses. */
LOCKSTEP_API lockstep_stencil_desc lockstep_stencil_packed(lockstep_dtype dtype, int32_t rank, const int64_t* shape,
                                                           int32_t radius, const double* coefficients,
                                                           lockstep_boundary boundary);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_stencil(lockstep_context* context,
                                                                 const lockstep_stencil_desc* desc, const void* src,
                                                                 void* dst, const lockstep_options* options);

/* ---- shuffle ----------------------------------------------------------- */

typedef enum lockstep_shuffle_kind LOCKSTEP_INT {
  LOCKSTEP_SHUFFLE_IDX = 0,  /* read lane (operand modulo width) of the own segment; operand may be negative */
  LOCKSTEP_SHUFFLE_UP = 1,   /* read lane - operand; the lowest lanes of a segment keep their value */
  LOCKSTEP_SHUFFLE_DOWN = 2, /* read lane + operand; the highest lanes of a segment keep their value */
  LOCKSTEP_SHUFFLE_XOR = 3   /* read lane ^ operand; if that is in a later segment, keep the own value */
} lockstep_shuffle_kind;

/* Computes   CUDA's warp shuffles over an array of warps: src is count elements,
 *            each 32 consecutive ones a warp, cut into segments of width lanes;
 *            dst[i] is the value that the shuffle delivers to lane i % 32.
 * Shapes     count is a multiple of 32, src and dst are packed.
 * Types      elements of 4 or 8 bytes; bits are copied.
 * Operand    IDX: any int32. UP, DOWN: 0 or more; from width on every lane keeps
 *            its value. XOR: 0 to 31.
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
  LOCKSTEP_NORMALIZE_L2 = 0,             /* the row divided by its 2-norm */
  LOCKSTEP_NORMALIZE_RMS = 1,            /* the row divided by its root mean square */
  LOCKSTEP_NORMALIZE_LAYER = 2,          /* the row minus its mean, divided by its standard deviation */
  LOCKSTEP_NORMALIZE_SOFTMAX = 3,        /* the row's exponentials, divided by their sum */
  LOCKSTEP_NORMALIZE_LOG_SOFTMAX = 4,    /* the logarithms of those */
  LOCKSTEP_NORMALIZE_LOGSUMEXP = 5,      /* the logarithm of the sum of the row's exponentials, one number per row */
  LOCKSTEP_NORMALIZE_PICKED = 6,         /* LOG_SOFTMAX of one element per row, which labels names */
  LOCKSTEP_NORMALIZE_RMS_BACKWARD = 7,   /* the gradients of RMS: of the rows, of weight, of bias */
  LOCKSTEP_NORMALIZE_LAYER_BACKWARD = 8, /* the gradients of LAYER */
  LOCKSTEP_NORMALIZATION_COUNT = 9
} lockstep_normalization;

/* Computes   in double, for each of count rows x of length elements:
 *              h = x, or x + residual rounded to dtype; sum = h if sum is not NULL
 *              L2     m = 0; d = max(norm2(h), eps), as in F.normalize
 *              RMS    m = 0; d = sqrt(sumsq(h) / length + eps)
 *              LAYER  m = mean(h); d = sqrt(M2(h) / length + eps)
 *              t = (h - m) / d for F64, (h - m) * (1 / d) for the others
 *              y = t, t * weight, t + bias or fma(t, weight, bias)
 *            and for the kinds from SOFTMAX on:
 *              m = the largest h, of a negative scale the smallest; d = (h - m) * scale
 *              e = E(d); S = the sum of e
 *              SOFTMAX      y = e * (1 / S)
 *              LOG_SOFTMAX  y = d - L(S)
 *              LOGSUMEXP    y = m * scale + L(S), one per row; m * scale if m is infinite
 *              PICKED       y = d[label] - L(S), one per row; the cross-entropy of that row is -y
 *            and for the kinds *_BACKWARD, where g is the row of gradient and weight 1 where it is NULL:
 *              m and d of h as for RMS and LAYER; s = 1 / d; p = the first h of the row, for RMS 0
 *              u = g * weight; A = the sum of u, for RMS 0; B = the sum of the products u * (h - p)
 *              a = A / length; b = (fma(p - m, A, B) * s) / length; t = (h - m) * s
 *              y = fma(-t, b, u - a) * s
 *              weight_gradient = for each column the sum over all rows of the products g * t
 *              bias_gradient = for each column the sum over all rows of g
 *            and dst = y, rounded once to result. With given, rows are parts of longer rows, whose m and d, or m
 *            and S, are given[2 * r] and given[2 * r + 1]: nothing is summed. Of SOFTMAX to PICKED no element is
 *            beyond m.
 * Shapes     row r starts at src + r * src_stride elements and is contiguous; dst,
 *            residual and sum likewise. If count > 1, strides of dst and sum are length or more,
 *            those of src and residual 0 or more. weight and bias: NULL, or length
 *            packed elements, the same for every row. sum needs residual.
 *            LOGSUMEXP and PICKED: the result of row r is dst[r * dst_stride], dst_stride 1 or
 *            more. labels: count packed numbers from 0 to length - 1.
 *            Segments, for kinds from SOFTMAX to PICKED: where offsets is not NULL, row r has the elements
 *            offsets[r] up to, not including, offsets[r + 1] of src, and so many results at the same
 *            places of dst; LOGSUMEXP and PICKED as above. A label is a place in its own segment.
 *            length and the other strides are then ignored, and residual must be NULL.
 *            given: NULL, or 2 * count packed doubles.
 *            Along an axis that is not the last: where inner is 2 or more, so many rows lie side by side. Element k
 *            of row r is src[r / inner * src_stride + k * inner + r % inner]; dst, residual and sum likewise.
 *            count is a multiple of inner. If count > inner, strides of dst and sum are length * inner or more. The
 *            bits are those of the same rows, contiguous. offsets must be NULL, *_BACKWARD needs contiguous rows.
 *            *_BACKWARD: src, residual, weight and eps are those of the call whose gradients are
 *            wanted, gradient is that of its dst, dst that of src (and of residual). Rows of gradient lie
 *            as those of src do, gradient_stride apart, 0 or more. weight_gradient and bias_gradient:
 *            NULL, or length packed elements. They have no bias, sum or given: the gradients do not depend
 *            on bias; where the other call wrote sum, give it as src, without residual.
 * Types      dtype (src, residual, sum, gradient): F16, BF16, F32, F64. result (dst): dtype,
 *            F16, BF16 or F32; of LOGSUMEXP and PICKED F64 too, and so of SOFTMAX to PICKED with given (with an
 *            S of 1 SOFTMAX then is e itself); of *_BACKWARD dtype. weight_dtype (weight, bias and their
 *            gradients): dtype or F32. eps is for L2, RMS, LAYER and *_BACKWARD, scale for the others: any finite
 *            double but 0. The two share their place in the struct, as weight and labels do.
 * Exactness  order id 1 (share/doc/lockstep/order.md): sumsq is SUM_OF_SQUARES and norm2 NORM2 of
 *            lockstep_square_sum in F64, mean the SUM of the row / length. M2, the sum of (h - mean)^2,
 *            is computed leaf by leaf about each leaf's own mean, and leaves are joined by Chan's
 *            formula (order.md), so that a large mean causes no cancellation. Quotients, roots and 1 / d
 *            are rounded once each, in double. So a row has the same bits in any batch, with any number
 *            of threads. A NaN result is the canonical quiet NaN of its type. Relative error of d <= (16
 *            + 7 + ceil(log2(length / 2048)) + 4) * 2^-53 for L2 and RMS, and for LAYER twice that times
 *            (1 + |m| / the standard deviation). L2 of F64 is rescaled like NORM2; in RMS and LAYER of
 *            F64, squares beyond 2^1023 are infinite (dst is 0 or NaN), and those below 2^-1074 are 0
 *            (with eps 0 dst is infinite or NaN): scale rows before. A NaN makes its whole row NaN. An
 *            infinity becomes NaN and the rest of its row 0; under LAYER the whole row is NaN. With eps
 *            0 a row of zeros (LAYER: of equal elements) gives NaN. The mean of equal elements is that
 *            element, of F64 too, where their rounded sum divided by n need not be: such a row gives 0
 *            where eps is not 0.
 *            From SOFTMAX on: E and L are the programs of exp and log in double that order.md
 *            has, each within 2 units in the last place; S is the SUM of order id 1; every
 *            operation is rounded once. Before its last rounding SOFTMAX has a relative error of
 *            at most (32 + ceil(log2(length / 2048)) + 2 |d|) * 2^-53, so results of 16 and 32
 *            bits are within 0.51 units in the last place. The absolute error of the others is
 *            at most that plus 2 (L(S) + |m * scale|) * 2^-53. e is 0 where d < -708.
 *            Elements of -inf (inf for a negative scale) give exactly 0; of LOG_SOFTMAX and
 *            PICKED -inf. A row of only these gives NaN, of LOGSUMEXP -inf. An infinity of the
 *            other sign makes its row NaN (LOGSUMEXP: inf), and so does a NaN.
 * Memory     host, pinned, managed or device, in any mix, for all arrays.
 * Aliasing   src == dst normalizes in place, if result == dtype and src_stride ==
 *            dst_stride, but for LOGSUMEXP and PICKED. sum may be src or residual, with the
 *            same stride; that array then becomes h. Arrays that are written must not overlap
 *            otherwise.
 * Lifetime   weight, bias, labels, offsets, residual, sum, given, gradient and the gradients of weight and bias
 *            are read and written during the call; a plan keeps their addresses, and they must outlive it.
 * Asynchrony blocks unless LOCKSTEP_ASYNC.
 * Empty      count or length 0: nothing happens, and weight_gradient and bias_gradient stay as they are.
 *            LOGSUMEXP of an empty segment is -inf, PICKED of one
 *            is an error, as no label is within it; elements of no segment stay as they were.
 * Errors     INVALID_ARGUMENT (a kind, dtype, result or weight_dtype that is none of
 *            the above, eps negative, infinite or NaN, scale 0, infinite or NaN,
 *            weight or bias of a kind from SOFTMAX to PICKED, labels that are NULL or not all
 *            within the row, LOGSUMEXP or PICKED of rows of length 0, strides too small,
 *            sum without residual, offsets that decrease or are negative, offsets of another kind than
 *            SOFTMAX to PICKED or with a residual, given with either or of a kind *_BACKWARD, gradient NULL, bias or
 *            sum of a kind *_BACKWARD, gradient or a gradient of weight or bias of another kind, NULL, misaligned or
 *            overlapping pointers, inner negative, no divisor of count, or 2 or more with offsets or of a kind
 *            *_BACKWARD), UNSUPPORTED (offsets in device memory with src where the backend cannot reach
 *            it), and those of
 *            lockstep_transpose. A label that CUDA finds outside its row leaves that dst as it was.
 * Threads    safe. Source: backends/<name>/normalize.*, lib/bits/functions.hpp; Chan, Golub and
 *            LeVeque, "Updating formulae and a pairwise algorithm for computing sample
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
  union {
    double eps;   /* L2, RMS, LAYER, *_BACKWARD */
    double scale; /* SOFTMAX to PICKED */
  };
  union {
    const void* weight;    /* NULL: 1 */
    const int64_t* labels; /* PICKED */
  };
  const void* bias;       /* NULL: 0 */
  const void* residual;   /* NULL: none */
  void* sum;              /* NULL: not wanted */
  const int64_t* offsets; /* NULL, or count + 1 element offsets */
  const double* given;    /* NULL: the rows' own; else m and d, or S, of each row */
  /* Of *_BACKWARD; else NULL. */
  const void* gradient;
  int64_t gradient_stride;
  void* weight_gradient; /* NULL: not wanted */
  void* bias_gradient;   /* NULL: not wanted */
  int64_t inner;         /* 0 or 1: rows are contiguous; else so many lie side by side */
} lockstep_normalize_desc;

/* Packed rows to packed rows of the same type (LOGSUMEXP and PICKED: to packed results), without weight, bias and
 * residual. eps is the scale of SOFTMAX to PICKED. Of *_BACKWARD set gradient, which is packed too. */
LOCKSTEP_API lockstep_normalize_desc lockstep_normalize_rows(lockstep_normalization kind, lockstep_dtype dtype,
                                                             int64_t rows, int64_t cols, double eps);
/* The same along the middle axis of a packed array of outer x length x inner elements: outer * inner rows. A weight
 * has length elements. */
LOCKSTEP_API lockstep_normalize_desc lockstep_normalize_axis(lockstep_normalization kind, lockstep_dtype dtype,
                                                             int64_t outer, int64_t length, int64_t inner, double eps);
/* Segments to segments of the same type, or to packed results: SOFTMAX to PICKED. */
LOCKSTEP_API lockstep_normalize_desc lockstep_normalize_segments(lockstep_normalization kind, lockstep_dtype dtype,
                                                                 int64_t segments, const int64_t* offsets,
                                                                 double scale);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_normalize(lockstep_context* context,
                                                                   const lockstep_normalize_desc* desc, const void* src,
                                                                   void* dst, const lockstep_options* options);

/* ---- scan -------------------------------------------------------------- */

/* Computes   for every element of count sequences the reduction of all elements of
 *            its sequence up to and including it; exclusive: of those before it.
 *            With before, each sequence is the rest of a longer one, from its element `first` on, and
 *            before describes the elements that precede it.
 * Shapes     sequences are described as in lockstep_reduce_desc, by members of the
 *            same names. The result of element i of sequence s goes to
 *            dst[s * dst_sequence_stride + i * dst_element_stride], with offsets to
 *            dst[(offsets[s] + i) * dst_element_stride]. dst_element_stride is 1 or
 *            more if length > 1 or offsets are given. Results must not overlap: dst_sequence_stride is at least
 *            what a sequence's results span, or dst_element_stride is at least what
 *            the results of all sequences at one index span.
 * Before     for each sequence, packed. SUM of floats: the sum up to the element before, as a double that is
 *            not yet rounded, and behind it the sums of the largest aligned subtrees of order id 1 that together
 *            hold all leaves before, in their order, as doubles: as many as first / 2048 has bits that are 1.
 *            first is a multiple of 2048. SUM of integers: the sum, 128 bits, as two int64, the lower first. MIN and
 *            MAX: the result of the element before, of dtype. NULL: first is 0 and nothing stands before.
 * Types      SUM, MIN and MAX of F16, BF16, F32, F64, I32 and I64. result: dtype for
 *            MIN and MAX; I64 for SUM of integers; F64, F32 or dtype for SUM of
 *            floats, rounded once.
 * Exactness  order id 1 (order.md): a float SUM at element i is, in double,
 *            (before + row) + group: the tree of order id 1 over the whole leaves
 *            before i's leaf, the rows of 128 before i's row in that leaf, and the
 *            elements up to i in its row. It depends on nothing after i, and not on
 *            how the work is divided. Relative error of n terms <= (16 + 7 +
 *            ceil(log2(n/2048)) + 36) * 2^-53 * sum|x| / |sum x|. An exclusive result is
 *            bit for bit the inclusive one of the element before. Integers are exact.
 *            From a NaN on, all results of its sequence are the canonical quiet NaN,
 *            for MIN and MAX too. -0.0 < +0.0.
 *            The first exclusive result is 0 (+0.0) for SUM; for MIN it is the
 *            largest value of dtype (infinity for floats), for MAX the smallest.
 * Memory     host, pinned, managed or device, in any mix, for src, dst and offsets.
 * Aliasing   src == dst is in place, if dtype == result and dst's strides equal
 *            src's. Otherwise dst must not overlap src or offsets.
 * Asynchrony blocks unless LOCKSTEP_ASYNC.
 * Empty      count 0, length 0, an empty segment: nothing happens.
 * Errors     OVERFLOW: an exact sum does not fit I64. That result is INT64_MAX or
 *            INT64_MIN; later sums that fit are exact again; the error names the
 *            first such sequence. INVALID_ARGUMENT (dtype, reduction and result that
 *            do not fit together, offsets that decrease or are negative, strides
 *            too small, overlap, before with offsets, first negative, not a multiple of 2048 for SUM of floats, or
 *            not 0 without before), UNSUPPORTED (device offsets, as lockstep_reduce), and those of lockstep_transpose.
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
  int32_t exclusive;  /* 0 or 1 */
  int64_t first;      /* the first element's index in the whole sequence */
  const void* before; /* NULL, or what stands before it */
} lockstep_scan_desc;

/* One sequence of n elements; each row or each column of a row-major rows x cols
 * matrix; segments. Results have the layout and the dtype of src (sums of integers
 * are I64). */
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

/* ---- sums -------------------------------------------------------------- */

typedef enum lockstep_sums_kind LOCKSTEP_INT {
  LOCKSTEP_SUMS_DOT = 0,                  /* sum x * y */
  LOCKSTEP_SUMS_SQUARED_DIFFERENCES = 1,  /* sum (x - y)^2: the squared distance */
  LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES = 2, /* sum |x - y|: the distance in the 1-norm */
  LOCKSTEP_SUMS_ABSOLUTE = 3,             /* sum |x|: the 1-norm */
  LOCKSTEP_SUMS_MEAN_VARIANCE = 4,        /* two results: mean, variance */
  LOCKSTEP_SUMS_DIGEST = 5                /* two results: 128 bits that tell apart what has other bits */
} lockstep_sums_kind;

/* Computes   for each of count sequences the sum that kind names, over its elements x and,
 *            for kinds with two arrays, the elements y of other. MEAN_VARIANCE:
 *            mean = sum x / n, variance = sum (x - mean)^2 / (n - correction). DIGEST: two sums
 *            modulo 2^64 over the sequence's bytes, 8 at a time, each mixed with its place and
 *            dtype (order.md has the formula). Equal sequences have equal digests in any
 *            layout; others differ but for a chance of about 2^-128. Parts that begin at a
 *            multiple of 8 elements add up: correction is then the index of the first element.
 *            Not a cryptographic hash: whoever wants to can make two sequences of one digest.
 * Shapes     sequences of src are described as in lockstep_reduce_desc, by members of the
 *            same names. Element i of sequence s of other is
 *            other[s * other_sequence_stride + i * other_element_stride]; with offsets
 *            other[(offsets[s] + i) * other_element_stride]. other_element_stride is 1 or
 *            more if length > 1 or offsets are given, other_sequence_stride 0 or more if
 *            count > 1: with 0 every sequence uses the same elements of other.
 * Types      all dtypes, those of src and other the same; MEAN_VARIANCE: F16, BF16, F32
 *            and F64.
 * Results    dst[s], packed; MEAN_VARIANCE: the mean in dst[2 * s], the variance in
 *            dst[2 * s + 1]; DIGEST: both sums there, as U64. Floats give F64, or F32,
 *            F16 or BF16 if result says so (one final rounding, to nearest even); integers
 *            give I64, U64 gives U64. BOOL gives I64: DOT is the number of places where both
 *            are true, the differences where exactly one is.
 * Exactness  order id 1 (order.md): floats are added in the tree of lockstep_reduce in double, by
 *            fma(x, y, sum), by fma(d, d, sum) with d = x - y rounded once, or by sum + |d| and
 *            sum + |x|. DOT of an array with itself is its SUM_OF_SQUARES, bit for bit. Error of
 *            n terms t <= (18 + 7 + ceil(log2(n / 2048))) * 2^-53 * sum|t|, which is a relative
 *            error for all kinds except DOT and the mean. The mean is the SUM of lockstep_reduce
 *            divided by n; of equal finite elements it is that element, of F64 too, where the
 *            rounded sum may be off, and their variance is 0. The variance's squares are summed leaf
 *            by leaf about each leaf's own mean, and leaves are joined by Chan's formula
 *            (order.md has its operands in order), so that a large mean causes no cancellation.
 *            Its relative error <= 4 * (16 + 7 + ceil(log2(n / 2048)) + 4) * 2^-53 * (1 + |mean|
 *            / the standard deviation). Products and squares of F64 beyond 2^1023 are infinite. A
 *            NaN makes its result the canonical quiet NaN. Results of integers are exact.
 * Memory     host, pinned, managed or device, in any mix, for all arrays.
 * Aliasing   dst must not overlap src, other or offsets. other may be src, or overlap it.
 * Lifetime   other is read during the call; a plan keeps its address, and it must outlive
 *            the plan.
 * Asynchrony blocks unless LOCKSTEP_ASYNC.
 * Empty      count 0: nothing happens. The sums of an empty sequence are +0.0 or 0; its mean
 *            and variance are NaN. The variance is NaN if n <= correction.
 * Errors     OVERFLOW: an exact integer result does not fit I64 (U64 for U64). dst[s] then
 *            holds INT64_MAX or INT64_MIN (UINT64_MAX), every other sequence has its result,
 *            and the error names the first such sequence. INVALID_ARGUMENT (kind, dtype and
 *            result that do not fit together, other NULL if kind needs it, or given if kind
 *            does not, correction negative, or not 0 for another kind, or not a multiple of 8
 *            for DIGEST, offsets that decrease or are negative, strides too small, overlap),
 *            UNSUPPORTED (device offsets, as lockstep_reduce), and those of lockstep_transpose.
 * Threads    safe. Source: backends/<name>/sums.* */
typedef struct lockstep_sums_desc {
  size_t size; /* sizeof(lockstep_sums_desc) */
  lockstep_sums_kind kind;
  lockstep_dtype dtype;
  lockstep_dtype result;
  int64_t count, length;
  int64_t element_stride, sequence_stride;
  const int64_t* offsets; /* NULL, or count + 1 element offsets */
  const void* other;      /* y; NULL for ABSOLUTE and MEAN_VARIANCE */
  int64_t other_element_stride, other_sequence_stride;
  int64_t correction; /* MEAN_VARIANCE: 0, or 1 for the variance of a sample; DIGEST: the first element's index */
} lockstep_sums_desc;

/* n elements; each row of row-major rows x cols matrices, ld and other_ld elements from
 * row to row; segments. The result is the widest: F64, I64 or U64 (DIGEST: U64). other: NULL
 * for the kinds of one array. */
LOCKSTEP_API lockstep_sums_desc lockstep_sums_full(lockstep_sums_kind kind, lockstep_dtype dtype, int64_t n,
                                                   const void* other);
LOCKSTEP_API lockstep_sums_desc lockstep_sums_rows(lockstep_sums_kind kind, lockstep_dtype dtype, int64_t rows,
                                                   int64_t cols, int64_t ld, const void* other, int64_t other_ld);
LOCKSTEP_API lockstep_sums_desc lockstep_sums_segments(lockstep_sums_kind kind, lockstep_dtype dtype, int64_t segments,
                                                       const int64_t* offsets, const void* other);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_sums(lockstep_context* context, const lockstep_sums_desc* desc,
                                                              const void* src, void* dst,
                                                              const lockstep_options* options);

/* The DIGEST of n packed elements, into two words of host memory; waits for it. Errors: those of lockstep_sums, and
 * INVALID_ARGUMENT (digest is NULL). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_digest(lockstep_context* context, lockstep_dtype dtype,
                                                                int64_t n, const void* src, uint64_t digest[2]);

/* ---- reduce_axes ------------------------------------------------------- */

/* Computes   a reduction over any axes of an array (NumPy's axis=(0, 2)): one result for
 *            each element of the array of the kept axes.
 * Shapes     shape[k] and src_strides[k] belong to axis k; strides are in elements, 0 or
 *            more (axes longer than one): any order in memory; elements may be shared. rank 1
 *            to 8. axes[0..axis_count-1] are the reduced axes, each once, in any order;
 *            axis_count is 1 to rank. dst is packed and row-major: the kept axes in their
 *            order (keepdims does not change the elements).
 * Order      the sequence of a result is its elements in row-major order over the reduced
 *            axes, these in ascending order of their numbers, in whatever order axes lists
 *            them. So the bits are those of lockstep_permute to a packed array with the
 *            reduced axes last, and lockstep_reduce of its rows. ARGMIN and ARGMAX count
 *            in that order.
 * Types      every reduction of lockstep_reduce and lockstep_square_sum, with their dtypes
 *            and results.
 * Exactness  that of lockstep_reduce; n is the product of the reduced axes.
 * Memory     host, pinned, managed or device, in any mix.
 * Aliasing   dst must not overlap src.
 * Asynchrony blocks unless LOCKSTEP_ASYNC.
 * Empty      a kept axis of 0: nothing happens. A reduced axis of 0: empty sequences, as in
 *            lockstep_reduce.
 * Errors     OVERFLOW and EMPTY as in lockstep_reduce; the sequence that they name is an
 *            index of dst. INVALID_ARGUMENT (a wrong rank, axis_count or axis, an axis twice,
 *            negative sizes or strides, dtype, reduction and result that do not fit
 *            together, overlap), and those of lockstep_transpose.
 * Threads    safe. Source: backends/<name>/reduce_axes.* */
typedef struct lockstep_reduce_axes_desc {
  size_t size; /* sizeof(lockstep_reduce_axes_desc) */
  lockstep_reduction reduction;
  lockstep_dtype dtype;
  lockstep_dtype result;
  int32_t rank;
  int32_t axis_count;
  int32_t axes[LOCKSTEP_MAX_RANK];
  int64_t shape[LOCKSTEP_MAX_RANK];
  int64_t src_strides[LOCKSTEP_MAX_RANK];
} lockstep_reduce_axes_desc;

/* A packed array. A rank or axis_count outside 1..8, or NULL for an array, gives a
 * description that every call refuses. */
LOCKSTEP_API lockstep_reduce_axes_desc lockstep_reduce_axes_packed(lockstep_reduction reduction, lockstep_dtype dtype,
                                                                   int32_t rank, const int64_t* shape,
                                                                   int32_t axis_count, const int32_t* axes);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_reduce_axes(lockstep_context* context,
                                                                     const lockstep_reduce_axes_desc* desc,
                                                                     const void* src, void* dst,
                                                                     const lockstep_options* options);

/* ---- convert ----------------------------------------------------------- */

/* Computes   dst[i_0, i_1, ...] = src[i_0, i_1, ...] * scale as another type: a cast,
 *            or a transpose or permute with a cast, in one pass over memory.
 * Shapes     shape[k], src_strides[k] and dst_strides[k] belong to axis k of both arrays;
 *            strides in elements, >= 1 where the axis is longer than one; rank 1 to 8.
 *            Axes may lie in any order in memory, on both sides: the transpose of a
 *            matrix is its strides in the other order.
 * Types      dtype (src) and result (dst): all; they may be the same.
 *            scale: any double, infinities and NaN too; 1 for a plain cast.
 * Exactness  x * scale is rounded to double, then to result, both to nearest even. With scale 1 the first step changes
 *            nothing; nor, for dtype F16, BF16 and F32, with any scale that is a float (at most 24 significant bits):
 *            dst is then the correctly rounded product. Otherwise dst may be one unit in the last place off the
 *            correctly rounded product, where that lay close to half way. Values beyond the largest of result become
 *            infinities, as rounding to nearest says; subnormals are kept on both sides, and so is the sign of zero.
 *            Every NaN, also of src, becomes the canonical quiet NaN of result (0x7E00, 0x7FC0, 0x7FC00000,
 *            0x7FF8000000000000), even where no type changes. Same bits everywhere. An integer with scale 1 is
 *            rounded to result once, with another scale to double first. An integer result loses its fraction and
 *            saturates, NaN is 0; BOOL is 0 where the value is 0, else 1. Among integers all that fits is exact.
 * Memory     host, pinned, managed or device, in any mix.
 * Aliasing   src and dst must not overlap, nor may elements of dst: sorted by size,
 *            each dst stride is at least what the axes of smaller strides span.
 *            Elements of src may overlap.
 * Asynchrony blocks unless LOCKSTEP_ASYNC.
 * Empty      an axis of 0: nothing is touched, pointers may be NULL.
 * Errors     INVALID_ARGUMENT (a dtype or result that is not one, a wrong rank, negative sizes,
 *            strides too small, overlap), and those of lockstep_transpose.
 * Threads    safe. Source: backends/<name>/convert.* */
typedef struct lockstep_convert_desc {
  size_t size; /* sizeof(lockstep_convert_desc) */
  lockstep_dtype dtype;
  lockstep_dtype result;
  double scale;
  int32_t rank;
  int64_t shape[LOCKSTEP_MAX_RANK];
  int64_t src_strides[LOCKSTEP_MAX_RANK];
  int64_t dst_strides[LOCKSTEP_MAX_RANK];
} lockstep_convert_desc;

/* From a packed array to a packed array. shape is that of src, and axis k of dst is axis
 * perm[k] of src, as in lockstep_permute; perm NULL: axes keep their order. The
 * description has them in dst's order. A rank outside 1..8, a NULL shape, or a perm that
 * is not one, gives a description that every call refuses. */
LOCKSTEP_API lockstep_convert_desc lockstep_convert_packed(lockstep_dtype dtype, lockstep_dtype result, double scale,
                                                           int32_t rank, const int64_t* shape, const int32_t* perm);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_convert(lockstep_context* context,
                                                                 const lockstep_convert_desc* desc, const void* src,
                                                                 void* dst, const lockstep_options* options);

/* ---- map --------------------------------------------------------------- */

typedef enum lockstep_function LOCKSTEP_INT {
  LOCKSTEP_MAP_EXP = 0,
  LOCKSTEP_MAP_EXPM1 = 1, /* exp(x) - 1 */
  LOCKSTEP_MAP_LOG = 2,
  LOCKSTEP_MAP_LOG1P = 3, /* log(1 + x) */
  LOCKSTEP_MAP_SQRT = 4,
  LOCKSTEP_MAP_RSQRT = 5,      /* 1 / sqrt(x) */
  LOCKSTEP_MAP_RECIPROCAL = 6, /* 1 / x */
  LOCKSTEP_MAP_TANH = 7,
  LOCKSTEP_MAP_SIGMOID = 8,    /* 1 / (1 + exp(-x)) */
  LOCKSTEP_MAP_SILU = 9,       /* x / (1 + exp(-x)) */
  LOCKSTEP_MAP_GELU = 10,      /* x (1 + erf(x / sqrt(2))) / 2 */
  LOCKSTEP_MAP_GELU_TANH = 11, /* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
  LOCKSTEP_MAP_ERF = 12,
  LOCKSTEP_MAP_SOFTPLUS = 13, /* log(1 + exp(x)) */
  LOCKSTEP_FUNCTION_COUNT = 14
} lockstep_function;

/* "exp", "expm1", ...; NULL for a value that is not a function. */
LOCKSTEP_API const char* lockstep_function_name(lockstep_function function);

/* Computes   dst[i_0, i_1, ...] = function(src[i_0, i_1, ...]) * scale as result, in one pass over
 *            memory, axes in any order. With times, a second array, that value times its element: the gated
 *            units silu(a) * b and gelu(a) * b.
 * Shapes     as in lockstep_convert_desc, by members of the same names.
 * Types      dtype (src) and result (dst): F16, BF16 or F32 each; they may be the same.
 *            scale: any double; 1 for the function alone. times: elements of dtype that lie as those of
 *            src do, by src_strides; NULL: none.
 * Exactness  With scale 1 dst is the correctly rounded value: the number of result that is nearest
 *            to the exact value of the mathematical function, ties to even. That is proven for all
 *            2^32 arguments by tests/functions/all. With any other scale,
 *            the value of a fixed program in double (lib/bits/functions.hpp), times scale, rounded to
 *            double and then to result. With times, that double is multiplied by the element of times, and
 *            the exact product is rounded to result, once. Values at infinities are the limits: 0 for
 *            exp(-inf), -0 for silu and gelu of -inf. log and log1p are -inf at 0 and at -1; log, log1p,
 *            sqrt and rsqrt are NaN below their domain; rsqrt and reciprocal of a zero are infinities of its
 *            sign. Every NaN is the canonical quiet NaN of result. Subnormals are kept. Same bits
 *            everywhere.
 * Memory     host, pinned, managed or device, in any mix.
 * Aliasing   as for lockstep_convert, or src == dst where dtype is result and each src stride
 *            is the dst stride. times may overlap src, but not dst.
 * Asynchrony blocks unless LOCKSTEP_ASYNC.
 * Empty      an axis of 0: nothing is touched, pointers may be NULL.
 * Errors     UNSUPPORTED (F64, whose correctly rounded values no short program gives),
 *            INVALID_ARGUMENT (no such function), and those of lockstep_convert.
 * Threads    safe. Source: lib/bits/functions.hpp; backends/<name>/convert.* */
typedef struct lockstep_map_desc {
  size_t size; /* sizeof(lockstep_map_desc) */
  lockstep_dtype dtype;
  lockstep_dtype result;
  double scale;
  int32_t rank;
  int64_t shape[LOCKSTEP_MAX_RANK];
  int64_t src_strides[LOCKSTEP_MAX_RANK];
  int64_t dst_strides[LOCKSTEP_MAX_RANK];
  lockstep_function function;
  const void* times;
} lockstep_map_desc;

/* From a packed array to a packed array, scale 1, times NULL; shape and perm as for lockstep_convert_packed. */
LOCKSTEP_API lockstep_map_desc lockstep_map_packed(lockstep_function function, lockstep_dtype dtype,
                                                   lockstep_dtype result, int32_t rank, const int64_t* shape,
                                                   const int32_t* perm);

LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_map(lockstep_context* context, const lockstep_map_desc* desc,
                                                             const void* src, void* dst,
                                                             const lockstep_options* options);

/* ---- any op ------------------------------------------------------------ */

/* Runs an op given by its number:
 * lockstep_execute(context, LOCKSTEP_TRANSPOSE, &desc, src, dst, options) does what
 * lockstep_transpose(context, &desc, src, dst, options) does. desc is the description
 * of that op (lockstep_reduce_desc for SQUARE_SUM too), whose first member is its
 * size. Meant for bindings and for tables of calls.
 * Errors: those of the call; INVALID_ARGUMENT (no such op, a size that the op's
 * description never had). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_execute(lockstep_context* context, lockstep_op op,
                                                                 const void* desc, const void* src, void* dst,
                                                                 const lockstep_options* options);

/* ---- plans ------------------------------------------------------------- */

/* A plan fixes backend, device, variant and workspace for a call that is
 * repeated: executing it allocates nothing. options as for the call itself
 * (LOCKSTEP_DEVICE_DATA tells auto where the data will be). Stream and workspace
 * are given at execution. Naming a workspace here promises one at each execution, so
 * the plan allocates none. The context must outlive the plan, and so must the
 * offsets of a segmented reduction. For a src that is not aligned to 16 bytes auto
 * chooses the variant again.
 * An execution allocates only in these cases: the first on a caller's stream; the
 * first in place (src == dst), if that needs more workspace; a promised workspace that
 * was not given; copies of data that the backend cannot reach; the text of an error;
 * new threads.
 * Tuning: with LOCKSTEP_TUNE all variants of the backend that auto may choose for the
 * call are timed, in alternation, on memory and a queue of the library's own. The
 * fastest is remembered in the file that lockstep_tuning_get names, for calls of the
 * same class: library version, backend, device with its driver or ISA, threads, op,
 * types, layout, and sizes to a power of two. The lengths of segments are not part of
 * the class. Later plans of that class use that variant, with the flag (which then
 * measures nothing) or without it. Calls without a plan never do. A forced variant
 * has precedence; a remembered variant that refuses the call, or no longer exists, is
 * passed over. Every such variant gives the same bits. Measuring takes about twenty
 * times the call for each variant and memory for src and dst, and reads host offsets.
 * It allocates, so do not tune while a stream is being captured. A file that cannot be
 * trusted, read or written is no failure: the choice then holds for this context's
 * plans, and lockstep_plan_get's why says so.
 * Errors: those of the call except for its pointers; INVALID_ARGUMENT (plan is NULL;
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
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_sums(lockstep_context* context,
                                                                   const lockstep_sums_desc* desc,
                                                                   const lockstep_options* options,
                                                                   lockstep_plan** plan);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_reduce_axes(lockstep_context* context,
                                                                          const lockstep_reduce_axes_desc* desc,
                                                                          const lockstep_options* options,
                                                                          lockstep_plan** plan);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_convert(lockstep_context* context,
                                                                      const lockstep_convert_desc* desc,
                                                                      const lockstep_options* options,
                                                                      lockstep_plan** plan);
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_map(lockstep_context* context,
                                                                  const lockstep_map_desc* desc,
                                                                  const lockstep_options* options,
                                                                  lockstep_plan** plan);
/* A plan of an op given by its number, as in lockstep_execute. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_create(lockstep_context* context, lockstep_op op,
                                                                     const void* desc, const lockstep_options* options,
                                                                     lockstep_plan** plan);

/* What a plan has chosen, in the form of lockstep_last_run: backend, variant (the one
 * for src != dst, if in place would use another), why, device, order, workspace.
 * The texts are valid until this thread's next call of this function. Errors:
 * INVALID_ARGUMENT (NULL, info of unknown size). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_get(const lockstep_plan* plan, lockstep_run_info* info);

/* Bytes of workspace that an execution needs at most (0: none). Errors:
 * INVALID_ARGUMENT (plan or bytes is NULL). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_workspace(const lockstep_plan* plan, size_t* bytes);

/* Runs the plan on src and dst. options may be NULL; only LOCKSTEP_ASYNC, LOCKSTEP_PLACED,
 * stream, workspace and workspace_bytes are used. Errors: those of the call;
 * INVALID_ARGUMENT (plan is NULL, a workspace smaller than this execution needs);
 * UNSUPPORTED (a forced variant that does not take these pointers). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_plan_execute(lockstep_plan* plan, const void* src, void* dst,
                                                                      const lockstep_options* options);

/* Destroys a plan; NULL is allowed. Waits for its queued work, except work on a
 * caller's stream; lockstep_synchronize reports a failure. */
LOCKSTEP_API void lockstep_plan_destroy(lockstep_plan* plan);

/* ---- measuring --------------------------------------------------------- */

enum {
  LOCKSTEP_COLD = 8u /* empty the caches before each sample; otherwise data may still be cached */
};

/* Times the plan on src and dst, samples times, into ms[0..samples-1]
 * (milliseconds, in the order taken; overwrites dst). If the backend has a clock and
 * can reach src and dst, this is device time, queued behind a blocking kernel so that
 * launch cost is hidden. Otherwise it is host time of the whole call, with copies.
 * Without LOCKSTEP_COLD a sample may be the mean of several runs back to back. Warms
 * up first. flags: LOCKSTEP_COLD.
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
  LOCKSTEP_LIMIT_FMA_F32 = 8, /* bytes counts operations, two for each fused multiply-add; moves nothing */
  LOCKSTEP_LIMIT_FMA_F64 = 9
} lockstep_limit;

/* Times the fastest of several ways to move bytes, or to do that many operations, on
 * a backend ("cpu", "cuda:1") with this context's threads. Speeds are given as a
 * fraction of this limit. Allocates what it needs. The results of multiply-adds are
 * compared with the host's. Errors: NO_BACKEND, UNSUPPORTED (a
 * limit that the backend does not have), INVALID_ARGUMENT (NULL, no such limit, an unknown flag, samples < 1, bytes
 * < 2), OUT_OF_MEMORY, BACKEND_FAILED (results differ, too), BACKEND_LOST. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_measure_limit(lockstep_context* context, const char* backend,
                                                                       lockstep_limit limit, size_t bytes,
                                                                       uint32_t flags, int32_t samples, double* ms);

#ifdef __cplusplus
}
#endif
#endif
