/* segments.c - the largest entry of each row of a sparse matrix (CSR), and what an empty row says. */
#include <lockstep/lockstep.h>
#include <stdio.h>

int main(void) {
  const float values[] = {1, 9, -4, 7, 2, 2, 5};
  const int64_t offsets[] = {0, 3, 3, 7}; /* row 1 is empty */
  float largest[3] = {0, -1, 0};
  int64_t at[2] = {0, 0};
  lockstep_context* context = NULL;
  if (lockstep_context_create(NULL, &context) != LOCKSTEP_OK) return fprintf(stderr, "%s\n", lockstep_last_error()), 1;

  const lockstep_reduce_desc desc = lockstep_reduce_segments(LOCKSTEP_MAX, LOCKSTEP_F32, 3, offsets);
  const lockstep_status status = lockstep_reduce(context, &desc, values, largest, NULL);
  /* The others have their result; the empty one keeps what dst held. */
  printf("%s: %s\n", lockstep_status_name(status), lockstep_last_error());
  printf("%g %g %g\n", largest[0], largest[1], largest[2]);

  const lockstep_reduce_desc two = lockstep_reduce_rows(LOCKSTEP_ARGMAX, LOCKSTEP_F32, 2, 3, 4);
  if (lockstep_reduce(context, &two, values, at, NULL) != LOCKSTEP_OK)
    return fprintf(stderr, "%s\n", lockstep_last_error()), 1;
  printf("first of the largest: %lld %lld\n", (long long)at[0], (long long)at[1]);
  lockstep_context_destroy(context);
  return status == LOCKSTEP_EMPTY && largest[0] == 9 && largest[1] == -1 && largest[2] == 7 && at[0] == 1 && at[1] == 2
             ? 0
             : 1;
}
