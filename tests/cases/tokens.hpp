// tokens.hpp - the words of a case's name: "ld40,20" is key "ld" with 40 and 20.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockstep/lockstep.h"

namespace lockstep::cases {

constexpr int64_t most_bytes = int64_t{1} << 47;  // of a process's addresses

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
  // The numbers behind a key, each within least and most; empty when the key is absent.
  std::vector<int64_t> numbers(const std::string& key, int64_t least = 0, int64_t most = INT64_MAX) {
    for (size_t i = 0; i < words_.size(); ++i) {
      const std::string& w = words_[i];
      if (used_[i] || w.size() <= key.size() || w.compare(0, key.size(), key) != 0) continue;
      const char first = w[key.size()];
      if (first != '-' && (first < '0' || first > '9')) continue;
      used_[i] = true;
      return parse(w, key.size(), ',', least, most);
    }
    return {};
  }
  int64_t number(const std::string& key, int64_t otherwise, int64_t least = 0, int64_t most = INT64_MAX) {
    const std::vector<int64_t> n = numbers(key, least, most);
    return n.empty() ? otherwise : n.front();
  }
  // "b4": bytes of an element that is only moved.
  size_t element_bytes() {
    const int64_t bytes = number("b", 4, 1, 16);
    if ((bytes & (bytes - 1)) != 0) refuse("b" + std::to_string(bytes) + ": elements have 1, 2, 4, 8 or 16 bytes");
    return static_cast<size_t>(bytes);
  }
  // "17x33": the sizes, the next unused word. Their product fits.
  std::vector<int64_t> sizes() {
    std::vector<int64_t> found = parse(next(), 0, 'x', 0, INT64_MAX);
    int64_t product = 1;
    for (const int64_t size : found) product = times(product, std::max<int64_t>(size, 1));
    return found;
  }
  // Of sizes and strides, refused beyond 64 bits.
  int64_t times(int64_t a, int64_t b) const {
    int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) too_large();
    return product;
  }
  int64_t plus(int64_t a, int64_t b) const {
    int64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) too_large();
    return sum;
  }
  // A word out of a list; its index, or -1 (and nothing used).
  template <class Names>
  int one_of(const Names& names) {
    for (size_t i = 0; i < std::size(names); ++i)
      if (flag(names[i])) return static_cast<int>(i);
    return -1;
  }
  [[noreturn]] void refuse(const std::string& why) const { throw std::invalid_argument(name_ + ": " + why); }
  [[noreturn]] void too_large() const { refuse("its sizes multiply to more than a process can address"); }
  void require_all_used() const {
    for (size_t i = 0; i < words_.size(); ++i)
      if (!used_[i]) refuse("what is \"" + words_[i] + "\"?");
  }

 private:
  std::vector<int64_t> parse(const std::string& word, size_t begin, char separator, int64_t least, int64_t most) const {
    std::vector<int64_t> found;
    const char *at = word.data() + begin, *end = word.data() + word.size();
    for (;; ++at) {
      int64_t value = 0;
      const auto [rest, code] = std::from_chars(at, end, value);
      if (code == std::errc::invalid_argument) refuse("\"" + word + "\" has no number");
      if (code != std::errc{} || value < least || value > most)
        refuse("\"" + word + "\": " + std::string(at, rest) + " is not within " + std::to_string(least) + " to " +
               std::to_string(most));
      found.push_back(value);
      if (rest == end) return found;
      if (*rest != separator) refuse("\"" + word + "\" is no list of numbers");
      at = rest;
    }
  }
  std::string name_;
  std::vector<std::string> words_;
  std::vector<bool> used_;
};

// Words that stand in the names of several operations: where sequences lie, and the types that sums are rounded to.
inline constexpr const char* usual_layouts[] = {"full", "rows", "columns", "even", "mixed", "nonempty", "lopsided"};
inline constexpr const char* roundings[] = {"to_f32", "to_f16", "to_bf16"};
inline constexpr lockstep_dtype rounded[] = {LOCKSTEP_F32, LOCKSTEP_F16, LOCKSTEP_BF16};

}  // namespace lockstep::cases
