// openmp_team.cpp - see openmp_team.hpp.
#include "openmp_team.hpp"

#include <dlfcn.h>
#include <link.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "call/stack_left.hpp"
#include "environment.hpp"

namespace lockstep::cpu {
namespace {

void parallel_of_this_library(void (*part)(void*), void* data, unsigned threads, unsigned) {
#pragma omp parallel num_threads(threads)
  part(data);
}
constexpr openmp_runtime own_runtime{parallel_of_this_library, omp_get_thread_num, omp_get_num_threads,
                                     omp_in_parallel};

enum class team { own, openmp, programs };
team asked_for() {
  static const team asked = [] {
    const char* name = lib::environment("LOCKSTEP_TEAM");
    if (name == nullptr || *name == '\0') return team::programs;
    return std::strcmp(name, "openmp") == 0 ? team::openmp : team::own;
  }();
  return asked;
}

bool starts_with(const char* text, const char* with) { return std::strncmp(text, with, std::strlen(with)) == 0; }

// Whether an object is part of lockstep: by its name, or because it holds this function.
bool is_ours(const dl_phdr_info& object) {
  const char* slash = std::strrchr(object.dlpi_name, '/');
  const char* name = slash != nullptr ? slash + 1 : object.dlpi_name;
  if (starts_with(name, "liblockstep") || starts_with(name, "lockstep-")) return true;
  const auto here = reinterpret_cast<ElfW(Addr)>(&asked_for);
  for (int k = 0; k < object.dlpi_phnum; ++k) {
    const ElfW(Phdr)& part = object.dlpi_phdr[k];
    if (part.p_type == PT_LOAD && here - object.dlpi_addr - part.p_vaddr < part.p_memsz) return true;
  }
  return false;
}

struct runtimes {
  char name[8][64];
  int count = 0;
};
// What lies at an address that the loader knows as a number.
template <class T>
const T* at_address(ElfW(Addr) address) {
  return reinterpret_cast<const T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Adds the OpenMP runtimes that an object needs.
int list_runtimes(dl_phdr_info* object, size_t, void* data) {
  auto& found = *static_cast<runtimes*>(data);
  if (is_ours(*object)) return 0;
  const ElfW(Dyn)* entries = nullptr;
  for (int k = 0; k < object->dlpi_phnum; ++k)
    if (object->dlpi_phdr[k].p_type == PT_DYNAMIC)
      entries = at_address<ElfW(Dyn)>(object->dlpi_addr + object->dlpi_phdr[k].p_vaddr);
  if (entries == nullptr) return 0;
  ElfW(Addr) strings = 0;
  for (const ElfW(Dyn)* e = entries; e->d_tag != DT_NULL; ++e)
    if (e->d_tag == DT_STRTAB) strings = e->d_un.d_ptr;
  if (strings < object->dlpi_addr) strings += object->dlpi_addr;  // some loaders leave it as it is in the file
  for (const ElfW(Dyn)* e = entries; e->d_tag != DT_NULL; ++e) {
    if (e->d_tag != DT_NEEDED) continue;
    const char* name = at_address<char>(strings + e->d_un.d_val);
    const bool is_runtime =
        starts_with(name, "libgomp") || starts_with(name, "libomp.") || starts_with(name, "libiomp");
    if (is_runtime && std::strlen(name) < sizeof found.name[0] && found.count < 8)
      std::strcpy(found.name[found.count++], name);
  }
  return 0;
}

// The first of them that is loaded and has all entry points. It stays loaded, as its threads do.
bool find_runtime(openmp_runtime& runtime) {
  runtimes needed;
  dl_iterate_phdr(list_runtimes, &needed);
  for (int k = 0; k < needed.count; ++k) {
    void* library = dlopen(needed.name[k], RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const auto entry = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      return function != nullptr;
    };
    if (entry(runtime.parallel, "GOMP_parallel") && entry(runtime.thread_num, "omp_get_thread_num") &&
        entry(runtime.num_threads, "omp_get_num_threads") && entry(runtime.in_parallel, "omp_in_parallel"))
      return true;
    dlclose(library);
  }
  return false;
}

// Asked again when libraries have been loaded since.
const openmp_runtime* programs_runtime() {
  static openmp_runtime runtime;
  static bool found = false;
  static unsigned long long loaded_then = 0;
  if (found) return &runtime;
  unsigned long long loaded = 0;
  dl_iterate_phdr([](dl_phdr_info* object, size_t,
                     void* count) { return *static_cast<unsigned long long*>(count) = object->dlpi_adds, 1; },
                  &loaded);
  if (loaded == loaded_then) return nullptr;
  loaded_then = loaded;
  found = find_runtime(runtime);
  return found ? &runtime : nullptr;
}

// GCC's runtime ends the process when it cannot make a thread. So the first call with so many finds out with threads
// that wait for one another and end.
bool threads_can_be_made(int threads) {
  constexpr int most = 1024;
  static int made_before = 1;
  static bool refused = false;
  if (threads > most || threads <= made_before || refused) return threads <= most && !refused;
  pthread_t made[most];
  pthread_mutex_t wait = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&wait);
  sigset_t all, before;  // the program's own threads handle signals
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int count = 0;
  for (; count < threads - 1; ++count) {
    const auto pass = [](void* mutex) -> void* {
      pthread_mutex_lock(static_cast<pthread_mutex_t*>(mutex));
      pthread_mutex_unlock(static_cast<pthread_mutex_t*>(mutex));
      return nullptr;
    };
    if (pthread_create(&made[count], nullptr, pass, &wait) != 0) break;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_mutex_unlock(&wait);
  for (int k = 0; k < count; ++k) pthread_join(made[k], nullptr);
  refused = count < threads - 1;
  if (!refused) made_before = threads;
  return !refused;
}

// Whether the runtime's threads have stack enough for the kernels: OMP_STACKSIZE, in KiB where it names no unit, else
// the limit of the process.
bool stacks_suffice() {
  static const bool suffice = [] {
    for (const char* variable : {"OMP_STACKSIZE", "GOMP_STACKSIZE"}) {
      const char* value = lib::environment(variable);
      char* rest = nullptr;
      const double count = value != nullptr ? std::strtod(value, &rest) : 0;
      if (value == nullptr || rest == value) continue;
      while (*rest == ' ') ++rest;
      const char unit = static_cast<char>(std::toupper(static_cast<unsigned char>(*rest)));
      const double bytes = count * (unit == 'B' ? 1.0 : unit == 'M' ? 0x1p20 : unit == 'G' ? 0x1p30 : 0x1p10);
      return bytes >= static_cast<double>(enough_stack_bytes);
    }
    rlimit limit{};
    return getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= enough_stack_bytes;
  }();
  return suffice;
}

}  // namespace

const openmp_runtime* openmp_team(int threads) {
  const team asked = asked_for();
  if (asked != team::own && !stacks_suffice()) return nullptr;
  if (asked == team::own || forked()) return nullptr;
  if (asked == team::openmp) return &own_runtime;
  // Of other threads GCC's runtime would make a set for each, so they share the library's.
  static thread_local const bool is_main = syscall(SYS_gettid) == getpid();
  if (!is_main) return nullptr;
  const openmp_runtime* runtime = programs_runtime();
  return runtime != nullptr && runtime->in_parallel() == 0 && threads_can_be_made(threads) ? runtime : nullptr;
}

}  // namespace lockstep::cpu
