#!/usr/bin/env bash
# usage.sh LOCKSTEP - what cannot be asked of `lockstep ranks` is wrong usage, and the text names the option.
set -uo pipefail
refused() {
  local option=$1 text
  shift
  text=$("$lockstep" ranks "$@" 2>&1)
  [ $? = 2 ] && [[ $text == *"$option"* ]] || { echo "$*: $text"; exit 1; }
}
lockstep=$1
refused --seed verify --seed -1
refused --ranks verify --ranks 2000
refused --shape bench --weak --shape 4611686018427387904x1 --ranks 3
refused --shape plan --shape 4x4x
