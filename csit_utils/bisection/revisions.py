"""Ordered revisions of a component, from the good one to the bad one."""

import subprocess
from collections import Counter
from pathlib import Path

from csit_utils.bisection.spec import CommandLines, GitRange, OrderedList
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.bounds import MAX_REVISIONS, quoted

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
