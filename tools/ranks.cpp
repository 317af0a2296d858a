// ranks.cpp - `lockstep ranks`, and `lockstep ranks verify`: the cases of `lockstep verify` over many ranks. Ranks are
// seats of this process, or, under mpirun and in a build with MPI, the processes of the job.
#include <lockstep/ranks.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <random>

#include "bits/normalizations.hpp"
#include "ranks_job.hpp"
#include "ranks_memory.hpp"
#include "runner.hpp"

namespace lockstep::tool {
namespace {

// An array in one memory, cut into blocks that stay where they are.
struct cut_array {
  lockstep_grid grid{};
  std::vector<int64_t> strides, cuts[LOCKSTEP_MAX_RANK];

  cut_array(size_t bytes, std::vector<int64_t> shape, std::vector<int64_t> with, int ranks, std::mt19937_64& draw)
      : strides(std::move(with)) {
    grid.size = sizeof grid;
    grid.element_bytes = bytes;
    grid.rank = static_cast<int32_t>(shape.size());
    int left = ranks;
    for (size_t k = 0; k < shape.size(); ++k) {
      const auto last = k + 1 == shape.size();
      const int parts = last || draw() % 2 == 0 ? left : static_cast<int>(1 + draw() % static_cast<uint64_t>(left));
      grid.shape[k] = shape[k];
      grid.parts[k] = parts;
      left /= parts;
      for (int j = 0; j <= parts; ++j)
        cuts[k].push_back(j == 0       ? 0
                          : j == parts ? shape[k]
                                       : static_cast<int64_t>(draw() % static_cast<uint64_t>(shape[k] + 1)));
      std::sort(cuts[k].begin(), cuts[k].end());
    }
    for (size_t k = 0; k < shape.size(); ++k) grid.cuts[k] = cuts[k].data();
  }
  lockstep_part part(int32_t rank, const void* base, int64_t* low, int64_t* length) const {
    check(lockstep_grid_box(&grid, rank, low, length));
    lockstep_part p{};
    p.size = sizeof p;
    auto* at = static_cast<char*>(const_cast<void*>(base));
    for (size_t k = 0; k < strides.size(); ++k) {
      p.strides[k] = strides[k];
      at += low[k] * strides[k] * static_cast<int64_t>(grid.element_bytes);
    }
    p.data = at;
    return p;
  }
};

// Runs a case over the ranks of comm. False if its kind has no call over ranks.
struct ranks_call {
  lockstep_context* context;
  lockstep_comm* comm;
  const std::vector<std::string>& devices;
  lockstep_comm_info info{};
  std::vector<unsigned char> own;  // of dst's bytes, those that this process must have written

  ranks_call(lockstep_context* c, lockstep_comm* over, const std::vector<std::string>& on)
      : context(c), comm(over), devices(on) {
    info.size = sizeof info;
    check(lockstep_comm_get(comm, &info));
  }

  static bool takes(const cases::test_case& c) {
    if (c.in_place || !c.offsets.empty()) return false;
    switch (c.op) {
      case LOCKSTEP_TRANSPOSE:
      case LOCKSTEP_PERMUTE:
      case LOCKSTEP_STENCIL:
      case LOCKSTEP_REDUCE:
      case LOCKSTEP_SQUARE_SUM: return true;
      case LOCKSTEP_SCAN: return c.before.empty() && (c.scan.length < 2 || c.scan.element_stride > 0);
      case LOCKSTEP_NORMALIZE:
        return c.normalize.src_stride > 0 && c.normalize.inner <= 1 && c.given.empty() &&
               !lib::kind_of(c.normalize.kind).backward;
      case LOCKSTEP_SUMS:  // each rank has blocks of its own of both arrays
        return c.sums.kind <= LOCKSTEP_SUMS_ABSOLUTE &&
               (c.other.empty() || c.sums.count < 2 || c.sums.other_sequence_stride > 0);
      default: return false;
    }
  }

