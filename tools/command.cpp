// command.cpp - see command.hpp.
#include "command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "text.hpp"

namespace lockstep::tool {

option& option::type_name(const char* name) { return self_->type_name(name), *this; }
option& option::one_of(const std::vector<std::string>& words) { return self_->check(CLI::IsMember(words)), *this; }
option& option::one_of(std::initializer_list<int> numbers) {
  return self_->check(CLI::IsMember(std::vector<int>(numbers))), *this;
}
namespace {
constexpr const char* number_check = "number";

// Refuses what is no number, what no Number holds and what lies outside of low and high; the text names the option, the
// value and what to give. (CLI11 gives the largest one for what overflows an int64_t or a double.)
template <class Number>
std::function<std::string(std::string&)> reads(const CLI::Option* self, Number low, Number high) {
  return [self, low, high](std::string& text) -> std::string {
    constexpr bool whole = std::is_integral_v<Number>;
    Number value{};
    const bool is_number = CLI::detail::lexical_cast(text, value);
    errno = 0;
    if constexpr (whole)
      (void)std::strtoll(text.c_str(), nullptr, 0);
    else
      (void)std::strtod(text.c_str(), nullptr);
    bool fits = errno != ERANGE;
    if constexpr (!whole) fits = fits || !std::isinf(value);  // a tiny one is rounded
    const bool limited = whole || !std::isinf(high);
    if (is_number && fits && (!limited || (value >= low && value <= high))) return "";
    throw CLI::ConversionError(format_text("{} is \"{}\"; give a {}{}", self->get_name(), text,
                                           whole ? "whole number" : "number",
                                           limited ? format_text(" from {} to {}", low, high)
                                           : fits  ? ""
                                                   : " that fits into a double"));
  };
}

template <class Number>
void check_number(CLI::Option* self) {
  constexpr Number most = std::is_integral_v<Number> ? std::numeric_limits<Number>::max()
                                                     : std::numeric_limits<Number>::infinity(),
                   least = std::is_integral_v<Number> ? std::numeric_limits<Number>::min() : -most;
  self->check(CLI::Validator(reads(self, least, most), "", number_check));
}
}  // namespace

template <class Number>
option& option::between(Number low, Number high) {
  CLI::Validator& check = *self_->get_validator(number_check);
  check.operation(reads(self_, low, high)).description(CLI::Range(low, high).get_description());
  return *this;
}
template option& option::between(int, int);
template option& option::between(int64_t, int64_t);
template option& option::between(double, double);
option& option::required() { return self_->required(), *this; }
option& option::show_default() { return self_->capture_default_str(), *this; }
option& option::excludes(const option& other) { return self_->excludes(other.self_), *this; }

bool option::given() const { return self_->count() != 0; }
std::string option::name() const { return self_->get_name(); }
std::string option::value() const { return self_->results().front(); }
int64_t option::number() const { return self_->as<int64_t>(); }
std::vector<std::string> option::names() const {
  std::vector<std::string> all;
  for (const std::string& name : self_->get_snames()) all.push_back("-" + name);
  for (const std::string& name : self_->get_lnames()) all.push_back("--" + name);
  return all;
}
std::string option::help() const { return self_->get_description(); }
bool option::takes_value() const { return self_->get_items_expected_max() > 0; }
std::string option::words() const {
  // CLI11 keeps them in the type's name, "LEVEL:{quick,full}".
  const std::string type = self_->get_type_name();
  const size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return "";
  std::string words = type.substr(begin + 1, end - begin - 1);
  for (char& c : words)
    if (c == ',') c = ' ';
  return words;
}

template <class T>
option command::add(const std::string& names, T& target, const std::string& help) {
  CLI::Option* const made = self_->add_option(names, target, help);
  if constexpr (std::is_arithmetic_v<T>) check_number<T>(made);
  return option(made);
}
template <>
option command::add(const std::string& names, bool& target, const std::string& help) {
  return option(self_->add_flag(names, target, help));
}
template option command::add(const std::string&, int&, const std::string&);
template option command::add(const std::string&, int64_t&, const std::string&);
template option command::add(const std::string&, double&, const std::string&);
template option command::add(const std::string&, std::string&, const std::string&);
template option command::add(const std::string&, std::vector<std::string>&, const std::string&);

option command::add_json(std::string& path, const std::string& help) {
  const std::vector<option> all = options();
  const bool arguments = std::any_of(all.begin(), all.end(), [](const option& one) { return one.names().empty(); });
  if (arguments) {
    CLI::Option* flag = self_->add_flag("--json", path, help + " on stdout; --json=FILE writes a file");
    const auto alone = [](std::string& value) { return value = value == "true" ? "-" : value, std::string(); };
    return option(flag->transform(CLI::Validator(alone, "", "alone")));
  }
  const auto set = [&path](const std::string& value) { path = value.empty() ? "-" : value; };
  return option(self_->add_option_function<std::string>("--json", set, help + " to FILE; alone or with -, on stdout")
                    ->expected(0, 1)
                    ->type_name("[FILE]"));
}

command command::add_command(const std::string& name, const std::string& help) {
  return command(self_->add_subcommand(name, help));
}
void command::add_footer(const std::string& text) { self_->footer(text); }
void command::require_command() { self_->require_subcommand(1); }
void command::when_called(const std::function<void()>& run) { self_->callback(run); }
option command::find(const std::string& name) const { return option(self_->get_option(name)); }
std::string command::name() const { return self_->get_name(); }
std::string command::help() const { return self_->get_description(); }
std::vector<command> command::commands() const {
  std::vector<command> all;
  for (CLI::App* one : self_->get_subcommands([](CLI::App* app) { return !app->get_name().empty(); }))
    all.emplace_back(one);
  return all;
}
std::vector<option> command::options() const {
  std::vector<option> all;
  for (CLI::Option* one : self_->get_options()) all.emplace_back(one);
  return all;
}

namespace {
const CLI::App& called_of(const CLI::App& root) {
  const CLI::App* at = &root;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

// "lockstep run reduce"
std::string path_of(const CLI::App& root) {
  std::string path = root.get_name();
  for (const CLI::App* at = &root; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path;
}

// Lines of at most 100 columns, broken at spaces or behind commas; what follows is indented as CLI11 does.
std::string folded(const std::string& help) {
  constexpr size_t most = 100, column = 30;
  std::string out;
  for (size_t begin = 0; begin < help.size();) {
    const size_t end = std::min(help.find('\n', begin), help.size());
    std::string line = help.substr(begin, end - begin);
    begin = end + 1;
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    // Where the text begins that stands beside a name.
    const size_t gap = line.find("  ", indent), beside = line.find_first_not_of(' ', gap);
    const std::string next(gap < most / 2 && beside < most / 2 ? beside
                           : indent == 0                       ? 4
                           : line.compare(indent, 1, "-") == 0 ? column
                                                               : indent,
                           ' ');
    while (line.size() > most) {
      size_t at = line.find_last_of(" ,", most - 1);
      if (at == std::string::npos || at <= std::max(indent, next.size())) break;
      if (line[at] == ',') ++at;
      out += line.substr(0, at) + "\n";
      line = next + line.substr(std::min(line.find_first_not_of(' ', at), line.size()));
    }
    out += line + "\n";
  }
  return out;
}

// For an unknown command CLI11 says only that one is required, so the error names the word.
std::string story_of(const CLI::ParseError& error, const CLI::App& root) {
  const CLI::App* at = &called_of(root);
  std::vector<std::string> known;
  for (const CLI::App* one : at->get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(one->get_name());
  std::string said = error.what();
  if (error.get_name() == "ArgumentMismatch" && said.find(" missing") != std::string::npos)
    return format_text("{} is given without a value; give one after it", said.substr(0, said.find(':')));
  if (known.empty() || error.get_name() != "RequiredError") return said;
  const std::string what = at == &root ? "command" : "operation of " + at->get_name();
  const std::vector<std::string> stray = at->remaining();
  return stray.empty() ? format_text("name {} {}: {}", at == &root ? "a" : "an", what, joined(known, ", "))
                       : format_text("\"{}\" is no {}; there are {}", stray.front(), what, joined(known, ", "));
}
}  // namespace

program::program(const std::string& name, const std::string& help, const std::string& version,
                 const std::string& footer)
    : self_(std::make_unique<CLI::App>(help, name)) {
  self_->set_version_flag("--version", version);
  self_->footer(footer);
  self_->require_subcommand(1);
}
program::~program() = default;

std::string program::called() const { return path_of(*self_); }

bool program::parse(int argc, char** argv, int& code) {
  try {
    self_->parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp&) {
    std::fputs(folded(self_->help()).c_str(), stdout);
    code = std::fflush(stdout) == 0 ? 0 : 1;
  } catch (const CLI::Success& asked) {  // --version
    self_->exit(asked);
    code = std::fflush(stdout) == 0 ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    std::fputs(
        printable(format_text("{}: {}; see {} --help\n", called(), story_of(error, *self_), called()), '\n').c_str(),
        stderr);
    code = 2;
  }
  return false;
}

}  // namespace lockstep::tool
