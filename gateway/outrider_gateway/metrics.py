# SPDX-License-Identifier: Apache-2.0
"""What /metrics shows, by prometheus-client."""
from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("outrider_gateway_requests", "Requests answered.", ["endpoint", "status"],
                                registry=self.registry)
        self.running = Gauge("outrider_gateway_requests_running", "Requests being served.", registry=self.registry)
        self.time_to_first_token = Histogram("outrider_gateway_time_to_first_token_seconds",
                                             "From the request to its first token.", buckets=_SECONDS,
                                             registry=self.registry)
        self.tokens = Counter("outrider_gateway_generated_tokens", "Tokens sent to readers.",
                              registry=self.registry)
        self.resumes = Counter("outrider_gateway_resumes", "Streams that went on at another coordinator.",
                               registry=self.registry)
        self.readers_dropped = Counter("outrider_gateway_readers_dropped",
                                       "Readers that did not read for too long.", registry=self.registry)
        self.coordinators = Gauge("outrider_gateway_coordinators", "Coordinators' addresses known.",
                                  registry=self.registry)


METRICS = Metrics()
