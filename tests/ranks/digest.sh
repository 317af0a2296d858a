#!/usr/bin/env bash
# digest.sh LOCKSTEP GOLDEN - the fixed cases over 1, 2, 3, 5 and 8 ranks give the digest of one device.
set -euo pipefail
lines=$("$1" ranks verify --digest)
echo "$lines"
[ "$(wc -l <<< "$lines")" = 5 ] || { echo "not five numbers of ranks"; exit 1; }
[ "$(sed 's/  (.*//' <<< "$lines" | sort -u)" = "$(cat "$2")" ] || { echo "not the golden digest: $(cat "$2")"; exit 1; }
