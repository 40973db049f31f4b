#!/usr/bin/env bash
# Builds KServe's controller of LLMInferenceServices, and collects what it needs, for `python -m tests.referee.kserve`:
# hack/kserve.sh FOLDER [VERSION]. Needs Go and its module proxy, and about five minutes of CPU; `go` verifies the module.
set -euo pipefail

folder=$(realpath -m "$1") version=${2:-0.20.0}
module=github.com/kserve/kserve@v$version
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
go mod download "$module" >/dev/null 2>&1 || true # It also unpacks what wants a newer Go to be built.
cp -r "$(go env GOMODCACHE)/$module/." .
chmod -R u+w .
mkdir -p "$folder"/{crds,presets,webhooks}
cp -f config/crd/full/llmisvc/serving.kserve.io_*.yaml config/llmisvc/gateway-inference-extension.yaml "$folder/crds/"
cp -f test/crds/gateway-inference-extension-v1alpha2pool.yaml "$folder/crds/" 2>/dev/null || true
cp -f config/llmisvcconfig/config-*.yaml "$folder/presets/"
cp -f config/webhook/llmisvc/manifests.yaml "$folder/webhooks/"
cp -f config/configmap/inferenceservice.yaml "$folder/"
go build -mod=mod -trimpath -ldflags "-s -w" -o "$folder/llmisvc" ./cmd/llmisvc
echo "$folder/llmisvc: kserve@v$version"
