// grid.cpp - see grid.hpp.
#include "grid.hpp"

namespace lockstep::ranks {

box intersection(const box& a, const box& b) {
  box both = a;
  for (int k = 0; k < a.rank; ++k) {
    const auto i = static_cast<size_t>(k);
    const int64_t low = std::max(a.low[i], b.low[i]), high = std::min(a.low[i] + a.length[i], b.low[i] + b.length[i]);
    both.low[i] = low;
    both.length[i] = std::max<int64_t>(high - low, 0);
  }
  return both;
}

void cut_box(const box& b, int64_t most, std::vector<box>& into) {
  if (b.empty()) return;
  if (b.elements() <= most) return into.push_back(b);
  size_t k = 0;
  while (b.length[k] == 1) ++k;
  const int64_t each = std::max<int64_t>(most / (b.elements() / b.length[k]), 1);
  for (int64_t at = 0; at < b.length[k]; at += each) {
    box slab = b;
    slab.low[k] += at;
    slab.length[k] = std::min(each, b.length[k] - at);
    cut_box(slab, most, into);
  }
}

void boxes_of(const box& b, int64_t low, int64_t high, std::vector<box>& into) {
  if (low >= high) return;
  size_t k = 0;
  while (k + 1 < static_cast<size_t>(b.rank) && b.length[k] == 1) ++k;
  const int64_t each = b.elements() / b.length[k];  // elements for each index of this axis
  const auto part = [&](int64_t first, int64_t last) {
    box p = b;
    p.low[k] += first;
    p.length[k] = last - first;
    return p;
  };
  const int64_t first = (low + each - 1) / each, last = high / each;
  if (first > last)
    return boxes_of(part(last, first), low - last * each, high - last * each, into);  // within one index
  if (low < first * each) boxes_of(part(first - 1, first), low - (first - 1) * each, each, into);
  if (first < last) into.push_back(part(first, last));
  if (last * each < high) boxes_of(part(last, last + 1), 0, high - last * each, into);
}

std::array<int64_t, LOCKSTEP_MAX_RANK> packed_strides(const box& b) {
  std::array<int64_t, LOCKSTEP_MAX_RANK> strides{};
  int64_t stride = 1;
  for (int k = b.rank - 1; k >= 0; --k) {
    strides[static_cast<size_t>(k)] = stride;
    stride *= std::max<int64_t>(b.length[static_cast<size_t>(k)], 1);
  }
  return strides;
}

int64_t offset_of(const box& inner, const box& outer, const int64_t* strides) {
  int64_t offset = 0;
  for (int k = 0; k < inner.rank; ++k)
    offset += (inner.low[static_cast<size_t>(k)] - outer.low[static_cast<size_t>(k)]) * strides[k];
  return offset;
}

box grid::whole() const {
  box b;
  b.rank = rank;
  for (int k = 0; k < rank; ++k) b.length[static_cast<size_t>(k)] = shape[static_cast<size_t>(k)];
  return b;
}

box grid::of_block(int32_t block) const {
  box b;
  b.rank = rank;
  for (int k = rank - 1; k >= 0; --k) {
    const auto i = static_cast<size_t>(k);
    const auto at = static_cast<size_t>(block % parts[i]);
    block /= parts[i];
    b.low[i] = cuts[i][at];
    b.length[i] = cuts[i][at + 1] - cuts[i][at];
  }
  return b;
}

box grid::of(int32_t r) const {
  const int32_t block = block_of[static_cast<size_t>(r)];
  if (block >= 0) return of_block(block);
  box b;
  b.rank = rank;
  return b;
}

void grid::limit_pieces(lockstep_comm& comm, const char* name, const char* fix) const {
  comm.pieces.start(format_text("{}->shape is {} over {} ranks", name,
                                joined(std::vector<int64_t>(shape.begin(), shape.begin() + rank), "x"), comm.ranks()),
                    fix);
}

std::vector<int64_t> even_cuts(int64_t n, int32_t parts, int64_t align, bool rest_last) {
  const int64_t units = n / align + (n % align != 0), each = units / parts, more = units % parts;
  std::vector<int64_t> cuts = {0};
  for (int32_t j = 0; j < parts; ++j) {
    const bool longer = rest_last ? j >= parts - more : j < more;
    cuts.push_back(std::min(n, cuts.back() + (each + (longer ? 1 : 0)) * align));
  }
  cuts.back() = n;
  return cuts;
}

namespace {
// What a grid says of its axes; not which rank has which block.
grid read_axes(const lockstep_grid* given, const char* name, int32_t ranks, int64_t& blocks) {
  if (given == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "{} is NULL; pass the address of a grid", name);
  const lockstep_grid g = lib::sized(given, lockstep_grid{}, name);
  grid made;
  const bool known = ranks != any_ranks;  // else block_of is not needed
  made.element_bytes = g.element_bytes;
  made.rank = g.rank;
  if (g.element_bytes != 1 && g.element_bytes != 2 && g.element_bytes != 4 && g.element_bytes != 8 &&
      g.element_bytes != 16)
    fail(LOCKSTEP_INVALID_ARGUMENT, "{}->element_bytes is {}; use 1, 2, 4, 8 or 16", name, g.element_bytes);
  if (g.rank < 1 || g.rank > LOCKSTEP_MAX_RANK)
    fail(LOCKSTEP_INVALID_ARGUMENT, "{}->rank is {}; give 1 to {}", name, g.rank, LOCKSTEP_MAX_RANK);
  int64_t elements = 1;
  blocks = 1;
  for (int k = 0; k < g.rank; ++k) {
    const auto i = static_cast<size_t>(k);
    if (g.shape[k] < 0) fail(LOCKSTEP_INVALID_ARGUMENT, "{}->shape[{}] is {}; give 0 or more", name, k, g.shape[k]);
    if (g.parts[k] < 1) fail(LOCKSTEP_INVALID_ARGUMENT, "{}->parts[{}] is {}; give 1 or more", name, k, g.parts[k]);
    made.shape[i] = g.shape[k];
    made.parts[i] = g.parts[k];
    blocks *= g.parts[k];
    if (blocks > ranks)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{}->parts make {} blocks or more, but there are {} ranks{}; give fewer parts",
           name, blocks, ranks, known ? "" : " at most");
    if (__builtin_mul_overflow(elements, std::max<int64_t>(g.shape[k], 1), &elements) ||
        elements > INT64_MAX / static_cast<int64_t>(g.element_bytes))
      fail(LOCKSTEP_INVALID_ARGUMENT, "{}->shape has more than 2^63-1 bytes; use smaller sizes", name);
  }
  for (int k = 0; k < g.rank; ++k) {
    const auto i = static_cast<size_t>(k);
    if (g.cuts[k] == nullptr) {
      made.cuts[i] = even_cuts(g.shape[k], g.parts[k]);
      continue;
    }
    made.cuts[i].assign(g.cuts[k], g.cuts[k] + g.parts[k] + 1);
    if (made.cuts[i].front() != 0 || made.cuts[i].back() != g.shape[k])
      fail(LOCKSTEP_INVALID_ARGUMENT, "{}->cuts[{}] goes from {} to {}; it must go from 0 to the shape, {}", name, k,
           made.cuts[i].front(), made.cuts[i].back(), g.shape[k]);
    for (int32_t j = 0; j < g.parts[k]; ++j)
      if (made.cuts[i][static_cast<size_t>(j)] > made.cuts[i][static_cast<size_t>(j) + 1])
        fail(LOCKSTEP_INVALID_ARGUMENT, "{}->cuts[{}][{}] is {}, less than the one before, {}; cuts must not decrease",
             name, k, j + 1, made.cuts[i][static_cast<size_t>(j) + 1], made.cuts[i][static_cast<size_t>(j)]);
  }
  return made;
}
}  // namespace

