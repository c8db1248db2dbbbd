"""`profile`: profiles of services from sweeps: functions of the input rate, and queries of them."""

from typing import Annotated

import typer

from csit_utils.commands.tables import FORMAT, TableForm
from resources.libraries.python.errors import ConfigError

FILES = Annotated[
    list[str] | None,
    typer.Argument(help="S_statistics CSV of a sweep, FILE or NAME=FILE; several are flavors of one service."),
]


def profile(
    files: FILES = None,
    vcpus: Annotated[
        list[str] | None,
        typer.Option(help="vCPUs, if the file has no column for each: N, VNF=N, SERVICE=N or SERVICE/VNF=N."),
    ] = None,
    loss: Annotated[float | None, typer.Option(metavar="PERCENT", help="Upper bound of the loss in percent.")] = None,
    delay: Annotated[
        float | None, typer.Option(metavar="MILLISECONDS", help="Upper bound of the one-way delay in ms.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(metavar="GBIT/S", help="Expected input rate in Gbit/s (L2, one direction).")
    ] = None,
    gain: Annotated[
        float, typer.Option(metavar="PERCENT", help="Gain in percent from which a larger flavor counts as scaling.")
    ] = 10,
    chain: Annotated[
        str, typer.Option(metavar="FILE,FILE", help="Sweeps of the single VNFs of a chain: [NAME=]FILE,[NAME=]FILE,...")
    ] = "",
    against: Annotated[
        str, typer.Option(metavar="FILE", help="Sweep of the whole chain, to compare with; otherwise give --rate.")
    ] = "",
    shares: Annotated[
        str, typer.Option(help="Share of the rate through each VNF of --chain: 1,0.5,0.5,1 for two branches.")
    ] = "",
    path: Annotated[
        str,
        typer.Option(metavar="FILE", help="Sweep of the path without VNFs, whose delay is counted once for --chain."),
    ] = "",
    shared_cpus: Annotated[
        bool, typer.Option("--shared-cpus", help="The VNFs of --chain share the same CPUs.")
    ] = False,
    form: FORMAT = TableForm.TABLE,
) -> None:
    """Fit functions to a sweep, below and above its break-point.

    The variable of the functions is the input rate. Reads S_statistics.csv of a sweep. A CSV of your own needs the
    columns input_pps, output_pps, input_gbps and output_gbps; optional are loss_percent, delay_ms, and CPU as
    <vnf>_cpu_percent or <vnf>_vcpu1_percent etc.

    \b
    Break-point and functions:
      ./csit profile firewall/S_statistics.csv
    Highest rate within bounds of loss and delay:
      ./csit profile firewall/S_statistics.csv --loss 1 --delay 2
    Best flavor for a rate, and gain of more vCPUs:
      ./csit profile small=a.csv large=b.csv --rate 1.2 --loss 1
    Predicted against measured chain:
      ./csit profile --chain router.csv,firewall.csv --against chain.csv
    Two firewalls in parallel between routers:
      ... --chain r1=r.csv,f1=f.csv,f2=f.csv,r2=r.csv --shares 1,0.5,0.5,1
    """  # noqa: D301 - \b keeps the lines of the examples apart
    from csit_utils.studies.sweep.profile_modes import answer, describe, predict_chain  # noqa: PLC0415 - scipy costs time of --help

    _check(loss=loss, delay=delay, rate=rate, gain=gain)
    if chain:
        if files or loss is not None or delay is not None:
            raise ConfigError("--chain cannot be combined with files, --loss or --delay")
        if bool(against) == (rate is not None):
            raise ConfigError("--chain needs either --against (a measured chain) or --rate")
        predict_chain(chain, vcpus or [], shares, against or rate, form, path=path, shared_cpus=shared_cpus)
        return
    if against or shares or path or shared_cpus:
        raise ConfigError("--against, --shares, --path and --shared-cpus need --chain")
    if not files:
        raise ConfigError("no input: give an S_statistics CSV or --chain; see ./csit profile --help")
    if loss is not None or delay is not None:
        answer(files, vcpus or [], (loss, delay), rate, least_gain=gain / 100, form=form)
    elif rate is not None:
        raise ConfigError(f"--rate {rate:g}: needs a bound, --loss or --delay")
    else:
        describe(files, vcpus or [], gain / 100, form)


def _check(**options: float | None) -> None:
    most = {"loss": 100.0}
    for name, value in options.items():
        if value is not None and not (0 <= value <= most.get(name, 1e9) and (value or name != "rate")):
            raise ConfigError(f"--{name} {value:g}: out of range")
