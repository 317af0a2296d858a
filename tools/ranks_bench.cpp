// ranks_bench.cpp - `lockstep ranks plan` and `lockstep ranks bench`: what plans cost, computed and measured.
#include <lockstep/backend_peer.h>
#include <lockstep/ranks.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <deque>
#include <functional>

#include "limits.hpp"
#include "ranks_job.hpp"
#include "ranks_memory.hpp"

namespace lockstep::tool {
namespace {

std::vector<int64_t> shape_of(const std::string& text) {
  std::vector<int64_t> shape;
  for (const char *at = text.data(), *end = at + text.size();; ++at) {
    const auto [rest, code] = std::from_chars(at, end, shape.emplace_back());
    if (code != std::errc{} || shape.back() < 1 || shape.size() > 3 || (rest != end && *rest != 'x'))
      refuse("--shape is \"{}\"; give one to three sizes, 4096x4096", text);
    if (rest == end) return shape;
    at = rest;
  }
}

ranks_settings with_shape(ranks_settings s, const std::string& shape) {
  s.shape = shape;
  return s;
}

std::vector<int64_t> shape_for(const ranks_settings& s, int ranks) {
  std::vector<int64_t> shape = shape_of(s.shape);
  if (s.op == "all_reduce") {
    if (shape.size() != 1) refuse("--shape is \"{}\"; --op all_reduce adds vectors: give one size", s.shape);
    return {ranks, shape[0]};
  }
  if (s.weak && __builtin_mul_overflow(shape[0], ranks, &shape[0]))
    refuse("--shape is \"{}\", which {} ranks have too much of; give a smaller one", s.shape, ranks);
  return shape;
}

// Whether every rank gets all results of the op.
bool sums_up(const std::string& op) { return op == "sum" || op == "columns" || op == "all_reduce"; }

// An array of f32 in slabs: transposed, summed whole or by columns, or with its neighbours. all_reduce: a vector a
// rank, added element by element.
struct slab_call {
  std::vector<int64_t> shape, turned;
  lockstep_grid src{}, dst{};
  plan_handle plan{nullptr, &lockstep_ranks_plan_destroy};

