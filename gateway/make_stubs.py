#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes outrider/v1/*_pb2*.py beside this file from ../proto: what the gateway imports. Needs grpcio-tools."""
import pathlib
import sys

from grpc_tools import protoc

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = HERE.parent / "proto"


def main() -> int:
    names = ["types", "generation"]
    (HERE / "outrider/v1").mkdir(parents=True, exist_ok=True)
    for folder in (HERE / "outrider", HERE / "outrider/v1"):
        (folder / "__init__.py").touch()
    # grpc_tools brings google/protobuf/*.proto along.
    google = pathlib.Path(protoc.__file__).parent / "_proto"
    return protoc.main(["protoc", f"-I{PROTOS}", f"-I{google}", f"--python_out={HERE}", f"--pyi_out={HERE}",
                        f"--grpc_python_out={HERE}", *(f"outrider/v1/{name}.proto" for name in names)])


if __name__ == "__main__":
    sys.exit(main())
