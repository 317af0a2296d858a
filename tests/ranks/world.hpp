// world.hpp - ranks for tests: threads of this process over the local transport, each with one or several ranks; or, in
// a program built for MPI, the processes of the job.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "cases.hpp"
#include "lockstep/ranks.h"
#include "text.hpp"

namespace lockstep::ranks_test {

struct member {
  lockstep_comm* comm;
  lockstep_context* context;
  int32_t process, first, seats, ranks;
  std::vector<std::string> backends;  // of each seat; "" is the context's
};

// What a test may change about the transport or the communicator of a process.
struct changes {
  int64_t message_bytes = 0;  // of the options, on every process
  std::function<void(int32_t process, lockstep_engine&)> engine;
  std::function<void(int32_t process, lockstep_comm_options&)> options;
  std::function<void(int32_t process, lockstep_context_options&)> context;
  bool only_sizes() const { return !engine && !options && !context; }
};

// Numbers of seats for p ranks: one a process, all in one process, or drawn.
std::vector<int32_t> one_each(int32_t ranks);
std::vector<int32_t> drawn_seats(int32_t ranks, std::mt19937_64& draw);
// Parts of a grid, whose product is at most the number of ranks.
std::vector<int32_t> draw_parts(size_t axes, int32_t ranks, std::mt19937_64& draw);
// The numbers of ranks that this program tests: many for threads, the job's for MPI.
std::vector<int32_t> rank_counts();
bool over_mpi();

// Where the ranks of a test are: the environment's LOCKSTEP_TEST_DEVICES, "cuda:0,cpu", names the backends of ranks in
// turn, LOCKSTEP_TEST_PLANE a data plane, and LOCKSTEP_TEST_RANKS the numbers of ranks, "1,2,5". why: a device is
// missing.
bool devices_usable(std::string& why);

// Runs body in every process. seats are ignored over MPI, where each process holds one rank. Streams, page-locked
// memory and NCCL take long to make, so with ranks on devices a few communicators stay for later calls that want the
// same.
void run(const std::vector<int32_t>& seats, const std::function<void(member&)>& body, const changes& with = {});

// At the program's end: those communicators go. Over MPI a collective call.
void close_kept();

// Bytes that every process needs alike. Over MPI the first one makes them and the others are told: many ranks share few
// processors, and each would do the same again.
std::vector<unsigned char> told_to_all(const std::function<std::vector<unsigned char>()>& make);

// `n` elements of what a case of tests/cases would hold; over MPI a collective call.
std::vector<unsigned char> data_of(lockstep_dtype dtype, int64_t n, const char* fill, uint64_t seed);

// Whether so many ranks fit what LOCKSTEP_TEST_PLANE names: NCCL takes one rank a GPU. Else `run` skips the test.
bool plane_takes(size_t ranks);

// A grid with storage of its own; cuts drawn of several sorts.
struct drawn_grid {
  lockstep_grid g{};
  std::vector<int64_t> cuts[LOCKSTEP_MAX_RANK];
  std::vector<int32_t> order;
  std::string text;
  const lockstep_grid* get();
};
enum class sort { even, uneven, empty_parts, one_holds_all, single_elements, explicit_even };
drawn_grid draw_grid(size_t element_bytes, const std::vector<int64_t>& shape, const std::vector<int32_t>& parts,
                     int32_t ranks, std::mt19937_64& draw);

// A seat's block in memory with gaps between its rows, poison all around, copied from the whole array.
struct block {
  std::vector<unsigned char> memory;
  lockstep_part part{};
  std::vector<int64_t> low, length;
  int64_t elements = 1;
  block(const lockstep_grid& g, int32_t rank, bool padded);
  block(size_t element_bytes, const std::vector<int64_t>& length, bool padded);
  void fill(const lockstep_grid& g, const unsigned char* whole);
  // The difference from the block of `whole`, and from poison between; "" where there is none.
  std::string compare(const std::vector<int64_t>& shape, const unsigned char* whole) const;

 private:
  size_t bytes_;
  std::vector<unsigned char> before_;
  void place(bool padded);
};

// Memory of a test in the memory of a seat's device; the same where the seat is on the CPU.
class mirror {
 public:
  mirror(const member& m, int32_t seat, void* memory, size_t bytes);
  ~mirror();
  mirror(const mirror&) = delete;
  mirror& operator=(const mirror&) = delete;
  lockstep_part of(lockstep_part p) const;  // the part in the mirrored memory
  void back() const;

 private:
  lockstep_context* context_;
  std::string backend_;
  void* memory_;
  size_t bytes_;
  void* copy_ = nullptr;
};

// Executes with the blocks in memory of their seats; of two arrays the second's are behind the first's. A NULL list is
// one that the call ignores.
lockstep_status execute(const member& m, lockstep_ranks_plan* plan, std::vector<block>* from, std::vector<block>* to,
                        const lockstep_options* options = nullptr);

}  // namespace lockstep::ranks_test
