#!/usr/bin/env bash
# consumers.sh SOURCE BUILD - installs the library into a folder of its own and
# builds the README's two examples against it: by pkg-config with cc and c++, by
# CMake's find_package, and as a Meson subproject. Each must run; without cmake the
# test is skipped (77) once the others have passed.
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() { echo "+ $*"; "$@"; }
check() { # folder with example_c and example_cpp
  [ "$("$1/example_c")" = "1 4  2 5  3 6" ]
  "$1/example_cpp"
}

meson install -C "$build" --no-rebuild --quiet --destdir "$work/stage"
pc=$(find "$work/stage" -name lockstep.pc)
# Moved: what finds the rest from where it lies goes on working.
mv "$work/stage" "$work/moved"
pc=$work/moved${pc#"$work/stage"}
libdir=$(dirname "$(dirname "$pc")")
prefix=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --variable=prefix lockstep)

echo "== pkg-config"
mkdir "$work/pc"
flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs lockstep)
by_prefix=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --define-prefix --cflags --libs lockstep)
[ "$by_prefix" = "$flags" ] || { echo "pkg-config --define-prefix gives other folders: $by_prefix"; exit 1; }
run cc -std=c11 -Wall -Wextra -Werror -pedantic "$source/tests/api/example.c" -o "$work/pc/example_c" $flags
run c++ -std=c++20 -Wall -Wextra -Werror "$source/tests/api/example.cpp" -o "$work/pc/example_cpp" $flags
LD_LIBRARY_PATH=$libdir check "$work/pc"

if command -v cmake >/dev/null; then
  echo "== CMake"
  run cmake -G Ninja -S "$source/tests/api/consumer" -B "$work/cmake" -DEXAMPLES="$source/tests/api" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
  run cmake --build "$work/cmake" >/dev/null
  check "$work/cmake"
  for version in 0.0.5 0.2 1.0; do  # another minor version may break
    echo "cmake_minimum_required(VERSION 3.16)
project(version NONE)
find_package(lockstep $version REQUIRED)" > "$work/CMakeLists.txt"
    if cmake -S "$work" -B "$work/version-$version" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null 2>&1; then
      echo "find_package(lockstep $version) takes this version"; exit 1
    fi
  done
fi

echo "== Meson subproject"
mkdir -p "$work/sub/subprojects"
cp "$source"/tests/api/consumer/meson.build "$source"/tests/api/example.c "$source"/tests/api/example.cpp "$work/sub"
mkdir "$work/sub/subprojects/lockstep"
cp -r "$source"/LICENSE "$source"/meson.build "$source"/meson_options.txt "$source"/lib "$source"/backends "$source"/tools "$source"/tests "$work/sub/subprojects/lockstep"
run meson setup "$work/sub/build" "$work/sub" >/dev/null
run ninja -C "$work/sub/build" >/dev/null
check "$work/sub/build"
built=$(ninja -C "$work/sub/build" -t targets all | grep -cE '^subprojects/lockstep/(tools/lockstep|tests/.*_test|.*lockstep-cuda.so):' || true)
[ "$built" = 0 ] || { echo "a subproject builds $built programs, tests or modules that nobody asked for"; exit 1; }

if ! command -v cmake >/dev/null; then
  echo "SKIP: find_package was not tried, for there is no cmake here"
  exit 77
fi
