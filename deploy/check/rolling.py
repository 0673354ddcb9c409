# SPDX-License-Identifier: Apache-2.0
"""A rolling update of each role under load: no reader sees an error, nor another text."""
import threading

from cluster import PROMPT, expect, say, wait_until
from playing import ROLES

READERS = 6
TOKENS = 200
ENOUGH = 3  # replies of each reader before, and after, a pod has gone


class Load:
    """Readers that ask the gateway for the same greedy text again and again, each reply compared."""

    def __init__(self, cluster, plain):
        self._cluster, self._plain = cluster, plain
        self._address = cluster.address("gateway")
        self._stopping = threading.Event()
        self._replies = [0] * READERS
        self._errors = []
        self._readers = [threading.Thread(target=self._read, args=(i,)) for i in range(READERS)]

    def __enter__(self):
        for reader in self._readers:
            reader.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        for reader in self._readers:
            reader.join()

    def _read(self, number):
        while not self._stopping.is_set():
            try:
                reply = self._cluster.complete(self._address, prompt=PROMPT, temperature=0, ignore_eos=True, max_tokens=TOKENS)
                text = reply["choices"][0]["text"]
                if not (text and self._plain.startswith(text)):
                    self._errors.append(f"another text: {text!r}")
                self._replies[number] += 1
            except Exception as error:  # whatever it is, a reader has seen it
                self._errors.append(repr(error))
                return

    def serve(self):
        """Waits until each reader has had some more replies, without an error."""
        goals = [count + ENOUGH for count in self._replies]
        wait_until("every reader is served", lambda: self._errors or all(
            count >= goal for count, goal in zip(self._replies, goals)))
        expect(not self._errors, f"readers have seen {self._errors[:3]}")

    def turn_to_successor(self):
        """Does what a Service does: new requests go to the pod that will stay."""
        self._address = self._cluster.address("gateway")

    def num_replies(self):
        return sum(self._replies)


def found(cluster, role):
    """Whether those who talk to a role know of two of its pods, which minReadySeconds leaves them time for."""
    def value(page, line):
        return next((float(one.rsplit(" ", 1)[1]) for one in (page or "").splitlines() if one.startswith(line)), 0)
    if role == "gateway":
        return True
    if role == "coordinator":
        return value(cluster.page("gateway", "/metrics"), "outrider_gateway_coordinators") >= 2
    page = cluster.page("coordinator", "/metrics") or ""
    return any(f'peer="{role}"' in line and 'state="ready"' in line and line.endswith(" 2")
               for line in page.splitlines() if line.startswith("outrider_nodes{"))


def check_rolling_updates(cluster, plain):
    with Load(cluster, plain) as load:
        load.serve()
        for role in ROLES:
            before = load.num_replies()
            end_the_one_before = cluster.start_successor(role)
            wait_until(f"the second {role} is found", lambda role=role: found(cluster, role))
            if role == "gateway":
                load.turn_to_successor()
            load.serve()
            end_the_one_before()
            load.serve()
            say(f"rolling update of the {role} under {READERS} readers: {load.num_replies() - before} replies, no error")
