// shared.cpp - rows about shared memory and exchange within a block: E2, E3, E11, E12.
#include "../patterns.hpp"
#include "../predict.hpp"
#include "../probe.hpp"

namespace lockstep::tool::probe {
namespace {
using namespace lockstep::probe;

addresses lanes_of(pattern kind, uint32_t value, int bytes) {
  addresses lanes;
  for (uint32_t lane = 0; lane < 32; ++lane)
    lanes.push_back(uint64_t{lane_word(kind, value, lane)} * static_cast<uint64_t>(bytes));
  return lanes;
}
int ways(pattern kind, uint32_t value, int bytes = 4) { return bank_cycles(lanes_of(kind, value, bytes), bytes); }

void e2(row& out, const readings& all) {
  out.taught =
      "Shared memory is declared with a size, or sized by the third launch parameter; both are the same memory. A "
      "block has at "
      "most 48 KiB.";
  out.today =
      "Since Volta a block may have most of the multiprocessor's memory (227 KiB on Hopper) as dynamic shared memory, "
      "after cudaFuncSetAttribute has opted in; static shared memory still ends at 48 KiB.";
  out.lesson =
      "Choose by whether the size is known when compiled; it costs nothing either way. Above 48 KiB: dynamic, and opt "
      "in.";
  out.bar("32 KiB written and read 64 times", all, {"static", "dynamic", "all that a block may have"});
  const double s = all.value("E2", "static");
  out.judge(all.find("E2", "dynamic"), about(s, 0.05).by("the static array's cycles: it is the same memory"));
  out.judge(all.find("E2", "static bytes"), exactly(32768).by("32 KiB, as declared"));
  out.judge(all.find("E2", "static bytes of the dynamic kernel"), exactly(0).by("its memory comes with the launch"));
  out.judge(all.find("E2", "48 KiB and 4 bytes without opting in"), exactly(0).by("refused, so no kernel is launched"));
  out.judge(all.find("E2", "all that a block may have"),
            about(s, 0.05).by("the same work in the largest block takes the static array's cycles"));
  out.judge("dynamic shared memory of a block", "KiB", all.fact("shared_bytes_a_block_optin") / 1024,
            at_least(64).by("Volta and later give at least 64 KiB"), exactly(48));
}

void e3(row& out, const readings& all) {
  out.taught =
      "32 banks of 4 bytes, next words in next banks. A request takes as many cycles as the most distinct words that "
      "its lanes want of one bank; lanes that want the same word get it at once.";
  out.lesson =
      "Odd strides are free, a stride of 32 costs 32: pad a tile's rows by one word and its columns are free too.";
  const std::string rule =
      "counted by the rule: word w lies in bank w mod 32; the fullest bank's distinct words, a cycle each";
  const auto one = [&](const char* name, pattern kind, uint32_t value) {
    out.judge(all.find("E3", name), about(ways(kind, value), 0.1).by(rule));
  };
  for (const uint32_t s : {1u, 2u, 8u, 32u, 33u})
    out.judge(all.find("E3", "stride", s), about(ways(pattern::stride, s), 0.1).by(rule));
  out.bar("Patterns within a row", all, {"permuted in a row", "all lanes one word", "groups of 4 lanes one word"});
  one("permuted in a row", pattern::permuted, 0);
  one("all lanes one word", pattern::broadcast, 0);
  one("groups of 4 lanes one word", pattern::multicast, 4);
  series plot{"Conflict ways by stride", "stride in words", "cycles a request", false, false, {}, {}};
  bool right = true;
  for (const measured* m : all.series("E3", "stride")) {
    const double predicted = ways(pattern::stride, static_cast<uint32_t>(m->x));
    plot.points.push_back({m->x, m->value, predicted, {}, about(predicted, 0.1)});
    right = right && m->right();
  }
  int off = 0;
  for (const point& p : plot.points) off += std::abs(p.y / *p.predicted - 1) > 0.1;
  if (!plot.points.empty())
    out.judge("strides 1 to 34 off by more than 10%", "strides", right ? off : plot.points.size(),
              exactly(0).by("the same rule at each of the strides"));
  out.plots.push_back(std::move(plot));
}

void e11(row& out, const readings& all) {
  out.taught =
      "A shuffle hands a register from lane to lane without shared memory: one instruction in place of a store, a "
      "barrier and a load, no bytes of shared memory, and faster.";
  out.today =
      "The shuffle uses the same crossbar as shared memory: one warp a cycle and multiprocessor, against a store and a "
      "load. In throughput the taught factor stands, in latency not (fitted lines).";
  out.lesson =
      "Within a warp, shuffle: half the time when many exchange, no shared memory, nothing to get wrong about "
      "barriers.";
  out.bar("Exchange within a warp: latency", all, {"latency, shuffle", "latency, shared"});
  out.bar("Exchange within a warp: many at once", all, {"throughput, shuffle", "throughput, shared"});
  const double load = all.value("E10", "latency, shared");
  out.judge(all.find("E11", "latency, shuffle"),
            between(18, 32).by("what published measurements of Volta to Hopper span"));
  // A store and then a load, each of shared memory's latency.
  const std::string why =
      "nobody waits for a store: the load behind it is in the same queue and finds the value there, so the exchange "
      "takes one load's latency and the store's issue, hardly more than a shuffle's";
  out.judge(all.find("E11", "latency, shared"),
            about(2 * load, 0.25).by("a store and a load, each of shared memory's latency"), {},
            fit{about(load + 4, 0.25), why});
  out.judge("latency of shared over shuffle", "times",
            all.value("E11", "latency, shared") / all.value("E11", "latency, shuffle"),
            at_least(1.5).by("two accesses against one instruction"), at_least(1.5), fit{between(0.9, 1.5), why});
  // 32 lanes a cycle and multiprocessor (programming guide, arithmetic throughput).
  out.judge(all.find("E11", "throughput, shuffle"),
            about(1, 0.15).by("32 lanes a cycle and multiprocessor (programming guide)"));
  out.judge(all.find("E11", "throughput, shared"),
            between(1.8, 3.5).by("a store and a load, a cycle each, and what fences add"));
  out.judge(all.find("E11", "shared bytes, shuffle"), exactly(0).by("values go from register to register"));
  out.judge(all.find("E11", "shared bytes, shared"),
            exactly(4 * 4 * 1024).by("4 bytes x 4 exchanges under way x 1,024 threads"));
  for (const char* name : {"registers, shuffle", "registers, shared"})
    out.judge(all.find("E11", name), at_most(32).by("as many as leave room for all 2,048 threads"));
}

void e12(row& out, const readings& all) {
  out.taught =
      "Neighbouring elements of 1 and 2 bytes share a bank and conflict (16-bank devices); elements of 8 and 16 bytes "
      "conflict 2-way and 4-way. Conflicts arise within a warp, never between warps. Atomics on one counter serialise.";
  out.today =
      "Since Fermi lanes that want bytes of the same word get them at once; 8 and 16 bytes take 2 and 4 cycles "
      "because that many bytes move (128 a cycle), which is full speed. Increments of one counter by a warp are "
      "counted in one operation.";
  out.lesson =
      "Contiguous elements of any size are free of conflicts. Per byte the wide ones are best: fewer instructions.";
  const auto elements = [&](const char* name, int bytes, double old_ways) {
    out.judge(all.find("E12", name),
              about(ways(pattern::stride, 1, bytes), 0.15).by("bytes of the request over the 128 that move a cycle"),
              about(old_ways, 0.15));
  };
  elements("elements of 1 byte", 1, 4);
  elements("elements of 2 bytes", 2, 2);
  elements("elements of 4 bytes", 4, 1);
  elements("elements of 8 bytes", 8, 2);
  elements("elements of 16 bytes", 16, 4);
  out.bar("Contiguous elements of a warp", all,
          {"elements of 1 byte", "elements of 2 bytes", "elements of 4 bytes", "elements of 8 bytes",
           "elements of 16 bytes"});
  out.bar("Atomics in shared memory", all,
          {"increment one counter", "increment a counter a lane", "add to one counter", "add to a counter a lane"});
  for (const double shift : {0.0, 1.0, 32.0})
    out.judge(all.find("E12", "warps shifted by words", shift),
              about(1, 0.1).by("another warp's addresses do not matter"));
  out.judge(all.find("E12", "increment one counter"), at_most(8).by("the warp counts its lanes and adds once"),
            between(25, 100));
  out.judge(all.find("E12", "increment a counter a lane"), at_most(8).by("a bank of its own for each lane"));
  out.judge(all.find("E12", "add to one counter"), between(25, 100).by("32 lanes one after another"));
  out.judge(all.find("E12", "add to a counter a lane"), at_most(8).by("a bank of its own for each lane"));
}

}  // namespace

std::vector<kind> shared_kinds() {
  return {{"E2", "", "cuda", "Shared memory, static and dynamic", {"E2", "device"}, e2},
          {"E3", "", "cuda", "Bank conflicts of shared memory", {"E3"}, e3},
          {"E11", "", "cuda", "Shuffle against shared memory", {"E11", "E10"}, e11},
          {"E12", "", "cuda", "Shared memory: element sizes, warps, atomics", {"E12"}, e12}};
}

}  // namespace lockstep::tool::probe
