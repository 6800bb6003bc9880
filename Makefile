# `make demo`: from a fresh machine to a first proven answer.  `make test`: what every change is held to.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BASE := $(VENV)/.base
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
export PYTHONDONTWRITEBYTECODE := # tests start hundreds of processes, each of which would compile all modules anew

.PHONY: demo test test-marked test-all lint compiled bench bench-placement hunt accuracy-table published-plans gallery pages schema reference studies docs clean

demo: $(BASE) # without the packages that only tests need, which `make test` adds
	$(BIN)/solve instances/quickstart.yaml

MARKED := process or browser or docs or course or data or thorough
test: $(INSTALLED) # types are checked beside the compiler, as each of them keeps one core busy for the better part of a minute
	$(MAKE) -j2 lint compiled
	$(BIN)/pytest -q -n 2 -m "not ($(MARKED) or slow)"

test-marked: $(INSTALLED) # what `make test` leaves out, but for the slow tests
	$(BIN)/pytest -q -n 3 -m "($(MARKED)) and not slow" # one more than two cores: these wait for clocks and for processes

test-all: export CROSSOPT_EXAMPLES := full
test-all: $(INSTALLED) # everything, with all drawn examples: some hours
	$(MAKE) -j2 lint compiled
	$(BIN)/pytest -q -n 3 -m ""

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	mkdir -p $(VENV)/typing && ln -sfn "$(CURDIR)" $(VENV)/typing/crossopt
	$(BIN)/mypy

compiled: $(INSTALLED) # once, ahead of tests that would do it side by side; a fresh clone has none of its tests compiled
	$(BIN)/crossopt compile
	test -d tests/__pycache__ || $(BIN)/pytest --collect-only -qq > /dev/null || true # what is wrong is said when they run

schema reference: $(INSTALLED) # the JSON schemas of all files that are read; the tables of keys are made with the site
	$(BIN)/python -m crossopt.instances.schema_export instances

bench: $(INSTALLED)
	$(BIN)/python -m tests.benchmarks

bench-placement: $(INSTALLED) # make bench-placement GRAPHS=folder SECONDS=60, or GROWTH=1 for generated graphs
	$(BIN)/python -m tests.benchmarks.placements $(if $(GROWTH),--growth,--optimum) --seconds $(or $(SECONDS),60) $(GRAPHS)

hunt: $(INSTALLED) # hours: make hunt SECONDS=36000 SEED=7; looks for false proofs, and for files that break a command
	$(BIN)/python -m tests.hunt --seconds $(or $(SECONDS),3600) --seed $(or $(SEED),1)

accuracy-table: $(INSTALLED) # make accuracy-table TRAINING=runs.csv FURTHER=others.csv KERNELS=folder; none of them comes with the project
	$(BIN)/python -m tests.benchmarks.rival_models $(TRAINING) $(if $(FURTHER),--further $(FURTHER)) $(if $(KERNELS),--kernels $(KERNELS)) \
		--out reports/gallery/accuracy.md

published-plans: $(INSTALLED) # public training plans beside their proven optima: nine minutes where the model changed, else seconds
	$(BIN)/python -m tests.benchmarks.published_plans

SHOWN := quickstart gpt3-175b-pathfinding-large llama3-405b-1024xh100 placement/gpt3-13b-on-8 network/three-models-4096 \
	network/all-reduce-torus network/gather-two-boxes traces/two-weeks-of-work traces/a-third-of-a-step

gallery: $(INSTALLED) # find the results of the gallery anew, and draw their pages
	for name in $(SHOWN); do $(BIN)/crossopt solve instances/$$name.yaml --out reports/gallery/$$(basename $$name).json; done
	$(BIN)/crossopt solve instances/gpt3-175b-pathfinding-7nm.yaml --engine milp --out reports/gallery/gpt3-175b-pathfinding-7nm.json
	$(MAKE) pages

PAGES := $(CURDIR)/build/gallery
pages: $(INSTALLED) # pages of the saved results, which the site shows
	mkdir -p $(PAGES)
	cd reports/gallery && for result in *.json; do $(CURDIR)/$(BIN)/crossopt report $$result --out $(PAGES)/$${result%.json}.html; done
	cd reports/gallery && $(CURDIR)/$(BIN)/crossopt report gpt3-175b-pathfinding-*.json --out $(PAGES)/compared.html

studies: $(INSTALLED) # some minutes: the studies that come along, with their runs, pages and tables
	$(BIN)/python -m tests.benchmarks.studies

$(BASE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile --editable .
	touch $@

$(INSTALLED): $(BASE)
	$(PIP) --editable '.[dev]'
	touch $@

docs: pages # the site, in build/site: any broken link or anchor is an error
	$(PIP) --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict --site-dir build/site

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
