# Everything that a person or a machine does with this repository. `make` alone lists it.

GO      ?= go
BIN     := bin/cove
VERSION ?= 0.1.0-dev
DEMO    := Which region grew fastest from 2024 to 2025? Plot it.
REPLAY  := examples/sales/replay.json
BENCH   ?=
AHEAD   ?= true
CGROUP2_TESTS ?= TestCheck|TestUnified|TestDelegated|TestNoControllers|TestSlowed|TestReserve|TestKilledForMemory|TestMemoryIsSlowed|TestForgottenGroups|TestProcessorTime

# A dynamically linked cove cannot start gVisor. Without paths in what is compiled, a fresh clone finds it in the cache of the last one.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath)

# Where `make install` puts things: a place of the user's own, or of everybody's for root.
PREFIX  ?= $(if $(filter 0,$(shell id -u)),/usr/local,$(HOME)/.local)

.DEFAULT_GOAL := help
.PHONY: help demo build install uninstall bench test test-full test-tools test-all quick race soak release gvisor-check release-check machine-check cgroup2 engines popular filters guest image seccomp chart cluster-check compose-check lint check fmt lock fuzz clean python services
.DELETE_ON_ERROR:

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The first build compiles some 1,100 packages, for minutes. On a terminal it says how many are done.
BUILD = $(GO) build -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN) ./cmd/cove
build: ## Build bin/cove, one static file
	@if [ -t 1 ]; then sh cmd/cove/build.sh $(BUILD); else echo '$(BUILD)'; $(BUILD); fi

install: build ## Put cove, its manual pages and the completion of its commands below PREFIX (~/.local; /usr/local as root)
	install -D -m 755 $(BIN) $(DESTDIR)$(PREFIX)/bin/cove
	$(BIN) man $(DESTDIR)$(PREFIX)/share/man/man1
	@set -e; for file in bash:bash-completion/completions/cove zsh:zsh/site-functions/_cove fish:fish/vendor_completions.d/cove.fish; do \
		mkdir -p "$$(dirname "$(DESTDIR)$(PREFIX)/share/$${file#*:}")"; \
		$(BIN) completion "$${file%%:*}" > "$(DESTDIR)$(PREFIX)/share/$${file#*:}"; \
	done
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo "$(PREFIX)/bin is not in your PATH; add it: export PATH=\"$(PREFIX)/bin:\$$PATH\"" ;; esac

uninstall: ## Remove what `make install` has put below PREFIX; data and settings stay
	rm -f $(DESTDIR)$(PREFIX)/bin/cove $(DESTDIR)$(PREFIX)/share/man/man1/cove.1 $(DESTDIR)$(PREFIX)/share/man/man1/cove-*.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/cove $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_cove $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/cove.fish
	@echo "data: $${COVE_HOME:-$${XDG_DATA_HOME:-$$HOME/.local/share}/cove}; settings: $${XDG_CONFIG_HOME:-$$HOME/.config}/cove; downloads of uv: $${XDG_CACHE_HOME:-$$HOME/.cache}/uv. Remove these folders, if you want no session or history back."

demo: build python ## Ask a question about examples/sales/sales.csv; leaves a chart in demo-out
	@set -e; \
	if [ -n "$$COVE_MODEL$$OPENAI_API_KEY$$OPENAI_BASE_URL$$ANTHROPIC_API_KEY" ] || ! $(BIN) doctor --json </dev/null | grep -q '"name":"model","status":"warning"'; then \
		$(BIN) ask -f examples/sales/sales.csv -o demo-out "$(DEMO)" </dev/null; \
	else \
		echo "no model configured: replaying recorded model turns; the code runs for real"; \
		$(BIN) ask --model replay:$(REPLAY) -f examples/sales/sales.csv -o demo-out "$(DEMO)" </dev/null; \
	fi

bench: build python ## Measure cove beside its peers (BENCH="--quick"); as root it installs docker, debootstrap and bubblewrap
	$(GO) build -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN)-bench ./tools/bench/cove-bench
	$(BIN)-bench --install-peers $(BENCH)

