# make demo   install and show K3 running      make test   install and run the tests
# make check  format, lint, types, layers, sizes, names in the docs
.DEFAULT_GOAL := demo
.PHONY: setup setup-demo demo check test coverage slow bench figures golden
.NOTPARALLEL:

BIN := .venv/bin

setup:
	@tools/setup.sh vision,train,serve,prove,test,dev

setup-demo:
	@tools/setup.sh vision

demo: setup-demo
	@$(BIN)/python tools/demo.py

check: setup
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python tools/sizes.py
	@$(BIN)/python tools/check_names.py

test: setup
	@tools/test.sh

# The same run with the share of lines that it reaches: at least 90 %.
coverage: setup
	@tools/test.sh --cov --cov-report=term:skip-covered --cov-fail-under=90

# Long evidence: training, memory, big shapes. At most an hour.
slow: setup
	@$(BIN)/python -m pytest -m slow

# Speeds beside the machine's limits, with 1 and 2 threads: rows for benchmarks/RESULTS.md.
bench: setup
	@$(BIN)/python benchmarks/all.py

# The other figures that the documents quote.
figures: setup
	@for file in baselines enclose independence kill_table memory mx peers roof sandbox \
	serve speculate speed; do echo "== $$file"; $(BIN)/python benchmarks/$$file.py || exit 1; done

# The released model's numbers, tensor by tensor.
golden: setup
	@$(BIN)/k3 compare tests/golden/tiny_release tests/golden/tiny_release/golden.npz
	@$(BIN)/k3 compare - tests/golden/text14.npz
