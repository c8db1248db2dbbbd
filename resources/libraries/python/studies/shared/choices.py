"""Robot variables that choose testbed, cells and search: `robot -v CELLS:1x1,2x1 …`."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import TypeAdapter, ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen, error_text, first_error
from resources.libraries.python.model.bounds import ASKED, quoted
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame as frame_of
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.result import Rerun
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import PROJECT, specification_file
from resources.libraries.python.recording.journal import Choices
from resources.libraries.python.recording.qualifications import FOLDER
from resources.libraries.python.recording.run_journal import Command, header_of
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.model.selection import DRAFT_GRID, Selection, parse_selection
from resources.libraries.python.studies.density.planning.extras import EXTRAS, seconds_within
from resources.libraries.python.studies.density.search_priors import PriorBook

_Spec = TypeVar("_Spec", bound=Frozen)
DEFAULTS = {
    "CELLS": DRAFT_GRID,
    "NF_SIZES": "1c,0.5c",
    "VSWITCH": "1",
    "FRAMES": "64B",
    "SEARCH": "ladder",
    "NF_KINDS": "",
    "PRIORS": "",
    "PREDICT": "on",
}
"""Defaults of variables. TOPOLOGY has none: a testbed is never guessed."""
GIVEN = (
    *EXTRAS,
    "NOISE_FLOOR",
    "IP_VERSION",
    "CACHE_WAYS",
    "SWEEP_RATES",
    "SWEEP_DURATION",
    "STOP_LOSS",
    "SWEEP_WIDTH",
    "DEPARTURES",
    "FLOWS",
    "PROTOCOL",
    "GENERATOR",
    "NIC_MODEL",
    "PROFILES",
)
"""Variables that are in the journal where the user sets them. What a suite sets is in the digest of its tests."""
KNOWN = ("TOPOLOGY", "NIC_MODEL", "SEARCH", "NOISE_FLOOR", "QUALIFY", "RESUME")
"""Variables that all studies read."""

_NOISE_S = 0.9
"""Sees most of what recurs each second, and no test is longer for it."""
_NAMED_BY_TAGS = {
    "CELLS": (r"(\d{1,2})R(\d{1,2})C", "{}x{}"),
    "NF_SIZES": (r"NF(0\.5|[1-9]\d{0,2})C(-SHARED)?", "{}c{}"),
    "VSWITCH": (r"([124])C", "{}"),
    "FRAMES": (r"(\d+B|IMIX)", "{}"),
    "FLOWS": (r"(\d{1,7})FLOWS", "{}"),
    "IP_VERSION": (r"IP([46])FWD", "{}"),
}
"""Choices implied by tags of rows: the tag without `_`, and the value of the variable."""
Lookup = Callable[[str], object]
"""Returns the value of a variable, None where it is not set."""


@dataclass(frozen=True, slots=True)
class SuiteChoice:
    """Test type and selection of a density suite."""

    test_type: TestType
    selection: Selection


def chosen_topology(lookup: Lookup) -> Topology:
    """Load the testbed named by `TOPOLOGY`, with the network cards of virtual machines named by `NIC_MODEL`.

    Raises:
        ConfigError: There is no such variable, its file is wrong, or the testbed cannot have such network cards.
    """
    path = lookup("TOPOLOGY")
    if not path:
        raise ConfigError("no testbed chosen; for example: -v TOPOLOGY:topologies/local.yaml")
    topology, model = load_topology(Path(str(path))), str(lookup("NIC_MODEL") or "")
    if not model:
        return topology
    duts = {name: _with_nics(dut, model) for name, dut in topology.duts.items()}
    return topology.model_copy(update={"nodes": {**topology.nodes, **duts}})


def _with_nics(dut: DutNode, model: str) -> DutNode:
    """Return a DUT whose virtual machines have another model of network cards.

    Raises:
        ConfigError: It cannot have them.
    """
    settings = None if dut.vms is None else dut.vms.driver.options.get("vm")
    if settings is None:
        lack = "no virtual machines" if dut.vms is None else f"virtual machines of kind {dut.vms}, which have no NICs"
        raise ConfigError(f"NIC_MODEL '{quoted(model)}': the testbed has {lack}")
    document = {**dut.model_dump(), "vm": {**dut.settings(settings).model_dump(), "nic": model}}
    try:
        return DutNode.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"NIC_MODEL '{quoted(model)}': {first_error(error)[1]}") from error


def generator_chosen(lookup: Lookup) -> Topology:
    """Load the testbed named by `TOPOLOGY`, with the traffic generator named by `GENERATOR`.

    Raises:
        ConfigError: The testbed's file is wrong, or it cannot have that generator.
    """
    topology, driver = chosen_topology(lookup), str(lookup("GENERATOR") or "")
    if not driver:
        return topology
    document = topology.model_dump(mode="json")
    document["nodes"][topology.tg_name]["generator"]["driver"] = driver
    try:
        return Topology.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"GENERATOR '{driver}': {first_error(error)[1]}") from error


def resumed_folder(lookup: Lookup) -> Path | None:
    """Folder of the run to resume, named by `RESUME`; None for a new run."""
    folder = lookup("RESUME")
    return Path(str(folder)) if folder else None


def resumed(lookup: Lookup) -> Lookup:
    """Choices of the run to resume where the user does not repeat them; of a new run those of now.

    Raises:
        ConfigError: There is no run to resume.
    """
    folder = resumed_folder(lookup)
    if folder is None:
        return lookup
    then = header_of(folder).choices
    known = {**then.variables, "TOPOLOGY": then.topology}
    return lambda name: lookup(name) or known.get(name)


def choices(lookup: Lookup, topology: Topology) -> Choices:
    """All of the user's choices, for the journal."""
    options = lookup("OPTIONS")
    given = {name: str(value) for name in GIVEN if (value := lookup(name))}
    return Choices(
        topology=str(Path(str(lookup("TOPOLOGY"))).absolute()),
        topology_digest=topology.digest,
        variables=_variables(lookup) | given,
        include=tuple(getattr(options, "include", ())),
        exclude=tuple(getattr(options, "exclude", ())),
        profile=chosen_profile(lookup),
    )


