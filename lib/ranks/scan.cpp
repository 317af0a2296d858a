// scan.cpp - running sums and extremes along an axis that is cut among ranks. A rank holds a stretch of each sequence.
//   1  float sums: a rank that begins within a leaf gets that leaf's elements before its own (or, of exclusive sums,
//      the leaf of the element before)
//   2  every member sums the leaves that end in its stretch, or finds its extremes or exact sums
//   3  what stands before each member is joined in about log2(members) steps: from the member before, then from those
//      2, 4, 8 ... before
//   4  each scans its own stretch (lockstep_scan_desc.before)
// If ranks share the leaves of many sequences, the array is moved there and back, as reductions are (home.cpp).
#include <bit>
#include <cstring>

#include "devices.hpp"
#include "reduce.hpp"

namespace lockstep::lib {
template <>
inline constexpr std::array known_sizes<lockstep_scan_desc> = {offsetof(lockstep_scan_desc, first),
                                                               sizeof(lockstep_scan_desc)};
}  // namespace lockstep::lib

namespace lockstep::ranks {

constexpr int64_t leaf = order::leaf;

// A seat's work beside what reduce_seat has.
struct scan_seat {
  reduce_seat s;
  box block;                // of home
  sequence_view out;        // where results go
  int64_t head = 0;         // where the leaf begins that a float sum starts in
  int64_t head_length = 0;  // its elements up to the stretch's end; 0: there is no need of it
  buffer elements;          // that leaf of each sequence, and its results in double, then as results
  buffer sums, results;
  buffer before[2];    // what stands before the stretch: arrays of values of all sequences
  buffer state;        // as lockstep_scan_desc.before
  buffer state_there;  // of a seat on a device: state in its memory
  int now = 0;
};

struct scan_plan : operation {
  lockstep_scan_desc d{};
  grid src;
  int axis = 0;
  reduce_plan at;  // how sequences are cut among members, and what they are summed by
  std::unique_ptr<permute_plan> there, back;
  std::vector<buffer> moved, moved_results;
  std::vector<scan_seat> seats;
  exchange fragments;
  std::vector<exchange> steps;
  joinable values;
  struct piece {
    size_t seat;
    int64_t low, high;  // sequences
  };
  std::vector<piece> pieces;
  size_t result_bytes = 0;

  bool ordered() const { return at.how == family::tree; }
  // The leaves before the one that a member begins in.
  int64_t leaves_before(int32_t member) const { return at.leaves_that_end_before(at.range_of(member).first); }
  grid result_grid(const grid& g) const {
    grid r = g;
    r.element_bytes = result_bytes;
    return r;
  }

  void build(lockstep_comm& comm, lockstep_ranks_plan& plan, const lockstep_grid* given, described& about) {
    about.add("reduction", d.reduction);
    about.add("dtype", d.dtype);
    about.add("result", d.result);
    about.add("axis", axis);
    about.add("exclusive", d.exclusive);
    lockstep_scan_desc none = lockstep_scan_full(d.reduction, d.dtype, 0);
    none.count = 0, none.result = d.result, none.exclusive = d.exclusive;
    require_taken([&](lockstep_context* cpu) { return lockstep_scan(cpu, &none, nullptr, nullptr, nullptr); });
    src = read_grid(given, "src", comm.ranks(), about, d.dtype);
    if (axis < 0 || axis >= src.rank)
      fail(LOCKSTEP_INVALID_ARGUMENT, "axis is {}; give 0 to {}, an axis of src", axis, src.rank - 1);
    result_bytes = lockstep_dtype_bytes(d.result);
    d.length = src.shape[static_cast<size_t>(axis)];
    if (!lay_out(comm, plan, src, axis)) move_home(comm, plan);
    values = at.partial_values();
    std::vector<box> blocks;
    for (int32_t b = 0; b < static_cast<int32_t>(at.kept.rank_of.size()); ++b) blocks.push_back(at.kept.of_block(b));
    for (int32_t i = 0; i < comm.seats; ++i) add_seat(comm, plan, i, blocks);
    add_messages(comm, plan.memory);
  }

