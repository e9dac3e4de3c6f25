# Two commands are all a user needs: make demo, make test. The rest serves contributors.

CMAKE ?= cmake
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)
PRESET ?= release
BUILD = build/$(PRESET)
# Tests that compute on two threads declare it; teams of waiting OpenMP threads must not spin.
CTEST = OMP_WAIT_POLICY=passive ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)
PREFIX ?= $(HOME)/.local

.PHONY: all demo test deps configure build unit asan-test asan-serve tsan-test tsan-serve format format-check tidy bench install clean distclean

all: build

deps:
	@scripts/deps.sh

configure: deps
	@$(CMAKE) --preset $(PRESET) $(CMAKE_FLAGS) >/dev/null

build: configure
	@$(CMAKE) --build $(BUILD) -j $(JOBS) $(if $(TARGETS),--target $(TARGETS))

# Builds only the program, then runs two of the small models that lie in models/ under some plans.
demo: TARGETS = pleat
demo: build
	@scripts/demo.sh $(BUILD)/pleat

test: build
	@$(CTEST)

unit: TARGETS = tests_unit
unit: build
	@$(CTEST) -L unit

asan-test:
	@$(MAKE) --no-print-directory PRESET=asan CMAKE_FLAGS="$(CMAKE_FLAGS)" unit

tsan-test:
	@$(MAKE) --no-print-directory PRESET=tsan CMAKE_FLAGS="$(CMAKE_FLAGS)" unit

# A server under the sanitizer meets ten thousand malformed requests, and clients that misbehave.
ABUSED = tests/pleat_serve_fuzz_test tests/pleat_serve_faults_test
asan-serve:
	@$(MAKE) --no-print-directory PRESET=asan CMAKE_FLAGS="$(CMAKE_FLAGS)" TARGETS="pleat $(notdir $(ABUSED))" build
	@for test in $(ABUSED); do build/asan/$$test || exit 1; done

# The server's threads. What computes stays on one: the sanitizer does not know libgomp's barriers
# and would report races that are none.
SERVER_TESTS = src/pleat_serve_test tests/pleat_engine_jobs_test tests/pleat_serve_faults_test
tsan-serve:
	@$(MAKE) --no-print-directory PRESET=tsan CMAKE_FLAGS="$(CMAKE_FLAGS)" TARGETS="pleat $(notdir $(SERVER_TESTS))" build
	@for test in $(SERVER_TESTS); do \
		OMP_NUM_THREADS=1 TSAN_OPTIONS=halt_on_error=1 build/tsan/$$test || exit 1; \
	done

SOURCES = $(shell git ls-files "src/*.h" "src/*.cpp" "tests/*.h" "tests/*.cpp" "bench/*.cpp")

format:
	@clang-format -i $(SOURCES)

format-check:
	@clang-format --dry-run -Werror $(SOURCES)

tidy: configure
	@printf "%s\n" $(filter-out %_test.cpp,$(filter src/%.cpp,$(SOURCES))) | xargs -P $(JOBS) -n 6 clang-tidy -p $(BUILD) --quiet 2>/dev/null

bench: TARGETS = pleat
bench: build
	@bench/run.sh

install: TARGETS = pleat
install: build
	@scripts/install.sh $(BUILD)/pleat $(PREFIX)

clean:
	rm -rf build

distclean: clean
	rm -rf .deps
