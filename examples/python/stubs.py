# SPDX-License-Identifier: Apache-2.0
"""The messages and stubs of proto/, generated beside this file when they are missing or old.

This makes them by hand, from the repository's root:
  mkdir -p examples/python/gen && python -m grpc_tools.protoc -I proto \\
      --python_out=examples/python/gen --grpc_python_out=examples/python/gen proto/outrider/v1/*.proto
"""
import os
import pathlib
import sys

from grpc_tools import protoc

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"
GEN = pathlib.Path(os.environ.get("OUTRIDER_STUBS_DIR") or pathlib.Path(__file__).with_name("gen"))


def generate():
    sources = sorted(PROTO.glob("outrider/v1/*.proto"))
    newest = max(path.stat().st_mtime for path in sources)
    done = GEN / "done"
    if done.exists() and done.stat().st_mtime >= newest:
        return
    GEN.mkdir(parents=True, exist_ok=True)
    include = pathlib.Path(protoc.__file__).with_name("_proto")
    if protoc.main(["protoc", f"-I{PROTO}", f"-I{include}", f"--python_out={GEN}",
                    f"--grpc_python_out={GEN}", *map(str, sources)]) != 0:
        sys.exit("the stubs could not be generated")
    done.touch()


generate()
sys.path.insert(0, str(GEN))

# pylint: disable=wrong-import-position, unused-import
from outrider.v1 import (cache_pb2, cache_pb2_grpc, drafter_pb2,  # noqa: E402,F401
                         drafter_pb2_grpc, generation_pb2, generation_pb2_grpc, types_pb2,
                         verifier_pb2, verifier_pb2_grpc)
