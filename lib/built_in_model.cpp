// built_in_model.cpp - the cost model where nobody has calibrated: what lockstep
// calibrate wrote on an H200 beside 16 cores of a Xeon (a virtual machine, 2026-11-21).
#include "calibration.hpp"
#include "status.hpp"

namespace lockstep::lib {
namespace {

const device_names measured_on = {
    {"cpu", "Intel(R) Xeon(R) Processor; avx512, 16 threads, L1d 48 KiB, L2 2048 KiB, L3 307200 KiB"},
    {"cuda",
     "NVIDIA H200; sm_90, driver 580.159.04 for CUDA 13.0, runtime 13.0, 132 multiprocessors, L2 60 MiB, shared memory 227 KiB a block"}};

constexpr const char* text = R"(lockstep-calibration 1
# lockstep 0.1.0, 2026-11-21; microseconds a call by bytes moved
device cpu Intel(R) Xeon(R) Processor; avx512, 16 threads, L1d 48 KiB, L2 2048 KiB, L3 307200 KiB
device cuda NVIDIA H200; sm_90, driver 580.159.04 for CUDA 13.0, runtime 13.0, 132 multiprocessors, L2 60 MiB, shared memory 227 KiB a block
bytes 4096 16384 65536 262144 1048576 4194304 16777216 67108864 268435456 1073741824
time cpu 1 shuffle 1.132 1.188 1.977 4.372 14.16 153.1 611.9 2037 1.132e+04 5.072e+04
time cpu 1 rows 1.595 2.273 4.411 9.415 25.82 163.4 754.1 2219 1.242e+04 5.819e+04
time cpu 1 transpose 2.496 2.852 4.711 11.67 37.52 374.9 1319 2192 1.199e+04 2.665e+05
time cpu 1 thin 1.235 1.412 2.286 5.888 21.08 241.6 663.2 2681 1.421e+04 6.341e+04
time cpu 1 narrow 1.366 1.922 4.086 12.53 46.15 191.1 754.7 3314 2.269e+04 9.515e+04
time cpu 1 permute 1.468 1.681 3.26 10.19 34.79 224.6 1512 2.027e+04 7.568e+04 3.027e+05
time cpu 1 swap 1.304 1.604 2.978 8.435 29.05 118.2 684.5 2902 2.781e+04 9.463e+04
time cpu 1 in_place 12.11 45.62 179.8 721.3 2902 1.144e+04 4.684e+04 1.864e+05 7.455e+05 2.982e+06
time cpu 1 square_sum 1.283 1.652 2.607 6.32 21.03 153.2 613.6 2439 1.818e+04 7.487e+04
time cpu 1 reduce 1.28 1.579 2.667 6.299 21.01 156.8 618.9 2521 1.662e+04 7.285e+04
time cpu 1 arg_reduce 1.315 1.649 3.265 6.461 19.54 149.3 591.6 2373 1.518e+04 6.675e+04
time cpu 1 short_rows 1.282 1.616 2.863 7.456 25.63 164.1 661 2596 1.738e+04 7.745e+04
time cpu 1 segments 2.007 3.566 8.854 29.95 144.4 653.8 2653 1.076e+04 5.058e+04 2.023e+05
time cpu 1 columns 2.532 2.81 4.679 8.786 26.19 191.7 1171 5278 2.304e+04 9.124e+04
time cpu 1 line_stencil 1.673 2.14 3.418 8.632 28.48 161.5 641.1 2123 1.682e+04 7.522e+04
time cpu 1 star_stencil 4.334 7.651 20.67 77.15 157.6 596.7 2237 1.234e+04 5.651e+04 2.261e+05
time cpu 4 shuffle 1.143 1.188 1.977 4.522 9.659 17.55 170.1 583.7 2337 1.714e+04
time cpu 4 rows 4.515 4.899 5.851 8.557 16.15 39.86 234.1 735 3368 1.623e+04
time cpu 4 transpose 1.553 8.397 13.95 20.72 37.04 80.9 403.5 773.9 3955 8.949e+04
time cpu 4 thin 1.982 5.063 4.983 6.114 10.19 97.43 219.3 881.2 3780 2.044e+04
time cpu 4 narrow 4.547 4.871 5.909 9.788 25.93 87.01 306.2 1335 7845 3.275e+04
time cpu 4 permute 5.344 5.596 6.6 12.76 20.48 29.9 395.4 1761 1.798e+04 4.818e+04
time cpu 4 swap 1.3 1.596 9.779 14.95 38.14 147.3 311.6 799.2 7064 3.771e+04
time cpu 4 in_place 14.8 22.72 58.11 199.7 772.7 3024 1.223e+04 4.954e+04 2.556e+05 1.023e+06
time cpu 4 square_sum 1.289 1.655 2.606 6.315 11.83 28.82 196.6 770 5831 2.467e+04
time cpu 4 reduce 2.184 2.566 3.733 7.889 11.73 28.35 167.2 655.3 5083 2.175e+04
time cpu 4 arg_reduce 2.198 1.655 3.159 6.49 10.45 24.73 160.5 632.2 5004 2.148e+04
time cpu 4 short_rows 2.313 2.738 4.568 10.55 13.97 40.11 194.4 765.8 5700 2.566e+04
time cpu 4 segments 2.01 3.569 8.795 16.41 73.88 327 1352 5508 2.313e+04 9.263e+04
time cpu 4 columns 4.695 5.123 7.682 14.34 22.13 50.8 248.5 1139 5688 2.737e+04
time cpu 4 line_stencil 2.752 2.105 3.413 8.365 12.5 36.2 170.3 578.6 4338 2.177e+04
time cpu 4 star_stencil 7.711 13.15 35.51 102.7 139.9 291.4 829.6 3302 1.287e+04 6.212e+04
time cpu 16 shuffle 1.164 1.19 1.98 4.516 9.368 11.67 21.18 221.3 851.9 6949
time cpu 16 rows 6.964 7.446 8.552 8.843 12.96 28.91 49.83 236.3 1101 6691
time cpu 16 transpose 1.553 7.63 12.71 25.97 42.62 55.52 91.25 238.1 1118 2.689e+04
time cpu 16 thin 2.006 4.997 5.397 7.606 8.824 21.83 77.42 258.9 950.6 7987
time cpu 16 narrow 4.386 6.183 6.566 7.366 11.65 28.29 94.56 400.8 1754 1.245e+04
time cpu 16 permute 5.733 7.193 8.099 10.09 16.73 14.45 74.59 521.2 3979 2.099e+04
time cpu 16 swap 1.232 1.535 8.985 16.97 26.82 72.64 126.3 279.3 1247 1.315e+04
time cpu 16 in_place 20.15 25.81 43.4 103 359.4 1395 5576 2.28e+04 9.563e+04 3.825e+05
time cpu 16 square_sum 1.264 1.612 2.552 6.303 9.759 17.45 46.61 354.2 1527 1.12e+04
time cpu 16 reduce 1.277 1.539 2.596 6.296 9.949 17.18 46.5 326.2 1379 9994
time cpu 16 arg_reduce 1.294 1.597 3.16 6.37 9.583 16.83 42.56 306.4 1321 6959
time cpu 16 short_rows 1.296 1.625 2.805 7.221 16.26 18.54 57.56 340.3 1480 7961
time cpu 16 segments 2.007 3.281 8.241 18.22 50.94 170.8 663.1 2693 1.061e+04 4.744e+04
time cpu 16 columns 2.526 2.814 4.695 9.03 16.18 60.45 203.6 479.1 1615 9219
time cpu 16 line_stencil 3.008 2.117 3.427 8.384 14.54 18.85 58.03 214.1 1578 8849
time cpu 16 star_stencil 7.228 7.703 20.25 62.9 83.19 337.2 573 1448 4597 2.621e+04
time cuda device shuffle 9.872 9.744 9.738 9.781 9.973 10.46 12.55 26.25 73.49 262.2
time cuda device rows 10.18 10.41 10.55 10.59 10.65 11.86 13.59 38.41 118.9 283.3
time cuda device transpose 13.84 14.2 11.96 12.31 12.64 12.4 14.17 27.07 84.05 313.6
time cuda device thin 13.89 10.22 10.22 10.24 10.43 11.27 14.01 27.52 86.42 291.3
time cuda device narrow 14.18 14.77 18.87 19.6 19.34 20.09 18.86 38.37 91.17 317.2
time cuda device permute 15.31 15.66 15.77 25.64 25.75 12.97 16.33 36.12 124.6 341.2
time cuda device swap 11.1 11.03 11.1 11.27 11.42 12.62 16.87 34.02 123.8 552.3
time cuda device in_place 15.29 14.52 14.64 14.54 14.88 15.13 18.5 42.49 141.2 533.4
time cuda device square_sum 10.49 10.87 12.4 12.5 12.57 13.23 14.85 28.44 73.82 247.5
time cuda device reduce 10.43 10.06 12.31 12.33 12.45 13.02 14.48 28.18 73.74 247.1
time cuda device arg_reduce 10.55 10.62 12.17 12.19 12.27 12.93 15.42 29.5 75.92 252.1
time cuda device short_rows 10.26 10.38 10.45 10.47 10.56 11.09 14.37 28.3 78.62 279.2
time cuda device segments 17.06 17.02 17.07 17.11 18.57 30.14 76.5 266.6 1016 4019
time cuda device columns 11.1 12.42 12.17 12.95 14.09 16.31 21.5 40.63 82.69 293.6
time cuda device line_stencil 11.18 11.23 13.46 13.52 13.45 13.82 14.58 26.33 74.22 264.8
time cuda device star_stencil 14.64 15.09 21.99 23.5 22.7 28.39 38.57 51.5 204.4 667.2
time cuda pinned shuffle 26.33 26.64 27.48 37.9 46.18 108.3 337.9 1071 3056 1.111e+04
time cuda pinned rows 26.95 27.8 28 38.89 47.04 109.3 338.8 1264 3514 1.295e+04
time cuda pinned transpose 31 32.01 30.19 41.4 49.75 106.1 336.9 1256 4946 1.972e+04
time cuda pinned thin 31.39 28.21 28.23 39.37 47.68 107.5 335.3 1256 4946 1.97e+04
time cuda pinned narrow 31.21 32.78 36.12 44.21 55.21 117.6 338.3 1266 4954 1.971e+04
time cuda pinned permute 32.91 33.79 32.99 51.5 62.37 110.4 339 1268 4721 1.562e+04
time cuda pinned swap 23.98 24.22 24.15 31.86 43.22 105.4 331.8 1261 4977 1.994e+04
time cuda pinned in_place 27.87 27.41 26.64 29.96 45.06 107.5 334.3 1266 4995 1.993e+04
time cuda pinned square_sum 32.35 33.86 35.1 42.36 56.2 115.1 349.6 1280 4982 1.996e+04
time cuda pinned reduce 36.14 35.18 37.48 46.11 55.36 114.6 355.5 1285 4929 1.972e+04
time cuda pinned arg_reduce 27.62 28.65 35.04 45.84 54.17 106.4 338.8 1258 4932 1.973e+04
time cuda pinned short_rows 26.91 27.73 32.27 37.36 47.08 109.1 338.6 1258 4932 1.964e+04
time cuda pinned segments 42.22 44.36 46.64 51.03 70.67 152.3 477.8 2095 7824 3.342e+04
time cuda pinned columns 27.94 29.08 32.71 38.87 49.15 110.5 346.7 1270 4943 1.977e+04
time cuda pinned line_stencil 29.02 29.54 32.24 42.49 53.18 107.3 338.5 1079 3249 1.134e+04
time cuda pinned star_stencil 32.89 32.73 39.61 45.42 59.13 124.7 356.4 1281 3975 1.444e+04
time cuda pageable shuffle 28.99 29.96 34.84 57.5 113 317.3 1348 2033 5749 1.914e+04
time cuda pageable rows 29.31 30.6 34.8 57.35 111.5 325.8 1209 2561 4703 1.919e+04
time cuda pageable transpose 33.61 34.36 36.66 60.18 115.3 318 1165 2614 5961 2.392e+04
time cuda pageable thin 33.78 31 35.43 57.8 117.7 322.8 1186 2432 7964 2.362e+04
time cuda pageable narrow 34.32 36.14 43.7 66.46 123.6 332.5 1164 2859 7027 2.274e+04
time cuda pageable permute 35.49 36.3 40.27 73.37 129.2 318.5 1373 2963 1.24e+04 4.087e+04
time cuda pageable swap 26.5 28.65 37.21 67.79 159.8 462.4 1490 2370 6367 2.771e+04
time cuda pageable in_place 30.79 31.5 40.31 62.75 163.7 452.1 1019 2330 6663 2.847e+04
time cuda pageable square_sum 29.6 30.79 38.58 57.13 105.7 413.9 784.1 2003 7212 2.903e+04
time cuda pageable reduce 29.42 30.28 37.96 55.97 103.3 325.1 768.8 1899 7261 2.97e+04
time cuda pageable arg_reduce 30.75 31.78 40.2 58.23 109.3 404.8 853 1910 7689 3.129e+04
time cuda pageable short_rows 29.94 30.65 36.47 55.06 105 305.9 823.2 2046 7698 2.961e+04
time cuda pageable segments 45.02 46.39 50.87 67.21 131.2 385.1 1416 3449 1.168e+04 4.504e+04
time cuda pageable columns 29.48 30.8 36.89 55.14 102.3 357 763.4 1934 7256 2.916e+04
time cuda pageable line_stencil 30.54 31.05 38.24 61.47 119.5 322.6 1213 2146 5480 2.165e+04
time cuda pageable star_stencil 36.71 37.33 47.6 66.35 131 357.3 1252 2433 6673 3.31e+04
end
)";

}  // namespace

cost::model built_in_model() {
  cost::model model;
  if (const std::string why = parse_calibration(text, measured_on, model); !why.empty()) fail(LOCKSTEP_INTERNAL, "the built-in cost model: {}", why);
  return model;
}

}  // namespace lockstep::lib