grid read_grid(const lockstep_grid* given, const char* name, int32_t ranks) {
  int64_t blocks = 1;
  grid made = read_axes(given, name, ranks, blocks);
  const lockstep_grid g = lib::sized(given, lockstep_grid{}, name);
  const bool known = ranks != any_ranks;  // else block_of is not needed
  if (known) made.block_of.assign(static_cast<size_t>(ranks), -1);
  for (int32_t b = 0; b < blocks; ++b) {
    const int32_t r = g.order != nullptr ? g.order[b] : b;
    if (r < 0 || r >= ranks)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{}->order[{}] is {}; give a rank, 0 to {}", name, b, r, ranks - 1);
    made.rank_of.push_back(r);
    if (!known) continue;
    if (made.block_of[static_cast<size_t>(r)] != -1)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{}->order gives rank {} two blocks, {} and {}; give each its own", name, r,
           made.block_of[static_cast<size_t>(r)], b);
    made.block_of[static_cast<size_t>(r)] = b;
  }
  return made;
}

grid read_grid(const lockstep_grid* given, const char* name, int32_t ranks, described& d, lockstep_dtype of) {
  const grid g = read_grid(given, name, ranks);
  const std::string field = format_text("{}->", name);
  d.add(field + "element_bytes", static_cast<int64_t>(g.element_bytes));
  d.add(field + "rank", g.rank);
  for (int k = 0; k < g.rank; ++k) d.add(format_text("{}shape[{}]", field, k), g.shape[static_cast<size_t>(k)]);
  for (int k = 0; k < g.rank; ++k) d.add(format_text("{}parts[{}]", field, k), g.parts[static_cast<size_t>(k)]);
  for (int k = 0; k < g.rank; ++k) d.add_list(format_text("{}cuts[{}]", field, k), g.cuts[static_cast<size_t>(k)]);
  d.add_list(field + "order", g.rank_of);
  if (of != lockstep_dtype{} && g.element_bytes != lockstep_dtype_bytes(of))
    fail(LOCKSTEP_INVALID_ARGUMENT, "{}element_bytes is {}, but elements of this dtype have {}", field, g.element_bytes,
         lockstep_dtype_bytes(of));
  return g;
}

}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

