// peers.cpp - see peers.hpp. A peer is called as
//   PEER --backend cpu --case transpose/b4/512x512 --threads 2 --seconds 0.6 [--cold]
// and prints one JSON object a line for each way it has to do the case:
//   {"peer": "openblas 0.3.21 omatcopy", "ms": [...], "checked": "bits equal"}
// or nothing when it has none. Exit code 0.
#include "peers.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace lockstep::tool::bench {
namespace {
namespace fs = std::filesystem;

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::vector<std::string> output_lines(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<std::string> lines;
  if (pipe == nullptr) return lines;
  std::string text;
  char part[4096];
  for (size_t got; (got = std::fread(part, 1, sizeof part, pipe.get())) > 0;) text.append(part, got);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

void run_peers(const options& asked, const std::string& backend, const cases::test_case& t, double bytes, report& out) {
  std::vector<fs::path> programs;
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(asked.peers, ignored)) {
    const std::string name = item.path().filename().string();
    if (name.starts_with("peer_") && name.find('.') == std::string::npos && item.is_regular_file()) programs.push_back(item.path());
  }
  std::sort(programs.begin(), programs.end());
  for (const fs::path& program : programs) {
    const std::string command =
        fmt::format("{} --backend {} --case {} --threads {} --seconds {}{} 2>/dev/null", quoted(program.string()), quoted(backend),
                    quoted(t.name), asked.where.threads, asked.seconds > 0 ? asked.seconds : 0.6, asked.cold ? " --cold" : "");
    for (const std::string& text : output_lines(command)) {
      const auto object = nlohmann::json::parse(text, nullptr, false);
      if (object.is_discarded() || !object.contains("peer") || !object.contains("ms")) continue;
      result r;
      r.name = t.name, r.op = lockstep_op_name(t.op), r.backend = backend;
      r.source = object["peer"].get<std::string>();
      r.variant = r.source;
      r.cold = asked.cold;
      r.bytes = bytes;
      r.time = summarise(object["ms"].get<std::vector<double>>(), "peer");
      r.checked = object.value("checked", "not checked");
      r.limit = t.op == LOCKSTEP_SQUARE_SUM || t.op == LOCKSTEP_REDUCE ? "read" : "copy";
      out.results.push_back(std::move(r));
    }
  }
}

}  // namespace lockstep::tool::bench
