"""`robot`: Robot Framework's own command line, with the rows of the density suites made before it filters tests."""

import typer
from robot.errors import DataError, Information
from robot.run import RobotFramework

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.keywords.suite_rows import RowsBeforeFilter


def robot(context: typer.Context) -> None:
    """Run suites with Robot Framework; takes all its options.

    Example: ./csit robot -v TOPOLOGY:topologies/sim.yaml --include CSC --exclude 10R10C tests/density
    """
    framework = RobotFramework()
    try:
        options, sources = framework.parse_arguments(context.args)
    except Information as text:
        typer.echo(str(text))
        raise typer.Exit(0) from None
    except DataError as error:
        raise ConfigError(str(error)) from error
    modifiers = [*options.pop("prerunmodifier", ()), RowsBeforeFilter(options.get("variable", []))]
    raise typer.Exit(framework.execute(*sources, prerunmodifier=modifiers, **options))
