# Each command does its own set-up; a machine needs Python 3.11+, Node 20+ and make, and Java 17 with Maven and Go 1.23+ for the tests.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BASE_PYTHON := $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $(name))))
PYTHON := .venv/bin/python
PACKAGES := packages/exactlyonce-dev packages/function-host packages/local-cosmos packages/local-service-bus packages/yieldcheck
RESOLVE := --universal --python-version 3.10 --no-header --upgrade
INSTALL := install --quiet --disable-pip-version-check --no-deps --require-hashes
CONNECT := tests/spark/connect tests/spark/source/test_feed_ranges.py tests/spark/spark/test_folder.py tests/spark/auditor/test_audit.py \
	tests/spark/auditor/test_incremental.py tests/spark/auditor/test_own_rules.py tests/spark/cleaner/test_cleanup.py \
	tests/spark/cleaner/test_half_way.py
GO_TESTS := packages/local-cosmos/local_cosmos_tests/go packages/local-service-bus/local_service_bus_tests/go
UNLIMITED := -o faulthandler_timeout=0  # For tests that take as long as they are told to.
# Four processes more than cores, since tests start real processes and wait for them, and two end with what needs Java. See devtools/processes.py.
ACROSS := --numprocesses $(shell expr $$(getconf _NPROCESSORS_ONLN) + 4) --dist loadfile --no-loadscope-reorder

SHOTS ?= 400
GAMES ?= 20
FAULTS ?= on
AUDIT ?= on
STRATEGY ?= outbox
TRANSPORT ?= storage
SESSIONS ?= on
BATCHES ?= off
SPARK_LINES ?= off
UI ?= off
SEED ?= 1
SECONDS ?= 600
MESSAGES ?= 1000
MINUTES ?= 10
TWIN ?=
BUSY ?= 8
TESTS ?=
FROM ?=

.PHONY: help demo outage soak upgrade test verify verify-all test-busy quick check pytest cover budgets model simulate fuzz dist docs bench bench-peers bench-spark audit-under-load test-pythons test-spark4 test-azure clean lock

help:  ## say what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

demo: .make/python .make/node $(if $(filter servicebus,$(TRANSPORT)),.make/amqp)  ## play a shooting-range game under trouble: SHOTS GAMES FAULTS=on|off AUDIT=on|off SEED STRATEGY=outbox|colocated|stream|naive… TRANSPORT=storage|servicebus SESSIONS BATCHES SPARK_LINES UI=on|off
	$(PYTHON) -m demo --shots $(SHOTS) --games $(GAMES) --faults $(FAULTS) --audit $(AUDIT) --strategy $(STRATEGY) --transport $(TRANSPORT) --sessions $(SESSIONS) --batches $(BATCHES) --spark-lines $(SPARK_LINES) --ui $(UI) --seed $(SEED)

outage: .make/python .make/node  ## take the store away for 40 s under load, kill hosts, and wait until everything has healed by itself (up to 13 minutes)
	$(PYTHON) -m demo.outage

soak: .make/python .make/amqp .make/node  ## shots for MINUTES on both transports, with kills, throttling, splits, audits and clean-ups; writes docs/soak.md
	$(PYTHON) -m demo.soak --minutes $(MINUTES)

upgrade: .make/python .make/node  ## replace hosts of an earlier version one by one under load, roll back, and forward again: FROM=v0.1.0
	@test -n '$(FROM)' || { echo 'Say which version to upgrade from: make upgrade FROM=<tag or commit>'; exit 1; }
	$(PYTHON) -m demo.upgrade $(FROM)

test: check pytest  ## what a change needs: checks, and all quick tests; fails while verdicts of slow ones are due

verify: .make/python .make/amqp .make/node .make/go  ## the slow tests whose verdicts are due, and no others; writes verdicts.json, file by file; goes on where it was interrupted: TESTS
	CI=true $(PYTHON) -m pytest -p devtools.verdicts --verdicts=due $(ACROSS) $(TESTS)  # What cannot be tried has no verdict.

verify-all: .make/python .make/amqp .make/node .make/go  ## all tests, whatever their verdicts say, and a thousand new examples for each property (an hour)
	CI=true $(PYTHON) -m pytest -p devtools.verdicts --verdicts=anew --hypothesis-profile=nightly $(ACROSS) $(TESTS)

quick: .make/python  ## types, and the unit tests that import what changed since main (a minute at most)
	$(PYTHON) -m mypy
	$(PYTHON) -m devtools.affected tests/unit | xargs -r $(PYTHON) -m pytest -q --numprocesses auto --dist worksteal

budgets: .make/python .make/amqp .make/node  ## processor time of every suite, with its budget of CONTRIBUTING.md (a quarter of an hour)
	$(PYTHON) -m devtools.budgets

