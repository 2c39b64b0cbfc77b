# Each target sets itself up on a fresh machine: Python 3.11 or newer and make are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Machines without a GPU save gigabytes with a CPU build of torch, see the README.
PIP_ARGS ?=
# Compiled modules are kept: the tests start many processes, which would compile everything again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test docs check mutants hostile bench bench-selection bench-pace bench-aggregation bench-growth bench-cost bench-diagnoses bench-near-settings bench-engines bench-policy new-selector clean

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing torch, lightning, mlflow and the rest into $(VENV): some minutes"
	$(BIN)/pip install --quiet $(PIP_ARGS) --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/pip install --quiet $(PIP_ARGS) --constraint constraints.txt --editable ".[test]"
	touch $@

$(VENV)/.installed-mutants: $(VENV)/.installed-test
	$(BIN)/pip install --quiet $(PIP_ARGS) --constraint constraints.txt --editable ".[mutants]"
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed-test
	$(BIN)/pip install --quiet $(PIP_ARGS) --constraint constraints.txt --editable ".[docs]"
	touch $@

demo: $(VENV)/.installed  ## FLASH and random on digits, same seed
	$(BIN)/fedcohort demo

test: $(VENV)/.installed-test  ## the whole suite, in two processes of one thread; make test T="tests/laws -k mine" for a part
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(T)

docs: $(VENV)/.installed-docs  ## the documentation site, in build/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

check: docs  ## style, types, import rules, language and size (see tests/lints), and the documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cd tests && PYTHONPATH=. ../$(BIN)/python -m lints

mutants: $(VENV)/.installed-mutants  ## do the tests notice planted faults? F: files or folders (else those changed since main), N=100 SEED=0: a sample
	OMP_NUM_THREADS=1 nice $(BIN)/python tests/mutants.py --number $(or $(N),0) --seed $(or $(SEED),0) $(F)

hostile: $(VENV)/.installed-test  ## does bad input end in a clear message? KIND=tables for one kind (tests/hostile/<kind>.py)
	cd tests && PYTHONPATH=.:../src OMP_NUM_THREADS=1 ../$(BIN)/python -m hostile $(KIND)

bench: $(VENV)/.installed-test  ## against bare PyTorch loops, interleaved
	$(BIN)/python benchmarks/run.py

bench-selection: $(VENV)/.installed-test  ## what choosing costs, up to 100,000 clients
	$(BIN)/python benchmarks/selection.py

bench-pace: $(VENV)/.installed-test  ## what a round's deadline and devices cost, with 100,000 clients
	$(BIN)/python benchmarks/pace.py

bench-growth: $(VENV)/.installed-test  ## what a larger population costs, up to 1,000,000 clients
	$(BIN)/python benchmarks/growth.py

bench-cost: $(VENV)/.installed-test  ## processor time of a run besides its training
	$(BIN)/python benchmarks/run_cost.py

bench-diagnoses: $(VENV)/.installed-test  ## what diagnoses find, against the truth (FASHION_MNIST=folder UCI_HAR=folder)
	$(BIN)/python benchmarks/diagnoses.py

bench-near-settings: $(VENV)/.installed-test  ## measure the settings of studies for pages of diagnoses (the same, and CIFAR10=folder)
	$(BIN)/python benchmarks/near_settings.py
	PYTHONPATH=src:tests $(BIN)/python -m whole.test_near_settings_claims

bench-policy: $(VENV)/.installed-test  ## how often the intervals of fedcohort evaluate-policy cover
	$(BIN)/python benchmarks/policy_evaluation.py

bench-engines: $(VENV)/.installed-test  ## processor time of local training by engine
	$(BIN)/python benchmarks/engines.py

bench-aggregation: $(VENV)/.installed-test  ## what aggregating costs, against one weighted sum
	$(BIN)/python benchmarks/aggregation.py

new-selector: $(VENV)/.installed  ## make new-selector NAME=mine
	@test -n "$(NAME)" || { echo "usage: make new-selector NAME=mine"; exit 2; }
	$(BIN)/fedcohort new selector $(NAME)

clean:
	rm -rf $(VENV) build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
