"""Size of a network function: its physical data cores, as drafts, tags and records write them."""

import re
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from resources.libraries.python.model.bounds import MAX_CORES, quoted

_SHARED = "-shared"
_PATTERN = rf"^((0\.5|[1-9][0-9]{{0,2}})c|0\.5c{_SHARED})$"


class NfSize(str):
    """Data cores of an NF (CSIT's nf_dtc): `0.5c` is one of two siblings, `1c`, `2c`, `3c` and so on whole cores.

    `0.5c-shared` is half of the time of a core that has one thread: the data threads of two NFs take turns on it
    (draft-mkonstan-nf-service-density-01: 1DT/S2PC, without SMT).

    It is the text itself: equal sizes are equal texts, in records, tags and names of tests.
    """

    __slots__ = ()
    HALF: ClassVar["NfSize"]
    ONE: ClassVar["NfSize"]
    TWO: ClassVar["NfSize"]
    SHARED: ClassVar["NfSize"]

    def __new__(cls, text: str) -> Self:
        """Check a text.

        Raises:
            ValueError: It is no size; the text says which there are.
        """
        if re.fullmatch(_PATTERN, text) is None or _cores(text) > MAX_CORES:
            sizes = f"0.5c, 1c, 2c and so on to {MAX_CORES}c, and 0.5c{_SHARED}"
            raise ValueError(f"no NF size '{quoted(text)}'; there are {sizes}")
        return super().__new__(cls, text)

    @classmethod
    def of(cls, cores: float) -> Self:
        """The size that has so many data cores.

        Raises:
            ValueError: There is none.
        """
        return cls(f"{cores:g}c")

    @property
    def cores(self) -> float:
        """Physical data cores."""
        return _cores(self)

    @property
    def is_half(self) -> bool:
        """Whether it is one thread of a core that it shares, and so needs SMT."""
        return self == NfSize.HALF

    @property
    def is_shared(self) -> bool:
        """Whether its data thread takes turns with that of another NF."""
        return self == NfSize.SHARED

    @property
    def whole_cores(self) -> int:
        """Physical cores of its own; none where it shares one."""
        return 0 if self.is_half or self.is_shared else int(self.cores)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        """A text in files and records."""
        del source, handler
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """For other programs."""
        return {**handler(schema), "pattern": _PATTERN}


def _cores(text: str) -> float:
    return float(text.removesuffix(_SHARED)[:-1])


NfSize.HALF, NfSize.ONE, NfSize.TWO = NfSize("0.5c"), NfSize("1c"), NfSize("2c")
NfSize.SHARED = NfSize(f"0.5c{_SHARED}")