# The packages whose tests take longest begin first. More run at once than there are processors: what puts load on the machine waits for a slot (package testneeds).
LONGEST := ./e2e ./internal/sessions/session ./internal/python/deps/build
CPUS := $(shell getconf _NPROCESSORS_ONLN)
AT_ONCE := -p=$(shell expr $(CPUS) + 4) -parallel=$(shell expr $(CPUS) + 2)

# What users get, and the rules of the repository. The programs of development in tools/ have tests of their own: `make test-tools`.
PRODUCT := . ./cmd/... ./e2e/... ./internal/...

# Those that have tests of the full tier.
FULL = $(sort $(dir $(shell grep -rl --include='*_test.go' 'testneeds\.FullTier\b' e2e internal)))

# In the tiers landing and full it is an error when something is left out; see CONTRIBUTING.md. Nothing is vetted here: golangci-lint does all that vet does, in `make check`.
TESTED = COVE_TEST_BINARY=$(CURDIR)/$(BIN) bin/report -vet=off -ldflags='-s -w' -timeout=70m $(AT_ONCE)

test: build python services bin/report ## Run the tests of what a change can break; fails when one is left out
	COVE_TEST=landing $(TESTED) $(LONGEST) $(PRODUCT)

test-full: build python services bin/report ## Run the tests that `make test` leaves: what takes long, other projects' own clients, what is about many or much
	COVE_TEST=full $(TESTED) $(addprefix ./,$(patsubst %/,%,$(FULL)))

test-all: test test-full test-tools ## Run every test

test-tools: build python services bin/report ## Run the tests of the programs in tools/, which no landing runs
	COVE_TEST=all $(TESTED) ./tools/...

.PHONY: bin/report
bin/report:
	@$(GO) build -o $@ ./internal/testkit/testneeds/report

quick: ## Run the tests that need nothing but Go
	$(GO) run ./internal/testkit/testneeds/report -timeout=5m $(PRODUCT)

race: build python services bin/report ## Run every test under the race detector (needs a C compiler)
	CGO_ENABLED=1 COVE_TEST=all COVE_TEST_SLOWNESS=10 COVE_TEST_BINARY=$(CURDIR)/$(BIN) bin/report -race -timeout=120m ./...

soak: build python services ## Create, pause and kill sessions and servers a thousand times over, and hundreds at a time; COVE_EVAL_FILES="..." adds references of data sets; about two hours
	COVE_TEST=all COVE_SOAK=full COVE_TEST_BINARY=$(CURDIR)/$(BIN) $(GO) test -v -timeout 180m -run 'TestSoak|TestKilledAtMoments|TestStoppedAtMoments|TestScaleUsersAtOnce|TestServerKilled|TestServerOnPostgreSQL|TestScaleServersOnOneDatabase|TestServerTakenForDead|TestScaleE2BSandboxes' ./e2e

# The tools that a release is made with are pinned in .ci/release.mod, beside go.mod.
DIST ?= dist
release: ## Make the release VERSION=1.2.3 of this commit in dist/: programs, archives, packages, sums; docs/release.md
	$(GO) run ./internal/packaging/release -version $(VERSION) -out $(DIST)

gvisor-check: ## Fail when the module proxy has a newer gVisor than go.mod names
	COVE_TEST=all $(GO) test -count=1 -tags release -run '^TestNoNewerGVisorCanBeHad$$' ./internal/machine/sandbox/gvisor

release-check: gvisor-check ## Make the release in dist/ again in another folder, with nothing cached, and compare every byte; some minutes
	$(GO) run ./internal/packaging/release -version $(VERSION) -out $(DIST) -check

machine-check: ## Install the package in dist/ on an emulated Debian 13 with systemd, cgroup v2 and AppArmor, and use its service (ARCHITECTURE=arm64); takes root, ten minutes, and a release made before
	.ci/machine/check $(DIST)/cove_*_$(or $(ARCHITECTURE),amd64).deb

