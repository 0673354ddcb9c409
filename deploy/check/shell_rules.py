# SPDX-License-Identifier: Apache-2.0
"""Whether the loops of shells end when their pods are to end."""
import re

from manifests import name_of
from meaning import arguments, containers_of, workloads

LONGEST_SLEEP = 5  # seconds


def check_loops(things):
    """The kernel keeps SIGTERM from a container's first process unless that has a handler, and a shell runs its trap
    once the command before it has ended. Without, pods are killed at the end of their grace, which may be minutes."""
    for thing in workloads(things):
        for container in containers_of(thing):
            words = arguments(container, things)
            if words[:2] != ["sh", "-c"] or not re.search(r"\b(while|until|for)\b", words[2]):
                continue
            name = f"{name_of(thing)}: container {container['name']}"
            if not re.match("trap 'exit 143' TERM;", words[2]):
                yield f"{name} loops without trap 'exit 143' TERM: SIGTERM does not end it"
            for seconds in re.findall(r"\bsleep (\d+)(?! *&)\b", words[2]):
                if int(seconds) > LONGEST_SLEEP:
                    yield f"{name} hears no SIGTERM while it sleeps for {seconds} s: `sleep {seconds} & wait $!`"