check: .make/python  ## formatting, lint, types, import rules
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	.venv/bin/lint-imports

pytest: .make/python .make/amqp .make/node
	$(PYTHON) -m pytest -p devtools.verdicts $(ACROSS)

test-busy: .make/python .make/amqp .make/node  ## the tests of a change on a slow machine: beside BUSY=8 busy loops of the same low priority, which end with them
	@nice sh -c 'for loop in $$(seq $(BUSY)); do while :; do :; done & loops="$$loops $$!"; done; \
		trap "kill $$loops" EXIT; trap "exit 130" INT TERM; $(PYTHON) -m pytest -p devtools.verdicts $(ACROSS) $(TESTS)'

cover: .make/python .make/amqp .make/node  ## which lines and branches the tests of the library run; fails below the floor of pyproject.toml
	$(PYTHON) -m pytest tests/unit tests/contract --numprocesses auto --dist worksteal --cov

model: .make/python  ## explore the large scenarios and all mutants too; goes on where it was interrupted (an hour)
	$(PYTHON) -m verification.checker --large
	$(PYTHON) -m verification.mutants
	$(PYTHON) -m verification.mutants.hosting

simulate: .make/python  ## simulate SECONDS of random trouble on a virtual clock: SECONDS=600 SEED MESSAGES TWIN=name
	$(PYTHON) -m verification.simulation --seconds $(SECONDS) --seed $(SEED) --messages $(MESSAGES) --twin '$(TWIN)'

fuzz: .make/python  ## 10,000 malformed messages, requests and documents; 100,000 fuzzed queries, as many whose answers are compared, thousands of races, a long model-based run against the local Cosmos
	EXACTLYONCE_BAD_INPUTS=10000 $(PYTHON) -m pytest tests/unit/hosting/test_bad_input_at_scale.py
	EXACTLYONCE_SCENES=300 EXACTLYONCE_STATES=5000 $(PYTHON) -m pytest tests/unit/testing/test_explore_is_right.py
	LOCAL_COSMOS_FUZZ=100000 $(PYTHON) -m pytest $(UNLIMITED) packages/local-cosmos/local_cosmos_tests/test_fuzz.py packages/local-cosmos/local_cosmos_tests/test_query_answers.py
	LOCAL_COSMOS_ROUNDS=3000 $(PYTHON) -m pytest $(UNLIMITED) packages/local-cosmos/local_cosmos_tests/test_concurrency.py
	LOCAL_COSMOS_RUNS=1000 $(PYTHON) -m pytest $(UNLIMITED) packages/local-cosmos/local_cosmos_tests/test_model.py

dist: .make/python  ## build the wheels of all distributions into dist, and try them in an empty environment
	$(PYTHON) -m devtools.distributions

docs: .make/locks/docs.txt  ## build the documentation site, with the API from the docstrings, into docs/_build; a dead link or a name that is not there fails
	$(BASE_PYTHON) -m venv --clear .make/venv-docs
	.make/venv-docs/bin/pip $(INSTALL) -r .make/locks/docs.txt
	PYTHONPATH=. .make/venv-docs/bin/python -m sphinx --fail-on-warning --keep-going --quiet --conf-dir docs . docs/_build

bench: .make/python .make/amqp .make/node  ## measure costs, growth, throughput, CPU, and the local Cosmos next to another one (40 minutes on a quiet machine); results go to benchmarks/results
	$(PYTHON) -m benchmarks.local_cosmos
	$(PYTHON) -m benchmarks.cost
	$(PYTHON) -m benchmarks.answers
	$(PYTHON) -m benchmarks.growth
	$(PYTHON) -m benchmarks.throughput
	$(PYTHON) -m benchmarks.cpu

bench-peers: .make/python .make/node .make/locks/peers.txt  ## the same work by what else a user would pick: PostgreSQL by hand, DBOS, Restate
	$(BASE_PYTHON) -m venv --clear .make/venv-peers
	.make/venv-peers/bin/pip $(INSTALL) -r .make/locks/peers.txt
	PYTHONPATH=packages/function-host:packages/local-cosmos .make/venv-peers/bin/python -m benchmarks.peers

bench-spark: .make/python  ## measure the audit on 10,000 to 1,000,000 records, full and of what changed; results go to benchmarks/results
	$(PYTHON) -m benchmarks.spark

audit-under-load: .make/python  ## audit a system at work for MINUTES, then again while it is cleaned up: nothing may be found; then watch it, and kill the watch
	EXACTLYONCE_AUDIT_MINUTES=$(MINUTES) $(PYTHON) -m pytest $(UNLIMITED) tests/spark/auditor/test_under_load.py tests/spark/auditor/test_watch_under_load.py

