// reduce.hpp - a reduction over ranks: the plan and its steps.
#pragma once

#include <optional>

#include "../bits/exact.hpp"
#include "../bits/reductions.hpp"
#include "../bits/stored_results.hpp"
#include "forest.hpp"
#include "join.hpp"
#include "permute.hpp"

namespace lockstep::ranks {

// How partial results are joined: by the fixed tree, exactly, by comparison, or as moments by the fixed tree; those of
// digests are added.
enum class family { tree, sum, product, extreme, moments, digest };
struct digest_sums {
  uint64_t of[2];
};
struct winner {
  int64_t key, index;  // index: 0 unless it is asked for; or the key of the element that a label names
};

// The layout of the rank's part of its sequences: some kept axes, and one stride along the sequence.
struct sequence_view {
  const char* data = nullptr;
  int axes = 0;
  std::array<int64_t, LOCKSTEP_MAX_RANK> length{}, stride{};
  int64_t element_stride = 1;
};
// `count` elements of each of its sequences, and their copies: elements `apart`, sequences `pitch`.
struct copied_view {
  box all;
  std::array<int64_t, LOCKSTEP_MAX_RANK> stride{}, copied{};
  copied_view(const sequence_view& v, int64_t count, int64_t apart, int64_t pitch) : stride(v.stride) {
    all.length = v.length;
    all.rank = v.axes + 1;
    for (auto k = static_cast<size_t>(v.axes); k-- > 0; pitch *= v.length[k]) copied[k] = pitch;
    const auto last = static_cast<size_t>(v.axes);
    all.length[last] = count, stride[last] = v.element_stride, copied[last] = apart;
  }
};

inline bool is_pair(const lockstep_ranks_term& t) {
  return t.op == LOCKSTEP_SUMS && t.of <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES;
}

// overflow: the number of a result here that did not fit, or -1; then the least of all ranks'.
task agree_on_overflow(execution& x, int64_t& overflow);

constexpr int64_t scratch_elements = 64 * order::leaf;  // of a seat

// A seat's work on the sequences of one pass.
struct reduce_seat {
  int32_t seat = 0, rank = 0;
  box block, kept;     // of home; of the results
  int32_t member = 0;  // among the ranks that share its sequences
  int32_t kept_block = 0;
  int64_t sequences = 0;                  // of its kept box; 0 if it has no block
  int64_t first = 0, last = 0;            // the elements of each sequence that are here
  int64_t first_leaf = 0, last_leaf = 0;  // the leaves that are summed here
  int64_t shared[2] = {-1, -1};           // those leaves that have elements on other ranks
  share joined;                           // the sequences whose results are computed here
  buffer assembled[2];                    // the shared leaves, sequence by sequence
  buffer partials;                        // of the own part: sums of a forest, exact sums, or extremes
  buffer results;                         // unless every rank gets all results
  buffer scratch;                         // a stretch of one sequence, or results of a call
  buffer magnitudes, exponents, plain;    // NORM2 of f64, second pass
  sequence_view view, other;              // other: of the second array; no data if there is none
  size_t other_bytes = 0;                 // of its elements, if they are not as the first's
  std::vector<sequence_view> views;       // of the arrays of lockstep_ranks_reduce_several
  const double* given = nullptr;          // of exponentials: two numbers per sequence (lockstep_normalize_desc)
  const int64_t* labels = nullptr;        // of each sequence, if one element of it is picked
};

// The sequences are reduced a part at a time, so that memory and messages stay small.
struct reduce_pass {
  std::vector<box> slices;  // of each kept block, its sequences
  std::vector<size_t> at;   // of each kept block, where its results begin in `everything`
  std::vector<reduce_seat> seats;
  exchange fragments;
  ordered_join partials, magnitudes;
  spread exponents, results;
  buffer everything;  // results of all kept blocks
  exchange to_grid;
  struct piece {
    size_t seat;
    box part;
  };
  std::vector<piece> pieces;  // indexed by the items of to_grid
};

struct reduce_plan : operation {
  grid src;
  // src's grid, or what src is redistributed to first: the kept axes, and behind them the whole sequence as one axis
  // (home.cpp). Or src's blocks stay: then that axis has the elements of one block after those of another, and by
  // blocks one leaf for each.
  grid home;
  bool by_blocks = false;                        // the order of the grid, of lockstep_ranks_reduce_blocks
  bool blocks_stay = false;                      // the calls read src's blocks, though home is not src
  std::vector<int> block_axes, block_kept_axes;  // the reduced and kept axes of the blocks that the calls read
  std::unique_ptr<permute_plan> redistribute;
  std::vector<buffer> moved;                                          // of each seat, its block of home
  std::vector<std::array<int64_t, LOCKSTEP_MAX_RANK>> moved_strides;  // of src's axes in it
  bool kept_inside = false;                                           // in it a run of sequences lies together
  std::vector<int> kept_axes, reduced_axes;
  int cut_axis = -1;   // the reduced axis that home cuts; -1: none
  int64_t inner = 1;   // elements of a sequence for one index of the cut axis
  int64_t length = 1;  // of a sequence
  int32_t members = 1;
  lockstep_reduction reduction{};
  std::optional<lockstep_sums_kind> terms;   // of lockstep_ranks_sums, added as SUM adds elements
  int64_t correction = 0;                    // of MEAN_VARIANCE
  std::vector<lockstep_ranks_term> several;  // of lockstep_ranks_reduce_several: a sequence each, by blocks
  int64_t inputs() const;                    // the arrays that an execution is given
  bool pairs() const { return terms && *terms <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES; }
  lockstep_dtype dtype{}, result{};
  family how{};
  size_t element_bytes = 0, result_bytes = 0, partial_bytes = 0;  // result_bytes: of both results, if there are two
  bool two_results() const { return how == family::moments || how == family::digest; }
  size_t one_result_bytes() const { return result_bytes / (two_results() ? 2 : 1); }
  // The caller's index space of a box of results: two results of a sequence are one more axis.
  box as_given(const box& results) const;
  // Whole leaves are computed at one place, or also joined by the fixed tree.
  bool by_leaves() const { return by_tree() || how == family::digest; }
  bool by_tree() const { return how == family::tree || how == family::moments; }
  // Elements of two arrays are beside each other where they are copied to: in shared leaves, messages and moved blocks.
  int64_t arrays() const { return pairs() ? 2 : 1; }
  size_t copied_bytes() const { return element_bytes * static_cast<size_t>(arrays()); }
  bool everywhere = true;  // every rank gets all results
  // Of rows (normalize.cpp): every rank gets the results of the sequences of its block of home, in `rows`; of extremes
  // their keys.
  bool to_members = false;
  std::vector<buffer> rows;  // of each seat
  int behind = -1;           // of a scan: a member sums the leaves that end in its stretch, or, 1, an element later
  double scale = 0;          // not 0: SUM adds the exponentials of elements, lessened and scaled
  std::vector<const double*> given;        // of exponentials, of each seat's sequences: reduce_seat::given
  static constexpr int level_there = 9;    // leaves, as a power of two, whose exponentials a device holds at once
  std::vector<buffer> exponentials_there;  // of each seat on a device: they and packed elements
  std::vector<const int64_t*> labels;      // of each seat's sequences, if elements are picked
  bool picks = false;
  grid kept, dst;  // kept: the kept axes of home; its rank_of is the block's own number
  // Where every rank gets many results that one rank each has computed: sends them on from the seats' own memory.
  std::unique_ptr<permute_plan> deliver;
  std::vector<reduce_pass> passes;

