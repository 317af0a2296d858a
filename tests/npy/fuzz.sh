#!/usr/bin/env bash
# fuzz.sh [seconds] - builds the fuzz target with clang, ASan and UBSan outside the
# tree and runs it; a crash leaves its input and a non-zero exit code.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -DFMT_HEADER_ONLY \
  -I"$root/tools" "$root/tests/npy/fuzz.cpp" "$root/tools/npy.cpp" -o "$folder/fuzz"
mkdir "$folder/corpus"
printf '\x93NUMPY\1\0\x3b\0{'"'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n" > "$folder/corpus/f4"
printf '\x93NUMPY\2\0\x37\0\0\0{"descr": "|V2", "fortran_order": True, "shape": (7L,)}\n' > "$folder/corpus/v2"
for word in descr fortran_order shape True False '<f4' '|u1' '>f8' '<c16' '\x93NUMPY'; do echo "\"$word\""; done > "$folder/words"
"$folder/fuzz" -dict="$folder/words" -max_total_time="${1:-60}" -max_len=512 -print_final_stats=1 "$folder/corpus"
