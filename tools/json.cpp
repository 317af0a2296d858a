// json.cpp - see json.hpp.
#include "json.hpp"

#include "text.hpp"

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

nlohmann::ordered_json read_json(std::string_view bytes) {
  using event = nlohmann::ordered_json::parse_event_t;
  bool right = true;
  auto all = nlohmann::ordered_json::parse(
      bytes,
      [&right](int depth, event what, nlohmann::ordered_json& parsed) {
        if (what == event::value && parsed.is_string()) parsed = printable(parsed.get<std::string>());
        if (what == event::key) right = right && printable(parsed.get<std::string>()) == parsed.get<std::string>();
        right = right && depth < 100;
        return right;
      },
      false);
  return right ? all : nlohmann::ordered_json(nlohmann::ordered_json::value_t::discarded);
}
}  // namespace lockstep::tool
