#!/usr/bin/env bash
# Builds KServe's controller of LLMInferenceServices, and collects what it needs, for `python -m tests.referee.kserve`:
# hack/kserve.sh FOLDER [VERSION]. Needs Go and its module proxy, and about five minutes of CPU; `go` verifies the module.
set -euo pipefail
# shellcheck source=hack/module.sh
. "$(dirname "$0")/module.sh"

folder=$(realpath -m "$1") version=${2:-0.20.0}
unpack "github.com/kserve/kserve@v$version"
mkdir -p "$folder"/{crds,presets,webhooks}
cp -f config/crd/full/llmisvc/serving.kserve.io_*.yaml config/llmisvc/gateway-inference-extension.yaml "$folder/crds/"
cp -f test/crds/gateway-inference-extension-v1alpha2pool.yaml "$folder/crds/" 2>/dev/null || true
cp -f config/llmisvcconfig/config-*.yaml "$folder/presets/"
cp -f config/webhook/llmisvc/manifests.yaml "$folder/webhooks/"
cp -f config/configmap/inferenceservice.yaml "$folder/"
build "$folder/llmisvc" ./cmd/llmisvc
echo "$folder/llmisvc: kserve@v$version"
