# SPDX-License-Identifier: Apache-2.0
"""A draft row as it travels (SparseRow in proto/outrider/v1/types.proto): ids as gaps, in Rice's code."""
import math
import struct

from stubs import types_pb2


class BitReader:
    """Bits fill each byte from its lowest on."""

    def __init__(self, packed):
        self.bits = int.from_bytes(packed, "little")

    def get(self, num_bits):
        value = self.bits & ((1 << num_bits) - 1)
        self.bits >>= num_bits
        return value

    def get_rice(self, parameter):
        """n >> parameter as so many 1 bits and a 0 bit, then the low bits of n."""
        quotient = 0
        while self.get(1):
            quotient += 1
        return quotient << parameter | self.get(parameter)


def unpack_ids(row):
    if row.num_ids == 0:
        return []
    reader = BitReader(row.packed_ids)
    parameter = reader.get(8)
    ids, following = [], 0
    for _ in range(row.num_ids):
        ids.append(following + reader.get_rice(parameter))
        following = ids[-1] + 1
    return ids


def unpack_weights(row):
    if row.weight_dtype != types_pb2.DTYPE_BFLOAT16:
        return struct.unpack(f"<{row.num_ids}d", row.packed_weights)
    reader = BitReader(row.packed_weights)
    parameter, least_exponent = reader.get(8), reader.get(8)
    weights = []
    for _ in range(row.num_ids):
        exponent = least_exponent + reader.get_rice(parameter)
        # The upper half of a float32, which has no sign here.
        half = exponent << 7 | reader.get(7)
        weights += struct.unpack("<f", struct.pack("<I", half << 16))
    return weights


def row_to_dict(row):
    """q as the drafter really drew from it: id -> probability; all others are 0."""
    weights = unpack_weights(row)
    total = math.fsum(weights)
    return {token: weight / total for token, weight in zip(unpack_ids(row), weights)}
