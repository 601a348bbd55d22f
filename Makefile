# Weir on this machine. `make help` lists what there is; each target installs what it needs.

# STATE is the folder with everything of an installation.
STATE := $(or $(STATE),$(WEIR_STATE))
EXAMPLES ?=
FIGURE ?=
ROLE ?=
SIZE ?=
ARGS ?=
SEED ?=
BASE ?= main

export PYTHONPATH := $(CURDIR)/plugins:$(CURDIR)/examples
export WEIR_TEST_SEED := $(or $(SEED),$(WEIR_TEST_SEED))
export PATH := $(CURDIR)/.venv/bin:$(PATH)
unexport PYTHONDONTWRITEBYTECODE # compiling all tests takes each worker ten seconds
PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest -n 3 --durations=10 --durations-min=1
WEIR := WEIR_STATE="$(or $(STATE),.weir)" $(PYTHON)

.PHONY: help demo test test-changed test-fast test-release test-compose release up down status login psql lock lint house docs pictures api sentences bench soak clean setup
.PHONY: _tests
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup ## a whole story on real flights, from nothing (in STATE=.weir-demo)
	@WEIR_STATE="$(or $(STATE),.weir-demo)" $(PYTHON) -m flights.demo $(ARGS)

test: setup ## all checks and tests, as CI runs them (SEED= draws other random cases, ARGS= for pytest)
	@$(MAKE) --no-print-directory -j2 lint _tests

_tests: # beside lint, most of which is one process
	@$(PYTEST) $(ARGS)

test-changed: setup ## the tests that a change since BASE=main can break, committed or not
	@tests=$$($(PYTHON) -m tests.changed $(BASE)) && $(PYTEST) $$tests $(ARGS)

test-fast: setup ## the tests that need neither a JVM, nor Airflow, nor a server of their own
	@$(PYTEST) -n 4 -m "not (jvm or airflow or server or release or soak)" \
		--ignore=tests/airflow --ignore=tests/acceptance --ignore=tests/annex/alerts --ignore=tests/annex/partitions $(ARGS)

test-release: setup ## what is tried before a release: packaging, compose, and more
	@WEIR_TEST_BUDGET=full $(PYTEST) -m "release or random" $(ARGS)

release: setup ## check that what is committed can be released, run all tests, and build the wheel in dist/
	@$(PYTHON) -m tests.release
	@$(MAKE) --no-print-directory test test-release
	@$(PYTHON) -m tests.release --wheel

test-compose: setup ## start docker-compose.yaml's stack and use it, where there is a container engine
	@$(PYTHON) -m tests.compose_stack || [ $$? -eq 77 ]

up: setup ## start Postgres and Airflow (STATE=.weir; a state left by the demo will do; EXAMPLES=1: with example DAGs)
	@$(WEIR) -P -m weir.local up $(if $(EXAMPLES),$(if $(filter 0,$(EXAMPLES)),--no-examples,--examples))

down: setup ## stop them; the data stays
	@$(WEIR) -P -m weir.local down

status: setup ## say what runs
	@$(WEIR) -P -m weir.local status

login: setup ## print where to log in, with the passwords
	@$(WEIR) -P -m weir.local login

psql: setup ## read the views by SQL (ROLE=owner: change them), and say where other clients find it
	@$(WEIR) -P -m weir.local psql $(if $(ROLE),--role $(ROLE)) $(ARGS)

lint: setup ## format, lint and type checks
	@$(PYTHON) -m ruff check
	@$(PYTHON) -m ruff format --check
	@$(PYTHON) -m mypy plugins spark_jobs dags examples benchmarks docs sql tests

house: setup ## how large the house is: lines by room, floors, statements, words
	@$(PYTHON) -m tests.house

docs: setup ## docs/sql.md from the database's catalogue, docs/python.md from docstrings, and methods.pyi
	@$(PYTHON) -m docs.generate_sql
	@$(PYTHON) -m docs.generate_python

pictures: setup ## docs/images/pages, of the real pages in a real Chromium
	@$(PYTHON) -m docs.generate_pictures

api: setup ## tests/programs/public_api.txt, when what programs use is meant to change
	@$(PYTHON) -m tests.programs.public_api

queries: setup ## plugins/weir/queries from sql/queries, typed by the database's catalogue
	@$(PYTHON) -m docs.generate_queries

sentences: setup ## tests/errors/sentences.txt from what the code says when it refuses
	@$(PYTHON) -m tests.errors.sentences

bench: setup ## measure (FIGURE= one of them, SIZE=)
	@$(WEIR) -m benchmarks $(if $(FIGURE),--figure $(FIGURE)) $(if $(SIZE),--size $(SIZE)) $(ARGS)

soak: setup ## the long tests, and all random cases (SEED= repeats them)
	@WEIR_TEST_BUDGET=full $(PYTHON) -m pytest --durations=10 -m "soak or random" -s $(ARGS)

lock: setup ## requirements.in and requirements-dev.in -> .txt, with hashes; NOTICE
	@for name in requirements requirements-dev; do \
		.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $$name.in -o $$name.txt \
			$$([ $$name = requirements ] || echo --constraint requirements.txt) --custom-compile-command "make lock" || exit 1; \
	done
	@$(PYTHON) -m docs.generate_notice

clean: setup ## stop everything and delete the state folder with its streams (asks; YES=1 does not)
	@$(WEIR) -P -m weir.local clean $(if $(YES),--yes)

setup: ## make .venv, with the command weir, and see to a Java
	@./setup.sh