  // Sequences of an array along that axis; false: ranks share the leaves of many.
  bool lay_out(lockstep_comm& comm, lockstep_ranks_plan& plan, const grid& array, int along) {
    at = {};
    at.reduction = d.reduction;
    at.dtype = d.dtype;
    at.result = lockstep_default_result(d.reduction, d.dtype);
    at.behind = d.exclusive != 0 ? 1 : 0;
    at.src = array;
    return at.lay_out(comm, plan, 1u << along);
  }

  // Each sequence becomes one axis behind the others, cut at leaves, and results come back the same way.
  void move_home(lockstep_comm& comm, lockstep_ranks_plan& plan) {
    const grid home = at.flat_home(comm);
    const auto way = [&](std::unique_ptr<permute_plan>& out, const grid& from, const grid& to, bool forth) {
      out = std::make_unique<permute_plan>();
      out->src = from, out->dst = to;
      int32_t next = 0;
      for (int k = 0; k < src.rank; ++k) {
        const int32_t of_home = k == axis ? src.rank - 1 : next++;
        forth ? out->perm[static_cast<size_t>(of_home)] = k : out->perm[static_cast<size_t>(k)] = of_home;
      }
      src.limit_pieces(comm, "src", "a smaller shape or another number of ranks");
      out->build(comm, plan.memory);
    };
    way(there, src, home, true);
    way(back, result_grid(home), result_grid(src), false);
    for (int32_t s = 0; s < comm.seats; ++s) {
      const auto n = static_cast<size_t>(home.of(comm.first() + s).elements());
      moved.emplace_back(plan.memory_of(s), n * src.element_bytes);
      moved_results.emplace_back(plan.memory_of(s), n * result_bytes);
    }
    lay_out(comm, plan, home, home.rank - 1);
  }

