"""`outage`: trials and estimated time of a study of outages."""

from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.tables import AS_JSON, TableForm, TableLine, print_table
from csit_utils.report.units import seconds
from resources.libraries.python.studies.outage.model.spec import CONTROL, load_outage
from resources.libraries.python.studies.outage.planning.schedule import cost, schedule

_EVENTS = ("event", "target", "hold", "trials")
_ORDER = ("trial", "repetition", "event")


def outage(
    specification: Annotated[Path, typer.Argument(help="Specification of a study of outages, YAML.", metavar="SPEC")],
    list_them: Annotated[bool, typer.Option("--list", help="List every trial in its order.")] = False,
    as_json: AS_JSON = False,
) -> None:
    """Preview a study of outages: events, trials and estimated time.

    Deploys and measures nothing: ./csit robot does.

    Events and time: ./csit outage tests/characterization/specs/outage/routers.yaml

    Every trial in its order: ./csit outage routers.yaml --list

    As JSON, one object per line: ./csit outage routers.yaml --json
    """
    form = TableForm.JSON if as_json else TableForm.TERMINAL
    spec = load_outage(specification)
    price = cost(spec)
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
            for turn in schedule(spec)
        ]
        print_table(_ORDER, lines, form, _ORDER)
        return
    rows = [
        TableLine(
            (each.event, each.target, f"{each.hold_s:g} s" if each.event == "pause" else "-", str(spec.repetitions)),
            {"object": "event", **each.model_dump(mode="json"), "trials": spec.repetitions},
        )
        for each in spec.events
    ]
    print_table(_EVENTS, rows, form, _EVENTS)
    if form is TableForm.JSON:
        print_table((), [TableLine((), {"object": "summary", "study": spec.name, **price.counts()})], form)
        return
    load = f"{spec.share:.0%} of NDR" if spec.rate_pps is None else f"{spec.rate_pps:g} pps per instance and direction"
    control = ", control trials included" if spec.control else ""
    typer.echo(
        f"{spec.name}: {price.runs} trials of {spec.duration_s:g} s at {load}{control}, each with a deployment of "
        f"{spec.instances} instances: about {seconds(price.seconds)}."
    )
