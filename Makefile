# Everything a newcomer needs: `make run`, `make demo`, `make test`, `make bench`.
SHELL := bash
CARGO ?= cargo
# The field's own checker of WARC files; tests hold ours to it.
WARCIO := target/tools/bin/warcio
# Formats and checks Python; ruff.toml names its version.
RUFF := target/tools/bin/ruff
# The compiler driver for macOS, which needs no Apple machine to check.
ZIGBUILD := target/zigbuild/bin/cargo-zigbuild
# Knows what a bill of materials has to look like; tests hold ours to it.
CYCLONEDX := target/cyclonedx/bin/python
# The dashboard, which the peer embeds.
DASHBOARD := ui/dist/site/index.html

.PHONY: run run-headless run-desktop setup-desktop demo evaluate test test-long test-sealed test-ui-units test-ui bench bench-governor dist test-packages check-macos check-other-systems setup setup-test setup-bench setup-dist build lint lint-format lint-python help

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: ## Start the tray app where there is a display, the headless peer otherwise
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ]; then $(MAKE) --no-print-directory run-desktop; else $(MAKE) --no-print-directory run-headless; fi

run-headless: build
	target/release/apoidea run

run-desktop: setup-desktop $(DASHBOARD)
	$(CARGO) build --release --locked -p apoidea-desktop
	target/release/apoidea-desktop

demo: build ## Crawl a made-up web, offline
	target/release/apoidea demo

# All programs and tests at once: cargo chooses the features of libraries by what it is asked to build, and would compile much of
# them again for a part of it.
TEST := APOIDEA_WARCIO=$(CURDIR)/$(WARCIO) $(CARGO) test --workspace --locked
# Most tests that take long only wait, so more of them run at a time than there are processors.
TEST_THREADS ?= 6

test: setup-test lint-format lint-python test-ui-units $(WARCIO) ## Pass all tests
	$(CARGO) build --workspace --all-targets --locked
	APOIDEA_WARCIO=$(CURDIR)/$(WARCIO) tests/suite $(CARGO) $(TEST_THREADS)

test-long: setup-test $(DASHBOARD) $(WARCIO) ## Pass the tests that take minutes each, one by one: an hour or two
	$(CARGO) build --workspace --all-targets --locked
	$(TEST) --no-fail-fast -- --ignored --test-threads=1

test-sealed: setup-test $(DASHBOARD) $(WARCIO) ## Pass all tests in a network where every packet is seen, and none may leave
	$(CARGO) build --workspace --all-targets --locked
	$(CARGO) build --locked --manifest-path tests/outside/Cargo.toml --target-dir $${CARGO_TARGET_DIR:-target}/outside
	CARGO_NET_OFFLINE=true tests/sealed env $(TEST) -- --test-threads=$(TEST_THREADS)

evaluate: build ## Repeat the papers' experiments with swarms of real processes
	$(CARGO) build --release --locked -p apoidea-toyweb --example toyweb
	tests/evaluate/run

bench: setup-bench build ## Measure against other crawlers, simulate the ring, and compare the transport with bare QUIC
	tests/bench/run
	for scenario in steady dead crash churn; do target/release/apoidea simulate --peers 10000 --scenario $$scenario || exit; done
	$(CARGO) run --release --locked -p apoidea-overlay --example echo_cost
	$(CARGO) run --release --locked -p apoidea-overlay --example lookup_cost

# Whatever changes in ui builds the dashboard again.
$(DASHBOARD): ui/node_modules/.package-lock.json ui/index.html ui/vite.config.ts $(shell find ui/src ui/build -type f)
	cd ui && npm run --silent build

ui/node_modules/.package-lock.json: ui/package-lock.json
	cd ui && npm install --no-save --silent
	touch $@

test-ui-units: $(DASHBOARD)
	cd ui && npm run --silent check && npm run --silent test

test-ui: setup-test $(DASHBOARD) ## Look at the dashboard of a live peer with a real browser
	$(CARGO) build --locked -p apoidea
	cd ui && APOIDEA=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/apoidea npm run --silent test:browser

bench-governor: setup-bench build ## Measure how well the limits are kept
	tests/governor_bench/run

dist: setup-dist $(DASHBOARD) ## Make the packages for Linux and the installer for Windows, with sums, in dist/
	$(CARGO) build --release --locked -p apoidea -p apoidea-desktop
	installer/dist dist

test-packages: dist $(CYCLONEDX) ## Install, use, upgrade and remove what `make dist` made, in a Debian root and under wine; needs root
	@installer/setup test packages
	$(CARGO) build --release --locked -p apoidea-toyweb --example toyweb
	$(CYCLONEDX) tests/packages/run dist

check-macos: $(ZIGBUILD) $(DASHBOARD) ## Type-check the whole program for both kinds of Macs
	PATH="$(CURDIR)/$(dir $(ZIGBUILD)):$$PATH" installer/macos/check

# Debian's own toolchain, since it comes with the source of the standard library.
OTHER_SYSTEMS := RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc CARGO=/usr/bin/cargo
CHECK_GOVERNOR := check -Zbuild-std --locked -p apoidea-governor --target-dir $${CARGO_TARGET_DIR:-target}/other-systems

check-other-systems: $(ZIGBUILD) ## Check that the sensors for Windows and macOS compile
	@installer/setup build dist
	$(OTHER_SYSTEMS) /usr/bin/cargo $(CHECK_GOVERNOR) --target x86_64-pc-windows-gnu
	PATH="$(CURDIR)/$(dir $(ZIGBUILD)):/usr/bin:$$PATH" $(OTHER_SYSTEMS) $(ZIGBUILD) $(CHECK_GOVERNOR) --target aarch64-apple-darwin

# A C compiler for macOS.
$(ZIGBUILD): | setup-dist
	python3 -m venv target/zigbuild
	target/zigbuild/bin/pip install --quiet --disable-pip-version-check cargo-zigbuild==0.24.0 ziglang==0.17.0

build: setup $(DASHBOARD)
	$(CARGO) build --release --locked -p apoidea

lint: setup-desktop $(DASHBOARD) lint-format lint-python ## Check the format, and the code with clippy and ruff
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

lint-format: ui/node_modules/.package-lock.json
	$(CARGO) fmt --all --check
	cd ui && npm run --silent lint:format

lint-python: $(RUFF) ## Check and test the Python tools
	$(RUFF) format --check
	$(RUFF) check
	python3 -m unittest discover --start-directory tests/kit --top-level-directory tests
	PYTHONPATH=tests python3 -m unittest discover --start-directory tests/evaluate

setup:
	@installer/setup build

setup-desktop:
	@installer/setup build desktop

setup-test:
	@installer/setup build desktop test

$(WARCIO): | setup-test
	python3 -m venv target/tools
	target/tools/bin/pip install --quiet --disable-pip-version-check warcio

$(RUFF): ruff.toml
	@installer/setup lint
	python3 -m venv target/tools
	target/tools/bin/pip install --quiet --disable-pip-version-check "ruff$$(sed -n 's/^required-version = "\(.*\)"$$/\1/p' ruff.toml)"
	touch $@

$(CYCLONEDX): | setup-test
	python3 -m venv target/cyclonedx
	target/cyclonedx/bin/pip install --quiet --disable-pip-version-check 'cyclonedx-python-lib[json-validation]==11.12.0' || { rm -r target/cyclonedx; exit 1; }

setup-bench:
	@installer/setup build test bench

setup-dist:
	@installer/setup build desktop dist
