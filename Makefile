# `make demo` and `make test` install what is missing first; so does
# `make check-deploy`, which renders and checks the manifests, then builds the
# images and runs the pods where it may (root, and packages that it installs).
.PHONY: demo test gateway check-deploy programs kernels build setup setup-tests clean

# The programs alone: tests cost most of a whole build.
demo: programs
	python3 tools/demo.py

test: build
	ctest --preset release

# The demo pair behind an OpenAI-compatible address, until Ctrl-C.
gateway: programs
	@tools/setup.sh --gateway
	.venv-gateway/bin/python tools/gateway.py

check-deploy: setup-tests programs
	deploy/check/run.sh

programs: setup
	@test -f build/release/build.ninja || cmake --preset release
	cmake --build --preset release --target \
	  outrider outrider-coordinator outrider-drafter outrider-verifier
	@if nvidia-smi -L >/dev/null 2>&1; then $(NO_NVCC) || $(MAKE) kernels; fi

# What `--device cuda` opens. `make build` has it wherever nvcc is; the programs
# alone are built with it where there is a GPU as well.
NO_NVCC = { ! grep -q '^CMAKE_CUDA_COMPILER:.*nvcc' build/release/CMakeCache.txt && echo \
  "no kernels for GPUs: nvcc was not found; install the CUDA Toolkit, then: cmake --preset release --fresh"; }

kernels: setup
	@test -f build/release/build.ninja || cmake --preset release
	@! $(NO_NVCC)
	cmake --build --preset release --target outrider_cuda_kernels

build: setup-tests
	@test -f build/release/build.ninja || cmake --preset release
	cmake --build --preset release

setup:
	@tools/setup.sh

setup-tests:
	@tools/setup.sh --tests

clean:
	rm -rf build
