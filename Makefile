# Two commands are all a newcomer needs: `make demo` and `make test`. Each makes .venv itself, once.

PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null)
BIN := .venv/bin
MINUTES ?= 0
PORT ?= 7070
RUN ?= python -m
# One worker more than there are cores: a fifth of the time of the fast tests is waiting.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
SPREAD ?= -n $(WORKERS) --dist loadfile
SEED := $(or $(SEED),$(shell $(PYTHON) -c "import random; print(random.randrange(2**32))"))
EXPLORE ?= 4
UPGRADE ?= --upgrade
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock" $(UPGRADE) pyproject.toml --group build
# Sets have one order, whoever runs the tests.
export PYTHONHASHSEED ?= 0
# SQLite waits for the disk at each commit: what the tests write lies in memory where it has 4 GB to spare.
IN_MEMORY := $(shell [ -w /dev/shm ] && [ "$$(df -Pk /dev/shm | awk 'END { print $$4 }')" -gt 4000000 ] && echo /dev/shm || echo /tmp)
unexport PYTHONDONTWRITEBYTECODE # what one process compiled, the next hundreds that the tests start need not

.PHONY: demo test smoke test-all explore check test-browser test-demo test-slow test-days test-network test-interop test-crash test-security \
	test-agentdojo test-model coverage bench bench-start lock clean help

help:
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1 — \2/p' Makefile

demo: .venv/.run ## three SOULs in a small town, with a page to watch them (Ctrl-C ends it)
	$(BIN)/soul demo --minutes $(MINUTES) --port $(PORT)

test explore test-demo test-slow test-days: export TMPDIR ?= $(IN_MEMORY)

test: .venv/.dev ## the fast tests
	$(BIN)/$(RUN) pytest $(SPREAD)

smoke: .venv/.dev ## one short proof of each kind that the fast tests cannot give: demo, browser, room, kill -9, an upgrade, real Git, the sandbox
	bash .ci/need bubblewrap chromium git
	SOUL_NEED_SANDBOX=1 CRASH_KILLS=6 $(BIN)/python -m pytest -m smoke -n 2 --timeout 300

test-all: .venv/.dev ## every test, one command after the other, with a table of minutes and results; goes on after a failure
	bash .ci/test-all

explore: .venv/.dev ## the fast tests in a random order, with new and more examples (SEED=… repeats a run)
	@echo "SEED=$(SEED)"
	EXPLORE=$(EXPLORE) $(BIN)/python -m pytest $(SPREAD) -p randomly --randomly-seed=$(SEED) --hypothesis-seed=$(SEED)

check: .venv/.dev ## lint, types, floors, dead code, structure, file lengths
	bash .ci/check

test-browser: .venv/.dev ## the page, in a real browser
	bash .ci/need chromium
	$(BIN)/python -m pytest -m browser -n 2 --dist loadfile

test-demo: .venv/.dev ## the demo, and the whole program in trouble, as a newcomer and an owner see them
	$(BIN)/python -m pytest tests/soul -m slow -n 2 --dist loadfile --ignore tests/soul/commands --ignore-glob 'tests/soul/test_room_*'; first=$$?; \
		$(BIN)/python -m pytest tests/soul/test_room_*.py -m slow -n 4 && exit $$first

test-slow: .venv/.dev ## what takes more than half a second of a processor, rooms with whole SOULs and a day of ten among it
	bash .ci/need iproute2 git
	$(BIN)/python -m pytest tests -m "slow and not network" $(SPREAD) --timeout 600 --ignore tests/security --ignore-glob 'tests/soul/test_*' \
		--ignore tests/scenarios/test_scenario_room_day.py; first=$$?; \
		$(BIN)/python -m pytest tests/scenarios/test_scenario_room_day.py -m slow -n 0 -s && exit $$first

test-days: .venv/.dev ## fourteen simulated days of five SOULs on Bluesky, and five floods; prints their figures
	bash .ci/need git
	$(BIN)/python -m pytest tests/scenarios -m days -n 2 --dist loadfile -rP

test-network: .venv/.dev ## the contract suite against Bluesky's own server software
	PYTHON=$(BIN)/python bash tests/network/run.sh

test-interop: .venv/.dev ## rooms and members in JavaScript, and GitHub's own description of its interface as judge
	bash .ci/need git
	PYTHON=$(BIN)/python bash tests/interop/run.sh

test-crash: .venv/.dev ## kill -9, a hundred times
	$(BIN)/python -m pytest -m crash -n 2 --dist load -rP

test-security: .venv/.dev ## every attack, in full length: cost, crafted posts, fetching, the sandbox
	bash .ci/need bubblewrap gcc libc6-dev git
	SOUL_NEED_SANDBOX=1 BUDGET_DAYS=$(or $(BUDGET_DAYS),10000) \
		STATE_FILES=$(or $(STATE_FILES),300) OWNER_READS=$(or $(OWNER_READS),60) $(BIN)/python -m pytest tests/security -m "not agentdojo" --timeout 900 $(SPREAD)

test-agentdojo: .venv/.dev ## the AgentDojo attacks, replayed through the tool gate (installs it apart)
	PYTHON="$(PYTHON)" bash tests/security/agentdojo/run.sh

test-model: .venv/.dev ## with a real small language model
	$(BIN)/python tests/model/get_model.py
	$(BIN)/python -m pytest tests/model -m model -rP

bench-start: .venv/.dev ## how soon a command answers and a SOUL looks, as multiples of a bare interpreter
	$(BIN)/python bench/start.py

bench: bench-start ## how fast: start, memory of each further SOUL, memories, a day's share for the cache, a mention, a room of 100; how well an echo is noticed
	$(BIN)/python bench/many.py
	$(BIN)/python bench/memory_search.py
	$(BIN)/python bench/cached_day.py
	$(BIN)/python bench/mention_turn.py
	$(BIN)/python bench/space_load.py
	$(BIN)/python bench/echo.py
	$(BIN)/python -m pytest -m perf

coverage: .venv/.dev ## the fast tests, and branch coverage of the pure parts: at least 90 %
	$(BIN)/coverage erase
	$(MAKE) -s test RUN="coverage run -m"
	bash .ci/coverage

lock: ## renew the pinned versions (needs uv)
	$(COMPILE) -o requirements.lock
	$(COMPILE) --group dev -o requirements-dev.lock
	$(COMPILE) --group dev --group agentdojo -o tests/security/agentdojo/requirements.lock

clean: ## remove what these commands made
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*

.venv/.run: requirements.lock pyproject.toml
	@echo "Installing Python packages into .venv. This happens once and takes one to three minutes."
	bash .ci/venv .venv "$(PYTHON)" "$(UV)" requirements.lock .
	@touch $@

.venv/.dev: requirements-dev.lock pyproject.toml
	@echo "Installing Python packages into .venv. This happens once and takes one to three minutes."
	bash .ci/venv .venv "$(PYTHON)" "$(UV)" requirements-dev.lock .
	@touch $@ .venv/.run
