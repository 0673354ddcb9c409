# SPDX-License-Identifier: Apache-2.0
"""The real programs that a row of the matrix disturbs."""
from __future__ import annotations

import asyncio
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
import urllib.request

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from program import PATIENCE, Program, wait_until  # noqa: E402

BIN = pathlib.Path(os.environ.get("OUTRIDER_BIN_DIR") or ROOT / "build/release/bin")
TARGET, DRAFT = ROOT / "models/demo-target", ROOT / "models/demo-draft"
ROLES = ("verifier", "drafter", "coordinator")
LEASE = 5
KV_MEMORY = "512MiB"
sys.path.insert(0, str(ROOT / "tests/integration"))
from certificates import Authority  # noqa: E402

sys.path.insert(0, str(ROOT / "examples/python"))
import stubs  # noqa: E402

_READER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Member:
    """One program of the cluster, which keeps its address over its deaths."""

    def __init__(self, role, number, flags, inside=(), host="127.0.0.1"):
        """`inside`: the words of a command that becomes the program, with what it finds around it."""
        self.role = role
        self.name = name_of(role, number)
        self._flags = flags
        self._inside = inside
        self._address = f"{host}:0"
        self._stopped = False
        self.program = None
        self.past = []  # its programs that have ended
        self.start()

    def start(self):
        if self.program is not None:
            self.past.append(self.program)
        self.program = Program(BIN / f"outrider-{self.role}", *self._flags, "--listen", self._address,
                               "--metrics-listen", self._address.rpartition(":")[0] + ":0", inside=self._inside,
                               own_session=True)

    def set_flag(self, flag, value):
        """Gives the flag this value, from the next start on, in place of the one that it had."""
        flags = list(self._flags)
        if flag in flags:
            flags[flags.index(flag) + 1] = value
        else:
            flags += [flag, value]
        self._flags = tuple(flags)

    @property
    def address(self):
        if self._address.endswith(":0"):
            self._address = self.program.address()
        return self._address

    @property
    def pid(self):
        return self.program.process.pid

    @property
    def is_alive(self):
        return self.program.process.poll() is None and not self._stopped

    def kill(self):
        self.program.end(signal.SIGKILL)
        self._stopped = False

    def stop(self):
        self.program.send(signal.SIGSTOP)
        self._stopped = True

    def go_on(self):
        self.program.send(signal.SIGCONT)
        self._stopped = False

    async def drain(self):
        """Tells it to end; the seconds that it took."""
        begin = time.monotonic()
        status = await asyncio.to_thread(self.program.end, signal.SIGTERM)
        assert status == 0, f"{self.name} ended with {status}: {self.program.err()[-2000:]}"
        return time.monotonic() - begin

    async def is_back(self):
        """Starts it again, and returns when it listens."""
        self.start()
        await asyncio.to_thread(self.program.address)

    def page(self):
        """Its metrics: where packets are lost, an exchange may take longer than the program waits for one."""
        address = re.search(r"metrics on (\S+)", self.program.out())[1]
        end = time.monotonic() + PATIENCE
        while True:
            try:
                with _READER.open(f"http://{address}/metrics", timeout=PATIENCE) as reply:
                    return reply.read().decode()
            except OSError:
                if not self.is_alive or time.monotonic() > end:
                    raise
            time.sleep(0.1)

    async def value(self, name, **labels):
        """The sum of the samples that have these labels; 0 of a program that is gone."""
        if not self.is_alive:
            return 0
        return sample(await asyncio.to_thread(self.page), name, **labels)

    def threads_and_descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/task")), len(os.listdir(f"/proc/{self.pid}/fd"))

    def memory(self):
        """Bytes in memory."""
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def log(self):
        return "".join(program.err() for program in (*self.past, self.program))

    def close(self):
        for program in (*self.past, self.program):
            program.close()


def sample(page, name, **labels):
    total = 0.0
    for line in page.splitlines():
        match = re.fullmatch(rf"outrider_{name}(?:\{{(.*)\}})? (\S+)", line)
        if match and all(f'{key}="{value}"' in (match[1] or "") for key, value in labels.items()):
            total += float(match[2])
    return total


class Security:
    """Certificates of one authority, one for each role and for clients."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="outrider-chaos-")
        self._authority = Authority(pathlib.Path(self._folder.name))
        self._client = self._authority.sign("client")

    def flags(self, role):
        return self._authority.flags(role)

    def renew(self, role):
        for new in self._authority.sign(f"{role}-new"):
            new.rename(new.with_name(f"{role}{new.suffix}"))

    def credentials(self):
        certificate, key = self._client
        return grpc.ssl_channel_credentials(self._authority.path.read_bytes(), key.read_bytes(), certificate.read_bytes())


class Surroundings:
    """What programs find around them: the machine's own, unless a row has others, which it can change."""
    coordinator_flags = ()

    def inside(self, name):
        """The words of a command that becomes the program of that name."""
        return ()

    def way(self, address):
        """How coordinators are told to reach a node."""
        return address

    def close(self):
        pass


