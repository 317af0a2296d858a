// normalize.cpp - rows that are cut among ranks, normalized: sums of the rows over ranks as reduce.hpp has them, then
// each rank writes its own part of them.
//   1  L2, RMS, LAYER: the norm, the squares or the moments of the rows of src
//      from SOFTMAX on: the rows' extremes (and of PICKED the elements that labels name), then the sums of exponentials
//   2  if the sums were made elsewhere (home.cpp), they are sent to the ranks that have parts of the rows
//   3  every rank writes (lockstep_normalize_desc.given)
#include <bit>
#include <cmath>

#include "../bits/functions.hpp"
#include "../bits/normalizations.hpp"
#include "devices.hpp"
#include "reduce.hpp"

namespace lockstep::lib {
template <>
inline constexpr std::array known_sizes<lockstep_normalize_desc> = {offsetof(lockstep_normalize_desc, offsets),
                                                                    sizeof(lockstep_normalize_desc)};
}  // namespace lockstep::lib

namespace lockstep::ranks {

namespace {
constexpr int64_t stretch = 64 * order::leaf;  // results at once that are not wanted

struct normalize_plan : operation {
  lockstep_normalize_desc d{};
  uint32_t arrays = 0;
  grid src;
  size_t bytes = 0, result_bytes = 0;
  reduce_plan sums;
  std::unique_ptr<reduce_plan> extremes, extremes_at_home;  // of src's blocks; of those that sums reads, if others
  std::unique_ptr<permute_plan> deliver;
  std::vector<buffer> statistics, at_home;  // of each seat, two numbers per row: lockstep_normalize_desc.given
  std::vector<buffer> delivered;            // results of sums, of the rows of src's block
  std::vector<buffer> given_there;          // of each seat on a device: statistics in its memory
  std::vector<buffer> labels, vectors, scratch;

  const lib::normalization_kind& kind() const { return lib::kind_of(d.kind); }
  bool picks() const { return d.kind == LOCKSTEP_NORMALIZE_PICKED; }
  bool has(uint32_t array) const { return (arrays & array) != 0; }
  int row_axis() const { return src.rank - 1; }
  size_t seats_of(const execution& x) const { return static_cast<size_t>(x.plan.comm->seats); }

  // The rows of a block, as an index space; of an empty block none.
  box rows_of(const grid& g, int32_t rank) const {
    box b = g.of(rank);
    const bool none = b.empty();
    b.rank = std::max(g.rank - 1, 1);
    if (g.rank == 1) b.low[0] = 0, b.length[0] = 1;
    if (none) b.length[0] = 0;
    return b;
  }
  box columns_of(int32_t rank) const {
    const box b = src.of(rank);
    const auto last = static_cast<size_t>(row_axis());
    box c;
    c.rank = 1;
    c.low[0] = b.low[last], c.length[0] = b.empty() ? 0 : b.length[last];
    return c;
  }

  void check(described& about) const {
    about.add("desc->kind", d.kind);
    about.add("desc->dtype", d.dtype);
    about.add("desc->result", d.result);
    about.add("desc->weight_dtype", d.weight_dtype);
    about.add("desc->eps or scale (its bits)", std::bit_cast<int64_t>(d.eps));
    about.add("arrays", arrays);
    require_taken([&](lockstep_context* cpu) { return lockstep_normalize(cpu, &d, nullptr, nullptr, nullptr); });
    if (kind().backward)
      fail(LOCKSTEP_UNSUPPORTED, "kind is {}, which takes whole rows; call lockstep_normalize on a rank that has them",
           kind().name);
    constexpr uint32_t all = LOCKSTEP_RANKS_WEIGHT | LOCKSTEP_RANKS_BIAS | LOCKSTEP_RANKS_RESIDUAL;
    if ((arrays & ~all) != 0)
      fail(LOCKSTEP_INVALID_ARGUMENT, "arrays is {:#x}; give LOCKSTEP_RANKS_WEIGHT (1), _BIAS (2) and _RESIDUAL (4)",
           arrays);
    if (kind().exponential && (has(LOCKSTEP_RANKS_WEIGHT) || has(LOCKSTEP_RANKS_BIAS)))
      fail(LOCKSTEP_INVALID_ARGUMENT, "arrays is {:#x}, but {} has no weight and no bias; leave them out", arrays,
           kind().name);
  }

