# Every verb sets up what it needs; a second run does no set-up work.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BENCH  := .venv-bench
PEERS  := .venv-bench-samples
LOWEST := .venv-lowest
TRAIN  := .venv-train
STAMP  := $(VENV)/.ready
PYTEST_ARGS ?=

# Spark starts a new Python for each kind of work: let it find our modules compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this page
	@echo "tensorlake_spark: tensors in Delta Lake, read by slices"
	@echo
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) $(VENV)/.quick ## Virtual environment in .venv, packages, and the jars of Spark and of the tests

# $(call environment,FOLDER,CHECK): a virtual environment, or one line that says what is missing.
define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
		{ echo "Python 3.10 or newer is needed: install it, or name it with 'make PYTHON=/path/to/python3'." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) cannot make virtual environments: install its venv module (Debian: apt-get install python3-venv)." >&2; exit 1; }
	@$(or $(2),:)
	$(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --quiet --upgrade pip "setuptools>=77" wheel
endef

$(STAMP): setup.cfg pyproject.toml conf/spark-defaults.conf
	$(call environment,$(VENV),$(PYTHON) tensorlake_spark/spark/session/java.py)
	$(BIN)/python -m pip install --quiet --no-build-isolation -e '.[dev]'
	$(BIN)/python -c 'from tensorlake_spark.spark.session import fetch; fetch()'
	@touch $@

.PHONY: demo
demo: $(STAMP) ## Ingest photographs and flights with Spark, read slices back, check them
	$(BIN)/python jobs/demo.py

.PHONY: demo-samples
demo-samples: $(STAMP) ## A dataset of digits, photographs and drawn shapes: asked, changed, tiled, drawn
	$(BIN)/python examples/samples_demo.py

.PHONY: demo-train
demo-train: $(TRAIN)/.ready ## A network learns digits by the loader, is killed, goes on, and ends with the same loss
	$(TRAIN)/bin/python examples/train_demo.py

# PyTorch is gigabytes, so it has an environment of its own.
$(TRAIN)/.ready: setup.cfg
	$(call environment,$(TRAIN))
	$(TRAIN)/bin/python -m pip install --quiet --no-build-isolation -e '.[torch,images]' 'scikit-learn>=1.5,<2'
	@touch $@

.PHONY: test-torch
test-torch: $(TRAIN)/.tests ## The tests that need PyTorch: DataLoaders, the demo, and from Spark by TorchDistributor
	$(TRAIN)/bin/python -m pytest -m torch tests/loader/frameworks/test_torch_samples.py tests/examples/test_train_demo.py \
		tests/integration/test_s3_loader.py tests/spark/frames/test_rank_loader.py $(PYTEST_ARGS)

$(TRAIN)/.tests: $(TRAIN)/.ready tests/support/s3server.py
	$(TRAIN)/bin/python -m pip install --quiet --no-build-isolation -e '.[torch,images,spark,dtypes,s3]' 'pytest>=8.3,<10' 'pytest-cov>=6,<8' 'hypothesis>=6.112,<7'
	$(TRAIN)/bin/python -c 'import sys; sys.path.insert(0, "tests/support"); import s3server; s3server.fetch()'
	$(TRAIN)/bin/python -c 'from tensorlake_spark.spark.session import fetch; fetch()'
	@touch $@

.PHONY: test
test: $(STAMP) ## Linters and tests, in four processes
	@$(MAKE) --no-print-directory -j 2 -O lint $(VENV)/.quick
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

# Counting lines takes a quarter of Python's time, so it is a verb of its own.
.PHONY: coverage
coverage: override PYTEST_ARGS += --cov --cov-report=term
coverage: test ## The tests, and which lines of the package they reach

# What only tests need: the jars of S3A and of an S3 server, and processes that start fast, as hundreds live for seconds.
$(VENV)/.quick: $(STAMP) tests/support/quick.py tests/support/s3server.py
	$(BIN)/python -c 'import sys; sys.path.insert(0, "tests/support"); import s3server; s3server.fetch()'
	$(BIN)/python -c 'from tensorlake_spark.spark.session import fetch; fetch(s3=True)'
	$(BIN)/python tests/support/quick.py
	@touch $@

.PHONY: test-s3
test-s3: $(STAMP) $(VENV)/.quick ## The tests of lakes, Spark and jobs with all lakes on a local S3 server
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --store s3 \
		tests/lake tests/tensor tests/writing tests/upkeep tests/audit tests/spark tests/jobs tests/delta tests/docs $(PYTEST_ARGS)

# pyarrow 21 reads no null of a list of fixed size, and says so. Two tests need Spark.
.PHONY: test-lowest
test-lowest: $(LOWEST)/.ready ## The tests that need no Spark, with the oldest versions that setup.cfg allows
	$(LOWEST)/bin/python -m pytest -n 2 --dist loadfile -k "not spark and not executors" tests/indexing tests/layouts tests/golden tests/tensor \
		tests/upkeep tests/ops tests/computing tests/columns tests/rows tests/reading tests/writing tests/datasets tests/loader \
		tests/query --ignore tests/query/views/test_view_values.py \
		--deselect 'tests/query/views/test_materialization.py::test_what_links_lead_to_is_copied_in[True]' \
		--deselect tests/datasets/sources/tables/test_hf_parquet.py::test_a_null_among_tensors_of_arrow_is_one \
		tests/properties/test_lake_machine.py tests/delta/log/test_rules.py tests/delta/log/test_actions.py \
		tests/delta/files/test_corruption.py tests/lake/test_lake.py tests/lake/test_lake_sparse.py \
		--deselect 'tests/datasets/derived/test_dataset_copy.py::test_lists_of_links_are_fetched[True]' $(PYTEST_ARGS)

$(LOWEST)/.ready: setup.cfg tests/lowest.txt
	$(call environment,$(LOWEST))
	$(LOWEST)/bin/python -m pip install --quiet --no-build-isolation -e . -r tests/lowest.txt
	@touch $@

.PHONY: s3
s3: $(STAMP) ## An S3 server on this machine until Ctrl-C; says how to reach it
	@$(BIN)/python tests/support/s3server.py

.PHONY: lint
lint: $(STAMP) ## ruff, mypy, import-linter and bandit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive tensorlake_spark pyspark_tensorlake jobs

.PHONY: format
format: $(STAMP) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: soak
soak: $(STAMP) $(VENV)/.quick ## Long runs that `make test` leaves out, and property tests with ten times the examples
	$(BIN)/python -m pytest -m soak $(PYTEST_ARGS)
	$(BIN)/python -m pytest -m hypothesis --hypothesis-profile=thorough $(PYTEST_ARGS)

.PHONY: pictures
pictures: $(STAMP) ## Draw the pictures of the documentation again, in docs/pictures
	@for script in docs/pictures/*.py; do $(BIN)/python "$$script" || exit 1; done

.PHONY: golden
golden: $(STAMP) ## Write the golden tables that are not there yet; never changes one
	$(BIN)/python tests/golden/make.py

.PHONY: bench-dense
bench-dense: $(BENCH)/.ready ## Dense benchmark beside Zarr, TensorStore, TileDB and Lance
	$(BENCH)/bin/python tests/benchmarks/dense.py $(BENCH_ARGS)

.PHONY: bench-sparse
bench-sparse: $(BENCH)/.ready ## Sparse benchmark beside TileDB, Parquet, .npz and .pt
	$(BENCH)/bin/python tests/benchmarks/bench_sparse.py $(BENCH_ARGS)

.PHONY: bench-columns
bench-columns: $(BENCH)/.ready ## Columns for learning: codecs, quantisation, sequences, wide tables and digests, beside their peers
	$(BENCH)/bin/python tests/benchmarks/bench_codecs.py
	$(BENCH)/bin/python tests/benchmarks/quantization.py
	$(BENCH)/bin/python tests/benchmarks/sequences.py
	$(BENCH)/bin/python tests/benchmarks/wide.py
	$(BENCH)/bin/python tests/benchmarks/digests.py

.PHONY: bench-operations
bench-operations: $(BENCH)/.ready $(STAMP) ## Operations on sparse tensors beside SciPy, sparse, GraphBLAS, pyttb, and PyTorch where it is installed; on stored ones; by Spark
	$(BENCH)/bin/python tests/benchmarks/bench_operations.py $(BENCH_ARGS)
	$(BENCH)/bin/python tests/benchmarks/stored_operations.py
	$(BIN)/python tests/benchmarks/spark_operations.py

.PHONY: bench-parameters
bench-parameters: $(BENCH)/.ready ## Parameter study; writes docs/parameters.md
	$(BENCH)/bin/python tests/benchmarks/parameters.py $(BENCH_ARGS)

.PHONY: bench-spark
bench-spark: $(STAMP) ## Spark: ingestion and reads beside plain Delta and Parquet, one and two workers
	$(BIN)/python tests/benchmarks/bench_spark.py $(BENCH_ARGS)

.PHONY: bench-s3
bench-s3: $(STAMP) $(BENCH)/.ready ## S3: round trips and times of reads and writes beside Zarr, TensorStore and TileDB
	$(BIN)/python -c 'import sys; sys.path.insert(0, "tests/support"); import s3server; s3server.fetch()'
	$(BENCH)/bin/python tests/benchmarks/bench_s3.py $(BENCH_ARGS)
	$(BENCH)/bin/python tests/benchmarks/s3_writes.py

.PHONY: bench-samples
bench-samples: $(STAMP) $(PEERS)/.ready ## Datasets of JPEG files beside Deep Lake, Lance, MDS, WebDataset and Hugging Face
	$(BIN)/python -c 'import sys; sys.path.insert(0, "tests/support"); import s3server; s3server.fetch()'
	$(PEERS)/bin/python tests/benchmarks/bench_samples.py $(BENCH_ARGS)

.PHONY: bench-loader
bench-loader: $(STAMP) $(PEERS)/.ready ## The loader beside Deep Lake, Lance, MDS, LitData, WebDataset, Hugging Face and PyTorch's own
	$(BIN)/python -c 'import sys; sys.path.insert(0, "tests/support"); import s3server; s3server.fetch()'
	$(PEERS)/bin/python tests/benchmarks/bench_loader.py $(BENCH_ARGS)

.PHONY: bench-query
bench-query: $(STAMP) $(PEERS)/.ready ## Queries beside DuckDB, Spark SQL, NumPy by hand, Deep Lake and LanceDB
	$(PEERS)/bin/python tests/benchmarks/bench_query.py $(BENCH_ARGS)

.PHONY: bench-many
bench-many: $(STAMP) ## 10,000 small tensors written one by one: each write, a listing, opening one
	$(BIN)/python tests/benchmarks/many_tensors.py $(BENCH_ARGS)

.PHONY: bench-scale
bench-scale: $(STAMP) ## The Delta log with up to 100,000 files, and what follows for 100 TB of tensors and 1 PB of samples
	$(BIN)/python tests/benchmarks/scale.py $(BENCH_ARGS)
	$(BIN)/python tests/benchmarks/scale_samples.py $(BENCH_ARGS)

$(PEERS)/.ready: setup.cfg pyproject.toml
	$(call environment,$(PEERS))
	$(PEERS)/bin/python -m pip install --quiet --no-build-isolation -e '.[bench-samples]'
	@touch $@

$(BENCH)/.ready: setup.cfg pyproject.toml
	$(call environment,$(BENCH))
	$(BENCH)/bin/python -m pip install --quiet --no-build-isolation -e '.[bench]'
	@touch $@

.PHONY: dist
dist: $(STAMP) ## A wheel, and the same as one archive for spark-submit --py-files, in dist
	rm -rf dist build
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .
	rm -rf build *.egg-info
	@# A wheel of pure Python is such an archive already; --py-files goes by the ending of its name.
	@for wheel in dist/*.whl; do cp "$$wheel" "$${wheel%-py3-none-any.whl}.zip"; done
	@ls dist/*

.PHONY: clean
clean: ## Remove what the other verbs made
	rm -rf $(VENV) $(BENCH) $(PEERS) $(LOWEST) $(TRAIN) build dist demo-output bench-output .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage \
		spark-warehouse *.egg-info
