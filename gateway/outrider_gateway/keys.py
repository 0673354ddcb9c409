# SPDX-License-Identifier: Apache-2.0
"""Who may ask, and how much: API keys from a file that is read again when it changes."""
from __future__ import annotations

import dataclasses
import hashlib
import hmac
import itertools
import logging
import pathlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .errors import ApiError

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
# What is reserved may come back at any time: nobody is told to wait for longer than a whole bucket takes to fill.
_LONGEST_WAIT = 60.0
_PRINTABLE = re.compile("[!-~]+")


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one key may use; None: no limit."""

    requests: int | None = None  # at a time
    tokens_per_minute: int | None = None


class Reservation(NamedTuple):
    """Tokens that are counted for a request before it takes them."""

    tokens: float
    at: float


@dataclasses.dataclass
class Account:
    """One key's use. Tokens are counted in a bucket that fills evenly over a minute."""

    name: str
    digest: bytes
    limits: Limits
    num_running: int = 0
    _spent: float = 0.0
    _spent_at: float = 0.0
    _num_reservations: int = 0

    def cache_salt(self, asked: str | None) -> str:
        """What sessions of this key may share caches by, in groups by what requests ask; nobody else's do.

        Without keys strangers are one account, so only those share who ask for it by the same word.
        """
        if not self.digest and asked is None:
            return ""
        return hmac.new(self.digest, b"outrider-cache-salt:" + (asked or "").encode(), "sha256").hexdigest()

    @contextmanager
    def request(self, now: float) -> Iterator[None]:
        """The time that a request of this key runs in; ApiError 429 where its limits are reached."""
        limit = self.limits.requests
        if limit is not None and self.num_running >= limit:
            raise ApiError(429, f"this key may have {limit} requests at a time; wait for one to end",
                           code="rate_limit_exceeded", retry_after=1.0)
        self._check_tokens(now)
        self.num_running += 1
        try:
            yield
        finally:
            self.num_running -= 1

    def reserve(self, tokens: int, now: float) -> Reservation:
        """Counts what a request may take as used, until `settle`; ApiError 429 where others have used all.

        No more than a minute has is counted, or a request without a limit of its own would keep all others out for
        long.
        """
        self._check_tokens(now)
        reserved = min(tokens, self.limits.tokens_per_minute or 0)
        self._spent += reserved
        self._num_reservations += 1
        return Reservation(reserved, now)

    def settle(self, reservation: Reservation, used: int, now: float) -> None:
        """What the request took in the end, in place of what was reserved for it."""
        self._drain(now)
        self._num_reservations -= 1
        if self.limits.tokens_per_minute is None:
            return
        # What of the reservation has drained since is not there to be given back: what is there is others' use.
        drained = min(reservation.tokens, self.limits.tokens_per_minute / 60 * (now - reservation.at))
        left = reservation.tokens - drained
        self._spent = max(0.0, self._spent - left + max(0.0, used - drained))

    def _check_tokens(self, now: float) -> None:
        wait = self._seconds_until_tokens(now)
        if wait > 0:
            limit = self.limits.tokens_per_minute
            words = f"this key has used its {limit} tokens a minute"
            if self._num_reservations:
                words = f"the {limit} tokens a minute of this key are used, or reserved by requests that run: each " \
                        "reserves its prompt and its max_tokens until it ends"
            raise ApiError(429, words, code="rate_limit_exceeded", retry_after=min(wait, _LONGEST_WAIT))

    def _drain(self, now: float) -> None:
        if self.limits.tokens_per_minute is None:
            self._spent = 0.0  # a limit that comes later counts from then on
        else:
            self._spent = max(0.0, self._spent - self.limits.tokens_per_minute / 60 * (now - self._spent_at))
        self._spent_at = now

    def _seconds_until_tokens(self, now: float) -> float:
        if self.limits.tokens_per_minute is None:
            return 0.0
        self._drain(now)
        return max(0.0, self._spent - self.limits.tokens_per_minute) / (self.limits.tokens_per_minute / 60)


def parse(text: str) -> list[Account]:
    """A line a key: NAME KEY [requests=N] [tokens_per_minute=N]; a word that begins with # begins a comment.

    ValueError names the line.
    """
    accounts = []
    for number, line in enumerate(text.split("\n"), 1):
        words = _words(line)
        if not words:
            continue
        if len(words) < 2:
            raise ValueError(f"line {number}: a key has a name and a secret: NAME KEY [requests=N] "
                             "[tokens_per_minute=N]")
        if not _PRINTABLE.fullmatch(words[1]):
            # A header's bytes are no text of any encoding: such a key would be known to nobody, or be cut.
            raise ValueError(f"line {number}: the key has other characters than ASCII's printable ones")
        options: dict[str, int] = {}
        for word in words[2:]:
            name, _, value = word.partition("=")
            if name not in ("requests", "tokens_per_minute") or not value.isdecimal() or int(value) < 1:
                raise ValueError(f"line {number}: {word!r} is neither requests=N nor tokens_per_minute=N")
            options[name] = int(value)
        accounts.append(Account(words[0], _digest(words[1]), Limits(**options)))
    if not accounts:
        raise ValueError("the file has no key, so nobody could ask anything")
    return accounts


def _words(line: str) -> list[str]:
    words = [word for word in re.split(r"[ \t\r]", line) if word]  # other blanks, as Unicode has them, part no key
    return list(itertools.takewhile(lambda word: not word.startswith("#"), words))


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


class Keys:
    """The keys of a file; without one, everybody is one account without limits."""

    def __init__(self, path: pathlib.Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises OSError or ValueError where the file cannot be used at start."""
        self._path = path
        self._clock = clock
        self._anyone = Account("anyone", b"", Limits())
        self._accounts: list[Account] = []
        self._stamp: tuple[int, int] | None = None
        self._looked_at = float("-inf")
        if path is not None:
            self._read(path)

    @property
    def are_for_anyone(self) -> bool:
        """There is no file, so nobody needs a key."""
        return self._path is None

    def authenticate(self, authorization: str | None) -> Account:
        """The account of `Authorization: Bearer KEY`; ApiError 401 where the key is none of ours."""
        if self._path is None:
            return self._anyone
        self._look(self._path)
        kind, _, key = (authorization or "").partition(" ")
        if kind.lower() != "bearer" or not key:
            raise ApiError(401, "an API key is needed: Authorization: Bearer KEY", code="invalid_api_key")
        digest = _digest(key.strip())
        # All of them, each in constant time: how long it takes says nothing of the keys.
        found = [account for account in self._accounts if hmac.compare_digest(account.digest, digest)]
        if not found:
            raise ApiError(401, "this API key is not known here", code="invalid_api_key")
        return found[0]

    def _look(self, path: pathlib.Path) -> None:
        now = self._clock()
        if now < self._looked_at + _LOOK_SECONDS:
            return
        self._looked_at = now
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp != self._stamp:
                self._stamp = stamp  # said once of each change
                self._read(path)
        except (OSError, ValueError) as error:
            log.error("the keys stay as they are: %s: %s", path, error)

    def _read(self, path: pathlib.Path) -> None:
        status = path.stat()
        accounts = parse(path.read_text("utf-8-sig"))  # with the mark that some editors put first, or without
        # Who is known already keeps what it has used.
        known = {(a.name, a.digest): a for a in self._accounts}
        for i, account in enumerate(accounts):
            if (old := known.get((account.name, account.digest))) is not None:
                old.limits = account.limits
                accounts[i] = old
        self._accounts = accounts
        self._stamp = (status.st_mtime_ns, status.st_size)
