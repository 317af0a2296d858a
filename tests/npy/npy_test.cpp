// npy_test.cpp - the .npy header: what NumPy writes is read, what an attacker
// writes is refused, what we write reads back.
#include "npy.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

namespace npy = lockstep::npy;

std::string file(const std::string& dictionary, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  const size_t n = dictionary.size(), length_bytes = version == 1 ? 2 : 4;
  for (size_t i = 0; i < length_bytes; ++i) bytes += static_cast<char>(n >> (8 * i) & 0xFF);
  return bytes + dictionary;
}

std::string why(const std::string& bytes) {
  try {
    npy::parse(bytes);
  } catch (const npy::error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(npy, reads_what_numpy_writes) {
  for (int version = 1; version <= 3; ++version) {
    const npy::header h =
        npy::parse(file("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }          \n", version));
    EXPECT_EQ(h.descr, "<f4");
    EXPECT_FALSE(h.fortran);
    EXPECT_EQ(h.shape, (std::vector<int64_t>{3, 4}));
    EXPECT_EQ(h.data_bytes(), 48u);
  }
  EXPECT_TRUE(npy::parse(file("{\"shape\":(5L,),'fortran_order':True,'descr':'|u1'}")).fortran);
  EXPECT_EQ(npy::parse(file("{'descr': '<c16', 'fortran_order': False, 'shape': ()}")).data_bytes(), 16u);
  EXPECT_EQ(npy::parse(file("{'descr': '|V2', 'fortran_order': False, 'shape': (0, 4611686018427387903)}")).elements(),
            0);
}

TEST(npy, reads_every_type) {
  for (const char* descr :
       {"|b1", "|u1", "|i1", "<u2", "<i2", "<f2", "<u4", "<i4", "<f4", "<u8", "<i8", "<f8", "<c8", "<c16", "|V2"})
    EXPECT_EQ(npy::parse(file(std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (2,)}")).descr,
              descr);
}

TEST(npy, reads_every_byte_order_of_this_machine) {
  const std::pair<const char*, const char*> same[] = {{"=f8", "<f8"}, {"|f8", "<f8"}, {"f8", "<f8"},  {"=u1", "|u1"},
                                                      {"<u1", "|u1"}, {">u1", "|u1"}, {"<V2", "|V2"}, {"|c16", "<c16"}};
  for (const auto& [written, meant] : same)
    EXPECT_EQ(
        npy::parse(file(std::string("{'descr': '") + written + "', 'fortran_order': False, 'shape': (2,)}")).descr,
        meant);
}

TEST(npy, reads_long_headers) {
  const std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";
  for (const size_t spaces : {65536, 1 << 20}) {
    const npy::header h = npy::parse(file(dictionary + std::string(spaces, ' ') + "\n", 2));
    EXPECT_EQ(h.data_offset, 12 + dictionary.size() + spaces + 1);
  }
}

TEST(npy, refuses_with_a_reason) {
  const auto dictionary = [](const std::string& descr, const std::string& shape) {
    return file("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + "}");
  };
  const std::pair<std::string, const char*> bad[] = {
      {"", "no .npy file"},
      {"PK\3\4 and so on", "no .npy file"},
      {file("{}").substr(0, 9), "truncated within its header"},
      {file("{}", 4), "version 4.0"},
      {file("{}", 2).substr(0, 11), "truncated"},
      {file("{'descr': '<f4'").substr(0, 15), "truncated"},
      {file(std::string(70000, ' '), 2), "broken"},
      {std::string("\x93NUMPY\2\0\xFF\xFF\xFF\xFF{}", 14),
       "truncated within its header, which says that it has 4294967295 bytes"},
      {dictionary(">f4", "(2,)"), "big-endian"},
      {dictionary("<f3", "(2,)"), "type"},
      {dictionary("|O", "(2,)"), "type"},
      {dictionary("<U7", "(2,)"), "type"},
      {dictionary("=f3", "(2,)"), "type"},
      {dictionary("<", "(2,)"), "type"},
      {dictionary("==f4", "(2,)"), "type"},
      {dictionary(">i2", "(2,)"), "big-endian"},
      {dictionary("f", "(2,)"), "type"},
      {dictionary("", "(2,)"), "type"},
      {dictionary("<f4", "(-2,)"), "negative"},
      {dictionary("<f4", "(9223372036854775808,)"), "2^63"},
      {dictionary("<f4", "(99999999999999999999999999,)"), "2^63"},
      {dictionary("<f4", "(4294967296, 4294967296)"), "bytes"},
      {dictionary("<f4", "(0, 4294967296, 4294967296)"), "bytes"},
      {dictionary("<f8", "(9223372036854775807,)"), "bytes"},
      {dictionary("<f4", "(2.5,)"), "broken"},
      {dictionary("<f4", "[2]"), "broken"},
      {dictionary("<f4", "(2,"), "broken"},
      {dictionary("<f4", "(" + std::string(200, '1') + ")"), "2^63"},
      {file("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}"), "True or False"},
      {file("{'descr': '<f4', 'fortran_order': False}"), "lacks the key \"shape\""},
      {file("{'fortran_order': False, 'shape': (2,)}"), "lacks the key \"descr\""},
      {file("{'descr': '<f4', 'shape': (2,)}"), "lacks the key \"fortran_order\""},
      {file("{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}"), "twice"},
      {file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'evil': 1}"), "unknown key"},
      {file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"), "records"},
      {file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} import os"), "behind the dictionary"},
      {file("{'descr': '<f4"), "does not end"},
      {file(std::string(1, '\0')), "broken"},
  };
  for (const auto& [bytes, part] : bad)
    EXPECT_NE(why(bytes).find(part), std::string::npos) << part << ": " << why(bytes);
  std::string deep = "(";
  for (int i = 0; i < 100; ++i) deep += "1,";
  EXPECT_NE(why(dictionary("<f4", deep + ")")).find("axes"), std::string::npos);
}

TEST(npy, every_truncation_is_refused) {
  const std::string whole = npy::format({"<f4", false, {3, 4}, 0});
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(why(whole.substr(0, n)), "accepted") << n;
}

TEST(npy, reads_what_it_writes) {
  for (const bool fortran : {false, true})
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, {7}, {3, 4}, {0, 5}, {1, 2, 3, 4, 5, 6, 7, 8}, {int64_t{1} << 40}}) {
      const npy::header h{"<f8", fortran, shape, 0};
      const std::string bytes = npy::format(h);
      EXPECT_EQ(bytes.size() % 64, 0u);
      const npy::header back = npy::parse(bytes);
      EXPECT_EQ(back.descr, h.descr);
      EXPECT_EQ(back.fortran, fortran);
      EXPECT_EQ(back.shape, shape);
      EXPECT_EQ(back.data_offset, bytes.size());
    }
  EXPECT_EQ(npy::descr_of('u', 1), "|u1");
  EXPECT_EQ(npy::descr_of('f', 4), "<f4");
}

}  // namespace
