// gradient_norms.cpp - the norms of many tensors in one call, and the factor that clips them.
#include <cmath>
#include <cstdio>
#include <lockstep/group.hpp>
#include <vector>

int main() {
  lockstep::context context;
  std::vector<std::vector<float>> gradients;
  for (int i = 1; i <= 1000; ++i) gradients.emplace_back(static_cast<size_t>(i * 16), 0.01f);

  std::vector<lockstep_reduce_desc> descs;
  std::vector<const void*> srcs;
  std::vector<void*> dsts;
  std::vector<double> squares(gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    descs.push_back(
        lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, static_cast<int64_t>(gradients[i].size()), 1));
    srcs.push_back(gradients[i].data());
    dsts.push_back(&squares[i]);
  }
  // A plan, because the next step has the same tensors.
  lockstep::group_plan plan(context, descs, srcs, dsts);
  plan.execute();

  double total = 0;
  for (const double s : squares) total += s;
  std::printf("norm %.6f, clipped to 1 by %.6f\n", std::sqrt(total), std::fmin(1.0, 1.0 / std::sqrt(total)));
}