  // A reduction of each row whose results every rank gets that has a part of the row.
  void prepare(reduce_plan& p, lockstep_reduction reduction, lockstep_dtype result) const {
    p.reduction = reduction;
    p.dtype = d.dtype;
    p.result = result;
    p.to_members = true;
  }
  void add_extremes(lockstep_comm& comm, lockstep_ranks_plan& plan, std::unique_ptr<reduce_plan>& out, const grid& of,
                    described& about) const {
    out = std::make_unique<reduce_plan>();
    prepare(*out, d.scale < 0 ? LOCKSTEP_MIN : LOCKSTEP_MAX, d.dtype);
    out->src = of;
    out->picks = picks() && &of == &src;
    out->labels.resize(static_cast<size_t>(comm.seats));
    out->build_of_src(comm, plan, 1u << (of.rank - 1), nullptr, about);
  }

  void build(lockstep_comm& comm, lockstep_ranks_plan& plan, const lockstep_grid* given, described& about) {
    check(about);
    src = read_grid(given, "src", comm.ranks(), about, d.dtype);
    bytes = lockstep_dtype_bytes(d.dtype), result_bytes = lockstep_dtype_bytes(d.result);
    d.length = src.shape[static_cast<size_t>(row_axis())];
    if (kind().one_result && d.length == 0 && rows_of_all() != 0)
      fail(LOCKSTEP_INVALID_ARGUMENT, "src->shape[{}] is 0; {} needs rows of 1 element or more", row_axis(),
           kind().name);
    prepare(sums,
            kind().exponential                 ? LOCKSTEP_SUM
            : d.kind == LOCKSTEP_NORMALIZE_L2  ? LOCKSTEP_NORM2
            : d.kind == LOCKSTEP_NORMALIZE_RMS ? LOCKSTEP_SUM_OF_SQUARES
                                               : LOCKSTEP_SUM,
            LOCKSTEP_F64);
    if (d.kind == LOCKSTEP_NORMALIZE_LAYER) sums.terms = LOCKSTEP_SUMS_MEAN_VARIANCE;
    if (kind().exponential) sums.scale = d.scale;
    sums.given.resize(static_cast<size_t>(comm.seats));
    sums.src = src;
    sums.build_of_src(comm, plan, 1u << row_axis(), nullptr, about);
    const bool elsewhere = sums.redistribute != nullptr;
    if (kind().exponential) add_extremes(comm, plan, extremes, src, about);
    if (kind().exponential && elsewhere) add_extremes(comm, plan, extremes_at_home, sums.home, about);
    if (elsewhere) add_delivery(comm, plan);
    plan.memory.skip();
    const auto room = [&](size_t n) { return buffer(plan.memory, n); };
    for (int32_t s = 0; s < comm.seats; ++s) {
      const int32_t rank = comm.first() + s;
      const auto rows = static_cast<size_t>(rows_of(src, rank).elements());
      statistics.push_back(room(rows * 2 * sizeof(double)));
      at_home.push_back(
          room(elsewhere ? static_cast<size_t>(rows_of(sums.home, rank).elements()) * 2 * sizeof(double) : 0));
      labels.push_back(room(picks() ? rows * sizeof(int64_t) : 0));
      const auto vector_bytes = static_cast<size_t>(columns_of(rank).elements()) * lockstep_dtype_bytes(d.weight_dtype);
      const bool on_device = comm.devices->has(s);
      workspace& there = plan.memory_of(s);
      given_there.emplace_back(there, on_device ? rows * 2 * sizeof(double) : 0);
      vectors.emplace_back(there, on_device && !kind().exponential ? 2 * vector_bytes : 0);
      scratch.emplace_back(there, has(LOCKSTEP_RANKS_RESIDUAL) ? stretch * sizeof(double) : 0);
    }
  }
  int64_t rows_of_all() const {
    int64_t n = 1;
    for (int k = 0; k < row_axis(); ++k) n *= src.shape[static_cast<size_t>(k)];
    return n;
  }

