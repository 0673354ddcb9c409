# SPDX-License-Identifier: Apache-2.0
"""The ranges of sampling parameters, wherever they are said."""
from __future__ import annotations

from typing import Annotated

from pydantic import Field

# The limits are protobuf's int32 and uint32; coordinators have narrower ones of their own.
MAX_INT32, MAX_UINT32 = (1 << 31) - 1, (1 << 32) - 1

Temperature = Annotated[float, Field(ge=0, le=2)]
TopP = Annotated[float, Field(gt=0, le=1)]
TopK = Annotated[int, Field(ge=-1, le=MAX_INT32)]
MinP = Annotated[float, Field(ge=0, le=1)]
RepetitionPenalty = Annotated[float, Field(gt=0)]