extern "C" {
lockstep_status lockstep_grid_even(lockstep_grid* g, int64_t align, uint32_t rest, int64_t* cuts_storage) {
  return lib::guarded([&] {
    if (g == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "grid is NULL; pass the address of a grid");
    if (cuts_storage == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "cuts_storage is NULL; pass room for the cuts");
    if (align < 1) fail(LOCKSTEP_INVALID_ARGUMENT, "align is {}; give 1 or more", align);
    if (rest > LOCKSTEP_REST_LAST)
      fail(LOCKSTEP_INVALID_ARGUMENT, "rest is {}; give LOCKSTEP_REST_FIRST (0) or LOCKSTEP_REST_LAST (1)", rest);
    lockstep_grid plain = *g;
    for (auto& cuts : plain.cuts) cuts = nullptr;
    plain.order = nullptr;
    read_grid(&plain, "grid", any_ranks);
    for (int k = 0; k < g->rank; ++k) {
      const std::vector<int64_t> cuts = even_cuts(g->shape[k], g->parts[k], align, rest == LOCKSTEP_REST_LAST);
      std::copy(cuts.begin(), cuts.end(), cuts_storage);
      g->cuts[k] = cuts_storage;
      cuts_storage += cuts.size();
    }
  });
}

lockstep_status lockstep_grid_box(const lockstep_grid* given, int32_t rank, int64_t* low, int64_t* length) {
  return lib::guarded([&] {
    if (low == nullptr || length == nullptr)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{} is NULL; pass room for 8 numbers", low == nullptr ? "low" : "length");
    if (rank < 0) fail(LOCKSTEP_INVALID_ARGUMENT, "rank is {}; give 0 or more", rank);
    // Any rank is allowed, because the number of ranks is not known here.
    int64_t blocks = 1;
    const bool in_order = given != nullptr && given->order == nullptr;
    const grid g = in_order ? read_axes(given, "grid", any_ranks, blocks) : read_grid(given, "grid", any_ranks);
    box b;
    b.rank = g.rank;
    if (in_order && rank < blocks) b = g.of_block(rank);
    for (size_t block = 0; block < g.rank_of.size(); ++block)
      if (g.rank_of[block] == rank) b = g.of_block(static_cast<int32_t>(block));
    std::copy_n(b.low.begin(), g.rank, low);
    std::copy_n(b.length.begin(), g.rank, length);
  });
}
}
