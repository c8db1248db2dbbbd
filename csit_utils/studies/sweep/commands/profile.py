"""`profile`: functions of the load from a sweep, and what they answer."""

from typing import Annotated

import typer

from csit_utils.commands.tables import AS_CSV, AS_JSON, AS_MARKDOWN, form_of
from resources.libraries.python.errors import ConfigError

FILES = Annotated[
    list[str] | None,
    typer.Argument(help="S_statistics CSV of a sweep, as FILE or NAME=FILE. Several are flavors of one service."),
]


def profile(
    files: FILES = None,
    vcpus: Annotated[
        list[str] | None,
        typer.Option(
            help="vCPUs where the file has no column for each: N, VNF=N, SERVICE=N or SERVICE/VNF=N.  [repeatable]"
        ),
    ] = None,
    loss: Annotated[float | None, typer.Option(help="Percent that may be lost at most.")] = None,
    delay: Annotated[float | None, typer.Option(help="One-way delay in ms at most.")] = None,
    rate: Annotated[float | None, typer.Option(help="Expected input rate in Gbit/s, one way, L2.")] = None,
    gain: Annotated[
        float, typer.Option(help="Percent that a larger flavor must carry more, to be one that scales.")
    ] = 10,
    chain: Annotated[str, typer.Option(help="VNFs of a chain, each measured alone: [NAME=]FILE,[NAME=]FILE,...")] = "",
    against: Annotated[str, typer.Option(help="The chain itself, measured: FILE. Without it, say --rate.")] = "",
    shares: Annotated[
        str, typer.Option(help="Of the rate that goes through each VNF of --chain: 1,0.5,0.5,1 for two branches.")
    ] = "",
    path: Annotated[
        str,
        typer.Option(help="What is around every VNF of --chain, measured without any: FILE. Its delay counts once."),
    ] = "",
    shared_cpus: Annotated[
        bool, typer.Option("--shared-cpus", help="The VNFs of --chain run on the same CPUs, one time after the other.")
    ] = False,
    as_csv: AS_CSV = False,
    as_markdown: AS_MARKDOWN = False,
    as_json: AS_JSON = False,
) -> None:
    """Describe a service by functions of its input rate, below and above the rate that saturates its CPUs.

    A sweep writes the points (S_statistics.csv); a CSV of your own needs the columns input_pps, output_pps, input_gbps
    and output_gbps, and may have loss_percent, delay_ms, and CPU as <vnf>_cpu_percent or <vnf>_vcpu1_percent and so on.

    Break-point and functions: ./csit profile firewall/S_statistics.csv

    Highest rate for a loss and a delay: ./csit profile firewall/S_statistics.csv --loss 1 --delay 2

    Best flavor for a rate, and whether vCPUs help: ./csit profile small=a.csv large=b.csv --rate 1.2 --loss 1

    A chain from its parts, against the real one: ./csit profile --chain router.csv,firewall.csv --against chain.csv

    Two branches of a firewall between routers: ... --chain r1=r.csv,f1=f.csv,f2=f.csv,r2=r.csv --shares 1,0.5,0.5,1
    """
    from csit_utils.studies.sweep.profile_modes import answer, describe, predict_chain  # noqa: PLC0415 - scipy costs time of --help

    form = form_of(as_csv=as_csv, as_markdown=as_markdown, as_json=as_json)
    _check(loss=loss, delay=delay, rate=rate, gain=gain)
    if chain:
        if files or loss is not None or delay is not None:
            raise ConfigError("--chain predicts a chain: it takes no other files, no --loss and no --delay")
        if bool(against) == (rate is not None):
            raise ConfigError("--chain is compared with a measured one (--against) or predicted at a rate (--rate)")
        predict_chain(chain, vcpus or [], shares, against or rate, form, path=path, shared_cpus=shared_cpus)
        return
    if against or shares or path or shared_cpus:
        raise ConfigError("--against, --shares, --path and --shared-cpus are of --chain")
    if not files:
        raise ConfigError("say a S_statistics CSV, or --chain; ./csit profile --help has examples")
    if loss is not None or delay is not None:
        answer(files, vcpus or [], (loss, delay), rate, least_gain=gain / 100, form=form)
    elif rate is not None:
        raise ConfigError(f"--rate {rate:g}: say what the service must keep there, --loss or --delay")
    else:
        describe(files, vcpus or [], gain / 100, form)


def _check(**options: float | None) -> None:
    most = {"loss": 100.0}
    for name, value in options.items():
        if value is not None and not (0 <= value <= most.get(name, 1e9) and (value or name != "rate")):
            raise ConfigError(f"--{name} {value:g}: that is no {name} there can be")
