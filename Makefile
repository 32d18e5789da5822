# Every target makes .venv and installs the pinned set first, once.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
CLUSTER_READY := .venv/.ready-cluster

.PHONY: help demo test test-cluster check format bench system-deps clean

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(READY) ## See the whole product on this machine's own standard library
	@$(BIN)/redraft demo -o demo

test: $(READY) ## Run every test but those of `test-cluster`
	@$(BIN)/python -m pytest

test-cluster: $(CLUSTER_READY) ## Run the tests of several processes, of PostgreSQL and of Ray
	@$(BIN)/python -m pytest tests/cluster

check: $(READY) ## Format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(READY) ## Rewrite the sources as `make check` wants them
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(READY) ## Measure speed and memory; writes benchmarks/results.json
	@$(BIN)/python -m benchmarks.run

system-deps: ## Install the browser and the editor that some tests drive (Debian, as root)
	@{ command -v chromium && command -v nvim; } >/dev/null || { apt-get update -q && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends chromium neovim; }

clean: ## Remove what the other targets made
	rm -rf .venv demo benchmarks/*.json

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing the pinned packages into .venv (once)" >&2
	@PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
		$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $(READY)

$(CLUSTER_READY): $(READY)
	@echo "Installing the packages of the cluster tests into .venv (once)" >&2
	@PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
		$(BIN)/python -m pip install --quiet --editable ".[cluster]"
	@touch $(CLUSTER_READY)
