#!/usr/bin/env bash
# examples.sh SOURCE BUILD - installs the library into a folder of its own and builds and runs tools/examples against
# it in the three ways that its README names. Without make or cmake those ways are skipped (77) once the others have passed.
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

meson install -C "$build" --no-rebuild --quiet --destdir "$work/stage"
pc=$(find "$work/stage" -name lockstep.pc)
export PKG_CONFIG_PATH=$(dirname "$pc")
prefix=$(pkg-config --variable=prefix lockstep)
unset LOCKSTEP_BACKEND_PATH

if command -v make > /dev/null; then
  echo "== make and pkg-config"
  cp -r "$source/tools/examples" "$work/make"
  make -s -C "$work/make" check
fi

echo "== Meson"
cp -r "$source/tools/examples" "$work/meson"
meson setup "$work/meson/build" "$work/meson" > /dev/null
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") meson test -C "$work/meson/build" --print-errorlogs | tail -n 12

for program in make cmake; do command -v $program > /dev/null || { echo "SKIP: no $program"; exit 77; }; done
echo "== CMake"
cmake -G Ninja -S "$source/tools/examples" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" > /dev/null
cmake --build "$work/cmake" > /dev/null
ctest --test-dir "$work/cmake" --output-on-failure | tail -n 12
# By the preset, from a copy of the folder that is in no clone; what Meson has built already is not built again.
cp -r "$source/tools/examples" "$work/preset"
cd "$work/preset"
! cmake --preset source -G Ninja > "$work/preset.txt" 2>&1 || { echo "lockstep.cmake took sources from nowhere"; exit 1; }
grep -q "give -DLOCKSTEP_ADDRESS=ADDRESS" <(tr '\n' ' ' < "$work/preset.txt" | tr -s ' ') || { cat "$work/preset.txt"; exit 1; }
cmake --preset source -G Ninja -DFETCHCONTENT_SOURCE_DIR_LOCKSTEP="$source" -DLOCKSTEP_MESON_BUILD="$build" > /dev/null
cmake --build --preset source --target transpose > /dev/null
ctest --preset source -R transpose | tail -n 3
