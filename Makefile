# The front door. `make help` lists the doors; each installs what it needs when it is missing
# (tools/setup) and loses no time when nothing is.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)

# How long the soak takes.
SOAK ?= 30m
# Further arguments of bench-transport, as in BENCH_TRANSPORT='--loss 5,15 --links 20/20'.
BENCH_TRANSPORT ?=
# Further arguments of bench-ack-rate, as in BENCH_ACK_RATE='--runs 9 --rows asked'.
BENCH_ACK_RATE ?=
# Further arguments of bench-fairness, as in BENCH_FAIRNESS='jitter=700 reno'.
BENCH_FAIRNESS ?=
# Further arguments of bench-sharing, as in BENCH_SHARING='rival=cubic queue=67 runs=1'.
BENCH_SHARING ?=
# How long each fuzz target runs.
FUZZ_SECONDS ?= 3600
# Its threads (questions, syncs) outlive an input by a moment and look like leaks.
FUZZ_rudp_transfer := -detect_leaks=0
FUZZ_TARGETS := $(sort $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs))))

.PHONY: help
help: ## this list
	@awk -F ': .*## ' '/^[a-z][a-z-]*: .*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile

.PHONY: demo
demo: deps-rust ## diagnose a capture of the real Linux kernel, simulate the same exchange, compare
	cargo build --quiet --release --locked -p acklab
	@$(TARGET_DIR)/release/acklab demo demo/nagle-linux.pcapng --out out/demo

.PHONY: test
test: deps-rust deps-test ## every test, with a count of what was skipped and why
	@tools/test

.PHONY: lint
lint: deps-rust fmt clippy doc wasm edges deny-if-installed ## format, clippy, docs, wasm32, dependency edges, licences
	@echo "lint: all held"

.PHONY: test-kill
test-kill: deps-rust ## kill -9 of either side at 50 points of transfers, which then go on (ACKLAB_KILLS)
	ACKLAB_KILLS=$(or $(ACKLAB_KILLS),50) cargo test --quiet --release --locked -p acklab --test transfer \
	 a_transfer_goes_on_where_kill_9_stopped_either_side -- --nocapture

.PHONY: test-wire
test-wire: deps-rust ## acklab's TCP and the kernel's, 1 GB each way over lossy links, byte by byte (root; ACKLAB_WIRE_BYTES)
	ACKLAB_WIRE_BYTES=$(or $(ACKLAB_WIRE_BYTES),1000000000) cargo test --quiet --release --locked -p acklab --test tcp \
	 every_byte -- --nocapture --test-threads 1

.PHONY: bench
bench: bench-sim bench-trace ## how fast virtual time and the capture reader are, with the conditions

.PHONY: bench-peers
bench-peers: deps-rust ## acklab beside ns-2 and ns-3: speed and memory; queues and controls over seeds, docs/ns-3.md
	@tools/setup peers
	cargo build --quiet --release --locked -p acklab-papers --example bench_workloads
	cargo build --quiet --release --locked -p acklab
	@tools/bench-peers/run $(TARGET_DIR)/release/examples/bench_workloads
	@tools/bench-peers/compare $(TARGET_DIR)/release/acklab --keep out/ns-3.jsonl --write docs/ns-3.md

.PHONY: linux-vt
linux-vt: ## the Linux kernel in virtual time, for --worlds linux-vt (about 7 minutes; cached outside of the tree)
	@tools/linux-vt

.PHONY: linux-vt-ack-limit
linux-vt-ack-limit: ## the same with kernel/ack-rate-limit.patch, for flows with ack = "ack-rate-limit"
	@tools/linux-vt ack-rate-limit

.PHONY: calibrate
calibrate: ## what packets cost Linux, by instructions counted under QEMU (docs/ack-rate.md; some 3 minutes)
	@tools/calibrate

.PHONY: ack-limit-qemu
ack-limit-qemu: ## ACK rate limiting on slow processors, by instructions counted under QEMU: the table of docs/ack-rate.md
	@tools/ack-limit-qemu

.PHONY: oracle
oracle: deps-rust ## packetdrill's own scripts on this machine's kernel, and where it and acklab's host part (root; 6 minutes)
	cargo build --quiet --release --locked -p acklab
	cargo build --quiet --release --locked -p acklab-packetdrill --example stimuli
	mkdir -p out/oracle
	$(TARGET_DIR)/release/examples/stimuli out/oracle 41 20 plain
	$(TARGET_DIR)/release/examples/stimuli out/oracle 601 8 mixed opening
	$(TARGET_DIR)/release/acklab packetdrill --kernel --threads 4 --tolerance-usecs 30000 crates/acklab-packetdrill/tests/scripts
	$(TARGET_DIR)/release/acklab packetdrill --compare --threads 8 --tolerance-usecs 30000 out/oracle

