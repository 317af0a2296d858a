// child.hpp - each case runs in a process of its own: the module is loaded once a
// process, a lost backend stays lost, and a crash or hang must name its case.
#pragma once

#include <functional>
#include <string>

namespace faults {

class report {
 public:
  explicit report(char* step) : step_(step) {}
  // What the child is doing; named when it crashes.
  void step(const std::string& text);
  // Notes a failed expectation with the step in which it failed.
  void expect(bool ok, const std::string& what);
  void note(const std::string& text) { notes_ += text; }
  bool failed() const { return failures_ != 0; }
  const std::string& text() const { return text_; }
  const std::string& notes() const { return notes_; }

 private:
  char* step_;  // shared with the parent
  int failures_ = 0;
  std::string text_, notes_;
};

// Runs body in a forked child and returns what went wrong there, "" when nothing
// did. notes gets what the child noted.
std::string in_child(const std::function<void(report&)>& body, std::string* notes = nullptr);

}  // namespace faults
