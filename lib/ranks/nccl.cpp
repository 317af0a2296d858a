// nccl.cpp - see nccl.hpp.
#include "nccl.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>

#include "../environment.hpp"
#include "../load/trusted.hpp"
#include "text.hpp"

namespace lockstep::ranks {

namespace {

constexpr const char* folders[] = {"/usr/lib/x86_64-linux-gnu",
                                   "/usr/lib/aarch64-linux-gnu",
                                   "/usr/lib64",
                                   "/usr/local/cuda/lib64",
                                   "/usr/local/lib",
                                   "/usr/lib"};

void* find(const std::string& file_name, std::string& path, std::string& why) {
  if (const char* named = lib::environment("LOCKSTEP_NCCL"); named != nullptr && *named != '\0') {
    path = named;
    void* handle = lib::open_trusted(path, why);
    if (handle == nullptr) why = "LOCKSTEP_NCCL: " + why;
    return handle;
  }
  // A program that has loaded one, as PyTorch does, runs it anyway.
  path = file_name;
  if (void* handle = dlopen(file_name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); handle != nullptr) return handle;
  for (const char* folder : folders) {
    path = format_text("{}/{}", folder, file_name);
    if (access(path.c_str(), F_OK) == 0) return lib::open_trusted(path, why);
  }
  why = format_text("there is no {} in the system's folders; name the file in LOCKSTEP_NCCL", file_name);
  return nullptr;
}

std::unique_ptr<const nccl> load(const std::string& file_name, std::string& why) {
  auto made = std::make_unique<nccl>();
  nccl& n = *made;
  void* handle = find(file_name, n.path, why);
  if (handle == nullptr) return nullptr;
  bool whole = true;
  const auto get = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr && whole) why = format_text("{} lacks {}", n.path, name);
    whole = whole && function != nullptr;
  };
  get(n.get_version, "ncclGetVersion");
  if (whole && (n.get_version(&n.version) != nccl::success || n.version < nccl::oldest)) {
    why = format_text("{} is NCCL {}, but 2.14 or later is needed", n.path, n.number());
    return nullptr;
  }
  get(n.get_unique_id, "ncclGetUniqueId");
  get(n.init, "ncclCommInitRankConfig");
  get(n.get_async_error, "ncclCommGetAsyncError");
  get(n.finalize, "ncclCommFinalize");
  get(n.destroy, "ncclCommDestroy");
  get(n.abort, "ncclCommAbort");
  get(n.group_start, "ncclGroupStart");
  get(n.group_end, "ncclGroupEnd");
  get(n.send, "ncclSend");
  get(n.recv, "ncclRecv");
  get(n.error_string, "ncclGetErrorString");
  get(n.last_error, "ncclGetLastError");
  // Only sends and receives are made, which multicast does not serve; its set-up can fail where GPUs are shared. What
  // the user has set stays.
  if (whole) setenv("NCCL_NVLS_ENABLE", "0", 0);
  return whole ? std::move(made) : nullptr;
}

}  // namespace

std::string nccl::number() const {
  return format_text("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string nccl::text(result r, comm of) const {
  const char* more = last_error(of);
  return format_text("NCCL {}: {}{}{}", number(), error_string(r), more != nullptr && *more != '\0' ? ": " : "",
                     more != nullptr ? more : "");
}

const nccl* nccl::open(const char* file_name, std::string& why) {
  struct attempt {
    std::unique_ptr<const nccl> library;
    std::string why;
  };
  static std::mutex lock;
  static std::map<std::string, attempt> known;
  const std::lock_guard guard(lock);
  // Another file may be named later; one that could be opened stays.
  const char* named = lib::environment("LOCKSTEP_NCCL");
  attempt& one = known[format_text("{}\n{}", file_name, named != nullptr ? named : "")];
  if (one.library == nullptr) one.library = load(file_name, one.why);
  why = one.library == nullptr ? one.why : "";
  return one.library.get();
}

}  // namespace lockstep::ranks
