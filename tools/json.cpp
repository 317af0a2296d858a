// json.cpp - see json.hpp.
#include "json.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;
