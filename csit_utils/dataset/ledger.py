"""Ledger of a history: the steps whose cause is known, in a YAML file beside its folder."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

import yaml
from pydantic import AfterValidator, AwareDatetime, Field

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen, at_most_items, of_form
from resources.libraries.python.model.bounds import LARGEST_INPUT_BYTES, LONGEST_CAUSE, LONGEST_LINK, MAX_ACKNOWLEDGED
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.request.cell import readable_cells
from resources.libraries.python.whole_files import write_whole


def _printable(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("expected one line of printable text")
    return text


_Line = Annotated[str, Field(max_length=LONGEST_CAUSE), AfterValidator(_printable)]
_Link = Annotated[
    str,
    Field(max_length=LONGEST_LINK),
    AfterValidator(_printable),
    of_form(r"https?://[^\s/]\S*", "a link that begins with https:// or http://"),
]
_Level = Annotated[float, Field(allow_inf_nan=False)]


class AcknowledgedStep(Frozen):
    """A step of a cell whose cause is known, so that its new level is the baseline."""

    cell: Annotated[_Line, AfterValidator(readable_cells)]
    """As in `CellMetric.name`, without the metric."""
    metric: _Line
    since: AwareDatetime
    """Start of the first test with the new level."""
    before: _Level
    """Level before, in the unit of the metric, as is the one after."""
    after: _Level
    cause: _Line
    link: _Link | None = None

    @property
    def name(self) -> str:
        """As `CellMetric.name`."""
        return f"{self.cell} {self.metric}"

    @property
    def day(self) -> str:
        """Date of its first test."""
        return f"{self.since:%Y-%m-%d}"


class Ledger(Frozen):
    """All acknowledged steps of a history, oldest first."""

    version: Literal[1] = 1
    steps: Annotated[tuple[AcknowledgedStep, ...], at_most_items(MAX_ACKNOWLEDGED)] = ()


Acknowledged = Mapping[str, Sequence[AcknowledgedStep]]
"""Acknowledged steps by `CellMetric.name`."""
NONE: Acknowledged = MappingProxyType({})


def ledger_path(history: Path) -> Path:
    """Return the path of the ledger of a dataset, a folder of results or a file."""
    whole = history.resolve()
    return whole.with_name(f"{whole.name}.acknowledged.yaml")


def read_ledger(history: Path) -> Ledger:
    """Return the ledger of a history; an empty one where there is no file. A link that leads nowhere is an error.

    Raises:
        ConfigError: The file cannot be read, or is no ledger.
    """
    path = ledger_path(history)
    return load_yaml(path, Ledger) if os.path.lexists(path) else Ledger()


def acknowledged_in(histories: Iterable[Path]) -> Acknowledged:
    """Return the acknowledged steps of all ledgers.

    Raises:
        ConfigError: As for `read_ledger`.
    """
    found: dict[str, list[AcknowledgedStep]] = {}
    for history in histories:
        for step in read_ledger(history).steps:
            found.setdefault(step.name, []).append(step)
    return found


def write_ledger(history: Path, steps: Iterable[AcknowledgedStep]) -> None:
    """Write the ledger of a history; without a step, an empty one.

    Raises:
        ConfigError: It has too many steps, or would be larger than what can be read.
        CsitError: It cannot be written.
    """
    path, ordered = ledger_path(history), sorted(steps, key=lambda step: (step.since, step.name))
    if len(ordered) > MAX_ACKNOWLEDGED:
        raise ConfigError(f"{path}: {len(ordered):,} steps; at most {MAX_ACKNOWLEDGED:,} are possible: withdraw some")
    content = {"version": 1, "steps": [step.model_dump(exclude_defaults=True) for step in ordered]}
    text = yaml.safe_dump(content, sort_keys=False, width=LONGEST_LINK, allow_unicode=True)
    if (size := len(text.encode())) > LARGEST_INPUT_BYTES:
        raise ConfigError(
            f"{path}: {len(ordered):,} steps take {size:,} bytes; at most {LARGEST_INPUT_BYTES:,} are possible: "
            "withdraw some"
        )
    write_whole(path, text)
