# SPDX-License-Identifier: Apache-2.0
"""Types of flags whose values protobuf would otherwise refuse with a traceback."""
import argparse

MOST_UINT32 = 2**32 - 1
MOST_UINT64 = 2**64 - 1
_MOST_TOKEN = 2**31 - 1


def whole_number(least, most, *words):
    """A type: a number from `least` to `most`, or one of the words as it is."""
    told = " or ".join([*words, f"a whole number from {least} to {most}"])

    def parse(text):
        if text in words:
            return text
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"needs {told}, not {text!r}")
        return number

    return parse


def token_ids(text):
    """A type: ids with spaces between them, at least one."""
    ids = [whole_number(0, _MOST_TOKEN)(word) for word in text.split()]
    if not ids:
        raise argparse.ArgumentTypeError('needs token ids, such as "0 17 4"')
    return ids
