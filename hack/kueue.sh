#!/usr/bin/env bash
# Builds Kueue, and collects its kinds and webhooks, for `python -m tests.referee.kueue`: hack/kueue.sh FOLDER [VERSION].
# Needs Go and its module proxy, and about five minutes of CPU; `go` verifies the module.
set -euo pipefail
# shellcheck source=hack/module.sh
. "$(dirname "$0")/module.sh"

folder=$(realpath -m "$1") version=${2:-0.17.1}
unpack "sigs.k8s.io/kueue@v$version"
mkdir -p "$folder"/{crds,webhooks}
cp -f config/components/crd/bases/*.yaml "$folder/crds/"
cp -f config/components/webhook/manifests.yaml "$folder/webhooks/"
build "$folder/kueue" ./cmd/kueue
echo "$folder/kueue: kueue@v$version"
