# Python 3.11 or later and make are all that is needed: node comes with the Python packages.
# `make run PYTHON=python3.12` names another interpreter, `make test ARGS="-k people"` hands on arguments.

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
NPM := NODE_USE_SYSTEM_CA=1 PATH="$(CURDIR)/$(BIN):$$PATH" npm --loglevel=error --no-audit --no-fund --no-update-notifier
COMPILE := $(BIN)/uv pip compile -q --python-version 3.11 --universal --generate-hashes \
	--no-emit-index-url --no-header --no-annotate $(ARGS)

# What is installed or built leaves one of these behind; a step runs when it is missing or older than what it is made of.
LOCAL := .venv/.installed-local
DEV := .venv/.installed-dev
ENGINE := deploy/engine/node_modules/.installed
NODE := tests/node/node_modules/.installed
PAGE := server/http/pages/explorer/index.html
HAS_ENGINE := test -n "$$(find deploy/engine/node_modules -path '*/@dynoxide/*/dynoxide' 2> /dev/null)"

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run test check format bench bench-faults coverage oracle differential explorer generated lock clean

help: ## Lists these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

run: $(LOCAL) $(ENGINE) $(PAGE) ## Starts the service with demo data on http://127.0.0.1:8000/graphql
	@echo "Starting Ringside; Ctrl-C ends it, and its data stay in .ringside/"
	@exec $(BIN)/ringside serve --demo $(ARGS)

test: $(DEV) $(ENGINE) $(NODE) $(PAGE) ## Runs the whole suite
	@echo "Running the tests"
	@$(BIN)/python -m pytest $(ARGS)

check: $(DEV) ## Lints, checks types, floors, and that generated files are up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/unit/test_generated.py tests/unit/test_locks.py

format: $(DEV) ## Formats the code, and mends what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

coverage: $(DEV) $(ENGINE) $(NODE) $(PAGE) ## Runs the suite and says which lines no test runs
	@$(BIN)/coverage run -m pytest $(ARGS)
	@$(BIN)/coverage report --skip-covered --show-missing

bench: $(DEV) $(ENGINE) ## Measures everything, for an hour; BENCH=name for one of bench/, ARGS for its options
	@for one in $(or $(BENCH),$$(grep -l '^if __name__' bench/*.py | sed 's,bench/,,; s,\.py,,')); do \
		echo "bench/$$one"; $(BIN)/python -m bench.$$one $(ARGS) || exit 1; done

bench-faults: $(DEV) $(ENGINE) ## Lives through twenty of the worst days, looking for anything lost or doubled
	@$(BIN)/python -m bench.faults $(ARGS)

oracle: $(DEV) $(ENGINE) ## Pages through 50,000 pages of comments that change meanwhile, looking for a wrong one
	@RINGSIDE_ORACLE_PAGES=50000 $(BIN)/python -m pytest -q tests/property/test_comment_pages.py

differential: $(DEV) ## Compares 40,000 random operations, compiled and by graphql-core
	@$(BIN)/python -W ignore -m tests.property.test_compiled 200

explorer: $(PAGE) ## Builds the explorer into server/http/pages/explorer/

generated: $(DEV) ## Writes the SDL, the table's templates and the texts' tables from the code
	@$(BIN)/python -m tests.generated

lock: $(DEV) ## Resolves the locks anew; ARGS=--upgrade takes newer versions
	@echo "Locking the Python packages"
	@$(COMPILE) pyproject.toml -o requirements.lock
	@$(COMPILE) pyproject.toml --extra moto --group build -o requirements-local.lock
	@$(COMPILE) pyproject.toml --extra moto --group dev -o requirements-dev.lock
	@$(COMPILE) bench/peers/requirements.in -o bench/peers/requirements.lock
	@echo "Locking the npm packages"
	@for folder in deploy/engine explorer tests/node bench/peers; do \
		$(NPM) install --prefix $$folder --package-lock-only --omit-lockfile-registry-resolved > /dev/null || exit 1; done

clean: ## Removes what was installed and built; the data in .ringside/ stay
	rm -rf .venv explorer/node_modules tests/node/node_modules deploy/engine/node_modules server/http/pages/explorer dist

$(BIN)/pip:
	@$(PYTHON) -c '' 2> /dev/null || { echo "There is no $(PYTHON). Install Python 3.11 or later, or name it: make PYTHON=…"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or later is needed, and $(PYTHON) is older. Name another: make PYTHON=python3.12 …"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { \
		echo "$(PYTHON) cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "Making .venv"
	@$(PYTHON) -m venv --clear .venv

$(LOCAL): requirements-local.lock pyproject.toml | $(BIN)/pip
	@echo "Installing the Python packages of requirements-local.lock"
	@$(BIN)/pip install -qq --require-hashes -r requirements-local.lock
	@$(BIN)/pip install -qq --no-deps --no-build-isolation --no-index -e .
	@touch $@

$(DEV): requirements-dev.lock pyproject.toml | $(BIN)/pip
	@echo "Installing the Python packages of requirements-dev.lock"
	@$(BIN)/pip install -qq --require-hashes -r requirements-dev.lock
	@$(BIN)/pip install -qq --no-deps --no-build-isolation --no-index -e .
	@touch $@ $(LOCAL)

# The lock knows the program for Linux on x64 alone; npm's `dynoxide` brings those of other machines.
$(ENGINE): deploy/engine/package-lock.json | $(BIN)/npm
	@echo "Fetching the embedded engine"
	@$(NPM) ci --prefix deploy/engine > /dev/null; $(HAS_ENGINE) || \
		$(NPM) install --prefix deploy/engine --no-save --ignore-scripts dynoxide@1.2.1 > /dev/null 2>&1; \
	if $(HAS_ENGINE); then touch $@; else \
		echo "npm has no engine for this machine: moto stands in, which is slow and forgets everything at its end"; fi

$(NODE): tests/node/package-lock.json | $(BIN)/npm
	@echo "Fetching the npm packages of the tests"
	@$(NPM) ci --prefix tests/node > /dev/null
	@touch $@

$(PAGE): explorer/package-lock.json explorer/vite.config.js explorer/index.html $(wildcard explorer/src/* examples/*.graphql) \
		| $(BIN)/npm
	@echo "Building the explorer"
	@$(NPM) ci --prefix explorer > /dev/null
	@$(NPM) run --silent build --prefix explorer -- --logLevel warn

$(BIN)/npm: $(LOCAL)
