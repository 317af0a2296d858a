// shuffle.cpp - cases shuffle/b<bytes>/<kind>/w<width>/op<operand>/n<count>.
#include "cases.hpp"
#include "tokens.hpp"

namespace lockstep::cases {
namespace {
constexpr const char* kinds[] = {"idx", "up", "down", "xor"};
}

void parse_shuffle(tokens& in, test_case& c) {
  c.op = LOCKSTEP_SHUFFLE;
  const auto bytes = in.element_bytes();
  const int kind = in.one_of(kinds);
  if (kind < 0) in.refuse("say idx, up, down or xor");
  const int64_t width = in.number("w", 32, 1, 32), operand = in.number("op", 0, INT32_MIN, INT32_MAX);
  const int64_t count = in.number("n", 32);
  c.shuffle = lockstep_shuffle_warps(static_cast<lockstep_shuffle_kind>(kind), bytes, count,
                                     static_cast<int32_t>(width), static_cast<int32_t>(operand));
  c.src.element_bytes = c.dst.element_bytes = bytes;
  c.src.axis(count, 1);
  c.dst.axis(count, 1);
  c.cell = "shuffle b" + std::to_string(bytes) + " " + kinds[kind] + " w" + std::to_string(width);
}

std::vector<std::string> list_shuffle(level depth) {
  std::vector<std::string> names;
  for (const std::string bytes : {"b4", "b8"})
    for (const std::string kind : kinds)
      for (const int width : {1, 2, 4, 8, 16, 32}) {
        const std::string head = "shuffle/" + bytes + "/" + kind + "/w" + std::to_string(width) + "/op";
        std::vector<int64_t> operands = {0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 30, 31};
        if (kind == "idx") operands.insert(operands.end(), {-1, -3, -33, 32, 35, 1000003, INT32_MIN, INT32_MAX});
        if (kind == "up" || kind == "down") operands.insert(operands.end(), {32, 33, 64, 1 << 20, INT32_MAX});
        if (depth == level::full)
          for (int64_t operand = 0; operand < 32; ++operand) operands.push_back(operand);
        for (const int64_t operand : operands) {
          const std::string name = head + std::to_string(operand);
          names.push_back(name + (operand % 3 == 0 ? "/n32" : operand % 3 == 1 ? "/n96/special" : "/n1056/off1,3"));
          if (operand == 5 || operand == 16) names.push_back(name + "/n640/inplace/off1");
        }
        names.push_back(head + "1/n0");
        if (depth == level::full) names.push_back(head + "3/n100000/off3,1");
      }
  return names;
}

}  // namespace lockstep::cases
