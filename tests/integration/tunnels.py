# SPDX-License-Identifier: Apache-2.0
"""Whether this machine lets a program make tunnels: network namespaces, and devices in them."""
import os
import pathlib
import re

DEVICE = "/dev/net/tun"
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}  # and their bits: a container's root may be without them


def lacks_tunnels():
    """What they need that is not here, if anything."""
    status = pathlib.Path("/proc/self/status").read_text("utf-8")
    effective = int(re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)[1], 16)
    missing = [name for name, bit in CAPABILITIES.items() if not effective >> bit & 1]
    try:
        os.close(os.open(DEVICE, os.O_RDWR))
    except OSError as error:
        missing.append(f"{DEVICE} ({error.strerror})")
    return " and ".join(missing)
