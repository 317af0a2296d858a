// tokens.hpp - the words of a case's name: "ld40,20" is key "ld" with 40 and 20.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::cases {

class tokens {
 public:
  explicit tokens(const std::string& name) : name_(name) {
    for (size_t begin = 0; begin <= name.size();) {
      const size_t end = std::min(name.find('/', begin), name.size());
      words_.push_back(name.substr(begin, end - begin));
      begin = end + 1;
    }
    used_.resize(words_.size());
  }

  // The next unused word; every op begins with a few that have a fixed place.
  std::string next() {
    for (size_t i = 0; i < words_.size(); ++i)
      if (!used_[i]) return used_[i] = true, words_[i];
    throw std::invalid_argument(name_ + " ends too early");
  }
  bool flag(const std::string& word) {
    for (size_t i = 0; i < words_.size(); ++i)
      if (!used_[i] && words_[i] == word) return used_[i] = true;
    return false;
  }
  // The numbers behind a key; empty when the key is absent.
  std::vector<int64_t> numbers(const std::string& key) {
    for (size_t i = 0; i < words_.size(); ++i) {
      const std::string& w = words_[i];
      if (used_[i] || w.size() <= key.size() || w.compare(0, key.size(), key) != 0) continue;
      const char first = w[key.size()];
      if (first != '-' && (first < '0' || first > '9')) continue;
      used_[i] = true;
      return parse(w.substr(key.size()), ',');
    }
    return {};
  }
  int64_t number(const std::string& key, int64_t otherwise) {
    const std::vector<int64_t> n = numbers(key);
    return n.empty() ? otherwise : n.front();
  }
  // "17x33": the sizes, the next unused word.
  std::vector<int64_t> sizes() { return parse(next(), 'x'); }
  // A word out of a list; its index, or -1 (and nothing used).
  template <class Names>
  int one_of(const Names& names) {
    for (size_t i = 0; i < std::size(names); ++i)
      if (flag(names[i])) return static_cast<int>(i);
    return -1;
  }
  [[noreturn]] void refuse(const std::string& why) const { throw std::invalid_argument(name_ + ": " + why); }
  void require_all_used() const {
    for (size_t i = 0; i < words_.size(); ++i)
      if (!used_[i]) refuse("what is \"" + words_[i] + "\"?");
  }

 private:
  std::vector<int64_t> parse(const std::string& text, char separator) const {
    std::vector<int64_t> found;
    const char* at = text.c_str();
    for (;;) {
      char* rest = nullptr;
      found.push_back(std::strtoll(at, &rest, 10));
      if (rest == at) refuse("\"" + text + "\" has no number");
      if (*rest == '\0') return found;
      if (*rest != separator) refuse("\"" + text + "\" is no list of numbers");
      at = rest + 1;
    }
  }
  std::string name_;
  std::vector<std::string> words_;
  std::vector<bool> used_;
};

}  // namespace lockstep::cases
