"""The variables by which a user chooses testbed, cells and search: `robot -v CELLS:1x1,2x1 …`."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.cell import TestType
from resources.libraries.python.model.goal import SearchProfile
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.result import Rerun
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.recording.journal_events import Choices
from resources.libraries.python.recording.journal_run import Command
from resources.libraries.python.recording.resume import header_of
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.model.selection import DRAFT_GRID, Selection, parse_selection
from resources.libraries.python.studies.density.search_priors import PriorBook

DEFAULTS = {
    "CELLS": DRAFT_GRID,
    "NF_SIZES": "1c,0.5c",
    "VSWITCH": "1",
    "FRAMES": "64B",
    "SEARCH": "ladder",
    "NF_KINDS": "",
    "PRIORS": "",
}
"""Used where a variable is not given. TOPOLOGY has no default: a testbed is never guessed."""

_NAMED_BY_TAGS = {
    "CELLS": (r"(\d{1,2})R(\d{1,2})C", "{}x{}"),
    "NF_SIZES": (r"NF(0\.5|[1-9]\d{0,2})C", "{}c"),
    "VSWITCH": (r"([124])C", "{}"),
    "FRAMES": (r"(\d+B|IMIX)", "{}"),
}
"""Choices that tags of rows stand for: the tag without `_`, and the word of the choice."""
Lookup = Callable[[str], object]
"""Value of a variable by name, None where it is not set."""


@dataclass(frozen=True, slots=True)
class SuiteChoice:
    """What one suite is to measure."""

    test_type: TestType
    selection: Selection


def chosen_topology(lookup: Lookup) -> Topology:
    """Load the testbed named by `TOPOLOGY`.

    Raises:
        ConfigError: None is named, or its file is wrong.
    """
    path = lookup("TOPOLOGY")
    if not path:
        raise ConfigError("no testbed is chosen; say for example -v TOPOLOGY:topologies/local.yaml")
    return load_topology(Path(str(path)))


def resumed_folder(lookup: Lookup) -> Path | None:
    """The folder of the run that is to be resumed, named by `RESUME`; None for a new run."""
    folder = lookup("RESUME")
    return Path(str(folder)) if folder else None


def resumed(lookup: Lookup, *files: str) -> Lookup:
    """The choices of a run that is resumed: what is not said again is as it was.

    Args:
        lookup: What is said now.
        files: Names of the journals that may have them, see `header_of`.

    Raises:
        ConfigError: There is nothing to be resumed.
    """
    folder = resumed_folder(lookup)
    if folder is None:
        return lookup
    then = header_of(folder, *files).choices
    known = {**then.variables, "TOPOLOGY": then.topology}
    return lambda name: lookup(name) or known.get(name)


def choices(lookup: Lookup, topology: Topology) -> Choices:
    """All that somebody chose, for the journal."""
    options = lookup("OPTIONS")
    return Choices(
        topology=str(Path(str(lookup("TOPOLOGY"))).absolute()),
        topology_digest=_digest(topology),
        variables=_variables(lookup),
        include=tuple(getattr(options, "include", ())),
        exclude=tuple(getattr(options, "exclude", ())),
        profile=chosen_profile(lookup),
    )


def rerun(lookup: Lookup, topology: Topology) -> Rerun:
    """How to run the tests of the present suite again, for their records."""
    return rerun_of(lookup, topology, _variables(lookup))


def rerun_of(lookup: Lookup, topology: Topology, variables: Mapping[str, str]) -> Rerun:
    """The same for a suite that is chosen by other variables."""
    return Rerun(
        suite=_inside(str(lookup("SUITE SOURCE"))),
        topology=_inside(str(lookup("TOPOLOGY"))),
        topology_digest=_digest(topology),
        variables=dict(variables),
    )


def _digest(topology: Topology) -> str:
    return hashlib.sha256(topology.model_dump_json().encode()).hexdigest()


def _variables(lookup: Lookup) -> dict[str, str]:
    return {name: _value(lookup, name) for name in DEFAULTS}


def _inside(path: str) -> str:
    """A path as it is called from inside the project, which may be elsewhere on another machine."""
    absolute = Path(path).absolute()
    return str(absolute.relative_to(PROJECT)) if absolute.is_relative_to(PROJECT) else str(absolute)


def command(lookup: Lookup) -> Command:
    """How the run was started, where a command of this project says so in `COMMAND`."""
    text = lookup("COMMAND")
    if not text:
        return Command()
    said = json.loads(str(text))
    return Command(said["name"], tuple(said["arguments"]), said["folder"])


def chosen_profile(lookup: Lookup) -> SearchProfile:
    """The search profile named by `SEARCH`."""
    return profile(_value(lookup, "SEARCH"))


def chosen_priors(lookup: Lookup) -> PriorBook | None:
    """Earlier results below the folder that `PRIORS` names; None where none is named.

    Raises:
        ConfigError: There is no such folder.
    """
    folder = _value(lookup, "PRIORS")
    return PriorBook(Path(folder)) if folder else None


def suite_choice(lookup: Lookup) -> SuiteChoice | None:
    """Read a suite's `SERVICE_TYPE` and `TEST_TYPE` and the user's selection; None for a suite that has none."""
    service_type, test_type = lookup("SERVICE_TYPE"), lookup("TEST_TYPE")
    if not service_type or not test_type:
        return None
    selection = parse_selection(
        service_types=str(service_type),
        cells=_value(lookup, "CELLS"),
        nf_sizes=_value(lookup, "NF_SIZES"),
        vswitch=_value(lookup, "VSWITCH"),
        frames=_value(lookup, "FRAMES"),
        nf_kinds=_value(lookup, "NF_KINDS"),
    )
    return SuiteChoice(TestType(str(test_type)), selection)


def _value(lookup: Lookup, name: str) -> str:
    """A choice by variable, else as tags to be included name it, else the default.

    So `--include 2CANDIMIX` selects rows of that vSwitch size and frame, which the defaults do not have. Patterns with
    wildcards name nothing: they select among the defaults.
    """
    return str(lookup(name) or _named_by_tags(lookup, name) or DEFAULTS[name])


def _named_by_tags(lookup: Lookup, name: str) -> str:
    """What `--include` names of a choice, such as `1,2`; empty for nothing."""
    if name not in _NAMED_BY_TAGS:
        return ""
    tag, word = _NAMED_BY_TAGS[name]
    patterns = [pattern.split("NOT")[0] for pattern in getattr(lookup("OPTIONS"), "include", None) or ()]
    tags = [re.sub(r"[\s_]", "", each).upper() for pattern in patterns for each in re.split(r"AND|OR", pattern)]
    matches = (re.fullmatch(tag, each) for each in tags)
    return ",".join(dict.fromkeys(word.format(*match.groups()) for match in matches if match))