  lockstep_status run(const cases::test_case& c, const void* src, void* dst, uint64_t seed) {
    std::mt19937_64 draw(seed);
    own.assign(c.dst.span_bytes(), 0);
    const int ranks = info.ranks;
    const size_t bytes = c.src.element_bytes, out_bytes = c.dst.element_bytes;
    lockstep_ranks_plan* plan = nullptr;
    lockstep_status status = LOCKSTEP_OK;
    if (c.op == LOCKSTEP_NORMALIZE) return normalized(c, src, dst, draw);
    const auto execute = [&](const cut_array& from, const cut_array& to,
                             const std::function<void(int64_t*, int64_t*)>& place, const cut_array* other = nullptr) {
      if (status != LOCKSTEP_OK) return;
      const plan_handle owner(plan, &lockstep_ranks_plan_destroy);
      std::vector<lockstep_part> in, out;
      std::deque<seat_memory> memory, others;
      int64_t low[LOCKSTEP_MAX_RANK], length[LOCKSTEP_MAX_RANK];
      for (int32_t s = 0; s < info.seats; ++s) {
        in.push_back(from.part(info.rank + s, src, low, length));
        lockstep_part p = to.part(info.rank + s, dst, low, length);
        if (place != nullptr) {
          place(low, length);
          p.data = dst;
          for (size_t k = 0; k < to.strides.size(); ++k)
            p.data = static_cast<char*>(p.data) + low[k] * to.strides[k] * static_cast<int64_t>(out_bytes);
        }
        const std::string& device = device_of(devices, info.rank + s);
        in.back().data =
            memory.emplace_back(context, device, const_cast<void*>(src), c.src.span_bytes()).at(in.back().data);
        p.data = memory.emplace_back(context, device, dst, c.dst.span_bytes()).at(p.data);
        out.push_back(p);
        mark(to.strides, low, length, out_bytes);
      }
      for (int32_t s = 0; s < info.seats && other != nullptr; ++s) {
        auto* const data = const_cast<unsigned char*>(c.other.data());
        lockstep_part& p = in.emplace_back(other->part(info.rank + s, data, low, length));
        p.data = others.emplace_back(context, device_of(devices, info.rank + s), data, c.other.size()).at(p.data);
      }
      status = lockstep_ranks_execute(plan, in.data(), out.data(), nullptr);
      const std::string text = lockstep_last_error();
      for (size_t i = 1; i < memory.size(); i += 2) memory[i].merge();
      lockstep_set_error(text.c_str());
    };
    if (c.op == LOCKSTEP_TRANSPOSE) {
      const lockstep_transpose_desc& d = c.transpose;
      const cut_array from(bytes, {d.batch, d.rows, d.cols}, {d.src_batch_stride, d.src_ld, 1}, ranks, draw);
      const cut_array to(bytes, {d.batch, d.cols, d.rows}, {d.dst_batch_stride, d.dst_ld, 1}, ranks, draw);
      const int32_t perm[] = {0, 2, 1};
      status = lockstep_ranks_permute(comm, &from.grid, perm, &to.grid, nullptr, &plan);
      execute(from, to, nullptr);
    } else if (c.op == LOCKSTEP_PERMUTE) {
      const lockstep_permute_desc& d = c.permute;
      std::vector<int64_t> turned;
      for (int k = 0; k < d.rank; ++k) turned.push_back(d.shape[d.perm[k]]);
      const cut_array from(bytes, {d.shape, d.shape + d.rank}, {d.src_strides, d.src_strides + d.rank}, ranks, draw);
      const cut_array to(bytes, turned, {d.dst_strides, d.dst_strides + d.rank}, ranks, draw);
      status = lockstep_ranks_permute(comm, &from.grid, d.perm, &to.grid, nullptr, &plan);
      execute(from, to, nullptr);
    } else if (c.op == LOCKSTEP_STENCIL) {
      lockstep_stencil_desc d = c.stencil;
      d.coefficients = c.coefficients.data();
      const bool valid = d.boundary == LOCKSTEP_BOUNDARY_VALID;
      const int64_t reach = valid ? int64_t{d.radius} * d.sweeps : 0;
      std::vector<int64_t> shape = {d.batch}, in = {d.src_batch_stride}, out = {d.dst_batch_stride};
      for (int k = 0; k < d.rank; ++k)
        shape.push_back(d.shape[k]), in.push_back(d.src_strides[k]), out.push_back(d.dst_strides[k]);
      const cut_array from(bytes, shape, in, ranks, draw);
      cut_array to = from;
      for (size_t k = 0; k < shape.size(); ++k) to.grid.cuts[k] = to.cuts[k].data();
      to.strides = out;
      status = lockstep_ranks_stencil(comm, &from.grid, &d, nullptr, &plan);
      // Under VALID a block's result is the part that is far enough from the whole array's ends.
      execute(from, to, [&](int64_t* low, int64_t* length) {
        for (size_t k = 1; k < shape.size(); ++k) {
          const int64_t end = std::min(low[k] + length[k], shape[k] - reach);
          low[k] = std::max(low[k], reach);
          length[k] = std::max<int64_t>(end - low[k], 0);
          low[k] -= reach;
        }
      });
    } else if (c.op == LOCKSTEP_SUMS) {
      const lockstep_sums_desc& d = c.sums;
      const cut_array from(bytes, {d.count, d.length}, {d.sequence_stride, d.element_stride}, ranks, draw);
      const cut_array to(out_bytes, {d.count}, {1}, ranks, draw);
      cut_array other = from;
      for (size_t k = 0; k < 2; ++k) other.grid.cuts[k] = other.cuts[k].data();
      other.strides = {d.other_sequence_stride, d.other_element_stride};
      status = lockstep_ranks_sums(comm, &from.grid, d.kind, d.dtype, d.result, 2, &to.grid, nullptr, &plan);
      execute(from, to, nullptr, d.kind <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES ? &other : nullptr);
    } else if (c.op == LOCKSTEP_SCAN) {
      const lockstep_scan_desc& d = c.scan;
      const cut_array from(bytes, {d.count, d.length}, {d.sequence_stride, d.element_stride}, ranks, draw);
      cut_array to = from;
      for (size_t k = 0; k < 2; ++k) to.grid.cuts[k] = to.cuts[k].data();
      to.strides = {d.dst_sequence_stride, d.dst_element_stride};
      to.grid.element_bytes = out_bytes;
      status = lockstep_ranks_scan(comm, &from.grid, d.reduction, d.dtype, d.result, 1, d.exclusive, nullptr, &plan);
      execute(from, to, nullptr);
    } else {
      const lockstep_reduce_desc& d = c.reduce;
      const cut_array from(bytes, {d.count, d.length}, {d.sequence_stride, d.element_stride}, ranks, draw);
      const cut_array to(out_bytes, {d.count}, {1}, ranks, draw);
      status = lockstep_ranks_reduce(comm, &from.grid, d.reduction, d.dtype, d.result, 2, &to.grid, nullptr, &plan);
      execute(from, to, nullptr);
    }
    return status;
  }

