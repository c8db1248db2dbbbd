"""Specifications of a sizing: good ones load, and each kind of mistake is told in one sentence with its place."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.service.load import load_specifications
from resources.libraries.python.model.service.spec import SizingMode
from resources.libraries.python.model.service.workload import WorkloadSpec, needed

SPECS = Path(__file__).parents[3] / "characterization" / "specs"
CLEARWATER = SPECS / "clearwater"
DEPLOYMENT = (CLEARWATER / "deployment.json").read_text(encoding="utf-8")
WORKLOAD = (CLEARWATER / "workload.json").read_text(encoding="utf-8")


def files(folder: Path, deployment: str = DEPLOYMENT, workload: str = WORKLOAD) -> tuple[Path, Path]:
    """Both files in a folder, with scripts."""
    for name in ("install.sh", "reg-dereg.sh"):
        (folder / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    paths = folder / "deployment.json", folder / "workload.json"
    for path, text in zip(paths, (deployment, workload), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def said(folder: Path, deployment: str = DEPLOYMENT, workload: str = WORKLOAD) -> str:
    """The one sentence that is told of wrong specifications."""
    with pytest.raises(ConfigError) as caught:
        load_specifications(*files(folder, deployment, workload))
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(str(folder), "")


@pytest.mark.parametrize("workload", sorted(SPECS.rglob("*.json")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_shipped_specification_loads_with_its_scripts(workload: Path) -> None:
    if "generator" not in json.loads(workload.read_text(encoding="utf-8")):
        return
    for deployment in workload.parent.glob("*.json"):
        if "vnf_name" in json.loads(deployment.read_text(encoding="utf-8")):
            asked = load_specifications(deployment, workload)
            assert set(asked.install) == {row.name for row in asked.deployment.components}


def test_scripts_are_found_beside_the_file_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    asked = load_specifications(*files(tmp_path))
    assert asked.install["sprout"] == tmp_path / "install.sh"
    assert asked.generator == tmp_path / "reg-dereg.sh"
    assert asked.deployment.install == "install.sh"
    assert asked.deployment.mode is SizingMode.DIRECTED


def test_a_component_may_have_a_script_of_its_own(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace('"short": "sp"', '"short": "sp", "install": "sprout.sh"')
    assert said(tmp_path, text) == (
        f"/deployment.json: components.1.install: no script {tmp_path}/sprout.sh".replace(str(tmp_path), "")
    )
    (tmp_path / "sprout.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    assert "components.1.install: /sprout.sh is not executable; fix it by chmod +x" in said(tmp_path, text)


SIZES = '"mode": "custom", "sizes": [%s]'
ONE = '{"components": {"bono": {"flavor": "%s"}, "sprout": {"flavor": "%s"}, "homestead": {"flavor": "%s"}}}'


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('"mode": "directed"', '"mode": "direct"', r":16: mode: .*'directed'"),
        ('"watch"', '"wach"', r":18: wach: unknown key; did you mean 'watch'\?"),
        ('"install": "install.sh",', "", r"install: is missing"),
        ('"install.sh"', '"missing.sh"', r"^/deployment\.json: install: no script /missing\.sh"),
        ('"vcpus": 1,', '"vcpus": "1",', r":9: flavors\.small\.vcpus: a number is expected here, not the string '1'"),
        ('"vcpus": 1,', '"vcpus": NaN,', r"deployment\.json: not valid JSON: NaN is not a JSON number"),
        ('"vcpus": 1,', '"vcpus": 1, "vcpus": 2,', r":9: flavors\.small\.vcpus: duplicate key, first on line 9"),
        ('"vcpus": 1,', '"vcpus": 1', r"deployment\.json:9: not valid JSON: Expecting ',' delimiter"),
        ('"name": "sprout"', '"name": "bono"', r":5: components\.1\.name: 'bono' is components\.0, too"),
        ('"short": "sp"', '"short": "bn"', r":5: components\.1\.short: 'bn' is components\.0, too"),
        (
            '"sp", "flavors": ["small"',
            '"sp", "flavors": ["tiny"',
            r":5: components\.1\.flavors\.0: no flavor 'tiny'; choose from small, medium, large",
        ),
        (
            '"sp", "flavors": ["small", "medium"',
            '"sp", "flavors": ["medium", "small"',
            r":5: components\.1\.flavors\.1: 'small' \(1 vCPUs, 2048 MB\) comes after 'medium' \(2 vCPUs, 4096 MB\)",
        ),
        (
            '"vcpus": 6',
            '"vcpus": 3.5',
            r":4: components\.0\.flavors\.2: 'large' \(4 vCPUs, 8192 MB\) does not fit into the total of 3\.5 vCPUs",
        ),
        ('"vcpus": 6', '"vcpus": 6, "memory_mb": 8000', r"'large' .* does not fit into the total of 8000 MB"),
        ('"vcpus": 6', '"vcpus": 6, "memory_mb": 8192', None),
        (
            '"vcpus": 6}',
            '"vcpus": 6}, "fixed_vcpus": 2.5',
            r"'large' .* and 2\.5 for what is not sized does not fit into the total of 6 vCPU",
        ),
        ('"vcpus": 6}', '"vcpus": 5}, "fixed_vcpus": 1', None),
        (
            '"short": "sp"',
            '"short": "sp", "most_instances": 4',
            r":5: components\.1\.most_instances: 4, but scaling up adds no instances to the 1 at first; choose scaling "
            r"out or hybrid",
        ),
        (
            '"scaling": "up"',
            '"scaling": "out"',
            r":4: components\.0\.flavors: 3 flavors; with scaling out a component has one",
        ),
        (
            '"short": "sp"',
            '"short": "sp", "instances": 2, "most_instances": 1',
            r"most_instances: 1 is less than the initial 2",
        ),
        ('"short": "sp"', '"short": "sp", "instances": 2', None),
        (
            '"mode": "directed"',
            '"mode": "custom"',
            r"deployment\.json:1: no sizes are given; mode custom measures those of the file",
        ),
        (
            '"mode": "directed"',
            '"mode": "directed", "sizes": [' + ONE % (("small",) * 3) + "]",
            r":16: sizes: 1 sizes are given",
        ),
        (
            '"mode": "directed"',
            SIZES % '{"components": {"bono": {"flavor": "small"}}}',
            r":16: sizes\.0\.components: has no value for sprout, homestead",
        ),
        (
            '"mode": "directed"',
            SIZES % '{"components": {"ralf": {"flavor": "small"}}}',
            r":16: sizes\.0\.components\.ralf: no component 'ralf'; choose from bono, sprout, homestead",
        ),
        (
            '"mode": "directed"',
            SIZES % (ONE % ("small", "huge", "small")),
            r":16: sizes\.0\.components\.sprout\.flavor: 'huge' is not a flavor of sprout; choose from small,",
        ),
        (
            '"mode": "directed"',
            SIZES % (ONE % ("small", "large", "medium")),
            r":16: sizes\.0: needs 7 vCPUs, 6 available",
        ),
        (
            '"mode": "directed"',
            SIZES % ", ".join([ONE % (("small",) * 3)] * 2),
            r":16: sizes\.1: is the same as sizes\.0",
        ),
        ('"mode": "directed"', SIZES % ", ".join([ONE % (("small",) * 3)]), None),
    ],
)
def test_a_mistake_in_a_deployment_is_reported_with_its_place(
    tmp_path: Path, before: str, after: str, expected: str | None
) -> None:
    assert before in DEPLOYMENT
    text = DEPLOYMENT.replace(before, after, 1)
    if expected is None:
        load_specifications(*files(tmp_path, text))
    else:
        assert re.search(expected, said(tmp_path, text))


def test_a_smallest_size_that_does_not_fit_is_reported_with_the_numbers(tmp_path: Path) -> None:
    small = DEPLOYMENT.replace('["small", "medium", "large"]', '["medium"]').replace('"vcpus": 6', '"vcpus": 5')
    assert "resources: the smallest size needs 6 vCPUs, 5 available" in said(tmp_path, small)


def test_scaling_out_needs_something_to_scale(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace('["small", "medium", "large"]', '["small"]').replace('"up"', '"out"')
    assert "scaling: out, but no component has more most_instances than instances" in said(tmp_path, text)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('"max": 1100', '"max": 100', "range: the range goes up to 100, but starts at 200"),
        ('"increase": 50', '"increase": 0', "increase: 0 is not above 0"),
        (
            '"increase": 50',
            '"increase": 1000',
            "increase: 1000 is more than the range's 900: one load would be offered",
        ),
        ('"increase": 50', '"increase": 0.01', "increase: 0.01 makes 90000 loads; at most 10000"),
        ('"below": 0.8', '"below": 0.95', "stop.below: 0.95 is above the threshold 0.8: sizes would stop while"),
        (
            '"thresholds": [0.8]',
            '"thresholds": [0.95, 0.7]',
            "stop.below: 0.8 is above the threshold 0.7: sizes would stop while",
        ),
        ('"thresholds": [0.8]', '"thresholds": [1.1]', "thresholds.0: 1.1 is above the maximum of 1"),
        ('"repeat": 10', '"repeat": 0', "repeat: 0 is below the minimum of 1"),
        ('"repeat": 10', '"repeat": 1.5', "repeat: a whole number is expected here, not the number 1.5"),
        ('"unit"', '"workload": 1101, "unit"', "workload: 1101 calls/s is above the highest load, 1100"),
        ("reg-dereg.sh", "none.sh", "/workload.json: generator: no script /none.sh"),
        ("reg-dereg.sh", ".", "/workload.json: generator: no script "),
        ("{", "[", "not valid JSON"),
        (WORKLOAD, "3", "workload.json:1: an object is expected here, not "),
        ('"calls/s"', '"calls\x7f"', "workload.json: cannot be read: unacceptable character #x007f"),
    ],
)
def test_a_mistake_in_a_workload_is_reported_with_its_place(
    tmp_path: Path, before: str, after: str, expected: str
) -> None:
    assert before in WORKLOAD
    assert expected in said(tmp_path, workload=WORKLOAD.replace(before, after))


def test_tabs_are_as_good_as_blanks_and_mistakes_behind_them_keep_their_lines(tmp_path: Path) -> None:
    load_specifications(*files(tmp_path, workload=WORKLOAD.replace("  ", "\t")))
    wrong = WORKLOAD.replace("  ", "\t").replace('"repeat"', '"repeats"')
    assert "workload.json:4: repeats: unknown key; did you mean 'repeat'?" in said(tmp_path, workload=wrong)


def test_loads_go_up_in_steps_to_the_highest_that_is_in_the_range() -> None:
    def loads(**row: Any) -> tuple[float, ...]:
        return WorkloadSpec(generator="g", **row).loads()

    assert loads(range={"min": 200, "max": 310}, increase=50) == (200, 250, 300)
    assert loads(range={"min": 0.1, "max": 0.3}, increase=0.1) == pytest.approx((0.1, 0.2, 0.3))
    assert loads(range={"min": 5, "max": 5}, increase=50) == (5,)


OPTIONS = {"mode": {"values": ["ids", "ips"], "needs": {"ips": ["ethtool"]}}, "workers": {"values": ["1", "2"]}}


def with_options(text: str, options: object) -> str:
    return json.dumps({**json.loads(text), "options": options})


def test_options_have_the_first_value_until_one_is_chosen(tmp_path: Path) -> None:
    paths = files(
        tmp_path, with_options(DEPLOYMENT, OPTIONS), with_options(WORKLOAD, {"calls": {"values": ["a", "b"]}})
    )
    assert load_specifications(*paths).options == {
        "CSIT_OPTION_MODE": "ids",
        "CSIT_OPTION_WORKERS": "1",
        "CSIT_OPTION_CALLS": "a",
    }
    asked = load_specifications(*paths, {"mode": "ips", "calls": "b"})
    assert asked.options == {"CSIT_OPTION_MODE": "ips", "CSIT_OPTION_WORKERS": "1", "CSIT_OPTION_CALLS": "b"}
    # The choice is a part of the specification, and so of the record and of a journal's key.
    assert asked.deployment.options["mode"].value == "ips"
    assert needed(asked.deployment.options) == ("ethtool",)
    assert needed(load_specifications(*paths).deployment.options) == ()


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"mode": "tap"}, "/deployment.json: options.mode: 'tap' is not one of ids, ips"),
        ({"calls": "c"}, "/workload.json: options.calls: 'c' is not one of a, b"),
        ({"speed": "9"}, "unknown option 'speed'; /deployment.json and /workload.json have mode, workers, calls"),
    ],
)
def test_invalid_options_and_values_are_reported(tmp_path: Path, chosen: dict[str, str], message: str) -> None:
    paths = files(
        tmp_path, with_options(DEPLOYMENT, OPTIONS), with_options(WORKLOAD, {"calls": {"values": ["a", "b"]}})
    )
    with pytest.raises(ConfigError) as caught:
        load_specifications(*paths, chosen)
    assert str(caught.value).replace(str(tmp_path), "") == message


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"mode": {"values": []}}, "options.mode.values: "),
        ({"mode": {"values": ["a b"]}}, "options.mode.values.0: "),
        ({"mode": {"values": ["a"], "value": "b"}}, "options.mode.value: 'b' is not one of a"),
        ({"mode": {"values": ["a"], "needs": {"b": ["x"]}}}, "options.mode.needs: 'b' is not one of a"),
        ({"Mode": {"values": ["a"]}}, "options.Mode"),
    ],
)
def test_wrong_options_are_reported_with_their_place(tmp_path: Path, options: object, place: str) -> None:
    assert place in said(tmp_path, with_options(DEPLOYMENT, options))


@pytest.mark.parametrize("name", ["a-b", "a_b"])
def test_options_of_both_files_that_are_the_same_variable_are_refused(tmp_path: Path, name: str) -> None:
    options = {"values": ["1"]}
    text = said(tmp_path, with_options(DEPLOYMENT, {"a-b": options}), with_options(WORKLOAD, {name: options}))
    assert text == (
        f"/workload.json: options: '{name}' and 'a-b' of /deployment.json are the same variable CSIT_OPTION_A_B"
    )
