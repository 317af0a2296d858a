// digest_main.cpp - the digest of a backend and nothing else, for machines (and
// emulated ones) where the lockstep program is not built.
#include <cstdio>
#include <exception>

#include "runner.hpp"

int main(int argc, char** argv) {
  try {
    std::puts(lockstep::cases::digest(argc > 1 ? argv[1] : "cpu").c_str());
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
