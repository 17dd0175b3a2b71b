# Everything that a person or a machine does with this repository. `make` alone lists it.

GO      ?= go
BIN     := bin/cove
VERSION ?= 0.1.0-dev
DEMO    := Which region grew fastest from 2024 to 2025? Plot it.
REPLAY  := examples/sales/replay.json
BENCH   ?=
CGROUP2_TESTS ?= TestCheck|TestUnified|TestNoControllers|TestSlowed|TestReserve|TestKilledForMemory|TestMemoryIsSlowed|TestForgottenGroups|TestProcessorTime

# A dynamically linked cove cannot start gVisor. Without paths in what is compiled, a fresh clone finds it in the cache of the last one.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath)

.DEFAULT_GOAL := help
.PHONY: help demo build bench test quick race soak cgroup2 popular filters guest lint check fmt lock fuzz clean python services
.DELETE_ON_ERROR:

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/cove, one static file
	$(GO) build -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN) ./cmd/cove

demo: build python ## Ask a question about examples/sales/sales.csv; leaves a chart in demo-out
	@set -e; \
	if [ -n "$$COVE_MODEL$$OPENAI_API_KEY$$OPENAI_BASE_URL$$ANTHROPIC_API_KEY" ] || ! $(BIN) doctor --json </dev/null | grep -q '"name":"model","status":"warning"'; then \
		$(BIN) ask -f examples/sales/sales.csv -o demo-out "$(DEMO)" </dev/null; \
	else \
		echo "no model configured: replaying recorded model turns; the code runs for real"; \
		$(BIN) ask --model replay:$(REPLAY) -f examples/sales/sales.csv -o demo-out "$(DEMO)" </dev/null; \
	fi

bench: build python ## Measure cove beside its peers (BENCH="--quick"); as root it installs docker, debootstrap and bubblewrap
	$(GO) build -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN)-bench ./cmd/cove-bench
	$(BIN)-bench --install-peers $(BENCH)

# The packages whose tests take longest begin first, and one more than there are processors runs at a time: many tests wait for something.
LONGEST := ./e2e ./internal/session ./internal/pydeps/build
AT_ONCE := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# COVE_TEST=all makes it an error when something is left out; see CONTRIBUTING.md. Nothing is vetted here: golangci-lint does all that vet does, in `make check`.
test: build python services ## Run every test; fails when one is left out
	COVE_TEST=all COVE_TEST_BINARY=$(CURDIR)/$(BIN) $(GO) run ./internal/testneeds/report -vet=off -p $(AT_ONCE) -timeout 36m $(LONGEST) ./...

quick: ## Run the tests that need nothing but Go
	$(GO) run ./internal/testneeds/report -timeout 5m ./...

race: build python services ## Run every test under the race detector (needs a C compiler)
	$(GO) build -o bin/report ./internal/testneeds/report
	CGO_ENABLED=1 COVE_TEST=all COVE_TEST_BINARY=$(CURDIR)/$(BIN) bin/report -race -timeout 60m ./...

soak: build python services ## Create, pause and kill sessions and servers a thousand times over, and hundreds at a time; COVE_EVAL_FILES="..." adds references of data sets; about two hours
	COVE_TEST=all COVE_SOAK=full COVE_TEST_BINARY=$(CURDIR)/$(BIN) $(GO) test -v -timeout 180m -run 'TestSoak|TestKilledAtMoments|TestUsersAtOnce|TestServerKilled|TestServerOnPostgreSQL|TestServersOnOneDatabase|TestServerTakenForDead|TestE2BSandboxesAtOnce' ./e2e

cgroup2: build ## Test how memory is held on cgroup v2, on an emulated machine; some minutes; as root it installs qemu and a kernel
	$(GO) test -c -o bin/gvisor.test ./internal/sandbox/gvisor
	cd internal/sandbox/gvisor && COVE_TEST=there COVE_TEST_BINARY=$(CURDIR)/$(BIN) sh $(CURDIR)/e2e/cgroup2/vm.sh $(CURDIR)/bin/gvisor.test \
		-test.v -test.timeout 60m -test.parallel 1 -test.run '$(CGROUP2_TESTS)'

