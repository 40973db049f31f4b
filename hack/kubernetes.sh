#!/usr/bin/env bash
# Builds the API server, the controllers and the scheduler of a Kubernetes release, for `make referee KUBERNETES=VERSION`:
# hack/kubernetes.sh VERSION FOLDER. Needs Go and its module proxy, and some 13 minutes of CPU. `go` verifies the modules.
set -euo pipefail
# shellcheck source=hack/module.sh
. "$(dirname "$0")/module.sh"

version=${1#v}
folder=$(realpath -m "$2")
source=$(download "k8s.io/kubernetes@v$version")
cd "$work"
# What Kubernetes replaces by folders of its repository has a tag of the same release each.
replaced=$(grep -oP '^\s*\Kk8s\.io/[a-z0-9-]+(?= => \./staging)' "$source/go.mod" | sort -u)
{
  echo "module kubernetes"
  grep -E '^(go|godebug) ' "$source/go.mod"
  echo "require k8s.io/kubernetes v$version"
  for name in $replaced; do echo "replace $name => $name v0.${version#1.}"; done
} > go.mod
programs=(kube-apiserver kube-controller-manager kube-scheduler)
{
  printf '//go:build tools\n\npackage tools\n\n'
  printf 'import _ "k8s.io/kubernetes/cmd/%s"\n' "${programs[@]}"
} > tools.go
go mod tidy -e >/dev/null 2>&1
go build -trimpath -ldflags "-s -w -X=k8s.io/component-base/version.gitVersion=v$version" \
  -o built/ "${programs[@]/#/k8s.io/kubernetes/cmd/}"
mkdir -p "$folder"
mv built/* "$folder/"
echo "$folder: Kubernetes $version"