  // From the first member of each block of rows at home to the ranks that have parts of them.
  void add_delivery(lockstep_comm& comm, lockstep_ranks_plan& plan) {
    deliver = std::make_unique<permute_plan>();
    permute_plan& p = *deliver;
    p.src = sums.kept;
    p.src.block_of.assign(static_cast<size_t>(comm.ranks()), -1);
    for (int32_t b = 0; b < static_cast<int32_t>(p.src.rank_of.size()); ++b) {
      p.src.rank_of[static_cast<size_t>(b)] = sums.rank_of(b, 0);
      p.src.block_of[static_cast<size_t>(sums.rank_of(b, 0))] = b;
    }
    p.dst.element_bytes = sums.result_bytes;
    p.dst.rank = sums.kept.rank;
    for (int k = 0; k < sums.kept.rank; ++k) p.perm[static_cast<size_t>(k)] = k;
    p.boxes = [this](int32_t rank) {
      const box b = rows_of(src, rank);
      return b.empty() ? std::vector<box>{} : std::vector<box>{b};
    };
    p.origin = [this](int32_t rank) { return rows_of(src, rank); };
    p.takers = [this](const box& rows) {
      box wide = rows;
      wide.rank = src.rank;
      wide.low[static_cast<size_t>(row_axis())] = 0;
      wide.length[static_cast<size_t>(row_axis())] = d.length;
      std::vector<int32_t> ranks;
      src.overlapping(wide, [&](int32_t rank, const box&) { ranks.push_back(rank); });
      return ranks;
    };
    p.build(comm, plan.memory);
    for (int32_t s = 0; s < comm.seats; ++s)
      delivered.emplace_back(plan.memory,
                             static_cast<size_t>(rows_of(src, comm.first() + s).elements()) * sums.result_bytes);
  }

  void place(execution& x, const lockstep_part* src_parts, const lockstep_part* dst_parts) override {
    lockstep_comm& comm = *x.plan.comm;
    // The parts of the next array of each seat.
    const auto next = [&](std::vector<placed>& all, const lockstep_part* parts, const char* name, const auto& box_of) {
      const auto behind = static_cast<int64_t>(all.size());
      const auto* at = reinterpret_cast<const char*>(parts);
      if (at != nullptr) at += static_cast<size_t>(behind) * parts->size;
      const auto more = x.read(reinterpret_cast<const lockstep_part*>(at), name, comm.first(), comm.seats, box_of);
      all.insert(all.end(), more.begin(), more.end());
    };
    const auto block = [&](int32_t rank) { return src.of(rank); };
    const auto rows = [&](int32_t rank) { return rows_of(src, rank); };
    const auto columns = [&](int32_t rank) { return columns_of(rank); };
    next(x.from, src_parts, "src", block);
    if (has(LOCKSTEP_RANKS_RESIDUAL)) next(x.from, src_parts, "residual", block);
    if (has(LOCKSTEP_RANKS_WEIGHT)) next(x.from, src_parts, "weight", columns);
    if (has(LOCKSTEP_RANKS_BIAS)) next(x.from, src_parts, "bias", columns);
    if (picks()) next(x.from, src_parts, "labels", rows);
    if (kind().one_result)
      next(x.to, dst_parts, "dst", rows);
    else
      next(x.to, dst_parts, "dst", block);
    if (has(LOCKSTEP_RANKS_RESIDUAL)) next(x.to, dst_parts, "sum", block);
    const auto last = static_cast<size_t>(row_axis());
    const auto contiguous = [&](const std::vector<placed>& all, size_t array, const char* name) {
      for (size_t s = 0; s < seats_of(x); ++s)
        x.attempt(comm.first() + static_cast<int32_t>(s), [&] {
          const placed& p = all[array * seats_of(x) + s];
          if (p.data != nullptr && block(comm.first() + static_cast<int32_t>(s)).length[last] > 1 &&
              p.strides[last] != 1)
            fail(LOCKSTEP_INVALID_ARGUMENT, "{}[{}].strides[{}] is {}; rows are contiguous, give 1", name, s, last,
                 p.strides[last]);
        });
    };
    contiguous(x.from, 0, "src");
    if (has(LOCKSTEP_RANKS_RESIDUAL)) contiguous(x.from, 1, "residual"), contiguous(x.to, 1, "sum");
    if (!kind().one_result) contiguous(x.to, 0, "dst");
  }

