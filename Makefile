PY ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: venv tour test check bench docs clean

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PY) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

tour: venv
	$(BIN)/agentctl tour

check: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/python -m compileall -q src graphs sandbox_tools fixtures
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(BIN)/python -m pytest -p xdist -n auto --dist loadgroup --no-loadscope-reorder

bench: venv
	$(BIN)/python -m benchmarks.bench

docs: venv
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.field_reports

clean:
	rm -rf $(VENV) build dist .agentctl
