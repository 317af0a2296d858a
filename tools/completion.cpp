// completion.cpp - lockstep completion SHELL: written from the program's own
// options, so that it is never out of date.
#include <array>
#include <vector>

#include "cli.hpp"

namespace lockstep::tool {
namespace {

struct flag {
  std::vector<std::string> names;  // "-o", "--output"
  std::string help;
  bool takes_value;
  std::string values;  // words between spaces, where only these will do
};

// CLI11 keeps the words of an IsMember in the type's name, "LEVEL:{quick,full}".
std::string values_of(const CLI::Option& option) {
  const std::string name = option.get_name(), type = option.get_type_name();
  if (name == "--backend" && type.find('{') == std::string::npos) return "auto cpu cuda";
  if (name == "--isa") return "baseline avx2 avx512 avx512_zen4";
  const size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return "";
  std::string words = type.substr(begin + 1, end - begin - 1);
  for (char& c : words)
    if (c == ',') c = ' ';
  return words;
}

std::vector<flag> flags_of(const CLI::App& command) {
  std::vector<flag> flags;
  for (const CLI::Option* option : command.get_options()) {
    flag f{{}, option->get_description(), option->get_items_expected_max() > 0, ""};
    if (f.takes_value) f.values = values_of(*option);
    for (const std::string& name : option->get_snames()) f.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) f.names.push_back("--" + name);
    if (!f.names.empty()) flags.push_back(f);
  }
  return flags;
}
std::string flag_names(const std::vector<flag>& flags) {
  std::string names;
  for (const flag& f : flags)
    for (const std::string& name : f.names) names += " " + name;
  return names;
}

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App* command) { return !command->get_name().empty(); });
}

// "bench", "run", "run stencil": each with flags of its own.
std::vector<std::pair<std::string, const CLI::App*>> places_of(const CLI::App& program) {
  std::vector<std::pair<std::string, const CLI::App*>> places;
  for (const CLI::App* command : commands_of(program)) {
    places.emplace_back(command->get_name(), command);
    for (const CLI::App* op : commands_of(*command))
      places.emplace_back(command->get_name() + " " + op->get_name(), op);
  }
  return places;
}

// Words that follow a command: the ops of run and explain, the shells of completion.
std::string words_of(const CLI::App& command) {
  std::string words;
  for (const CLI::App* op : commands_of(command)) words += (words.empty() ? "" : " ") + op->get_name();
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) words += values_of(*option);
  return words;
}

std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '\'' ? "'\\''" : std::string(1, c);
  return "'" + safe + "'";
}

std::string command_names(const CLI::App& program) {
  std::string names;
  for (const CLI::App* command : commands_of(program)) names += (names.empty() ? "" : " ") + command->get_name();
  return names;
}

void bash(const CLI::App& program) {
  print("# bash completion for lockstep: source <(lockstep completion bash)\n"
        "_lockstep() {{\n"
        "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}\n"
        "  local words= values=\n"
        "  if [[ $before == = ]]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi\n"
        "  if [[ $word == = ]]; then word=; fi\n"
        "  if [[ $command == run && $COMP_CWORD -gt 2 ]]; then command=\"run ${{COMP_WORDS[2]}}\"; fi\n"
        "  if [[ $COMP_CWORD -eq 1 ]]; then command=; words='{} --help --version'; fi\n"
        "  case $command in\n",
        command_names(program));
  for (const auto& [place, command] : places_of(program)) {
    const std::vector<flag> flags = flags_of(*command);
    print("    '{}')\n      words='{}{}'\n      case $before in\n", place, words_of(*command), flag_names(flags));
    for (const flag& f : flags)
      if (!f.values.empty()) put(fmt::format("        {}) values='{}' ;;\n", fmt::join(f.names, "|"), f.values));
    print("      esac ;;\n");
  }
  print("  esac\n"
        "  if [[ -n $values ]]; then COMPREPLY=($(compgen -W \"$values\" -- \"$word\")); return; fi\n"
        "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
        "  [[ $word == -* || ${{COMP_CWORD}} -eq 1 ]] || COMPREPLY+=($(compgen -f -- \"$word\"))\n"
        "}}\n"
        "complete -o filenames -F _lockstep lockstep\n");
}

void zsh(const CLI::App& program) {
  print(
      "#compdef lockstep\n# zsh completion for lockstep: lockstep completion zsh > ~/.zfunc/_lockstep\n_lockstep() {{\n"
      "  if (( CURRENT == 2 )); then\n    local -a commands=(\n");
  for (const CLI::App* command : commands_of(program))
    print("      {}\n", quoted(command->get_name() + ":" + command->get_description()));
  print(
      "    )\n    _describe command commands\n    compadd -- --help --version\n    return\n  fi\n"
      "  local command=$words[2]\n"
      "  [[ $command == run ]] && (( CURRENT > 3 )) && command=\"run $words[3]\"\n"
      "  case \"$command:$words[CURRENT-1]\" in\n");
  for (const auto& [place, command] : places_of(program))
    for (const flag& f : flags_of(*command))
      for (const std::string& name : f.names)
        if (!f.values.empty()) print("    '{}:{}') compadd -- {}; return ;;\n", place, name, f.values);
  print("  esac\n  case $command in\n");
  for (const auto& [place, command] : places_of(program)) {
    const std::string words = words_of(*command);
    print("    '{}') [[ $PREFIX == -* ]] && compadd --{} || {{ {}_files }} ;;\n", place,
          flag_names(flags_of(*command)), words.empty() ? "" : "(( CURRENT == 3 )) && compadd -- " + words + "; ");
  }
  print("  esac\n}}\n[[ $funcstack[1] == _lockstep ]] && _lockstep \"$@\" || compdef _lockstep lockstep\n");
}

void fish(const CLI::App& program) {
  print("# fish completion for lockstep: lockstep completion fish | source\n");
  for (const auto& [place, command] : places_of(program)) {
    const size_t space = place.find(' ');
    const std::string first = place.substr(0, space);
    if (space == std::string::npos)
      print("complete -c lockstep -n __fish_use_subcommand -a {} -d {}\n", first, quoted(command->get_description()));
    const std::string inside =
        space == std::string::npos
            ? fmt::format("'__fish_seen_subcommand_from {}'", first)
            : fmt::format("'__fish_seen_subcommand_from {}; and __fish_seen_subcommand_from {}'", first,
                          place.substr(space + 1));
    if (const std::string words = words_of(*command); !words.empty())
      print("complete -c lockstep -n {} -a '{}'\n", inside, words);
    for (const flag& f : flags_of(*command)) {
      std::string names;
      for (const std::string& name : f.names)
        names += name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1);
      print("complete -c lockstep -n {}{}{} -d {}\n", inside, names,
            !f.values.empty() ? fmt::format(" -x -a '{}'", f.values) : f.takes_value ? " -r" : "", quoted(f.help));
    }
  }
}

}  // namespace

void completion_command(CLI::App& program, action& chosen) {
  CLI::App* command = program.add_subcommand("completion", "Print a completion script for a shell");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&program, &chosen, shell] {
    chosen = [&program, shell] {
      *shell == "bash" ? bash(program) : *shell == "zsh" ? zsh(program) : fish(program);
      return 0;
    };
  });
}

}  // namespace lockstep::tool
