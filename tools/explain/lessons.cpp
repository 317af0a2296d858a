// lessons.cpp - see lessons.hpp.
#include "lessons.hpp"

#include "cli.hpp"

namespace lockstep::tool::explain {

std::vector<const std::vector<lesson>*> all_lessons() {
  return {&transpose_lessons(), &square_sum_lessons(), &stencil_lessons(), &shuffle_lessons()};
}

void refuse_value(const char* option, int64_t value, const char* fix) { refuse("{} {}: {}", option, value, fix); }
void require_range(const char* option, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most) refuse("{} {}: must be {} to {}", option, value, least, most);
}
void require_power_of_two(const char* option, int64_t value) {
  if (value < 1 || (value & (value - 1)) != 0)
    refuse("{} {}: must be a power of two; try {}", option, value, value < 3 ? 2 : value < 12 ? 8 : 32);
}
void require_size(int64_t accesses, const char* option) {
  constexpr int64_t most = 1 << 20;
  if (accesses > most)
    refuse("{}: {} elements are too many to draw; the pattern repeats, give at most {}", option, accesses, most);
}

const lesson& find_lesson(settings& s) {
  if (s.op == "stencil" && s.variant.empty() && s.sweeps > 1) s.variant = "sweeps_registers";
  std::string names;
  for (const auto* op : all_lessons())
    for (const lesson& l : *op) {
      if (l.op != s.op) continue;
      if (s.variant.empty()) s.variant = l.variant;
      if (l.variant == s.variant) return l;
      names += (names.empty() ? "" : ", ") + std::string(l.variant);
    }
  refuse("--variant {}: no such lesson of {}; there are {}", s.variant, s.op, names);
}

}  // namespace lockstep::tool::explain
