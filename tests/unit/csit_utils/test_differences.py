"""Differences between two environments."""

import json
from pathlib import Path

from typer.testing import CliRunner

from csit_utils.analysis.comparisons.differences import Difference, environment_differences
from csit_utils.cli import make_app
from resources.libraries.python.model.request.cell import ServiceType
from tests.unit.csit_utils.builders import ENVIRONMENT, PDR, goal_result, result
from tests.unit.csit_utils.robot_output import write_output_xml

ROOT = Path(__file__).parents[3]


def test_equal_ones_differ_in_nothing() -> None:
    assert environment_differences(ENVIRONMENT, ENVIRONMENT) == ()


def test_what_matters_most_comes_first_and_names_of_machines_last() -> None:
    governor = "governors"
    spectre = "mitigation of spectre_v2"
    a = ENVIRONMENT.model_copy(update={"settings": {governor: "performance", spectre: "Mitigation: IBRS"}})
    b = a.model_copy(
        update={
            "hostname": "other",
            "kernel": "6.19.0",
            "settings": {governor: "powersave", spectre: "Vulnerable"},
            "versions": {**a.versions, "VPP": "26.10"},
            "git_dirty": False,
        }
    )
    found = environment_differences(a, b)
    assert [(each.path, bool(each.effect)) for each in found] == [
        (f"settings.{governor}", True),
        (f"settings.{spectre}", True),
        ("kernel", True),
        ("versions.VPP", True),
        ("git_dirty", False),
        ("hostname", False),
    ]
    assert found[3] == Difference("versions.VPP", None, "26.10")


def test_of_command_lines_only_differing_words_are_shown() -> None:
    b = ENVIRONMENT.model_copy(update={"command_line": f"{ENVIRONMENT.command_line} mitigations=off"})
    assert environment_differences(ENVIRONMENT, b) == (Difference("command_line", None, "mitigations=off"),)


def test_nodes_of_a_lab_are_looked_into() -> None:
    a = ENVIRONMENT.model_copy(update={"nodes": {"TG": ENVIRONMENT}})
    b = ENVIRONMENT.model_copy(update={"nodes": {"TG": ENVIRONMENT.model_copy(update={"microcode": "0x1"})}})
    assert environment_differences(a, b) == (Difference("nodes.TG.microcode", ENVIRONMENT.microcode, "0x1"),)


def test_the_controller_comes_before_the_nodes_of_a_lab() -> None:
    newer = ENVIRONMENT.model_copy(update={"versions": {**ENVIRONMENT.versions, "VPP": "26.10"}})
    a = ENVIRONMENT.model_copy(update={"nodes": {"TG": ENVIRONMENT}})
    found = environment_differences(a, newer.model_copy(update={"nodes": {"TG": newer}}))
    assert [each.path for each in found] == ["versions.VPP", "nodes.TG.versions.VPP"]


def test_compare_lists_what_differs_between_the_machines_beside_a_figure_that_does(tmp_path: Path) -> None:
    tuned, other = (
        ENVIRONMENT.model_copy(update={"settings": {"governors": word}, "hostname": word})
        for word in ("performance", "powersave")
    )
    before = result(ServiceType.CSC, 2, 1, environment=tuned)
    after = result(ServiceType.CSC, 2, 1, environment=other, pdr=goal_result(PDR, before.pdr.lower_pps / 2))
    a, b = (str(write_output_xml(tmp_path / f"{each.environment.hostname}.xml", [each])) for each in (before, after))
    done = CliRunner().invoke(make_app(["compare"]), ["compare", a, b, "--format", "json"], catch_exceptions=False)
    remarks = {row["metric"]: row["remarks"] for row in map(json.loads, done.stdout.splitlines())}
    assert "settings.governors: performance, B powersave" in remarks["PDR"]
    assert not any("governors" in text for text in remarks["NDR"]), "it is the same on both sides"
    assert not any("hostname" in text for text in remarks["PDR"]), "a name changes no rate"
