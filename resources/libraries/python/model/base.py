"""The base of every type that is read from or written to a file."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable record in which an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
