# SPDX-License-Identifier: Apache-2.0
"""All that is checked of rendered objects."""
import enums
import manifests
import meaning
import model_rules
import monitors
import policies
import probe_rules
import scheduling
import security
import shell_rules
import sizes


def problems_of(things):
    """Lines, each of which names the object and says what is wrong with it."""
    found, _ = manifests.validate(things)
    for rules in (lambda objects: meaning.check(objects, meaning.binaries_folder()),
                  policies.check_policies, probe_rules.check_probes, scheduling.check_scheduling, security.check_everything_secure,
                  sizes.check_sizes, shell_rules.check_loops, model_rules.check_models, monitors.check_monitors, enums.check_enums):
        try:
            for problem in rules(things):
                found.append(problem)
        # What the schemas have complained of may be without what a rule reads.
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            found.append(f"an object has not the form that it should: {type(error).__name__} {error}")
    return found
