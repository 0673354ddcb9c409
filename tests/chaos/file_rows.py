# SPDX-License-Identifier: Apache-2.0
"""Rows of the matrix whose faults are files."""
from __future__ import annotations


async def certificates_are_rotated(run):
    """Each role's, by the same authority; then who connects anew does so with the new ones."""
    roles = {member.role: [one for one in run.cluster.members if one.role == member.role] for member in run.cluster.members}
    for role, members in roles.items():
        await run.pause(0.5, 1)
        run.fault(f"new certificates of each {role}", lambda role=role: run.cluster.security.renew(role))

        async def are_read(members=members):
            return all("TLS files have been renewed" in one.log() for one in members)
        run.at_most(f"each {role} has read its new certificate", await run.until(are_read), 30)
    verifier = run.pick(run.cluster.verifiers)
    await run.kill(verifier)
    await verifier.is_back()
    await run.cluster.wait_until_complete()
