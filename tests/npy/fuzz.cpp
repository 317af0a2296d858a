// fuzz.cpp - libFuzzer on the .npy header: any bytes are a header or an npy::error,
// and a header that was read, written and read again is the same.
#include <cstdlib>

#include "npy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  try {
    const npy::header h = npy::parse({reinterpret_cast<const char*>(data), size});
    if (h.data_offset > size || h.elements() < 0 || h.shape.size() > 64) std::abort();
    const npy::header back = npy::parse(npy::format(h));
    if (back.shape != h.shape || back.descr != h.descr || back.fortran != h.fortran) std::abort();
  } catch (const npy::error&) {
  }
  return 0;
}
