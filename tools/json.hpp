// json.hpp - the JSON library, whose code json.cpp compiles once for all.
#pragma once

#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<nlohmann::ordered_map>;  // nlohmann::ordered_json
