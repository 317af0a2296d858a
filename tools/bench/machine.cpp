// machine.cpp - see machine.hpp.
#include "machine.hpp"

#include <fstream>
#include <map>
#include <string>

namespace lockstep::tool::bench {
namespace {
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}
}  // namespace

nlohmann::ordered_json processor() {
  auto out = nlohmann::ordered_json::object();
  const std::map<std::string, const char*> wanted = {
      {"model name", "name"},   {"cpu family", "family"},           {"model", "model"},
      {"stepping", "stepping"}, {"CPU implementer", "implementer"}, {"CPU part", "part"}};
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key = wanted.find(line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1));
    if (key != wanted.end()) out[key->second] = line.substr(std::min(colon + 2, line.size()));
  }
  for (int index = 0; index < 8; ++index) {
    const std::string cache = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    const std::string level = first_line(cache + "level"), type = first_line(cache + "type");
    if (level.empty() || type == "Instruction") continue;
    out["caches"]["L" + level + (type == "Data" ? "d" : "")] = first_line(cache + "size");
  }
  return out;
}

}  // namespace lockstep::tool::bench
