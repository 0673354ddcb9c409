# SPDX-License-Identifier: Apache-2.0
"""Rows of the matrix whose faults are files, those that names are looked up in among them."""
from __future__ import annotations

import asyncio

from process_rows import verifiers_die_in_turns


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


async def names_are_gone_and_disks_are_full(run):
    """No line of a log can be written from the beginning on. Then no name can be resolved, while a verifier dies and
    comes back."""
    names, coordinators = run.cluster.surroundings, run.cluster.coordinators
    run.at_least("coordinators that resolve the nodes' name", await how_many_know(names, coordinators), len(coordinators), "")
    run.fault("no name can be resolved", names.take_away)
    run.at_most("of them, once it is gone", await how_many_know(names, coordinators), 0, "")
    await run.pause(2, 4)
    await verifiers_die_in_turns(run)
    await run.tells_recovery("", run.recovery()["p99"])
    names.give()
    await run.pause(2, 3)
    run.at_least("coordinators that resolve it again", await how_many_know(names, coordinators), len(coordinators), "")


async def how_many_know(names, coordinators):
    return sum([await asyncio.to_thread(names.is_known_to, one) for one in coordinators])
