// agree.cpp - decisions that all processes must make alike: which failure a call has, and whether their arguments
// agree.
#include <algorithm>
#include <cstring>

#include "comm.hpp"

using namespace lockstep;
using namespace lockstep::ranks;

namespace {
// The record that processes exchange to agree. Joining a record twice changes nothing, so it does not matter how often
// one arrives. After ceil(log2 p) rounds every process has the join of all records.
struct record {
  header head;
  uint64_t low[2], high[2];  // of the digests
  int32_t status, rank;      // the failed rank with the lowest number
  char text[text_bytes];

  void join(const record& other) {
    if (std::lexicographical_compare(other.low, other.low + 2, low, low + 2)) std::memcpy(low, other.low, sizeof low);
    if (std::lexicographical_compare(high, high + 2, other.high, other.high + 2))
      std::memcpy(high, other.high, sizeof high);
    if (other.status != LOCKSTEP_OK && (status == LOCKSTEP_OK || other.rank < rank)) {
      status = other.status;
      rank = other.rank;
      std::memcpy(text, other.text, sizeof text);
    }
  }
};

// Of the first n values, or of all where there are fewer, and of how many that are.
void digest_of(const described& d, size_t n, uint64_t out[2]) {
  out[0] = 0xCBF29CE484222325u, out[1] = 0x9E3779B97F4A7C15u;
  const auto add = [&](uint64_t v) {
    for (int k = 0; k < 2; ++k) {
      uint64_t x = out[k] ^ v;
      x *= k == 0 ? 0xFF51AFD7ED558CCDu : 0xC4CEB9FE1A85EC53u;
      out[k] = x ^ x >> 29;
    }
  };
  const size_t count = std::min(n, d.values.size());
  add(count);
  for (size_t i = 0; i < count; ++i) add(static_cast<uint64_t>(d.values[i]));
}
}  // namespace

task lockstep_comm::worst(const failure& own, uint64_t* low, uint64_t* high, failure& all) {
  all = own;
  if (dry) co_return;
  const int32_t p = engine.processes, me = engine.process;
  const uint64_t number = agreements++;
  record mine{};
  std::memcpy(mine.low, low, sizeof mine.low);
  std::memcpy(mine.high, high, sizeof mine.high);
  mine.status = own.status;
  mine.rank = own.rank;
  std::strncpy(mine.text, own.text.c_str(), text_bytes - 1);
  // Kept alive if the communicator closes, because the transport may still use them.
  auto buffers = std::make_unique<record[]>(2);
  try {
    uint64_t round = 0;
    for (int64_t step = 1; step < p; step *= 2, ++round) {
      const auto to = static_cast<int32_t>((me + step) % p), from = static_cast<int32_t>((me - step + p) % p);
      const uint64_t what = what_of(kind::agree, 0, number, round);
      std::vector<pending> requests;
      receive(from, &buffers[1], sizeof(record), requests);
      buffers[0] = mine;
      failure none;
      buffers[0].head = next_header(to, what, none);
      buffers[0].head.bytes = sizeof(record) - sizeof(header);
      send(to, &buffers[0], sizeof(record), requests);
      arrivals both(*this, requests, [&](size_t i) {
        if (i != 0) return;
        failure poison;
        check(from, &buffers[1], requests[0].received, what, poison);
        mine.join(buffers[1]);
      });
      co_await both;
    }
  } catch (...) {
    static_cast<void>(buffers.release());
    throw;
  }
  std::memcpy(low, mine.low, sizeof mine.low);
  std::memcpy(high, mine.high, sizeof mine.high);
  all = {};
  if (mine.status != LOCKSTEP_OK) all.note(static_cast<lockstep_status>(mine.status), mine.rank, mine.text);
}

