"""What a journal tells of a run: what is done, what broke, and whether it may go on here and now."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.cell import Cell
from resources.libraries.python.model.result import Asked, Environment
from resources.libraries.python.model.topology import World
from resources.libraries.python.recording.journal import CHARACTERIZATION_JOURNAL, JOURNAL_FILE, Damage, read
from resources.libraries.python.recording.journal_events import (
    AnyEvent,
    CellQuarantined,
    Choices,
    RunBegun,
    RunCutShort,
    RunEnded,
    RunResumed,
    TestBroken,
    TestFinished,
    TestInterrupted,
    TestStarted,
)

MACHINE_DOWN = "the machine went down in the middle of it"


def cell_key(asked: Asked) -> str:
    """A cell of the matrix in words, the same for all frames and test types."""
    return _cell_words(asked.cell)


def asked_key(asked: Asked) -> str:
    """What tells a test from all others of its run."""
    return key_of(asked.cell, asked.frame.name, asked.test_type)


def key_of(cell: Cell, frame: str, test_type: str) -> str:
    """The same of a test that is not described yet."""
    return f"{_cell_words(cell)} {frame} {test_type}"


def _cell_words(cell: Cell) -> str:
    kinds = f" {'+'.join(cell.nf_kinds)}" if cell.nf_kinds else ""
    return f"{cell.service_type} {cell.locator} NF-{cell.size_name} vSwitch-{cell.vs_dtc}c{kinds}"


@dataclass
class Past:
    """A journal, folded up."""

    path: Path
    header: RunBegun
    done: dict[str, int] = field(default_factory=dict)
    """Finished tests, to where their lines begin."""
    broken: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Tests that broke the system under test and are not finished, to the reasons, one for each attempt."""
    quarantined: dict[str, str] = field(default_factory=dict)
    """Cells to reasons."""
    damage: list[str] = field(default_factory=list)
    _running: str | None = None
    _boot_id: str | None = None

    def fold(self, event: AnyEvent, offset: int) -> None:
        """Take in one more event."""
        match event:
            case RunBegun():
                raise ConfigError(f"{self.path}: there are two runs in this journal")
            case RunResumed():
                self.power_cycle(event.boot_id)
            case TestStarted():
                self._running = event.test
            case TestBroken():
                self._running = None
                self.broken[event.test] = (*self.broken.get(event.test, ()), event.reason)
            case TestFinished() | CellQuarantined():
                self._running = None
                self.done[event.test] = offset
                self.broken.pop(event.test, None)
                if isinstance(event, CellQuarantined):
                    self.quarantined[event.cell] = event.reason
            case TestInterrupted():
                self._running = None
            case RunCutShort():
                for test in event.tests:
                    self.done.pop(test, None)
                    self.broken.pop(test, None)
                for cell in event.cells:
                    self.quarantined.pop(cell, None)
            case RunEnded():
                pass
            case _:
                assert_never(event)

    def power_cycle(self, boot_id: str | None) -> None:
        """The run goes on under the kernel of this boot id.

        A test that was running when the machine went down may be the reason, and is not tried for ever. That the run
        was killed, with the machine staying up, is no fault of the test.
        """
        if self._running is not None and boot_id != self._boot_id:
            self.broken[self._running] = (*self.broken.get(self._running, ()), MACHINE_DOWN)
        self._running = None
        self._boot_id = boot_id


def header_of(folder: Path, *files: str) -> RunBegun:
    """The header of the journal of a folder.

    Args:
        folder: Of the run.
        files: Names of journals; the first one that is there counts. Without any those of all kinds of tests.

    Raises:
        ConfigError: There is none.
    """
    there = [file for file in files or (JOURNAL_FILE, CHARACTERIZATION_JOURNAL) if (folder / file).is_file()]
    path = _journal_of(folder, *there[:1])
    for item in read(path):
        if not isinstance(item, Damage) and isinstance(item.event, RunBegun):
            return item.event
    raise ConfigError(f"{path}: nothing was begun in this run, start it anew")


