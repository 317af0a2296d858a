#!/bin/sh
# archive.sh COMPILER... -- OBJCOPY AR OUTPUT INPUT... - makes one archive of several, in which only lockstep_* is
# visible, as in the shared library. So internal names, of fmt or templates too, cannot clash with a program's.
set -eu
compiler=
while [ "$1" != -- ]; do compiler="$compiler $1"; shift; done
objcopy=$2 ar=$3 output=$4
shift 4
# The linker may replace a section group by the program's copy, which must not happen to local symbols. So remove groups.
$compiler -r -nostdlib -Wl,--force-group-allocation -Wl,--whole-archive "$@" -Wl,--no-whole-archive -o "$output.o"
"$objcopy" --localize-hidden --wildcard --keep-global-symbol='lockstep_*' "$output.o"
rm -f "$output"
"$ar" crs "$output" "$output.o"
rm -f "$output.o"
