// tune.cpp - chooses a plan's row by measuring: the rows that auto may take are timed in alternation, on memory of the
// library and on the plan's queue, and the fastest is remembered (remembered.cpp).
#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <optional>

#include "../call/enough_stack.hpp"
#include "../ops/ops.hpp"

namespace lockstep::lib {
namespace {

using clock = std::chrono::steady_clock;

double us_since(clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(clock::now() - begin).count();
}

// Memory that the backend can reach, released by the destructor.
class own_memory {
 public:
  own_memory(const choice& chosen, size_t bytes) : chosen_(chosen), bytes_(bytes) {
    if (bytes == 0) return;
    lockstep_status s = LOCKSTEP_UNSUPPORTED;
    if (!chosen.entry->is_cpu())
      s = chosen.backend->allocate(chosen.queue.get(), kind_ = LOCKSTEP_DEVICE, bytes, &data_);
    if (s == LOCKSTEP_UNSUPPORTED)  // a module that computes in host memory
      s = chosen.backend->allocate(chosen.queue.get(), kind_ = LOCKSTEP_HOST, bytes, &data_);
    if (s != LOCKSTEP_OK) fail_backend(s, *chosen.entry);
  }
  ~own_memory() {
    if (data_ != nullptr) chosen_.backend->release(chosen_.queue.get(), kind_, bytes_, data_);
  }
  own_memory(const own_memory&) = delete;
  own_memory& operator=(const own_memory&) = delete;
  char* data() const { return static_cast<char*>(data_); }
  void put(const void* from, size_t bytes, size_t at) const {
    lockstep_status s = chosen_.backend->copy(chosen_.queue.get(), from, data() + at, bytes);
    if (s == LOCKSTEP_OK) s = chosen_.backend->finish(chosen_.queue.get());
    if (s != LOCKSTEP_OK) fail_backend(s, *chosen_.entry);
  }

