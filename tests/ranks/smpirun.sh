#!/usr/bin/env bash
# smpirun.sh RANKS [PROGRAM [ARG ...]] - runs a program on so many ranks that SimGrid simulates in one process, one
# after the other; exit code 77 (skipped) without PROGRAM, which is built where SimGrid is installed. smpirun succeeds
# even after MPI_Abort, so the program must say "passed on all ranks" at its end.
set -euo pipefail
ranks=$1
shift
[ $# -gt 0 ] && command -v smpirun >/dev/null || { echo "SKIP: there is no SimGrid here (Debian: libsimgrid-dev)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/platform.xml" <<XML
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="node" suffix="" radical="0-$((ranks - 1))" speed="1Gf" bw="10GBps" lat="1us"/>
</platform>
XML
for ((k = 0; k < ranks; ++k)); do echo "node$k"; done > "$folder/hosts"
# SimGrid loads copies of the program, which do not find the libraries beside the original.
program=$(realpath "$1")
build=$(dirname "$program")/../..
shift
export LD_LIBRARY_PATH=$build/lib/ranks:$build/lib:${LD_LIBRARY_PATH:-}
# Time is simulated: the calculations of a rank take none.
export OMP_NUM_THREADS=1 TMPDIR=$folder LOCKSTEP_RANKS_TIMEOUT=600000
cd "$folder"
smpirun -np "$ranks" -platform platform.xml -hostfile hosts --cfg=smpi/simulate-computation:no --cfg=smpi/host-speed:1Gf \
  --cfg=contexts/stack-size:1024 --log=root.thres:warning "$program" "$@" | tee output
grep -qx 'passed on all ranks' output