  void add_seat(const lockstep_comm& comm, lockstep_ranks_plan& plan, int32_t i, const std::vector<box>& blocks) {
    scan_seat& one = seats.emplace_back();
    reduce_seat& s = one.s = at.seat_of(comm, i, blocks);
    one.block = at.home.of(s.rank);
    if (s.sequences == 0) return;
    const auto n = static_cast<size_t>(s.sequences);
    const auto room = [&](size_t bytes) { return buffer(plan.memory, bytes); };
    s.shared[0] = s.shared[1] = -1;
    s.first_leaf = s.last_leaf = 0;
    if (ordered()) {
      const int64_t begin = leaves_before(s.member), end = at.leaves_that_end_before(s.last);
      one.head = begin * leaf;
      one.head_length = s.first > one.head && s.first < s.last ? std::min(s.last, one.head + leaf) - one.head : 0;
      s.first_leaf = begin, s.last_leaf = end;
      if (one.head_length == leaf && begin < end) s.shared[0] = begin;
    }
    at.take_memory(plan.memory, s);
    if (one.head_length > 0) {
      const size_t elements = n * static_cast<size_t>(one.head_length);
      one.elements = s.shared[0] >= 0 ? s.assembled[0] : room(elements * at.element_bytes);
      one.sums = room(elements * sizeof(double));
      one.results = room(elements * result_bytes);
    }
    const auto most = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(order::leaves(d.length)))) + 2;
    const size_t arrays = ordered() ? 2 * most : 1;
    for (buffer& b : one.before) b = room(at.members > 1 ? arrays * n * values.bytes : 0);
    one.state = room(n * (ordered() ? (most + 2) * sizeof(double) : 16));
    if (comm.devices->has(i)) one.state_there = buffer(plan.memory_of(i), one.state.bytes());
  }

  // Some sequences of a seat at a time, so that a message is not too long.
  template <class Add>
  void by_pieces(const lockstep_comm& comm, size_t seat, size_t bytes_of_one, const Add& add) {
    const int64_t n = seats[seat].s.sequences;
    const auto most =
        std::max<int64_t>(comm.message_bytes / static_cast<int64_t>(std::max<size_t>(bytes_of_one, 1)), 1);
    int64_t key = 0;
    for (int64_t low = 0; low < n; low += most, ++key) {
      pieces.push_back({seat, low, std::min(n, low + most)});
      add(key, static_cast<size_t>(pieces.back().high - low) * bytes_of_one);
    }
  }
  // A member's elements that another one's first leaf needs.
  std::pair<int64_t, int64_t> fragment(int32_t from, int32_t to) const {
    const auto [a, b] = at.range_of(from);
    const auto [c, e] = at.range_of(to);
    const int64_t low = std::max(a, leaves_before(to) * leaf), high = std::min(b, c);
    return {low, c < e ? std::max(low, high) : low};
  }

  void add_messages(lockstep_comm& comm, workspace& memory) {
    const int32_t members = at.members;
    for (size_t i = 0; i < seats.size(); ++i) {
      const reduce_seat& s = seats[i].s;
      if (s.sequences == 0) continue;
      const auto rank = [&](int32_t m) { return at.rank_of(s.kept_block, m); };
      for (int32_t m = s.member + 1; ordered() && m < members && leaves_before(m) * leaf < s.last; ++m)
        if (const auto [low, high] = fragment(s.member, m); low < high)
          by_pieces(comm, i, static_cast<size_t>(high - low) * at.element_bytes, [&](int64_t key, size_t bytes) {
            fragments.sends(comm, {s.rank, rank(m), key, bytes, pieces.size() - 1});
          });
      for (int32_t m = s.member - 1; seats[i].head_length > 0 && m >= 0 && at.range_of(m).second > seats[i].head; --m)
        if (const auto [low, high] = fragment(m, s.member); low < high)
          by_pieces(comm, i, static_cast<size_t>(high - low) * at.element_bytes, [&](int64_t key, size_t bytes) {
            fragments.receives(comm, {rank(m), s.rank, key, bytes, pieces.size() - 1});
          });
    }
    // Ranks without elements in their block take part: others' prefixes go through them.
    size_t k = 0;
    for (int32_t distance = 0; distance < members && members > 1; distance = distance == 0 ? 1 : 2 * distance, ++k) {
      steps.emplace_back();
      const int32_t reach = std::max(distance, 1);
      for (size_t i = 0; i < seats.size(); ++i) {
        const reduce_seat& s = seats[i].s;
        if (s.sequences == 0) continue;
        const auto rank = [&](int32_t m) { return at.rank_of(s.kept_block, m); };
        const auto bytes_of = [&](int32_t m) {
          const auto [a, b] = held(m, distance);
          return count_of(a, b) * values.bytes;
        };
        if (const size_t bytes = bytes_of(s.member); bytes > 0 && s.member + reach < members)
          by_pieces(comm, i, bytes, [&](int64_t key, size_t size) {
            steps[k].sends(comm, {s.rank, rank(s.member + reach), key, size, pieces.size() - 1});
          });
        if (s.member - reach < 0) continue;
        if (const size_t bytes = bytes_of(s.member - reach); bytes > 0)
          by_pieces(comm, i, bytes, [&](int64_t key, size_t size) {
            steps[k].receives(comm, {rank(s.member - reach), s.rank, key, size, pieces.size() - 1});
          });
      }
    }
    const size_t mark = memory.mark();
    fragments.finish(comm, memory);
    for (exchange& step : steps) {
      memory.rewind(mark);
      step.finish(comm, memory);
    }
    memory.skip();
  }
  size_t count_of(int32_t first, int32_t last) const { return first < last ? values.values(first, last) : 0; }
  // The members whose values a member holds in the step of that distance, which it sends on: at first its own.
  static std::pair<int32_t, int32_t> held(int32_t member, int32_t distance) {
    return distance == 0 ? std::pair{member, member + 1} : std::pair{std::max(member - distance, 0), member};
  }

  void place(execution& x, const lockstep_part* src_parts, const lockstep_part* dst_parts) override {
    x.from = x.read(src_parts, "src", src);
    x.to = x.read(dst_parts, "dst", src);
  }

  task run(execution& x) override {
    lockstep_comm& comm = *x.plan.comm;
    std::vector<placed> from = x.from, to = x.to;
    const auto at_home = [&](const std::vector<buffer>& buffers) {
      std::vector<placed> all;
      for (int32_t s = 0; s < comm.seats; ++s)
        all.push_back({buffers[static_cast<size_t>(s)].data(), packed_strides(at.home.of(comm.first() + s)),
                       comm.devices->has(s)});
      return all;
    };
    if (there != nullptr) {
      from = at_home(moved), to = at_home(moved_results);
      task first = there->move_all(x, 0, x.from, from);
      co_await first;
    }
    for (scan_seat& one : seats)
      if (one.s.sequences > 0) x.attempt(one.s.rank, [&] { look(one, from, to); });
    task whole_leaves = get_fragments(x);
    co_await whole_leaves;
    task prefixes = get_prefixes(x);
    co_await prefixes;
    int64_t overflowed = -1;
    for (scan_seat& one : seats)
      if (one.s.sequences > 0)
        x.attempt(one.s.rank, [&] {
          if (!scan_stretch(comm, one) && overflowed < 0) overflowed = one.s.rank;
        });
    if (back != nullptr) {
      task last = back->move_all(x, 0, to, x.to);
      co_await last;
    }
    if (at.how != family::sum) co_return;
    task agreement = agree_on_overflow(x, overflowed);
    co_await agreement;
    if (!x.so_far.any() && overflowed >= 0)
      fail(LOCKSTEP_OVERFLOW,
           "running sums on rank {} do not fit I64, dst holds the nearest values there; scan shorter sequences or "
           "floats",
           overflowed);
  }

  // Where a seat's stretch of each sequence is, and its results.
  void look(scan_seat& one, const std::vector<placed>& from, const std::vector<placed>& to) const {
    reduce_seat& s = one.s;
    const auto seat = static_cast<size_t>(s.seat);
    if (one.block.empty()) return;
    at.view(one.block, from[seat], s.view);
    at.view(one.block, to[seat], one.out);
  }

  task get_fragments(execution& x) {
    const partial_work work{*x.plan.comm, at};
    step_work w;
    w.pack = [&](const item& i, char* into) {
      const piece& p = pieces[i.index];
      const reduce_seat& s = seats[p.seat].s;
      const auto [low, high] = fragment(s.member, at.member_of(i.to));
      work.gather_some(s, p.low, p.high, low, high - low, into, high - low);
    };
    w.unpack = [&](const item& i, const char* from) {
      const piece& p = pieces[i.index];
      const scan_seat& one = seats[p.seat];
      const auto [low, high] = fragment(at.member_of(i.from), one.s.member);
      const auto n = static_cast<size_t>(high - low) * at.element_bytes;
      for (int64_t q = p.low; q < p.high; ++q, from += n)
        std::memcpy(one.elements.data() + static_cast<size_t>(q * one.head_length + low - one.head) * at.element_bytes,
                    from, n);
    };
    task step = fragments.run(*x.plan.comm, x.step(1), x.so_far, w);
    co_await step;
    for (scan_seat& one : seats) {
      reduce_seat& s = one.s;
      if (s.sequences == 0) continue;
      x.attempt(s.rank, [&] {
        const int64_t first = std::max(s.first, one.head), n = one.head + one.head_length - first;
        if (one.head_length > 0 && n > 0)
          work.gather_some(s, 0, s.sequences, first, n,
                           one.elements.data() + static_cast<size_t>(first - one.head) * at.element_bytes,
                           one.head_length);
        if (at.members > 1) work.compute(s);
      });
    }
  }

  task get_prefixes(execution& x) {
    for (scan_seat& one : seats) one.now = 0;
    size_t k = 0;
    for (int32_t distance = 0; k < steps.size(); distance = distance == 0 ? 1 : 2 * distance, ++k) {
      const int32_t reach = std::max(distance, 1);
      const auto bytes_of = [&](const scan_seat& one) { return static_cast<size_t>(one.s.sequences) * values.bytes; };
      const auto mine = [&](const scan_seat& one) {
        return distance == 0 ? one.s.partials.data() : one.before[one.now].data();
      };
      // What a member holds, and what it gets: the values of the members before those.
      const auto join = [&](scan_seat& one, const char* got, int64_t low, int64_t high, size_t pitch) {
        const auto [a, b] = held(one.s.member - reach, distance);
        const auto [c, e] = distance == 0 ? std::pair{b, b} : held(one.s.member, distance);
        const auto n = static_cast<size_t>(high - low);
        const size_t arrays = count_of(a, e);
        std::vector<char> joined(arrays * n * values.bytes);
        const joinable::part left{got, pitch, a, b},
            right{mine(one) + static_cast<size_t>(low) * values.bytes, bytes_of(one), c, e};
        if (count_of(c, e) == 0) {
          for (size_t v = 0; v < arrays; ++v)
            std::memcpy(joined.data() + v * n * values.bytes, got + v * pitch, n * values.bytes);
        } else {
          std::vector<char> room(2 * (count_of(a, b) + count_of(c, e) + 1) * n * values.bytes);
          values.join(left, right, high - low, room.data());
          std::memcpy(joined.data(), room.data(), joined.size());
        }
        for (size_t v = 0; v < arrays; ++v)
          std::memcpy(one.before[one.now ^ 1].data() + v * bytes_of(one) + static_cast<size_t>(low) * values.bytes,
                      joined.data() + v * n * values.bytes, n * values.bytes);
      };
      step_work w;
      w.pack = [&](const item& i, char* into) {
        const piece& p = pieces[i.index];
        const scan_seat& one = seats[p.seat];
        const auto [a, b] = held(one.s.member, distance);
        const auto n = static_cast<size_t>(p.high - p.low) * values.bytes;
        for (size_t v = 0; v < count_of(a, b); ++v)
          std::memcpy(into + v * n, mine(one) + v * bytes_of(one) + static_cast<size_t>(p.low) * values.bytes, n);
      };
      w.unpack = [&](const item& i, const char* got) {
        const piece& p = pieces[i.index];
        join(seats[p.seat], got, p.low, p.high, static_cast<size_t>(p.high - p.low) * values.bytes);
      };
      task step = steps[k].run(*x.plan.comm, x.step(2 + k), x.so_far, w);
      co_await step;
      for (scan_seat& one : seats) {
        if (one.s.sequences == 0 || one.s.member - reach < 0) continue;
        const auto [a, b] = held(one.s.member - reach, distance);
        if (count_of(a, b) == 0 && distance != 0) continue;  // it keeps what it has
        one.now ^= 1;
      }
    }
  }

  // False where a sum did not fit.
  bool scan_stretch(lockstep_comm& comm, scan_seat& one) const {
    reduce_seat& s = one.s;
    const partial_work work{comm, at};
    if (s.first >= s.last) return true;
    const bool on_device = comm.devices->has(s.seat);
    // Of the leaf that the stretch begins in, which is in host memory; and of the stretch.
    lockstep_options here = comm.options_of(s.seat), there = here;
    if (on_device) here = on_the_cpu();
    if (at.how == family::sum) there.flags &= ~LOCKSTEP_ASYNC;  // its status tells of an overflow
    const auto n = static_cast<size_t>(s.sequences);
    const char* const values_before = one.before[one.now].data();
    lockstep_scan_desc base = lockstep_scan_full(d.reduction, d.dtype, 0);
    base.result = d.result, base.exclusive = d.exclusive;
    bool fits = true;
    const auto scan = [&](const lockstep_scan_desc& call, const lockstep_options& options, const void* from,
                          void* into) {
      const lockstep_status status = lockstep_scan(comm.context, &call, from, into, &options);
      if (status == LOCKSTEP_OVERFLOW)
        fits = false;
      else
        require_ok(status);
    };
    int64_t begin = s.first;
    size_t unit = 0;  // bytes of a sequence's state
    if (!ordered()) {
      if (s.first > 0) {
        unit = at.how == family::extreme ? at.element_bytes : 16;
        for (size_t q = 0; q < n; ++q) {
          char* const to = one.state.data() + q * unit;
          if (at.how == family::extreme)
            order::store_key(d.dtype, one.state.data(), static_cast<int64_t>(q),
                             reinterpret_cast<const winner*>(values_before)[q].key);
          else
            std::memcpy(to, reinterpret_cast<const order::wide*>(values_before)[q].limb, unit);
        }
      }
    } else {
      std::vector<double> forest_values;
      const std::vector<subtree> tiles = tiling(0, one.head / leaf);
      const size_t arrays = tiles.size();
      forest_values.resize((arrays + 2) * n);
      forest all(s.sequences, forest_values.data());
      for (size_t v = 0; v < arrays; ++v) {
        std::memcpy(all.top(), values_before + v * n * sizeof(double), n * sizeof(double));
        all.push(tiles[v]);
      }
      const auto put_state = [&](const double* entering, int64_t stride) {
        const size_t held_now = all.tiles().size();
        unit = (1 + held_now) * sizeof(double);
        auto* const state = reinterpret_cast<double*>(one.state.data());
        for (size_t q = 0; q < n; ++q) {
          state[q * (1 + held_now)] = entering == nullptr ? 0.0 : entering[static_cast<int64_t>(q) * stride];
          for (size_t v = 0; v < held_now; ++v) state[q * (1 + held_now) + 1 + v] = forest_values[v * n + q];
        }
      };
      if (one.head > 0) put_state(nullptr, 0);
      if (one.head_length > 0) {
        const int64_t h = one.head_length;
        lockstep_scan_desc call = base;
        call.count = s.sequences, call.length = h;
        call.sequence_stride = call.dst_sequence_stride = h;
        if (one.head > 0) call.first = one.head, call.before = one.state.data();
        scan(call, here, one.elements.data(), one.results.data());
        const int64_t skipped = s.first - one.head;
        if (skipped < h)
          scatter(comm, one, h - skipped, one.results.data() + static_cast<size_t>(skipped) * result_bytes);
        begin = one.head + h;
        if (begin < s.last) {  // the whole leaf is known: it stands before the next one
          call.result = LOCKSTEP_F64, call.exclusive = 0;
          scan(call, here, one.elements.data(), one.sums.data());
          lockstep_reduce_desc sum = lockstep_reduce_rows(LOCKSTEP_SUM, d.dtype, s.sequences, h, h);
          sum.result = LOCKSTEP_F64;
          require_ok(lockstep_reduce(comm.context, &sum, one.elements.data(), all.top(), &here));
          all.push({0, one.head / leaf});
          put_state(reinterpret_cast<const double*>(one.sums.data()) + (h - 1), h);
        }
      }
    }
    if (begin >= s.last) return fits;
    const char* state = one.state.data();
    if (on_device && begin > 0) {
      box bytes;
      bytes.rank = 1;
      bytes.length[0] = static_cast<int64_t>(n * unit);
      const int64_t packed[] = {1};
      copy_box(comm, s.seat, 1, bytes, state, packed, one.state_there.data(), packed);
      state = one.state_there.data();
    }
    reduce_seat both = s;
    both.other = one.out, both.other_bytes = result_bytes;
    const auto stretch = [&](const partial_work::strided& from, const partial_work::strided& into, int64_t q,
                             int64_t count) {
      lockstep_scan_desc call = base;
      call.count = count, call.length = s.last - begin;
      call.element_stride = from.element_stride, call.sequence_stride = from.sequence_stride;
      call.dst_element_stride = into.element_stride, call.dst_sequence_stride = into.sequence_stride;
      if (begin > 0) call.first = begin, call.before = state + static_cast<size_t>(q) * unit;
      scan(call, there, from.data, const_cast<char*>(into.data));
    };
    work.each_run(both, begin, stretch);
    return fits;
  }
  // The first results of a stretch, which lie head_length apart.
  void scatter(lockstep_comm& comm, const scan_seat& one, int64_t count, const char* from) const {
    const copied_view v(one.out, count, 1, one.head_length);
    copy_box(comm, comm.devices->has(one.s.seat) ? one.s.seat : no_seat, result_bytes, v.all, from, v.copied.data(),
             const_cast<char*>(one.out.data), v.stride.data());
  }

  bool joins_on_the_host() const override { return true; }
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const override {
    if (there != nullptr) there->tell(link, cost);
    fragments.tell(link, cost);
    for (const exchange& step : steps) step.tell(link, cost);
    if (back != nullptr) back->tell(link, cost);
  }
};

}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

extern "C" lockstep_status lockstep_ranks_scan(lockstep_comm* comm, const lockstep_grid* src,
                                               lockstep_reduction reduction, lockstep_dtype dtype,
                                               lockstep_dtype result, int32_t axis, int32_t exclusive,
                                               const lockstep_options* options, lockstep_ranks_plan** plan) {
  return make_plan<scan_plan>(comm, kind::scan, options, plan, [&](scan_plan& p, auto& out, auto& d) {
    p.d.reduction = reduction;
    p.d.dtype = dtype;
    p.d.result = result;
    p.d.exclusive = exclusive;
    p.axis = axis;
    p.build(*comm, out, src, d);
  });
}
