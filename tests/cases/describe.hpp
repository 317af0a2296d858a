// describe.hpp - a case's description as bytes, for calls that take an array of them.
#pragma once

#include "cases.hpp"

namespace lockstep::cases {
std::vector<unsigned char> description_of(const test_case& c, const arrays_beside& beside);
}
