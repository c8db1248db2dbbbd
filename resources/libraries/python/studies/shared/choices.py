"""Robot variables that choose testbed, search and keys of specifications: `robot -v SEARCH:quick …`."""

import json
from pathlib import Path

from pydantic import ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import first_error
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.request.variables import GENERATOR, NIC_MODEL, QUALIFY, SEARCH, SET, Lookup, texts
from resources.libraries.python.model.result import Rerun
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.recording.journal import Choices
from resources.libraries.python.recording.qualifications import FOLDER
from resources.libraries.python.recording.run_journal import Command, header_of
from resources.libraries.python.search.profiles import profile

_STUDIES = Path(__file__).parents[1]


def chosen_topology(lookup: Lookup) -> Topology:
    """Load the testbed named by `TOPOLOGY`, with the network cards of virtual machines named by `NIC_MODEL`.

    Raises:
        ConfigError: There is no such variable, its file is wrong, or the testbed cannot have such network cards.
    """
    path = lookup("TOPOLOGY")
    if not path:
        raise ConfigError("no testbed chosen; for example: -v TOPOLOGY:topologies/local.yaml")
    topology, model = load_topology(Path(str(path))), NIC_MODEL.text(lookup)
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
    chosen = dut.settings(settings)
    if getattr(chosen, "nic", None) == model:
        return dut  # as it is: another text would be another testbed
    document = {**dut.model_dump(), "vm": {**chosen.model_dump(), "nic": model}}
    try:
        return DutNode.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"NIC_MODEL '{quoted(model)}': {first_error(error)[1]}") from error


def generator_chosen(lookup: Lookup) -> Topology:
    """Load the testbed named by `TOPOLOGY`, with the traffic generator named by `GENERATOR`.

    Raises:
        ConfigError: The testbed's file is wrong, or it cannot have that generator.
    """
    topology, driver = chosen_topology(lookup), GENERATOR.text(lookup)
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
    return Choices(
        topology=str(Path(str(lookup("TOPOLOGY"))).absolute()),
        topology_digest=topology.digest,
        variables=texts(lookup),
        include=tuple(getattr(options, "include", ())),
        exclude=tuple(getattr(options, "exclude", ())),
        profile=chosen_profile(lookup),
    )


def rerun_of(lookup: Lookup, topology: Topology, study: str) -> Rerun:
    """Return how to repeat the tests of the present suite of a study."""
    return Rerun(
        suite=_inside(str(lookup("SUITE SOURCE"))),
        topology=_inside(str(lookup("TOPOLOGY"))),
        topology_digest=topology.digest,
        variables=texts(lookup, study),
    )


def settings_of(lookup: Lookup, study: str) -> dict[str, str]:
    """Keys of the specifications of a study that `SET` sets, and their values.

    A key may begin with the name of a study: those of other studies are left out.

    Raises:
        ConfigError: A part of it is no key with a value.
    """
    found = {}
    for key, value in SET.of(lookup).items():
        first, _, rest = key.partition(".")
        of_study = bool(rest) and (_STUDIES / first).is_dir()
        if not of_study or first == study:
            found[rest if of_study else key] = value
    return found


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


def chosen_profile(lookup: Lookup) -> SearchProfile:
    """Search profile named by `SEARCH`."""
    return profile(SEARCH.text(lookup))


def chosen_qualifications(lookup: Lookup) -> Path | None:
    """Folder of qualifications of generators, from `QUALIFY`; None where a run goes without.

    Raises:
        ConfigError: It is neither `auto` nor `off`, and no folder.
    """
    text = QUALIFY.text(lookup) or "auto"
    if text in ("auto", "off"):
        return FOLDER if text == "auto" else None
    if not Path(text).is_dir():
        raise ConfigError(f"QUALIFY '{text}': auto, off for a run without, or the folder where qualifications are kept")
    return Path(text)