  slab_call(lockstep_comm* comm, const ranks_settings& s, int ranks)
      : shape(shape_for(s, ranks)), turned(shape.rbegin(), shape.rend()) {
    const auto rank = static_cast<int32_t>(shape.size());
    src = lockstep_grid_slabs(sizeof(float), rank, shape.data(), ranks);
    dst = lockstep_grid_slabs(sizeof(float), rank, turned.data(), ranks);
    lockstep_ranks_plan* made = nullptr;
    if (s.op == "permute") {
      const int32_t perm[] = {rank - 1, rank - 2, rank - 3};
      check(lockstep_ranks_permute(comm, &src, perm, &dst, nullptr, &made));
    } else if (sums_up(s.op)) {
      check(lockstep_ranks_reduce(comm, &src, LOCKSTEP_SUM, LOCKSTEP_F32,
                                  s.op == "all_reduce" ? LOCKSTEP_F32 : LOCKSTEP_F64,
                                  s.op == "sum" ? (1u << rank) - 1 : 1u, nullptr, nullptr, &made));
    } else {
      std::vector<double> coefficients(static_cast<size_t>(8 * rank + 1), 0.1);
      const lockstep_stencil_desc d =
          lockstep_stencil_packed(LOCKSTEP_F32, rank, shape.data(), 4, coefficients.data(), LOCKSTEP_BOUNDARY_NEAREST);
      check(lockstep_ranks_stencil(comm, &src, &d, nullptr, &made));
      dst = src;
    }
    plan.reset(made);
  }
};

}  // namespace

namespace {

void plan_shape(const ranks_settings& s, lockstep_context* c, const job& no_job) {
  print("{} of f32 {}, slabs; {} us a message, {} GB/s; the process with most\n", s.op, s.shape, s.latency_us, s.speed);
  print("{:>8} {:>6} {:>9} {:>14} {:>14} {:>14} {:>10}\n", "ranks", "steps", "messages", "bytes out", "bytes in",
        "memory", "ms");
  for (const int ranks : counts_of(s, no_job, {1, 2, 4, 8, 16, 64, 256, 1024})) {
    lockstep_ranks_cost most{};
    // Blocks are even: the ends and some between stand for all.
    for (const int rank : {0, 1, ranks / 3, ranks / 2, ranks - 1}) {
      if (rank >= ranks) continue;
      lockstep_comm* raw = nullptr;
      check(lockstep_comm_dry(c, ranks, rank, &raw));
      const comm_handle comm(raw, &lockstep_comm_destroy);
      const slab_call call(comm.get(), s, ranks);
      const lockstep_ranks_link link = {sizeof link, s.latency_us, s.speed};
      lockstep_ranks_cost cost{};
      cost.size = sizeof cost;
      check(lockstep_ranks_estimate(call.plan.get(), &link, &cost));
      if (cost.ms >= most.ms) most = cost;
    }
    print("{:>8} {:>6} {:>9} {:>14} {:>14} {:>14} {:>10.3f}\n", ranks, most.steps, most.messages, most.bytes_out,
          most.bytes_in, most.workspace_bytes, most.ms);
  }
}

}  // namespace

int ranks_plan(const ranks_settings& s) {
  const context c(place{"cpu", "", "", 0});
  const job no_job = {};
  for (const std::string& shape : s.shapes) plan_shape(with_shape(s, shape), c, no_job);
  return 0;
}

namespace {

// What is timed: repeats it n times, and returns when all is done.
using repeated = std::function<void(int n)>;

// Samples of enough repetitions, the same number in every process.
std::vector<double> sampled(const ranks_settings& s, const job& here, const repeated& run) {
  const auto timed = [&](int n) {
    const auto begin = std::chrono::steady_clock::now();
    run(n);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count() / n;
  };
  constexpr double sample_ms = 20;
  run(1);  // what only the first one does
  int n = s.queued != 0 ? s.queued : 1;
  if (s.queued == 0 && !s.devices.empty())
    n = here.largest(static_cast<int>(std::clamp(sample_ms / std::max(timed(1), 1e-3), 1.0, 1000.0)));
  timed(n);
  std::vector<double> ms;
  for (int k = 0; k < s.samples; ++k) ms.push_back(timed(n));
  if (here.rank() == 0) print("{} samples of {}: ", s.samples, n == 1 ? "one" : format_text("{} queued", n));
  return ms;
}

// Plain copies between all pairs of GPUs, of the bytes that a permute of slabs sends, all at once: its limit.
class plain_copies {
 public:
  plain_copies(lockstep_context* c, const ranks_settings& s, int ranks, int64_t elements) {
    const int64_t share = elements / ranks / ranks;
    if (ranks < 2 || share == 0) refuse("--op copy copies between ranks; give --ranks 2 or more and a larger --shape");
    for (int r = 0; r < ranks; ++r) {
      end& e = ends_.emplace_back();
      const std::string& name = device_of(s.devices, r);
      check(lockstep_peers_get(name.c_str(), &e.table, &e.device));
      if (e.table == nullptr) refuse("--op copy is between GPUs, but rank {} is on {}; give --devices", r, name);
      check(e.table->stream_create(e.device, &e.stream));
      check(e.table->event_create(e.device, &e.done));
      e.from = std::make_unique<block_memory>(c, name, share * ranks);
      e.to = std::make_unique<block_memory>(c, name, share * ranks);
    }
    for (const end& a : ends_)
      for (const end& b : ends_) {
        int direct = 0;
        check(a.table->connect(a.device, b.device, &direct));
      }
    bytes_ = static_cast<size_t>(share) * sizeof(float);
  }
  ~plain_copies() {
    for (const end& e : ends_) {
      if (e.stream != nullptr) e.table->stream_destroy(e.device, e.stream);
      if (e.done != nullptr) e.table->event_destroy(e.device, e.done);
    }
  }
  plain_copies(const plain_copies&) = delete;
  plain_copies& operator=(const plain_copies&) = delete;
  void run(int n) const {
    const size_t ranks = ends_.size();
    for (int k = 0; k < n; ++k)
      for (size_t a = 0; a < ranks; ++a)
        for (size_t step = 1; step < ranks; ++step) {
          const size_t b = (a + step) % ranks;
          const end &from = ends_[a], &to = ends_[b];
          const lockstep_peer_rows all{static_cast<char*>(from.from->data()) + b * bytes_,
                                       static_cast<char*>(to.to->data()) + a * bytes_,
                                       bytes_,
                                       bytes_,
                                       bytes_,
                                       1,
                                       from.device,
                                       to.device};
          check(from.table->copy_rows(from.device, from.stream, &all));
        }
    for (const end& e : ends_) check(e.table->record(e.device, e.stream, e.done));
    for (const end& e : ends_)
      for (int done = 0; done == 0;) check(e.table->passed(e.device, e.done, &done));
  }

