# SPDX-License-Identifier: Apache-2.0
"""The probes of the manifests, asked as a kubelet asks them: grpc.health.v1, without TLS."""
import grpc

SERVING = 1


def ask(address, probe):
    """Whether a gRPC probe of a container holds; `address` is its pod's."""
    service = probe["grpc"].get("service", "").encode()
    request = b"\x0a" + bytes([len(service)]) + service if service else b""
    with grpc.insecure_channel(f"{address}:{probe['grpc']['port']}") as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            return check(request, timeout=probe["timeoutSeconds"]) == bytes([0x08, SERVING])
        except grpc.RpcError:
            return False


def answers(address, container):
    """{"readinessProbe": True, ...}."""
    return {kind: ask(address, container[kind]) for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
