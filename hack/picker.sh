#!/usr/bin/env bash
# Builds two endpoint pickers for `python -m tests.referee.picker`, and collects the kinds that they read: hack/picker.sh
# FOLDER. Needs Go and its module proxy, and about seven minutes of CPU; `go` verifies the modules.
#
# The picker that our manifests name is no module that the proxy serves. These are what it was made of: the reference
# picker of the inference extension, and llm-d's with its plugins for prefill and decode apart. Of the latter the plugins
# stay out that need a tokenizer, whose module is not served either; no configuration of ours names one.
set -euo pipefail
# shellcheck source=hack/module.sh
. "$(dirname "$0")/module.sh"

folder=$(realpath -m "$1") extension=1.5.0 scheduler=0.7.1
mkdir -p "$folder/crds"
unpack "sigs.k8s.io/gateway-api-inference-extension@v$extension"
cp -f config/crd/bases/inference.networking.x-k8s.io_inference{modelrewrites,objectives}.yaml "$folder/crds/"
build "$folder/reference" ./cmd/epp
unpack "github.com/llm-d/llm-d-inference-scheduler@v$scheduler"
rm -rf test pkg/plugins/preparedata pkg/plugins/multi pkg/plugins/scorer/precise_prefix_cache*
find . -name '*_test.go' -delete
sed -i '/preparedata/d; /PrecisePrefixCache/d; /multi/d' pkg/plugins/register.go
go mod edit -droprequire github.com/llm-d/llm-d-kv-cache
build "$folder/disaggregating" ./cmd/epp
echo "$folder: inference extension $extension, llm-d inference scheduler $scheduler"
