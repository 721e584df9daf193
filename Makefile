# You need Python 3.11 or later and make; node comes with the Python packages.
# `make run PYTHON=python3.12` uses another interpreter, `make test ARGS="-k people"` passes arguments on.

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
NPM := NODE_USE_SYSTEM_CA=1 PATH="$(CURDIR)/$(BIN):$$PATH" npm --loglevel=error --no-audit --no-fund --no-update-notifier
COMPILE := $(BIN)/uv pip compile -q --python-version 3.11 --universal --generate-hashes \
	--no-emit-index-url --no-header --no-annotate $(ARGS)

# The tests wait for engines and browsers, so two processes more than there are processors keep these busy.
WORKERS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2)))
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# pip compiles no modules: Python compiles those that it imports, once.
PIP := $(BIN)/pip install -qq --no-compile --require-hashes
EDITABLE := $(BIN)/pip install -qq --no-deps --no-build-isolation --no-index -e .

# Each installation or build step touches one of these files. It runs again when the file is missing or out of date.
INSTALLERS := .venv/.installed-installers
LOCAL := .venv/.installed-local
DOCS := .venv/.installed-docs
DEV := .venv/.installed-dev
ENGINE := deploy/engine/node_modules/.installed
NODE := tests/node/node_modules/.installed
PAGE := server/http/pages/elements/documents.json
HAS_ENGINE := test -n "$$(find deploy/engine/node_modules -path '*/@dynoxide/*/dynoxide' 2> /dev/null)"

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Targets run one after the other, except what AT_ONCE installs.
AT_ONCE := $(MAKE) -s --no-print-directory -j 4 AT_ONCE_BEGAN=yes
ifndef AT_ONCE_BEGAN
.NOTPARALLEL:
endif
.PHONY: help run quick test soak check format bench bench-faults attack coverage docs pages engine generated \
	lock audit-dependencies clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' Makefile

run: ## Start the service with demo data on http://127.0.0.1:8000/graphql
	@$(AT_ONCE) $(LOCAL) $(ENGINE) $(PAGE)
	@$(HAS_ENGINE) || $(AT_ONCE) $(DEV)
	@echo "Starting Ringside. Ctrl-C stops it; its data stays in .ringside/"
	@exec $(BIN)/ringside serve --demo $(ARGS)

quick: $(DEV) $(ENGINE) ## Run units, properties, and one path through each part over HTTP
	@RINGSIDE_TEST_ENGINES=dynoxide RINGSIDE_TEST_EXAMPLES=0.2 $(PYTEST) -q -m "quick and not soak" \
		tests/unit tests/property tests/engine $(ARGS)

test: ## Run everything that a change can break
	@$(AT_ONCE) $(DEV) $(ENGINE) $(NODE) $(PAGE)
	@echo "Running the tests"
	@$(PYTEST) $(ARGS)

soak: ## Run what takes long: the other engines, faults, attacks, many examples; ARGS="--seed 7 attacks"
	@$(AT_ONCE) $(DEV) $(ENGINE) $(NODE) $(PAGE)
	@$(BIN)/python -m tests.soak $(ARGS)

check: $(DEV) ## Run the linters, the type checker, the import contracts and the checks of texts, tools and style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -q tests/style

format: $(DEV) ## Format the code and apply the linter's automatic fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

coverage: $(DEV) $(ENGINE) $(NODE) $(PAGE) ## Run the test suite and list the lines no test reaches
	@$(BIN)/coverage run -m pytest $(ARGS)
	@$(BIN)/coverage report --skip-covered --show-missing

