#!/usr/bin/env bash
# symbols.sh LIBRARY EXPORTED ISA_ARCHIVE... - the library exports exactly the
# names of EXPORTED, and no ISA archive defines a weak symbol (an -mavx512f copy
# of a std template could be linked in for every processor).
set -euo pipefail
library=$1 expected=$2
shift 2
actual=$(nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort)
if ! diff <(sort "$expected") <(echo "$actual"); then
  echo "exported symbols differ from $expected (< expected, > exported)" >&2
  exit 1
fi
for archive in "$@"; do
  weak=$(nm --defined-only "$archive" 2>/dev/null | awk '$2 ~ /^[WVu]$/ {print $3}' | sort -u)
  if [ -n "$weak" ]; then
    echo "weak symbols in $archive:" $weak >&2
    exit 1
  fi
done
echo "$(wc -l < "$expected") exported symbols, no weak symbol in $# ISA archives"
