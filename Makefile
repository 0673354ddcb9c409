# `make demo` and `make test` install what is missing first; so does
# `make check-deploy`, which renders and checks the manifests, then builds the
# images and runs the pods where it may (root, and packages that it installs).
.PHONY: demo test check-deploy build setup clean

demo: build
	python3 tools/demo.py

test: build
	ctest --preset release

check-deploy: setup
	@test -f build/release/build.ninja || cmake --preset release
	cmake --build --preset release --target \
	  outrider outrider-coordinator outrider-drafter outrider-verifier
	deploy/check/run.sh

build: setup
	@test -f build/release/build.ninja || cmake --preset release
	cmake --build --preset release

setup:
	@tools/setup.sh

clean:
	rm -rf build
