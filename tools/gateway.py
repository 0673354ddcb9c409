#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make gateway`: the demo pair behind an OpenAI-compatible address, until Ctrl-C."""
import contextlib
import os
import pathlib
import signal
import sys
import time

from program import Program, stop_all

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / "build/release/bin"
TARGET, DRAFT = ROOT / "models/demo-target", ROOT / "models/demo-draft"
LISTEN = os.environ.get("OUTRIDER_GATEWAY_LISTEN", "127.0.0.1:8000")
DRAIN_SECONDS, STOP_SECONDS = 5, 15
ALLOWED_ORIGINS = os.environ.get("OUTRIDER_GATEWAY_ALLOWED_ORIGINS", "")


def main() -> int:
    # SIGTERM ends this as Ctrl-C does, and the services with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    programs: list[Program] = []

    def start(path: pathlib.Path, *flags: str | os.PathLike) -> str:
        # They have sessions of their own, so that Ctrl-C reaches only us.
        programs.append(Program(path, *flags, own_session=True))
        return programs[-1].address()

    try:
        verifier = start(BIN / "outrider-verifier", "--model", TARGET, "--listen", "127.0.0.1:0")
        drafter = start(BIN / "outrider-drafter", "--model", DRAFT, "--listen", "127.0.0.1:0")
        coordinator = start(BIN / "outrider-coordinator", "--verifier", verifier, "--drafter", drafter,
                            "--tokenizer", TARGET, "--listen", "127.0.0.1:0")
        address = start(pathlib.Path(sys.executable).with_name("outrider-gateway"), "--listen", LISTEN,
                        "--coordinator", coordinator, "--model", TARGET, "--drain-seconds", str(DRAIN_SECONDS),
                        *(("--allowed-origins", ALLOWED_ORIGINS) if ALLOWED_ORIGINS else ()))
        print(f"""The gateway serves the demo pair; Ctrl-C stops it.

  in a browser    http://{address}/
  from a shell    curl http://{address}/v1/completions -d '{{"model": "demo-target", "prompt": "def add(a, b):", \
"max_tokens": 32, "temperature": 0}}'
  for tools       base URL http://{address}/v1, any API key, model demo-target; /v1/completions alone, as this pair
                  has no chat template
""", flush=True)
        while all(program.process.poll() is None for program in programs):
            time.sleep(0.5)
        ended = next(program for program in programs if program.process.poll() is not None)
        print(f"{ended.name} ended: {ended.err().strip()}", file=sys.stderr)
        return 1
    except AssertionError as error:
        print(f"make gateway: {error}", file=sys.stderr)
        if "Address already in use" in str(error):
            print("Choose another: OUTRIDER_GATEWAY_LISTEN=127.0.0.1:0 make gateway", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        with contextlib.suppress(KeyboardInterrupt):  # who cannot wait for streams to end
            stop_all(programs, STOP_SECONDS)
        for program in programs:
            program.close()


if __name__ == "__main__":
    sys.exit(main())