cgroup2: build ## Test how memory is held on cgroup v2, as root and as an ordinary user, on an emulated machine; some minutes; as root it installs qemu and a kernel
	$(GO) test -c -o bin/gvisor.test ./internal/machine/sandbox/gvisor
	for as in env 'sh $(CURDIR)/e2e/cgroup2/delegated.sh'; do \
		(cd internal/machine/sandbox/gvisor && COVE_TEST=there COVE_TEST_SLOWNESS=20 COVE_TEST_BINARY=$(CURDIR)/$(BIN) sh $(CURDIR)/e2e/cgroup2/vm.sh $$as $(CURDIR)/bin/gvisor.test \
			-test.v -test.timeout 60m -test.parallel 1 -test.run '$(CGROUP2_TESTS)') || exit 1; \
	done

engines: build python ## Have the suites tell what an engine gives here, into docs/engines.md: ENGINE=docker COLUMN="podman, runc" ON="Podman 4.3.1"
	COVE_TEST=there COVE_TEST_BINARY=$(CURDIR)/$(BIN) $(GO) run ./internal/packaging/enginetable -engine "$(ENGINE)" -column "$(COLUMN)" -on "$(ON)"

popular: build python ## Install and import the 300 most popular packages, one session each; downloads gigabytes
	COVE_TEST=all COVE_SOAK=full COVE_TEST_BINARY=$(CURDIR)/$(BIN) $(GO) test -v -timeout 180m -run TestScalePopularPackages ./e2e

filters: ## Compile gVisor's seccomp filters again, after an upgrade of gVisor
	$(GO) generate ./internal/machine/sandbox/gvisor/filters

guest: ## Build the guest again, the program inside every sandbox, after a change of its sources
	$(GO) generate ./internal/machine/guest/program

image: ## Make the container image for amd64 and arm64, dist/cove-image.tar; AHEAD=false leaves out the Python environment and the warm interpreter, which take root
	$(GO) run ./internal/packaging/container -version $(VERSION) -out dist/cove-image.tar -ahead=$(AHEAD)

seccomp: ## Make the container's seccomp profile again, of Docker's
	$(GO) run ./internal/packaging/container seccomp "$$($(GO) mod download -json github.com/moby/profiles/seccomp@v0.3.0 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')/default.json" > deploy/seccomp/cove.json.part
	mv deploy/seccomp/cove.json.part deploy/seccomp/cove.json

bin/helm: .ci/chart.mod
	$(GO) build -modfile=.ci/chart.mod -o $@ helm.sh/helm/v4/cmd/helm

chart: bin/helm ## Check the Helm chart against three releases of Kubernetes, with the Helm that .ci/chart.mod names
	$(GO) run ./internal/packaging/helmchart bin/helm

cluster-check: build bin/helm ## Install the chart, with the image in dist/, into a Kubernetes of one node that is made for it, and work in it; takes root, and some 25 minutes the first time
	test -e dist/cove-image.tar || $(GO) run ./internal/packaging/container -version $(VERSION) -architectures "$$($(GO) env GOARCH)" -out dist/cove-image.tar
	.ci/cluster/check dist/cove-image.tar

compose-check: build ## Bring deploy/compose up with Docker Compose 2, with the image in dist/, and work in it; takes root, and some 15 minutes the first time
	test -e dist/cove-image.tar || $(GO) run ./internal/packaging/container -version $(VERSION) -architectures "$$($(GO) env GOARCH)" -out dist/cove-image.tar
	.ci/compose/check dist/cove-image.tar

lint: ## Check the style with golangci-lint, built at the version that .ci/lint.mod names
	.ci/check lint

check: ## Check go.mod, the format, the style, and that each new commit builds by itself, as CI does
	for check in tidy format lint shell vulnerabilities commits; do .ci/check $$check || exit 1; done

fmt: ## Format the Go code
	gofmt -w $$(git ls-files '*.go')

lock: ## Resolve the Python environments again and write their lock files
	sh internal/python/pyenv/locks/update.sh

