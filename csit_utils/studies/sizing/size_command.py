"""`size`: deployment sizes of a sizing, and the estimated time."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, TableLine, print_sentence, print_table
from csit_utils.report.units import seconds
from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.bounds import MAX_SIZES
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.service.load import load_specifications
from resources.libraries.python.model.service.spec import DeploymentSpec, Size, SizingMode, name_of
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.paths import specification_file
from resources.libraries.python.planning.placement.instance_cpus import place, usable_mb
from resources.libraries.python.studies.sizing.planning import INSTANCE_DEPLOY_S, SizingCost, cost, planned, possible
from resources.libraries.python.studies.sizing.planning.heat_templates import write_heat
from resources.libraries.python.testbed.kinds.factory import layout_of, memory_of

_HEADS = ("size", "vCPUs", "memory", "instances", "here")


def size(
    deployment: Annotated[
        Path, typer.Argument(help="Deployment specification, JSON: a path, or below tests/characterization/specs.")
    ],
    workload: Annotated[
        Path, typer.Argument(help="Workload specification, JSON: a path, or below tests/characterization/specs.")
    ],
    topology: Annotated[
        Path | None, typer.Option("-t", "--topology", help="Topology file, to show which sizes fit.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the specifications, such as engine=snort.")
    ] = None,
    heat: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write an OpenStack Heat template per size to this folder.")
    ] = None,
    deploy: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="Seconds to deploy and remove an instance, for the estimate."),
    ] = INSTANCE_DEPLOY_S,
    form: TABLE_OR_JSON = TableForm.TABLE,
) -> None:
    """Preview a sizing: deployment sizes, loads and time.

    Checks both specifications and their scripts. Deploys and measures nothing; tests/characterization/sizing.robot
    does.

    \b
    Examples:
    ./csit size clearwater/deployment.json clearwater/workload.json --heat heat
    """  # noqa: D301 - \b keeps the lines of the examples apart
    asked = load_specifications(specification_file(deployment), specification_file(workload), _chosen(option or []))
    spec, load = asked.deployment, asked.workload
    price = cost(spec, load, deploy)
    known = planned(spec) or possible(spec)
    if known is None and heat:
        raise ConfigError(f"--heat: {spec.vnf_name} has more than {MAX_SIZES} sizes, any of which the search may visit")
    # With too many sizes, only the first one of a directed search is listed.
    sizes = {name_of(spec, each): each for each in (known or (spec.smallest(),))}
    testbed = load_topology(topology) if topology else None
    templates = write_heat(asked, sizes, heat) if heat else []
    rows = [_row(name, each, spec, _why_not(spec, each, testbed)) for name, each in sizes.items()]
    if form is TableForm.JSON:
        for row in rows:
            typer.echo(json.dumps(row))
        typer.echo(json.dumps(_summary(price, spec, load, testbed)))
    else:
        print_table(
            _HEADS[: None if testbed else -1], [_line(row, testbed) for row in rows], TableForm.TABLE, ("size",)
        )
        among = f"more than {MAX_SIZES}" if known is None else str(len(known))
        for sentence in _sentences(price, spec, load, testbed, among):
            print_sentence(sentence)
        if known is None:
            typer.echo("Only the smallest size is listed.")
    if heat:
        typer.echo(f"templates: {len(templates)} in {heat}", err=form is TableForm.JSON)


def _chosen(options: list[str]) -> dict[str, str]:
    """Return options by name.

    Raises:
        ConfigError: An option is not `NAME=VALUE`.
    """
    for option in options:
        if "=" not in option:
            raise ConfigError(f"--option {option}: expected NAME=VALUE")
    return {name: value for name, _, value in (option.partition("=") for option in options)}


def _why_not(spec: DeploymentSpec, each: Size, testbed: Topology | None) -> str | None:
    """Return why a size does not fit on a testbed; None if it fits. Queries nodes for CPUs missing in the topology."""
    if testbed is None or testbed.world is World.SIM:
        return None
    layout, memory = layout_of(testbed), memory_of(testbed)
    if not isinstance(layout, CpuLayout):  # by node of a lab: instances run on the first DUT
        layout = layout[next(iter(testbed.duts))]
    try:
        place(spec, each, layout, usable_mb(memory), oversubscribe=testbed.dut.oversubscribe)
    except PlanError as error:
        return str(error)
    return None


def _row(name: str, each: Size, spec: DeploymentSpec, why_not: str | None) -> dict[str, Any]:
    return {
        "object": "size",
        "size": name,
        "vcpus": spec.vcpus(each),
        "memory_mb": spec.memory_mb(each),
        "instances": sum(share.instances for share in each.components.values()),
        "components": {part: share.model_dump() for part, share in each.components.items()},
        "why_not": why_not,
    }


def _line(row: dict[str, Any], testbed: Topology | None) -> TableLine:
    texts = (row["size"], f"{row['vcpus']:g}", f"{row['memory_mb']} MB", str(row["instances"]))
    if testbed is None:
        return TableLine(texts, row)
    return TableLine((*texts, row["why_not"] or ("simulated" if testbed.world is World.SIM else "fits")), row)


def _summary(price: SizingCost, spec: DeploymentSpec, load: WorkloadSpec, testbed: Topology | None) -> dict[str, Any]:
    return {
        "object": "summary",
        "vnf_name": spec.vnf_name,
        "mode": spec.mode.value,
        **price.counts(),
        "instance_deploy_s": price.instance_deploy_s,
        "at_most": price.at_most,
        "unit": load.unit,
        "seconds_are_virtual": testbed is not None and testbed.world is World.SIM,
    }


def _sentences(
    price: SizingCost, spec: DeploymentSpec, load: WorkloadSpec, testbed: Topology | None, among: str
) -> list[str]:
    sizes = f"{price.sizes} size{'' if price.sizes == 1 else 's'}"
    if spec.mode is SizingMode.DIRECTED:
        sizes = f"at most {price.sizes} of {among} sizes, smallest first (directed search, {spec.scaling.value})"
    loads = load.loads()
    least = "at most " if price.loads_at_most else ""
    virtual = " of a virtual clock" if testbed is not None and testbed.world is World.SIM else ""
    return [
        f"{spec.vnf_name}: {sizes}.",
        f"Each with {least}{price.loads} loads from {loads[0]:g} to {loads[-1]:g} {load.unit}, "
        f"{price.repetitions} x {load.duration_s:g} s.",
        f"{'At most' if price.at_most else 'In total'} {price.runs} generator runs, about "
        f"{seconds(price.seconds)}{virtual}, with {price.instance_deploy_s:g} s assumed per deployed instance.",
    ]
