#!/usr/bin/env bash
# consumers.sh SOURCE BUILD - installs the library, moves it, and builds the README's two examples against it: by
# pkg-config with cc and c++, by CMake's find_package, add_subdirectory, FetchContent and the file to include, and as a Meson subproject, which then is installed, linked with
# statically, and uninstalled. Each must run; without cmake the test is skipped (77) once the others have passed.
set -euo pipefail
source=$1 build=$2
unset LD_LIBRARY_PATH  # Meson's, which names the build's own library
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() { echo "+ $*"; "$@"; }
fail() { echo "$*"; exit 1; }
check() { # folder with example_c and example_cpp
  [ "$("$1/example_c")" = "1 4  2 5  3 6" ]
  "$1/example_cpp"
}
files() { (cd "$1" && find . ! -type d | sort); }
by_pkg_config() { # folder flags: builds the examples, and what tells where it looks for modules
  mkdir -p "$1"
  run cc -std=c11 -Wall -Wextra -Werror -pedantic "$source/tests/api/example.c" -o "$1/example_c" $2
  run c++ -std=c++20 -Wall -Wextra -Werror "$source/tests/api/example.cpp" -o "$1/example_cpp" $2
  run cc -std=c11 "$source/tests/api/modules_child.c" -o "$1/child" $2
}
finds_modules_in() { # folder program: a module there is found and loaded
  mkdir -p "$1"
  cp "$build/tests/api/lockstep-noinit.so" "$1"
  "$2" | grep -q "^backend noinit $1/lockstep-noinit.so: .*flux capacitor" || { "$2"; fail "$2 does not look for modules in $1"; }
}
by_cmake() { # folder settings: of find_package or of the source as a part of the project
  command -v cmake >/dev/null || return 0
  run cmake -G Ninja -S "$source/tests/api/consumer" -B "$1" -DEXAMPLES="$source/tests/api" "${@:2}" >/dev/null
  run cmake --build "$1" >/dev/null
  check "$1"
}

meson install -C "$build" --no-rebuild --quiet --destdir "$work/stage"
pc=$(find "$work/stage" -name lockstep.pc)

echo "== Tags"
for tag in devel runtime man python-runtime; do
  mkdir "$work/$tag"
  meson install -C "$build" --no-rebuild --quiet --tags $tag --destdir "$work/$tag"
  files "$work/$tag" > "$work/$tag.txt"
done
diff <(files "$work/stage") <(sort "$work"/{devel,runtime,man,python-runtime}.txt) || fail "files (<) that have no tag, or two"
! grep -vE '/(include/lockstep/[a-z_.]+|doc/lockstep/order(\.zh)?\.md|cmake/lockstep/[a-zA-Z]+\.cmake|pkgconfig/lockstep(-ranks)?\.pc|liblockstep(_ranks)?\.(so|a))$' "$work/devel.txt" ||
  fail "files that nobody needs to build against the library have the tag devel"
! grep -E '(/include/.*|\.cmake|\.pc|/liblockstep[a-z_]*\.(so|a))$' "$work/runtime.txt" ||
  fail "what only those need who build against the library lacks the tag devel"