FUZZTIME ?= 60s
fuzz: ## Fuzz everything that reads what others send, FUZZTIME=60s for each target; a finding is kept in testdata/fuzz
	@grep -r --include='*_test.go' '^func Fuzz' internal | sed 's|/[^/]*:func \(Fuzz[A-Za-z]*\).*| \1|' | while read -r package target; do \
		if $(GO) list -deps -test "./$$package" | grep -q '^gvisor.dev/gvisor/pkg/ring0'; then \
			echo "$$package $$target: NOT FUZZED, its tests contain gVisor, which Go cannot instrument"; continue; \
		fi; \
		echo "$$package $$target"; \
		$(GO) test "./$$package" -vet=off -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
	done

clean: ## Remove what was built here
	rm -rf bin dist cove-out demo-out

# cove builds its environments on a Python with venv and pip. On Debian and Ubuntu these come as a package of their own;
# root gets it installed, everyone else is told by cove what to do.
python:
	@if ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1 && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get install -y python3 python3-venv || { apt-get update && apt-get install -y python3 python3-venv; }; \
	fi

# The tests of the server start a PostgreSQL and a Docker daemon of their own, run the vendors' JavaScript clients, and open the page in Chromium. Root gets what they need installed; for everyone
# else `make test` fails and says what is missing.
services:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		missing=; \
		ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
		command -v node >/dev/null || missing="$$missing nodejs"; \
		command -v npm >/dev/null || missing="$$missing npm"; \
		command -v ip >/dev/null || missing="$$missing iproute2"; \
		command -v dockerd >/dev/null || missing="$$missing docker.io"; \
		command -v promtool >/dev/null || missing="$$missing prometheus"; \
		command -v chromium-headless-shell >/dev/null || missing="$$missing chromium-headless-shell fonts-noto-cjk fonts-liberation"; \
		command -v Rscript >/dev/null || missing="$$missing r-base-core"; \
		command -v shellcheck >/dev/null || missing="$$missing shellcheck"; \
		[ -d /usr/share/nodejs/typescript ] || missing="$$missing node-typescript"; \
		[ -z "$$missing" ] || apt-get install -y --no-install-recommends $$missing || { apt-get update && apt-get install -y --no-install-recommends $$missing; }; \
	fi

.PHONY: web web-types web-dev page-pictures page-speed
web: web-types ## Build the page, web/dist, from its source (needs Node.js 20.19 or newer)
	cd web && npm ci --loglevel=error && npm run --silent types && npm run --silent lint && npm run --silent build

web-types:
	cd web && npm run --silent schema
	{ printf '// Of the document with the SHA-256 '; sha256sum docs/openapi.json | cut -d' ' -f1; cat web/src/api/schema.ts; } > web/src/api/schema.ts.part
	mv web/src/api/schema.ts.part web/src/api/schema.ts

page-pictures: build ## Take the pictures of the page in docs/ again (needs Node.js and Chromium)
	COVE_PAGE_SCRIPT=pictures.mjs COVE_PICTURES=$(CURDIR)/docs COVE_TEST_BINARY=$(CURDIR)/$(BIN) COVE_TEST=all $(GO) test -count=1 -vet=off -v ./e2e -run 'TestPageWhole$$'

page-speed: build ## Measure the page in Chromium, against a plain page of the same server; some minutes
	COVE_PAGE_SCRIPT=speed.mjs COVE_TEST_BINARY=$(CURDIR)/$(BIN) COVE_TEST=all $(GO) test -count=1 -vet=off -v ./e2e -run 'TestPageWhole$$'

web-dev: ## Serve the page with reload, before the server at COVE_SERVER (default: http://127.0.0.1:8700)
	cd web && npm ci --loglevel=error && npm run dev

# The table from import names to projects. COVE_NAMES_PUBLIC is a folder with the public tables that
# internal/python/deps/names/README.md lists; NAMES_TOP=15000 also asks the index about that many projects, for some hours.
NAMES_TOP ?= 0
NAMES_FLAGS ?=

.PHONY: names names-eval
names: ## Make the table of import names again
	$(GO) run ./tools/names/generate -top $(NAMES_TOP) $(NAMES_FLAGS)

names-eval: ## Say how often the table of import names is right
	$(GO) run ./tools/names/evaluate $(NAMES_FLAGS)
