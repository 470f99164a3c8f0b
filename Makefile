# Two commands do everything: `make quickstart` and `make test`. Both make what they need.
PYTHON ?= python3
# Any torch that the package allows will do; on a machine without a GPU take a CPU build, it is 10 times smaller:
#   make quickstart TORCH="torch==2.13.0 --index-url <PyTorch's index of CPU wheels>"
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
VLLM := .venv-vllm/.ocria-complete

.PHONY: quickstart test lint types check measure clean help

help:
	@echo "make quickstart   make both environments, quantize the bundled model, verify it, read three pages with vLLM"
	@echo "make test         make both environments and run every test, vLLM included"
	@echo "make lint types   ruff, mypy"
	@echo "make measure      make docs/measurements.md's figures of the bundled model again"

$(BIN)/.complete: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or later is needed: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[dev]"
	$(BIN)/python -c 'import torch; print("torch", torch.__version__)'
	touch $@

$(VLLM): $(BIN)/.complete $(wildcard ocria_compress/serving/requirements-*.txt)
	$(BIN)/ocria-compress doctor --install-vllm

quickstart: $(BIN)/.complete $(VLLM)
	$(BIN)/ocria-compress quantize --model mini --recipe fp8 --out exports/mini-fp8 --overwrite
	$(BIN)/ocria-compress verify exports/mini-fp8 --count 3

test: $(BIN)/.complete $(VLLM)
	$(BIN)/python -m pytest

lint: $(BIN)/.complete
	$(BIN)/ruff check .

types: $(BIN)/.complete
	$(BIN)/mypy

check: lint types test

measure: $(BIN)/.complete $(VLLM)
	$(BIN)/python -m tools.measure_mini --write

clean:
	rm -rf $(VENV) .venv-vllm .pytest_cache .mypy_cache .ruff_cache dist build
