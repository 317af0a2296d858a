// context.cpp - see context.hpp.
#include "context.hpp"

#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>

#include "choose/retired.hpp"
#include "environment.hpp"
#include "ops/ops.hpp"
#include "status.hpp"

namespace lockstep::lib {
namespace {

// All contexts of the process. If a thread forks while others are in calls, the child would inherit locks that no
// thread can release. So the locks of contexts are taken before the fork and released after it, and the child frees
// what the other threads held. A backend, or a caller's allocator, may itself fork (drivers do, to create device
// nodes): so none of these locks is held while their code runs.
void after_fork(bool in_child);
struct living {
  std::mutex mutex;
  lockstep_context* first = nullptr;
};
living& all_living() {
  static living* const one = [] {
    auto* made = new living;  // never destroyed: a fork may happen after main
    (void)backends();         // searched for now, so that no fork can interrupt the search
    pthread_atfork(
        [] {
          all_living().mutex.lock();
          for (lockstep_context* c = all_living().first; c != nullptr; c = c->next_living) c->before_fork();
        },
        [] { after_fork(false); }, [] { after_fork(true); });
    return made;
  }();
  return *one;
}
void after_fork(bool in_child) {
  if (in_child)
    for (backend_entry* entry : backends()) entry->after_fork_in_child();
  for (lockstep_context* c = all_living().first; c != nullptr; c = c->next_living) c->after_fork(in_child);
  all_living().mutex.unlock();
}

std::string known_backends() {
  std::string text = "auto";
  for (const backend_entry* entry : backends()) text += ", " + entry->name();
  return text;
}

void* default_allocate(void*, size_t bytes, size_t alignment) {
  if (bytes > SIZE_MAX - alignment) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void default_release(void*, void* pointer, size_t, size_t) { std::free(pointer); }

int32_t parse_threads(const char* text) {
  int32_t threads = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, code] = std::from_chars(text, end, threads);
  if (code != std::errc{} || rest != end || threads < 1 || threads > 4096)
    fail(LOCKSTEP_INVALID_ARGUMENT, "LOCKSTEP_NUM_THREADS is \"{}\"; set it to a number from 1 to 4096 or unset it",
         text);
  return threads;
}

}  // namespace

backend_name named_backend(const std::string& text, const char* argument) {
  backend_name parsed;
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const bool is_auto = name == "auto";
  if (colon != std::string::npos) {
    const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
    const auto [rest, code] = std::from_chars(begin, end, parsed.device);
    if (begin == end || code != std::errc{} || rest != end || parsed.device < 0 || is_auto)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{} is \"{}\"; write a backend ({}) or a device of one, \"cuda:1\"", argument,
           text, known_backends());
  }
  if (is_auto) return parsed;
  parsed.entry = find_backend(name);
  if (parsed.entry == nullptr)
    fail(LOCKSTEP_NO_BACKEND, "{} is \"{}\", which is not a known backend; known are {} (searched: {}){}", argument,
         text, known_backends(), search_path_text(),
         name == "cuda" ? "; the CUDA module is built with meson -Dcuda=enabled, which needs nvcc 12.0 or later" : "");
  return parsed;
}

backend_name parse_backend(const std::string& text, const char* argument) {
  const backend_name parsed = named_backend(text, argument);
  if (parsed.is_auto()) return parsed;
  backend_entry& entry = *parsed.entry;
  if (entry.get() == nullptr)
    fail(LOCKSTEP_NO_BACKEND, "{} is \"{}\", which cannot run here: {}; use \"auto\" or \"cpu\"", argument, text,
         entry.reason());
  if (parsed.device >= entry.devices())
    fail(LOCKSTEP_NO_BACKEND, "{} is \"{}\", but {} has {} device(s), numbered from 0", argument, text, entry.name(),
         entry.devices());
  return parsed;
}

