// slabs_test.cpp - what stencils of host memory move over the link: one trip for all sweeps, and with each slab as many
// rows of its neighbours as its results depend on. On the scripted runtime.
#include <gtest/gtest.h>
#include <lockstep/lockstep.h>

#include <algorithm>

#include "child.hpp"
#include "fake_cudart.hpp"

namespace faults {
namespace {

constexpr int64_t side = 3072, row_bytes = side * 4, array_bytes = side * row_bytes;

// The arrays lie at src and dst, boundary and sweeps are of a call of radius 2.
struct trip {
  lockstep_boundary boundary;
  int32_t sweeps;
  const char* src;
  const char* dst;
};

// Rows of an array, first to last, not including it.
struct band {
  int64_t first, last;
};
std::vector<band> bands(const std::vector<fake::crossed>& all, bool up, const char* array, int64_t pitch) {
  std::vector<band> found;
  for (const fake::crossed& one : all) {
    if (one.up != up) continue;
    const int64_t at = static_cast<int64_t>(one.host - reinterpret_cast<uintptr_t>(array));
    if (at < 0 || at >= array_bytes) continue;  // tables and the like
    found.push_back({at / pitch, (at + static_cast<int64_t>(one.bytes) + pitch - 1) / pitch});
  }
  return found;
}

void one_trip(report& r, lockstep_context* context, const trip& t) {
  r.step("boundary " + std::to_string(t.boundary) + ", " + std::to_string(t.sweeps) + " sweeps");
  static const double star[] = {0.1, 0.1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1};
  const int64_t shape[] = {side, side};
  lockstep_stencil_desc d = lockstep_stencil_packed(LOCKSTEP_F32, 2, shape, 2, star, t.boundary);
  d.sweeps = t.sweeps;
  const int64_t halo = int64_t{2} * t.sweeps, shrink = t.boundary == LOCKSTEP_BOUNDARY_VALID ? 2 * halo : 0;
  const int64_t dst_rows = side - shrink, dst_pitch = (side - shrink) * 4;
  d.dst_strides[0] = side - shrink;
  (void)fake::last_crossed();
  const lockstep_status s = lockstep_stencil(context, &d, t.src, const_cast<char*>(t.dst), nullptr);
  r.expect(s == LOCKSTEP_OK, lockstep_last_error());
  const std::vector<fake::crossed> all = fake::last_crossed();
  const std::vector<band> up = bands(all, true, t.src, row_bytes), down = bands(all, false, t.dst, dst_pitch);
  const auto count = [](size_t n, const char* what) { return std::to_string(n) + " " + what; };
  r.expect(up.size() == down.size() && down.size() > (t.boundary == LOCKSTEP_BOUNDARY_WRAP ? 0u : 1u),
           count(up.size(), "uploads, ") + count(down.size(), "downloads"));
  int64_t uploaded = 0, next = 0;
  for (size_t k = 0; k < down.size() && k < up.size(); ++k) {
    r.expect(down[k].first == next, "results are downloaded once, in order");
    next = down[k].last;
    uploaded += up[k].last - up[k].first;
    // Row y of the results depends on rows y - halo to y + halo; under VALID row 0 lies halo rows inside.
    const int64_t first = down[k].first + shrink / 2 - halo, last = down[k].last + shrink / 2 + halo;
    r.expect(up[k].first <= std::max<int64_t>(first, 0) && up[k].last >= std::min(last, side),
             "slab " + std::to_string(k) + " lacks rows that its results depend on");
  }
  r.expect(next == dst_rows, "all results are downloaded");
  // Neighbours' rows come again, and nothing else: a sweep more costs the link nothing but 2 radii a cut.
  const int64_t again = static_cast<int64_t>(down.size() - 1) * 2 * (halo + 1);
  r.expect(uploaded <= side + again, std::to_string(uploaded) + " rows are uploaded");
}

void host_memory_in_one_trip(report& r) {
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "cuda";
  o.threads = 1;
  lockstep_context* context = nullptr;
  r.expect(lockstep_context_create(&o, &context) == LOCKSTEP_OK, lockstep_last_error());
  void *src = nullptr, *dst = nullptr;
  r.expect(cudaHostAlloc(&src, array_bytes, 0) == cudaSuccess && cudaHostAlloc(&dst, array_bytes, 0) == cudaSuccess,
           "");
  for (const lockstep_boundary boundary :
       {LOCKSTEP_BOUNDARY_NEAREST, LOCKSTEP_BOUNDARY_MIRROR, LOCKSTEP_BOUNDARY_REFLECT, LOCKSTEP_BOUNDARY_WRAP,
        LOCKSTEP_BOUNDARY_CONSTANT, LOCKSTEP_BOUNDARY_VALID})
    for (const int32_t sweeps : {1, 2, 7, 16, 32})
      one_trip(r, context, {boundary, sweeps, static_cast<char*>(src), static_cast<char*>(dst)});
  r.expect(fake::misuse().empty(), fake::misuse());
  lockstep_context_destroy(context);
  (void)cudaFreeHost(src);
  (void)cudaFreeHost(dst);
}
TEST(slabs, sweeps_of_host_memory_cross_the_link_once) { EXPECT_EQ(in_child(host_memory_in_one_trip), ""); }

}  // namespace
}  // namespace faults
