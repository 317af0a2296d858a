// transpose.cpp - cases transpose/b<bytes>/<rows>x<cols>[/ld<src>,<dst>]
// [/batch<n>,<src gap>,<dst gap>][/beside][/inplace]; beside: a matrix of src begins where a row of the last ends.
#include "cases.hpp"
#include "tokens.hpp"

namespace lockstep::cases {

void parse_transpose(tokens& in, test_case& c) {
  c.op = LOCKSTEP_TRANSPOSE;
  const auto bytes = in.element_bytes();
  const auto ld = in.numbers("ld"), batch = in.numbers("batch");
  const bool beside = in.flag("beside");
  const auto size = in.sizes();
  if (size.size() != 2) in.refuse("give rows x cols");
  lockstep_transpose_desc& d = c.transpose = lockstep_transpose_packed(bytes, size[0], size[1]);
  if (ld.size() == 2) {
    d.src_ld = ld[0];
    d.dst_ld = ld[1];
  }
  if (!batch.empty()) {
    d.batch = batch[0];
    d.src_batch_stride = in.plus(in.plus(in.times(d.rows - 1, d.src_ld), d.cols), batch.size() > 1 ? batch[1] : 0);
    if (beside) d.src_batch_stride = d.cols;
    d.dst_batch_stride = in.plus(in.plus(in.times(d.cols - 1, d.dst_ld), d.rows), batch.size() > 2 ? batch[2] : 0);
  }
  c.src.element_bytes = c.dst.element_bytes = bytes;
  c.src.axis(d.batch, d.src_batch_stride);
  c.src.axis(d.rows, d.src_ld);
  c.src.axis(d.cols, 1);
  c.dst.axis(d.batch, d.dst_batch_stride);
  c.dst.axis(d.cols, d.dst_ld);
  c.dst.axis(d.rows, 1);
  const char* layout = c.in_place     ? (d.rows == d.cols ? "in_place_square" : "in_place_packed")
                       : d.batch != 1 ? "batch"
                       : ld.empty()   ? "packed"
                                      : "ld";
  c.cell = "transpose b" + std::to_string(bytes) + " " + layout;
}

std::vector<std::string> list_transpose(level depth) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& rest) { names.push_back("transpose/" + rest); };
  const char* odd[] = {"1x1",    "1x7",    "7x1",    "3x5",     "17x33",  "31x33",  "32x32",
                       "33x31",  "64x64",  "65x63",  "100x127", "128x16", "16x128", "129x257",
                       "8x1000", "1000x8", "5x2049", "2049x5",  "5x4103"};  // tasks end at 4,096 columns
  for (const char* bytes : {"b1/", "b2/", "b4/", "b8/", "b16/"}) {
    for (const char* size : odd) add(std::string(bytes) + size);
    for (const char* rest : {"17x33/ld40,20",
                             "64x64/ld65,67",
                             "33x130/ld131,34/off1,3",
                             "70x70/off3,1",
                             "100x100/ld128,128",
                             "17x33/batch3,5,7",
                             "8x8/batch20",
                             "32x32/batch4",
                             "16x48/ld50,19/batch3,1,0/off1,1",
                             "3x1/batch65",
                             "3x48",
                             "64x2/batch3",
                             "4x32/ld48,4/batch2",
                             "64x64/inplace",
                             "33x33/ld40,40/inplace/off1",
                             "67x67/batch3/inplace",
                             "17x33/inplace",
                             "96x10/inplace/off1",
                             "5x7/batch4,2,2/inplace",
                             "1x50/inplace",
                             "128x64/inplace",
                             "0x5",
                             "5x0",
                             "4x4/batch0",
                             "129x65/special"})
      add(std::string(bytes) + rest);
    // Tiny matrices and sides of a few bytes, enough of them for a program (narrow.cpp).
    for (const char* rest : {"2x2/batch1201",
                             "3x3/batch1201/off1,3",
                             "4x4/batch600",
                             "5x7/batch300/off3,1",
                             "8x8/batch100",
                             "7x6/ld9,8/batch40,3,1/off1",
                             "6x7/batch50/off1,3",
                             "13x16/batch40,1,0",
                             "9x2/batch70/ld2,11",
                             "3x5/batch700,1,0",
                             "2x5001/off1,3",
                             "3x5001",
                             "5x2111",
                             "7x1009/ld1013,7/batch3,2,1",
                             "15x2001",
                             "5001x2",
                             "5001x3/off3,1",
                             "2111x5",
                             "1009x7/ld7,1011/batch3,2,1",
                             "2001x15"})
      add(std::string(bytes) + rest);
  }
  // Rows of src that go on in the next matrix, and rows of dst that are whole lines.
  for (const char* rest : {"b1/100x64/ld256,128/batch4,0,28/beside", "b2/40x64/ld256,64/batch4,0,24/beside",
                           "b4/40x64/ld256,48/batch4,0,8/beside", "b8/20x32/ld128,24/batch4,0,4/beside",
                           "b16/10x16/ld64,12/batch4,0,2/beside"})
    add(rest);
  // Large enough (256 KiB moved) to be shared out by columns, still in the caches.
  for (const char* rest :
       {"b1/391x701/ld704,394/off1,3", "b1/512x512", "b2/300x299/off1", "b2/320x352", "b4/257x262/ld270,260",
        "b4/512x512", "b4/250x190/batch2,1,3", "b4/16x3000", "b4/3000x16/off3,1", "b8/300x130", "b16/100x113",
        // src begins within a line, its rows alike.
        "b1/333x1024/off7,1", "b2/201x512/off5", "b4/300x320/off3,1", "b8/250x128/off1,2", "b16/130x64/off3"})
    add(rest);
  // Large enough (16 MiB moved) for stores around the cache: rows of dst that start within a line, and dense short
  // ones.
  for (const char* rest :
       {"b4/1500x1500/ld1500,1504/off0,3", "b1/3000x2900/ld2900,3008/off1,5", "b4/8x300000", "b1/3x2900000/off1,5",
        "b1/2900032x3/off1,8", "b2/3x3/batch500000/off1,3", "b4/5x430000",
        // Crowded rows of src (power-of-two pitch): blocks piped through strips, ragged on every
        // side.
        "b4/1500x1523/ld2048,1504/off0,3", "b4/1200x2051/ld2064,16384/off5", "b8/2100x515/ld1024,2104/off1,1",
        "b1/2911x2900/ld4096,2944/off1,5", "b2/2100x2051/ld4096,2112", "b16/1100x501/ld512,1104/off0,2",
        "b4/300x4700/ld6144,304/batch2,9,0", "b4/20x110000/ld110592,32",
        // Rows of src of 32 bytes without gaps, tiles that the end cuts in a row of dst.
        "b2/1203x16/ld16,1208", "b4/1203x8/ld8,1204", "b8/1203x4/ld4,1204", "b4/1204x8/off4,4", "b2/400000x16",
        "b8/400001x4/ld4,400002",
        // Several boxes a block of threads, rows that begin anywhere, on a GPU.
        "b1/15x600000/off3,1", "b1/33x33/batch9001,2,0/off1,5", "b1/2049x4097/off3,7",
        "b2/1501x2051/ld2053,1505/off1,3", "b2/31x130001/off1,5", "b4/33x70001/off1,2"})
    add(rest);
  if (depth == level::full)
    for (const char* bytes : {"b1/", "b2/", "b4/", "b8/", "b16/"})
      for (const char* rest :
           {"1000x1003", "513x1025/ld1031,520", "1024x1024", "2000x8", "8x2000", "20000x3", "3x20000",
            "255x257/batch5,1,3/off1,3", "512x512/inplace", "601x601/ld640,640/inplace", "301x500/inplace", "1x100000",
            "100000x1", "700x900/off5,7", "70000x2", "2x70000", "1x3/batch70000"})
        add(std::string(bytes) + rest);
  return names;
}

}  // namespace lockstep::cases