def has_only_characterizations(folder: Path) -> bool:
    """Whether the run of a folder was cut short before its first density test."""
    return (folder / CHARACTERIZATION_JOURNAL).is_file() and not (folder / JOURNAL_FILE).is_file()


def _journal_of(folder: Path, file: str = JOURNAL_FILE) -> Path:
    path = folder / file
    if not path.is_file():
        raise ConfigError(f"{folder}: there is no run to resume, {file} is missing")
    return path


def past_of(folder: Path, file: str = JOURNAL_FILE) -> Past:
    """Read the journal of a folder.

    Raises:
        ConfigError: There is none, or it is not one that this version reads.
    """
    path = _journal_of(folder, file)
    past: Past | None = None
    damage: list[str] = []
    for item in read(path):
        if isinstance(item, Damage):
            damage.append(item.text)
        elif past is not None:
            past.fold(item.event, item.offset)
        elif isinstance(item.event, RunBegun):
            past = Past(path, item.event, damage=damage, _boot_id=item.event.boot_id)
    if past is None:
        raise ConfigError(f"{path}: nothing was begun in this run, start it anew")
    return past


def has_ended(folder: Path) -> bool:
    """Whether the run of a folder came to its end, with nothing after it.

    Raises:
        ConfigError: There is no run.
    """
    last: AnyEvent | None = None
    for item in read(_journal_of(folder)):
        last = None if isinstance(item, Damage) else item.event
    return isinstance(last, RunEnded)


def differences(before: RunBegun, choices: Choices, environment: Environment, world: World) -> tuple[str, ...]:
    """What is not as it was when the run began, where that only needs to be told.

    Raises:
        ConfigError: One run cannot have both.
    """
    _refuse_other_choices(before.choices, choices)
    then, now = before.environment, environment
    if world is not World.SIM and (then.cpu_model, then.cpus_online) != (now.cpu_model, now.cpus_online):
        raise ConfigError(
            f"the run was begun on {then.cpu_model} with {then.cpus_online} CPUs and cannot be resumed on "
            f"{now.cpu_model} with {now.cpus_online}"
        )
    old, new = _flat(then), _flat(now)
    return tuple(
        f"{name} was {old.get(name)} when the run began and is {new.get(name)} now"
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    )


def _refuse_other_choices(then: Choices, now: Choices) -> None:
    if then.topology_digest != now.topology_digest:
        raise ConfigError(
            f"the run was begun on {then.topology} as it was then and cannot be resumed with {now.topology}: "
            "the testbed is not the same"
        )
    for name in dict.fromkeys([*then.variables, *now.variables]):
        old, new = then.variables.get(name, ""), now.variables.get(name, "")
        if old != new:
            raise ConfigError(f"the run was begun with {name} '{old}' and cannot be resumed with '{new}'")
    for name, one, other in (("--include", then.include, now.include), ("--exclude", then.exclude, now.exclude)):
        if sorted(one) != sorted(other):
            raise ConfigError(
                f"the run was begun with {name} {' '.join(one) or 'nothing'} and cannot be resumed with "
                f"{' '.join(other) or 'nothing'}"
            )
    if then.profile != now.profile:
        raise ConfigError(f"the search profile '{now.profile.name}' means something else than when the run was begun")


def _flat(environment: Environment) -> dict[str, str]:
    """The fingerprint by names; memory differs from boot to boot by what the kernel keeps for itself."""
    row: dict[str, str] = {}
    for node, other in environment.nodes.items():
        row |= {f"{name} of {node}": text for name, text in _flat(other).items()}
    for name, value in environment.model_dump(exclude={"memory_bytes", "nodes"}).items():
        if isinstance(value, dict):
            row |= {f"{name} {key}": str(text) for key, text in value.items()}
        else:
            row[name.replace("_", " ")] = str(value)
    return row
