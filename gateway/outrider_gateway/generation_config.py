# SPDX-License-Identifier: Apache-2.0
"""What a model's makers have its texts drawn with: generation_config.json, for requests that do not say otherwise."""
from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import pydantic

from .parameters import MinP, RepetitionPenalty, Temperature, TopK, TopP

if TYPE_CHECKING:
    from .requests import SamplingRequest

_FILE = "generation_config.json"


class SamplingDefaults(pydantic.BaseModel):
    """The parameters that vLLM takes from there, too.

    `do_sample` is none of them: whether tokens are drawn is what a request's temperature says.
    """

    model_config = pydantic.ConfigDict(extra="ignore", allow_inf_nan=False, strict=True)

    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: TopK | None = None
    min_p: MinP | None = None
    repetition_penalty: RepetitionPenalty | None = None

    def fill(self, asked: SamplingRequest) -> None:
        """Gives a request what it has left out."""
        for name in type(self).model_fields:
            if getattr(asked, name) is None:
                setattr(asked, name, getattr(self, name))

    def words(self) -> str:
        """Returns its parameters for people; empty where there are none."""
        return " ".join(f"{name}={value:g}" for name, value in self if value is not None)


def load(directory: pathlib.Path) -> SamplingDefaults:
    """Raises OSError, and ValueError with the parameter's name where a value cannot be."""
    path = directory / _FILE
    if not path.is_file():
        return SamplingDefaults()
    try:
        return SamplingDefaults.model_validate_json(path.read_bytes())
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = ": ".join([_FILE, *map(str, first["loc"]), first["msg"]])
        raise ValueError(f"{what}; mend the file, or have it left alone by --no-generation-config") from None
