// cached.cpp - rows about constant memory, the read-only cache and textures: E4, E5, E6.
#include "../predict.hpp"
#include "../probe.hpp"

namespace lockstep::tool::probe {
namespace {
using namespace lockstep::probe;

void e4(row& out, const readings& all) {
  out.taught =
      "64 KiB of constant memory, cached. A request in which all lanes want one address is as fast as a register; "
      "every other "
      "distinct address is one more pass: 32 addresses, 32 times the time. Kernel parameters travel the same way.";
  out.today =
      "Still so. The first cache is about 2 KiB a multiprocessor, the next one 32 to 128 KiB; a load that goes through "
      "an index costs "
      "its latency, only operands at fixed addresses are free.";
  out.lesson = "Coefficients that all lanes read together belong there; tables that lanes look up on their own do not.";
  const auto points = all.series("E4", "distinct addresses");
  const double one = all.value("E4", "distinct addresses", 1);
  series plot{
      "Constant cache by distinct addresses", "distinct addresses in a warp", "cycles a request", true, true, {}, {}};
  for (const measured* m : points) {
    addresses lanes;
    for (uint64_t lane = 0; lane < 32; ++lane) lanes.push_back(lane % static_cast<uint64_t>(m->x) * 4);
    const double passes = constant_cycles(lanes);
    plot.points.push_back({m->x, m->value, one * passes, {}, about(one * passes, 0.15)});
    measured relative = *m;
    relative.name = "time over one address, distinct addresses";
    relative.unit = "times";
    for (double* v : {&relative.value, &relative.low, &relative.high}) *v /= one;
    out.judge(&relative, about(passes, 0.15).by("a pass for each distinct address"));
  }
  series sizes{"Constant memory, latency by working set", "bytes", "cycles", true, false, {},
               {{2048, "2 KiB"}, {65536, "64 KiB"}}};
  for (const measured* m : all.series("E4", "latency by working set")) {
    sizes.points.push_back({m->x, m->value, {}});
  }
  const measured* parameter = all.find("E4", "latency of a kernel parameter");
  if (parameter != nullptr)
    out.judge(parameter, about(all.value("E4", "latency by working set", 2048), 0.2)
                             .by("constant memory's own latency: parameters lie there"));
  double first_cache = 0;
  for (const point& p : sizes.points)
    if (p.y <= 1.15 * sizes.points.front().y) first_cache = p.x;
  if (!sizes.points.empty())
    out.judge("first constant cache holds", "KiB", first_cache / 1024,
              between(1, 4).by("published measurements of Volta to Hopper: 2 KiB"), exactly(8));
  out.judge("constant memory there is", "KiB", all.fact("constant_bytes") / 1024,
            exactly(64).by("the programming guide's table"));
  out.plots.push_back(std::move(plot));
  out.plots.push_back(std::move(sizes));
}

void e5(row& out, const readings& all) {
  out.taught =
      "Kepler's read-only cache (__ldg, const __restrict__) is the texture's: apart from L1, better than constant "
      "memory where lanes want "
      "different addresses, and worth asking for.";
  out.today =
      "Since Maxwell L1 and texture are one cache, since Volta plain loads go through it too: ld.global.nc and a plain "
      "load cost the same. Against constant memory the rule stands: different addresses cost passes there, lines here.";
  out.lesson =
      "Write const __restrict__ for the compiler's sake; do not expect another cache. Constant memory only for uniform "
      "reads.";
  for (const char* pattern : {"uniform", "neighbours", "a line each"}) {
    const std::string name = pattern;
    const double plain = all.value("E5", name + ", plain");
    out.judge("plain over read-only, " + name, "times", plain / all.value("E5", name + ", read-only"),
              about(1, 0.05).by("one cache, and one path to it"), at_least(1.2));
  }
  const range a_cycle = about(1, 0.2).by("L1 gives a line, 128 bytes, each cycle");
  out.judge(all.find("E5", "uniform, read-only"), a_cycle);
  out.judge(all.find("E5", "neighbours, read-only"), a_cycle);
  out.judge(all.find("E5", "neighbours, addresses by multiply-add"), a_cycle, {},
            fit{between(1.25, 1.5),
                "the limit is not L1 but the address: index times 4 plus base is a multiply-add of 64 bits, whose unit "
                "needs four cycles a warp, so that multiplies alone take 1.03 cycles and warps wait at dispatch (ncu). "
                "Before loads from shared memory it is the same (1.36); two additions in its place make it 1.05, fixed "
                "offsets 1.03"});
  out.judge(all.find("E5", "a line each, read-only"),
            between(8, 33).by("32 lines: L1 looks up one a cycle, or one in each of its four parts"));
  out.bar("Loads from L1 by pattern and path", all,
          {"uniform, read-only", "uniform, plain", "neighbours, read-only", "neighbours, plain",
           "neighbours, addresses by multiply-add", "a line each, read-only", "a line each, plain"});
  const double constant = all.value("E4", "distinct addresses", 32);
  out.judge("constant over read-only, 32 neighbours", "times", constant / all.value("E5", "neighbours, read-only"),
            at_least(16).by("32 passes there, a line or two here"));
}

void e6(row& out, const readings& all) {
  out.taught =
      "Textures are cached for locality in two dimensions, interpolate for free with 8 bits of fraction, and read 8- "
      "and 16-bit "
      "integers as fractions of 1.";
  out.today =
      "Reads and conversions as ever. Not only the fraction but each corner's weight has 8 bits: products of fractions "
      "are rounded, so filtering in 2-D and 3-D can be further off than the fractions allow. Locality: the array's "
      "layout keeps neighbours of both directions in a line, so columns cost what rows do; "
      "linear memory has caught up wherever its accesses coalesce.";
  out.lesson =
      "Textures for 2-D neighbourhoods read across, for interpolation and for free conversion; plain loads for rows.";
  const std::string weights =
      "a cell alone among zeros shows its weight: the weights of an H200 are whole 256ths that add up to 256, split by "
      "z, then x, then y, each rounded to the nearest (in 49,152 of 49,152 corners). Products of fractions would have "
      "16 or 24 bits";
  for (const char* d : {"1-D", "2-D", "3-D"}) {
    out.judge(all.find("E6", std::string(d) + " points read exactly"),
              exactly(1024).by("a read at a cell's centre gives the cell"));
    // Neighbouring cells differ by at most 10, 57 and 1007. The weight of x is rounded for each slice, that of y for
    // each column of a slice.
    out.judge(all.find("E6", std::string(d) + " interpolation, largest difference"),
              at_most(1).by("a fraction of 8 bits is off by 1/512 of the step between cells, along each axis"), {},
              *d == '3' ? std::optional(fit{at_most((3 * 10 + 5 * 57 + 1007) / 1084.7), weights}) : std::nullopt);
    out.judge(all.find("E6", std::string(d) + " filtered as weights of 8 bits give it"), no_rule(), {},
              fit{exactly(1024), weights});
  }
  for (const char* name :
       {"8-bit integers as fractions", "16-bit integers as fractions", "signed 8-bit integers as fractions"})
    out.judge(all.find("E6", name), exactly(256).by("all 256 tried are v over the largest value"));
  out.bar("Reading an image", all,
          {"texture by rows", "linear by rows", "texture by columns", "linear by columns", "texture by tiles of 8 x 4",
           "linear by tiles of 8 x 4"});
  const auto ratio = [&](const char* a, const char* b) { return all.value("E6", a) / all.value("E6", b); };
  out.judge("texture: columns over rows", "times the speed", ratio("texture by columns", "texture by rows"),

            between(0.5, 1.5).by("a line of the array holds neighbours of both directions"));
  out.judge("linear: columns over rows", "times the speed", ratio("linear by columns", "linear by rows"),
            at_most(0.5).by("a column takes a sector of 32 bytes for each word; caches give a part of that back"));
  out.judge("columns: texture over linear", "times the speed", ratio("texture by columns", "linear by columns"),
            at_least(1.5).by("the array's layout is made for that"));
  out.judge("rows: texture over linear", "times the speed", ratio("texture by rows", "linear by rows"),
            between(0.4, 1.1).by("rows coalesce by themselves, and texture units are no wider than L1"), at_least(1));
}

}  // namespace

std::vector<kind> cached_kinds() {
  return {{"E4", "", "cuda", "Constant memory: one address or many", {"E4", "device"}, e4},
          {"E5", "", "cuda", "The read-only cache, beside constant memory", {"E5", "E4"}, e5},
          {"E6", "", "cuda", "Textures: values, interpolation, locality", {"E6"}, e6}};
}

}  // namespace lockstep::tool::probe
