# Every command of this project. A fresh machine needs only make and Python 3.10 or later, with its venv module.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Without bytecode of modules that nobody imports: half of the time of an installation. An import writes it, also in
# containers whose environment forbids that: each process of a test would compile all modules again.
INSTALL := $(PIP) install --no-compile
unexport PYTHONDONTWRITEBYTECODE
DEMO := out/demo
DATA ?= ../shared/data
TEMPLATE_PAGES := benchmarks/work/templates.jsonl.zst
TEXT ?= $(wildcard $(DATA)/en_*/data.jsonl.*) $(DATA)/zh_laws/data.jsonl.zst
SCALE ?= --gigabytes 30 --documents 100000000 --fingerprints 1000000000 --alike 50000 100000 200000 400000
EXAMPLES := $(wildcard examples/data/*.parquet examples/data/*.jsonl.zst)

.PHONY: help demo notebooks test test-all test-times test-versions lint docs write-docs format bench bench-simhash bench-minhash \
	bench-index bench-service bench-online bench-pages bench-contamination bench-audit bench-passages bench-scale bench-processors bench-vectors accuracy pictures \
	site release-check wheel clean
.DELETE_ON_ERROR:

help:  ## list these commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

demo: $(VENV)/package.stamp  ## remove the near-duplicates of the collections in examples/data
	@echo "The first run compiles the kernels for this processor, which takes about five seconds."
	$(BIN)/neardup dedup $(EXAMPLES) -o $(DEMO) --overwrite
	@echo
	@echo "Open the report in a browser: $(DEMO)/report.html"

test: $(VENV)/test.stamp  ## run the quick tests: about three minutes
	$(BIN)/python -m pytest

test-all: $(VENV)/test.stamp $(VENV)/pipelines.stamp $(VENV)/spark.stamp $(VENV)/notebooks.stamp  ## run all tests: also the slow ones, and with larger data
	$(BIN)/python -m pytest --thorough --numprocesses 3 --dist loadfile

test-nightly: $(VENV)/test.stamp  ## run every property on examples that are drawn anew: half an hour
	$(BIN)/python -m pytest --nightly -m "hypothesis and not timing"

test-times: $(VENV)/test.stamp  ## run the tests that compare times: on a machine that does nothing else
	$(BIN)/python -m pytest -m timing

test-versions:  ## run the quick tests with the lowest declared versions of the dependencies, and with the newest
	PYTHON=$(PYTHON) .ci/versions lowest
	PYTHON=$(PYTHON) .ci/versions newest

lint: $(VENV)/test.stamp $(VENV)/lint.stamp  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file benchmarks/mypy.ini

format: $(VENV)/lint.stamp  ## format the code
	$(BIN)/ruff format .

docs: $(VENV)/test.stamp $(VENV)/spark.stamp $(VENV)/notebooks.stamp  ## run the code in the docs, the README, the docstrings and the examples; check the generated pages
	$(BIN)/python tools/make_cli_docs.py --check
	$(BIN)/python tools/make_api_docs.py --check
	$(BIN)/python tools/make_http_docs.py --check
	$(BIN)/python tools/make_engine_docs.py --check
	$(BIN)/python -m pytest --thorough tests/test_docs.py tests/test_examples.py

write-docs: $(VENV)/test.stamp $(VENV)/spark.stamp $(VENV)/notebooks.stamp  ## generate docs/command-line.md, api.md, http.md and what-works-where.md from the code
	$(BIN)/python tools/make_cli_docs.py
	$(BIN)/python tools/make_api_docs.py
	$(BIN)/python tools/make_http_docs.py
	$(BIN)/python tools/make_engine_docs.py

site: $(VENV)/site.stamp  ## build the documentation as a web site in out/site; fails on broken links
	rm -rf out/site
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html -d out/site-cache -c tools/site . out/site

pictures: $(VENV)/package.stamp  ## make the pictures of the README in docs/pictures, with a headless Chromium
	$(BIN)/python tools/make_pictures.py

notebooks: $(VENV)/notebooks.stamp  ## run the notebooks in examples/notebooks and store their output
	$(BIN)/python tools/run_notebooks.py

bench: $(VENV)/test.stamp  ## run the benchmark of whole runs: more than an hour, see benchmarks/README.md
	$(BIN)/python benchmarks/run.py --neardup "$(BIN)/neardup" $(BENCH)

bench-simhash: $(VENV)/test.stamp  ## run the benchmark of SimHash: a quarter of an hour, see benchmarks/README.md
	$(BIN)/python benchmarks/run_simhash.py $(BENCH)

bench-minhash: $(VENV)/test.stamp  ## run the benchmark of MinHash signatures and LSH: some minutes, see benchmarks/README.md
	$(BIN)/python benchmarks/run_minhash.py $(BENCH)

bench-index: $(VENV)/test.stamp  ## run the benchmark of the durable index: a quarter of an hour, see benchmarks/README.md
	$(BIN)/python benchmarks/run_index.py $(BENCH)

bench-service: $(VENV)/test.stamp  ## run the HTTP service under load: some minutes, see benchmarks/README.md
	$(BIN)/python benchmarks/run_service.py $(BENCH)

bench-online: $(VENV)/test.stamp  ## add a few documents at a time, beside datasketch and RocksDB: some minutes, see benchmarks/README.md
	$(BIN)/python benchmarks/online.py $(BENCH)

bench-pages: $(VENV)/test.stamp  ## run the benchmark of web pages: some minutes, see benchmarks/README.md
	$(BIN)/python benchmarks/run_pages.py --data "$(DATA)/html_sites" $(BENCH)

bench-contamination: $(VENV)/test.stamp  ## measure which test items are found in a corpus: two minutes, see benchmarks/README.md
	$(BIN)/python benchmarks/run_contamination.py --data "$(DATA)" $(BENCH)

bench-audit: $(VENV)/test.stamp  ## audit the removals of other packages at their default settings: half an hour, see benchmarks/README.md
	$(BIN)/python benchmarks/run_audit.py "$(DATA)" --results benchmarks/results/audit.md $(BENCH)

bench-passages: $(VENV)/test.stamp  ## cut repeated passages and check the answer by a suffix array: two minutes, see benchmarks/README.md
	-$(PIP) install --requirement benchmarks/requirements-passages.txt
	$(BIN)/python benchmarks/run_passages.py --data "$(DATA)" $(BENCH)

bench-scale: $(VENV)/test.stamp  ## run 30 GB of text, 100 million documents, a billion fingerprints: hours; TEXT= files of real text
	$(BIN)/python benchmarks/run_scale.py --text $(TEXT) $(SCALE) $(BENCH)

bench-processors: $(VENV)/test.stamp  ## forecast a run on 1 to 64 processors from one with more threads than processors; TEXT= files of real text
	$(BIN)/python benchmarks/run_processors.py $(TEXT) $(BENCH)

bench-vectors: $(VENV)/test.stamp  ## compare vectors with faiss and semhash: four minutes, see benchmarks/README.md
	$(BIN)/python benchmarks/run_vectors.py $(BENCH)

accuracy: $(VENV)/accuracy.stamp $(TEMPLATE_PAGES)  ## fill the tables of benchmarks/results/accuracy-*.md from the labelled sets in DATA; TOOLS=measure_methods for some
	$(BIN)/python tools/fill_tables.py "$(DATA)" $(TOOLS)

wheel: $(VENV)/pip.stamp  ## build dist/*.whl
	$(PIP) wheel --no-deps --wheel-dir dist .

release-check: $(VENV)/release.stamp  ## build dist/, check it, and run the demo with the wheel in a new environment
	rm -rf dist out/release
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv out/release
	$(subst $(VENV),out/release,$(PIP)) install dist/*.whl
	$(subst $(VENV),out/release,$(BIN))/neardup dedup $(EXAMPLES) -o out/release/demo --quiet
	test -s out/release/demo/report.html

clean:  ## delete everything that these commands made, except the corpora in benchmarks/work
	rm -rf $(VENV) benchmarks/.venv-* out build dist .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find src tests tools examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pip.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "neardup needs Python 3.10 or later. Run make PYTHON=python3.11, or whichever is installed."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade "pip>=25.1"
	@touch $@

$(VENV)/package.stamp: $(VENV)/pip.stamp pyproject.toml
	$(INSTALL) --editable .
	@touch $@

$(VENV)/test.stamp: $(VENV)/package.stamp
	$(INSTALL) --group test
	@touch $@

$(VENV)/pipelines.stamp: $(VENV)/test.stamp  # without Scrapy or datatrove, their tests are skipped
	-$(INSTALL) --group pipelines
	@touch $@

$(VENV)/spark.stamp: $(VENV)/test.stamp  # without PySpark or Java, the tests of Spark are skipped
	-$(INSTALL) --group spark
	@touch $@

$(VENV)/release.stamp: $(VENV)/pip.stamp
	$(INSTALL) --group release
	@touch $@

$(VENV)/site.stamp: $(VENV)/package.stamp
	$(INSTALL) --group site
	@touch $@

$(VENV)/notebooks.stamp: $(VENV)/test.stamp
	$(INSTALL) --group notebooks
	@touch $@

$(VENV)/accuracy.stamp: $(VENV)/package.stamp
	$(INSTALL) --group accuracy
	@touch $@

$(TEMPLATE_PAGES): tools/make_template_pages.py benchmarks/requirements-templates.txt
	$(PYTHON) -m venv benchmarks/.venv-templates
	benchmarks/.venv-templates/bin/python -m pip --quiet install --requirement benchmarks/requirements-templates.txt
	benchmarks/.venv-templates/bin/python tools/make_template_pages.py

$(VENV)/lint.stamp: $(VENV)/pip.stamp pyproject.toml
	$(INSTALL) --group lint
	@touch $@
