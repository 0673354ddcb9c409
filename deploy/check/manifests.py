# SPDX-License-Identifier: Apache-2.0
"""Renders overlays, and validates objects against Kubernetes' schemas, and those of operators."""
import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys

import kubernetes_validate
import kubernetes_validate.utils
import yaml

import custom_resources

# It reads its largest file, which all kinds' definitions are in, for every object.
kubernetes_validate.utils.schema_contents = functools.cache(kubernetes_validate.utils.schema_contents)

DEPLOY = pathlib.Path(__file__).resolve().parents[1]
OVERLAYS = sorted(path.name for path in (DEPLOY / "overlays").iterdir())
# Oldest and newest that we promise to work with.
KUBERNETES_VERSIONS = ("1.27", "1.34")
# The first whose kustomize (4.5.7) knows `includeTemplates`, a field of base/kustomization.yaml.
KUBECTL_VERSION = (1, 25)
# There is no schema to hold them against.
WITHOUT_SCHEMA = {"NetworkChaos"}


class RenderError(Exception):
    """kubectl refused an overlay; its words."""


def kubectl_wanted():
    """What is wanted for rendering and is not here, in words; nothing where kubectl is new enough."""
    wanted = f"kubectl {dotted(KUBECTL_VERSION)} or later, which renders the overlays"
    if shutil.which("kubectl") is None:
        return wanted
    run = subprocess.run(["kubectl", "version", "--client", "--output=json"], capture_output=True, text=True)
    found = re.search(r'"gitVersion": *"v(\d+)\.(\d+)\.', run.stdout)
    if not found:
        return f"{wanted}; the one here does not tell its version"
    version = tuple(int(number) for number in found.groups())
    return None if version >= KUBECTL_VERSION else f"{wanted}; the one here is {dotted(version)}"


def dotted(version):
    return ".".join(str(number) for number in version)


def exit_without_kubectl(what):
    wanted = kubectl_wanted()
    if wanted:
        print(f"NOT RUN: {what} need {wanted}", file=sys.stderr)
        sys.exit(77)  # what ctest knows as skipped


def render(folder):
    """The objects of a kustomization, anew for each caller, who may change them."""
    # The parser in C: that in Python takes longer than the rendering.
    return [thing for thing in yaml.load_all(rendered_text(folder), Loader=yaml.CSafeLoader) if thing]


@functools.cache  # tests begin with the same overlays again and again
def rendered_text(folder):
    run = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True)
    if run.returncode != 0:
        raise RenderError(run.stderr.strip())
    return run.stdout


def name_of(thing):
    return f"{thing['kind']}/{thing['metadata']['name']}"


def validate(things):
    """Problems against the schemas, misspelt fields included; and the names of what has none."""
    problems, unchecked = [], []
    for thing in things:
        if thing["kind"] in WITHOUT_SCHEMA:
            unchecked.append(name_of(thing))
        else:
            problems += validate_one(json.dumps(thing, sort_keys=True))
    return problems, unchecked


@functools.cache
def validate_one(text):
    """Takes an object as JSON, which a cache can have as its key: the same objects come again and again."""
    thing = json.loads(text)
    problems = []
    if custom_resources.is_custom(thing):
        problems = [f"{name_of(thing)}: {place}: {words}" for place, words in custom_resources.problems_of(thing)]
        # What is left of it, the metadata, is as that of any object.
        thing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": thing["metadata"]}
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
