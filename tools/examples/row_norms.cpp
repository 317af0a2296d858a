// row_norms.cpp - the 2-norm of each row of a matrix. A row's bits do not depend on the rows around it: one row alone
// gives the same, which a model that is served in batches of any size can rely on.
#include <cstdio>
#include <lockstep/lockstep.hpp>
#include <vector>

int main() try {
  const std::int64_t rows = 64, cols = 4096;
  std::vector<float> x(rows * cols);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1013) * 0.001f - 0.5f;

  lockstep::context context;
  std::vector<double> norms(rows);
  lockstep::reduce_matrix<double, float>(context, LOCKSTEP_NORM2, lockstep::along::rows, x, norms, rows, cols);

  int wrong = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::span<const float> alone(x.data() + r * cols, cols);
    wrong += lockstep::norm2<float>(context, alone) != norms[static_cast<std::size_t>(r)];
  }
  // As 4 pictures of 16 rows: the norm of each picture's columns, over the axis between, where it lies.
  std::vector<double> of_columns(static_cast<std::size_t>(rows / 16 * cols));
  lockstep::reduce_axes(context, LOCKSTEP_NORM2, x, of_columns, std::vector<std::int64_t>{rows / 16, 16, cols},
                        std::vector<std::int32_t>{1});
  std::vector<float> last_column;
  for (std::int64_t r = rows - 16; r < rows; ++r)
    last_column.push_back(x[static_cast<std::size_t>((r + 1) * cols - 1)]);
  wrong += lockstep::norm2(context, last_column) != of_columns.back();

  std::printf("norm of row 0: %.17g; rows that differ when alone: %d\n", norms[0], wrong);
  return wrong;
} catch (const lockstep::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
