"""`outage`: trials and estimated time of a study of outages."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, TableLine, print_sentence, print_table
from csit_utils.report.units import seconds
from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.load import load_topology, load_yaml
from resources.libraries.python.model.testbed.csit_topology import Secrets
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.paths import specification_file
from resources.libraries.python.planning.plan import kinds, make_plan
from resources.libraries.python.planning.traffic import not_taken
from resources.libraries.python.studies.outage.model import CONTROL, OutageSpec
from resources.libraries.python.studies.outage.planning import cost, refusals, schedule
from resources.libraries.python.testbed.kinds.factory import layout_of

_EVENTS = ("event", "target", "hold", "trials")
_ORDER = ("trial", "repetition", "event")


def outage(
    specification: Annotated[
        Path,
        typer.Argument(
            help="Specification of a study of outages, YAML: a path, or below tests/characterization/specs.",
            metavar="SPEC",
        ),
    ],
    list_them: Annotated[bool, typer.Option("--list", help="List every trial in its order.")] = False,
    topology: Annotated[
        Path | None,
        typer.Option("-t", "--topology", help="Topology file, to show which events its vSwitch and CPUs allow."),
    ] = None,
    form: TABLE_OR_JSON = TableForm.TABLE,
) -> None:
    """Preview an outage study: events, trials and time.

    Deploys and measures nothing; tests/characterization/outage.robot does. Events that a driver does not support, or
    that the plan leaves no CPU for, are listed with the reason. A service that does not fit the testbed is an error.

    \b
    Events and time:
      ./csit outage outage/routers.yaml
    Every trial in its order:
      ./csit outage outage/routers.yaml --list
    As JSON, one object per line:
      ./csit outage outage/routers.yaml --format json
    """  # noqa: D301 - \b keeps the lines of the examples apart
    spec = load_yaml(specification_file(specification), OutageSpec)
    testbed = None if topology is None else load_topology(topology, Secrets.IGNORE)
    plan, unchecked = None, ""
    if testbed is not None:
        try:
            # Reaches no node: a lab's CPUs are those of the file.
            layout = {} if testbed.world is World.LAB else layout_of(testbed)
            if reason := not_taken(testbed, kinds(testbed, spec.cell), spec.frame):
                raise PlanError(reason)
            plan = make_plan(testbed, spec.cell, layout, ip_version=spec.frame.ip_version)
        except ConfigError as error:
            unchecked = f"Which events the plan leaves no CPU for is not known: {error}."
    refused = refusals(spec, None if testbed is None else testbed.dut, plan)
    remarks = [f"{reason}." for reason in refused.values()] + [unchecked] * bool(unchecked)
    price = cost(spec, refused)
    if list_them:
        lines = [
            TableLine(
                (str(turn.number + 1), str(turn.repetition + 1), turn.strike.name if turn.strike else CONTROL),
                {
                    "object": "trial",
                    "number": turn.number,
                    "repetition": turn.repetition,
                    "event": turn.strike.name if turn.strike else CONTROL,
                },
            )
            for turn in schedule(spec, refused)
        ]
        print_table(_ORDER, lines, form, _ORDER)
        _print_remarks(remarks, form)
        return
    rows = [
        TableLine(
            (each.event, each.target, f"{each.hold_s:g} s" if each.event == "pause" else "-", str(count)),
            {"object": "event", **each.model_dump(mode="json"), "trials": count, "refused": refused.get(each.name)},
        )
        for each in spec.events
        for count in [0 if each.name in refused else spec.repetitions]
    ]
    print_table(_EVENTS, rows, form, _EVENTS)
    if form is TableForm.JSON:
        print_table((), [TableLine((), {"object": "summary", "study": spec.name, **price.counts()})], form)
    _print_remarks(remarks, form)
    if form is TableForm.JSON:
        return
    load = f"{spec.share:.0%} of NDR" if spec.rate_pps is None else f"{spec.rate_pps:g} pps per instance and direction"
    control = ", control trials included" if spec.control else ""
    print_sentence(
        f"{spec.name}: {price.runs} trials of {spec.duration_s:g} s at {load}{control}, each with a deployment of "
        f"{spec.instances} instances: about {seconds(price.seconds)}."
    )


def _print_remarks(remarks: list[str], form: TableForm) -> None:
    for remark in remarks:
        if form is TableForm.JSON:
            typer.echo(remark, err=True)
        else:
            print_sentence(remark)
