# SPDX-License-Identifier: Apache-2.0
"""The probes of the manifests, asked as a kubelet asks them."""
import http.client

import grpc

SERVING = 1


def answers(address, container):
    """{"readinessProbe": True, ...} of a container; `address` is its pod's."""
    return {kind: ask(address, container[kind]) for kind in ("startupProbe", "livenessProbe", "readinessProbe")}


def ask(address, probe):
    if "httpGet" in probe:
        return ask_http(address, **probe["httpGet"], timeout=probe["timeoutSeconds"])
    return ask_grpc(address, **probe["grpc"], timeout=probe["timeoutSeconds"])


def ask_http(address, path, port, timeout):
    connection = http.client.HTTPConnection(address, port, timeout=timeout)
    try:
        connection.request("GET", path)
        return 200 <= connection.getresponse().status < 400
    except OSError:
        return False
    finally:
        connection.close()


def ask_grpc(address, port, timeout, service=""):
    """grpc.health.v1, without TLS."""
    name = service.encode()
    request = b"\x0a" + bytes([len(name)]) + name if name else b""
    with grpc.insecure_channel(f"{address}:{port}") as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            return check(request, timeout=timeout) == bytes([0x08, SERVING])
        except grpc.RpcError:
            return False
