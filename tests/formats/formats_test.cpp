// formats_test.cpp - readers of files: what is cut is refused, what is changed at random is read or refused, and
// nothing outside of a file is read (its bytes end where a page ends that may not be touched).
#include "real_input/formats.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <random>

#include "cli.hpp"
#include "samples.hpp"

namespace {

using namespace lockstep::tool;

// Bytes that end at a page without access, as a file in a mapping may.
class guarded {
 public:
  guarded() {
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    memory_ =
        static_cast<char*>(mmap(nullptr, room + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(memory_ + room, page_, PROT_NONE) != 0) std::abort();
  }
  ~guarded() { munmap(memory_, room + page_); }
  guarded(const guarded&) = delete;
  guarded& operator=(const guarded&) = delete;
  std::string_view put(std::string_view bytes) {
    if (bytes.size() > room) std::abort();
    char* const begin = memory_ + room - bytes.size();
    std::memcpy(begin, bytes.data(), bytes.size());
    return {begin, bytes.size()};
  }

 private:
  static constexpr size_t room = 1 << 20;
  size_t page_;
  char* memory_;
};

// The array, or nothing and the error.
std::optional<array> read(const std::string& name, std::string_view bytes, const char* as, std::string& error) {
  try {
    const array a = import_bytes(name, bytes, {.as = as});
    uint64_t sum = 0;  // every byte is there
    for (size_t i = 0; i < a.header.data_bytes(); ++i) sum += static_cast<unsigned char>(a.data[i]);
    EXPECT_GE(sum, 0u);
    return a;
  } catch (const failure& why) {
    error = why.what();
    return {};
  }
}

TEST(Formats, SamplesAreRead) {
  std::string error;
  for (const sample& one : samples())
    EXPECT_TRUE(read(one.name, one.bytes, "auto", error)) << one.name << ": " << error;
}

// Of a format that says how long it is every shorter file is refused; of text the rows or pixels that are there are
// right, or it is refused.
TEST(Formats, CutAtEveryByte) {
  guarded memory;
  for (const sample& one : samples())
    for (size_t size = 0; size < one.bytes.size(); ++size) {
      std::string error;
      const std::optional<array> a = read(one.name, memory.put(one.bytes.substr(0, size)), "auto", error);
      ASSERT_FALSE(a && one.counts_bytes) << one.name << " cut to " << size << " of " << one.bytes.size() << " bytes";
      ASSERT_TRUE(a || error.starts_with(one.name)) << error;
    }
}

// A PNM file of a page that ends in a digit: the number's end is the file's.
TEST(Formats, DigitAtTheEndOfThePage) {
  guarded memory;
  std::string text = "P2 1023 2 9\n", error;
  while (text.size() < 4096) text += " 7";
  text.resize(4096);
  text.back() = '7';
  read("page.pgm", memory.put(text), "auto", error);
  EXPECT_TRUE(read("one.pgm", memory.put("P2 1 1 9 7"), "auto", error)) << error;
  EXPECT_TRUE(read("one.csv", memory.put("1,27"), "auto", error)) << error;
}

// Fixed seeds: the same changes in every run.
TEST(Formats, RandomChanges) {
  constexpr int changed_files = 60;
  guarded memory;
  const std::vector<sample> all = samples();
  constexpr const char* kinds[] = {"auto",  "auto", "auto",  "picture", "gray",
                                   "sound", "grid", "table", "text",    "lines"};
  std::mt19937 draw(20261126);
  const auto below = [&](size_t n) { return static_cast<size_t>(draw() % n); };
  int taken = 0;
  for (const sample& one : all)
    for (int i = 0; i < changed_files; ++i) {
      std::string bytes = one.bytes;
      for (size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
        const size_t at = below(2) != 0 ? below(bytes.size()) : below(std::min<size_t>(bytes.size(), 64));
        switch (below(6)) {
          case 0: bytes[at] = static_cast<char>(draw()); break;
          case 1: bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8)); break;
          case 2: bytes[at] = "\0\xFF\x7F\x80 9\n,"[below(8)]; break;
          case 3: bytes.erase(at, 1 + below(8)); break;
          case 4: bytes.insert(at, bytes.substr(below(bytes.size()), below(16))); break;
          default: bytes.resize(at); break;
        }
      }
      if (bytes.starts_with("\x89PNG") && below(4) != 0) mend_crc(bytes);
      std::string error;
      const char* as = kinds[below(std::size(kinds))];
      if (read(one.name, memory.put(bytes), as, error))
        ++taken;
      else
        ASSERT_TRUE(error.starts_with(one.name) && error.size() < 600) << error;
    }
  EXPECT_GT(taken, 100);  // changes do reach what is behind the first check
}

}  // namespace
