"""Qualifications that are kept between runs."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.bounds import LARGEST_INPUT_BYTES
from resources.libraries.python.recording.qualifications import key_of, store, stored
from tests.builders import NOWHERE, SIM, qualification, qualified_point, shipped

HERE = NOWHERE.model_copy(update={"hostname": "dut", "cpu_model": "c", "kernel": "k"})


def test_one_is_found_by_its_key(tmp_path: Path) -> None:
    made = qualification(qualified_point())
    assert stored(made.key, tmp_path / "none") is None
    path = store(made, tmp_path / "new")
    assert stored(made.key, tmp_path / "new") == made and path.parent == tmp_path / "new"
    for changed in ({"generator": "x"}, {"version": "x"}, {"nic": "x"}, {"machine": "x"}, {"kernel": "x"}, {"cpus": 2}):
        assert stored(made.key.model_copy(update=changed), path.parent) is None
    again = made.model_copy(update={"points": ()})
    store(again, path.parent)
    assert stored(made.key, path.parent) == again, "the latest one"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[:100], "not valid JSON"),
        (lambda text: text.replace('"trial_s": 0.2', '"trial_s": -1'), "-1 is not above 0"),
        (lambda text: text.replace('"notes"', '"unknown"'), "unknown key"),
        (lambda text: text + " " * LARGEST_INPUT_BYTES, f"more than {LARGEST_INPUT_BYTES} bytes"),
    ],
)
def test_a_damaged_file_is_as_none_and_is_logged(
    damage: Callable[[str], str], said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = qualification(qualified_point())
    path = store(made, tmp_path)
    path.write_text(damage(path.read_text()))
    with caplog.at_level(logging.WARNING):
        assert stored(made.key, tmp_path) is None
    assert str(path) in caplog.text and said in caplog.text and "qualified anew" in caplog.text


def test_a_file_of_another_key_is_not_taken_and_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    made = qualification(qualified_point())
    path = store(made, tmp_path)
    said = json.loads(path.read_text())
    said["key"]["kernel"] = "other"
    path.write_text(json.dumps(said))
    assert stored(made.key, tmp_path) is None
    with pytest.raises(CsitError, match="cannot be written"):
        store(made, path)


def test_the_machine_of_a_key_is_that_of_the_generator() -> None:
    lab = shipped("available/lab-2n-kernel")
    nodes = {lab.tg_name: HERE.model_copy(update={"hostname": "tg"})}
    assert key_of(lab, HERE.model_copy(update={"nodes": nodes}), "veth").machine == "tg, c"
    local = key_of(shipped("local"), HERE, "veth")
    assert (local.generator, local.nic, local.machine) == ("auto", "veth", "dut, c")
    assert local.version.startswith("sources ")
    assert key_of(SIM, HERE, "veth").nic == "simulated"
