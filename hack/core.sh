#!/usr/bin/env bash
# Builds a Crossplane core and puts it into a copy of the control plane's scripts: hack/core.sh VERSION FOLDER
# CONTROLPLANE is the folder of the scripts to copy, as for the living suite; everything but Crossplane stays as it
# is there. Needs Go, its module proxy, and xz. `go` verifies what it downloads.
set -euo pipefail
# shellcheck source=hack/module.sh
. "$(dirname "$0")/module.sh"

version=v${1#v}
scripts=$(realpath -m "${CONTROLPLANE:-$(dirname "$0")/../../shared/controlplane}")
[ -e "$scripts/up.sh" ] || { echo "$scripts/up.sh is not there; name its folder with CONTROLPLANE" >&2; exit 1; }
folder=$(realpath -m "$2")
unpack "github.com/crossplane/crossplane/v2@$version"
# From 2.3 on this module is replaced by a folder that the proxy does not serve. Where it has a tag of the same
# version, that is the folder; else it is the version that is required, which may not be older then.
apis=github.com/crossplane/crossplane/apis/v2
go mod edit -dropreplace "$apis"
if go mod download "$apis@$version" 2>/dev/null; then go mod edit -require "$apis@$version"; fi
# Where the version is kept changed with 2.3; packages that ask for a version of Crossplane are compared with it.
flags=""
for package in crossplane/v2/internal/version crossplane-runtime/v2/pkg/version; do
  flags+=" -X=github.com/crossplane/$package.version=$version"
done
build core ./cmd/crossplane "$flags"

rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
cp -r "$scripts" "$folder"
chmod -R u+w "$folder"
xz -0 -c core > "$folder/bin/crossplane-core.xz"
rm "$folder/crossplane/crds/"*.yaml
cp cluster/crds/*.yaml "$folder/crossplane/crds/"
# The flag of `core init` had another name in 2.0; every version reads this variable.
sed -i -e '1a export WEBHOOK_ENABLED=false' -e 's/core init --enable-webhooks=false/core init/' "$folder/up.sh"
echo "CONTROLPLANE=$folder: Crossplane $version"