  void build(lockstep_comm& comm, lockstep_ranks_plan& plan, const lockstep_grid* given, uint32_t axes,
             const lockstep_grid* to, described& d);
  // The same of src, which is set, as are the types.
  void build_of_src(lockstep_comm& comm, lockstep_ranks_plan& plan, uint32_t axes, const lockstep_grid* to,
                    described& d);
  // The first part of it: how sequences are cut. False if the array must be moved first, to flat_home.
  bool lay_out(lockstep_comm& comm, lockstep_ranks_plan& plan, uint32_t axes);
  void place(execution& x, const lockstep_part* src_parts, const lockstep_part* dst_parts) override;
  task run(execution& x) override;
  // Its two halves. here: where the blocks are, by array and seat; then where those of home are.
  task redistributed(execution& x, std::vector<placed>& here);
  task reduced(execution& x, const std::vector<placed>& here);
  bool joins_on_the_host() const override { return true; }
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const override;

  box kept_of(const reduce_seat& s) const { return kept.of_block(s.kept_block); }
  // A rank's elements, of all its sequences.
  box block_of(int32_t rank) const { return blocks_stay ? src.of(rank) : home.of(rank); }
  // The place in its sequence of the element that is the i-th of the seat's.
  // Describes a block as sequences; false if the reduced axes have no common stride.
  bool view(const box& block, const placed& at, sequence_view& out) const;
  grid flat_home(const lockstep_comm& comm) const;
  reduce_seat seat_of(const lockstep_comm& comm, int32_t seat, const std::vector<box>& slices) const;
  void take_memory(workspace& memory, reduce_seat& s) const;
  int64_t leaves_that_end_before(int64_t element) const { return std::max<int64_t>(element - behind, 0) / order::leaf; }
  int64_t place_of(const reduce_seat& s, int64_t i) const;
  // The elements of a sequence that a member holds, and the member that sums a leaf.
  std::pair<int64_t, int64_t> range_of(int32_t member) const;
  int32_t owner_of(int64_t leaf) const;
  std::pair<int64_t, int64_t> leaves_of(int32_t member) const;
  std::vector<subtree> tiles_of(int32_t first, int32_t last) const;  // of the leaves of members [first, last)
  joinable partial_values() const;
  joinable magnitude_values() const;
  int32_t rank_of(int32_t kept_block, int32_t member) const;
  int32_t member_of(int32_t rank) const;
  // An empty sequence has no minimum or maximum.
  bool nothing_to_choose() const { return how == family::extreme && length == 0 && !kept.whole().empty(); }
  const lib::reduction_kind& kind() const { return lib::kind_of(reduction); }
  bool second_pass() const { return kind().to == lib::finish::root && dtype == LOCKSTEP_F64; }
  bool may_overflow() const {  // a result is an exact integer that need not fit its type
    return (how == family::sum || how == family::product) && kind().to == lib::finish::value &&
           kind().of != lib::term::truth;
  }
  // One call gives the results. Not where one may overflow: it would not tell which. A digest is computed on the CPU.
  bool alone() const {
    return members == 1 && !may_overflow() && how != family::digest && several.empty() && scale == 0 && !gives_keys();
  }
  bool gives_keys() const { return to_members && how == family::extreme; }