popular: build python ## Install and import the 300 most popular packages, one session each; downloads gigabytes
	COVE_TEST=all COVE_SOAK=full COVE_TEST_BINARY=$(CURDIR)/$(BIN) $(GO) test -v -timeout 180m -run TestPopularPackages ./e2e

filters: ## Compile gVisor's seccomp filters again, after an upgrade of gVisor
	$(GO) generate ./internal/sandbox/gvisor/filters

guest: ## Build the guest again, the program inside every sandbox, after a change of its sources
	$(GO) generate ./internal/guest/program

lint: ## Check the style with golangci-lint, built at the version that .ci/lint.mod names
	.ci/check lint

check: ## Check go.mod, the format, the style, and that each new commit builds by itself, as CI does
	for check in tidy format lint commits; do .ci/check $$check || exit 1; done

fmt: ## Format the Go code
	gofmt -w $$(git ls-files '*.go')

lock: ## Resolve the Python environments again and write their lock files
	sh internal/pyenv/locks/update.sh

fuzz: ## Fuzz the guest protocol for ten minutes
	for target in FuzzReadFrame FuzzReadMessage FuzzConn; do \
		$(GO) test ./internal/wire -run '^$$' -fuzz "^$$target\$$" -fuzztime 200s || exit 1; \
	done
	$(GO) test ./internal/guest -run '^$$' -fuzz FuzzParseQuery -fuzztime 60s
	$(GO) test ./internal/guest -run '^$$' -fuzz FuzzGlob -fuzztime 60s

clean: ## Remove what was built here
	rm -rf bin cove-out demo-out

# cove builds its environments on a Python with venv and pip. On Debian and Ubuntu these come as a package of their own;
# root gets it installed, everyone else is told by cove what to do.
python:
	@if ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1 && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get install -y python3 python3-venv || { apt-get update && apt-get install -y python3 python3-venv; }; \
	fi

# The tests of the server start a PostgreSQL of their own, run the vendors' JavaScript clients, and open the page in Chromium. Root gets what they need installed; for everyone
# else `make test` fails and says what is missing.
services:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		missing=; \
		ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
		command -v node >/dev/null || missing="$$missing nodejs"; \
		command -v npm >/dev/null || missing="$$missing npm"; \
		command -v ip >/dev/null || missing="$$missing iproute2"; \
		command -v promtool >/dev/null || missing="$$missing prometheus"; \
		command -v chromium >/dev/null || missing="$$missing chromium fonts-noto-cjk fonts-liberation"; \
		command -v Rscript >/dev/null || missing="$$missing r-base-core"; \
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
	COVE_PAGE_SCRIPT=pictures.mjs COVE_PICTURES=$(CURDIR)/docs COVE_TEST_BINARY=$(CURDIR)/$(BIN) COVE_TEST=all $(GO) test -count=1 -vet=off -v ./e2e -run 'TestPage$$'

page-speed: build ## Measure the page in Chromium, against a plain page of the same server; some minutes
	COVE_PAGE_SCRIPT=speed.mjs COVE_TEST_BINARY=$(CURDIR)/$(BIN) COVE_TEST=all $(GO) test -count=1 -vet=off -v ./e2e -run 'TestPage$$'

web-dev: ## Serve the page with reload, before the server at COVE_SERVER (default: http://127.0.0.1:8700)
	cd web && npm ci --loglevel=error && npm run dev

# The table from import names to projects. COVE_NAMES_PUBLIC is a folder with the public tables that
# internal/pydeps/names/README.md lists; NAMES_TOP=15000 also asks the index about that many projects, for some hours.
NAMES_TOP ?= 0
NAMES_FLAGS ?=

.PHONY: names names-eval
names: ## Make the table of import names again
	$(GO) run ./internal/pydeps/names/generate -top $(NAMES_TOP) $(NAMES_FLAGS)

names-eval: ## Say how often the table of import names is right
	$(GO) run ./internal/pydeps/names/evaluate $(NAMES_FLAGS)