  // A seat's blocks by runs of rows, or pieces of them of at most `most` elements: visit(first row, rows, first column,
  // columns, data, strides of rows).
  using visit_piece =
      std::function<void(int64_t, int64_t, int64_t, int64_t, const std::vector<char*>&, const std::vector<int64_t>&)>;
  struct row_array {
    const placed& at;
    size_t bytes;  // of an element
  };
  void each_piece(const lockstep_comm& comm, int32_t s, const std::vector<row_array>& all, int64_t most,
                  const visit_piece& visit) const {
    const box rows = rows_of(src, comm.first() + s);
    const int64_t n = columns_of(comm.first() + s).elements();
    if (rows.empty()) return;
    const int64_t columns = std::min(n, most), batch = std::max<int64_t>(most / n, 1);
    std::vector<const int64_t*> strides;
    for (const row_array& a : all) strides.push_back(a.at.strides.data());
    each_run_of(rows.elements(), rows.rank, rows.length.data(), strides, [&](const run_of_elements& run) {
      for (int64_t r = 0; r < run.count; r += std::min(batch, run.count - r))
        for (int64_t c = 0; c < n; c += columns) {
          std::vector<char*> data;
          for (size_t a = 0; a < all.size(); ++a)
            data.push_back(all[a].at.data + (run.at[a] + r * run.step[a] + c) * static_cast<int64_t>(all[a].bytes));
          visit(run.first + r, std::min(batch, run.count - r), c, std::min(columns, n - c), data, run.step);
        }
    });
  }

  // sum = src + residual, by a call whose results are not wanted.
  void add_residual(execution& x, int32_t s) const {
    lockstep_comm& comm = *x.plan.comm;
    const auto seat = static_cast<size_t>(s), seats = seats_of(x);
    const lockstep_options options = comm.options_of(s);
    each_piece(comm, s, {{x.from[seat], bytes}, {x.from[seats + seat], bytes}, {x.to[seats + seat], bytes}}, stretch,
               [&](int64_t, int64_t count, int64_t, int64_t n, const std::vector<char*>& data,
                   const std::vector<int64_t>& strides) {
                 lockstep_normalize_desc one = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_L2, d.dtype, count, n, 1);
                 one.src_stride = strides[0], one.residual_stride = strides[1], one.sum_stride = strides[2];
                 one.residual = data[1], one.sum = data[2];
                 require_ok(lockstep_normalize(comm.context, &one, data[0], scratch[seat].data(), &options));
               });
  }

  // The extremes' keys as numbers: of each row {m, 1}, and what its label names.
  void read_keys(lockstep_comm& comm, const reduce_plan& of, size_t s, int64_t rows, double* given,
                 std::vector<double>* picked) const {
    if (rows == 0) return;
    const auto* keys = reinterpret_cast<const winner*>(of.rows[s].data());
    const auto n = static_cast<size_t>(rows);
    std::vector<char> elements(n * bytes);
    std::vector<double> values(n);
    const lockstep_options options = on_the_cpu();
    const lockstep_convert_desc c = lockstep_convert_packed(d.dtype, LOCKSTEP_F64, 1, 1, &rows, nullptr);
    for (size_t q = 0; q < n; ++q) order::store_key(d.dtype, elements.data(), static_cast<int64_t>(q), keys[q].key);
    require_ok(lockstep_convert(comm.context, &c, elements.data(), values.data(), &options));
    for (size_t q = 0; q < n; ++q) given[2 * q] = values[q], given[2 * q + 1] = 1;
    if (picked == nullptr) return;
    for (size_t q = 0; q < n; ++q) order::store_key(d.dtype, elements.data(), static_cast<int64_t>(q), keys[q].index);
    picked->resize(n);
    require_ok(lockstep_convert(comm.context, &c, elements.data(), picked->data(), &options));
  }

  void read_labels(lockstep_comm& comm, int32_t s, const placed& at) const {
    const box rows = rows_of(src, comm.first() + s);
    auto* const into = reinterpret_cast<int64_t*>(labels[static_cast<size_t>(s)].data());
    if (rows.empty()) return;
    copy_box(comm, comm.devices->has(s) ? s : no_seat, sizeof(int64_t), rows, at.data, at.strides.data(), into,
             packed_strides(rows).data());
    for (int64_t q = 0; q < rows.elements(); ++q)
      if (into[q] < 0 || into[q] >= d.length)
        fail(LOCKSTEP_INVALID_ARGUMENT, "labels[{}], of row {} of the block, is {}; give 0 to {}, a place in the row",
             s, q, into[q], d.length - 1);
  }

  // What sums gave for the rows of src's block, as m and d or S of each.
  void read_sums(const char* results, int64_t rows, double* given) const {
    const auto* x = reinterpret_cast<const double*>(results);
    const auto n = static_cast<double>(d.length);
    for (int64_t q = 0; q < rows; ++q) {
      double& m = given[2 * q];
      double& part = given[2 * q + 1];
      switch (d.kind) {
        case LOCKSTEP_NORMALIZE_L2: m = 0, part = x[q] < d.eps ? d.eps : x[q]; break;
        case LOCKSTEP_NORMALIZE_RMS: m = 0, part = std::sqrt(x[q] / n + d.eps); break;
        case LOCKSTEP_NORMALIZE_LAYER: m = x[2 * q], part = std::sqrt(x[2 * q + 1] + d.eps); break;
        default: part = x[q];
      }
    }
  }

