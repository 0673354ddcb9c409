# `make demo` and `make test` install what is missing first; so does
# `make check-deploy`, which renders and checks the manifests, then builds the
# images and runs the pods where it may (root, and packages that it installs).
.PHONY: demo test gateway check-deploy programs kernels build setup setup-tests clean help

# Tests cost most of a whole build, so the demo builds the programs alone.
demo: programs ## builds the programs, runs them on the demo pair, prints the speed-up
	python3 tools/demo.py

test: build ## all tests
	ctest --preset release

gateway: programs ## the demo pair behind an OpenAI-compatible address, until Ctrl-C
	@tools/setup.sh --gateway
	.venv-gateway/bin/python tools/gateway.py

check-deploy: setup-tests programs ## renders and checks the manifests, builds the images, runs them
	deploy/check/run.sh

programs: setup ## the programs, without tests; kernels for GPUs where there is a GPU
	@test -f build/release/build.ninja || cmake --preset release
	cmake --build --preset release --target \
	  outrider outrider-coordinator outrider-drafter outrider-verifier
	@if nvidia-smi -L >/dev/null 2>&1; then $(NO_NVCC) || $(MAKE) kernels; fi

# What `--device cuda` opens. `make build` has it wherever nvcc is; the programs
# alone are built with it where there is a GPU as well.
NO_NVCC = { ! grep -q '^CMAKE_CUDA_COMPILER:.*nvcc' build/release/CMakeCache.txt && echo \
  "no kernels for GPUs: nvcc was not found; install the CUDA Toolkit, then: cmake --preset release --fresh"; }

kernels: setup ## what --device cuda opens; needs the CUDA Toolkit
	@test -f build/release/build.ninja || cmake --preset release
	@! $(NO_NVCC)
	cmake --build --preset release --target outrider_cuda_kernels

build: setup-tests ## everything, tests included
	@test -f build/release/build.ninja || cmake --preset release
	cmake --build --preset release

setup: ## installs what building needs
	@tools/setup.sh

setup-tests: ## installs what tests need besides
	@tools/setup.sh --tests

clean: ## removes build/
	rm -rf build

help: ## lists these targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1 \2/p' $(MAKEFILE_LIST) | \
	  while read -r target what; do printf '%-14s%s\n' "$$target" "$$what"; done
