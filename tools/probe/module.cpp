// module.cpp - finds probe-cuda.so where the library finds its backend modules, by the
// same rules (lib/load/trusted.hpp), and loads it on first use.
#include <dlfcn.h>
#include <lockstep/lockstep.h>

#include <filesystem>

#include "load/trusted.hpp"
#include "probe.hpp"
#include "text.hpp"

namespace lockstep::tool::probe {

cuda_module::cuda_module() {
  std::string searched;
  for (const lib::search_folder& folder : lib::search_folders(dlsym(RTLD_DEFAULT, "lockstep_version"))) {
    searched += (searched.empty() ? "" : ":") + folder.path;
    if (!folder.refused.empty()) continue;
    std::error_code ignored;
    const auto path = std::filesystem::canonical(folder.path + "/probe-cuda.so", ignored);
    if (ignored) continue;
    path_ = path.string();
    break;
  }
  // The library distinguishes a missing driver from a missing module, and gives better reasons than the runtime.
  for (int32_t i = 0; i < lockstep_backend_count(); ++i) {
    lockstep_backend_info cuda{};
    cuda.size = sizeof cuda;
    if (lockstep_backend_get(i, &cuda) != LOCKSTEP_OK || std::string(cuda.name) != "cuda" || cuda.usable != 0) continue;
    why_ = cuda.reason;
    return;
  }
  if (path_.empty()) {
    why_ = format_text("there is no probe-cuda.so in {}; build with nvcc", searched);
    return;
  }
  void* handle = lib::open_trusted(path_, why_);
  if (handle == nullptr) return;
  const auto entry = reinterpret_cast<lockstep::probe::module_fn>(dlsym(handle, "lockstep_probe_module"));
  const lockstep::probe::module* table = entry == nullptr ? nullptr : entry();
  if (table == nullptr || table->abi != lockstep::probe::module_abi || table->size != sizeof *table) {
    why_ = format_text("{} is of another version; rebuild it with this program", path_);
    return;
  }
  table_ = table;
  char why[256] = "";
  devices_ = table_->devices(why, sizeof why);
  if (devices_ <= 0) why_ = *why != '\0' ? why : "it found no device";
}

std::string cuda_module::name() const { return table_->name(0); }
std::string cuda_module::detail() const { return table_->detail(0); }

bool cuda_module::measure(const std::string& row, double seconds, readings& to, std::string& why) const {
  char text[256] = "";
  const auto keep = [](void* user, const reading* one) { static_cast<readings*>(user)->add(*one); };
  if (table_->run(0, row.c_str(), seconds, keep, &to, text, sizeof text) == 0) return true;
  why = text;
  return false;
}

}  // namespace lockstep::tool::probe
