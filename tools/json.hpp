// json.hpp - the JSON library, whose code json.cpp compiles once for all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

extern template class nlohmann::basic_json<nlohmann::ordered_map>;  // nlohmann::ordered_json

namespace lockstep::tool {
// A results file: each member of the object on a line of its own, and each element of its arrays.
std::string one_a_line(const nlohmann::ordered_json& object);
}  // namespace lockstep::tool