 private:
  int run_axis(const grid& g) const;
  void choose_home(lockstep_comm& comm, lockstep_ranks_plan& plan);
  bool crowded(const lockstep_comm& comm) const;
  std::array<int64_t, LOCKSTEP_MAX_RANK> home_strides(const box& b) const;
  void take_blocks_as_leaves();
  void take_blocks_as_they_are();
  void read_dst(lockstep_comm& comm, const lockstep_grid* to, described& d);
  template <class T>
  void join_forests(const joinable::part& low, const joinable::part& high, int64_t sequences, char* out) const;
  int64_t sequences_of_a_pass(const lockstep_comm& comm) const;
  void build_pass(lockstep_comm& comm, workspace& memory, reduce_pass& pass);
  void build_delivery(lockstep_comm& comm, lockstep_ranks_plan& plan);
  void add_fragments(lockstep_comm& comm, reduce_pass& pass) const;
  void add_results(lockstep_comm& comm, reduce_pass& pass) const;
  // views: of each seat's block of the first array, then of the second.
  task run_pass(execution& x, reduce_pass& pass, const std::vector<sequence_view>& views, int64_t& overflow);
  char* results_of(const reduce_pass& pass, const reduce_seat& s) const;
  char* joined_of(const reduce_pass& pass, size_t i) const;
  task cut_leaves(execution& x, reduce_pass& pass);
  task scaled_again(execution& x, reduce_pass& pass, const joinable& what);
  task hand_over(execution& x, reduce_pass& pass, int64_t& overflow);
};

// The arithmetic (partials.cpp): a seat's own partial results, and results from the joined partial results of all
// members.
struct partial_work {
  lockstep_comm& comm;
  const reduce_plan& plan;
  void direct(const reduce_seat& s, char* results) const;  // no other rank has a part
  void compute(reduce_seat& s) const;                      // own partial results
  void magnitudes(reduce_seat& s) const;                   // of NORM2's elements
  void compute_scaled(reduce_seat& s) const;               // scaled by the exponents
  // Computes the results of s.joined. Returns the first that overflowed, or -1.
  int64_t finish(const reduce_seat& s, char* joined, char* results) const;
  bool asks_again(const reduce_seat& s) const;  // NORM2: a plain sum is out of range
  void choose_exponents(const reduce_seat& s, const char* largest) const;
  void finish_scaled(const reduce_seat& s, char* joined, char* results) const;
  void gather(const reduce_seat& s, int64_t first, int64_t count, void* to, int64_t ld) const;
  // The same of sequences [low, high).
  void gather_some(const reduce_seat& s, int64_t low, int64_t high, int64_t first, int64_t count, void* to,
                   int64_t ld) const;
  struct strided {
    const char* data;
    int64_t element_stride, sequence_stride;
  };
  // visit(first array, second array, first sequence, sequences) for each run of sequences with one stride, in both
  // arrays, from an element on.
  using visit_run = std::function<void(const strided&, const strided&, int64_t, int64_t)>;
  void each_run(const reduce_seat& s, int64_t first, const visit_run& visit) const;

