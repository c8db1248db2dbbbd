"""docs/how-to/add-a-variable.md as a reader follows it: one declaration, seen everywhere."""

import re
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from csit_utils.cli import make_app
from csit_utils.commands.runs.robot import run_suites
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request import variables
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.shared.choices import choices, rerun_of
from resources.libraries.python.studies.shared.choices_before_run import refuse_misspelt
from resources.libraries.python.studies.shared.library import variables_in_words

PAGE = (PROJECT / "docs" / "how-to" / "add-a-variable.md").read_text(encoding="utf-8")
DECLARATION, USE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SIM = PROJECT / "topologies" / "sim.yaml"
GIVEN = {"TOPOLOGY": str(SIM), "PAUSE": "5", "SUITE SOURCE": "tests/density/csc-mrr.robot"}


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    exec(DECLARATION, vars(variables))  # noqa: S102 - as if it stood there
    yield
    del variables.VARIABLES["PAUSE"], vars(variables)["PAUSE"]


def used(text: str) -> object:
    names = {"self": SimpleNamespace(_choices={"PAUSE": text}.get), **vars(variables)}
    exec(USE, names)  # noqa: S102 - as above
    return names["pause_s"]


def test_the_value_is_read_and_a_wrong_one_refused() -> None:
    assert (used("5"), used("")) == (5.0, None)
    with pytest.raises(ConfigError, match=r"^PAUSE '99': expected 0.1 to 60 seconds; "):
        used("99")


def test_help_and_the_documentation_of_suites_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    make_app(["explain"])(["explain", "PAUSE"], standalone_mode=False)
    explained = capsys.readouterr().out
    assert explained.startswith("-v PAUSE:5\n") and "seconds before a search begins (density)" in explained
    assert run_suites(["--help"]) == 0
    assert explained in capsys.readouterr().out
    assert "-v PAUSE:5" in variables_in_words("density") and "-v PAUSE:5" not in variables_in_words("outage")


def test_a_misspelt_one_is_refused_and_so_is_one_of_another_study() -> None:
    of_density, of_outage = ([each.name for each in variables.read_by(study)] for study in ("density", "outage"))
    refuse_misspelt(["PAUSE"], of_density)
    for name, known in (("PAUS", of_density), ("PAUSE", of_outage)):
        with pytest.raises(ConfigError, match=f"^-v {name}: no such variable"):
            refuse_misspelt([name], known)


def test_the_journal_and_the_command_that_repeats_a_test_have_it() -> None:
    topology = load_topology(SIM)
    assert choices(GIVEN.get, topology).variables["PAUSE"] == "5"
    assert rerun_of(GIVEN.get, topology, "density").variables["PAUSE"] == "5"
    assert "PAUSE" not in rerun_of(GIVEN.get, topology, "outage").variables
