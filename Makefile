# `make demo`: from a fresh machine to a first proven answer.  `make test`: everything that must hold before a change lands.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test lint bench accuracy-table gallery schema studies clean

demo: $(INSTALLED)
	$(BIN)/solve instances/quickstart.yaml

test: lint
	$(BIN)/pytest -q -n 2

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

schema: $(INSTALLED)
	$(BIN)/python -m instances.editors > instances/codesign.schema.json

bench: $(INSTALLED)
	$(BIN)/python -m tests.benchmarks

accuracy-table: $(INSTALLED) # make accuracy-table TRAINING=runs.csv FURTHER=others.csv; neither file comes with the project
	$(BIN)/python -m tests.benchmarks.rival_models $(TRAINING) $(if $(FURTHER),--further $(FURTHER)) --out reports/gallery/accuracy.md

gallery: $(INSTALLED) # the reports that tests draw again, byte for byte
	$(BIN)/crossopt solve instances/quickstart.yaml --out reports/gallery/quickstart.json
	for name in quickstart joint-vs-single-layer logic-memory-network-scaling; do \
	    $(BIN)/crossopt report reports/gallery/$$name.json --out reports/gallery/$$name.html || exit 1; done

studies: $(INSTALLED) # some minutes: the studies that come along, with their runs, pages and tables
	$(BIN)/python -m tests.benchmarks.studies

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
