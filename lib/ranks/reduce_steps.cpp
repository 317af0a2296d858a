// reduce_steps.cpp - a reduction's steps, as reduce.cpp planned them.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "devices.hpp"
#include "reduce.hpp"

namespace lockstep::ranks {

constexpr int64_t leaf = order::leaf;

bool reduce_plan::view(const box& block, const placed& at, sequence_view& view) const {
  view.data = at.data;
  view.axes = 0;
  for (const int k : block_kept_axes) {
    const auto i = static_cast<size_t>(k), v = static_cast<size_t>(view.axes++);
    view.length[v] = block.length[i];
    view.stride[v] = at.strides[i];
  }
  int64_t reach = 0;  // elements that the inner axes span
  view.element_stride = 1;
  for (auto k = block_axes.size(); k-- > 0;) {
    const auto i = static_cast<size_t>(block_axes[k]);
    if (block.length[i] == 1) continue;
    if (reach == 0)
      view.element_stride = at.strides[i], reach = at.strides[i] * block.length[i];
    else if (at.strides[i] != reach)
      return false;
    else
      reach *= block.length[i];
  }
  return true;
}

namespace {
// The same for some of the sequences.
sequence_view view_of_slice(const reduce_plan& p, sequence_view v, const box& all, const box& slice) {
  for (size_t k = 0; k < static_cast<size_t>(v.axes); ++k) {
    v.data += (slice.low[k] - all.low[k]) * v.stride[k] * static_cast<int64_t>(p.element_bytes);
    v.length[k] = slice.length[k];
  }
  return v;
}

// Devices at once, each in a thread, because calls wait for results in host memory; seats on one device, and those on
// none, one after the other. A thread's default stream is another one in each thread.
void each_seat(execution& x, reduce_pass& pass, const std::function<void(reduce_seat&)>& body) {
  lockstep_comm& comm = *x.plan.comm;
  if (x.so_far.any()) return;
  std::vector<failure> failures(pass.seats.size());
  const auto run = [&](const std::vector<size_t>& seats) {
    for (const size_t i : seats) {
      reduce_seat& s = pass.seats[i];
      failures[i].attempt(s.rank, [&] { body(s); });
    }
  };
  std::vector<size_t> here;
  std::vector<std::vector<size_t>> groups;
  for (size_t i = 0; i < pass.seats.size(); ++i) {
    const int32_t seat = pass.seats[i].seat;
    if (pass.seats[i].sequences == 0) continue;
    if (!comm.devices->has(seat) || comm.devices->stream_of(seat) == LOCKSTEP_STREAM_PER_THREAD) {
      here.push_back(i);
      continue;
    }
    const auto same = [&](const std::vector<size_t>& g) {
      return comm.devices->on_one(pass.seats[g.front()].seat, seat);
    };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found != groups.end())
      found->push_back(i);
    else
      groups.push_back({i});
  }
  if (!here.empty()) {
    if (groups.empty()) groups.emplace_back();
    groups[0].insert(groups[0].begin(), here.begin(), here.end());  // in this thread
  }
  std::vector<std::function<void()>> jobs;
  jobs.reserve(groups.size());
  for (const std::vector<size_t>& group : groups) jobs.emplace_back([&run, &group] { run(group); });
  comm.crew.run(jobs);
  for (const failure& f : failures)
    if (f.any()) x.so_far.note(f.status, f.rank, f.text);
}

}  // namespace

task agree_on_overflow(execution& x, int64_t& overflow) {
  failure own = x.so_far, all;
  if (overflow >= 0) own.note(LOCKSTEP_OVERFLOW, INT32_MAX, "");
  uint64_t low[2] = {overflow >= 0 ? static_cast<uint64_t>(overflow) : UINT64_MAX, 0}, high[2] = {0, 0};
  task agreement = x.plan.comm->worst(own, low, high, all);
  co_await agreement;
  if (all.any() && all.status == LOCKSTEP_OVERFLOW)
    overflow = static_cast<int64_t>(low[0]);
  else if (all.any())
    x.so_far.note(all.status, all.rank, all.text);
}

task reduce_plan::run(execution& x) {
  std::vector<placed> here = x.from;
  task first = redistributed(x, here);
  co_await first;
  task second = reduced(x, here);
  co_await second;
}