// In ceil(log2 p) rounds. In each a process sends all that it has, its own first, to a process twice as far away as in
// the round before.
task lockstep_comm::gather(uint64_t number, const void* mine, size_t bytes, std::vector<char>& all) {
  const int32_t p = engine.processes, me = engine.process;
  std::vector<char> known(static_cast<const char*>(mine),
                          static_cast<const char*>(mine) + bytes);  // of me, me + 1, ...
  uint64_t round = 0;
  for (int64_t have = 1; have < p; have += std::min<int64_t>(have, p - have), ++round) {
    const auto take = static_cast<size_t>(std::min<int64_t>(have, p - have)) * bytes;
    const auto to = static_cast<int32_t>((me - have + p) % p), from = static_cast<int32_t>((me + have) % p);
    const uint64_t what = what_of(kind::create, 0, number, round);
    const size_t room = sizeof(header) + std::max(take, text_bytes);
    auto out = std::make_unique<char[]>(room), in = std::make_unique<char[]>(room);
    std::vector<pending> requests;
    failure none;
    try {
      receive(from, in.get(), room, requests);
      header head = next_header(to, what, none);
      head.bytes = take;
      std::memcpy(out.get(), &head, sizeof head);
      std::memcpy(out.get() + sizeof head, known.data(), take);
      send(to, out.get(), sizeof head + take, requests);
      arrivals both(*this, requests, [](size_t) {});
      co_await both;
      check(from, in.get(), requests[0].received, what, none);
    } catch (...) {
      static_cast<void>(out.release()), static_cast<void>(in.release());
      throw;
    }
    known.insert(known.end(), in.get() + sizeof(header), in.get() + sizeof(header) + take);
  }
  all.resize(known.size());
  for (int32_t q = 0; q < p; ++q)
    std::memcpy(all.data() + static_cast<size_t>(q) * bytes,
                known.data() + static_cast<size_t>((q - me + p) % p) * bytes, bytes);
}

void lockstep_comm::agree(const failure& own, const described& what) { run(agreement(own, what)); }

task lockstep_comm::agreement(const failure& own, const described& what) {
  uint64_t digest[2];
  digest_of(what, what.values.size(), digest);
  uint64_t low[2] = {digest[0], digest[1]}, high[2] = {digest[0], digest[1]};
  if (own.any()) {  // this process's arguments are invalid, so there is nothing to compare
    low[0] = low[1] = UINT64_MAX;
    high[0] = high[1] = 0;
  }
  failure all;
  task first_round = worst(own, low, high, all);
  co_await first_round;
  if (all.any()) {
    if (own.any()) throw error{own.status, own.text};
    fail(LOCKSTEP_RANK_FAILED, "rank {}: {}", all.rank, all.text);
  }
  if (low[0] == high[0] && low[1] == high[1]) co_return;
  failure difference, told;
  task comparison = compare(what, difference);
  co_await comparison;
  uint64_t none[2] = {0, 0}, also_none[2] = {0, 0};
  task second_round = worst(difference, none, also_none, told);
  co_await second_round;
  fail(LOCKSTEP_MISMATCH, "{}", told.any() ? told.text : "the ranks' arguments differ; give the same on every rank");
}

// Called when ranks differ: finds the first value that is not the same on all, by halving and comparing digests, so
// that messages and memory do not grow with the description. Each process that differs there from process 0 tells how.
task lockstep_comm::compare(const described& what, failure& difference) {
  failure none, told;
  const size_t ours = what.values.size();
  uint64_t low[2] = {ours, 0}, high[2] = {ours, 0};
  task lengths = worst(none, low, high, told);
  co_await lengths;
  size_t same = 0;  // the first `same` values agree, the first `differ` do not
  for (auto differ = static_cast<size_t>(high[0]); differ - same > 1;) {
    const size_t middle = same + (differ - same) / 2;
    digest_of(what, middle, low);
    std::copy_n(low, 2, high);
    task half = worst(none, low, high, told);
    co_await half;
    (low[0] == high[0] && low[1] == high[1] ? same : differ) = middle;
  }
  // The value of process 0 is the least pair of all, and whether it has one the largest.
  const bool first_process = engine.process == 0, here = same < ours;
  const int64_t value = here ? what.values[same] : 0;
  low[0] = first_process ? 0 : 1, low[1] = static_cast<uint64_t>(value);
  high[0] = first_process ? 1 : 0, high[1] = here ? 1 : 0;
  task theirs = worst(none, low, high, told);
  co_await theirs;
  const auto other = static_cast<int64_t>(low[1]);
  const bool there = high[1] != 0;
  if (first_process || (here == there && value == other)) co_return;
  const std::string name = here ? what.name(same) : "an argument that this rank lacks";
  difference.note(LOCKSTEP_MISMATCH, first(),
                  here && there ? format_text("{} is {} on rank {} and {} on rank 0; give the same on every rank", name,
                                              what.text(same, value), first(), what.text(same, other))
                                : format_text("{} is given on rank {} or on rank 0 only; give the same on every rank",
                                              name, first()));
}
