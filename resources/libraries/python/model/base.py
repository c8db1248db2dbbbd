"""The base of every type that is read from or written to a file."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable record in which an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Location = tuple[int | str, ...]
"""Keys and indexes from the top of a file to a place in it."""


class Misfit(ValueError):
    """Something in a file contradicts something else in it."""

    def __init__(self, location: Location, message: str) -> None:
        super().__init__(message)
        self.location = location
        """From the model that noticed to the place that is wrong."""
