# Beamtime's commands; `make` alone lists them. Needs make, a POSIX shell and Python 3.11 or newer, nothing else.

VENV ?= .venv
PORT ?= 8000
BIN := $(VENV)/bin
# Arguments for pytest, such as ARGS="tests/jobs -x", and how many of its processes work side by side.
ARGS ?=
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo demo-reset demo-smoke dev test test-cluster check openapi bench vendor

help:  ## list these targets
	@echo "make <target>, with PORT=$(PORT) and VENV=$(VENV) unless told otherwise:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The newest Python that is there and not too old. A name on PATH may be an empty shim, so each is asked.
find_python = \
	for name in python3.13 python3.12 python3.11 python3; do \
		if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python=$$name; break; fi; \
	done; \
	if [ -z "$${python:-}" ]; then \
		echo "Beamtime needs Python 3.11 or newer; found $$(python3 --version 2>/dev/null || echo none)." >&2; \
		echo "On Debian or Ubuntu: sudo apt install python3 python3-venv. On macOS: brew install python." >&2; \
		exit 1; \
	fi; \
	if ! "$$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then \
		echo "$$python cannot make virtual environments: its venv module is missing." >&2; \
		echo "On Debian or Ubuntu: sudo apt install python3-venv" >&2; \
		exit 1; \
	fi

# $(call install,FILE): bring $(VENV) in step with a requirements file. Skipped while the stamp names its checksum.
# One line of progress on a terminal, some lines elsewhere; pip's own words are in $(VENV)/install.log.
define install
@set -eu; \
wanted="$(1) $$(cat requirements.txt $(1) | cksum)"; \
stamp="$(VENV)/.installed-$(notdir $(1))"; \
if [ -x "$(BIN)/python" ] && [ "$$(cat "$$stamp" 2>/dev/null)" = "$$wanted" ]; then exit 0; fi; \
if ! "$(BIN)/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	$(find_python); \
	echo "Making a virtual environment in $(VENV) with $$("$$python" --version)"; \
	"$$python" -m venv --clear "$(VENV)"; \
fi; \
echo "Installing what $(1) names; this takes about a minute"; \
tty=0; if [ -t 1 ]; then tty=1; fi; \
{ "$(BIN)/python" -m pip install --disable-pip-version-check --progress-bar off -r "$(1)" 2>&1 || echo "@failed@"; } \
	| tee "$(VENV)/install.log" \
	| awk -v tty=$$tty ' \
		function say(text) { if (tty) { printf "\r\033[K  %s", text; fflush() } else if (n % 20 == 1) { print "  " text; fflush() } } \
		/^@failed@$$/ { failed = 1 } \
		/^Collecting / { n++; say(n " packages found, the last one " $$2) } \
		/^Requirement already satisfied/ { n++; say(n " packages found, the last one " $$4) } \
		/^Installing collected packages/ { n = 1; say("installing all of them") } \
		END { if (tty) printf "\r\033[K"; exit failed }' \
	|| { grep -v '^@failed@$$' "$(VENV)/install.log" | tail -n 15 >&2; echo "The installation failed; all of it is in $(VENV)/install.log." >&2; exit 1; }; \
echo "$$wanted" > "$$stamp"; \
echo "Installed."
endef

$(VENV)/.installed-requirements.txt: FORCE
	$(call install,requirements.txt)

$(VENV)/.installed-requirements-dev.txt: FORCE
	$(call install,requirements-dev.txt)

# The recipes above look for themselves whether there is anything to do: a checksum is surer than a file's time.
.PHONY: FORCE
FORCE:

demo: $(VENV)/.installed-requirements.txt  ## run the whole portal on http://127.0.0.1:PORT; Ctrl-C ends it and its jobs
	@exec $(BIN)/python manage.py demo --port "$(PORT)"

demo-reset:  ## forget the demo: its database, keys, password and job files
	@if [ -x "$(BIN)/python" ]; then exec $(BIN)/python manage.py demo_reset; else echo "There is no demo to forget."; fi

demo-smoke:  ## install and start the demo in a fresh folder and run one job through its API
	@python3 tests/flows/demo_smoke.py

dev: $(VENV)/.installed-requirements-dev.txt  ## make the development environment

test: dev  ## run the whole test suite; ARGS="tests/jobs -x" for a part
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

test-cluster: dev  ## run the tests on a real Kubernetes with Kueue, made here or named by KUBECONFIG
	@$(BIN)/python -m pytest -o addopts="-ra --strict-markers --strict-config" $(or $(ARGS),tests/cluster)

check: dev  ## style, types, import contracts, unused dependencies, missing migrations, system checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check --fail-level WARNING
	BEAMTIME_MODE=server BEAMTIME_SECRET_KEY=for-this-check-only-abcdefghijklmnopqrstuvwxyz-0123456789 BEAMTIME_HTTPS=yes \
		BEAMTIME_SECRETS_KEYS=MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE= REDIS_URL=redis://localhost/0 \
		DATABASE_URL=postgres://beamtime@localhost/beamtime BEAMTIME_CLUSTER_KUBECONFIG=/etc/kubeconfig \
		BEAMTIME_ALLOWED_HOSTS=portal.example.org $(BIN)/python manage.py check --deploy

openapi: dev  ## write the OpenAPI document to var/openapi.yaml and validate it
	@mkdir -p var
	@$(BIN)/python manage.py spectacular --validate --fail-on-warn --file var/openapi.yaml
	@$(BIN)/openapi-spec-validator var/openapi.yaml

bench: dev  ## measure, and print the table of tests/bench/README.md
	@$(BIN)/python -m tests.bench $(ARGS)

vendor:  ## fetch the vendored front-end files again, as static/vendor/fetch.sh names them
	@static/vendor/fetch.sh
