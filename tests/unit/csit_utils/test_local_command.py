"""Wrong options of `./csit local`: one sentence, before anything is opened."""

import pytest

from csit_utils.cli import make_app
from csit_utils.commands.runs import local as module
from csit_utils.night import OPENING_S
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import ServiceType, TestType
from resources.libraries.python.model.testbed.topology import World
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
    refusals = {"local-vpp": "^local needs root to make network namespaces; as another user: ", "sim": "nix"}
    for topology, sentence in refusals.items():  # the simulated testbed needs none
        words = ["local", "--topology", str(PROJECT / "topologies" / f"{topology}.yaml"), "--types", "nix"]
        with pytest.raises(ConfigError, match=sentence):
            make_app(["local"])(words, standalone_mode=False)