 private:
  // Rows that are cut among ranks; weight, bias and labels beside them.
  lockstep_status normalized(const cases::test_case& c, const void* src, void* dst, std::mt19937_64& draw) {
    const lockstep_normalize_desc& d = c.normalize;
    const bool one_result = lib::kind_of(d.kind).one_result, picks = d.kind == LOCKSTEP_NORMALIZE_PICKED;
    const cut_array from(c.src.element_bytes, {d.count, d.length}, {d.src_stride, 1}, info.ranks, draw);
    uint32_t arrays = c.residual.empty() ? 0 : LOCKSTEP_RANKS_RESIDUAL;
    if (!c.weight.empty() && !picks) arrays |= LOCKSTEP_RANKS_WEIGHT;
    if (!c.bias.empty()) arrays |= LOCKSTEP_RANKS_BIAS;
    lockstep_ranks_plan* plan = nullptr;
    const lockstep_status made = lockstep_ranks_normalize(comm, &from.grid, &d, arrays, nullptr, &plan);
    if (made != LOCKSTEP_OK) return made;
    const plan_handle owner(plan, &lockstep_ranks_plan_destroy);
    std::vector<lockstep_part> in, out;
    std::deque<seat_memory> memory, results;
    std::vector<unsigned char> sum(c.residual.size());
    // The part of each seat: of its block, of its columns or of its rows.
    const auto add = [&](std::vector<lockstep_part>& parts, std::deque<seat_memory>& kept, const void* data,
                         size_t bytes, size_t element_bytes, std::vector<int64_t> strides, bool columns) {
      for (int32_t s = 0; s < info.seats; ++s) {
        int64_t low[LOCKSTEP_MAX_RANK], length[LOCKSTEP_MAX_RANK];
        check(lockstep_grid_box(&from.grid, info.rank + s, low, length));
        lockstep_part p{};
        p.size = sizeof p;
        int64_t at = columns ? low[1] : low[0] * strides[0];
        if (strides.size() == 2) at += low[1];
        std::copy(strides.begin(), strides.end(), p.strides);
        auto* const memory_of = const_cast<char*>(static_cast<const char*>(data));
        p.data = kept.emplace_back(context, device_of(devices, info.rank + s), memory_of, bytes)
                     .at(memory_of + at * static_cast<int64_t>(element_bytes));
        parts.push_back(p);
        if (data != dst || length[0] == 0 || length[1] == 0) continue;
        if (strides.size() == 1) length[1] = low[1] = 0;
        mark(strides, low, length, element_bytes);
      }
    };
    const std::vector<int64_t> one = {1};
    const size_t weight_bytes = lockstep_dtype_bytes(d.weight_dtype);
    add(in, memory, src, c.src.span_bytes(), c.src.element_bytes, {d.src_stride, 1}, false);
    if (!c.residual.empty())
      add(in, memory, c.residual.data(), c.residual.size(), c.src.element_bytes, {d.residual_stride, 1}, false);
    if (!c.weight.empty() && !picks) add(in, memory, c.weight.data(), c.weight.size(), weight_bytes, one, true);
    if (!c.bias.empty()) add(in, memory, c.bias.data(), c.bias.size(), weight_bytes, one, true);
    if (picks) add(in, memory, c.weight.data(), c.weight.size(), sizeof(int64_t), one, false);
    std::vector<int64_t> strides = {d.dst_stride};
    if (!one_result) strides.push_back(1);
    add(out, results, dst, c.dst.span_bytes(), c.dst.element_bytes, strides, false);
    if (!c.residual.empty())
      add(out, memory, sum.data(), sum.size(), c.src.element_bytes, {d.residual_stride, 1}, false);
    const lockstep_status status = lockstep_ranks_execute(plan, in.data(), out.data(), nullptr);
    const std::string text = lockstep_last_error();
    for (const seat_memory& one_of : results) one_of.merge();
    lockstep_set_error(text.c_str());
    return status;
  }

