"""Profiles of services measured in this run or in earlier ones, by name and frame.

Also sweeps of the path without any network function, by frame.
"""

from dataclasses import dataclass, field
from pathlib import Path

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.studies.shared.earlier_records import check_results, earlier_records
from resources.libraries.python.studies.sweep.model.profile import Profile
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepRecord


class ProfileStore:
    """Records with a profile; the newest of a name and frame counts.

    Args:
        world: Records of other worlds are ignored: a simulated profile says nothing about a real chain.
        testbed: As for the world.
        folder: With results of earlier runs at any depth; None for none.

    Raises:
        ConfigError: There is no such folder.
    """

    def __init__(self, world: World, testbed: str, folder: Path | None = None) -> None:
        if folder is not None:
            check_results(folder)
        self._world = world
        self._testbed = testbed
        self._folder = folder
        self._known: _Known | None = None

    def put(self, record: SweepRecord) -> None:
        """Add a record, if it has a profile."""
        self._all().put(record)

    def profile(self, name: str, frame: str) -> Profile:
        """The newest profile of a service.

        Raises:
            ConfigError: There is none.
        """
        known = self._all().profiles
        if (name, frame) not in known:
            there = ", ".join(sorted(known_name for known_name, known_frame in known if known_frame == frame)) or "none"
            raise ConfigError(
                f"no profile of '{name}' with {frame} frames on testbed {self._testbed} (available: {there}); "
                "measure it alone first, or set PROFILES to a folder with its results"
            )
        return known[name, frame]

    def with_smt(self, sweep: Sweep) -> Profile:
        """The newest profile of the same service and traffic that was measured with SMT.

        Raises:
            ConfigError: There is none.
        """
        found = self._all().with_smt.get(_same(sweep))
        if found is None:
            raise ConfigError(
                f"{sweep.name} has not been measured with SMT and {sweep.spec.frame.name} frames on testbed "
                f"{self._testbed}; measure it with smt=on first, or set PROFILES to a folder with its results"
            )
        return found

    def path(self, frame: str) -> Sweep | None:
        """The newest sweep of the path without network functions; None where there is none."""
        return self._all().paths.get(frame)

    def _all(self) -> "_Known":
        if self._known is None:
            self._known = _Known()
            found = [] if self._folder is None else earlier_records(self._folder, SweepRecord)
            for record in found:
                if (record.world, record.testbed) == (self._world, self._testbed):
                    self._known.put(record)
        return self._known


def _same(sweep: Sweep) -> str:
    """Service and traffic of a sweep, without its loads."""
    traffic = sweep.spec.model_copy(update={"rates": None, "duration_s": 1})
    return f"{sweep.cell.model_dump_json()} {traffic.model_dump_json()}"


@dataclass
class _Known:
    profiles: dict[tuple[str, str], Profile] = field(default_factory=dict)
    """By name and frame; of the machine as it is, with SMT if it has any."""
    with_smt: dict[str, Profile] = field(default_factory=dict)
    """By service and traffic; of machines that have SMT."""
    paths: dict[str, Sweep] = field(default_factory=dict)
    """By frame."""

    def put(self, record: SweepRecord) -> None:
        sweep = record.sweep
        if sweep is None or record.profile is None:
            return
        if record.smt_off:
            return
        if record.plan is not None and record.plan.cores.smt:
            self.with_smt[_same(sweep)] = record.profile
        self.profiles[sweep.name, sweep.spec.frame.name] = record.profile
        if not sweep.cell.nf_nodes:
            self.paths[sweep.spec.frame.name] = sweep
