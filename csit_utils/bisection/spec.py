"""Specification of a bisection, a YAML file, and the file of steps to bisect that gates and trends write."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, TypeAdapter

from resources.libraries.python.model.base import ON_FIRST_USE, Frozen
from resources.libraries.python.model.bounds import (
    LONGEST_INSTALLATION_S,
    LONGEST_TRIAL_S,
    MAX_OBSERVATIONS,
    MAX_REVISIONS,
)
from resources.libraries.python.model.request.kinds import UserProgram
from resources.libraries.python.whole_files import write_whole

if TYPE_CHECKING:
    from csit_utils.analysis.cells import CellMetric
    from csit_utils.dataset.rows import TestRow

REVISION = "{revision}"
"""Word of the argument vector that is replaced by the revision to install."""
Text = Annotated[str, Field(min_length=1, max_length=4096)]


class GitRange(Frozen):
    """Commits of a git repository, along first parents."""

    git: Path
    """The repository; a relative path starts at the specification."""
    good: Text
    bad: Text


class OrderedList(Frozen):
    """Revisions in order, such as versions of a package; the first one is good, the last one is bad."""

    versions: Annotated[tuple[Text, ...], Field(min_length=2, max_length=MAX_REVISIONS)]


class CommandLines(Frozen):
    """Kernel command lines: from the good one to the bad one, one parameter changed at a time."""

    good_command_line: Text
    bad_command_line: Text


def _source_kind(source: object) -> str:
    """Tag of the model whose keys a source has, so that an error is about that model only."""
    if isinstance(source, OrderedList) or (isinstance(source, Mapping) and "versions" in source):
        return "versions"
    if isinstance(source, CommandLines) or (isinstance(source, Mapping) and "good_command_line" in source):
        return "command lines"
    return "commits"


def _has_revision(argv: tuple[str, ...]) -> tuple[str, ...]:
    if not any(REVISION in word for word in argv[1:]):
        raise ValueError(f"no argument has {REVISION}, the revision to install")
    return argv


def _share(text: str) -> str:
    share_of(text)
    return text


def share_of(text: str) -> float:
    """Return a share such as `2%` as a number.

    Raises:
        ValueError: It has another form, or is not in [0.1 %, 50 %].
    """
    match = re.fullmatch(r"(\d{1,2}(?:\.\d{1,3})?)\s*%", text.strip(), re.ASCII)
    value = float(match[1]) / 100 if match else 0.0
    if not 0.001 <= value <= 0.5:
        raise ValueError("expected a share from 0.1% to 50%, such as 2%")
    return value


class BisectionSpec(Frozen):
    """Component to bisect, installation of a revision, and measurement."""

    source: Annotated[
        Annotated[GitRange, Tag("commits")]
        | Annotated[OrderedList, Tag("versions")]
        | Annotated[CommandLines, Tag("command lines")],
        Discriminator(_source_kind),
    ]
    install: Annotated[tuple[Text, ...], Field(min_length=2, max_length=100), AfterValidator(_has_revision)]
    """Argument vector; `{revision}` is replaced. It runs in the folder of the specification, without a shell."""
    install_limit_s: Annotated[float, Field(gt=0, le=LONGEST_INSTALLATION_S)] = 3600.0
    """An installation that takes longer is ended and counts as failed."""
    topology: Path
    """A relative path starts at the specification."""
    cell: Text
    """Such as `CSC 1x1 1c`, as for `./csit plan --cell`."""
    nf_kinds: str = ""
    program: UserProgram | None = None
    """Of NFs that are programs of the user's."""
    frame: str = "64B"
    metric: Literal["MRR", "NDR", "PDR", "forwarded"] = "MRR"
    load_pps: Annotated[float, Field(gt=0, le=1e12)] | None = None
    """Offered load, for the metric `forwarded`: the rate received at this load. Aggregate."""
    search: str = "quick"
    """Search profile of NDR and PDR."""
    trials: Annotated[int, Field(ge=1, le=100)] = 1
    """Trials in each deployment, of MRR and `forwarded`; their mean is one observation."""
    trial_s: Annotated[float, Field(gt=0, le=LONGEST_TRIAL_S)] = 1.0
    change: Annotated[str, AfterValidator(_share)] = "2%"
    """Smallest change of interest."""
    most_observations: Annotated[int, Field(ge=5, le=MAX_OBSERVATIONS)] = 400


class CalledStep(Frozen):
    """A step that `./csit gate --steps` or `./csit trend --steps` has called."""

    cell: Text
    frame: Text
    metric: Text
    change: float
    good: str
    """Version of the system before it."""
    bad: str


CALLED_STEPS = TypeAdapter(Annotated[tuple[CalledStep, ...], Field(max_length=MAX_REVISIONS)], config=ON_FIRST_USE)
"""Largest change for the worse first."""


def write_steps(path: Path, steps: Iterable[tuple["CellMetric", float, "TestRow", "TestRow"]]) -> None:
    """Write cells that became worse: each with its relative change, and its last figure before and first one after it.

    Raises:
        CsitError: The file cannot be written.
    """
    called = [
        CalledStep(
            cell=f"{cell.series.service_type} {cell.dimensions} {cell.series.nf_size} vswitch-{cell.series.vs_dtc}c",
            frame=cell.series.frame.split(" ")[0],
            metric=str(cell.metric),
            change=change,
            good=before.version or "",
            bad=after.version or "",
        )
        for cell, change, before, after in sorted(steps, key=lambda step: -step[0].metric.worsening(step[1]))
    ]
    write_whole(path, CALLED_STEPS.dump_json(tuple(called), indent=1) + b"\n")


_MEASURED = ("MRR", "NDR", "PDR")


def narrowed(spec: BisectionSpec, steps: Sequence[CalledStep]) -> BisectionSpec:
    """Return a specification for the first step whose metric can be measured, between its versions.

    Kernel command lines keep their ends.

    Raises:
        ValueError: There is no such step, or its versions are equal or not in the list.
    """
    step = next((each for each in steps if each.metric in _MEASURED), None)
    if step is None:
        raise ValueError(f"has no step of {', '.join(_MEASURED)}")
    good, bad = revision_of_version(step.good), revision_of_version(step.bad)
    source = spec.source
    if not isinstance(source, CommandLines) and (good == bad or not good or not bad):
        raise ValueError(
            f"{step.cell}: good and bad have the version '{step.good}' and '{step.bad}': the change is elsewhere"
        )
    if isinstance(source, GitRange):
        source = source.model_copy(update={"good": good, "bad": bad})
    elif isinstance(source, OrderedList):
        if missing := [each for each in (good, bad) if each not in source.versions]:
            raise ValueError(f"{step.cell}: version {', '.join(missing)} is not in the list of the specification")
        first, last = source.versions.index(good), source.versions.index(bad)
        source = source.model_copy(update={"versions": source.versions[first : last + 1]})
    fields = {"source": source, "cell": step.cell, "frame": step.frame, "metric": step.metric, "load_pps": None}
    return BisectionSpec.model_validate({**dict(spec), **fields})


def revision_of_version(version: str) -> str:
    """Return the commit of a version such as `VPP 26.10-rc0~57-gc3313a2d0`, else its last word."""
    commit = re.search(r"[-~]g([0-9a-f]{7,40})\b", version)
    return commit[1] if commit else version.rsplit(maxsplit=1)[-1] if version.split() else ""
