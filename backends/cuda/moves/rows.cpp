// rows.cpp - the rows of transpose and permute: dst[i_perm[0], ...] = src[i_0, ...] of up to eight axes, of which a
// transpose has two and its batch.
//
// Idea    The host fuses axes that stay together and widens elements whose neighbours stay neighbours (axes.hpp). What
//         is left goes by `tiles`, `gather` or `wide`, whichever is estimated to be the fastest; short rows that a
//         thread can hold go by `registers`, planes of 2 to 4 channels by `pixels`. In place `swap_tiles` turns two
//         mirrored tiles of a square, and `through_workspace` copies any other matrix first.
// Moves   every element once in, once out; no arithmetic but the index's.
// Limit   DRAM; the ceiling is a device-to-device copy of the same bytes.
// Watch   Kernels divide by a multiplication and a shift (divide.hpp), valid below 2^31, so larger arrays go in parts.
// Source  Lyakh, "An efficient tensor transpose algorithm", 2015, for the idea of fusing first; figures in
//         tests/results.
#include <algorithm>
#include <limits>
#include <optional>

#include "../device/queue.hpp"
#include "../ops.hpp"
#include "../transpose/transpose.hpp"
#include "moves.hpp"
#include "pixels.hpp"
#include "registers.hpp"
#include "thin.hpp"