# Moved: what finds the rest from where it lies goes on working.
mv "$work/stage" "$work/moved"
pc=$work/moved${pc#"$work/stage"}
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=$(dirname "$pc")
prefix=$(pkg-config --variable=prefix lockstep)

if [ -x "$prefix/bin/lockstep" ]; then
  echo "== The program finds the library where it was moved to"
  run "$prefix/bin/lockstep" info > "$work/info.txt"
  ldd "$prefix/bin/lockstep" | grep -F "liblockstep.so" | grep -qF "$work/moved" || fail "$prefix/bin/lockstep loads another liblockstep.so"
fi

echo "== pkg-config"
flags=$(pkg-config --cflags --libs lockstep)
by_prefix=$(pkg-config --define-prefix --cflags --libs lockstep)
[ "$by_prefix" = "$flags" ] || fail "pkg-config --define-prefix gives other folders: $by_prefix"
by_pkg_config "$work/pc" "$flags"
export LD_LIBRARY_PATH=$libdir
check "$work/pc"
finds_modules_in "$libdir/lockstep" "$work/pc/child"
if pkg-config --exists lockstep-ranks; then
  run c++ -std=c++20 -Wall -Wextra -Werror "$source/tools/examples/ranks_threads.cpp" -o "$work/pc/ranks" \
    $(pkg-config --cflags --libs lockstep-ranks) -pthread
  "$work/pc/ranks" > "$work/ranks.txt"
  if command -v cmake >/dev/null; then
    mkdir "$work/ranks"
    echo "cmake_minimum_required(VERSION 3.16)
project(ranks CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(lockstep REQUIRED)
find_package(Threads REQUIRED)
add_executable(ranks \"$source/tools/examples/ranks_threads.cpp\")
target_link_libraries(ranks lockstep::ranks Threads::Threads)" > "$work/ranks/CMakeLists.txt"
    run cmake -G Ninja -S "$work/ranks" -B "$work/ranks/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
    run cmake --build "$work/ranks/build" >/dev/null
    (unset LD_LIBRARY_PATH; "$work/ranks/build/ranks") | diff "$work/ranks.txt" -
  fi
fi
unset LD_LIBRARY_PATH PKG_CONFIG_PATH  # or the subproject would not be asked

if command -v cmake >/dev/null; then
  echo "== CMake"
  by_cmake "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix"
  for way in subdirectory fetched included; do # what Meson has built already is not built again
    by_cmake "$work/cmake-$way" -DSOURCE=$way -DLOCKSTEP="$source" -DLOCKSTEP_MESON_BUILD="$build"
  done
  # Another minor version may break; of one's own an earlier patch will do.
  IFS=. read -r major minor patch <<< "$(pkg-config --modversion "$pc")"
  for asked in ":no" "$major.$minor:no" "$major.$minor.$patch:no" "$major.$minor.$patch EXACT:no" "$major.$minor.$((patch + 1)):yes" \
    "$major.$((minor - 1)).5:yes" "$major.$((minor + 1)):yes" "$((major + 1)).0:yes"; do
    echo "cmake_minimum_required(VERSION 3.16)
project(version C)
find_package(lockstep ${asked%:*} REQUIRED)" > "$work/CMakeLists.txt"
    refused=no
    cmake -S "$work" -B "$work/version" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null 2>&1 || refused=yes
    [ $refused = "${asked#*:}" ] || fail "find_package(lockstep ${asked%:*}) of $major.$minor.$patch: refused is $refused"
  done
fi

echo "== Meson subproject"
sub=$work/sub
mkdir -p "$sub/subprojects/lockstep"
cp "$source"/tests/api/consumer/meson.build "$source"/tests/api/example.c "$source"/tests/api/example.cpp "$sub"
cp -r "$source"/LICENSE "$source"/meson.build "$source"/meson_options.txt "$source"/lib "$source"/backends "$source"/tools "$source"/tests "$sub/subprojects/lockstep"
# Where CMake looks on every system; what Meson chooses by itself hangs on dpkg-dev.
run meson setup "$sub/build" "$sub" --prefix="$work/both" --libdir=lib -Ddefault_library=both -Doptimization=0 >/dev/null
run ninja -C "$sub/build" >/dev/null
check "$sub/build"
built=$(ninja -C "$sub/build" -t targets all | grep -cE '^subprojects/lockstep/(tools/lockstep|tests/.*_test|.*lockstep-cuda.so):' || true)
[ "$built" = 0 ] || fail "a subproject builds $built programs, tests or modules that nobody asked for"

static() { # prefix: its static library is complete, keeps its names to itself and looks for modules where they are installed
  run meson install -C "$sub/build" --no-rebuild --quiet
  export PKG_CONFIG_PATH=$(dirname "$(find "$1" -name lockstep.pc)")
  libdir=$(dirname "$PKG_CONFIG_PATH")
  diff <(nm --defined-only --extern-only "$libdir/liblockstep.a" | awk 'NF == 3 { print $3 }' | sort) <(sort "$source/tests/hygiene/exported.txt") ||
    fail "what liblockstep.a defines (<) is not what it exports (>)"
}
alone() { # folder: the examples there need no liblockstep.so
  for program in "$1"/{example_c,example_cpp,child}; do
    [ ! -e "$program" ] || ! readelf -d "$program" | grep NEEDED | grep lockstep || fail "$program needs the shared library"
  done
}
echo "== Shared and static"
static "$work/both"
flags=$(pkg-config --static --cflags --libs lockstep)
by_pkg_config "$work/pc-both" "${flags/-llockstep/-l:liblockstep.a}"
check "$work/pc-both"
alone "$work/pc-both"
finds_modules_in "$libdir/lockstep" "$work/pc-both/child"

echo "== Uninstalled"
rm "$libdir/lockstep/lockstep-noinit.so"
rmdir "$libdir/lockstep"
run ninja -C "$sub/build" uninstall >/dev/null
[ ! -e "$work/both" ] || { files "$work/both"; find "$work/both" -type d; fail "ninja uninstall leaves files or folders behind"; }

echo "== Static"
run meson configure "$sub/build" --prefix="$work/static" -Dlockstep:default_library=static
run ninja -C "$sub/build" >/dev/null
check "$sub/build"
alone "$sub/build"
static "$work/static"
[ -z "$(find "$work/static" -name '*.so*')" ] || fail "-Ddefault_library=static installs a shared library"
by_pkg_config "$work/pc-static" "$(pkg-config --cflags --libs lockstep)"
check "$work/pc-static"
finds_modules_in "$libdir/lockstep" "$work/pc-static/child"
by_cmake "$work/cmake-static" -DCMAKE_PREFIX_PATH="$work/static"
alone "$work/cmake-static"

if ! command -v cmake >/dev/null; then
  echo "SKIP: find_package was not tried, for there is no cmake here"
  exit 77
fi
