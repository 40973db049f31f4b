# shellcheck shell=bash
# Sourced by the scripts that build a program from its Go module. `go` verifies what it downloads.
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

download() { # MODULE@VERSION: prints the folder of its sources, which may not be written to
  local folder complaint
  folder=$(go env GOMODCACHE)/$1
  # What wants a newer Go is unpacked nevertheless.
  complaint=$(go mod download "$1" 2>&1) || [ -d "$folder" ] || { echo "$complaint" >&2; return 1; }
  echo "$folder"
}

unpack() { # MODULE@VERSION: goes into a copy of its sources that may be changed
  local sources copy
  sources=$(download "$1")
  copy=$(mktemp -d -p "$work")
  cp -r "$sources/." "$copy"
  chmod -R u+w "$copy"
  cd "$copy" || return
}

build() { # OUTPUT PACKAGE [LDFLAGS]
  GOWORK=off go build -mod=mod -trimpath -ldflags "-s -w ${3-}" -o "$1" "$2"
}
