// lessons.hpp - the variants that explain can replay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace.hpp"

namespace lockstep::tool::explain {

// The options; the lesson replaces 0 by its default.
struct settings {
  std::string op, variant;
  int64_t rows = 0, columns = 0, n = 0;
  int warp = 32, segment = 8, banks = 0;  // segment: elements of src
  int tile = 0, block = 0, blocks = 0, element_bytes = 0, partial_bytes = 0;
  int radius = 0, sweeps = 0;
  std::string boundary = "nearest", kind = "xor";
  int width = 0, operand = 1;
  bool classic = false;
};

struct lesson {
  const char* op;
  const char* variant;
  const char* row;      // of the ladder that is taught: "A1"
  const char* teaches;  // two lines
  trace (*replay)(settings& s);
};

const std::vector<lesson>& transpose_lessons();
const std::vector<lesson>& square_sum_lessons();
const std::vector<lesson>& stencil_lessons();
const std::vector<lesson>& shuffle_lessons();

trace shuffled_square_sum(settings& s);  // leaf.cpp
trace swept_line(settings& s);           // sweeps.cpp
trace swept_plane(settings& s);
trace swept_cube(settings& s);  // sweeps_cube.cpp

int32_t boundary_number(const settings& s);  // stencil.cpp
std::string beyond(const settings& s);       // what is read beyond an array's ends, in a sentence

std::vector<const std::vector<lesson>*> all_lessons();

// The lesson of s.op and s.variant (its first where none is named); a usage error names those there are.
const lesson& find_lesson(settings& s);

// Refuses, naming argument and fix.
[[noreturn]] void refuse_value(const char* option, int64_t value, const char* fix);
void require_range(const char* option, int64_t value, int64_t least, int64_t most);
void require_power_of_two(const char* option, int64_t value);
void require_size(int64_t threads_times_accesses, const char* option);  // pictures are small

}  // namespace lockstep::tool::explain
