#!/bin/sh
# digest.sh SOURCE BUILD - builds the library and its digest program for aarch64 and
# runs them under qemu-user: another architecture, the same digest line. Exits 77
# where the cross compiler or qemu is missing.
set -eu
source=$1 build=$2/aarch64
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" > /dev/null || { echo "SKIP: no $tool"; exit 77; }
done
[ -f "$build/build.ninja" ] || meson setup "$build" "$source" --cross-file "$source/tests/cross/aarch64.ini" \
  -Dcuda=disabled -Dtools=disabled -Dtests=disabled
ninja -C "$build" tests/cases/lockstep_digest
golden=$(cat "$source/tests/golden/order1.txt")
echo "golden:  $golden"
for threads in 1 2 5; do
  found=$(LOCKSTEP_NUM_THREADS=$threads qemu-aarch64 -L /usr/aarch64-linux-gnu "$build/tests/cases/lockstep_digest")
  echo "aarch64: $found ($threads threads)"
  [ "$found" = "$golden" ]
done
for list in more_types normalize softmax gradients digest scan sums reduce_axes convert more_reductions map; do
  found=$(qemu-aarch64 -L /usr/aarch64-linux-gnu "$build/tests/cases/lockstep_digest" cpu $list)
  echo "aarch64: $found ($list)"
  [ "$found" = "$(cat "$source/tests/golden/$list.txt")" ]
done
