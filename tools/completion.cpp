// completion.cpp - lockstep completion SHELL: made from the program's own options, so
// that it is always up to date.
#include <array>
#include <vector>

#include "cli.hpp"

namespace lockstep::tool {
namespace {

struct flag {
  std::vector<std::string> names;  // "-o", "--output"
  std::string help;
  bool takes_value;
  std::string values;  // the only allowed words, separated by spaces; "" for any
};

std::string values_of(const option& option) {
  if (const std::string words = option.words(); !words.empty()) return words;
  if (option.name() == "--backend") return "auto cpu cuda";
  if (option.name() == "--isa") return "baseline avx2 avx512";
  return "";
}

std::vector<flag> flags_of(const command& command) {
  std::vector<flag> flags;
  for (const option& option : command.options()) {
    flag f{option.names(), option.help(), option.takes_value(), ""};
    if (f.takes_value) f.values = values_of(option);
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

// "bench", "run", "run stencil": each with flags of its own.
std::vector<std::pair<std::string, command>> places_of(const command& root) {
  std::vector<std::pair<std::string, command>> places;
  for (const command& one : root.commands()) {
    places.emplace_back(one.name(), one);
    for (const command& op : one.commands()) places.emplace_back(one.name() + " " + op.name(), op);
  }
  return places;
}

std::string names_of(const std::vector<command>& commands) {
  std::vector<std::string> names;
  for (const command& one : commands) names.push_back(one.name());
  return joined(names, " ");
}

// Words that follow a command: the ops of run and explain, the shells of completion.
std::string words_of(const command& command) {
  std::string words = names_of(command.commands());
  for (const option& option : command.options())
    if (option.names().empty()) words += values_of(option);
  return words;
}

std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '\'' ? "'\\''" : std::string(1, c);
  return "'" + safe + "'";
}

void bash(const command& root) {
  print(
      "# bash completion for lockstep: source <(lockstep completion bash)\n"
      "_lockstep() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}\n"
      "  local words= values= files=yes\n"
      "  if [[ $before == = ]]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi\n"
      "  if [[ $word == = ]]; then word=; fi\n"
      "  if [[ $command == run && $COMP_CWORD -gt 2 ]]; then command=\"run ${{COMP_WORDS[2]}}\"; fi\n"
      "  if [[ $COMP_CWORD -eq 1 ]]; then command=; words='{} --help --version'; fi\n"
      "  case $command in\n",
      names_of(root.commands()));
  for (const auto& [place, command] : places_of(root)) {
    const std::vector<flag> flags = flags_of(command);
    const std::string words = words_of(command);
    print("    '{}')\n      words='{}{}'\n{}      case $before in\n", place, words, flag_names(flags),
          words.empty() ? "" : "      if [[ $COMP_CWORD -eq 2 ]]; then files=; fi\n");
    for (const flag& f : flags)
      if (!f.values.empty()) print("        {}) values='{}' ;;\n", joined(f.names, "|"), f.values);
    print("      esac ;;\n");
  }
  print(
      "  esac\n"
      "  if [[ -n $values ]]; then COMPREPLY=($(compgen -W \"$values\" -- \"$word\")); return; fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "  [[ $word == -* || ${{COMP_CWORD}} -eq 1 || -z $files ]] || COMPREPLY+=($(compgen -f -- \"$word\"))\n"
      "}}\n"
      "complete -o filenames -F _lockstep lockstep\n");
}

void zsh(const command& root) {
  print(
      "#compdef lockstep\n# zsh completion for lockstep: lockstep completion zsh > ~/.zfunc/_lockstep\n_lockstep() {{\n"
      "  if (( CURRENT == 2 )); then\n    local -a commands=(\n");
  for (const command& one : root.commands()) print("      {}\n", quoted(one.name() + ":" + one.help()));
  print(
      "    )\n    _describe command commands\n    compadd -- --help --version\n    return\n  fi\n"
      "  local command=$words[2]\n"
      "  [[ $command == run ]] && (( CURRENT > 3 )) && command=\"run $words[3]\"\n"
      "  case \"$command:$words[CURRENT-1]\" in\n");
  for (const auto& [place, command] : places_of(root))
    for (const flag& f : flags_of(command))
      for (const std::string& name : f.names)
        if (!f.values.empty()) print("    '{}:{}') compadd -- {}; return ;;\n", place, name, f.values);
  print("  esac\n  case $command in\n");
  for (const auto& [place, command] : places_of(root)) {
    const std::string words = words_of(command);
    print("    '{}') if [[ $PREFIX == -* ]]; then compadd --{}; {}else _files; fi ;;\n", place,
          flag_names(flags_of(command)),
          words.empty() ? "" : "elif (( CURRENT == 3 )); then compadd -- " + words + "; ");
  }
  print("  esac\n}}\n[[ $funcstack[1] == _lockstep ]] && _lockstep \"$@\" || compdef _lockstep lockstep\n");
}

void fish(const command& root) {
  print("# fish completion for lockstep: lockstep completion fish | source\n");
  for (const auto& [place, command] : places_of(root)) {
    const size_t space = place.find(' ');
    const std::string first = place.substr(0, space);
    if (space == std::string::npos)
      print("complete -c lockstep -n __fish_use_subcommand -f -a {} -d {}\n", first, quoted(command.help()));
    const std::string inside = space == std::string::npos
                                   ? format_text("'__fish_seen_subcommand_from {}'", first)
                                   : format_text("'__fish_seen_subcommand_from {}; and __fish_seen_subcommand_from {}'",
                                                 first, place.substr(space + 1));
    if (const std::string words = words_of(command); !words.empty())
      print(
          "complete -c lockstep -n '__fish_seen_subcommand_from {}; and not __fish_seen_subcommand_from {}' -f -a "
          "'{}'\n",
          first, words, words);
    for (const flag& f : flags_of(command)) {
      std::string names;
      for (const std::string& name : f.names)
        names += name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1);
      print("complete -c lockstep -n {}{}{} -d {}\n", inside, names,
            !f.values.empty() ? format_text(" -x -a '{}'", f.values)
            : f.takes_value   ? " -r"
                              : "",
            quoted(f.help));
    }
  }
}

}  // namespace

void completion_command(command root, action& chosen) {
  auto command = root.add_command("completion", "Print a completion script for a shell");
  auto shell = std::make_shared<std::string>();
  command.add("shell", *shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
  command.when_called([root, &chosen, shell] {
    chosen = [root, shell] {
      *shell == "bash" ? bash(root) : *shell == "zsh" ? zsh(root) : fish(root);
      return 0;
    };
  });
}

}  // namespace lockstep::tool
