"""Loading of what a study of interference is asked: a YAML file in which a frame size has its name (`512B`, `IMIX`)."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from resources.libraries.python.model.bounds import MOST_SWEPT
from resources.libraries.python.model.frames import FrameByName
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.studies.interference.model.record import InterferenceSpec


class InterferenceFile(InterferenceSpec):
    """A study as a file says it."""

    frame: FrameByName
    frames: Annotated[tuple[FrameByName, ...], Field(max_length=MOST_SWEPT)] = ()


def load_interference(path: Path) -> InterferenceSpec:
    """Read what a study of interference is asked.

    Raises:
        ConfigError: The file does not fit; the sentence has file, line and path inside it.
    """
    return InterferenceSpec.model_validate(load_yaml(path, InterferenceFile).model_dump())
