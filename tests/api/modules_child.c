/* modules_child.c [cd FOLDER | rm FILE | mv FROM TO]... - does as told once it runs, then uses the library for the
 * first time and prints what it makes of its modules, its settings and its file. */
#include <lockstep/lockstep.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int obey(char** argument) {
  for (; *argument != NULL; argument += strcmp(*argument, "mv") == 0 ? 3 : 2) {
    const int failed = strcmp(*argument, "cd") == 0   ? chdir(argument[1])
                       : strcmp(*argument, "rm") == 0 ? unlink(argument[1])
                                                      : rename(argument[1], argument[2]);
    if (failed != 0) return perror(*argument), 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  (void)argc;
  if (obey(argv + 1) != 0) return 1;
  printf("uid %d, effective %d\npath %s\n", (int)getuid(), (int)geteuid(), lockstep_backend_path());
  for (int32_t i = 0; i < lockstep_backend_count(); ++i) {
    lockstep_backend_info info = {.size = sizeof info};
    if (lockstep_backend_get(i, &info) == LOCKSTEP_OK) printf("backend %s %s: %s\n", info.name, info.path, info.reason);
  }
  lockstep_context* context = NULL;
  if (lockstep_context_create(NULL, &context) != LOCKSTEP_OK)
    return printf("no context: %s\n", lockstep_last_error()), 0;
  const lockstep_transpose_desc packed = lockstep_transpose_packed(4, 2, 3);
  const float src[6] = {1, 2, 3, 4, 5, 6};
  float dst[6] = {0};
  const lockstep_status status = lockstep_transpose(context, &packed, src, dst, NULL);
  lockstep_model_info model = {.size = sizeof model};
  printf("transpose: %s\n", status == LOCKSTEP_OK ? "OK" : lockstep_last_error());
  if (lockstep_model_get(context, &model) == LOCKSTEP_OK) printf("model %s\n", model.path);
  lockstep_context_destroy(context);
  return 0;
}