def rerun(lookup: Lookup, topology: Topology) -> Rerun:
    """Return how to repeat the tests of the present density suite, for their records."""
    more = {name: str(lookup(name)) for name in EXTRAS if lookup(name)}
    more |= {name: value for name in ("FLOWS", "IP_VERSION", "CACHE_WAYS") if (value := _packets(lookup, name))}
    return rerun_of(lookup, topology, _variables(lookup) | more)


def rerun_of(lookup: Lookup, topology: Topology, variables: Mapping[str, str]) -> Rerun:
    """Return how to repeat the tests of the present suite, given the variables that choose them but for the NICs."""
    return Rerun(
        suite=_inside(str(lookup("SUITE SOURCE"))),
        topology=_inside(str(lookup("TOPOLOGY"))),
        topology_digest=topology.digest,
        variables=dict(variables) | ({"NIC_MODEL": str(model)} if (model := lookup("NIC_MODEL")) else {}),
    )


def _variables(lookup: Lookup) -> dict[str, str]:
    return {name: _value(lookup, name) for name in DEFAULTS}


def _inside(path: str) -> str:
    """Path relative to the project, which may be in another folder on another machine."""
    absolute = Path(path).absolute()
    return str(absolute.relative_to(PROJECT)) if absolute.is_relative_to(PROJECT) else str(absolute)


def command(lookup: Lookup) -> Command:
    """Command line of the run, where a command of this project has put it into `COMMAND`."""
    text = lookup("COMMAND")
    if not text:
        return Command()
    arguments = json.loads(str(text))
    return Command(arguments["name"], tuple(arguments["arguments"]), arguments["folder"])


def changed_specification(
    load: Callable[[Path], _Spec], name: str, fields: Mapping[str, str], lookup: Lookup
) -> tuple[_Spec, dict[str, str]]:
    """Load a specification; return it as variables change it, and the variables that are set.

    Args:
        load: Reads its file.
        name: Of the file, see `specification_file`.
        fields: Field of the specification by variable; one with the name `frame` is a frame size by name.
        lookup: Value of a variable.

    Raises:
        ConfigError: There is no such file, or it or a value does not fit.
    """
    spec = load(specification_file(name))
    changed = {key: str(lookup(key)) for key in fields if lookup(key)}
    values: dict[str, object] = {
        fields[key]: frame_of(text) if fields[key] == "frame" else text for key, text in changed.items()
    }
    try:
        return type(spec).model_validate({**dict(spec), **values}, context=ASKED), changed
    except ValidationError as error:
        raise ConfigError(f"{name}: {error_text(error)}") from error