 private:
  // What a call of lockstep.h computes: terms of lockstep_sums, or else a reduction.
  struct wanted {
    std::optional<lockstep_sums_kind> terms;
    lockstep_reduction reduction;
    lockstep_dtype result;
    int64_t correction = 0;
    size_t bytes() const {  // of a sequence's results
      return lockstep_dtype_bytes(result) * (terms && *terms >= LOCKSTEP_SUMS_MEAN_VARIANCE ? 2 : 1);
    }
  };
  // other: of the second array.
  lockstep_status call(const reduce_seat& s, const wanted& w, const strided& x, const strided& other, int64_t count,
                       int64_t length, void* out) const;
  // visit(view, offset of the copies in elements) of each array.
  template <class Visit>
  void each_array(const reduce_seat& s, const Visit& visit) const;
  lockstep_status over_runs(const reduce_seat& s, const wanted& w, int64_t first, int64_t length, char* out) const;
  // Elements of every sequence that are summed together: of the seat's own, or the assembled ones of a shared leaf.
  struct piece {
    subtree tile;
    int64_t first, length;
    const char* assembled;  // NULL: own elements
  };
  void exponentials(const reduce_seat& s, const strided& x, bool assembled, int64_t sequence, int64_t count,
                    int64_t length, double* out) const;
  template <class Visit>
  void each_piece(const reduce_seat& s, const Visit& visit) const;
  void ask(const reduce_seat& s, const wanted& w, const piece& p, char* out) const;
  void values(const reduce_seat& s, const piece& p, double* out) const;
  void values(const reduce_seat& s, const piece& p, order::moments* out) const;
  template <class T>
  void compute_forest(const reduce_seat& s) const;
  void compute_digest(const reduce_seat& s) const;
  void compute_block(const reduce_seat& s) const;
  void scaled_block(const reduce_seat& s, double down) const;
  void gather_one(const reduce_seat& s, int64_t sequence, int64_t first, int64_t count, void* to) const;
  template <class T>
  const T* totals(const reduce_seat& s, char* joined) const;
  template <class Visit>
  void each_integer(const reduce_seat& s, int64_t sequence, const Visit& visit) const;
  std::pair<order::uint128, bool> exact_term(int64_t x, int64_t y) const;
  order::wide exact_sum(const reduce_seat& s, int64_t sequence) const;
  order::exact_factor exact_product(const reduce_seat& s, int64_t sequence) const;
  void compute_exact(reduce_seat& s) const;
  void compute_extremes(reduce_seat& s) const;
};

// The sums of the whole sequences, computed in place from the forest of all leaves.
template <class T>
inline const T* partial_work::totals(const reduce_seat& s, char* joined) const {
  const int64_t n = s.joined.size();
  auto* values = reinterpret_cast<T*>(joined);
  forest_of<T> all(n, values, plan.kind().by == lib::join::product);
  for (const subtree& t : tiling(0, order::leaves(plan.length))) all.push(t);  // the tiles are already in order
  if (all.tiles().empty()) return nullptr;
  all.join_all();
  return values;
}

}  // namespace lockstep::ranks
