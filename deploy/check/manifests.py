# SPDX-License-Identifier: Apache-2.0
"""Renders overlays, and validates objects against Kubernetes' own schemas."""
import functools
import json
import pathlib
import shutil
import subprocess

import kubernetes_validate
import yaml

DEPLOY = pathlib.Path(__file__).resolve().parents[1]
OVERLAYS = sorted(path.name for path in (DEPLOY / "overlays").iterdir())
# Oldest and newest that we promise to work with.
KUBERNETES_VERSIONS = ("1.27", "1.34")
# Not Kubernetes' own: there is no schema to hold them against.
CUSTOM_RESOURCES = {"PodMonitor", "PrometheusRule", "NetworkChaos", "ScaledObject"}


class RenderError(Exception):
    """kubectl refused an overlay; its words."""


def have_kubectl():
    return shutil.which("kubectl") is not None


def render(folder):
    """The objects of a kustomization."""
    run = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True)
    if run.returncode != 0:
        raise RenderError(run.stderr.strip())
    return [thing for thing in yaml.safe_load_all(run.stdout) if thing]


def name_of(thing):
    return f"{thing['kind']}/{thing['metadata']['name']}"


def validate(things):
    """Problems against the schemas, misspelt fields included; and the names of what has none."""
    problems, unchecked = [], []
    for thing in things:
        if thing["kind"] in CUSTOM_RESOURCES:
            unchecked.append(name_of(thing))
        else:
            problems += validate_one(json.dumps(thing, sort_keys=True))
    return problems, unchecked


@functools.cache
def validate_one(text):
    """By its JSON, as the same objects come again and again."""
    thing = json.loads(text)
    problems = []
    for version in KUBERNETES_VERSIONS:
        try:
            kubernetes_validate.validate(thing, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            place = ".".join(str(step) for step in error.path)
            problems.append(f"{name_of(thing)}: {place}: {error.message} (Kubernetes {version})")
        except kubernetes_validate.SchemaNotFoundError:
            problems.append(f"{name_of(thing)}: unexpected kind {thing['kind']} of {thing['apiVersion']}"
                            f" (Kubernetes {version})")
    return problems
