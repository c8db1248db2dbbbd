"""Robot variables of the suites: what each may be, and where it is found without further edits."""

from types import SimpleNamespace

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.variables import (
    AT_RATE,
    BACK_TO_BACK,
    CELLS,
    ENERGY,
    LOSSES,
    NOISE_FLOOR,
    PREDICT,
    SET,
    STACKS,
    STOP_LOSS,
    SWEEP_WIDTH,
    VARIABLES,
    Variable,
    texts,
)

EDGES = [
    (LOSSES, {"": None, "0.1": 0.1, "60": 60.0}, ["0", "61", "nan", "inf", "-1", "on"]),
    (ENERGY, {"": None, "1": 1.0, "600": 600.0}, ["0.5", "601", "nan"]),
    (STACKS, {"": None, "1": 1.0, "600": 600.0}, ["0.5", "601", "1h"]),
    (BACK_TO_BACK, {"": None, "1": 1, "1000": 1000}, ["0", "1001", "1.5", "many", "9" * 5000, "٣"]),
    (AT_RATE, {"": None, "0.5": 0.5, "1e9": 1e9}, ["0", "-1", "2e9", "fast"]),
    (NOISE_FLOOR, {"": 0.9, "0": 0.0, "0.1": 0.1, "10": 10.0}, ["0.05", "11", "nan", "-1", "long"]),
    (PREDICT, {"": True, "on": True, "off": False}, ["maybe"]),
    (STOP_LOSS, {"": None, "0": 0.0, "0.5": 0.5}, ["1", "20 %", "-0.1"]),
    (SWEEP_WIDTH, {"": 0.02, "0.5": 0.005, "off": None}, ["0", "narrow", "nan", "101"]),
    (SET, {"": {}, "a=1; b.0.c=[x, y=2];": {"a": "1", "b.0.c": "[x, y=2]"}}, ["a", "=1", "a=1;b"]),
]


@pytest.mark.parametrize(("variable", "right", "wrong"), EDGES, ids=lambda each: getattr(each, "name", ""))
def test_a_variable_has_its_values_and_no_others(
    variable: Variable[object], right: dict[str, object], wrong: list[str]
) -> None:
    assert {text: variable.of({variable.name: text}.get) for text in right} == right
    for text in wrong:
        with pytest.raises(ConfigError, match=f"^{variable.name} '.*': expected [^\n]*$"):
            variable.of({variable.name: text}.get)


def test_a_list_of_settings_is_as_one_text() -> None:
    assert SET.of({"SET": ["share=0.5", "frame=64B"]}.get) == {"share": "0.5", "frame": "64B"}


def test_tags_to_include_imply_values_unless_they_are_given() -> None:
    included = {"OPTIONS": SimpleNamespace(include=["2R1CAND4CANDIMIX"])}
    assert texts(included.get, "density").items() >= {"CELLS": "2x1", "VSWITCH": "4", "FRAMES": "IMIX"}.items()
    assert CELLS.text({**included, "CELLS": "1x1"}.get) == "1x1"


def test_records_have_what_a_study_reads_and_no_place_of_a_run() -> None:
    given = {"TOPOLOGY": "a.yaml", "RESUME": "b", "LOSSES": "1", "STOP_LOSS": "0.5", "NIC_MODEL": "c"}
    assert texts(given.get, "outage") == {"NIC_MODEL": "c"}
    assert texts(given.get).items() >= {"LOSSES": "1", "STOP_LOSS": "0.5"}.items()
    assert not {"TOPOLOGY", "RESUME"} & texts(given.get).keys()


def test_the_default_of_each_variable_is_one_of_its_values() -> None:
    for variable in VARIABLES.values():
        variable.of({}.get)