test-pythons: .make/node .make/locks/test.txt  ## the library's tests on every Python from 3.10 to 3.13 that is there
	@set -e; for version in 3.10 3.11 3.12 3.13; do \
		command -v python$$version >/dev/null && python$$version -c '' 2>/dev/null || { echo "Python $$version is not there."; continue; }; \
		python$$version -m venv --clear .make/venv-$$version; \
		.make/venv-$$version/bin/pip $(INSTALL) -r .make/locks/test.txt; \
		.make/venv-$$version/bin/python -m pytest -q -p no:cacheprovider tests/unit tests/contract; \
	done

test-spark4: .make/python  ## the Spark jobs on Spark 4.1: transforms, reads and deletes on classic Spark; audit and clean-up with Spark Connect
	$(BASE_PYTHON) -m venv --clear .make/venv-spark4
	.make/venv-spark4/bin/pip $(INSTALL) -r .make/locks/dev.txt
	.make/venv-spark4/bin/pip $(INSTALL) -r locks/spark4.txt
	.make/venv-spark4/bin/python -m pytest -p no:cacheprovider tests/spark/transforms tests/spark/source \
		--ignore-glob '*_connector*.py' --ignore-glob '*_both_adapters.py'  # Their connector is one of Spark 3.5.
	SPARK_REMOTE='local[2,2]' .make/venv-spark4/bin/python -m pytest -p no:cacheprovider $(CONNECT)

test-azure: .make/python  ## the contract suites on real accounts, named by the settings of an app: see CONTRIBUTING.md
	EXACTLYONCE_TEST_AZURE=1 $(PYTHON) -m pytest tests/azure

clean:  ## remove what the commands made
	rm -rf .venv .make node_modules .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage dist docs/_build

# What apps get is resolved by itself, then everything else around it. Spark 4 has only what it does not share with the rest.
lock: .make/python  ## resolve the pinned and hashed dependencies anew (needs uv)
	{ head -1 requirements.txt; uv pip compile pyproject.toml --extra azure $(RESOLVE) --no-annotate; } > .make/requirements.txt && mv .make/requirements.txt requirements.txt
	uv pip compile pyproject.toml packages/function-host/pyproject.toml packages/local-cosmos/pyproject.toml --all-extras \
		$(addprefix --group ,test devtools dev docs peers engine amqp) --constraint requirements.txt $(RESOLVE) --generate-hashes --annotation-style line -o locks/all.txt
	sed -nE '/^pyspark=/d; s/^([a-z0-9-]+==.*[^ \\]) *\\$$/\1/p' locks/all.txt > .make/others.txt
	uv pip compile --no-config --group spark4 $(RESOLVE:3.10=3.11) --generate-hashes --no-annotate -o locks/spark4.txt \
		--constraint .make/others.txt $$(sed -E 's/==.*//; s/^/--no-emit-package /' .make/others.txt)

# Locks name everything, so nothing is resolved: pip's resolver looks at releases that came later, and refuses them for want of a hash.
.make/locks/%.txt: locks/all.txt devtools/locks.py
	@test -n "$(BASE_PYTHON)" || { echo "Python 3.11 or newer is needed; none was found."; exit 1; }
	@mkdir -p $(@D)
	$(BASE_PYTHON) -m devtools.locks $* > $@

.make/python: .make/locks/dev.txt $(PACKAGES:%=%/pyproject.toml)
	$(BASE_PYTHON) -m venv --clear .venv
	.venv/bin/pip $(INSTALL) -r .make/locks/dev.txt
	.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation $(PACKAGES:%=--editable %)  # What builds them is in the lock.
	@touch $@

# Proton is compiled where it is installed. Without a compiler the tests of Service Bus are skipped, and say so.
.make/amqp: .make/locks/amqp.txt .make/python
	@if command -v $(firstword $(CC) cc) >/dev/null; then \
		.venv/bin/pip $(INSTALL) --no-build-isolation -r .make/locks/amqp.txt && touch $@; \
	else \
		echo "The local Service Bus endpoint needs a C compiler (Debian: apt install gcc libc6-dev python3-dev), and there is none."; \
	fi

.make/node: package-lock.json
	@command -v npm >/dev/null || { echo "Node.js 20 or newer with npm is needed; none was found."; exit 1; }
	npm ci --no-progress --loglevel=error
	@mkdir -p .make && touch $@

# The clients for Go are compiled beforehand, which takes long. Without Go their tests are skipped, and say so.
.make/go: $(GO_TESTS:=/go.mod) $(GO_TESTS:=/go.sum)
	@if command -v go >/dev/null; then \
		for project in $(GO_TESTS); do \
			go -C $$project mod download && go -C $$project test -c -o /dev/null . || exit 1; \
		done && mkdir -p .make && touch $@; \
	else \
		echo "The clients for Go are tried with Go 1.23 or newer, and there is none."; \
	fi
