# SPDX-License-Identifier: Apache-2.0
"""Text that a target writes where it is served: a coordinator is faster than transformers."""
import json
import pathlib
import sys
import threading
import time

import numpy as np

from . import written

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SAVE_SECONDS = 30
ROW_SECONDS = 600  # far more than one takes: a coordinator that says nothing holds nobody for ever


def write(path, coordinator, tokens, *, minutes, streams, length, temperatures):
    """Writes `path`, [num_rows, length] uint32, as `written.write` does, through `streams` Generates at once.

    `coordinator` is HOST:PORT, in plain text, of one whose verifiers have the target alone. SystemExit where a call
    fails, where a text ends before its length, and where no text was written in this time.
    """
    sys.path.insert(0, str(REPOSITORY / "gateway"))
    import make_stubs
    make_stubs.main()
    import grpc
    from outrider.v1 import generation_pb2_grpc
    plan = _Plan(tokens, minutes, length, temperatures)
    with grpc.insecure_channel(coordinator) as channel:
        stub = generation_pb2_grpc.GenerationServiceStub(channel)
        readers = [threading.Thread(target=_write_rows, args=(stub, plan)) for _ in range(streams)]
        for reader in readers:
            reader.start()
        while any(reader.is_alive() for reader in readers):
            for reader in readers:
                reader.join(SAVE_SECONDS / streams)
            plan.save(path)
    plan.save(path)
    if plan.error is not None:
        raise SystemExit(f"{coordinator}: {plan.error}")
    if not plan.rows:
        raise SystemExit(f"{coordinator}: no text was written in {minutes:g} minutes: give more --minutes")


class _Plan:
    """Which rows are to be written, and those that are. Its methods may be called by any thread."""

    def __init__(self, tokens, minutes, length, temperatures):
        self.tokens, self.length, self.temperatures = tokens.numpy(), length, temperatures
        self.begin, self.seconds = time.monotonic(), 60 * minutes
        self.lock = threading.Lock()
        self.turn, self.random, self.rows, self.error = 0, np.random.default_rng(11), [], None

    def next(self):
        """(prompt, temperature, seed) of the next row, or None once the time is over."""
        with self.lock:
            if self.error is not None or time.monotonic() - self.begin > self.seconds:
                return None
            prompt_length, temperature = written.kind_of(self.turn, self.length, self.temperatures)
            self.turn += 1
            start = self.random.integers(len(self.tokens) - prompt_length)
            return self.tokens[start:start + prompt_length].tolist(), temperature, self.turn

    def add(self, row):
        with self.lock:
            self.rows.append(row)

    def fail(self, error):
        """Ends the plan with these words: nothing that it asks for would come."""
        with self.lock:
            self.error = self.error or error

    def save(self, path):
        """Leaves what is there where nothing is written yet."""
        with self.lock:
            rows = np.array(self.rows, np.uint32).reshape(-1, self.length)
        if len(rows) > 0:
            np.save(path, rows)
        print(json.dumps(dict(rows=len(rows), tokens=rows.size,
                              seconds=round(time.monotonic() - self.begin))), flush=True)


def _write_rows(stub, plan):
    import grpc
    from outrider.v1 import generation_pb2 as pb
    while (task := plan.next()) is not None:
        prompt, temperature, seed = task
        request = pb.GenerateRequest(
            tokens=pb.TokenIds(ids=prompt), temperature=temperature, seed=seed, ignore_eos=True,
            max_tokens=plan.length - len(prompt), num_speculative_tokens=0)
        try:
            row, reason = list(prompt), pb.FINISH_REASON_UNSPECIFIED
            for message in stub.Generate(request, timeout=ROW_SECONDS):
                row += [token.id for token in message.tokens]
                if message.HasField("finish"):
                    reason = message.finish.reason
        except grpc.RpcError as error:
            return plan.fail(f"{error.code().name}: {error.details()}")
        if len(row) != plan.length:
            return plan.fail(f"a text ended after {len(row)} of the {plan.length} tokens of --length, with "
                             f"{pb.FinishReason.Name(reason)}: ask for no more than the model has a context for")
        plan.add(row)