  void write_rows(execution& x, int32_t s) const {
    lockstep_comm& comm = *x.plan.comm;
    const auto seat = static_cast<size_t>(s), seats = seats_of(x);
    const bool added = has(LOCKSTEP_RANKS_RESIDUAL);
    const placed& h = added ? x.to[seats + seat] : x.from[seat];
    const box rows = rows_of(src, comm.first() + s), columns = columns_of(comm.first() + s);
    const auto* of_rows = reinterpret_cast<const double*>(statistics[seat].data());
    if (comm.devices->has(s) && !rows.empty()) {
      box pairs;
      pairs.rank = 1;
      pairs.length[0] = 2 * rows.elements();
      const int64_t packed[] = {1};
      copy_box(comm, s, sizeof(double), pairs, of_rows, packed, given_there[seat].data(), packed);
      of_rows = reinterpret_cast<const double*>(given_there[seat].data());
    }
    const size_t width = lockstep_dtype_bytes(d.weight_dtype);
    // Weight and bias, packed.
    size_t array = added ? 2 : 1;
    const auto vector_of = [&](uint32_t which, size_t place, std::vector<char>& packed) -> const char* {
      if (!has(which) || columns.empty()) return nullptr;
      const placed& p = x.from[seats * array++ + seat];
      if (p.data == nullptr) return nullptr;
      if (p.strides[0] == 1 || columns.length[0] == 1) return p.data;
      const int64_t one[] = {1};
      char* to = comm.devices->has(s) ? vectors[seat].data() + place * vectors[seat].bytes() / 2 : nullptr;
      if (to == nullptr) packed.resize(static_cast<size_t>(columns.length[0]) * width), to = packed.data();
      copy_box(comm, comm.devices->has(s) ? s : no_seat, width, columns, p.data, p.strides.data(), to, one);
      return to;
    };
    std::vector<char> packed[2];
    const char* const weight = vector_of(LOCKSTEP_RANKS_WEIGHT, 0, packed[0]);
    const char* const bias = vector_of(LOCKSTEP_RANKS_BIAS, 1, packed[1]);
    const lockstep_options options = comm.options_of(s);
    each_piece(comm, s, {{h, bytes}, {x.to[seat], result_bytes}}, INT64_MAX,
               [&](int64_t first, int64_t count, int64_t column, int64_t n, const std::vector<char*>& data,
                   const std::vector<int64_t>& strides) {
                 lockstep_normalize_desc one = lockstep_normalize_rows(d.kind, d.dtype, count, n, d.eps);
                 one.result = d.result;
                 one.weight_dtype = d.weight_dtype;
                 one.src_stride = strides[0], one.dst_stride = strides[1];
                 if (weight != nullptr) one.weight = weight + static_cast<size_t>(column) * width;
                 if (bias != nullptr) one.bias = bias + static_cast<size_t>(column) * width;
                 one.given = of_rows + 2 * first;
                 require_ok(lockstep_normalize(comm.context, &one, data[0], data[1], &options));
               });
  }

  void write_results(execution& x, int32_t s, const std::vector<double>& picked) const {
    lockstep_comm& comm = *x.plan.comm;
    const auto seat = static_cast<size_t>(s);
    const box rows = rows_of(src, comm.first() + s);
    if (rows.empty()) return;
    const auto* given = reinterpret_cast<const double*>(statistics[seat].data());
    std::vector<char> results(static_cast<size_t>(rows.elements()) * result_bytes);
    for (int64_t q = 0; q < rows.elements(); ++q) {
      const double m = given[2 * q], log = functions::apply(functions::log, given[2 * q + 1]);
      double y = std::numeric_limits<double>::quiet_NaN();
      if (!picks())
        y = std::isfinite(m) ? m * d.scale + log : m * d.scale;
      else if (std::isfinite(m))
        y = (picked[static_cast<size_t>(q)] - m) * d.scale - log;
      order::store_float(d.result, results.data(), q, y);
    }
    copy_box(comm, comm.devices->has(s) ? s : no_seat, result_bytes, rows, results.data(), packed_strides(rows).data(),
             x.to[seat].data, x.to[seat].strides.data());
  }

