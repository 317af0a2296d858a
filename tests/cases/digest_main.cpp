// digest_main.cpp - [BACKEND [LIST]]: prints the digest of a backend, for machines (and emulators)
// where the lockstep program is not built.
#include <cstdio>
#include <exception>

#include "runner.hpp"

int main(int argc, char** argv) {
  try {
    using lockstep::cases::cases_of;
    const std::string list = argc > 2 ? argv[2] : "order1";
    const cases_of of = list == "more_types"        ? cases_of::more_types
                        : list == "normalize"       ? cases_of::normalize
                        : list == "softmax"         ? cases_of::softmax
                        : list == "gradients"       ? cases_of::gradients
                        : list == "digest"          ? cases_of::digest
                        : list == "scan"            ? cases_of::scan
                        : list == "sums"            ? cases_of::sums
                        : list == "reduce_axes"     ? cases_of::reduce_axes
                        : list == "convert"         ? cases_of::convert
                        : list == "map"             ? cases_of::map
                        : list == "times"           ? cases_of::times
                        : list == "more_reductions" ? cases_of::more_reductions
                                                    : cases_of::order1;
    std::puts(lockstep::cases::digest(argc > 1 ? argv[1] : "cpu", "", 0, of).c_str());
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
