"""`chains`: chains of a study, policies that drop others, and the estimated time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, TableLine, print_sentence, print_table
from csit_utils.report.units import seconds
from resources.libraries.python.paths import specification_file
from resources.libraries.python.quantities import counted
from resources.libraries.python.studies.chains.model.spec import load_chains
from resources.libraries.python.studies.chains.planning import AROUND_S, Chains, cost, generate

_NAMES = " > "
_LENGTHS = ("length", "orders")
_DROPPED = ("policy", "drops", "such as")
_LISTED = ("chain", "sizes", "memory")


def chains(
    specification: Annotated[
        Path,
        typer.Argument(
            help="Specification of a chain study, YAML: a path, or below tests/characterization/specs.", metavar="SPEC"
        ),
    ],
    list_them: Annotated[bool, typer.Option("--list", help="List every chain with its resources.")] = False,
    deploy: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="Seconds to deploy, verify and remove a chain, for the estimate."),
    ] = AROUND_S,
    form: TABLE_OR_JSON = TableForm.TABLE,
) -> None:
    """Preview a chain study: chains, dropped ones, and time.

    Deploys and measures nothing; tests/characterization/chains.robot does.

    Policies: `A > B` B after A; `A & B` both or none; `A | B` at most one of them. `>` binds most tightly, `|` least;
    use brackets. Each single VNF is always measured, as the baseline. See docs/how-to/write-chain-policies.md.

    \b
    Chains by length, and chains that each policy drops:
      ./csit chains chains/four-vnfs.yaml
    All chains:
      ./csit chains chains/four-vnfs.yaml --list
    As JSON, one object per line:
      ./csit chains chains/four-vnfs.yaml --format json
    """  # noqa: D301 - \b keeps the lines of the examples apart
    found = generate(load_chains(specification_file(specification)))
    price = cost(found, deploy)
    if list_them:
        print_table(_LISTED, list(_chains(found)), form, _LISTED)
        return
    print_table(_LENGTHS, list(_lengths(found)), form)
    if found.dropped:
        print_table(_DROPPED, list(_dropped(found)), form, ("policy", "such as"))
    if form is TableForm.JSON:
        raw = {"object": "summary", "study": found.spec.name, **price.counts()}
        print_table((), [TableLine((), raw)], form)
        return
    workloads = len(found.spec.workloads)
    print_sentence(
        f"{found.spec.name}: {found.count} chains with their resources, {counted(workloads, 'workload')} "
        f"of {found.spec.duration_s} s each: about {seconds(price.seconds)}."
    )


def _lengths(found: Chains) -> Iterator[TableLine]:
    for length, orders in found.orders.items():
        yield TableLine((str(length), str(orders)), {"object": "length", "length": length, "orders": orders})


def _dropped(found: Chains) -> Iterator[TableLine]:
    for row in found.dropped:
        examples = [_NAMES.join(order) for order in row.examples]
        raw = {"object": "dropped", "policy": row.policy, "drops": row.count, "examples": examples}
        yield TableLine((row.policy, str(row.count), "; ".join(examples)), raw)


def _chains(found: Chains) -> Iterator[TableLine]:
    for chain in found:
        sizes = [member.size for member in chain.members]
        memory = [member.memory_mib for member in chain.members]
        memory_text = " ".join("-" if mib is None else f"{mib} MiB" for mib in memory)
        raw = {"object": "chain", "vnfs": list(chain.order), "sizes": sizes, "memory_mib": memory}
        yield TableLine((chain.name, " ".join(sizes), memory_text), raw)