task reduce_plan::redistributed(execution& x, std::vector<placed>& here) {
  if (redistribute == nullptr) co_return;
  lockstep_comm& comm = *x.plan.comm;
  std::vector<placed> there;
  there.reserve(static_cast<size_t>(comm.seats));
  for (int32_t s = 0; s < comm.seats; ++s)
    there.push_back(
        {moved[static_cast<size_t>(s)].data(), moved_strides[static_cast<size_t>(s)], comm.devices->has(s)});
  const auto seats = static_cast<std::ptrdiff_t>(comm.seats);
  for (int64_t k = 0; k < arrays(); ++k) {
    const std::vector<placed> array(here.begin() + k * seats, here.begin() + (k + 1) * seats);
    task step = redistribute->move_all(x, 128, array, there);
    co_await step;
    for (int32_t s = 0; s < comm.seats; ++s) {
      placed& at = here[static_cast<size_t>(k * seats + s)] = there[static_cast<size_t>(s)];
      at.strides = home_strides(home.of(comm.first() + s));
      if (at.data != nullptr) there[static_cast<size_t>(s)].data += element_bytes;  // for the other array's
    }
  }
}

task reduce_plan::reduced(execution& x, const std::vector<placed>& here) {
  lockstep_comm& comm = *x.plan.comm;
  std::vector<host_memory> packed;
  std::vector<sequence_view> views(here.size());
  for (size_t array = 0; array < here.size(); ++array)
    x.attempt(comm.first() + static_cast<int32_t>(array) % comm.seats, [&] {
      const int32_t s = static_cast<int32_t>(array) % comm.seats;
      const box block = block_of(comm.first() + s);
      const placed& in = here[array];
      sequence_view& view = views[array];
      if (block.empty() || this->view(block, in, view)) return;
      // The sequences have no single stride, so copy the block with the reduced axes innermost.
      std::array<int64_t, LOCKSTEP_MAX_RANK> strides{};
      int64_t stride = 1;
      for (const std::vector<int>* axes : {&block_axes, &block_kept_axes})
        for (auto k = axes->size(); k-- > 0;) {
          const auto i = static_cast<size_t>((*axes)[k]);
          strides[i] = stride;
          stride *= block.length[i];
        }
      const size_t bytes = static_cast<size_t>(block.elements()) * element_bytes;
      const host_memory& copy =
          packed.emplace_back(comm.devices->has(s) ? host_memory(comm, bytes, s) : host_memory::pageable(comm, bytes));
      copy_box(comm, s, element_bytes, block, in.data, in.strides.data(), copy.data(), strides.data());
      this->view(block, {copy.data(), strides}, view);
    });
  int64_t overflow = -1;
  for (reduce_pass& pass : passes) {
    task step = run_pass(x, pass, views, overflow);
    co_await step;
  }
  if (!packed.empty()) {  // nothing reads the copies any more when they are freed
    comm.devices->end();
    comm.devices->finish();
  }
  if (may_overflow() && !everywhere) {
    // Ranks without a result from the overflowed sum do not know of it yet, so tell all.
    task agreement = agree_on_overflow(x, overflow);
    co_await agreement;
  }
  if (x.so_far.any()) co_return;
  if (nothing_to_choose())
    fail(LOCKSTEP_EMPTY,
         "every sequence is empty and has no minimum or maximum, dst is unchanged; give every sequence an "
         "element");
  if (overflow >= 0)
    fail(LOCKSTEP_OVERFLOW,
         "the exact result of sequence {} (row-major over the kept axes) does not fit {}, dst holds the nearest value "
         "there; take shorter sequences or floats",
         overflow, result == LOCKSTEP_U64 ? "U64" : "I64");
}

