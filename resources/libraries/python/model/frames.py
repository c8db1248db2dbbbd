"""The frame sizes that tests can ask for by name, from `resources/traffic_profiles/frames.yaml`."""

from functools import cache
from pathlib import Path

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.cell import Frame, FramePart
from resources.libraries.python.model.load import load_yaml

FRAMES_FILE = Path(__file__).parents[3] / "traffic_profiles" / "frames.yaml"


class _FramesFile(Frozen):
    frames: dict[str, tuple[FramePart, ...]]


@cache
def _known() -> dict[str, Frame]:
    rows = load_yaml(FRAMES_FILE, _FramesFile).frames
    return {name: Frame(name=name, parts=parts) for name, parts in rows.items()}


def frame(name: str) -> Frame:
    """The frame size of that name.

    Raises:
        ConfigError: There is none.
    """
    known = {key.upper(): value for key, value in _known().items()}
    if name.upper() not in known:
        raise ConfigError(f"no frame size '{name}'; {FRAMES_FILE.name} has {', '.join(_known())}")
    return known[name.upper()]
