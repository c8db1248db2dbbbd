"""Wrong options of `./csit local`: one sentence, before anything is opened."""

from pathlib import Path
from typing import NoReturn

import pytest

from csit_utils.cli import make_app
from csit_utils.commands.runs import local as module
from csit_utils.night import OPENING_S
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import ServiceType, TestType
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.paths import LOCAL_TOPOLOGY, PROJECT
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.extras import Extras
from resources.libraries.python.studies.density.planning.extras import test_s as planned_test_s


def test_all_texts_say_how_long_the_default_matrix_is_planned_to_take() -> None:
    topology = load_topology(LOCAL_TOPOLOGY)
    cells = parse_selection(service_types="CSC,CSP,VSC", cells=module.CELLS, nf_sizes="1c").cells()
    chosen = [each for each in cells if each.service_type is not ServiceType.VSC or each.locator == "1R1C"]
    planned_s = sum(planned_test_s(topology, cell, QUICK, TestType.NDRPDR, Extras()) for cell in chosen)
    assert round((OPENING_S[World.LOCAL] + planned_s) / 60) == 6
    for path in ("README.md", "docs/how-to/run-on-a-laptop.md"):
        assert "six minutes" in (PROJECT / path).read_text(encoding="utf-8")
    assert "six minutes" in " ".join((module.local.__doc__ or "").split())


def test_without_root_this_machine_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    topology = str(PROJECT / "topologies" / "local-vpp.yaml")
    with pytest.raises(ConfigError, match=r"^local needs root to make network namespaces; as another user: "):
        make_app(["local"])(["local", "--topology", topology, "--types", "nix"], standalone_mode=False)
    with pytest.raises(ConfigError, match="nix"):  # the simulated testbed needs none
        make_app(["local"])(
            ["local", "--topology", str(PROJECT / "topologies" / "sim.yaml"), "--types", "nix"], standalone_mode=False
        )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--cold", "--priors", "nix"], "--cold starts no search from earlier results; leave out --priors nix"),
        (["--priors", "nix"], "nix: no such folder of earlier results"),
    ],
)
def test_earlier_results_that_cannot_be_used_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], sentence: str
) -> None:
    def opened(_: Topology) -> NoReturn:
        raise AssertionError("the machine was opened")

    monkeypatch.setattr(module, "_try_to_open", opened)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(ConfigError) as refused:
        make_app(["local"])(["local", "--output", str(tmp_path / "run"), *options], standalone_mode=False)
    assert str(refused.value) == sentence
    assert not list(tmp_path.iterdir())
