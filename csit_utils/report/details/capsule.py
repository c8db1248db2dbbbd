"""Commands to run a test again, and the conditions of its result, as one block to copy."""

import base64
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from resources.libraries.python.model.base import digested_text
from resources.libraries.python.model.request.variables import VARIABLES
from resources.libraries.python.model.result import Environment, Rerun
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.studies.density.planning.matrix import cache_ways_of

_SUITES = "tests/density"
_OF_CELLS = (
    "CELLS",
    "NF_SIZES",
    "VSWITCH",
    "FRAMES",
    "FLOWS",
    "IP_VERSION",
    "NF_KINDS",
    "CACHE_WAYS",
    "SEARCH",
    "AT_RATE",
)
"""Variables that choose a cell and its load, which a test has in its record."""


@dataclass(frozen=True)
class Capsule:
    """The capsule of one test."""

    text: str
    """Shell commands, with the conditions in comments."""
    plan: str | None
    """The plan as JSON, of whose bytes the plan's digest is; None without a plan."""
    plan_name: str
    """File name of the plan."""

    @property
    def plan_href(self) -> str | None:
        """The plan as a `data:` URL."""
        if self.plan is None:
            return None
        return f"data:application/json;base64,{base64.b64encode(self.plan.encode()).decode()}"


def capsule(result: DensityRecord) -> Capsule:
    """Return the capsule of a test."""
    text = "\n".join([*_commands(result), "", *(f"# {line}" for line in _facts(result))])
    if result.plan is None:
        return Capsule(text, None, "")
    name = re.sub(r"[^A-Za-z0-9._+-]+", "_", f"plan-{result.cell.service_type}-{result.test_name}.json")
    # `plan_digest` is the SHA-256 of these bytes.
    return Capsule(text, digested_text(result.plan), name)


def command(result: DensityRecord) -> list[str]:
    """Return the command line that runs only this test."""
    rerun = result.rerun
    argv = ["./csit", "robot"]
    given = rerun.variables if rerun else {}
    more = {each.name: given.get(each.name) for each in VARIABLES.values() if each.name not in _OF_CELLS}
    chosen = {name: text for name, text in more.items() if text and text != VARIABLES[name].default}
    argv += [word for name, value in (choices_of(result) | chosen).items() for word in ("-v", f"{name}:{value}")]
    if rerun is None:
        argv += ["--suite", result.test_id.removesuffix(f".{result.test_name}").rsplit(".", 1)[-1]]
    argv += ["--test", _exactly(result.test_name)]
    return [*argv, rerun.suite if rerun else _SUITES]


def choices_of(result: DensityRecord) -> dict[str, str]:
    """Return the variables that choose testbed, cell, frame and search of a test."""
    cell, rerun = result.cell, result.rerun
    variables = {
        "TOPOLOGY": rerun.topology if rerun else f"topologies/{result.testbed}.yaml",
        "CELLS": str(cell.dimensions),
        "NF_SIZES": "+".join(cell.nf_sizes),
        "VSWITCH": str(cell.vs_dtc),
        "FRAMES": result.asked.frame.asked,
        "SEARCH": rerun.variables.get("SEARCH", "") if rerun else result.asked.profile.name,
        "NF_KINDS": "+".join(cell.nf_kinds),
        "CACHE_WAYS": str(cache_ways_of(cell) or ""),
        "AT_RATE": f"{result.at_rate.load_pps / len(cell.instances):.12g}" if result.at_rate else "",
    }
    return {name: value for name, value in variables.items() if value}


def rerun_command(rerun: Rerun, test_name: str | None) -> list[str]:
    """Return the command line that repeats one test of a suite, or all, with the same variables."""
    variables = {"TOPOLOGY": rerun.topology, **rerun.variables}
    words = [word for name, value in variables.items() if value for word in ("-v", f"{name}:{value}")]
    chosen = ["--test", _exactly(test_name)] if test_name is not None else []
    return ["./csit", "robot", *words, *chosen, rerun.suite]


def _exactly(test_name: str) -> str:
    """Escape wildcards of Robot's patterns by brackets."""
    return re.sub(r"([*?\[])", r"[\1]", test_name)


def _commands(result: DensityRecord) -> Iterator[str]:
    revision, version = result.environment.git_revision, result.environment.program_version
    if version is not None:
        yield f"# Measured with version {shlex.quote(version)} of this project."
    if revision is None:
        yield "# The revision of the suite is not recorded."
    else:
        yield f"git checkout {shlex.quote(revision)}"
        if result.environment.git_dirty:
            yield "# It had uncommitted changes, which are not recorded."
    if result.rerun is None:
        yield "# The name of the topology file is not recorded: the one below is a guess."
    yield shlex.join(command(result))
    prior = result.search.prior if result.search else None
    if prior is not None and prior.cells is not None:
        yield f"# The search started from a prediction by {prior.cells} cells of its run. This one starts cold:"
        yield "# it has the same goals, but other and more trials."
    elif prior is not None:
        yield f"# The search started from {_plain(prior.test_id)} of {_plain(prior.started_at)}. This one starts cold:"
        yield "# it has the same goals, but other and more trials."


def _facts(result: DensityRecord) -> Iterator[str]:
    yield f"measured {result.started_at} to {result.finished_at} as {_plain(result.test_id)}"
    none = "none: the cell does not fit" if result.unfit else "none: the test failed before"
    yield f"plan {result.plan_digest or none}"
    if result.rerun is not None:
        yield f"testbed's file {result.rerun.topology_digest}"
    yield from (f"{role} {_plain(name)}" for role, name in sorted(result.drivers.items()))
    for role, facts in sorted(result.facts.items()):
        yield from (f"{_plain(f'{role} {name}')}: {_plain(text)}" for name, text in sorted(facts.items()))
    yield from _machine("", result.environment)
    for name, other in result.environment.nodes.items():
        yield from _machine(f"{_plain(name)}: ", other)


def _machine(of: str, environment: Environment) -> Iterator[str]:
    yield f"{of}CPU {_plain(environment.cpu_model)}, {environment.cpus_online} online"
    yield f"{of}microcode {_plain(environment.microcode or 'unknown')}"
    yield f"{of}kernel {_plain(environment.kernel)}"
    yield f"{of}kernel command line: {_plain(environment.command_line or 'unknown')}"
    yield from (f"{of}{_plain(name)} = {_plain(value)}" for name, value in sorted(environment.settings.items()))
    versions = ", ".join(f"{name} {version}" for name, version in sorted(environment.versions.items()))
    yield f"{of}versions: Python {_plain(environment.python)}, {_plain(versions)}"


def _plain(text: str) -> str:
    """A text on one line, so that it cannot leave its comment."""
    return " ".join(text.split())
