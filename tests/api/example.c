#include <lockstep/lockstep.h>
#include <stdio.h>

int main(void) {
  const float a[2][3] = {{1, 2, 3}, {4, 5, 6}};
  float t[3][2];
  lockstep_context* context;
  if (lockstep_context_create(NULL, &context)) return fprintf(stderr, "%s\n", lockstep_last_error()), 1;
  const lockstep_transpose_desc desc = lockstep_transpose_packed(sizeof(float), 2, 3);
  if (lockstep_transpose(context, &desc, a, t, NULL)) return fprintf(stderr, "%s\n", lockstep_last_error()), 1;
  printf("%g %g  %g %g  %g %g\n", t[0][0], t[0][1], t[1][0], t[1][1], t[2][0], t[2][1]);
  lockstep_context_destroy(context);
  return 0;
}
