// command.hpp - the program's commands and options. Only command.cpp includes the parser (CLI11), because it takes
// longer to compile than most files.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lockstep::tool {

class option {
 public:
  explicit option(CLI::Option* self) : self_(self) {}
  option& type_name(const char* name);  // the name of the value in help: "FILE"
  option& one_of(const std::vector<std::string>& words);
  option& one_of(std::initializer_list<int> numbers);
  template <class Number>  // int, int64_t or double
  option& between(Number low, Number high);
  option& required();
  option& show_default();
  option& excludes(const option& other);

  // After parsing.
  bool given() const;
  std::string name() const;   // "--axis"
  std::string value() const;  // as written; the first one if repeated
  int64_t number() const;
  // For completion.
  std::vector<std::string> names() const;  // "-o", "--output"; empty for an argument without a name
  std::string help() const;
  bool takes_value() const;
  std::string words() const;  // the words of one_of, separated by spaces

 private:
  CLI::Option* self_;
};

class command {
 public:
  explicit command(CLI::App* self) : self_(self) {}
  // A name without dashes is an argument. T: bool (a flag), int, int64_t, double, std::string or a vector of strings.
  template <class T>
  option add(const std::string& names, T& target, const std::string& help);
  // --json alone means stdout, "-". In a command without arguments the file may be the next word, "--json FILE". In one
  // with arguments it is written "--json=FILE", because the next word is an argument.
  option add_json(std::string& path, const std::string& help);
  command add_command(const std::string& name, const std::string& help);
  void require_command();
  void add_footer(const std::string& text);  // after the options in help
  void when_called(const std::function<void()>& run);

  option find(const std::string& name) const;  // throws if there is none
  std::string name() const;
  std::string help() const;
  std::vector<command> commands() const;
  std::vector<option> options() const;

 private:
  CLI::App* self_;
};

// The whole command line.
class program {
 public:
  program(const std::string& name, const std::string& help, const std::string& version, const std::string& footer);
  ~program();
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  command root() const { return command(self_.get()); }
  // What was called, "lockstep run reduce", as far as it was parsed.
  std::string called() const;
  // False if nothing is left to do, because help or a usage error was printed; code is the exit code.
  bool parse(int argc, char** argv, int& code);

 private:
  std::unique_ptr<CLI::App> self_;
};

}  // namespace lockstep::tool
