#!/usr/bin/env bash
# A hook for git: refuses a commit whose first line is not `area: imperative`, or is longer than 72 characters.
set -euo pipefail

first=$(grep -v '^#' "$1" | head -n 1)
case "$first" in
  "Merge "* | "Revert "* | "fixup! "* | "squash! "*) exit 0 ;;
esac
if [[ ! "$first" =~ ^[a-z][a-zA-Z0-9_./,\ -]*:\ [^\ ] ]]; then
  echo "commit message: begin with the area and a colon, as in \"scheduler: keep what serves\"; found \"$first\"" >&2
  exit 1
fi
if [ ${#first} -gt 72 ]; then
  echo "commit message: the first line has ${#first} characters; at most 72" >&2
  exit 1
fi
