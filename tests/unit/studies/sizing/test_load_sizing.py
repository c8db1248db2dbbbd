"""Specifications of a sizing: good ones load, and each kind of mistake is one sentence with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.service.load import load_specifications
from resources.libraries.python.model.service.spec import SizingMode
from resources.libraries.python.model.service.workload import needed
from tests.builders import shell_program
from tests.unit.studies.sizing.sizing_runs import SPECS, workload

DEPLOYMENT, WORKLOAD = ((SPECS / f"clearwater/{name}.json").read_text("utf-8") for name in ("deployment", "workload"))


def files(folder: Path, deployment: str = DEPLOYMENT, workload: str = WORKLOAD) -> tuple[Path, Path]:
    for name in ("install.sh", "reg-dereg.sh"):
        shell_program(folder / name, "")
    paths = folder / "deployment.json", folder / "workload.json"
    for path, text in zip(paths, (deployment, workload), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def said(folder: Path, deployment: str = DEPLOYMENT, workload: str = WORKLOAD, **chosen: str) -> str:
    """The one sentence that refuses wrong specifications; empty where they are right."""
    try:
        load_specifications(*files(folder, deployment, workload), chosen)
    except ConfigError as error:
        assert "\n" not in str(error)
        return str(error).replace(str(folder), "")
    return ""


@pytest.mark.parametrize("path", sorted(SPECS.rglob("*.json")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_shipped_specification_loads_with_its_scripts(path: Path) -> None:
    if "generator" not in json.loads(path.read_text(encoding="utf-8")):
        return
    for deployment in path.parent.glob("*.json"):
        if "vnf_name" in json.loads(deployment.read_text(encoding="utf-8")):
            asked = load_specifications(deployment, path)
            assert set(asked.install) == {row.name for row in asked.deployment.components}


def test_scripts_are_found_beside_the_file_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    asked = load_specifications(*files(tmp_path))
    assert (asked.install["sprout"], asked.generator) == (tmp_path / "install.sh", tmp_path / "reg-dereg.sh")
    assert (asked.deployment.install, asked.deployment.mode) == ("install.sh", SizingMode.DIRECTED)


def test_a_component_may_have_a_script_of_its_own(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace('"short": "sp"', '"short": "sp", "install": "sprout.sh"')
    assert said(tmp_path, text) == "/deployment.json: components.1.install: no script /sprout.sh"
    (tmp_path / "sprout.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    assert "components.1.install: /sprout.sh is not executable; fix it by chmod +x" in said(tmp_path, text)


def sizes(*sizes: str, mode: str = "custom") -> str:
    """Sizes by the flavors of bono, sprout and homestead."""
    names = ("bono", "sprout", "homestead")
    rows = [dict(zip(names, ({"flavor": word} for word in size.split()), strict=False)) for size in sizes]
    return f'"mode": "{mode}", "sizes": {json.dumps([{"components": row} for row in rows])}'


SHORT, MODE, VCPUS = '"short": "sp"', '"mode": "directed"', '"vcpus": 6'


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('"watch"', '"wach"', ":18: wach: unknown key; did you mean 'watch'?"),
        ('"install.sh"', '"missing.sh"', "/deployment.json: install: no script /missing.sh"),
        ('"vcpus": 1,', '"vcpus": "1",', ":9: flavors.small.vcpus: "),
        ('"vcpus": 1,', '"vcpus": 1', "deployment.json:9: not valid JSON"),
        ('"vcpus": 1,', '"vcpus": NaN,', "not valid JSON: NaN "),
        ('"name": "sprout"', '"name": "bono"', ":5: components.1.name: 'bono' is components.0, too"),
        (SHORT, '"short": "bn"', ":5: components.1.short: 'bn' is components.0, too"),
        (f'{SHORT}, "flavors": ["small"', f'{SHORT}, "flavors": ["tiny"', ":5: components.1.flavors.0: no flavor"),
        (f'{SHORT}, "flavors": ["small", "m', f'{SHORT}, "flavors": ["large", "m', ":5: components.1.flavors.1: 'medi"),
        (VCPUS, '"vcpus": 3.5', ":4: components.0.flavors.2: 'large' (4 vCPUs, 8192 MB) does not fit into the total"),
        (VCPUS, f'{VCPUS}, "memory_mb": 8000', "8192 MB) does not fit into the total of 8000 MB"),
        (VCPUS + "}", VCPUS + '}, "fixed_vcpus": 2.5', "and 2.5 for what is not sized does not fit into the total"),
        (VCPUS + "}", '"vcpus": 5, "memory_mb": 8192}, "fixed_vcpus": 1', ""),
        (SHORT, f'{SHORT}, "most_instances": 4', ":5: components.1.most_instances: 4, but scaling up"),
        ('"scaling": "up"', '"scaling": "out"', ":4: components.0.flavors: 3 flavors; with scaling out"),
        (SHORT, f'{SHORT}, "instances": 2, "most_instances": 1', "most_instances: 1 is less than the initial 2"),
        (SHORT, f'{SHORT}, "instances": 2', ""),
        (MODE, '"mode": "custom"', "deployment.json:1: no sizes are given"),
        (MODE, sizes("small small small", mode="directed"), ":16: sizes: 1 sizes are given"),
        (MODE, sizes("small"), ":16: sizes.0.components: has no value for sprout, homestead"),
        (MODE, sizes("small").replace("bono", "ralf"), ":16: sizes.0.components.ralf: no component 'ralf'"),
        (MODE, sizes("small huge small"), ":16: sizes.0.components.sprout.flavor: 'huge' is not a flavor of sprout"),
        (MODE, sizes("small large medium"), ":16: sizes.0: needs 7 vCPUs, 6 available"),
        (MODE, sizes("small small small", "small small small"), ":16: sizes.1: is the same as sizes.0"),
        (MODE, sizes("small small small"), ""),
    ],
)
def test_a_mistake_in_a_deployment_is_reported_with_its_place(
    tmp_path: Path, before: str, after: str, expected: str
) -> None:
    assert before in DEPLOYMENT
    found = said(tmp_path, DEPLOYMENT.replace(before, after, 1))
    assert expected in found if expected else found == ""


@pytest.mark.parametrize(
    ("flavor", "before", "after", "expected"),
    [
        ("medium", VCPUS, '"vcpus": 5', "resources: the smallest size needs 6 vCPUs, 5 available"),
        ("small", '"up"', '"out"', "scaling: out, but no component has more most_instances than instances"),
    ],
)
def test_components_of_one_flavor_that_do_not_fit_or_cannot_grow_are_refused(
    tmp_path: Path, flavor: str, before: str, after: str, expected: str
) -> None:
    one = DEPLOYMENT.replace('["small", "medium", "large"]', f'["{flavor}"]').replace(before, after)
    assert expected in said(tmp_path, one)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('"max": 1100', '"max": 100', "range: the range goes up to 100, but starts at 200"),
        ('"increase": 50', '"increase": 1000', "increase: 1000 is more than the range's 900"),
        ('"increase": 50', '"increase": 0.01', "increase: 0.01 makes 90000 loads; at most 10000"),
        ('"thresholds": [0.8]', '"thresholds": [0.95, 0.7]', "stop.below: 0.8 is above the threshold 0.7"),
        ('"thresholds": [0.8]', '"thresholds": [1.1]', "thresholds.0: 1.1 "),
        ('"unit"', '"workload": 1101, "unit"', "workload: 1101 calls/s is above the highest load, 1100"),
        ("reg-dereg.sh", ".", "/workload.json: generator: no script "),
        (WORKLOAD, "3", "workload.json:1: an object is expected here"),
        ('"calls/s"', '"calls\x7f"', "workload.json: cannot be read: unacceptable character #x007f"),
        ("  ", "\t", ""),
        ('  "repeat"', '\t"repeats"', "workload.json:4: repeats: unknown key; did you mean 'repeat'?"),
    ],
)
def test_a_mistake_in_a_workload_is_reported_with_its_place(
    tmp_path: Path, before: str, after: str, expected: str
) -> None:
    assert before in WORKLOAD
    found = said(tmp_path, workload=WORKLOAD.replace(before, after))
    assert expected in found if expected else found == ""


@pytest.mark.parametrize(
    ("lowest", "highest", "increase", "loads"),
    [(200, 310, 50, (200, 250, 300)), (0.1, 0.3, 0.1, (0.1, 0.2, 0.3)), (5, 5, 50, (5,))],
)
def test_loads_go_up_in_steps_to_the_highest_that_is_in_the_range(
    lowest: float, highest: float, increase: float, loads: tuple[float, ...]
) -> None:
    assert workload(lowest, highest, increase).loads() == pytest.approx(loads)


OPTIONS = {"mode": {"values": ["ids", "ips"], "needs": {"ips": ["ethtool"]}}, "workers": {"values": ["1", "2"]}}


def with_options(text: str, **options: Any) -> str:
    return json.dumps({**json.loads(text), "options": options})


BOTH = with_options(DEPLOYMENT, **OPTIONS), with_options(WORKLOAD, calls={"values": ["a", "b"]})


def test_options_have_the_first_value_until_one_is_chosen(tmp_path: Path) -> None:
    paths = files(tmp_path, *BOTH)
    first = load_specifications(*paths)
    assert first.options == {"CSIT_OPTION_MODE": "ids", "CSIT_OPTION_WORKERS": "1", "CSIT_OPTION_CALLS": "a"}
    asked = load_specifications(*paths, {"mode": "ips", "calls": "b"})
    assert asked.options == {"CSIT_OPTION_MODE": "ips", "CSIT_OPTION_WORKERS": "1", "CSIT_OPTION_CALLS": "b"}
    # The choice is a part of the specification, and so of the record and of a journal's key.
    assert asked.deployment.options["mode"].value == "ips"
    assert (needed(asked.deployment.options), needed(first.deployment.options)) == (("ethtool",), ())


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"mode": "tap"}, "/deployment.json: options.mode: 'tap' is not one of ids, ips"),
        ({"calls": "c"}, "/workload.json: options.calls: 'c' is not one of a, b"),
        ({"speed": "9"}, "unknown option 'speed'; /deployment.json and /workload.json have mode, workers, calls"),
    ],
)
def test_invalid_options_and_values_are_reported(tmp_path: Path, chosen: dict[str, str], message: str) -> None:
    assert said(tmp_path, *BOTH, **chosen) == message


@pytest.mark.parametrize(
    ("name", "option", "place"),
    [
        ("mode", {"values": ["a b"]}, "options.mode.values.0: "),
        ("mode", {"values": ["a"], "value": "b"}, "options.mode.value: 'b' is not one of a"),
        ("mode", {"values": ["a"], "needs": {"b": ["x"]}}, "options.mode.needs: 'b' is not one of a"),
        ("Mode", {"values": ["a"]}, "options.Mode"),
    ],
)
def test_wrong_options_are_reported_with_their_place(tmp_path: Path, name: str, option: object, place: str) -> None:
    assert place in said(tmp_path, with_options(DEPLOYMENT, **{name: option}))


@pytest.mark.parametrize("name", ["a-b", "a_b"])
def test_options_of_both_files_that_are_the_same_variable_are_refused(tmp_path: Path, name: str) -> None:
    option = {"values": ["1"]}
    text = said(tmp_path, with_options(DEPLOYMENT, **{"a-b": option}), with_options(WORKLOAD, **{name: option}))
    assert text.startswith(f"/workload.json: options: '{name}' and 'a-b'") and "CSIT_OPTION_A_B" in text
