"""Profiles of services that were measured before, in this run or in an earlier one, by name and frame."""

from pathlib import Path

from pydantic import ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.model.profile import Profile
from resources.libraries.python.model.topology import World


class Shelf:
    """Records with a profile; the newest of a name and frame counts.

    Args:
        world: Only what was measured there is given out: a simulated profile says nothing of a real chain.
        testbed: As the world.
        folder: With results of earlier runs at any depth; None for none.

    Raises:
        ConfigError: There is no such folder.
    """

    def __init__(self, world: World, testbed: str, folder: Path | None = None) -> None:
        if folder is not None and not folder.is_dir():
            raise ConfigError(f"{folder}: there is no such folder with earlier results")
        self._world = world
        self._testbed = testbed
        self._folder = folder
        self._profiles: dict[tuple[str, str], Profile] | None = None

    def is_of(self, world: World, testbed: str) -> bool:
        """Whether it is that of a testbed."""
        return (self._world, self._testbed) == (world, testbed)

    def put(self, record: Characterization) -> None:
        """Keep a record, if it has a profile."""
        _put(self._all(), record)

    def profile(self, name: str, frame: str) -> Profile:
        """The newest profile of a service.

        Raises:
            ConfigError: There is none.
        """
        known = self._all()
        if (name, frame) not in known:
            there = ", ".join(sorted(known_name for known_name, known_frame in known if known_frame == frame)) or "none"
            raise ConfigError(
                f"there is no profile of '{name}' with {frame} frames on testbed {self._testbed} (there are: {there}); "
                "measure it alone first, or name a folder with its results in PROFILES"
            )
        return known[name, frame]

    def _all(self) -> dict[tuple[str, str], Profile]:
        if self._profiles is None:
            self._profiles = {}
            files = [] if self._folder is None else self._folder.rglob("results/*.json")
            found = [record for path in files if (record := _read(path)) is not None]
            for record in sorted(found, key=lambda each: each.started_at):
                if (record.world, record.testbed) == (self._world, self._testbed):
                    _put(self._profiles, record)
        return self._profiles


def _put(profiles: dict[tuple[str, str], Profile], record: Characterization) -> None:
    if record.sweep is not None and record.profile is not None:
        profiles[record.sweep.name, record.sweep.spec.frame.name] = record.profile


def _read(path: Path) -> Characterization | None:
    """A characterization; None for a file that is none, such as the result of a density test."""
    try:
        return Characterization.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
