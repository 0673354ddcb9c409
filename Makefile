# Two commands: `make demo` and `make test`. Both install what is missing first.
.PHONY: demo test build setup clean

demo: build
	python3 tools/demo.py

test: build
	ctest --preset release

build: setup
	@test -f build/release/build.ninja || cmake --preset release
	cmake --build --preset release

setup:
	@tools/setup.sh

clean:
	rm -rf build
