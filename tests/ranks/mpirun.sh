#!/usr/bin/env bash
# mpirun.sh RANKS PROGRAM [ARG ...] - runs a program on so many MPI ranks of this machine, more than it has processors
# where need be; exit code 77 (skipped) where there is no mpirun.
set -uo pipefail
ranks=$1
shift
launcher=$(command -v "${LOCKSTEP_MPIRUN:-mpirun}") || { echo "SKIP: there is no ${LOCKSTEP_MPIRUN:-mpirun} here"; exit 77; }
options=()
if "$launcher" --version 2>&1 | grep -qi 'open.*mpi\|open-mpi\|prte'; then
  options+=(--oversubscribe --bind-to none)
  [ "$(id -u)" = 0 ] && options+=(--allow-run-as-root)
  # Ranks outnumber the processors: who waits gives way. No network is needed.
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
fi
# MPICH's UCX tells at the end of each message that a closed communicator has left.
export UCX_LOG_LEVEL=error
exec "$launcher" "${options[@]}" -n "$ranks" "$@"
