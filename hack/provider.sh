#!/usr/bin/env bash
# Builds provider-kubernetes, and collects the CRDs of what it writes, for the living suite: hack/provider.sh FOLDER
# Needs Go and its module proxy. Everything is pinned, and verified by `go`. One way to get credentials is left
# out: the library it needs is not in the proxy.
set -euo pipefail
# shellcheck source=hack/module.sh
. "$(dirname "$0")/module.sh"

provider=github.com/crossplane-contrib/provider-kubernetes@v1.3.0
declare -A crds=(
  [$provider]=package/crds/kubernetes.m.crossplane.io_
  [sigs.k8s.io/lws@v0.8.0]=config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets
  [sigs.k8s.io/gateway-api@v1.4.0]=config/crd/standard/gateway.networking.k8s.io_
  [sigs.k8s.io/gateway-api-inference-extension@v1.3.0]=config/crd/bases/inference.networking.k8s.io_inferencepools
)

folder=$(realpath -m "$1")
mkdir -p "$folder/crds"
for module in "${!crds[@]}"; do
  sources=$(download "$module")
  cp -f "$sources/${crds[$module]}"*.yaml "$folder/crds/"
done

unpack "$provider"
rm pkg/kube/client/nebius/*
cat > pkg/kube/client/nebius/absent.go <<'GO'
// Package nebius stands where credentials of Nebius would be read.
package nebius

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
)

// SDKStore is empty.
type SDKStore struct{}

// NewSDKStore returns an empty store.
func NewSDKStore() *SDKStore { return &SDKStore{} }

// WrapRESTConfig always fails.
func WrapRESTConfig(context.Context, *rest.Config, []byte, *SDKStore) error {
	return errors.New("built without credentials of Nebius")
}
GO
sed -i '/nebius\/gosdk/d' go.mod
# As v1.4.1 has it: without this no ObservedObjectCollection makes Objects. (v1.4.1 itself needs more that the
# proxy lacks.)
sed -i 's/json:"deletionPropagationPolicy"/json:"deletionPropagationPolicy,omitempty"/' apis/namespaced/object/v1alpha1/types.go
build "$folder/provider" ./cmd/provider
echo "$folder/provider: ${provider##*/}"