task reduce_plan::run_pass(execution& x, reduce_pass& pass, const std::vector<sequence_view>& views,
                           int64_t& overflow) {
  lockstep_comm& comm = *x.plan.comm;
  const partial_work work{comm, *this};
  for (reduce_seat& s : pass.seats)
    if (s.sequences > 0) {
      const auto seat = static_cast<size_t>(s.seat), other = seat + static_cast<size_t>(comm.seats);
      s.views.clear();
      for (size_t array = seat; !several.empty() && array < views.size(); array += static_cast<size_t>(comm.seats))
        s.views.push_back(views[array]);
      s.view = view_of_slice(*this, views[seat], kept.of_block(s.kept_block), s.kept);
      if (pairs()) s.other = view_of_slice(*this, views[other], kept.of_block(s.kept_block), s.kept);
      const auto first = offset_of(s.kept, kept_of(s), packed_strides(kept_of(s)).data());
      if (scale != 0) s.given = given[seat] + 2 * first;
      if (picks) s.labels = labels[seat] == nullptr ? nullptr : labels[seat] + first;
    }
  if (deliver != nullptr) {
    each_seat(x, pass, [&](reduce_seat& s) { work.direct(s, s.results.data()); });
    std::vector<placed> results;
    for (const reduce_seat& s : pass.seats)
      results.push_back({s.results.data(), packed_strides(s.kept), comm.devices->has(s.seat)});
    task last = deliver->move_all(x, 0, results, x.to);
    co_await last;
    co_return;
  }
  task cut = cut_leaves(x, pass);
  co_await cut;
  const joinable what = partial_values();
  if (!nothing_to_choose())
    each_seat(x, pass, [&](reduce_seat& s) { alone() ? work.direct(s, results_of(pass, s)) : work.compute(s); });
  if (!alone()) {
    task join = pass.partials.run(x, 2, what, [&](size_t i) { return pass.seats[i].partials.data(); });
    co_await join;
    for (size_t i = 0; i < pass.seats.size() && !nothing_to_choose(); ++i) {
      const reduce_seat& s = pass.seats[i];
      if (s.joined.size() == 0) continue;
      x.attempt(s.rank, [&] {
        const int64_t first = work.finish(s, joined_of(pass, i), results_of(pass, s));
        if (first < 0) return;
        // The result's index in the whole array of results.
        const auto strides = packed_strides(s.kept), all = packed_strides(kept.whole());
        int64_t at = 0, left = s.joined.low + first;
        for (size_t k = 0; k < static_cast<size_t>(kept.rank); ++k) {
          at += (s.kept.low[k] + left / strides[k]) * all[k];
          left %= strides[k];
        }
        if (overflow < 0 || at < overflow) overflow = at;
      });
    }
    if (second_pass()) {
      task again = scaled_again(x, pass, what);
      co_await again;
    }
  }
  if (nothing_to_choose()) co_return;
  task last = hand_over(x, pass, overflow);
  co_await last;
}

char* reduce_plan::results_of(const reduce_pass& pass, const reduce_seat& s) const {
  if (to_members) return s.results.data() + static_cast<size_t>(s.joined.low) * result_bytes;
  if (!everywhere) return s.results.data();
  return pass.everything.data() + pass.at[static_cast<size_t>(s.kept_block)] +
         static_cast<size_t>(s.joined.low) * result_bytes;
}

// If one member has whole sequences, no join has moved their results.
char* reduce_plan::joined_of(const reduce_pass& pass, size_t i) const {
  return members > 1 ? pass.partials.data(i) : pass.seats[i].partials.data();
}

// Exchanges the elements of leaves that a cut divides.
task reduce_plan::cut_leaves(execution& x, reduce_pass& pass) {
  const partial_work work{*x.plan.comm, *this};
  step_work w;
  w.unpack = [&](const item& i, const char* from) {
    const reduce_seat& s = pass.seats[i.index];
    const int slot = s.shared[0] == i.key ? 0 : 1;
    const int64_t low = i.key * leaf, n = std::min(length, low + leaf) - low;
    const auto count = static_cast<int64_t>(i.bytes / copied_bytes()) / s.sequences;
    // A rank's part of a leaf starts with its own elements or with the leaf.
    const int64_t begin = std::max(range_of(member_of(i.from)).first, low);
    for (int64_t q = 0; q < s.sequences; ++q)
      std::memcpy(s.assembled[slot].data() + static_cast<size_t>(q * n + begin - low) * copied_bytes(),
                  from + static_cast<size_t>(q * count) * copied_bytes(), static_cast<size_t>(count) * copied_bytes());
  };
  w.pack = [&](const item& i, char* to) {
    const reduce_seat& s = pass.seats[i.index];
    const int64_t begin = std::max(s.first, i.key * leaf), end = std::min(s.last, (i.key + 1) * leaf);
    work.gather(s, begin, end - begin, to, end - begin);
  };
  task step = pass.fragments.run(*x.plan.comm, x.step(1), x.so_far, w);
  co_await step;
}

