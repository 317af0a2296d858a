// group_overlap.cpp - whether arrays of different calls of a group overlap, by one walk over all arrays in the order of
// their addresses.
#include <algorithm>

#include "group.hpp"

namespace lockstep::lib {
namespace {

struct array_of_member {
  uintptr_t begin, end;
  const group_member* member;
  const char* name;
  bool written;
};

// Of the arrays before this one in the walk, those that reach furthest: one, and one of another member.
struct furthest {
  const array_of_member *first = nullptr, *second = nullptr;

  void add(const array_of_member* a) {
    if (first == nullptr || a->end > first->end) {
      if (first != nullptr && first->member != a->member) second = first;
      first = a;
    } else if (a->member != first->member && (second == nullptr || a->end > second->end)) {
      second = a;
    }
  }
  const array_of_member* of_another(const array_of_member& a) const {
    return first != nullptr && first->member == a.member ? second : first;
  }
};

std::vector<array_of_member> arrays_of(const std::vector<group_member>& members) {
  std::vector<array_of_member> all;
  all.reserve(2 * members.size());
  for (const group_member& m : members) {
    const auto add = [&](const void* pointer, size_t bytes, const char* name, bool written, size_t lead = 0) {
      const auto begin = reinterpret_cast<uintptr_t>(pointer);
      if (bytes != 0) all.push_back({begin + lead, begin + bytes, &m, name, written});
    };
    const prepared_call& p = m.prepared;
    add(p.call.src, p.src_span, "src", false, p.src_lead);
    add(p.call.dst, p.dst_span, "dst", true, p.dst_lead);
    if (p.offsets_bytes != 0) add(offsets_of(p.call), p.offsets_bytes, "offsets", false);
    for (int i = 0; i < p.side_count; ++i)
      add(p.sides[i].pointer, p.sides[i].bytes, p.sides[i].name, p.sides[i].written, p.sides[i].lead);
  }
  return all;
}

}  // namespace

void require_members_apart(const std::vector<group_member>& members) {
  std::vector<array_of_member> all = arrays_of(members);
  std::sort(all.begin(), all.end(), [](const array_of_member& a, const array_of_member& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.member->index < b.member->index;
  });
  furthest any, written;
  for (const array_of_member& a : all) {
    const array_of_member* other = (a.written ? any : written).of_another(a);
    if (other != nullptr && other->end > a.begin) {
      const array_of_member &w = a.written ? a : *other, &o = a.written ? *other : a;
      fail(LOCKSTEP_INVALID_ARGUMENT,
           "descs[{}]: {} ({:#x}, {} bytes) and {} of descs[{}] ({:#x}, {} bytes) overlap; give each {} memory of its "
           "own",
           w.member->index, w.name, w.begin, w.end - w.begin, o.name, o.member->index, o.begin, o.end - o.begin,
           w.name);
    }
    any.add(&a);
    if (a.written) written.add(&a);
  }
}

}  // namespace lockstep::lib
