"""The run and its journal: tests that have ended or broke the system under test, and whether the run may resume."""

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple, Self, assert_never
from uuid import uuid4

from resources.libraries.python.errors import ConfigError, CsitError, RunStopped
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.recording.journal import (
    JOURNAL_FILE,
    AnyEvent,
    CellQuarantined,
    Choices,
    Damage,
    Journal,
    RunBegun,
    RunCutShort,
    RunEnded,
    RunResumed,
    Status,
    TestBroken,
    TestFinished,
    TestInterrupted,
    TestStarted,
    read,
)
from resources.libraries.python.recording.writer import utc_now

MAX_ATTEMPTS = 2
"""A cell that breaks the system under test is tried once more."""
MAX_IN_A_ROW = 3
"""Consecutive quarantined cells after which the machine is taken to be broken, not the cells."""
MACHINE_DOWN = "the machine went down during the test"
_log = logging.getLogger(__name__)


def digest_of(*parts: str) -> str:
    """SHA-256 of what is measured and of the system that it is measured on."""
    return sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class TestKey:
    """Identity of a test in the journal."""

    __test__ = False  # no pytest class

    test: str
    """Different for every test of a run."""
    digest: str
    """Digest of what is measured: a test with other settings is another test."""
    cell: str
    """Scope of a quarantine: tests of the same cell deploy the same."""


@dataclass(frozen=True, slots=True)
class Command:
    """Command line that started the run."""

    name: Literal["local", "robot"] | None = None
    """None for plain Robot."""
    arguments: tuple[str, ...] = ()
    folder: str = ""


class EndFacts(NamedTuple):
    """Facts of an ended test until the run ends: an event of the journal would take 1.5 kB for each test."""

    status: Status
    record: str
    """File name in the folder of results."""
    is_quarantined: bool


@dataclass(frozen=True, slots=True)
class TestHistory:
    """History of a test before it begins."""

    ended: EndFacts | None
    quarantine: str | None
    """Why its cell is quarantined."""
    broken: tuple[str, ...]
    """Reasons of its earlier attempts."""


