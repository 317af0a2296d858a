// samples.hpp - small files of every format that is imported.
#pragma once

#include <string>
#include <vector>

struct sample {
  std::string name, bytes;
  bool counts_bytes;  // the format says how long it is, so that no shorter file is right
};
std::vector<sample> samples();
// The CRC of every chunk of a PNG made right, so that changes reach what is behind it.
void mend_crc(std::string& png);