bench: $(DEV) $(ENGINE) ## Run every benchmark (about an hour); BENCH=name runs one from bench/, ARGS passes its options
	@for one in $(or $(BENCH),$$(grep -l '^if __name__' bench/*.py | sed 's,bench/,,; s,\.py,,')); do \
		echo "bench/$$one"; $(BIN)/python -m bench.$$one $(ARGS) || exit 1; done

bench-faults: $(DEV) $(ENGINE) ## Run twenty fault-injection rounds and check that nothing is lost or counted twice
	@$(BIN)/python -m bench.faults $(ARGS)

attack: $(DEV) $(ENGINE) ## Attack one process for ten minutes, with honest load beside; ARGS="--seconds 60"
	@$(BIN)/python -m bench.attacks $(ARGS)

docs: $(DOCS) ## Build the guide into site/ and serve it on http://127.0.0.1:8001/
	@$(BIN)/zensical build --strict
	@$(BIN)/zensical serve -a 127.0.0.1:8001

pages: $(LOCAL) $(PAGE) ## Build the explorer and the elements into server/http/pages/

engine: $(ENGINE) ## Fetch the embedded engine, for this machine's processor

generated: $(DEV) ## Write the SDL, the reference and the tables of the guide from the code
	@$(BIN)/python -m tests.generated

lock: $(DEV) ## Resolve the lock files again; ARGS=--upgrade takes newer versions
	@echo "Locking the Python packages"
	@$(COMPILE) pyproject.toml -o requirements.lock
	@$(COMPILE) pyproject.toml --group build -o requirements-local.lock
	@$(COMPILE) pyproject.toml --extra moto --group dev -o requirements-dev.lock
	@for group in installers docs image; do \
		$(COMPILE) --group $$group -c requirements-dev.lock -o requirements-$$group.lock || exit 1; done
	@$(COMPILE) bench/peers/requirements.in -o bench/peers/requirements.lock
	@$(COMPILE) tests/ariadne/requirements.in -o tests/ariadne/requirements.lock
	@echo "Locking the npm packages"
	@for folder in deploy/engine explorer tests/node bench/peers; do \
		$(NPM) $(if $(filter --upgrade,$(ARGS)),update,install) --prefix $$folder \
			--package-lock-only --omit-lockfile-registry-resolved > /dev/null || exit 1; done

audit-dependencies: $(DEV) ## Check the locked packages for known vulnerabilities, and say which could not be checked
	@$(BIN)/python .ci/audit_dependencies.py

clean: ## Remove everything installed or built; the data in .ringside/ stays
	rm -rf .venv explorer/node_modules tests/node/node_modules deploy/engine/node_modules server/http/pages/explorer \
		server/http/pages/elements server/http/pages/admin elements/generated dist site .cache

$(BIN)/pip:
	@$(PYTHON) -c '' 2> /dev/null || { echo "$(PYTHON) was not found. Install Python 3.11 or later, or choose an interpreter: make PYTHON=…"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or later is needed, and $(PYTHON) is older. Choose another: make PYTHON=python3.12 …"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { \
		echo "$(PYTHON) cannot create a virtual environment. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "Creating .venv"
	@$(PYTHON) -m venv --clear .venv

# A Python's own pip may be years old and take three times as long.
$(INSTALLERS): requirements-installers.lock | $(BIN)/pip
	@echo "Installing pip and node"
	@$(PIP) -r requirements-installers.lock
	@touch $@

$(LOCAL): requirements-local.lock pyproject.toml | $(INSTALLERS)
	@echo "Installing the Python packages of requirements-local.lock"
	@$(PIP) -r requirements-local.lock
	@$(EDITABLE)
	@touch $@

# Some packages warn when they are compiled, and a warning would fail a test.
$(DEV): requirements-dev.lock pyproject.toml | $(INSTALLERS)
	@echo "Installing the Python packages of requirements-dev.lock"
	@$(PIP) -r requirements-dev.lock
	@$(EDITABLE)
	@$(BIN)/python -W ignore -m compileall -qq -j 0 .venv/lib || true
	@touch $@ $(LOCAL) $(DOCS)

$(DOCS): requirements-docs.lock | $(INSTALLERS)
	@echo "Installing the Python packages of requirements-docs.lock"
	@$(PIP) -r requirements-docs.lock
	@touch $@

# The lock file has the binary for Linux on x64 only; npm's `dynoxide` package brings those for other platforms.
$(ENGINE): deploy/engine/package-lock.json | $(INSTALLERS)
	@echo "Fetching the embedded engine"
	@$(NPM) ci --prefix deploy/engine > /dev/null; $(HAS_ENGINE) || \
		$(NPM) install --prefix deploy/engine --no-save --ignore-scripts dynoxide@1.2.1 > /dev/null 2>&1; \
	if $(HAS_ENGINE); then touch $@; else \
		echo "npm has no engine for this machine. moto is used instead: it is slow and loses its data when it stops"; fi

$(NODE): tests/node/package-lock.json | $(INSTALLERS)
	@echo "Fetching the npm packages of the tests"
	@$(NPM) ci --prefix tests/node > /dev/null
	@touch $@

$(PAGE): explorer/package-lock.json explorer/index.html schema/schema.graphql $(wildcard explorer/*.js explorer/src/* \
		examples/*.graphql elements/*.ts elements/*.json elements/*/* elements/*/*/* server/http/pages/sign-in/*.js) \
		| $(INSTALLERS)
	@echo "Building the explorer and the elements"
	@$(NPM) ci --prefix explorer > /dev/null
	@$(NPM) run --silent build --prefix explorer