 private:
  const choice& chosen_;
  size_t bytes_;
  lockstep_memory kind_ = LOCKSTEP_HOST;
  void* data_ = nullptr;
};

// Fills with ordinary values: floats from 2^-15 to 2 and wide integers below 2^16, so that no sum overflows and nothing
// is denormal; any bits for ops that only move elements.
void fill(const own_memory& memory, size_t bytes, lockstep_dtype dtype) {
  const size_t width = 8 * lockstep_dtype_bytes(dtype);
  const char kind = lockstep_dtype_kind(dtype);
  uint64_t keep = ~uint64_t{0}, set = 0;
  if (kind == 'f' || ((kind == 'i' || kind == 'u') && width > 16)) {
    keep = 0;
    for (size_t at = 0; at < 64; at += width) {
      keep |= (kind == 'f' ? (uint64_t{1} << (width - 8)) - 1 : 0xFFFF) << at;
      if (kind == 'f') set |= uint64_t{0x3F} << (at + width - 8);
    }
  }
  std::vector<uint64_t> piece(std::min<size_t>(bytes / 8 + 1, size_t{1} << 17));
  uint64_t state = 0x9E3779B97F4A7C15;
  for (size_t at = 0; at < bytes; at += 8 * piece.size()) {
    for (uint64_t& word : piece) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      word = (state & keep) | set;
    }
    memory.put(piece.data(), std::min(bytes - at, 8 * piece.size()), at);
  }
}

struct candidate {
  const lockstep_variant* row;
  std::vector<double> us;
  bool hopeless = false;  // takes three times as long as another row, so it is not timed again
  // The lower quartile, which other load on the machine disturbs least.
  double time() {
    std::sort(us.begin(), us.end());
    return us[us.size() / 4];
  }
};

// Adds a few times of a row.
void add_times(const choice& chosen, const lockstep_call& call, candidate& c) {
  constexpr int32_t samples = 3;
  double ms[samples];
  lockstep_status s = LOCKSTEP_EMPTY;
  if (chosen.backend->measure != nullptr)
    s = on_enough_stack(*chosen.entry,
                        [&] { return chosen.backend->measure(chosen.queue.get(), c.row, &call, 0, samples, ms); });
  if (s == LOCKSTEP_EMPTY || s == LOCKSTEP_OVERFLOW)  // measure stops at these, so time launches here
    for (double& one : ms) {
      const auto begin = clock::now();
      s = on_enough_stack(*chosen.entry, [&] { return c.row->launch(chosen.queue.get(), &call); });
      const bool ran = s == LOCKSTEP_OK || s == LOCKSTEP_EMPTY || s == LOCKSTEP_OVERFLOW;
      if (ran) s = chosen.backend->finish(chosen.queue.get());
      one = us_since(begin) * 1e-3;
      if (s == LOCKSTEP_EMPTY || s == LOCKSTEP_OVERFLOW) s = LOCKSTEP_OK;
      if (s != LOCKSTEP_OK) break;
    }
  if (s != LOCKSTEP_OK) fail_backend(s, *chosen.entry);
  for (const double one : ms) c.us.push_back(one * 1e3);
}

const lockstep_variant* variant_named(const choice& chosen, lockstep_op op, const std::string& name) {
  const lockstep_table table = table_of(*chosen.backend, op);
  for (size_t i = 0; i < table.count; ++i)
    if (table.rows[i].name == name) return &table.rows[i];
  return nullptr;
}

bool may_take(const choice& chosen, const lockstep_call& call, const lockstep_variant& row) {
  return !only_by_name(row) && (row.refuses == nullptr || row.refuses(chosen.queue.get(), &call) == nullptr);
}

// The times of all rows that auto may take for the call, best's first; fewer than two if there is no choice.
std::vector<candidate> measured(const choice& chosen, prepared_call own, const lockstep_variant* best,
                                lockstep_dtype dtype) {
  lockstep_call& call = own.call;
  const bool in_place = call.src == call.dst;
  const own_memory src(chosen, std::max<size_t>({own.src_span, in_place ? own.dst_span : 0, 1}));
  const own_memory dst(chosen, in_place ? 0 : std::max<size_t>(own.dst_span, 1));
  const bool far = own.offsets_bytes != 0 && chosen.backend->reachable(chosen.queue.get(), offsets_of(call)) == 0;
  const own_memory offsets(chosen, far ? own.offsets_bytes : 0);
  if (far) {
    offsets.put(offsets_of(call), own.offsets_bytes, 0);
    offsets_of(call) = reinterpret_cast<const int64_t*>(offsets.data());
  }
  call.src = src.data();
  call.dst = in_place ? src.data() : dst.data();
  std::optional<own_memory> sides[std::size(own.sides)];
  for (int i = 0; i < own.side_count; ++i) {
    const side_array& side = own.sides[i];
    sides[i].emplace(chosen, side.bytes);
    fill(*sides[i], side.bytes, side.alignment == lockstep_dtype_bytes(dtype) ? dtype : LOCKSTEP_F32);
    char* const address = sides[i]->data();
    std::memcpy(reinterpret_cast<char*>(&call) + side.member, &address, sizeof address);
  }

  std::vector<candidate> all = {{best, {}}};
  const lockstep_table table = table_of(*chosen.backend, call.op);
  for (size_t i = 0; i < table.count; ++i)
    if (&table.rows[i] != best && may_take(chosen, call, table.rows[i])) all.push_back({&table.rows[i], {}});
  if (all.size() == 1) return all;
  fill(src, own.src_span, dtype);
  for (const candidate& c : all)
    if (c.row->workspace != nullptr)
      call.workspace_bytes = std::max(call.workspace_bytes, c.row->workspace(chosen.queue.get(), &call));
  if (call.workspace_bytes != 0)
    if (const lockstep_status s = chosen.backend->scratch(chosen.queue.get(), call.workspace_bytes, &call.workspace);
        s != LOCKSTEP_OK)
      fail_backend(s, *chosen.entry);

  // In alternation, so that a slow moment of the machine affects every row.
  constexpr int rounds = 5;
  constexpr double enough_us = 200e3;
  const auto begin = clock::now();
  for (int round = 0; round < rounds && (round == 0 || us_since(begin) < enough_us); ++round) {
    for (candidate& c : all)
      if (!c.hopeless) add_times(chosen, call, c);
    double least = all[0].time();
    for (candidate& c : all) least = std::min(least, c.time());
    for (candidate& c : all) c.hopeless = c.time() > 3 * least && c.row != best;
  }
  return all;
}

tuned_key key_of(lockstep_context& context, const settings& now, const choice& chosen, const prepared_call& prepared) {
  std::string setup = "-";
  if (chosen.entry->is_cpu())
    setup = format_text("{} threads, {} isa", now.threads > 0 ? format_text("{}", now.threads) : "default",
                        now.cpu_isa.empty() ? "best" : now.cpu_isa);
  const bool in_place = prepared.call.src == prepared.call.dst;
  const op_row& op = row_of(prepared.call.op);
  return {LOCKSTEP_VERSION, chosen.entry->name(), context.remembered().device_text(*chosen.entry, chosen.device), setup,
          format_text("{} {}{}", op.name, op.classify(prepared).text, in_place ? " in place" : "")};
}

void tell(choice& chosen, const lockstep_call& call, const std::string& text) {
  chosen.why += format_text("{}{}{}", chosen.why.empty() ? "" : "; ", call.src == call.dst ? "in place " : "", text);
}

std::string times_text(const tuned_choice& c) {
  return format_text("{} {:.3g} us, {} {:.3g}", c.row, c.us, c.beside, c.beside_us);
}

// The remembered row; if it cannot take the call, nullptr, and chosen.why says so.
const lockstep_variant* remembered(choice& chosen, const lockstep_call& call, const tuned_choice& known) {
  const lockstep_variant* row = variant_named(chosen, call.op, known.row);
  const bool keeps_order = row != nullptr && !only_by_name(*row);
  const char* refusal = keeps_order && row->refuses != nullptr ? row->refuses(chosen.queue.get(), &call) : nullptr;
  if (keeps_order && refusal == nullptr) {
    tell(chosen, call, format_text("tuned before: {}", times_text(known)));
    return row;
  }
  tell(chosen, call,
       refusal != nullptr
           ? format_text("tuned before, but {} refuses this call: {}", known.row, refusal)
           : format_text("tuned before, but auto has no variant {} on {}", known.row, chosen.entry->name()));
  return nullptr;
}

}  // namespace

