/* transpose.c - a matrix inside a larger one, transposed without a copy of it: leading dimensions say where rows begin.
 */
#include <lockstep/lockstep.h>
#include <stdio.h>
#include <stdlib.h>

enum { rows = 300, cols = 200, wide = 512 };

int main(void) {
  lockstep_context* context = NULL;
  double* image = malloc(sizeof(double) * rows * wide);
  double* turned = malloc(sizeof(double) * cols * rows);
  if (image == NULL || turned == NULL) return fprintf(stderr, "out of memory\n"), 1;
  for (int i = 0; i < rows * wide; ++i) image[i] = i;

  lockstep_transpose_desc desc = lockstep_transpose_packed(sizeof(double), rows, cols);
  desc.src_ld = wide; /* the next row of src begins so many elements further */

  if (lockstep_context_create(NULL, &context) != LOCKSTEP_OK ||
      lockstep_transpose(context, &desc, image, turned, NULL) != LOCKSTEP_OK)
    return fprintf(stderr, "%s\n", lockstep_last_error()), 1;

  int wrong = 0;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) wrong += turned[j * rows + i] != image[i * wide + j];
  printf("%d x %d of a row of %d: %d wrong\n", rows, cols, wide, wrong);
  lockstep_context_destroy(context);
  free(image), free(turned);
  return wrong != 0;
}