@dataclass
class RunState:
    """State of a run, folded from the events of its journal."""

    path: Path
    header: RunBegun
    done: dict[tuple[str, str], EndFacts] = field(default_factory=dict)
    """Ended tests by name and digest."""
    broken: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Tests that broke the system under test and have not ended, to a reason for each attempt."""
    quarantined: dict[str, str] = field(default_factory=dict)
    """Cells to reasons."""
    damage: list[str] = field(default_factory=list)
    _running: str | None = None
    _boot_id: str | None = None

    def fold(self, event: AnyEvent) -> None:
        """Take in one more event."""
        match event:
            case RunBegun():
                raise ConfigError(f"{self.path}: the journal has two runs")
            case RunResumed():
                self._power_cycle(event.boot_id)
            case TestStarted():
                self._running = event.test
            case TestBroken():
                self._running = None
                self.broken[event.test] = (*self.broken.get(event.test, ()), event.reason)
            case TestFinished() | CellQuarantined():
                self._running = None
                quarantined = isinstance(event, CellQuarantined)
                self.done[event.test, event.digest] = EndFacts(event.status, event.record, quarantined)
                self.broken.pop(event.test, None)
                if isinstance(event, CellQuarantined):
                    self.quarantined[event.cell] = event.reason
            case TestInterrupted():
                self._running = None
            case RunCutShort():
                self.done = {key: row for key, row in self.done.items() if key[0] not in event.tests}
                for test in event.tests:
                    self.broken.pop(test, None)
                for cell in event.cells:
                    self.quarantined.pop(cell, None)
            case RunEnded():
                pass
            case _:
                assert_never(event)

    def _power_cycle(self, boot_id: str | None) -> None:
        """Count a test that was running when the machine went down as broken: it may be the reason.

        A killed run on a machine that stayed up is not the fault of the test.
        """
        if self._running is not None and boot_id != self._boot_id:
            self.broken[self._running] = (*self.broken.get(self._running, ()), MACHINE_DOWN)
        self._running = None
        self._boot_id = boot_id


class RunJournal:
    """Writes the journal of a run and knows its contents. To be closed.

    Raises:
        CsitError: Another process writes it, or it cannot be written.
    """

    def __init__(self, journal: Journal, past: RunState, remarks: Sequence[str] = ()) -> None:
        self._journal = journal
        self.past = past
        """All events so far."""
        self._in_a_row: list[tuple[str, str]] = []
        self._is_whole = True
        self._held = ExitStack()
        self._held.enter_context(journal)
        self.remarks = tuple(remarks)
        """Warnings for the log of the run."""

    @classmethod
    def begin(
        cls, folder: Path, choices: Choices, environment: Environment, command: Command, boot_id: str | None
    ) -> Self:
        """Begin a run in a folder; the journal of an earlier run there is renamed.

        Raises:
            CsitError: The folder cannot be written, or another process writes there.
        """
        path = folder / JOURNAL_FILE
        remarks: list[str] = []
        if path.is_file():
            with Journal(path):  # no other process writes it
                aside = _free_name(path)
                path.rename(aside)
            remarks.append(f"the journal of an earlier run in {folder} is kept as {aside.name}")
        header = RunBegun(
            line=1,
            at=utc_now(),
            run_id=str(uuid4()),
            boot_id=boot_id,
            choices=choices,
            environment=environment,
            command=command.name,
            arguments=command.arguments,
            folder=command.folder,
        )
        run = cls(Journal(path), RunState(path, header, _boot_id=boot_id), remarks)
        run._journal.append(header)
        return run

    @classmethod
    def resume(
        cls, folder: Path, choices: Choices, environment: Environment, world: World, boot_id: str | None
    ) -> Self:
        """Continue the run of a folder.

        Raises:
            ConfigError: There is none, or it was begun with other choices or on another machine.
            CsitError: Another process is running it.
        """
        past = past_of(folder)
        remarks = differences(past.header, choices, environment, world)
        run = cls(Journal(past.path), past, (*past.damage, *remarks))
        run._write(RunResumed, boot_id=boot_id, environment=environment, remarks=remarks)
        return run

    @classmethod
    def next_suite(cls, folder: Path, choices: Choices, environment: Environment, boot_id: str | None) -> Self:
        """Continue a run that this process has begun or resumed, in the next suite that opens the testbed.

        A suite may choose other cells or frames than the one before.

        Raises:
            ConfigError: It is of another testbed, whose tests would have the same names in the journal.
        """
        past = past_of(folder)
        then = past.header.choices
        if then.topology_digest != choices.topology_digest:
            raise ConfigError(
                f"suites of a run need the same testbed: {then.topology} for the first, {choices.topology} for this; "
                "run each separately, with its own folder (-d)"
            )
        run = cls(Journal(past.path), past)
        run._write(RunResumed, boot_id=boot_id, environment=environment)
        return run

    def history(self, key: TestKey) -> TestHistory:
        """History of a test before it begins."""
        if (ended := self.past.done.get((key.test, key.digest))) is not None:
            return TestHistory(ended, None, ())
        return TestHistory(None, self.past.quarantined.get(key.cell), self.past.broken.get(key.test, ()))

    def discard(self, key: TestKey) -> None:
        """Forget that a test has ended: it is run again."""
        self.past.done.pop((key.test, key.digest), None)
        self.past.quarantined.pop(key.cell, None)

    def started(self, key: TestKey) -> int:
        """An attempt begins; return its number, counted from 1."""
        attempt = len(self.past.broken.get(key.test, ())) + 1
        self._write(TestStarted, test=key.test, attempt=attempt)
        return attempt

    def broken(self, key: TestKey, reason: str, evidence: tuple[str, ...] = ()) -> tuple[str, ...]:
        """An attempt broke the system under test; return the reasons of all attempts."""
        attempt = len(self.past.broken.get(key.test, ())) + 1
        self._write(TestBroken, test=key.test, attempt=attempt, reason=reason, evidence=evidence)
        return self.past.broken[key.test]

    def ended(self, key: TestKey, status: Status, record: str, quarantined: str | None = None) -> None:
        """A test has ended, for good.

        `quarantined`: Why its cell is quarantined; None for a result.

        Raises:
            RunStopped: Too many consecutive cells were quarantined.
        """
        end = {"test": key.test, "status": status, "digest": key.digest, "record": record}
        if quarantined is None:
            self._write(TestFinished, **end)
            if status == "PASS":
                self._in_a_row.clear()
            return
        self._write(CellQuarantined, **end, cell=key.cell, reason=quarantined)
        self._in_a_row.append((key.test, key.cell))
        if len(self._in_a_row) >= MAX_IN_A_ROW:
            sentence = (
                f"{len(self._in_a_row)} cells in a row broke the system under test, the last one because "
                f"{quarantined}: check the machine, then resume the run"
            )
            self.stopped(sentence, self._in_a_row)
            raise RunStopped(sentence)

    def interrupted(self, key: TestKey, reason: str, record: str = "") -> None:
        """The run is stopped during a test."""
        self._is_whole = False
        self._write(TestInterrupted, test=key.test, reason=reason, record=record)

    def stopped(self, reason: str, affected: Sequence[tuple[str, str]] = ()) -> None:
        """No further test can run; tests and cells that this may have affected are measured again."""
        if not self._is_whole:
            return
        self._is_whole = False
        tests, cells = tuple(test for test, _ in affected), tuple(cell for _, cell in affected)
        self._write(RunCutShort, reason=reason, tests=tests, cells=cells)

    def close(self) -> None:
        """End the run in this process; it is complete unless it was interrupted or stopped."""
        with self._held:
            if self._is_whole:
                self._write(RunEnded)

    def _write(self, kind: Callable[..., AnyEvent], **facts: object) -> None:
        event = kind(line=self._journal.next_line, at=utc_now(), **facts)
        self._journal.append(event)
        self.past.fold(event)


def past_of(folder: Path) -> RunState:
    """Read the journal of a folder.

    Raises:
        ConfigError: There is none, or this version cannot read it.
    """
    path = _journal_of(folder)
    past: RunState | None = None
    damage: list[str] = []
    for item in read(path):
        if isinstance(item, Damage):
            damage.append(item.text)
        elif past is not None:
            past.fold(item)
        elif isinstance(item, RunBegun):
            past = RunState(path, item, damage=damage, _boot_id=item.boot_id)
    if past is None:
        raise _nothing_begun(path)
    return past


def header_of(folder: Path) -> RunBegun:
    """Header of the journal of a folder.

    Raises:
        ConfigError: There is none.
    """
    path = _journal_of(folder)
    for item in read(path):
        if isinstance(item, RunBegun):
            return item
    raise _nothing_begun(path)


def has_ended(folder: Path) -> bool:
    """Whether the run of a folder is complete, with nothing after its end.

    Raises:
        ConfigError: There is no run.
    """
    last: AnyEvent | Damage | None = None
    for item in read(_journal_of(folder)):
        last = item
    return isinstance(last, RunEnded)


def differences(before: RunBegun, choices: Choices, environment: Environment, world: World) -> tuple[str, ...]:
    """Changes since the run began that are only worth a warning.

    Raises:
        ConfigError: Results from before and after could not be one run.
    """
    _refuse_other_choices(before.choices, choices)
    then, now = before.environment, environment
    if world is not World.SIM:
        _refuse_other_processors("", then, now)
        for node in sorted(then.nodes.keys() & now.nodes.keys()):
            _refuse_other_processors(f"{node}: ", then.nodes[node], now.nodes[node])
    old, new = _flat(then), _flat(now)
    return tuple(
        f"{name} was {old.get(name)} at the start of the run and is {new.get(name)} now"
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    )


def _journal_of(folder: Path) -> Path:
    if (path := folder / JOURNAL_FILE).is_file():
        return path
    raise ConfigError(f"{folder}: not the folder of a run, {JOURNAL_FILE} is missing")


def _nothing_begun(path: Path) -> CsitError:
    return ConfigError(f"{path}: the journal has no header, start a new run")


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    return aside


def _refuse_other_processors(place: str, then: Environment, now: Environment) -> None:
    if (then.cpu_model, then.cpus_online) != (now.cpu_model, now.cpus_online):
        raise ConfigError(
            f"{place}the run was started on {then.cpu_model} with {then.cpus_online} CPUs and cannot be resumed on "
            f"{now.cpu_model} with {now.cpus_online}"
        )


def _refuse_other_choices(then: Choices, now: Choices) -> None:
    if then.topology_digest != now.topology_digest:
        raise ConfigError(
            f"the run was started on {then.topology} and cannot be resumed on {now.topology}: the topology has changed"
        )
    for name in dict.fromkeys([*then.variables, *now.variables]):
        old, new = then.variables.get(name, ""), now.variables.get(name, "")
        if old != new:
            raise ConfigError(f"the run was started with {name} '{old}' and cannot be resumed with '{new}'")
    for name, one, other in (("--include", then.include, now.include), ("--exclude", then.exclude, now.exclude)):
        if sorted(one) != sorted(other):
            raise ConfigError(
                f"the run was started with {name} {' '.join(one) or 'nothing'} and cannot be resumed with "
                f"{' '.join(other) or 'nothing'}"
            )
    if then.profile != now.profile:
        raise ConfigError(f"the search profile '{now.profile.name}' has other settings than at the start of the run")


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
