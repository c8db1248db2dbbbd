"""`interference`: sets of co-located NFs and estimated time of an interference study."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, TableLine, print_sentence, print_table
from csit_utils.report.units import seconds
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.paths import specification_file
from resources.libraries.python.quantities import counted
from resources.libraries.python.studies.interference.model import InterferenceSpec
from resources.libraries.python.studies.interference.planning import AROUND_S, cost, gatherings, most_verifications

_NFS = ("name", "type", "kind", "stand-in")
_LISTED = ("target", "beside")


def interference(
    specification: Annotated[
        Path,
        typer.Argument(
            help="Specification of an interference study, YAML: a path, or below tests/characterization/specs.",
            metavar="SPEC",
        ),
    ],
    list_them: Annotated[bool, typer.Option("--list", help="List every target with its co-located NFs.")] = False,
    deploy: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="Seconds to deploy, verify and remove a set of NFs, for the estimate."
        ),
    ] = AROUND_S,
    form: TABLE_OR_JSON = TableForm.TABLE,
) -> None:
    """Preview an interference study: measurements and time.

    Deploys and measures nothing; tests/characterization/interference.robot does.

    \b
    Network functions and time:
      ./csit interference interference/pairs.yaml
    Every set of co-located NFs:
      ./csit interference interference/pairs.yaml --list
    As JSON, one object per line:
      ./csit interference interference/pairs.yaml --format json
    """  # noqa: D301 - \b keeps the lines of the examples apart
    spec = load_yaml(specification_file(specification), InterferenceSpec)
    price = cost(spec, deploy)
    if list_them:
        print_table(_LISTED, list(_gatherings(spec)), form, _LISTED)
        return
    print_table(_NFS, list(_functions(spec)), form, _NFS)
    if form is TableForm.JSON:
        print_table((), [TableLine((), {"object": "summary", "study": spec.name, **price.counts()})], form)
        return
    rounds = counted(spec.repetitions, "repetition")
    twice = "".join(f", once more with guaranteed {each.words}" for each in spec.guarantee)
    most = f", at most {most_verifications(spec)} of them to verify placements" if spec.verify else ""
    print_sentence(
        f"{spec.name}: {price.runs} measurements of {spec.duration_s:g} s each: baselines and up to "
        f"{spec.together} co-located NFs ({price.counted['combinations']} sets), {rounds}{twice}"
        f"{_points(spec)}{most}."
    )
    print_sentence(
        f"{price.counted['deployments']} deployments, including one per network function to find the load: about "
        f"{seconds(price.seconds)}."
    )


def _points(spec: InterferenceSpec) -> str:
    frames, loads = max(1, len(spec.frames)), max(1, len(spec.loads_pps))
    return "" if frames == loads == 1 else f", at {counted(frames, 'packet size')} and {counted(loads, 'load')}"


def _functions(spec: InterferenceSpec) -> Iterator[TableLine]:
    for one in spec.contenders:
        stand_in = one.stand_in
        raw = {"object": "function", "name": one.name, "type": one.type.value, "kind": one.kind}
        yield TableLine((one.name, one.type.value, one.kind, stand_in or "-"), {**raw, "stand_in": stand_in})


def _gatherings(spec: InterferenceSpec) -> Iterator[TableLine]:
    for target, against in gatherings(spec):
        raw = {"object": "company", "target": target, "against": list(against)}
        yield TableLine((target, " + ".join(against) or "-"), raw)