class Cluster:
    """Three verifiers, two drafters, two coordinators, unless a row asks for others."""

    def __init__(self, verifiers=3, drafters=2, coordinators=2, proxy=None, node_flags=(), coordinator_flags=(), kv_memory=KV_MEMORY,
                 lease=LEASE, is_secure=False, losses=(), network=0, surroundings=Surroundings):
        """`proxy`: makes the way to a node's address, where a row disturbs the links; `losses`: of the packets to
        each verifier, in networks from that number on."""
        self.lease = lease
        self.members = []
        self.security = Security() if is_secure else None
        self.surroundings = surroundings()
        secure = {role: self.security.flags(role) if is_secure else () for role in ROLES}
        # Verifiers are started first, each behind packets that get lost.
        tunnels = [(BIN / "outrider-tunnel", "--rtt", "2", "--loss", str(loss), "--network", str(number), "--")
                   for number, loss in enumerate(losses, network)]
        insecure = ("--insecure",) if losses else ()
        common = ("--threads", 1, "--kv-cache-memory", kv_memory, "--lease-seconds", lease, *insecure, *node_flags)

        def start(role, count, *flags):
            for _ in range(count):
                number = 1 + sum(member.role == role for member in self.members)
                around = ({"inside": tunnels.pop(), "host": "{host}"} if tunnels else
                          {"inside": self.surroundings.inside(name_of(role, number))})
                self.members.append(Member(role, number, (*flags, *secure[role]), **around))
            return self.members[len(self.members) - count:]
        try:
            # One kind of kernels, as the text is the same only where they are.
            first = start("verifier", 1, "--model", TARGET, *common)
            numerics = self.describe(first[0]).numerics
            first[0].set_flag("--kernels", numerics)
            self.verifiers = first + start("verifier", verifiers - 1, "--model", TARGET, *common, "--kernels", numerics)
            # Named here too: one that is started again would measure which are fastest, beside all that runs.
            self.drafters = start("drafter", drafters, "--model", DRAFT, *common, "--kernels", numerics)
            self.nodes = [*self.verifiers, *self.drafters]
            self.ways = {node: self.surroundings.way(proxy(node.address) if proxy else node.address) for node in self.nodes}
            self.coordinators = start(
                "coordinator", coordinators, "--tokenizer", TARGET, *insecure, *coordinator_flags,
                *self.surroundings.coordinator_flags,
                *(word for node in self.nodes for word in (f"--{node.role}", self.ways[node])))
            wait_until("all nodes are found", self._is_complete)
        except BaseException:
            self.close()
            raise

    def channel(self, address):
        if self.security is None:
            return grpc.insecure_channel(address)
        return grpc.secure_channel(address, self.security.credentials())

    def describe(self, verifier):
        """What it says of itself, such as the kernels that it has chosen, as other nodes are told to choose them."""
        with self.channel(verifier.address) as channel:
            return stubs.verifier_pb2_grpc.VerifierServiceStub(channel).Describe(
                stubs.verifier_pb2.VerifierServiceDescribeRequest(), timeout=20).node

    def model_of(self, verifier):
        """Whose text it gives, as streams name it."""
        node = self.describe(verifier)
        return stubs.types_pb2.ModelIdentity(weights_hash=node.weights_hash, dtype=node.dtype, numerics=node.numerics)

    def _is_complete(self):
        wanted = {"verifier": len(self.verifiers), "drafter": len(self.drafters)}
        return all(sample(page, "nodes", peer=peer, state="ready") == count
                   for page in (_page_of(one) for one in self.coordinators) for peer, count in wanted.items())

    async def wait_until_complete(self, patience=60):
        await asyncio.to_thread(wait_until, "all nodes are found again", self._is_complete, patience)

    async def total(self, members, name, **labels):
        return sum([await member.value(name, **labels) for member in members])

    async def blocks(self):
        return await self.total(self.nodes, "kv_cache_blocks_used")

    def threads_and_descriptors(self):
        """Those of each process that is there: a process that was started again is another one."""
        return {(member.name, member.pid): member.threads_and_descriptors()
                for member in self.members if member.is_alive}

    def close(self):
        for member in self.members:
            member.close()
        self.surroundings.close()


def name_of(role, number):
    return f"{role} {number}"


def _page_of(member):
    member.address  # it listens, and has said where
    return member.page()