  void mark(const std::vector<int64_t>& strides, const int64_t* low, const int64_t* length, size_t bytes) {
    int64_t elements = 1;
    for (size_t k = 0; k < strides.size(); ++k) elements *= length[k];
    for (int64_t i = 0; i < elements; ++i) {
      int64_t left = i, at = 0;
      for (size_t k = strides.size(); k-- > 0;) {
        at += (low[k] + left % length[k]) * strides[k];
        left /= length[k];
      }
      std::fill_n(own.begin() + at * static_cast<int64_t>(bytes), bytes, 1);
    }
  }
};
int verify(const ranks_settings& s) {
  const job here;
  const context c(place{"cpu", "", "", 0});
  bool failed = false;
  for (const int ranks : counts_of(s, here, {1, 2, 3, 5, 8})) {
    if (ranks > 1024) refuse("--ranks is {}; seats of one process are 1 to 1024", ranks);
    // Small messages, so that the cases' arrays need several.
    const comm_handle comm = here.open(c, ranks, 64 << 10, s.devices, s.data);
    ranks_call call(c, comm.get(), s.devices);
    if (s.digest) {
      if (here.there()) refuse("--digest needs all results in one process; run it without the launcher");
      print("{}  ({} ranks)\n",
            cases::digest_by([&](const cases::test_case& one, const unsigned char* src, unsigned char* dst) {
              return ranks_call::takes(one) ? call.run(one, src, dst, one.seed)
                                            : cases::call(c, one, src, dst, one.offsets.data(), nullptr);
            }),
            ranks);
      continue;
    }
    for (const std::string& name : s.ops.empty() ? op_names() : s.ops) {
      size_t good = 0, run = 0, local = 0;
      lockstep_op op = LOCKSTEP_OP_COUNT;
      for (int k = 0; k < LOCKSTEP_OP_COUNT; ++k)
        if (name == lockstep_op_name(static_cast<lockstep_op>(k))) op = static_cast<lockstep_op>(k);
      for (const std::string& one : cases::list(op, s.level == "full" ? cases::level::full : cases::level::quick,
                                                static_cast<uint64_t>(s.seed))) {
        cases::test_case parsed = cases::parse(one);
        if (!ranks_call::takes(parsed)) {
          ++local;
          continue;
        }
        cases::subject subject(std::move(parsed));
        std::vector<unsigned char> dst = subject.before, want = subject.before;
        ++run;
        const lockstep_status status =
            call.run(subject.c, subject.src.data(), dst.data(), cases::mix(static_cast<uint64_t>(s.seed) + run));
        for (size_t i = 0; i < want.size(); ++i)
          if (call.own[i] != 0) want[i] = subject.after[i];
        const bool equal = status == subject.want.status && (status == LOCKSTEP_EMPTY || want == dst);
        good += equal;
        if (!equal)
          print("{} over {} ranks: {}\n", one, ranks,
                status != subject.want.status
                    ? format_text("{}, not {}: {}", lockstep_status_name(status),
                                  lockstep_status_name(subject.want.status), lockstep_last_error())
                    : "other bits");
      }
      failed = failed || good != run;
      if (here.rank() == 0)
        print("  {:>4} ranks  {:<11} {:>6} of {:>6} equal{}\n", ranks, name, good, run,
              local != 0 ? format_text(", {} have no call over ranks (in place, segments, other operations)", local)
                         : "");
    }
  }
  return failed ? 1 : 0;
}
}  // namespace

void ranks_command(command root, action& chosen) {
  auto command = root.add_command("ranks", "Arrays over many ranks: check, plan, time");
  command.require_command();
  const auto s = std::make_shared<ranks_settings>();
  auto one = command.add_command("verify", "Every case over ranks against the oracle, bit for bit");
  one.add("--ranks", s->ranks, "numbers of ranks, as seats of this process (default: 1 2 3 5 8)").type_name("N");
  one.add("--op", s->ops, "operations (default: all)").one_of(op_names());
  one.add("--level", s->level, "how many cases").one_of({"quick", "full"}).show_default();
  one.add("--seed", s->seed, "of data and cuts").between(int64_t{0}, INT64_MAX - 1).show_default();
  one.add("--digest", s->digest, "print the digest of `lockstep verify --digest`, made over ranks");
  one.when_called([s, &chosen] { chosen = [s] { return verify(*s); }; });
  auto two = command.add_command("plan", "Messages, bytes, memory and time at any number of ranks, without running");
  auto three = command.add_command("bench", "Times, ranks as seats of this process or under mpirun");
  for (auto* it : {&two, &three}) {
    std::vector<std::string> ops = {"permute", "sum", "columns", "all_reduce", "stencil"};
    if (it == &three) ops.emplace_back("copy");  // the limit of a permute between GPUs of this process
    it->add("--op", s->op, "what to do with the array").one_of(ops).show_default();
    it->add("--shape", s->shapes, "of whole arrays of f32, one after the other").type_name("AxBxC").show_default();
    it->add("--ranks", s->ranks, "numbers of ranks").type_name("N");
  }
  for (auto* it : {&one, &three}) {
    it->add("--devices", s->devices, "backends of ranks 0, 1, ..., in turn: cuda:0 cpu (default: cpu)")
        .type_name("NAME");
    it->add("--data", s->data, "data plane (default: the best for each pair)")
        .one_of({"direct", "engine", "nccl", "staged"});
  }
  two.add("--latency-us", s->latency_us, "of a message").between(0.0, 1e6).show_default();
  two.add("--gigabytes-per-s", s->speed, "into or out of a process").between(1e-6, 1e6).show_default();
  three.add("--samples", s->samples, "times taken; the median is told").between(1, 10000).show_default();
  three
      .add("--queued", s->queued,
           "executions of a sample, one after the other (default: 1; on devices as many as take 20 ms)")
      .between(1, 100000);
  three.add("--weak", s->weak, "the shape is that of one rank: with more ranks the first axis is longer");
  three.add("--message-bytes", s->message_bytes, "most bytes in one message (default: the library's)")
      .between(0, 1 << 30);
  two.when_called([s, &chosen] { chosen = [s] { return ranks_plan(*s); }; });
  three.when_called([s, &chosen] { chosen = [s] { return ranks_bench(*s); }; });
}

}  // namespace lockstep::tool
