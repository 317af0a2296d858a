/* main.c - runs a transpose on the backend "plain" and on the CPU's own, and compares them byte by byte. */
#include <lockstep/lockstep.h>
#include <stdio.h>
#include <string.h>

enum { rows = 37, cols = 19 };

int main(void) {
  static float src[rows * cols], by_plain[cols * rows], by_cpu[cols * rows];
  for (int i = 0; i < rows * cols; ++i) src[i] = (float)i;
  const lockstep_transpose_desc desc = lockstep_transpose_packed(sizeof(float), rows, cols);
  lockstep_options options = lockstep_options_defaults();
  lockstep_context* context = NULL;
  lockstep_run_info ran = {.size = sizeof ran};

  if (lockstep_context_create(NULL, &context) != LOCKSTEP_OK) return fprintf(stderr, "%s\n", lockstep_last_error()), 1;
  options.backend = "plain";
  if (lockstep_transpose(context, &desc, src, by_plain, &options) != LOCKSTEP_OK ||
      lockstep_last_run(&ran) != LOCKSTEP_OK)
    return fprintf(stderr, "%s\n", lockstep_last_error()), 1;
  printf("%s/%s ran", ran.backend, ran.variant);
  options.backend = "cpu";
  if (lockstep_transpose(context, &desc, src, by_cpu, &options) != LOCKSTEP_OK)
    return fprintf(stderr, "%s\n", lockstep_last_error()), 1;
  const int equal = memcmp(by_plain, by_cpu, sizeof by_cpu) == 0;
  printf(", the CPU's result is %s\n", equal ? "equal" : "DIFFERENT");
  lockstep_context_destroy(context);
  return equal ? 0 : 1;
}
