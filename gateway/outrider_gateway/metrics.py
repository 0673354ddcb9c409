# SPDX-License-Identifier: Apache-2.0
"""What /metrics shows, by prometheus-client."""
from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_REQUEST_SECONDS = (*_SECONDS, 120, 300, 600)
# Alerts look for these. A series that begins with its first error has no rate: nothing was there to rise from.
_FAILURES = ("500", "502", "503", "504")
_TOKEN_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        # When it began, its memory, its files: by the names that they have in all programs.
        ProcessCollector(registry=self.registry)
        # Not `endpoint`: Prometheus' operator gives that to whatever it scrapes, the name of its port.
        self.requests = Counter("outrider_gateway_requests", "Requests answered.", ["route", "status"],
                                registry=self.registry)
        self.running = Gauge("outrider_gateway_requests_running", "Requests being served.", registry=self.registry)
        self.time_to_first_token = Histogram("outrider_gateway_time_to_first_token_seconds",
                                             "From the request's arrival to its first token.", buckets=_SECONDS,
                                             registry=self.registry)
        self.time_per_output_token = Histogram("outrider_gateway_time_per_output_token_seconds",
                                               "Time between tokens of a choice after its first message, on average.",
                                               buckets=_TOKEN_SECONDS, registry=self.registry)
        self.request_seconds = Histogram("outrider_gateway_request_seconds",
                                         "From the request's arrival to the end of its answer.", ["route"],
                                         buckets=_REQUEST_SECONDS, registry=self.registry)
        self.tokens = Counter("outrider_gateway_generated_tokens", "Tokens sent to readers.",
                              registry=self.registry)
        self.prompt_tokens = Counter("outrider_gateway_prompt_tokens",
                                     "Tokens of prompts, each once however many choices it has.",
                                     registry=self.registry)
        self.streams_failed = Counter("outrider_gateway_streams_failed",
                                      "Streams that ended in an error event, by the status that it stands for: "
                                      "requests_total has them as answered with 200.", ["status"],
                                      registry=self.registry)
        for status in _FAILURES:
            self.streams_failed.labels(status)
            for route in ("/v1/completions", "/v1/chat/completions"):
                self.requests.labels(route, status)
        self.resumes = Counter("outrider_gateway_resumes", "Streams that went on at another coordinator.",
                               registry=self.registry)
        self.readers_dropped = Counter("outrider_gateway_readers_dropped",
                                       "Readers that did not read for too long.", registry=self.registry)
        # All programs have it by this name, and so one alert is for all.
        self.certificate_expiry = Gauge("outrider_tls_certificate_expiration_timestamp_seconds",
                                        "Unix time at which a certificate in use expires, by the flag that names "
                                        "its file; of several the first.", ["role", "file"], registry=self.registry)
        self.ready = Gauge("outrider_gateway_ready", "1 where requests are welcome, as /health says, else 0.",
                           registry=self.registry)
        self.coordinators = Gauge("outrider_gateway_coordinators", "Coordinators' addresses known.",
                                  registry=self.registry)


METRICS = Metrics()