 private:
  struct end {
    const lockstep_peer_table* table = nullptr;
    int32_t device = 0;
    void *stream = nullptr, *done = nullptr;
    std::unique_ptr<block_memory> from, to;
  };
  std::deque<end> ends_;
  size_t bytes_ = 0;
};

// Executions of a plan on blocks of the seats' memory.
void bench_plan(const ranks_settings& s, const job& here, lockstep_context* c, int ranks, std::vector<double>& ms,
                std::string& how) {
  const comm_handle comm = here.open(c, ranks, s.message_bytes, s.devices, s.data);
  const slab_call call(comm.get(), s, ranks);
  lockstep_comm_info info{};
  info.size = sizeof info;
  check(lockstep_comm_get(comm.get(), &info));
  how = format_text("{}{}", info.engine, s.devices.empty() ? "" : format_text(", {}", info.data));
  const bool sums = sums_up(s.op);
  std::vector<lockstep_part> from, to;
  std::deque<block_memory> memory;
  int64_t low[8], length[8];
  const auto place = [&](const lockstep_grid& g, int32_t r, int64_t least, bool on_device) {
    check(lockstep_grid_box(&g, r, low, length));
    int64_t n = 1;
    for (int k = 0; k < g.rank; ++k) n *= length[k];
    const std::string device = on_device ? device_of(s.devices, r) : "cpu";
    return lockstep_part_packed(memory.emplace_back(c, device, std::max(n, least)).data(), g.rank, length);
  };
  for (int32_t r = info.rank; r < info.rank + info.seats; ++r) {
    from.push_back(place(call.src, r, 1, true));
    if (!sums) {
      to.push_back(place(call.dst, r, 1, true));
      continue;
    }
    // Every rank gets all results, of at most 8 bytes: a vector where its own is; sums in host memory, unless a named
    // plane takes none.
    int64_t results = 2;
    for (size_t k = 1; s.op != "sum" && k < call.shape.size(); ++k) results *= call.shape[k];
    const bool in_host = s.op != "all_reduce" && (s.data.empty() || s.data == "staged");
    lockstep_part p{};
    p.size = sizeof p;
    p.data = memory.emplace_back(c, in_host ? "cpu" : device_of(s.devices, r), results).data();
    const size_t kept = std::max<size_t>(call.shape.size() - 1, 1);
    int64_t stride = 1;
    for (size_t k = kept; k-- > 0;) {
      p.strides[k] = stride;
      if (s.op != "sum") stride *= call.shape[k + 1];
    }
    to.push_back(p);
  }
  lockstep_options queued = lockstep_options_defaults();
  queued.flags = LOCKSTEP_ASYNC;
  check(lockstep_ranks_synchronize(comm.get()));
  ms = sampled(s, here, [&](int n) {
    for (int k = 0; k < n; ++k) check(lockstep_ranks_execute(call.plan.get(), from.data(), to.data(), &queued));
    check(lockstep_ranks_synchronize(comm.get()));
  });
}

void bench_shape(const ranks_settings& s, lockstep_context* c, const job& here) {
  for (const int ranks : counts_of(s, here, {1, 2, 4})) {
    const std::vector<int64_t> shape = shape_for(s, ranks);
    int64_t elements = 1;
    for (const int64_t n : shape) elements *= n;
    std::vector<double> ms;
    std::string how = "plain copies";
    if (s.op == "copy") {
      if (here.there()) refuse("--op copy is between GPUs of one process; run it without the launcher");
      const plain_copies copies(c, s, ranks, elements);
      ms = sampled(s, here, [&](int n) { copies.run(n); });
    } else {
      bench_plan(s, here, c, ranks, ms, how);
    }
    const timing t = timing_of(ms);
    const double moved = static_cast<double>(elements) * 4 * (sums_up(s.op) ? 1 : 2) *
                         (s.op == "copy" ? static_cast<double>(ranks - 1) / ranks : 1.0);
    std::vector<std::string> sizes;
    for (const int64_t n : shape) sizes.push_back(format_text("{}", n));
    if (here.rank() == 0)
      print(
          "{} f32 {} over {} ranks ({}): {:.4f} ms, least {:.4f} ms, spread {:.1f} %, {:.2f} GB/s of all ranks "
          "together\n",
          s.op, joined(sizes, "x"), ranks, how, t.seconds * 1e3, *std::min_element(ms.begin(), ms.end()),
          100 * t.spread, moved / t.seconds * 1e-9);
  }
}

}  // namespace

int ranks_bench(const ranks_settings& s) {
  const job here;
  const context c(place{"cpu", "", "", here.there() ? 1 : 0});
  for (const std::string& shape : s.shapes) bench_shape(with_shape(s, shape), c, here);
  return 0;
}

}  // namespace lockstep::tool
