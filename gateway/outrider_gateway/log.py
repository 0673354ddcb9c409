# SPDX-License-Identifier: Apache-2.0
"""Logs on standard error: text, or the JSON that Outrider's other programs write."""
from __future__ import annotations

import json
import logging
import sys
import time


class JsonFormatter(logging.Formatter):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + self.formatException(record.exc_info)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return json.dumps({"time": f"{moment}.{int(record.msecs):03d}Z", "level": record.levelname.lower(),
                           "message": message}, ensure_ascii=False)


def set_up(*, as_json: bool) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    if as_json:
        logging.getLogger().handlers[0].setFormatter(JsonFormatter())
