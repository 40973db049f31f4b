#!/usr/bin/env bash
# Builds Kueue, and collects its kinds and webhooks, for `python -m tests.referee.kueue`: hack/kueue.sh FOLDER [VERSION].
# Needs Go and its module proxy, and about five minutes of CPU; `go` verifies the module.
set -euo pipefail

folder=$(realpath -m "$1") version=${2:-0.17.1}
module=sigs.k8s.io/kueue@v$version
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
go mod download "$module" >/dev/null 2>&1 || true
cp -r "$(go env GOMODCACHE)/$module/." .
chmod -R u+w .
mkdir -p "$folder"/{crds,webhooks}
cp -f config/components/crd/bases/*.yaml "$folder/crds/"
cp -f config/components/webhook/manifests.yaml "$folder/webhooks/"
go build -mod=mod -trimpath -ldflags "-s -w" -o "$folder/kueue" ./cmd/kueue
echo "$folder/kueue: kueue@v$version"
