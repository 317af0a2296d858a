/* unload.c LIBRARY - a program that loads the library by hand, calls it with several threads and closes it: its
 * threads must find their code where it was. Then it does so once more. */
#define _DEFAULT_SOURCE  // usleep
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/lockstep.h"

#define MATRIX 1200
static float src[MATRIX * MATRIX], dst[MATRIX * MATRIX];

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, dlerror());
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (int i = 0; i < MATRIX * MATRIX; ++i) src[i] = (float)i;
  for (int round = 0; round < 3; ++round) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return failed(argv[1]);
    lockstep_status (*create)(const lockstep_context_options*, lockstep_context**);
    lockstep_status (*transpose)(lockstep_context*, const lockstep_transpose_desc*, const void*, void*,
                                 const lockstep_options*);
    void (*destroy)(lockstep_context*);
    lockstep_context_options (*defaults)(void);
    lockstep_transpose_desc (*packed)(size_t, int64_t, int64_t);
    *(void**)&create = dlsym(library, "lockstep_context_create");
    *(void**)&transpose = dlsym(library, "lockstep_transpose");
    *(void**)&destroy = dlsym(library, "lockstep_context_destroy");
    *(void**)&defaults = dlsym(library, "lockstep_context_defaults");
    *(void**)&packed = dlsym(library, "lockstep_transpose_packed");
    if (!create || !transpose || !destroy || !defaults || !packed) return failed("dlsym");
    lockstep_context_options options = defaults();
    options.backend = "cpu";
    options.threads = 4;
    lockstep_context* context = NULL;
    if (create(&options, &context) != LOCKSTEP_OK) return 3;
    const lockstep_transpose_desc d = packed(4, MATRIX, MATRIX);
    memset(dst, 0, sizeof dst);
    for (int call = 0; call < 5; ++call)
      if (transpose(context, &d, src, dst, NULL) != LOCKSTEP_OK) return 4;
    for (int i = 0; i < MATRIX; ++i)
      if (dst[i * MATRIX + 7] != src[7 * MATRIX + i]) return 5;
    destroy(context);
    if (dlclose(library) != 0) return failed("dlclose");
    usleep(50000); /* its threads go to sleep, or wake, about now */
    library = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL) {
      fprintf(stderr, "the library's code is gone, and its threads are not\n");
      return 6;
    }
    dlclose(library);
  }
  return 0;
}