namespace lockstep::cuda {
namespace {

// A variant is chosen before a plan knows its pointers.
axes expected(const lockstep_call& call) { return simplified(call, pointers::assumed_aligned); }
axes given(const lockstep_call& call) { return simplified(call, pointers::as_given); }

// The two fastest axes as a matrix, the others around it. A transpose is one as it stands, whatever its size.
std::optional<wide_job> matrix_of(const lockstep_call& call, const axes& simple) {
  const bool transposes = call.op == LOCKSTEP_TRANSPOSE;
  if (!transposes && !simple.is_matrix()) return {};
  wide_job job;
  job.src = simple.src, job.dst = simple.dst;
  if (transposes) {
    const lockstep_transpose_desc& d = call.transpose;
    job.element_bytes = d.element_bytes;
    job.rows = d.rows, job.cols = d.cols, job.src_ld = d.src_ld, job.dst_ld = d.dst_ld;
    if (d.batch > 1) job.outer[job.outer_axes++] = {d.batch, d.src_batch_stride, d.dst_batch_stride};
    return job;
  }
  const int i = simple.fastest_dst(), j = simple.fastest_src();
  job.element_bytes = static_cast<size_t>(simple.element_bytes);
  job.rows = simple.at[i].count, job.src_ld = simple.at[i].src;
  job.cols = simple.at[j].count, job.dst_ld = simple.at[j].dst;
  for (int k = 0; k < simple.rank; ++k)
    if (k != i && k != j) job.outer[job.outer_axes++] = simple.at[k];
  return job;
}

// ---- which is the fastest ----------------------------------------------------------------
bool wide_in_chunks(const wide_job& job) {
  const auto whole = [&](int64_t stride) { return stride * static_cast<int64_t>(job.element_bytes) % 16 == 0; };
  bool all = whole(job.rows) && whole(job.cols) && whole(job.src_ld) && whole(job.dst_ld);
  for (int k = 0; k < job.outer_axes; ++k) all = all && whole(job.outer[k].src) && whole(job.outer[k].dst);
  return all;
}

// Tiles of 16-byte accesses. Where DRAM is the limit they are the fastest there is, if little of them is padding; in
// the L2 where there are enough of them, by the bytes.
bool wide_pays(const lockstep_queue& queue, const axes& a, const wide_job& job, double others) {
  const int64_t bytes = a.elements() * a.element_bytes;
  if (bytes > queue.facts->l2_bytes && is_thin(job)) return true;
  const move_tuning& tuned = queue.facts->tuned.moves;
  const double padding = wide_padding(job);
  if (2 * bytes > queue.facts->l2_bytes)
    return padding <= tuned.wide_padding && (a.element_bytes >= 4 || wide_in_chunks(job));
  return padding <= tuned.wide_padding_in_l2 && wide_in_chunks(job) && wide_tiles(job) >= tuned.has.processors &&
         tuned.wide_launch + static_cast<double>(bytes) * tuned.wide_byte * padding * measured_processors /
                                 static_cast<double>(tuned.has.processors) <
             others;
}

bool tiles_fit(const axes& a) {  // but for addresses
  tiles_shape shape;
  return shape_tiles(a, pointers::assumed_aligned, shape);
}

enum class move_by { tiles, gather, wide };

move_by choose(const lockstep_queue& queue, const axes& a, const std::optional<wide_job>& job) {
  if (a.rank == 0) return move_by::gather;
  const bool parts = needs_parts(a);
  if (parts && job) return move_by::wide;
  if (parts && tiles_fit(a)) return move_by::tiles;
  const move_tuning& tuned = queue.facts->tuned.moves;
  tiles_shape shape;
  tiles_choice choice;
  const double gather = gather_cost(a, tuned), tiles = shape_tiles(a, pointers::assumed_aligned, shape)
                                                           ? choose_tiles(a, shape, tuned, choice)
                                                           : std::numeric_limits<double>::infinity();
  if (job && wide_pays(queue, a, *job, std::min(gather, tiles))) return move_by::wide;
  return tiles < gather ? move_by::tiles : move_by::gather;
}

move_by fastest(const lockstep_queue& queue, const lockstep_call& call) {
  thread_local recent<move_by> lately;
  const axes a = expected(call);
  const int processors = queue.facts->processors;
  const move_by* known = lately.find(a, processors);
  return *(known != nullptr ? known : lately.add(a, processors, choose(queue, a, matrix_of(call, a))));
}
template <move_by how>
int yields_unless(const lockstep_queue* queue, const lockstep_call* call) {
  return fastest(*queue, *call) != how;
}

// ---- refusals, launches ------------------------------------------------------------------
bool in_place(const lockstep_call& call) { return call.op == LOCKSTEP_TRANSPOSE && call.src == call.dst; }

const char* refuses_in_place(const lockstep_queue*, const lockstep_call* call) {
  return in_place(*call) ? "src == dst: it writes where it has still to read" : nullptr;
}
const char* refuses_all_but_square_in_place(const lockstep_queue*, const lockstep_call* call) {
  if (!in_place(*call)) return "only for src == dst";
  return call->transpose.rows == call->transpose.cols ? nullptr : "only for square matrices";
}
int yields_out_of_place(const lockstep_queue*, const lockstep_call* call) { return !in_place(*call); }

constexpr char not_tiles[] =
    "needs an axis contiguous in src and one in dst, and blocks that stay together of at most 256 elements";
constexpr char not_pixels[] =
    "needs 2 to 4 channels of at most 4 bytes, apart on one side, and planes of whole 16 bytes";
constexpr char not_registers[] =
    "needs rows of src of 16, 32, 48 or 64 bytes and 16 elements at most, and rows of dst of whole 16 bytes";

template <bool (*fits)(const axes&), const char* why>
const char* refuses_unless(const lockstep_queue* queue, const lockstep_call* call) {
  if (const char* before = refuses_in_place(queue, call); before != nullptr) return before;
  return fits(expected(*call)) ? nullptr : why;
}
const char* refuses_wide(const lockstep_queue* queue, const lockstep_call* call) {
  if (const char* before = refuses_in_place(queue, call); before != nullptr) return before;
  return matrix_of(*call, expected(*call)) ? nullptr : "needs two axes, one contiguous in src, the other in dst";
}

int yields_pixels(const lockstep_queue* queue, const lockstep_call* call) {
  return !pixels_pay(*queue, expected(*call)) || !in_chunks(*call);
}
int yields_registers(const lockstep_queue* queue, const lockstep_call* call) {
  const move_tuning& tuned = queue->facts->tuned.moves;
  const axes a = expected(*call);
  if (a.elements() * a.element_bytes <= tuned.registers_from || !in_chunks(*call) || !registers_pay(a)) return 1;
  return wide_padding(*matrix_of(*call, a)) <= tuned.registers_padding;
}

template <lockstep_status (*by)(lockstep_queue&, const axes&)>
lockstep_status launch_by(lockstep_queue& queue, const lockstep_call& call) {
  return by(queue, given(call));
}
// Tiles take what pointers within 16 bytes leave.
template <bool (*fits)(const axes&), lockstep_status (*by)(lockstep_queue&, const axes&)>
lockstep_status launch_in_chunks(lockstep_queue& queue, const lockstep_call& call) {
  const axes a = given(call);
  return in_chunks(call) && fits(a) ? by(queue, a) : launch_tiles(queue, a);
}
lockstep_status launch_matrix(lockstep_queue& queue, const lockstep_call& call) {
  const axes a = given(call);
  // Elements that pointers of odd alignment keep narrow may have no matrix left: tiles do.
  const std::optional<wide_job> job = matrix_of(call, a);
  return job ? launch_wide(queue, *job) : launch_tiles(queue, a);
}

size_t workspace_of_span(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_transpose_desc& d = call->transpose;
  return static_cast<size_t>((d.batch - 1) * d.src_batch_stride + (d.rows - 1) * d.src_ld + d.cols) * d.element_bytes;
}
lockstep_status launch_through_workspace(lockstep_queue& queue, const lockstep_call& call) {
  LOCKSTEP_CUDA(
      cudaMemcpyAsync(call.workspace, call.src, workspace_of_span(&queue, &call), cudaMemcpyDefault, queue.stream));
  lockstep_call copied = call;
  copied.src = call.workspace;
  return launch_matrix(queue, copied);
}

// ---- the list ----------------------------------------------------------------------------
constexpr lockstep_variant pixels = {
    "pixels",
    "2 to 4 channels, rows or columns: 16 bytes of each a thread, elements change places in registers",
    0,
    refuses_unless<pixels_fit, not_pixels>,
    yields_pixels,
    nullptr,
    on_device<launch_in_chunks<pixels_fit, launch_pixels>>};
constexpr lockstep_variant registers = {
    "registers",
    "a short row of src and its neighbours along dst in a thread's registers; no shared memory",
    0,
    refuses_unless<registers_fit, not_registers>,
    yields_registers,
    nullptr,
    on_device<launch_in_chunks<registers_fit, launch_registers>>};
constexpr lockstep_variant tiles = {
    "tiles",
    "small tiles through shared memory, runs along src in, along dst out; shaped for the array's size",
    0,
    refuses_unless<tiles_fit, not_tiles>,
    yields_unless<move_by::tiles>,
    nullptr,
    on_device<launch_by<launch_tiles>>};
constexpr lockstep_variant wide = {
    "wide",
    "A5: 16-byte accesses on both sides, elements change places in registers, a swizzled tile hands over rows of dst",
    0,
    refuses_wide,
    yields_unless<move_by::wide>,
    nullptr,
    on_device<launch_matrix>};
constexpr lockstep_variant gather = {
    "gather",
    "lanes along dst, each element from where src has it; the caches keep a line's others",
    0,
    refuses_in_place,
    yields_unless<move_by::gather>,
    nullptr,
    on_device<launch_by<launch_gather>>};

const lockstep_variant permutes[] = {pixels, registers, tiles, wide, gather};
const lockstep_variant transposes[] = {
    pixels,
    tiles,
    wide,
    gather,
    {"swap_tiles", "in place: a block turns two mirrored tiles and swaps them", 0, refuses_all_but_square_in_place,
     nullptr, nullptr, on_device<launch_swap_tiles>},
    {"through_workspace", "a copy to the workspace, then wide from there: in place for any packed matrix", 0, nullptr,
     yields_out_of_place, workspace_of_span, on_device<launch_through_workspace>},
    {"tiled_swizzled", "A4: 32 x 32 tile, columns XORed with the row: no bank conflict, no pad", LOCKSTEP_LESSON,
     refuses_in_place, nullptr, nullptr, on_device<launch_tiled<layout::swizzled>>},
    {"tiled_padded", "A4: 32 x 32 tile, rows one element longer: columns spread over all banks", LOCKSTEP_LESSON,
     refuses_in_place, nullptr, nullptr, on_device<launch_tiled<layout::padded>>},
    {"tiled", "A3: 32 x 32 tile: both sides coalesce, but a column lies in one bank (32-way conflict)", LOCKSTEP_LESSON,
     refuses_in_place, nullptr, nullptr, on_device<launch_tiled<layout::plain>>},
    {"naive_coalesced_write", "A2: one thread an element, lanes along dst's rows: the strided side is the read",
     LOCKSTEP_LESSON, refuses_in_place, nullptr, nullptr, on_device<launch_naive_write>},
    {"naive_coalesced_read", "A1: one thread an element, lanes along src's rows: the strided side is the write",
     LOCKSTEP_LESSON, refuses_in_place, nullptr, nullptr, on_device<launch_naive_read>},
};

}  // namespace

const lockstep_table transpose_table = {transposes, sizeof transposes / sizeof *transposes};
const lockstep_table permute_table = {permutes, sizeof permutes / sizeof *permutes};

}  // namespace lockstep::cuda
