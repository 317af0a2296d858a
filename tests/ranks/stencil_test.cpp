// stencil_test.cpp - stencils and halos over ranks have the bits of one call on the whole array.
#include "bits/order.hpp"
#include "engines.hpp"
#include "world.hpp"

namespace lockstep::ranks_test {
namespace {

struct stencil_case {
  lockstep_stencil_desc d{};
  std::vector<double> coefficients;
  std::vector<int64_t> shape;  // a batch in front, or not
  bool batch = false;
  std::string text;
};

stencil_case draw_case(std::mt19937_64& draw) {
  stencil_case c;
  const int rank = 1 + static_cast<int>(draw() % 3);
  c.d.size = sizeof c.d;
  c.d.dtype = draw() % 2 == 0 ? LOCKSTEP_F32 : LOCKSTEP_F64;
  c.d.form = static_cast<lockstep_form>(draw() % 3);
  c.d.boundary = static_cast<lockstep_boundary>(draw() % 6);
  c.d.rank = rank;
  c.d.radius = 1 + static_cast<int>(draw() % 4);
  c.d.sweeps = 1 + static_cast<int>(draw() % 3);
  c.d.value = 0.75;
  c.d.batch = 1;
  c.d.coefficient_count = c.d.form == LOCKSTEP_GENERAL ? 2 * c.d.radius * rank + 1 : c.d.radius * rank + 1;
  for (int k = 0; k < c.d.coefficient_count; ++k)
    c.coefficients.push_back(static_cast<double>(draw() % 2000) / 1999.0 - 0.5);
  if (c.d.form == LOCKSTEP_ANTISYMMETRIC) c.coefficients[0] = 0;
  c.batch = draw() % 4 == 0;
  if (c.batch) c.shape.push_back(static_cast<int64_t>(draw() % 4));
  const int64_t shrink = c.d.boundary == LOCKSTEP_BOUNDARY_VALID ? 2 * int64_t{c.d.radius} * c.d.sweeps : 0;
  for (int k = 0; k < rank; ++k) {
    const int64_t n = rank == 1 ? static_cast<int64_t>(draw() % 3 == 0 ? 3000 + draw() % 500 : draw() % 60)
                                : static_cast<int64_t>(draw() % 3 == 0 ? 1 + draw() % 5 : 5 + draw() % 20);
    c.shape.push_back(n + (shrink > 0 ? shrink + 1 : 0));
  }
  c.text = format_text("dtype {}, form {}, boundary {}, rank {}, radius {}, sweeps {}, {}{}",
                       static_cast<int>(c.d.dtype), static_cast<int>(c.d.form), static_cast<int>(c.d.boundary), rank,
                       c.d.radius, c.d.sweeps, joined(c.shape, "x"), c.batch ? " (batch)" : "");
  return c;
}

void check(stencil_case c, const std::vector<int32_t>& parts, const std::vector<int32_t>& seats, uint64_t seed,
           const changes& with = {}) {
  const int64_t reach = int64_t{c.d.radius} * c.d.sweeps;
  const bool valid = c.d.boundary == LOCKSTEP_BOUNDARY_VALID;
  const size_t bytes = lockstep_dtype_bytes(c.d.dtype);
  int64_t n = 1;
  for (const int64_t x : c.shape) n *= x;
  const std::vector<unsigned char> whole = data_of(c.d.dtype, n, seed % 5 == 0 ? "special" : "", seed);
  run(
      seats,
      [&](member& m) {
        std::mt19937_64 draw(seed);
        drawn_grid grid = draw_grid(bytes, c.shape, parts, m.ranks, draw);
        const auto lead = static_cast<size_t>(c.batch);
        // The one call.
        lockstep_stencil_desc one = c.d;
        one.coefficients = c.coefficients.data();
        std::vector<int64_t> dst_shape = c.shape;
        int64_t src_stride = 1, dst_stride = 1;
        for (size_t k = c.shape.size(); k-- > lead;) {
          if (valid) dst_shape[k] -= 2 * reach;
          one.shape[k - lead] = c.shape[k];
          one.src_strides[k - lead] = src_stride;
          one.dst_strides[k - lead] = dst_stride;
          src_stride *= c.shape[k];
          dst_stride *= dst_shape[k];
        }
        one.batch = c.batch ? c.shape[0] : 1;
        one.src_batch_stride = src_stride;
        one.dst_batch_stride = dst_stride;
        const std::vector<unsigned char> want = told_to_all([&] {
          std::vector<unsigned char> results(static_cast<size_t>(one.batch * dst_stride) * bytes + 8);
          EXPECT_EQ(lockstep_stencil(m.context, &one, whole.data(), results.data(), nullptr), LOCKSTEP_OK)
              << c.text << lockstep_last_error();
          return results;
        });

        lockstep_stencil_desc d = c.d;
        d.coefficients = c.coefficients.data();
        std::vector<block> from, to;
        for (int32_t s = 0; s < m.seats; ++s) {
          from.emplace_back(*grid.get(), m.first + s, draw() % 2 == 0).fill(*grid.get(), whole.data());
          // Where VALID keeps less of a block, what it keeps.
          std::vector<int64_t> low = from.back().low, length = from.back().length;
          for (size_t k = lead; valid && k < length.size(); ++k) {
            const int64_t end = std::min(low[k] + length[k], c.shape[k] - reach);
            low[k] = std::max(low[k], reach);
            length[k] = std::max<int64_t>(end - low[k], 0);
            low[k] -= reach;
          }
          to.emplace_back(bytes, length, draw() % 2 == 0);
          to.back().low = low;
        }
        const std::string about =
            format_text("{}, {} ranks, rank {}, seed {}: {}", c.text, m.ranks, m.first, seed, grid.text);
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(lockstep_ranks_stencil(m.comm, grid.get(), &d, nullptr, &plan), LOCKSTEP_OK)
            << about << ": " << lockstep_last_error();
        for (int round = 0; round < 2; ++round) {
          ASSERT_EQ(execute(m, plan, &from, &to), LOCKSTEP_OK) << about << ": " << lockstep_last_error();
          for (const block& b : to) ASSERT_EQ(b.compare(dst_shape, want.data()), "") << about;
        }
        lockstep_ranks_plan_destroy(plan);
      },
      with);
}

TEST(Stencil, AnyGrid) {
  for (const int32_t ranks : rank_counts())
    for (uint64_t round = 0; round < 60; ++round) {
      const uint64_t seed = cases::mix(round * 100 + static_cast<uint64_t>(ranks)) % 1000000;
      std::mt19937_64 draw(seed + 1);
      const stencil_case c = draw_case(draw);
      check(c, draw_parts(c.shape.size(), ranks, draw), draw() % 2 == 0 ? one_each(ranks) : drawn_seats(ranks, draw),
            seed);
      if (HasFailure()) return;
    }
}

TEST(Stencil, AnyDelays) {
  if (over_mpi()) return;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::mt19937_64 draw(seed);
    changes with;
    with.engine = [&](int32_t p, lockstep_engine& e) { delay(e, seed * 100 + static_cast<uint64_t>(p)); };
    const stencil_case c = draw_case(draw);
    check(c, draw_parts(c.shape.size(), 5, draw), one_each(5), seed, with);
    if (HasFailure()) return;
  }
}

// Every ghost holds what the boundary says, found element by element.
TEST(Halo, AnyGrid) {
  for (const int32_t ranks : rank_counts())
    for (uint64_t round = 0; round < 25; ++round) {
      const uint64_t seed = cases::mix(round * 100 + static_cast<uint64_t>(ranks)) % 1000000;
      std::mt19937_64 shapes(seed + 1);
      const size_t rank = 1 + shapes() % 3;
      const auto boundary = static_cast<lockstep_boundary>(shapes() % 6);
      std::vector<int64_t> shape, width;
      for (size_t k = 0; k < rank; ++k) {
        shape.push_back(static_cast<int64_t>(1 + shapes() % (rank == 1 ? 100 : 9)));
        width.push_back(static_cast<int64_t>(shapes() % 4) * (shapes() % 5 == 0 ? 4 : 1));
      }
      const std::vector<int32_t> parts = draw_parts(rank, ranks, shapes);
      int64_t n = 1;
      for (const int64_t x : shape) n *= x;
      const auto fields = static_cast<int32_t>(1 + shapes() % 3);
      std::vector<std::vector<unsigned char>> wholes;
      for (int32_t f = 0; f < fields; ++f)
        wholes.push_back(data_of(LOCKSTEP_F64, n, "", seed + static_cast<uint64_t>(f)));
      run(shapes() % 2 == 0 ? one_each(ranks) : drawn_seats(ranks, shapes), [&](member& m) {
        const auto whole_of = [&](size_t i) { return wholes[i / static_cast<size_t>(m.seats)].data(); };
        std::mt19937_64 draw(seed);
        drawn_grid grid = draw_grid(8, shape, parts, m.ranks, draw);
        const std::string about = format_text("{} by {}, boundary {}, {} ranks, seed {}: {}", joined(shape, "x"),
                                              joined(width, ","), static_cast<int>(boundary), m.ranks, seed, grid.text);
        struct padded {
          std::vector<int64_t> low, length, all;
          std::vector<double> memory;
        };
        std::vector<padded> blocks(static_cast<size_t>(fields * m.seats));  // field by field
        std::vector<lockstep_part> parts_of;
        const double untouched = -12345.0;
        for (size_t number = 0; number < blocks.size(); ++number) {
          const block plain(*grid.get(), m.first + static_cast<int32_t>(number) % m.seats, false);
          padded& b = blocks[number];
          b.low = plain.low, b.length = plain.length;
          int64_t total = 1, stride = 1, first = 0;
          lockstep_part p{};
          p.size = sizeof p;
          for (size_t k = rank; k-- > 0;) {
            b.all.insert(b.all.begin(), b.length[k] + 2 * width[k]);
            p.strides[k] = stride;
            first += width[k] * stride;
            stride *= b.all.front();
            total *= b.all.front();
          }
          b.memory.assign(static_cast<size_t>(total), untouched);
          if (plain.elements > 0) p.data = b.memory.data() + first;
          for (int64_t i = 0; i < plain.elements; ++i) {
            int64_t left = i, here = 0, there = 0, step = 1;
            for (size_t k = rank; k-- > 0;) {
              here += left % b.length[k] * p.strides[k];
              there += (b.low[k] + left % b.length[k]) * step;
              left /= b.length[k];
              step *= shape[k];
            }
            std::memcpy(static_cast<double*>(p.data) + here, whole_of(number) + static_cast<size_t>(there) * 8, 8);
          }
          parts_of.push_back(p);
        }
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(fields == 1 ? lockstep_ranks_halo(m.comm, grid.get(), width.data(), boundary, 0.5, nullptr, &plan)
                              : lockstep_ranks_halo_fields(m.comm, grid.get(), width.data(), boundary, 0.5, fields,
                                                           nullptr, &plan),
                  LOCKSTEP_OK)
            << about << lockstep_last_error();
        std::vector<std::unique_ptr<mirror>> mirrors;
        std::vector<lockstep_part> mirrored;
        for (size_t s = 0; s < blocks.size(); ++s) {
          std::vector<double>& memory = blocks[s].memory;
          mirrors.push_back(
              std::make_unique<mirror>(m, static_cast<int32_t>(s) % m.seats, memory.data(), memory.size() * 8));
          mirrored.push_back(mirrors.back()->of(parts_of[s]));
        }
        ASSERT_EQ(lockstep_ranks_execute(plan, nullptr, mirrored.data(), nullptr), LOCKSTEP_OK)
            << about << lockstep_last_error();
        for (const auto& one : mirrors) one->back();
        mirrors.clear();
        lockstep_ranks_plan_destroy(plan);
        for (size_t number = 0; number < blocks.size(); ++number) {
          const padded& b = blocks[number];
          if (parts_of[number].data == nullptr) continue;
          for (size_t i = 0; i < b.memory.size(); ++i) {
            auto left = static_cast<int64_t>(i);
            int64_t there = 0, step = 1;
            bool outside = false;
            for (size_t k = rank; k-- > 0;) {
              int64_t x = b.low[k] - width[k] + left % b.all[k];
              left /= b.all[k];
              if (x < 0 || x >= shape[k]) {
                if (boundary >= LOCKSTEP_BOUNDARY_CONSTANT)
                  outside = true;
                else
                  x = order::folded(x, shape[k], static_cast<order::fold>(static_cast<int>(boundary)));
              }
              there += x * step;
              step *= shape[k];
            }
            double want = boundary == LOCKSTEP_BOUNDARY_CONSTANT ? 0.5 : untouched;
            if (!outside) std::memcpy(&want, whole_of(number) + static_cast<size_t>(there) * 8, 8);
            ASSERT_EQ(std::memcmp(&want, &b.memory[i], 8), 0)
                << about << ", rank " << m.first << ", block " << number << ", element " << i;
          }
        }
      });
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace lockstep::ranks_test
