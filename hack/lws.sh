#!/usr/bin/env bash
# Builds the controller of LeaderWorkerSets of another release, for `make referee KUBERNETES=1.37.2 LWS=VERSION`:
# hack/lws.sh VERSION FOLDER PROGRAMS. FOLDER becomes what the referee starts from, with the programs of a Kubernetes in
# PROGRAMS and the kinds and webhooks of the release. Needs Go and its module proxy, and about three minutes of CPU.
set -euo pipefail
# shellcheck source=hack/module.sh
. "$(dirname "$0")/module.sh"

version=${1#v} folder=$(realpath -m "$2") programs=$(realpath -m "$3")
scripts=$(realpath -m "${CONTROLPLANE:-$(dirname "$0")/../../shared/controlplane}")
[ -e "$scripts/up.sh" ] || { echo "$scripts/up.sh is not there; name its folder with CONTROLPLANE" >&2; exit 1; }
[ -x "$programs/kube-scheduler" ] || { echo "$programs has no kube-scheduler; LWS goes with KUBERNETES" >&2; exit 1; }
unpack "sigs.k8s.io/lws@v$version"
workload=$folder/controlplane/workload
mkdir -p "$folder/bin" "$workload"/lws-{crds,webhook}
cp -f config/crd/bases/*.yaml "$workload/lws-crds/"
cp -f config/webhook/manifests.yaml "$workload/lws-webhook/"
ln -sfn "$scripts/bin" "$folder/controlplane/bin"
ln -sfn "$scripts/workload/inferencepool" "$workload/inferencepool"
ln -sf "$programs"/kube-* "$folder/bin/"
build "$folder/bin/lws" ./cmd
echo "$folder: lws@v$version"
