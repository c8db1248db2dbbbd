"""`convert`: convert a topology file of FD.io CSIT."""

from pathlib import Path
from typing import Annotated

import typer
import yaml

from csit_utils.commands.tables import print_sentence
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import dotted
from resources.libraries.python.model.load import convert_topology
from resources.libraries.python.redaction import command_text
from resources.libraries.python.whole_files import write_whole


def convert(
    file: Annotated[Path, typer.Argument(help="A topology file of FD.io CSIT.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; default: standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing output file.")] = False,
) -> None:
    """Convert a topology file of FD.io CSIT.

    What was moved, added and left out is listed on standard error. Secrets are not copied: a password becomes the name
    of an environment variable, a private key the path of a file. Fill in a template of CSIT before converting it.

    \b
    Examples:
    ./csit convert lf_2n_icx_testbed212.yaml -o icx.yaml
    """  # noqa: D301 - \b keeps the lines of the examples apart
    topology, made = convert_topology(file)
    # Leaf mappings on one line, as the files of topologies/ have their interfaces.
    body = yaml.safe_dump(made.data, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
    text = f"# Converted from {file.name} of FD.io CSIT.\n{body}"
    if output is None:
        typer.echo(text, nl=False)
    else:
        _write(output, text, force=force)
    for note in made.notes:
        typer.echo(note, err=True)
    for problem in topology.address_problems:
        place = dotted(problem.location)
        print_sentence(f"warning: {place}: {problem}; the written file is refused until then", err=True)
    of_loops = {end.port for loop in topology.loops for end in (loop.a, loop.b)}
    used = {name: port for name, port in topology.tg.interfaces.items() if name not in of_loops}
    models = {port.model for port in used.values() if port.model}
    typer.echo(f"runs use the {len(used)} TG ports cabled to {' and '.join(sorted(models)) or 'NICs'}", err=True)
    if output is not None:
        print_sentence(f"written: {output}; next:", command_text("./csit", "plan", output), err=True)


def _write(output: Path, text: str, *, force: bool) -> None:
    if output.exists() and not force:
        raise ConfigError(f"{output}: exists; --force overwrites it")
    write_whole(output, text)
