# SPDX-License-Identifier: Apache-2.0
"""`outrider-gateway`: SIGTERM ends it while it loads, which takes a second or more, and drains it from then on."""
from __future__ import annotations

import os
import signal
import sys
import types


def _end(number: int, frame: types.FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    # The kernel keeps signals of the default action from the first process of a PID namespace, such as a container's
    # program. The status is that which a shell has for one.
    os._exit(128 + number)


def main() -> int:
    signal.signal(signal.SIGTERM, _end)  # until the server has its own
    from .main import main as serve  # which takes the time
    return serve()


if __name__ == "__main__":
    sys.exit(main())
