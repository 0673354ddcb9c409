#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads from machine code how much memory traffic the kernels keep ahead.

  core/kernels/cuda/machine_code_test.py build/release/lib/liboutrider_cuda_kernels.so

No GPU is needed, and none of the CUDA Toolkit's tools: the library holds its kernels as ELF files that are not
compressed, of instructions of 16 bytes each (sm_80 and sm_90 alike). Their low 12 bits say what they do, and bits 105 to
121 which of six counters they raise until their result has come and which they wait for. What the source asks for early
is worth nothing where the compiler waits for it at once; that happened, no test of results can see it, and it costs
what the kernels are for. So this fails where less is under way than the kernels were written for.
"""
import collections
import re
import struct
import sys

CUDA_MACHINE = 190
LDG, LDGSTS, END_GROUP, WAIT_GROUPS, HMMA = 0x981, 0xFAE, 0x9AF, 0x91A, 0x23C
COPY_BYTES = 512  # 16 a lane

Instruction = collections.namedtuple("Instruction", "opcode raises waits groups_left")
# A kernel that multiplies one group of copies while others are on their way: a group's copies, how many of them come
# from memory and not from a cache, the warps of a block, what it has to have ahead in bytes, and how often it waits.
Ring = collections.namedtuple("Ring", "copies from_memory warps least waits", defaults=[1])
RINGS = {
    ("LinearKernel", 1, 1): Ring(3, 2, 8, 56 << 10),  # tiles of outputs, tiles of rows
    ("LinearKernel", 1, 2): Ring(4, 2, 8, 40 << 10),
    ("LinearKernel", 1, 4): Ring(6, 2, 8, 24 << 10),
    ("LinearKernel", 2, 8): Ring(12, 4, 8, 16 << 10),
    ("ManyRowsKernel",): Ring(4, 2, 8, 24 << 10, waits=3),  # one in front of its loop, whose turns are two
    ("SplitKernel", 64): Ring(8, 8, 4, 48 << 10),  # elements of a head
    ("SplitKernel", 128): Ring(16, 16, 4, 32 << 10),
}
# Loads into registers that a warp has under way before it waits for one of them.
LOADS = {"MergeKernel": 24}


def elf_files(library):
    """Offsets of the kernels' ELF files inside a library."""
    for match in re.finditer(rb"\x7fELF\x02\x01", library):
        if struct.unpack_from("<H", library, match.start() + 18)[0] == CUDA_MACHINE:
            yield match.start()


def kernels(library, start):
    """(mangled name, code) of the kernels of one ELF file."""
    at, = struct.unpack_from("<Q", library, start + 40)
    size, count, names = struct.unpack_from("<HHH", library, start + 58)
    sections = [struct.unpack_from("<IIQQQQ", library, start + at + i * size) for i in range(count)]
    for section in sections:
        first = start + sections[names][4] + section[0]
        name = library[first:library.index(b"\0", first)].decode()
        if name.startswith(".text."):
            yield name[len(".text."):], library[start + section[4]:start + section[4] + section[5]]


def decode(code):
    """The instructions of a kernel."""
    for low, high in struct.iter_unpack("<QQ", code):
        raised = high >> 46 & 7
        yield Instruction(low & 0xFFF, raised if raised < 6 else None, {i for i in range(6) if high >> 52 >> i & 1},
                          low >> 38 & 63)


def problem_of_ring(instructions, ring):
    """What is wrong with the main loop of such a kernel, or nothing; and its bytes ahead."""
    waits = [i for i, each in enumerate(instructions) if each.opcode == WAIT_GROUPS]
    if len(waits) != ring.waits:
        return f"waits for groups of copies in {len(waits)} places, not {ring.waits}", 0
    found = [problem_of_round(instructions[first:after], ring)
             for first, after in zip(waits, [*waits[1:], None], strict=True)]
    # A kernel that loads one chunk while it multiplies another has waits before its loop, and two rounds in it.
    rounds = [each for each in found if each is not None]
    if not rounds:
        return "asks for nothing after its products", 0
    return next((each for each in rounds if each[0]), rounds[0])


def problem_of_round(loop, ring):
    """The same of what follows one wait, up to the next; nothing at all where that is no round of products and copies."""
    ends = [i for i, each in enumerate(loop) if each.opcode == END_GROUP]
    if not ends or not any(each.opcode == HMMA for each in loop[:ends[0]]):
        return None
    counter, loop = loop[ends[0]].raises, loop[:ends[0]]
    copies = sum(each.opcode == LDGSTS for each in loop)
    if copies != ring.copies:
        return f"its loop is not one of products and {ring.copies} copies, but of {copies}", 0
    if any(each.opcode == LDG for each in loop):
        return "its loop loads into registers", 0
    if any(counter in each.waits for each in loop[1:]):
        return "its loop waits for all groups of copies", 0
    ahead = loop[0].groups_left * ring.from_memory * COPY_BYTES * ring.warps
    return f"{ahead} bytes are ahead in a block, not {ring.least}" if ahead < ring.least else "", ahead


def most_loads(instructions):
    """How many loads into registers are under way before one of them is waited for."""
    most, under_way = 0, []
    for each in instructions:
        under_way = [counter for counter in under_way if counter not in each.waits]
        if each.opcode == LDG:
            under_way.append(each.raises)
        most = max(most, len(under_way))
    return most


def main():
    with open(sys.argv[1], "rb") as file:
        library = file.read()
    problems, missing = [], {*RINGS, *LOADS}
    for start in elf_files(library):
        for name, code in kernels(library, start):
            short = re.search(r"\d([A-Z][a-zA-Z]*Kernel)(?:I\w*?(Bf16|Half)((?:ELi\d+)*))?", name)
            if not short:
                continue
            instructions = list(decode(code))
            kind = (short[1], *map(int, re.findall(r"ELi(\d+)", short[3] or "")))
            label = " ".join(map(str, (*kind, short[2] or "")))
            problem = ""
            if kind in RINGS:
                problem, ahead = problem_of_ring(instructions, RINGS[kind])
                print(f"{label}: {ahead >> 10} KiB ahead in a block")
            if kind[0] in LOADS:
                loads = most_loads(instructions)
                print(f"{label}: {loads} loads ahead in a warp")
                problem = f"{loads} loads are ahead in a warp, not {LOADS[kind[0]]}" if loads < LOADS[kind[0]] else ""
            if problem:
                problems.append(f"{label}: {problem}")
            missing -= {kind, kind[0]}
    problems += [f"{kind} was not found: compressed, or renamed?" for kind in missing]
    for problem in problems:
        print("FAILED", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
