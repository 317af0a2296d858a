// json.cpp - see json.hpp.
#include "json.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace lockstep::tool {
std::string one_a_line(const nlohmann::ordered_json& object) {
  std::string out = "{\n";
  for (auto member = object.begin(); member != object.end(); ++member) {
    out += (member == object.begin() ? "" : ",\n") + nlohmann::ordered_json(member.key()).dump() + ": ";
    if (!member->is_array() || member->empty()) {
      out += member->dump();
      continue;
    }
    out += "[\n";
    for (auto one = member->begin(); one != member->end(); ++one)
      out += (one == member->begin() ? "" : ",\n") + one->dump();
    out += "\n]";
  }
  return out + "\n}\n";
}
}  // namespace lockstep::tool