const lockstep_variant* tuned_variant(lockstep_context& context, const settings& now, choice& chosen,
                                      const prepared_call& prepared, const lockstep_options& options,
                                      const lockstep_variant* best) {
  const bool wanted = (options.flags & (LOCKSTEP_TUNE | LOCKSTEP_RETUNE)) != 0;
  if (!wanted && !context.remembered().any()) return best;
  const auto untuned = [&](const char* why) {
    if (wanted) tell(chosen, prepared.call, format_text("not tuned: {}", why));
    return best;
  };
  if (chosen.forced) return untuned("the variant is named");
  const tuned_key key = key_of(context, now, chosen, prepared);
  if ((options.flags & LOCKSTEP_RETUNE) == 0)
    if (const auto known = context.remembered().find(key))
      if (const lockstep_variant* row = remembered(chosen, prepared.call, *known)) return row;
  if (!wanted) return best;
  if (only_by_name(*best)) return untuned("no variant but a reference takes the call");

  prepared_call own = prepared;
  std::vector<int64_t> offsets;
  if (own.offsets_bytes != 0) {
    if (place_of(offsets_of(own.call)).kind == LOCKSTEP_DEVICE)
      fail(LOCKSTEP_UNSUPPORTED,
           "LOCKSTEP_TUNE cannot read offsets in device memory, so it does not know how long src is; give offsets in "
           "host memory, or omit the flag");
    read_offsets(own);
    own = without_lead(std::move(own), offsets);
  }
  context.settle(chosen.queue);
  std::vector<candidate> rows =
      measured(chosen, std::move(own), best, row_of(prepared.call.op).classify(prepared).dtype);
  if (rows.size() == 1 && rows[0].us.empty()) return untuned("no other variant takes the call");
  const auto faster = [](candidate& a, candidate& b) { return a.time() < b.time(); };
  // Times vary by a few per cent, so another row must be clearly faster to replace auto's choice.
  constexpr double clearly = 0.97;
  const auto first = std::min_element(rows.begin(), rows.end(), faster);
  candidate& winner = first->time() < clearly * rows[0].time() ? *first : rows[0];
  tuned_choice choice{winner.row->name, winner.time(), rows[0].row->name, rows[0].time()};
  if (&winner == &rows[0]) {
    const auto next = std::min_element(rows.begin() + 1, rows.end(), faster);
    if (next != rows.end()) choice.beside = next->row->name, choice.beside_us = next->time();
  }
  const std::string trouble = context.remembered().keep(key, choice);
  tell(chosen, prepared.call,
       format_text("tuned now: {}{}", times_text(choice),
                   trouble.empty() ? "" : format_text(" (not written down: {})", trouble)));
  return winner.row;
}

}  // namespace lockstep::lib
