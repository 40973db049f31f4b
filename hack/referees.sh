#!/usr/bin/env bash
# Runs every referee that this machine can, one after the other, and says how long each took: `make referees`.
# Those are the Kubernetes of the scripts, every one of RELEASES, and each target of the Makefile that is called referee-*.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

log=$(mktemp)
trap 'rm -f "$log"' EXIT
runs=(referee)
for release in ${RELEASES:-}; do runs+=("referee KUBERNETES=$release"); done
while read -r target; do runs+=("$target"); done < <(sed -nE 's/^(referee-[a-z-]+):.*/\1/p' Makefile)

said=() failed=0
for run in "${runs[@]}"; do
  if [ "$run" != referee ] && ! command -v go >/dev/null; then
    said+=("left out      make $run: there is no Go to build it")
    continue
  fi
  before=$SECONDS
  read -ra words <<<"$run"
  make "${words[@]}" 2>&1 | tee "$log"
  ended=${PIPESTATUS[0]}
  took=$(printf '%5d s' $((SECONDS - before)))
  why=$(grep -m1 -E '(is skipped|left out): ' "$log")
  if [ "$ended" -ne 0 ]; then
    failed=1 said+=("FAILED $took  make $run")
  elif [ -n "$why" ]; then
    said+=("left out      make $run: ${why#*: }")
  else
    said+=("good   $took  make $run")
  fi
done
printf '%s\n' "${said[@]}"
exit $failed
