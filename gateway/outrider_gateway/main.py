# SPDX-License-Identifier: Apache-2.0
"""What `outrider-gateway` does: flags, then the server until SIGTERM."""
from __future__ import annotations

import argparse
import ipaddress
import logging
import pathlib
import resource
import socket
import sys

import uvloop

from . import chat_template, generation_config, log, server, tls, version
from .app import Gateway, Options, Parts, create_app, create_side_app
from .coordinators import Coordinators, host_of
from .keys import Keys
from .origins import origins_of
from .tokens import Tokens

_BAD_FLAGS = 2


class FlagError(Exception):
    """A flag that cannot be; the message names it and says what to do."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="outrider-gateway", description="An OpenAI-compatible HTTP door before Outrider's coordinators.")
    parser.add_argument("--version", action="version", version=version.words())
    parser.add_argument("--listen", default="127.0.0.1:8000", metavar="HOST:PORT",
                        help="where to serve HTTP; port 0 picks a free one (default: %(default)s)")
    parser.add_argument("--metrics-listen", metavar="HOST:PORT",
                        help="where to serve /metrics, /health and /live, in place of /metrics beside the API; "
                        "it answers until the process ends")
    parser.add_argument("--coordinator", action="append", required=True, metavar="HOST:PORT",
                        help="a coordinator; may be repeated, and a name stands for all its addresses")
    parser.add_argument("--model", type=pathlib.Path, metavar="DIR",
                        help="model directory with tokenizer.json, the chat template and generation_config.json; "
                        "without it only /v1/completions is served, without log-probabilities")
    parser.add_argument("--no-generation-config", action="store_true",
                        help="leave the model's generation_config.json alone: its temperature, top_p, top_k, min_p "
                        "and repetition_penalty are else those of requests that do not say theirs")
    parser.add_argument("--model-name", default="", help="what requests call the model (default: its own name)")
    parser.add_argument("--api-keys", type=pathlib.Path, metavar="FILE",
                        help="a line a key: NAME KEY [requests=N] [tokens_per_minute=N]; read again when it "
                        "changes (default: everybody may ask)")
    parser.add_argument("--allowed-origins", action="append", default=[], metavar="ORIGIN[,...]",
                        help="web pages of these origins may ask from a browser (CORS), such as "
                        "https://chat.example, or * for all; may be repeated (default: none but our own page). "
                        "Without --api-keys all others are refused, and on loopback other hosts than localhost, "
                        "IP addresses and these")
    parser.add_argument("--insecure", action="store_true",
                        help="allow plain text to coordinators off this machine")
    parser.add_argument("--tls-ca", type=pathlib.Path, metavar="FILE",
                        help="authority of the coordinators' certificates: connections are TLS; the three files "
                        "are read again when they change")
    parser.add_argument("--tls-cert", type=pathlib.Path, metavar="FILE", help="our own certificate chain")
    parser.add_argument("--tls-key", type=pathlib.Path, metavar="FILE", help="its private key")
    parser.add_argument("--max-requests", type=_positive, default=4096,
                        help="requests at a time (default: %(default)s)")
    parser.add_argument("--request-seconds", type=_positive, default=600,
                        help="longest that a request may take (default: %(default)s)")
    parser.add_argument("--slow-reader-seconds", type=_positive, default=60,
                        help="a reader who does not read for so long is dropped (default: %(default)s)")
    parser.add_argument("--drain-seconds", type=_positive, default=30,
                        help="longest that running requests may take after SIGTERM: none is cut off where this is no "
                        "less than --request-seconds (default: %(default)s)")
    parser.add_argument("--keep-alive-seconds", type=_positive, default=75,
                        help="a connection without a request is closed after so long, which has to be longer than a "
                        "load balancer keeps one (default: %(default)s)")
    parser.add_argument("--log-json", action="store_true",
                        help="log one JSON object a line, in place of text")
    parser.add_argument("--check-config", action="store_true",
                        help="serve nothing: check flags and files; exit status 0 or 2")
    return parser


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"needs a whole number above 0, not {text[:40]!r}")
    return value


def _split(endpoint: str, flag: str) -> tuple[str, int]:
    host, colon, port = endpoint.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise FlagError(f"{flag} {endpoint}: must be HOST:PORT")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _credentials(flags: argparse.Namespace) -> tls.Credentials:
    if (flags.tls_cert is None) != (flags.tls_key is None):
        raise FlagError("--tls-cert and --tls-key go together: pass both")
    if flags.tls_ca is None:
        if flags.tls_cert is not None:
            raise FlagError("--tls-cert needs --tls-ca, the authority to check coordinators by")
        for endpoint in flags.coordinator:
            if not flags.insecure and not _is_loopback(host_of(endpoint)):
                raise FlagError(f"--coordinator {endpoint}: is off this machine; pass --tls-ca, or --insecure for "
                                "plain text")
        return tls.Credentials(None)
    try:
        return tls.Credentials(tls.Files(flags.tls_ca, flags.tls_cert, flags.tls_key))
    except (OSError, ValueError) as error:
        raise FlagError(f"--tls-ca, --tls-cert, --tls-key: {error}") from error


def _parts(flags: argparse.Namespace) -> Parts:
    for endpoint in flags.coordinator:
        _split(endpoint, "--coordinator")
    coordinators = Coordinators(flags.coordinator, _credentials(flags))
    try:
        keys = Keys(flags.api_keys)
    except (OSError, ValueError) as error:
        raise FlagError(f"--api-keys {flags.api_keys}: {error}") from error
    parts = Parts(coordinators, keys, no_template="the gateway has no --model")
    if flags.model is None:
        return parts
    try:
        if not flags.no_generation_config:
            parts.sampling = _sampling(flags.model)
        parts.tokens = Tokens.load(flags.model)
        parts.template = chat_template.load(flags.model)
    except chat_template.NoTemplateError as error:
        parts.no_template = "it has no chat template"
        logging.warning("/v1/chat/completions is not served: %s", error)
    except Exception as error:  # tokenizers raises bare Exceptions
        raise FlagError(f"--model {flags.model}: {error}") from error
    return parts


def _sampling(model: pathlib.Path) -> generation_config.SamplingDefaults:
    defaults = generation_config.load(model)
    if words := defaults.words():
        logging.info("requests that do not say otherwise have %s, by generation_config.json", words)
    return defaults


def _origins(values: list[str]) -> list[str]:
    try:
        return origins_of(values)
    except ValueError as error:
        raise FlagError(f"--allowed-origins: {error}") from error


def _bound(flag: str, endpoint: str, unread_seconds: int) -> socket.socket:
    try:
        return server.bind(*_split(endpoint, flag), unread_seconds)
    except OSError as error:
        raise FlagError(f"{flag} {endpoint}: {error}") from error


def allow_many_connections() -> None:
    """Allows as many as we may have: a shell's usual limit is 1024 files, and each reader is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> int:
    flags = _parser().parse_args()
    log.set_up(as_json=flags.log_json)
    try:
        for flag, endpoint in (("--listen", flags.listen), ("--metrics-listen", flags.metrics_listen)):
            if endpoint is not None:
                _split(endpoint, flag)
        parts = _parts(flags)
        origins = _origins(flags.allowed_origins)
    except FlagError as error:
        return _refuse(error, _BAD_FLAGS)
    if flags.check_config:
        return 0
    gateway = Gateway(parts, Options(
        model_name=flags.model_name, max_requests=flags.max_requests, request_seconds=flags.request_seconds,
        slow_reader_seconds=flags.slow_reader_seconds))
    try:
        listener = _bound("--listen", flags.listen, flags.slow_reader_seconds)
        scrapes = None
        if flags.metrics_listen is not None:
            side = _bound("--metrics-listen", flags.metrics_listen, flags.slow_reader_seconds)
            scrapes = (create_side_app(gateway), side)
    except FlagError as error:
        return _refuse(error, 1)
    is_on_loopback = _is_loopback(_split(flags.listen, "--listen")[0])
    if flags.api_keys is None and not is_on_loopback:
        logging.warning("--listen %s is not on loopback, and without --api-keys ANYONE who reaches it may ask, at "
                        "everybody's cost: a proxy or a network policy has to choose who does", flags.listen)
    allow_many_connections()
    app = create_app(gateway, with_metrics=scrapes is None, allowed_origins=origins, is_on_loopback=is_on_loopback)
    times = server.Times(flags.drain_seconds, flags.keep_alive_seconds)
    has_ended_well = uvloop.run(server.serve(app, gateway, listener, times, scrapes))
    return 0 if has_ended_well else 1


def _refuse(error: FlagError, status: int) -> int:
    print(f"outrider-gateway: {error}", file=sys.stderr)
    return status
