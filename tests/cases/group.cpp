// group.cpp - cases group/<count>[/varied]/<case>: so many calls of one case's op at once. varied, of one sequence: the
// calls' lengths lie between a 256th of the case's and all of it.
#include "lockstep/group.h"

#include "describe.hpp"
#include "tokens.hpp"

namespace lockstep::cases {
namespace {
constexpr int64_t most_members = 1 << 20;
constexpr size_t line = 64;  // an array begins where the one before ends, on a line of its own

// The case's name with another length.
std::string shorter(const std::string& name, const tokens& in, uint64_t k) {
  const size_t at = name.find("/full/");
  if (at == std::string::npos) in.refuse("only groups of layout full can be varied");
  const size_t begin = at + 6, end = std::min(name.find('/', begin), name.size());
  const uint64_t length = std::stoull(name.substr(begin, end - begin)),
                 most = std::max<uint64_t>(length >> mix(k) % 8, 2);
  return name.substr(0, begin) + std::to_string(most - mix(k + 1000003) % (most / 2)) + name.substr(end);
}
void append(view& all, std::vector<size_t>& begins, const view& one) {
  all.element_bytes = one.element_bytes;
  begins.push_back(static_cast<size_t>(all.counts[0]) * all.element_bytes);
  const size_t bytes = (one.span_bytes() + line - 1) / line * line;
  all.counts[0] += static_cast<int64_t>(bytes / all.element_bytes);
}
}  // namespace

test_case parse_timed(const std::string& name, bool bare) {
  if (name.rfind("group/", 0) != 0) return parse(name, bare);
  tokens in(name);
  (void)in.next();
  const std::string count = in.next();
  const bool varied = in.flag("varied");
  const size_t begin = name.find('/', 6) + 1 + (varied ? 7 : 0);
  int64_t members = 0;
  for (const char digit : count)
    members = digit >= '0' && digit <= '9' ? members * 10 + (digit - '0') : most_members + 1;
  if (count.size() > 7 || members < 1 || members > most_members || begin >= name.size())
    in.refuse("say how many calls, 1 to " + std::to_string(most_members) + ", of which case");
  const std::string each = name.substr(begin);
  const test_case first = parse(each, bare);
  if (first.in_place || !first.offsets.empty() || !first.weight.empty() || !first.bias.empty() ||
      !first.residual.empty() || !first.other.empty() || first.src_shift != 0 || first.dst_shift != 0)
    in.refuse("a group's calls have no arrays but src and dst, at no offset");
  test_case all;
  all.name = name, all.op = first.op, all.dtype = first.dtype, all.what = first.what, all.seed = first.seed;
  all.cell = "group " + first.cell;
  all.src.axis(0, 1), all.dst.axis(0, 1);
  for (int64_t k = 0; k < members; ++k) {
    all.members.push_back(varied ? parse(shorter(each, in, static_cast<uint64_t>(k)), bare) : first);
    append(all.src, all.src_at, all.members.back().src);
    append(all.dst, all.dst_at, all.members.back().dst);
  }
  return all;
}

lockstep_status plan_group(lockstep_context* context, const test_case& group, const void* src, void* dst,
                           const lockstep_options* options, lockstep_plan** out) {
  std::vector<unsigned char> descriptions;
  std::vector<const void*> srcs;
  std::vector<void*> dsts;
  for (size_t k = 0; k < group.members.size(); ++k) {
    const std::vector<unsigned char> one = description_of(group.members[k], nullptr);
    descriptions.insert(descriptions.end(), one.begin(), one.end());
    srcs.push_back(static_cast<const unsigned char*>(src) + group.src_at[k]);
    dsts.push_back(static_cast<unsigned char*>(dst) + group.dst_at[k]);
  }
  return lockstep_plan_group(context, group.op, descriptions.data(), descriptions.size() / group.members.size(),
                             static_cast<int64_t>(srcs.size()), srcs.data(), dsts.data(), options, out);
}

}  // namespace lockstep::cases
