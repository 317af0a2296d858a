// pattern.hpp - regular expressions from the command line and from results files. They are POSIX's extended ones
// (regex.h), because std::regex recurses once for each character that it looks at, and its time can grow exponentially.
#pragma once

#include <memory>
#include <string>

namespace lockstep::tool {

class pattern {
 public:
  // Without regard to case. Refuses what is no expression or would take too much memory; option names it then.
  pattern(const char* option, const std::string& text);
  // Texts of more than 1000 characters match nothing, because the time grows with the square of their length.
  bool is_in(const std::string& text) const;  // some part of the text matches
  bool is(const std::string& text) const;     // the whole text matches

 private:
  struct compiled;
  std::shared_ptr<const compiled> self_;
};

}  // namespace lockstep::tool
