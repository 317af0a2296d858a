// record.cpp - what the thread's last run was, for lockstep_last_run.
#include <cstddef>
#include <type_traits>

#include "../bits/order.hpp"
#include "../choose/estimate.hpp"
#include "run.hpp"
#include "trace.hpp"

namespace lockstep::lib {
namespace {

// A text of fixed capacity, cut when it is too long, and fit to be shown. Recording a call must not allocate. So it
// needs no destructor either: registering the destructor of a thread_local allocates.
template <size_t size>
class short_text {
 public:
  void clear() { length_ = 0, text_[0] = '\0'; }
  void add(std::string_view more) { length_ += copy_shown(text_ + length_, size - length_, more); }
  bool empty() const { return length_ == 0; }
  std::string_view view() const { return {text_, length_}; }
  const char* c_str() const { return text_; }

 private:
  size_t length_ = 0;
  char text_[size] = {};
};

struct run_record {
  const char *backend = "", *variant = "";  // texts of the backend, which live as long as the process
  short_text<2048> why;
  comparison compared;  // made into text on demand; its figures may be gone by then, so basis is copied
  short_text<256> basis;
  uint64_t plan = 0;
  int32_t device = 0, order = 0;
  size_t workspace_bytes = 0, staged_bytes = 0;
  void clear() {
    backend = variant = "";
    why.clear(), basis.clear();
    compared = {};
    plan = 0;
    device = order = 0;
    workspace_bytes = staged_bytes = 0;
  }
};
static_assert(std::is_trivially_destructible_v<run_record>);
thread_local run_record last;

const char* remark_on(const choice* chosen) {
  if (chosen == nullptr || !chosen->queue || chosen->backend->size <= offsetof(lockstep_backend, remark))
    return nullptr;
  return chosen->backend->remark != nullptr ? chosen->backend->remark(chosen->queue.get()) : nullptr;
}
}  // namespace

int32_t order_of(const lockstep_variant& row) { return (row.flags & LOCKSTEP_OWN_ORDER) != 0 ? 0 : order::id; }

void remember_run(const choice* chosen, size_t workspace_bytes, size_t staged_bytes) {
  const char* remark = remark_on(chosen);
  const bool told = remark == nullptr && chosen != nullptr && chosen->plan != 0 && last.plan == chosen->plan &&
                    last.variant == chosen->variant->name && last.staged_bytes == staged_bytes &&
                    last.workspace_bytes == workspace_bytes;
  if (told) return;
  last.clear();
  if (chosen == nullptr) return;
  last.plan = chosen->plan;
  last.backend = chosen->entry->name().c_str();
  last.variant = chosen->variant->name;
  last.why.add(chosen->why);
  if (remark != nullptr) {
    if (!last.why.empty()) last.why.add("; ");
    last.why.add(remark);
    last.plan = 0;  // the next execution may have no remark
  }
  last.compared = chosen->compared;
  if (const char* trouble = trace_trouble(); *trouble != '\0') {
    if (!last.why.empty()) last.why.add("; ");
    last.why.add(trouble);
    last.plan = 0;
  }
  if (last.compared.device != nullptr) last.basis.add(last.compared.figures->basis);
  last.device = chosen->device;
  last.order = order_of(*chosen->variant);
  last.workspace_bytes = workspace_bytes;
  last.staged_bytes = staged_bytes;
}

std::string why_not_others(const choice& chosen) {
  if (chosen.compared.device == nullptr) return chosen.why;
  const std::string words = in_words(chosen.compared, chosen.compared.figures->basis);
  return chosen.why.empty() ? words : chosen.why + "; " + words;
}

}  // namespace lockstep::lib

extern "C" lockstep_status lockstep_last_run(lockstep_run_info* info) {
  using namespace lockstep::lib;
  return guarded([&] {
    if (last.compared.device != nullptr) {
      const std::string words = in_words(last.compared, last.basis.view());
      if (!last.why.empty()) last.why.add("; ");
      last.why.add(words);
      last.compared = {};
    }
    give(lockstep_run_info{sizeof(lockstep_run_info), last.backend, last.variant, last.why.c_str(), last.device,
                           last.order, last.workspace_bytes, last.staged_bytes},
         info, "info");
  });
}
