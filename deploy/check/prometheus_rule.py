#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the rules as the Prometheus operator reads them: a PrometheusRule of what promtool tests.

  prometheus_rule.py     after a change of alerts.yaml or recording-rules.yaml
"""
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "observability"
SOURCES = ("alerts.yaml", "recording-rules.yaml")
TARGET = FOLDER / "prometheus-rule.yaml"
HEAD = """\
# Written by ../check/prometheus_rule.py from alerts.yaml and recording-rules.yaml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: outrider
  labels:
    app.kubernetes.io/name: outrider
spec:
  groups:
"""


def text():
    """The manifest: the groups of both files, further in, with their comments."""
    lines = []
    for name in SOURCES:
        before, _, groups = (FOLDER / name).read_text().partition("groups:\n")
        lines += (before + groups).splitlines()
    return HEAD + "".join(f"    {line.removeprefix('  ')}\n" if line.startswith("#") else f"  {line}\n"
                          for line in lines)


if __name__ == "__main__":
    TARGET.write_text(text())
