"""Differences between two environments."""

from pathlib import Path

from csit_utils.analysis.comparisons.differences import Difference, environment_differences
from tests.unit.csit_utils.builders import ENVIRONMENT

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
    assert [each.path for each in found] == [
        "kernel",
        f"settings.{spectre}",
        f"settings.{governor}",
        "versions.VPP",
        "git_dirty",
        "hostname",
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