void check_variant_known(lockstep_op op, const std::string& name, const char* argument) {
  std::string known;
  for (backend_entry* entry : backends()) {
    const lockstep_backend* backend = entry->loaded();
    if (backend == nullptr) continue;
    const lockstep_table table = table_of(*backend, op);
    for (size_t i = 0; i < table.count; ++i) {
      if (name == table.rows[i].name) return;
      known += format_text("{}{}:{}", known.empty() ? "" : ", ", entry->name(), table.rows[i].name);
    }
  }
  if (const char* successor = successor_of(op, name))
    fail(LOCKSTEP_NO_VARIANT, "{}: {} no longer has the variant \"{}\"; use \"{}\"; known are {}", argument,
         lockstep_op_name(op), name, successor, known);
  fail(LOCKSTEP_NO_VARIANT, "{}: {} has no variant \"{}\"; known are {}", argument, lockstep_op_name(op), name, known);
}

variant_names parse_variants(const std::string& text, const char* argument) {
  variant_names names;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    const lockstep_op op = find_op(item.substr(0, equals));
    if (equals == std::string::npos || op == LOCKSTEP_OP_COUNT)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{} has \"{}\"; write op=variant pairs such as \"transpose=tiled,reduce=ref\"",
           argument, item);
    const std::string name = item.substr(equals + 1);
    if (name != "auto") check_variant_known(op, name, argument);
    names[op] = name == "auto" ? "" : name;
  }
  return names;
}

}  // namespace lockstep::lib

using namespace lockstep::lib;
using lockstep::format_text;

lockstep_context::lockstep_context(const lockstep_context_options& options)
    : allocator_{nullptr, default_allocate, default_release} {
  if (options.allocator != nullptr) {
    if (options.allocator->allocate == nullptr || options.allocator->release == nullptr)
      fail(LOCKSTEP_INVALID_ARGUMENT, "options.allocator lacks a function; give both allocate and release");
    allocator_ = *options.allocator;
  }
  if (options.threads < 0 || options.threads > 4096)
    fail(LOCKSTEP_INVALID_ARGUMENT, "options.threads is {}; give 1 to 4096, or 0 for the default", options.threads);
  const auto text = [](const char* option, const char* variable, const char* fallback) -> std::string {
    if (option != nullptr) return option;
    const char* value = environment(variable);
    return value != nullptr && *value != '\0' ? value : fallback;
  };
  require_flags("options.flags", options.flags, LOCKSTEP_NO_FALLBACK, "LOCKSTEP_NO_FALLBACK (2)");
  auto next = std::make_shared<settings>();
  next->flags = options.flags;
  next->backend = parse_backend(text(options.backend, "LOCKSTEP_BACKEND", "auto"),
                                options.backend != nullptr ? "options.backend" : "LOCKSTEP_BACKEND");
  next->variants = parse_variants(text(options.variants, "LOCKSTEP_VARIANT", ""),
                                  options.variants != nullptr ? "options.variants" : "LOCKSTEP_VARIANT");
  next->cpu_isa = text(options.cpu_isa, "LOCKSTEP_CPU_ISA", "");
  next->threads = options.threads;
  if (const std::string count = text(nullptr, "LOCKSTEP_NUM_THREADS", ""); options.threads == 0 && !count.empty())
    next->threads = parse_threads(count.c_str());
  // The CPU backend reads it (openmp_team.cpp) where it can no longer fail.
  if (const std::string team = text(nullptr, "LOCKSTEP_TEAM", "own"); team != "own" && team != "openmp")
    fail(LOCKSTEP_INVALID_ARGUMENT, "LOCKSTEP_TEAM is \"{}\"; set it to own or openmp, or unset it", team);
  settings_ = std::move(next);
  try {
    acquire(find_backend("cpu"), 0, nullptr, false);  // refuses an unknown ISA now, not at the first call
  } catch (const error& e) {
    if (e.status != LOCKSTEP_INVALID_ARGUMENT) throw;
    fail(e.status, "{}: {}", options.cpu_isa != nullptr ? "options.cpu_isa" : "LOCKSTEP_CPU_ISA", e.text);
  }
  living& all = all_living();
  const std::lock_guard lock(all.mutex);
  next_living = all.first;
  all.first = this;
}

lockstep_context::~lockstep_context() {
  {
    living& all = all_living();
    const std::lock_guard lock(all.mutex);
    lockstep_context** at = &all.first;
    while (*at != this) at = &(*at)->next_living;
    *at = next_living;
  }
  for (auto& pooled : queues_) {
    if (pooled->queue == nullptr) continue;
    // A caller's stream may no longer exist.
    if (pooled->pending && pooled->stream == nullptr) (void)pooled->backend->finish(pooled->queue);
    pooled->backend->queue_destroy(pooled->queue);
  }
}