def refuse_wrong_field(spec: type[Frozen], field: str, name: str, text: str) -> None:
    """Refuse a value of a variable that no specification can have.

    Args:
        spec: Class of the specification.
        field: Its field that the variable replaces; one with the name `frame` is a frame size by name.
        name: Of the variable.
        text: Its value.

    Raises:
        ConfigError: It does not fit, or there is no such frame size.
    """
    value: object = frame_of(text) if field == "frame" else text
    info = spec.model_fields[field]
    fitting = TypeAdapter[object](Annotated[info.annotation, info])  # type: ignore[arg-type]  # a type made here
    try:
        fitting.validate_python(value, context=ASKED)
    except ValidationError as error:
        raise ConfigError(f"{name} '{quoted(text)}': {first_error(error)[1]}") from error


def chosen_profile(lookup: Lookup) -> SearchProfile:
    """Search profile named by `SEARCH`."""
    return profile(_value(lookup, "SEARCH"))


def chosen_noise_s(lookup: Lookup) -> float:
    """How long the noise floor is observed before a run, from `NOISE_FLOOR`; 0 for not at all.

    Raises:
        ConfigError: It is no number of seconds in [0.1, 10], and not 0.
    """
    text = str(lookup("NOISE_FLOOR") or _NOISE_S)
    if (duration_s := seconds_within(text, 0.1, 10)) is None and (duration_s := seconds_within(text, 0, 0)) is None:
        raise ConfigError(f"NOISE_FLOOR '{text}': the noise floor is observed for 0.1 to 10 s, or for 0: not at all")
    return duration_s


def chosen_qualifications(lookup: Lookup) -> Path | None:
    """Folder of qualifications of generators, from `QUALIFY`; None where a run goes without.

    Raises:
        ConfigError: It is neither `auto` nor `off`, and no folder.
    """
    text = str(lookup("QUALIFY") or "auto")
    if text in ("auto", "off"):
        return FOLDER if text == "auto" else None
    if not Path(text).is_dir():
        raise ConfigError(f"QUALIFY '{text}': auto, off for a run without, or the folder where qualifications are kept")
    return Path(text)


def chosen_priors(lookup: Lookup) -> PriorBook | None:
    """Earlier results below the folder `PRIORS`; None without that variable.

    Raises:
        ConfigError: There is no such folder.
    """
    folder = _value(lookup, "PRIORS")
    return PriorBook(Path(folder)) if folder else None


def chosen_predictions(lookup: Lookup) -> bool:
    """Whether cells that a run has measured predict others, from `PREDICT`.

    Raises:
        ConfigError: It is neither `on` nor `off`.
    """
    text = _value(lookup, "PREDICT")
    if text not in ("on", "off"):
        raise ConfigError(f"PREDICT '{text}': on, or off for searches that no other cell of the run predicts")
    return text == "on"


def suite_choice(lookup: Lookup) -> SuiteChoice | None:
    """Test type and selection of the present suite; None for a suite without `SERVICE_TYPE` and `TEST_TYPE`.

    Raises:
        ConfigError: A choice is wrong.
    """
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
        flows=_packets(lookup, "FLOWS"),
        ip_versions=_packets(lookup, "IP_VERSION") or "4",
        cache_ways=str(lookup("CACHE_WAYS") or ""),
    )
    if test_type not in set(TestType):
        raise ConfigError(f"TEST_TYPE '{quoted(str(test_type))}': expected {' or '.join(TestType)}")
    return SuiteChoice(TestType(str(test_type)), selection)


def _value(lookup: Lookup, name: str) -> str:
    """Value of a variable, else the one implied by tags to include, else the default.

    So `--include 2CANDIMIX` selects rows of that vSwitch size and frame, which the defaults do not have. Patterns with
    wildcards imply nothing: they select among the defaults.
    """
    return str(lookup(name) or _named_by_tags(lookup, name) or DEFAULTS[name])


def _packets(lookup: Lookup, name: str) -> str:
    """Numbers of flows, or versions of IP, of a density suite; empty where they are not chosen."""
    return str(lookup(name) or _named_by_tags(lookup, name))


def _named_by_tags(lookup: Lookup, name: str) -> str:
    """Value implied by `--include`, such as `1,2`; empty for none."""
    if name not in _NAMED_BY_TAGS:
        return ""
    tag, word = _NAMED_BY_TAGS[name]
    patterns = [pattern.split("NOT")[0] for pattern in getattr(lookup("OPTIONS"), "include", None) or ()]
    tags = [re.sub(r"[\s_]", "", each).upper() for pattern in patterns for each in re.split(r"AND|OR", pattern)]
    matches = (re.fullmatch(tag, each) for each in tags)
    return ",".join(dict.fromkeys(word.format(*match.groups("")) for match in matches if match))
