"""Specification of a bisection, a YAML file, its revisions, and the file of steps that gates and trends write."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, TypeAdapter

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import ON_FIRST_USE, Frozen
from resources.libraries.python.model.bounds import (
    LONGEST_INSTALLATION_S,
    LONGEST_TRIAL_S,
    MAX_OBSERVATIONS,
    MAX_REVISIONS,
    quoted,
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


_WITHIN_S = 60.0
_SHORT = 12
"""Digits of a commit in texts."""


class Revision(Frozen):
    """One revision."""

    name: str
    """Argument of the installation: a commit, a version or a command line."""
    label: str
    """For people."""


def revisions_of(source: GitRange | OrderedList | CommandLines, folder: Path) -> tuple[Revision, ...]:
    """Return all revisions in order, the good one first.

    `folder`: Of the specification; relative paths start there.

    Raises:
        ConfigError: There are none between good and bad, or too many.
    """
    match source:
        case GitRange():
            found = _commits(folder / source.git, source.good, source.bad)
        case OrderedList():
            found = tuple(Revision(name=name, label=name) for name in source.versions)
        case CommandLines():
            found = _command_lines(source.good_command_line.split(), source.bad_command_line.split())
    name, count = Counter(revision.name for revision in found).most_common(1)[0]
    if count > 1:
        raise ConfigError(f"source: revision '{quoted(name)}' is listed twice")
    return found


def _commits(repository: Path, good: str, bad: str) -> tuple[Revision, ...]:
    ends = [_git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{end}^{{commit}}", what=end)
            for end in (good, bad)]  # fmt: skip
    first, last = (end.strip() for end in ends)
    count = int(_git(repository, "rev-list", "--first-parent", "--count", f"{first}..{last}", what=bad)) + 1
    if count > MAX_REVISIONS:
        raise ConfigError(f"{repository}: {count:,} commits in {good}..{bad}; at most {MAX_REVISIONS:,} possible")
    listed = _git(
        repository, "log", "--no-show-signature", "--first-parent", "--reverse", "--format=%H %s", f"{first}~1..{last}"
        if _has_parent(repository, first) else last, what=f"{good}..{bad}"
    ).splitlines()  # fmt: skip
    rows = [line.partition(" ") for line in listed]
    commits = [commit for commit, _, _ in rows]
    if first not in commits or len(commits) < 2:
        raise ConfigError(f"{repository}: '{quoted(good)}' is no ancestor of '{quoted(bad)}' along first parents")
    rows = rows[commits.index(first) :]
    return tuple(Revision(name=commit, label=f"{commit[:_SHORT]} {quoted(subject, 80)}") for commit, _, subject in rows)


def _has_parent(repository: Path, commit: str) -> bool:
    return len(_git(repository, "rev-list", "--parents", "-n1", commit, what=commit).split()) > 1


def _git(repository: Path, *arguments: str, what: str) -> str:
    argv = ["git", "-C", str(repository), *arguments]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_WITHIN_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{repository}: git cannot be run: {error}") from error
    if done.returncode:
        raise ConfigError(f"{repository}: no revision '{quoted(what)}': {done.stderr.strip() or 'unknown to git'}")
    return done.stdout


def _command_lines(good: list[str], bad: list[str]) -> tuple[Revision, ...]:
    """Parameters of the bad one are added in its order, then those of the good one only are removed."""
    keys = [word.partition("=")[0] for word in bad]
    steps, line = [(tuple(good), "good")], list(good)
    for word, key in zip(bad, keys, strict=True):
        if word in line:
            continue
        old = [each for each in line if each.partition("=")[0] == key and each not in bad][:1]
        place = line.index(old[0]) if old else len(line)
        line[place : place + len(old)] = [word]
        steps.append((tuple(line), f"{old[0]} → {word}" if old else f"+ {word}"))
    for word in [each for each in line if each not in bad]:
        line.remove(word)
        steps.append((tuple(line), f"- {word}"))
    if len(steps) < 2:
        raise ConfigError("source: good and bad command line have the same parameters")
    return tuple(Revision(name=" ".join(words), label=label) for words, label in steps)
