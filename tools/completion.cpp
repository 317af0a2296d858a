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
};

std::vector<flag> flags_of(const CLI::App& command) {
  std::vector<flag> flags;
  for (const CLI::Option* option : command.get_options()) {
    flag f{{}, option->get_description(), option->get_items_expected_max() > 0};
    for (const std::string& name : option->get_snames()) f.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) f.names.push_back("--" + name);
    if (!f.names.empty()) flags.push_back(f);
  }
  return flags;
}

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App* command) { return !command->get_name().empty(); });
}

// Words that follow a command: the ops of run, the shells of completion.
std::string words_of(const CLI::App& command) {
  if (command.get_name() == "completion") return "bash zsh fish";
  if (command.get_name() == "explain") return "transpose square_sum stencil shuffle";
  if (command.get_name() != "run") return "";
  std::string words;
  for (const CLI::App* op : commands_of(command)) words += (words.empty() ? "" : " ") + op->get_name();
  return words;
}

// A command's own flags and those of its subcommands.
std::vector<flag> all_flags(const CLI::App& command) {
  std::vector<flag> flags = flags_of(command);
  std::string seen;
  for (const flag& f : flags) seen += " " + f.names.back() + " ";
  for (const CLI::App* op : commands_of(command))
    for (flag& f : flags_of(*op))
      if (seen.find(" " + f.names.back() + " ") == std::string::npos) {
        seen += " " + f.names.back() + " ";
        flags.push_back(std::move(f));
      }
  return flags;
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
        "  local word=${{COMP_WORDS[COMP_CWORD]}} words=\n"
        "  case ${{COMP_CWORD}}:${{COMP_WORDS[1]}} in\n"
        "    1:*) words='{} --help --version' ;;\n",
        command_names(program));
  for (const CLI::App* command : commands_of(program)) {
    std::string names;
    for (const flag& f : all_flags(*command))
      for (const std::string& name : f.names) names += " " + name;
    print("    *:{}) words='{}{}' ;;\n", command->get_name(), words_of(*command), names);
  }
  print("  esac\n"
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
      "    )\n    _describe command commands\n    compadd -- --help --version\n    return\n  fi\n  case $words[2] "
      "in\n");
  for (const CLI::App* command : commands_of(program)) {
    std::string names;
    for (const flag& f : all_flags(*command))
      for (const std::string& name : f.names) names += " " + name;
    const std::string words = words_of(*command);
    print("    {}) [[ $PREFIX == -* ]] && compadd --{} || {{ {}_files }} ;;\n", command->get_name(), names,
          words.empty() ? "" : "(( CURRENT == 3 )) && compadd -- " + words + "; ");
  }
  print("  esac\n}}\n[[ $funcstack[1] == _lockstep ]] && _lockstep \"$@\" || compdef _lockstep lockstep\n");
}

void fish(const CLI::App& program) {
  print("# fish completion for lockstep: lockstep completion fish | source\n");
  for (const CLI::App* command : commands_of(program)) {
    print("complete -c lockstep -n __fish_use_subcommand -a {} -d {}\n", command->get_name(),
          quoted(command->get_description()));
    const std::string inside = fmt::format("'__fish_seen_subcommand_from {}'", command->get_name());
    if (const std::string words = words_of(*command); !words.empty())
      print("complete -c lockstep -n {} -a '{}'\n", inside, words);
    for (const flag& f : all_flags(*command)) {
      std::string names;
      for (const std::string& name : f.names)
        names += name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1);
      print("complete -c lockstep -n {}{}{} -d {}\n", inside, names, f.takes_value ? " -r" : "", quoted(f.help));
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
