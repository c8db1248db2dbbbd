"""The version: defined once, shown by the command line, and recorded."""

import subprocess

from typer.testing import CliRunner

from csit_utils import cli
from csit_utils.report.environments import environment_views, side_by_side
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.quantities import DASH
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.version import program_version
from tests.unit.csit_utils.builders import ENVIRONMENT


def test_both_entry_points_show_the_version_of_pyproject() -> None:
    expected = f"csit {program_version()}\n"
    done = CliRunner().invoke(cli.make_app(["--version"]), ["--version"])
    assert (done.exit_code, done.output) == (0, expected)
    shown = subprocess.run([PROJECT / "csit", "--version"], capture_output=True, text=True, check=True).stdout
    assert shown == expected


def test_records_carry_it_and_it_is_shown_with_the_revision() -> None:
    assert fingerprint().program_version == program_version()
    known = {"a": ENVIRONMENT, "b": ENVIRONMENT.model_copy(update={"program_version": "1.2.3"})}
    shown = {name: values for name, values, _ in side_by_side(environment_views(known, [], {}))}
    assert shown["program version"] == (DASH, "1.2.3")
    assert shown["revision of the suite"][0].startswith("c3313a2d0f5b")