// The second pass of NORM2 of f64, if a plain sum is out of range: largest magnitudes, then the sum of scaled squares.
// All ranks agree on whether any of them needs it.
task reduce_plan::scaled_again(execution& x, reduce_pass& pass, const joinable& what) {
  lockstep_comm& comm = *x.plan.comm;
  const partial_work work{comm, *this};
  bool ask = false;
  for (const reduce_seat& s : pass.seats) ask = ask || (!x.so_far.any() && s.joined.size() > 0 && work.asks_again(s));
  failure all;
  uint64_t low[2] = {ask ? 0u : 1u, 0}, high[2] = {0, 0};
  task agreement = comm.worst(x.so_far, low, high, all);
  co_await agreement;
  if (all.any()) x.so_far.note(all.status, all.rank, all.text);
  if (all.any() || low[0] != 0) co_return;
  each_seat(x, pass, [&](reduce_seat& s) { work.magnitudes(s); });
  const joinable largest = magnitude_values();
  task join = pass.magnitudes.run(x, 40, largest, [&](size_t i) { return pass.seats[i].magnitudes.data(); });
  co_await join;
  for (size_t i = 0; i < pass.seats.size(); ++i)
    if (pass.seats[i].joined.size() > 0)
      x.attempt(pass.seats[i].rank, [&] { work.choose_exponents(pass.seats[i], pass.magnitudes.data(i)); });
  task exponents = pass.exponents.run(x, 60, [&](size_t i) { return pass.seats[i].exponents.data(); });
  co_await exponents;
  each_seat(x, pass, [&](reduce_seat& s) { work.compute_scaled(s); });
  task again = pass.partials.run(x, 80, what, [&](size_t i) { return pass.seats[i].partials.data(); });
  co_await again;
  for (size_t i = 0; i < pass.seats.size(); ++i) {
    const reduce_seat& s = pass.seats[i];
    if (s.joined.size() > 0) x.attempt(s.rank, [&] { work.finish_scaled(s, joined_of(pass, i), results_of(pass, s)); });
  }
}

// Sends results to the ranks that need them.
task reduce_plan::hand_over(execution& x, reduce_pass& pass, int64_t& overflow) {
  lockstep_comm& comm = *x.plan.comm;
  const auto bytes = static_cast<int64_t>(result_bytes);
  // Copies a box of results from memory that holds the box `all` packed, to a seat's dst.
  const auto put = [&](const box& b, const char* from, const int64_t* strides, size_t seat) {
    const placed& to = x.to[seat];
    const auto rank = comm.first() + static_cast<int32_t>(seat);
    const box given = as_given(b), all = as_given(everywhere ? kept.whole() : dst.of(rank));
    std::array<int64_t, LOCKSTEP_MAX_RANK> steps{};
    const auto last = static_cast<size_t>(given.rank) - 1;
    for (size_t k = 0; k <= last; ++k) steps[k] = strides[k] * (two_results() ? 2 : 1);
    if (two_results()) steps[last] = 1;
    copy_box(comm, to.on_host ? no_seat : static_cast<int32_t>(seat), one_result_bytes(), given, from, steps.data(),
             to.data + offset_of(given, all, to.strides.data()) * static_cast<int64_t>(one_result_bytes()),
             to.strides.data());
  };
  if (to_members) {
    task step = pass.results.run(x, 100, [&](size_t i) { return pass.seats[i].results.data(); });
    co_await step;
    for (const reduce_seat& s : pass.seats)
      if (s.sequences > 0)
        std::memcpy(rows[static_cast<size_t>(s.seat)].data() +
                        offset_of(s.kept, kept_of(s), packed_strides(kept_of(s)).data()) * bytes,
                    s.results.data(), static_cast<size_t>(s.sequences * bytes));
    co_return;
  }
  if (everywhere) {
    task step = pass.results.run(
        x, 100, [&](size_t) { return pass.everything.data(); }, &overflow);
    co_await step;
    for (size_t seat = 0; seat < pass.seats.size(); ++seat)
      for (size_t b = 0; b < pass.slices.size(); ++b)
        x.attempt(pass.seats[seat].rank, [&] {
          const box& slice = pass.slices[b];
          if (!slice.empty()) put(slice, pass.everything.data() + pass.at[b], packed_strides(slice).data(), seat);
        });
    co_return;
  }
  step_work w;
  const auto source = [&](const item& i) {
    const reduce_pass::piece& p = pass.pieces[i.index];
    const reduce_seat& s = pass.seats[p.seat];
    const auto strides = packed_strides(s.kept);
    return std::pair{s.results.data() + (offset_of(p.part, s.kept, strides.data()) - s.joined.low) * bytes, strides};
  };
  w.pack = [&](const item& i, char* to) {
    const reduce_pass::piece& p = pass.pieces[i.index];
    const auto [from, strides] = source(i);
    copy_box(comm, static_cast<int32_t>(p.seat), result_bytes, p.part, from, strides.data(), to,
             packed_strides(p.part).data());
  };
  w.unpack = [&](const item& i, const char* from) {
    const reduce_pass::piece& p = pass.pieces[i.index];
    put(p.part, from, packed_strides(p.part).data(), p.seat);
  };
  w.local = [&](const item& from, const item& to) {
    const auto [data, strides] = source(from);
    put(pass.pieces[from.index].part, data, strides.data(), pass.pieces[to.index].seat);
  };
  task step = pass.to_grid.run(comm, x.step(100), x.so_far, w, &overflow);
  co_await step;
}

}  // namespace lockstep::ranks