  task run(execution& x) override {
    lockstep_comm& comm = *x.plan.comm;
    if (d.length == 0) co_return;
    const auto seats = seats_of(x);
    const auto each_seat = [&](const auto& body) {
      for (int32_t s = 0; s < comm.seats; ++s) x.attempt(comm.first() + s, [&] { body(s, static_cast<size_t>(s)); });
    };
    const auto blocks = [&](const std::vector<placed>& all, size_t array) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(array * seats);
      return std::vector<placed>(from, from + static_cast<std::ptrdiff_t>(seats));
    };
    const bool added = has(LOCKSTEP_RANKS_RESIDUAL);
    if (added) each_seat([&](int32_t s, size_t) { add_residual(x, s); });
    const std::vector<placed> own = added ? blocks(x.to, 1) : blocks(x.from, 0);
    std::vector<std::vector<double>> picked(seats);
    if (extremes != nullptr) {
      if (picks())
        each_seat([&](int32_t s, size_t i) {
          read_labels(comm, s, x.from[seats * (added ? 2 : 1) + i]);
          extremes->labels[i] = reinterpret_cast<const int64_t*>(labels[i].data());
        });
      task first = extremes->reduced(x, own);
      co_await first;
      each_seat([&](int32_t s, size_t i) {
        auto* const given = reinterpret_cast<double*>(statistics[i].data());
        read_keys(comm, *extremes, i, rows_of(src, comm.first() + s).elements(), given, picks() ? &picked[i] : nullptr);
        sums.given[i] = given;
      });
    }
    std::vector<placed> here = own;
    task moves = sums.redistributed(x, here);
    co_await moves;
    if (extremes_at_home != nullptr) {
      task again = extremes_at_home->reduced(x, here);
      co_await again;
      each_seat([&](int32_t s, size_t i) {
        auto* const given = reinterpret_cast<double*>(at_home[i].data());
        read_keys(comm, *extremes_at_home, i, rows_of(sums.home, comm.first() + s).elements(), given, nullptr);
        sums.given[i] = given;
      });
    }
    task adds = sums.reduced(x, here);
    co_await adds;
    if (deliver != nullptr) {
      std::vector<placed> from, to;
      for (int32_t s = 0; s < comm.seats; ++s) {
        const auto i = static_cast<size_t>(s);
        from.push_back({sums.rows[i].data(), packed_strides(deliver->src.of(comm.first() + s)), false});
        to.push_back({delivered[i].data(), packed_strides(rows_of(src, comm.first() + s)), false});
      }
      task last = deliver->move_all(x, 0, from, to);
      co_await last;
    }
    each_seat([&](int32_t s, size_t i) {
      read_sums((deliver != nullptr ? delivered[i] : sums.rows[i]).data(), rows_of(src, comm.first() + s).elements(),
                reinterpret_cast<double*>(statistics[i].data()));
      kind().one_result ? write_results(x, s, picked[i]) : write_rows(x, s);
    });
  }
  bool joins_on_the_host() const override { return true; }
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const override {
    for (const reduce_plan* const p :
         std::initializer_list<const reduce_plan*>{extremes.get(), &sums, extremes_at_home.get()})
      if (p != nullptr) p->tell(link, cost);
    if (deliver != nullptr) deliver->tell(link, cost);
  }
};
}  // namespace

}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

extern "C" lockstep_status lockstep_ranks_normalize(lockstep_comm* comm, const lockstep_grid* src,
                                                    const lockstep_normalize_desc* desc, uint32_t arrays,
                                                    const lockstep_options* options, lockstep_ranks_plan** plan) {
  return make_plan<normalize_plan>(comm, kind::normalize, options, plan, [&](normalize_plan& p, auto& out, auto& d) {
    if (desc == nullptr)
      fail(LOCKSTEP_INVALID_ARGUMENT,
           "desc is NULL; pass a lockstep_normalize_desc, as lockstep_normalize_rows makes it");
    const lockstep_normalize_desc g = lib::sized(desc, lockstep_normalize_desc{}, "desc");
    p.d = lockstep_normalize_rows(g.kind, g.dtype, 0, 0, g.eps);
    p.d.result = g.result;
    p.d.weight_dtype = g.weight_dtype;
    p.arrays = arrays;
    p.build(*comm, out, src, d);
  });
}
