# `make demo` and `make test` install what is missing first; so does
# `make check-deploy`, which renders and checks the manifests, then builds the
# images and runs the pods where it may (root, and packages that it installs).
.PHONY: demo test check-deploy programs build setup setup-tests clean

# The programs alone: tests cost most of a whole build.
demo: programs
	python3 tools/demo.py

test: build
	ctest --preset release

check-deploy: setup-tests programs
	deploy/check/run.sh

programs: setup
	@test -f build/release/build.ninja || cmake --preset release
	cmake --build --preset release --target \
	  outrider outrider-coordinator outrider-drafter outrider-verifier

build: setup-tests
	@test -f build/release/build.ninja || cmake --preset release
	cmake --build --preset release

setup:
	@tools/setup.sh

setup-tests:
	@tools/setup.sh --tests

clean:
	rm -rf build