.PHONY: recordings
recordings: deps-rust ## this kernel as sender and receiver, for the test that holds acklab's host to it (root; half a minute)
	cargo build --quiet --locked -p acklab-worlds --example recordings
	@tools/setup as-root $(TARGET_DIR)/debug/examples/recordings make crates/acklab-packetdrill/tests/recordings

.PHONY: compare
compare: linux-vt ## the table of docs/linux-vt.md: acklab's TCP beside the Linux kernel's in virtual time
	cargo build --quiet --release --locked -p acklab
	cargo build --quiet --release --locked -p acklab-worlds --example compare_table
	@$(TARGET_DIR)/release/examples/compare_table $(TARGET_DIR)/release/acklab

.PHONY: compare-recorded
compare-recorded: ## the same without a kernel: what it did is in kernel/linux-vt/recorded.jsonl
	cargo build --quiet --release --locked -p acklab
	cargo build --quiet --release --locked -p acklab-worlds --example compare_table
	@$(TARGET_DIR)/release/examples/compare_table $(TARGET_DIR)/release/acklab kernel/linux-vt/recorded.jsonl

.PHONY: truth
truth: deps-rust ## diagnoses beside what happened, of cases made on the running kernel: the tables of docs/truth.md (root; TRUTH=DIR)
	cargo build --quiet --locked -p acklab-worlds --example truth
	@tools/setup as-root $(TARGET_DIR)/debug/examples/truth make $(or $(TRUTH),out/truth)
	@$(TARGET_DIR)/debug/examples/truth score $(or $(TRUTH),out/truth)

.PHONY: truth-programs
truth-programs: deps-rust ## diagnoses beside what strace saw of programs that nobody here wrote: docs/truth.md (root; TRUTH=DIR)
	cargo build --quiet --locked -p acklab -p acklab-worlds --example truth --bin acklab
	@tools/setup as-root tools/truth-programs $(TARGET_DIR)/debug/acklab $(TARGET_DIR)/debug/examples/truth \
	 $(or $(TRUTH),out/programs)
	@$(TARGET_DIR)/debug/examples/truth score $(or $(TRUTH),out/programs)

.PHONY: bench-transport
bench-transport: deps-rust ## transfers by acklab, quinn and kernel TCP over the same lossy links, and CPU s/GB (root)
	@tools/setup transport
	cargo build --quiet --release --locked -p acklab
	cargo build --quiet --release --locked --manifest-path bench/transport/Cargo.toml --target-dir $(TARGET_DIR)/bench-transport
	@mkdir -p out
	@tools/setup as-root $(TARGET_DIR)/bench-transport/release/bench-transport \
	 --acklab $(TARGET_DIR)/release/acklab --out out/bench-transport.json $(BENCH_TRANSPORT)

.PHONY: bench-lossy
bench-lossy: deps-rust ## lossy over jitter, bursts, reordering and changing rates: the matrix behind docs/lossy.md
	cargo test --quiet --locked -p acklab-core --test lossy -- --nocapture --test-threads=1
	cargo test --quiet --locked -p acklab-sim --test rudp jitter -- --nocapture

.PHONY: bench-fairness
bench-fairness: deps-rust ## how reliable UDP, and TCP with lossy, share a bottleneck: the table of docs/lossy.md (BENCH_FAIRNESS)
	cargo build --quiet --release --locked -p acklab-sim --example lossy_fairness
	@$(TARGET_DIR)/release/examples/lossy_fairness $(BENCH_FAIRNESS)

.PHONY: bench-sharing
bench-sharing: deps-rust ## reliable UDP beside the running kernel's CUBIC, BBR and Reno, and in virtual time: docs/lossy.md (root; BENCH_SHARING)
	cargo build --quiet --release --locked -p acklab
	@tools/setup as-root tools/bench-sharing $(TARGET_DIR)/release/acklab $(BENCH_SHARING)

.PHONY: bench-transports
bench-transports: deps-rust ## reliable UDP and TCP of each congestion control behind one router: the table of docs/rudp-measured.md
	cargo build --quiet --release --locked -p acklab-sim --example transports
	@$(TARGET_DIR)/release/examples/transports

.PHONY: bench-ack-rate
bench-ack-rate: deps-rust ## what ACKs cost reliable UDP: CPU s/GB of both ends against packets per ACK, docs/ack-rate.md (root)
	cargo build --quiet --release --locked -p acklab
	@tools/setup as-root tools/bench-ack-rate $(TARGET_DIR)/release/acklab $(BENCH_ACK_RATE)

