"""`outage`: trials and estimated time of a study of outages."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.tables import AS_JSON, TableForm, TableLine, print_sentence, print_table
from csit_utils.report.units import seconds
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.csit_topology import Secrets
from resources.libraries.python.studies.outage.model.spec import CONTROL, load_outage
from resources.libraries.python.studies.outage.planning import cost, refusals, schedule

_EVENTS = ("event", "target", "hold", "trials")
_ORDER = ("trial", "repetition", "event")


def outage(
    specification: Annotated[Path, typer.Argument(help="Specification of a study of outages, YAML.", metavar="SPEC")],
    list_them: Annotated[bool, typer.Option("--list", help="List every trial in its order.")] = False,
    topology: Annotated[
        Path | None, typer.Option("-t", "--topology", help="Topology file, to show which events its vSwitch supports.")
    ] = None,
    as_json: AS_JSON = False,
) -> None:
    """Preview an outage study: events, trials and time.

    Deploys and measures nothing: ./csit robot does. Events that a driver does not support are listed with the reason.

    \b
    Events and time:
      ./csit outage tests/characterization/specs/outage/routers.yaml
    Every trial in its order:
      ./csit outage routers.yaml --list
    As JSON, one object per line:
      ./csit outage routers.yaml --json
    """  # noqa: D301 - \b keeps the lines of the examples apart
    form = TableForm.JSON if as_json else TableForm.TERMINAL
    spec = load_outage(specification)
    refused = refusals(spec, None if topology is None else load_topology(topology, Secrets.IGNORE).dut)
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
        return
    rows = [
        TableLine(
            (each.event, each.target, f"{each.hold_s:g} s" if each.event == "pause" else "-", str(count)),
            {
                "object": "event",
                **each.model_dump(mode="json"),
                "trials": count,
                "refused": refused.get(each.name),
            },
        )
        for each in spec.events
        for count in [0 if each.name in refused else spec.repetitions]
    ]
    print_table(_EVENTS, rows, form, _EVENTS)
    if form is TableForm.JSON:
        print_table((), [TableLine((), {"object": "summary", "study": spec.name, **price.counts()})], form)
        return
    for reason in refused.values():
        print_sentence(f"{reason}.")
    load = f"{spec.share:.0%} of NDR" if spec.rate_pps is None else f"{spec.rate_pps:g} pps per instance and direction"
    control = ", control trials included" if spec.control else ""
    print_sentence(
        f"{spec.name}: {price.runs} trials of {spec.duration_s:g} s at {load}{control}, each with a deployment of "
        f"{spec.instances} instances: about {seconds(price.seconds)}."
    )
