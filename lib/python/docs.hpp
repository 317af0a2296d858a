#pragma once
namespace lockstep::python::docs {
#define D(n) inline constexpr const char* n = #n "(x, *args, **kw)\n--\n\n";
D(transpose)
D(permute) D(sum) D(square_sum) D(norm) D(max) D(min) D(argmax) D(argmin) D(segment_sum) D(segment_square_sum)
    D(segment_norm) D(segment_max) D(segment_min) D(segment_argmax) D(segment_argmin) D(stencil) D(shuffle)
}  // namespace lockstep::python::docs