void lockstep_context::after_fork(bool in_child) {
  // The threads that were in these calls, or were making a queue, do not exist in the child.
  if (in_child) {
    for (auto& pooled : queues_) new (&pooled->in_use) std::mutex;
    std::erase_if(queues_, [](const auto& pooled) {
      return pooled->queue == nullptr && pooled->thread != std::this_thread::get_id();
    });
  }
  remembered_.after_fork();
  mutex_.unlock();
}

std::shared_ptr<const settings> lockstep_context::current() const {
  const std::lock_guard lock(mutex_);
  return settings_;
}

const calibration& lockstep_context::calibrated() {
  {
    const std::lock_guard lock(mutex_);
    if (calibrated_) return *calibrated_;
  }
  calibration read = read_calibration();  // asks backends about their devices
  const std::lock_guard lock(mutex_);
  if (!calibrated_) calibrated_ = std::move(read);
  return *calibrated_;
}

// ---- the C ABI ------------------------------------------------------------

extern "C" {
lockstep_status lockstep_context_create(const lockstep_context_options* options, lockstep_context** context) {
  return guarded([&] {
    if (context == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "context is NULL; pass the address of a lockstep_context*");
    *context = nullptr;
    *context = new lockstep_context(sized(options, lockstep_context_defaults(), "options"));
  });
}

void lockstep_context_destroy(lockstep_context* context) { delete context; }

lockstep_status lockstep_context_set_backend(lockstep_context* context, const char* backend) {
  return guarded([&] {
    require_context(context);
    if (backend == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "backend is NULL; write \"auto\", \"cpu\" or \"cuda\"");
    const backend_name named = parse_backend(backend, "backend");
    context->change([&](settings& now) { now.backend = named; });
  });
}

lockstep_status lockstep_context_set_variant(lockstep_context* context, lockstep_op op, const char* variant) {
  return guarded([&] {
    require_context(context);
    row_of(op);
    const std::string name = variant == nullptr || std::strcmp(variant, "auto") == 0 ? "" : variant;
    if (!name.empty()) check_variant_known(op, name, "variant");
    context->change([&](settings& now) { now.variants[op] = name; });
  });
}

lockstep_status lockstep_tuning_get(lockstep_context* context, lockstep_tuning_info* info) {
  return guarded([&] {
    require_context(context);
    thread_local remembered_choices::state last;
    last = context->remembered().now();
    give(lockstep_tuning_info{sizeof(lockstep_tuning_info), last.path.c_str(), last.reason.c_str(),
                              last.choices.c_str(), last.count},
         info, "info");
  });
}

lockstep_status lockstep_model_get(lockstep_context* context, lockstep_model_info* info) {
  return guarded([&] {
    require_context(context);
    const calibration& now = context->calibrated();
    give(lockstep_model_info{sizeof(lockstep_model_info), now.reason.empty() ? now.path.c_str() : "built-in",
                             now.path.c_str(), now.reason.c_str()},
         info, "info");
  });
}

lockstep_status lockstep_release_stream(lockstep_context* context, const char* backend, void* stream) {
  return guarded([&] {
    require_context(context);
    if (backend == nullptr || stream == nullptr)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{} is NULL; name the backend and the stream",
           backend == nullptr ? "backend" : "stream");
    const backend_name named = parse_backend(backend, "backend");
    if (named.is_auto())
      fail(LOCKSTEP_INVALID_ARGUMENT, "backend is \"auto\"; a stream belongs to one backend, name it");
    context->release_stream(named.entry, stream);
  });
}

lockstep_status lockstep_synchronize(lockstep_context* context) {
  lockstep_status status = LOCKSTEP_OK;
  std::string text;
  const lockstep_status outer = guarded([&] {
    require_context(context);
    status = context->synchronize(text);
  });
  if (outer == LOCKSTEP_OK) set_error(text.c_str());
  return outer == LOCKSTEP_OK ? status : outer;
}
}
