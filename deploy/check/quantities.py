# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' quantities: 500m, 2, 1Gi."""
import re

FORM = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi|)")
FACTORS = {"": 1, "m": 1e-3, **{unit: 1000 ** (i + 1) for i, unit in enumerate("kMGTP")},
           **{f"{unit}i": 1024 ** (i + 1) for i, unit in enumerate("KMGTP")}}
LEAST_BYTES = 1 << 20
LEAST_CORES, MOST_CORES = 0.01, 256  # 2m is no 2, and 500 no 500m


def value_of(text):
    """Its number, or nothing where it is no quantity."""
    form = FORM.fullmatch(str(text))
    return float(form[1]) * FACTORS[form[2]] if form else None


def problem_of(resource, text):
    """Why it cannot be meant, or nothing."""
    value = value_of(text)
    if value is None:
        return f"{text!r} is no quantity, such as 500m or 2Gi"
    if resource in ("memory", "ephemeral-storage", "storage") and value < LEAST_BYTES:
        return f"{text} are {value:g} bytes"
    if resource == "cpu" and not LEAST_CORES <= value <= MOST_CORES:
        return f"{text} are {value:g} cores"
    return None
