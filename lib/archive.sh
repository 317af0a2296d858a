#!/bin/sh
# archive.sh COMPILER... -- OBJCOPY AR OUTPUT INPUT... - one archive of several, of which only lockstep_* is seen from
# outside, as of the shared library: no name of fmt's, of a template's or of the library's own clashes with a program's.
set -eu
compiler=
while [ "$1" != -- ]; do compiler="$compiler $1"; shift; done
objcopy=$2 ar=$3 output=$4
shift 4
# What the linker may drop in favour of a program's copy must not be local: no groups are left.
$compiler -r -nostdlib -Wl,--force-group-allocation -Wl,--whole-archive "$@" -Wl,--no-whole-archive -o "$output.o"
"$objcopy" --localize-hidden --wildcard --keep-global-symbol='lockstep_*' "$output.o"
rm -f "$output"
"$ar" crs "$output" "$output.o"
rm -f "$output.o"
