// remembered.cpp - reads and writes the file of remembered choices, and looks choices up.
#include "remembered.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "../files/kept_file.hpp"
#include "../status.hpp"

namespace lockstep::lib {
namespace {

constexpr size_t most_bytes = size_t{1} << 20, most_entries = 1024;  // an entry has at most about 600 bytes
constexpr std::string_view first_line = "lockstep-tuning 1";

std::vector<std::string_view> parts_of(std::string_view line) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    parts.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool read_time(std::string_view text, double& us) {
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), us);
  return code == std::errc{} && rest == text.data() + text.size() && std::isfinite(us) && us >= 0;
}

struct line_reader {
  std::vector<tuned_entry> entries;
  size_t number = 0;
  bool ended = false;

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(LOCKSTEP_INTERNAL, "line {}: {}", number, vformat_text(format, fmt::make_format_args(args...)));
  }
  void line(std::string_view text) {
    if (++number == 1) {
      if (text.substr(0, first_line.size() - 1) != first_line.substr(0, first_line.size() - 1))
        refuse("this is not a file of tuned choices");
      if (text != first_line) refuse("\"{}\"; this library reads version 1", text.substr(0, 40));
      return;
    }
    if (ended) refuse("there is text after the end");
    if (text == "end") {
      ended = true;
      return;
    }
    const auto p = parts_of(text);
    tuned_choice c;
    if (p.size() != 10 || p[0] != "choice" || std::any_of(p.begin(), p.end(), [](auto part) { return part.empty(); }))
      refuse("\"{}\" is not understood", text.substr(0, 60));
    if (!read_time(p[7], c.us) || !read_time(p[9], c.beside_us)) refuse("\"{}\" is not a time", p[7].substr(0, 40));
    if (entries.size() == most_entries) refuse("more than {} entries", most_entries);
    c.row = p[6], c.beside = p[8];
    entries.emplace_back(
        tuned_key{std::string(p[1]), std::string(p[2]), std::string(p[3]), std::string(p[4]), std::string(p[5])},
        std::move(c));
  }
};

}  // namespace

std::string parse_tuning(const std::string& text, std::vector<tuned_entry>& into) {
  line_reader reader;
  try {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      reader.line(std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
    }
    if (!reader.ended) return text.empty() ? "it is empty" : "it is cut short: it does not say \"end\"";
  } catch (const error& e) {
    return e.text;
  }
  into = std::move(reader.entries);
  return "";
}

std::string tuning_text(const std::vector<tuned_entry>& entries) {
  std::string text = std::string(first_line) + "\n";
  const size_t skipped = entries.size() > most_entries ? entries.size() - most_entries : 0;  // the oldest
  for (size_t i = skipped; i < entries.size(); ++i) {
    const auto& [k, c] = entries[i];
    text += format_text("choice\t{}\t{}\t{}\t{}\t{}\t{}\t{:.4g}\t{}\t{:.4g}\n", k.library, k.backend, k.device, k.setup,
                        k.calls, c.row, c.us, c.beside, c.beside_us);
  }
  return text + "end\n";
}

void remembered_choices::refresh() {
  if (!looked_) path_ = kept_path("LOCKSTEP_TUNING", "tuning", reason_);
  looked_ = true;
  if (path_.empty()) return;
  struct stat s {};
  if (stat(path_.c_str(), &s) != 0) {
    file_.clear();
    stamp_ = {};
    reason_ = "there is no such file; lockstep tune, or a plan with LOCKSTEP_TUNE, makes one";
    return;
  }
  const stamp seen{s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec};
  if (seen == stamp_) return;
  file_.clear();
  std::vector<tuned_entry> entries;
  try {
    reason_ = parse_tuning(read_kept(path_, most_bytes), entries);
  } catch (const error& e) {
    reason_ = e.text;
  }
  stamp_ = seen;
  for (auto& [key, choice] : entries) file_[key] = std::move(choice);
}

// The backend is called without the lock, because it may do anything, even fork.
std::string remembered_choices::device_text(backend_entry& entry, int32_t device) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = devices_.find({&entry, device}); known != devices_.end()) return known->second;
  }
  std::string text = lib::device_text(entry, device);
  const std::lock_guard lock(mutex_);
  return devices_[{&entry, device}] = std::move(text);
}

bool remembered_choices::any() {
  const std::lock_guard lock(mutex_);
  refresh();
  return !file_.empty() || !own_.empty();
}

std::optional<tuned_choice> remembered_choices::find(const tuned_key& key) {
  const std::lock_guard lock(mutex_);
  refresh();
  for (const auto* known : {&own_, &file_})
    if (const auto at = known->find(key); at != known->end()) return at->second;
  return std::nullopt;
}

std::string remembered_choices::keep(const tuned_key& key, const tuned_choice& choice) {
  const std::lock_guard lock(mutex_);
  refresh();
  own_[key] = choice;
  if (path_.empty()) return reason_;
  // A module's names of devices and rows may hold characters that would break the file's lines.
  for (const std::string* part : {&key.backend, &key.device, &choice.row, &choice.beside})
    if (part->empty() || part->find_first_of("\t\n") != std::string::npos)
      return format_text("\"{}\" cannot stand in a file of lines", shown(*part));
  try {
    const kept_folder folder(path_);
    std::vector<tuned_entry> entries;
    if (struct stat s{}; lstat(path_.c_str(), &s) == 0) {
      const std::string text = read_kept(path_, most_bytes);  // throws for another user's file: it must not be replaced
      std::string why = parse_tuning(text, entries);
      // A later version of lockstep still uses its file, so keep that; replace one that is damaged.
      const bool foreign = text.starts_with("lockstep-tuning ") && !text.starts_with(std::string(first_line) + "\n");
      if (foreign) return why;
    }
    std::erase_if(entries, [&](const tuned_entry& e) { return e.first == key; });
    entries.emplace_back(key, choice);
    folder.replace(tuning_text(entries));
    own_.erase(key);
    return "";
  } catch (const error& e) {
    return e.text;
  }
}

remembered_choices::state remembered_choices::now() {
  state told;
  std::map<tuned_key, tuned_choice> all;
  {
    const std::lock_guard lock(mutex_);
    refresh();
    told.path = path_, told.reason = reason_;
    all = own_;
    all.insert(file_.begin(), file_.end());
  }
  for (const auto& [key, choice] : all) {
    backend_entry* entry = find_backend(key.backend);
    if (key.library != LOCKSTEP_VERSION || entry == nullptr) continue;
    bool here = false;
    for (int32_t i = 0; i < entry->devices() && !here; ++i) here = device_text(*entry, i) == key.device;
    if (!here) continue;
    ++told.count;
    told.choices += format_text("{}{} ({}) {}: {} {:.4g} us, {} {:.4g}", told.choices.empty() ? "" : "\n", key.backend,
                                key.setup, key.calls, choice.row, choice.us, choice.beside, choice.beside_us);
  }
  return told;
}

}  // namespace lockstep::lib