.PHONY: bench-controls
bench-controls: deps-rust ## ANCE, ENCN, Jersey, Reno, CUBIC, BBR of the running kernel beside the simulation's: docs/ance.md (root)
	cargo build --quiet --release --locked -p acklab
	@tools/setup as-root tools/bench-controls $(TARGET_DIR)/release/acklab

.PHONY: fuzz
fuzz: $(addprefix fuzz-,$(FUZZ_TARGETS)) ## each fuzz target for FUZZ_SECONDS (3600); make -j2 fuzz runs two at once

.PHONY: record-demo
record-demo: deps-rust ## record the demo captures from this machine's kernel anew (root)
	cargo build --quiet --release --locked -p acklab
	@tools/setup as-root $(TARGET_DIR)/release/acklab record demo/nagle-linux.pcapng
	@tools/setup as-root $(TARGET_DIR)/release/acklab record demo/nodelay-linux.pcapng --nodelay

.PHONY: check-uppaal
check-uppaal: deps-rust ## exported UPPAAL models against the format's grammar, its stock DTD and verifyta, as far as they are here
	cargo build --quiet --locked -p acklab
	@tools/check-uppaal $(TARGET_DIR)/debug/acklab

.PHONY: coverage
coverage: deps-rust ## how often every interval covers and every test errs: the tables of docs/verification.md
	ACKLAB_EXPERIMENTS=$(or $(ACKLAB_EXPERIMENTS),20000) cargo test --quiet --release --locked -p acklab-stats \
	 --test coverage -- --nocapture

.PHONY: ance-sensitivity
ance-sensitivity: deps-rust ## docs/ance-sensitivity.md anew: what each thing that the ANCE paper leaves open decides
	cargo build --quiet --release --locked -p acklab
	$(TARGET_DIR)/release/acklab reproduce ance --sensitivity docs/ance-sensitivity.md --replications 100

.PHONY: lines
lines: ## lines of Rust per crate: code, comments, tests (LINES="REVISION..." for revisions side by side)
	@tools/lines $(LINES)

.PHONY: check-times
check-times: deps-rust ## how long `cargo check` takes after a change in each crate: median of RUNS (3)
	@tools/check-times

.PHONY: soak
soak: deps-rust ## two ends of reliable UDP over a hostile loopback road for SOAK (30m): every byte, flat memory
	cargo run --quiet --release --locked -p acklab-net --example soak -- $(SOAK)

.PHONY: clean
clean: ## remove what was built and written here
	rm -rf target fuzz/target fuzz/corpus out

# The parts of lint.
.PHONY: fmt clippy doc wasm edges deny deny-if-installed
fmt: deps-rust
	cargo fmt --all --check
clippy: deps-rust
	cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
doc: deps-rust
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --quiet --workspace --no-deps --document-private-items --locked
wasm: deps-rust
	@if tools/setup wasm; then set -x; \
	 cargo check --quiet -p acklab-core -p acklab-tcp -p acklab-rudp --target wasm32-unknown-unknown --locked; \
	 else echo "SKIPPED: wasm32 check: the target could not be installed"; fi
edges: deps-rust
	cargo test --quiet -p acklab --test edges --locked
deny-if-installed: deps-rust
	@if command -v cargo-deny >/dev/null; then set -x; \
	 cargo deny --locked check --hide-inclusion-graph licenses bans sources; \
	 else echo "SKIPPED: cargo deny: not installed ('make deny' installs it and checks)"; fi
deny: deps-rust ## licences, advisories and sources of every dependency (installs cargo-deny)
	@tools/setup deny
	cargo deny --locked check --hide-inclusion-graph

# The parts of bench.
.PHONY: bench-sim bench-trace
bench-sim: deps-rust
	cargo run --quiet --release --locked -p acklab-papers --example bench_sim
bench-trace: deps-rust
	cargo build --quiet --release --locked -p acklab
	cargo build --quiet --release --locked -p acklab-trace --example bench_trace
	@tools/bench-trace $(TARGET_DIR)/release/examples/bench_trace $(TARGET_DIR)/release/acklab

fuzz-%: deps-rust
	@tools/setup fuzz
	@mkdir -p fuzz/corpus/$*
	@[ $* != capture_reader ] || cargo run --quiet --release --locked -p acklab-trace --example fuzz_seeds -- fuzz/corpus/$*
	cargo +nightly fuzz run $* -- -max_len=65536 -rss_limit_mb=2048 -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 $(FUZZ_$*)

# What the others need.
.PHONY: deps-rust deps-test
deps-rust:
	@tools/setup rust
deps-test:
	@tools/setup chromium
