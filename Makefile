# PyTorch 2.5, Measured. `make help` lists the commands.
# Windows without make: README.md has the same steps.

TORCH ?= 2.13.0
PYTHON ?= python3
# TORCH_INDEX=https://... takes torch from another index (CPU-only, CUDA or XPU builds).
TORCH_INDEX ?=
PORT ?= 8000
# A schedule of chapters/instructor.md for make dry-run: 90, half or full.
SCHEDULE ?= 90
# Of the room that make wheelhouse fills a folder for: SYSTEM=windows ROOM_PYTHON=3.12.
SYSTEM ?=
ROOM_PYTHON ?=

LANE := .venv/torch-$(TORCH)
SITE := .venv/site
# Another torch takes the default's pins.
CONSTRAINTS := $(or $(wildcard constraints/torch-$(TORCH).txt),constraints/torch-2.13.0.txt)
IN_LANE := $(LANE)/bin/python
IN_SITE := $(SITE)/bin/python
SETUP := $(PYTHON) tools/setup_env.py

.PHONY: help book serve test test-site mutants lab doctor execute record clean
.PHONY: workshop test-workshop wheelhouse slides board dry-run
.DEFAULT_GOAL := help

help:
	@echo "make book                build the site (no torch needed), then: make serve"
	@echo "make lab                 open the chapters in JupyterLab"
	@echo "make test                the whole suite; CHAPTER=20 one chapter; CHAPTER=none all else"
	@echo "make test TORCH=2.5.1    the same on the release"
	@echo "make test-site           the site in a real browser (needs Chromium)"
	@echo "make mutants             plant faults and see the tests catch them"
	@echo "make doctor              can this machine run the book, which chapters, in how many minutes?"
	@echo "make execute CHAPTER=20  run a chapter and keep its outputs and results"
	@echo "make record NAME=x       run the chapters and keep their results as machine x"
	@echo "make workshop            what a room of learners needs, as one zip; make test-workshop runs it"
	@echo "make wheelhouse          its packages for a room without internet; SYSTEM=windows another system"
	@echo "make slides              a deck of slides a chapter, each one HTML file"
	@echo "make dry-run SCHEDULE=90 run a schedule's chapters and print the clock; half, full"
	@echo "make board DIR=room      the scoreboard of a folder of learners' results"
	@echo "make clean               remove all that the book wrote"

# A lane is complete when its stamp is newer than what it is made from.
$(LANE)/.complete: requirements.txt pyproject.toml $(CONSTRAINTS) tools/setup_env.py
	@$(SETUP) lane "$(TORCH)" --index "$(TORCH_INDEX)"

$(SITE)/.complete: pyproject.toml constraints/site.txt tools/setup_env.py
	@$(SETUP) site

book: $(SITE)/.complete
	@$(IN_SITE) -m tools.site build

serve: book
	@$(IN_SITE) -m tools.site serve --port $(PORT)

test: $(LANE)/.complete
	@$(IN_LANE) -m tools.test $(CHAPTER)

test-site: book
	@$(IN_SITE) -m pytest tests/browser -q

mutants: $(LANE)/.complete
	@$(IN_LANE) -m tools.mutants $(MUTANTS)

lab: $(LANE)/.complete
	@$(LANE)/bin/jupyter lab chapters

doctor:
	@if [ -x $(IN_LANE) ]; then $(IN_LANE) -m utils.environment; else $(PYTHON) utils/environment.py; fi

execute: $(LANE)/.complete
	@$(IN_LANE) -m tools.execute $(CHAPTER)

record: $(LANE)/.complete
	@test -n "$(NAME)" || { echo "make record wants a name for the machine: make record NAME=my-laptop"; exit 2; }
	@$(IN_LANE) -m tools.record "$(NAME)" $(CHAPTER)

workshop: $(SITE)/.complete
	@$(IN_SITE) -m tools.workshop

test-workshop: $(LANE)/.complete workshop
	@$(IN_LANE) -m pytest tests/workshop -q

wheelhouse: $(SITE)/.complete
	@$(IN_SITE) -m tools.wheelhouse $(if $(SYSTEM),--system "$(SYSTEM)") --python "$(ROOM_PYTHON)" --index "$(TORCH_INDEX)"

dry-run: $(LANE)/.complete
	@$(IN_LANE) -m tools.dry_run $(SCHEDULE)

slides: $(SITE)/.complete
	@$(IN_SITE) -m tools.slides

board: $(SITE)/.complete
	@$(IN_SITE) -m tools.board $(if $(DIR),"$(DIR)")

clean:
	@$(PYTHON) tools/clean.py
