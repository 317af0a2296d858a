// view.hpp - shared by the text, the pictures and the JSON: the steps of one warp, and texts
// for counts.
#pragma once

#include <string>
#include <vector>

#include "lessons.hpp"
#include "trace.hpp"

namespace lockstep::tool::explain {

// The work between two barriers of the drawn block: the threads, and the cost.
struct level {
  int barrier;              // the one before; 0: none
  std::vector<bool> works;  // by thread
  int threads, warps;       // how many of them
  int64_t wavefronts;       // of shared memory
};

// Everything that one run of the command shows.
struct view {
  const lesson* what;
  settings how;
  trace t;
  std::vector<request> all;
  std::vector<summary> sums;
  int block = 0, warp = 0;                         // the warp that is drawn
  std::vector<std::vector<const request*>> steps;  // its requests, those of one round together
  std::vector<size_t> shown;                       // steps that are drawn
  std::vector<level> levels;                       // of its block; empty where all threads work all the time
  bool asked = false;                              // for a step
};

view make_view(const lesson& what, const settings& how, trace t, int block, int warp, const std::string& step);

const array& array_of(const view& v, const request& r);

// The rows of an array's picture that a request touches, and the columns to draw.
struct window {
  std::vector<int64_t> rows;  // ascending; -1 stands for rows left out
  int64_t first_column, columns;
  int64_t rows_left_out = 0;
};
window window_of(const view& v, const request& r, int64_t most_rows, int64_t most_columns);

// Which lane touches an element: -1 none, -2 several.
int lane_at(const request& r, int64_t element);
std::string lane_text(int lane);  // one character: 0-9, a-v; * for several

std::vector<std::pair<std::string, std::string>> facts(const view& v);  // sizes, each with its name
std::string headline(const view& v);                                    // the same in one line
std::string step_title(const view& v, size_t step);
// How to read drawings of steps; frames: what is around segments.
std::string key_of(const view& v, const std::vector<size_t>& steps, const std::string& frames);
std::string caption(const view& v, const request& r);  // "src, read: 32 lanes"
std::string cost(const view& v, const request& r);     // "32 segments, 4 needed: 12.5 % of the bytes used"
std::string name_of(const view& v, const summary& s);  // "read src"
bool wasteful(const view& v, const request& r);
struct verdict_text {
  bool agrees;
  std::string counted, taught, verdict;  // "4 segments a request, ...", "4 segments", "as taught"
};
verdict_text verdict_of(const view& v, const summary& s);
std::string not_drawn(const view& v, const char* like = "these");  // which of the warp's steps; empty: all are drawn
std::string other_steps(const view& v);                            // the same, and how to see them
std::string work_title(const view& v);
std::string name_of(const level& l);                 // "barrier 3"
std::string text_of(const view& v, const level& l);  // "8 of 256 threads, 1 of 8 warps; 2 wavefronts"

std::string text_of(const view& v, int columns);
std::string svg_of(const view& v);
std::string html_of(const view& v);
std::string json_of(const view& v);

}  // namespace lockstep::tool::explain
