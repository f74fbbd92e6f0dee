# The whole toolbox. `make` alone prints the targets.
.DEFAULT_GOAL := help
.PHONY: help run build check test needs unit race sim fuzz wire peers bench microbench

GO       ?= go
SEEDS    ?= 2000
FUZZTIME ?= 20s
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT   := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)

FOLDERS  := cmd loop httpparse admit store upstream usage perf

# Packages whose tests also run under the race detector.
CORE := ./httpparse ./admit ./loop/... ./upstream/... ./usage/... ./store/... ./cmd/relay/...

help: ## print the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "%-10s %s\n", $$1, $$2}'

run: build ## build and run the demo: the gateway over built-in mock providers
	bin/relay demo

build: ## build the static binaries into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

check: ## formatting, vet, the shape of the tree
	@unformatted=$$(gofmt -l $(FOLDERS)); \
		[ -z "$$unformatted" ] || { echo "not formatted: $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags integration ./cmd/...
	$(GO) test -count=1 ./cmd

test: needs check unit race sim wire ## everything, in the order of speed; fuzz seeds run with unit

needs: ## the commands that the tests run, installed if root
	@.ci/needs.sh curl:curl haproxy:haproxy redis-server:redis-server

unit: needs ## unit tests and fuzz seeds
	@for server in valkey-server dragonfly; do \
		command -v $$server >/dev/null || echo "$$server is not installed: the shared store is not tested on it"; \
	done
	$(GO) test ./...

race: needs ## the core packages under the race detector
	$(GO) test -race $(CORE)

sim: ## the simulator, SEEDS=2000 runs
	$(GO) test -count=1 ./loop/sim -run Sim -seeds=$(SEEDS)

fuzz: ## every fuzz target for FUZZTIME=20s
	FUZZTIME=$(FUZZTIME) .ci/fuzz.sh

wire: needs ## the built binary on real sockets
	$(GO) test -count=1 -timeout 15m -tags integration ./cmd/...

peers: ## the proxies that the benchmark compares with, installed if root; left out where they are not
	@.ci/needs.sh haproxy:haproxy nginx:nginx-light || echo "the benchmark leaves out what is missing"

bench: build peers ## Relay, the goroutine gateways, HAProxy and nginx side by side, in some minutes
	bin/relay-perf ladder --relay bin/relay --profile quick --out perf/out
	bin/relay-perf report perf/out/latest.json --out perf/out/report.html

microbench: ## benchmarks of the parts, with allocations
	$(GO) test -run '^$$' -bench . -benchmem $(CORE)
