// json.hpp - the JSON library, whose code json.cpp compiles once for all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

extern template class nlohmann::basic_json<nlohmann::ordered_map>;  // nlohmann::ordered_json

namespace lockstep::tool {
// A results file: each member of the object on a line of its own, and each element of its arrays.
std::string one_a_line(const nlohmann::ordered_json& object);
// A file's JSON, discarded if it is none. Control characters in its texts become '?', so that none reaches a terminal.
nlohmann::ordered_json read_json(std::string_view bytes);
}  // namespace lockstep::tool
