"""Files of a sizing: tables read back, Heat templates are whole."""

import base64
import csv
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.libraries.python.csv_tables import csv_text
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.service.load import Specifications, load_specifications
from resources.libraries.python.model.service.spec import Capacity, MeasuredSize, Offered, Share, Size, Sizing
from resources.libraries.python.studies.sizing.analysis import TraceFiles, TraceRow, sizing_rows
from resources.libraries.python.studies.sizing.planning.heat_templates import heat_template
from tests.builders import shell_program
from tests.unit.studies.sizing.sizing_runs import SPECS, service, workload


def sized(name: str, **row: Any) -> MeasuredSize:
    offered = [Offered(load=200, indicators=(200, 198), mean=199, stdev=1.4)]
    offered.append(Offered(load=250, indicators=(200,), mean=200, stdev=None))
    common = {"size": service().smallest(), "vcpus": 3, "memory_mb": 6144, "capacity": 200, "bottleneck": "sprout"}
    return MeasuredSize.model_validate({"name": name, "offered": offered, **common, **row})


def table(*sizes: MeasuredSize) -> list[dict[str, str]]:
    ended: dict[str, Any] = {"steps": (), "best": None, "stopped": "all measured", "planned": None}
    asked = workload(200, 400, 50, thresholds=(0.8, 0.9))
    found = Sizing(deployment=service(), workload=asked, sizes=sizes, **ended)
    return list(csv.DictReader(csv_text(sizing_rows(found)).splitlines()))


def test_the_table_of_a_sizing_has_a_row_per_load_and_one_for_a_size_without() -> None:
    rows = table(sized("a"), sized("bad", failed="no, never", offered=(), capacity=None, bottleneck=None))
    assert [row["load"] for row in rows] == ["200.0", "250.0", ""]
    assert {name: text for name, text in rows[0].items() if text} == {
        "size": "a", "vcpus": "3.0", "memory_mb": "6144", "load": "200.0", "indicator_mean": "199.0",
        "indicator_stdev": "1.4", "ratio": "0.995", "capacity": "200.0", "capacity_is_at_least": "0",
        "bottleneck": "sprout",
    }  # fmt: skip
    assert (rows[1]["indicator_stdev"], rows[2]["failed"]) == ("", "no, never")


def test_capacities_at_other_thresholds_and_figures_are_columns() -> None:
    at = (
        Capacity(threshold=0.9, carried=200, estimate=212, low=205, high=220),
        Capacity(threshold=0.8, carried=250, estimate=None, low=None, high=None),
    )
    figures = (Offered(load=200, indicators=(200,), mean=200, stdev=None, figures={"detected": 0.98}),)
    first, *_, other = table(sized("a", capacities=at, near_limit=True, offered=figures), sized("b"))
    assert [first[f"capacity_{key}"] for key in ("estimate", "low", "high")] == ["212.0", "205.0", "220.0"]
    assert (first["near_limit"], first["capacity_at_0.8"], first["capacity_at_0.8_estimate"]) == ("1", "250.0", "")
    assert other["capacity_at_0.8"] == "", "without this threshold"
    assert (first["figure_detected"], other["figure_detected"]) == ("0.98", "")


def test_traces_grow_while_a_size_is_measured_and_replace_those_of_an_earlier_run(tmp_path: Path) -> None:
    row = TraceRow(1.0, 98.5, 1024, None, 200.0, 1)
    for _ in range(2):
        files = TraceFiles(tmp_path / "traces")
        files.add("a", "sprout-1", [row])
        files.add("a", "sprout-1", [row, row])
    head, *rows = (tmp_path / "traces" / "a" / "sprout-1.csv").read_text(encoding="utf-8").splitlines()
    assert head == "time_s,cpu_percent,memory_bytes,network_bps,load,repetition"
    assert rows == ["1.0,98.5,1024,,200.0,1"] * 3


def clearwater(**servers: Any) -> Specifications:
    folder = SPECS / "clearwater"
    asked = load_specifications(folder / "scaling.json", folder / "workload.json")
    there = asked.deployment.servers.model_copy(update=servers)
    return replace(asked, deployment=asked.deployment.model_copy(update={"servers": there}))


def hot_of(asked: Specifications, index: int) -> Any:
    return yaml.safe_load(heat_template(asked, asked.deployment.sizes[index]))


def references(node: object) -> Iterator[tuple[str, str]]:
    """All `get_resource`, `get_attr` and `get_param` of a template, with what they name."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(node, (dict, list)):
        items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        if key in ("get_resource", "get_attr", "get_param"):
            yield key, value[0] if isinstance(value, list) else value
        yield from references(value)


@pytest.mark.parametrize("index", range(6))
@pytest.mark.parametrize("pinning", [False, True])
def test_a_heat_template_names_only_what_it_has(index: int, pinning: bool) -> None:
    asked = clearwater(core_pinning=pinning)
    hot = hot_of(asked, index)
    assert str(hot["heat_template_version"]) == "2018-08-31"
    assert set(hot) == {"heat_template_version", "description", "parameters", "resources", "outputs"}
    named = list(references(hot))
    assert {name for kind, name in named if kind == "get_param"} == set(hot["parameters"])
    assert {name for kind, name in named if kind != "get_param"} <= set(hot["resources"])
    kinds = [row["type"] for row in hot["resources"].values()]
    instances = sum(share.instances for share in asked.deployment.sizes[index].components.values())
    assert kinds.count("OS::Nova::Server") == kinds.count("OS::Neutron::Port") == len(hot["outputs"]) == instances
    assert kinds.count("OS::Nova::ServerGroup") == 1
    assert ("OS::Nova::Flavor" in kinds) is pinning


def test_a_heat_template_has_the_variables_of_a_local_instance() -> None:
    asked = clearwater()
    hot = hot_of(asked, 3)
    assert hot["resources"]["flavor_small"]["properties"]["extra_specs"] == {"hw:cpu_policy": "dedicated"}
    server = hot["resources"]["sprout-2"]["properties"]
    assert server["flavor"] == {"get_resource": "flavor_small"}
    told = server["user_data"]["str_replace"]
    for name, attribute in told["params"].items():
        assert attribute == {"get_attr": [f"{name.strip('@')}-port", "fixed_ips", 0, "ip_address"]}
    config = yaml.safe_load(told["template"])
    scripts = {row["path"]: row for row in config["write_files"]}
    script = scripts["/opt/clearwater/install.sh"]
    assert base64.b64decode(script["content"]) == asked.install["sprout"].read_bytes()
    assert script["permissions"] == "0755"
    assert not [path for path in scripts if path.endswith(".json")]
    words = config["runcmd"][-1]
    assert words[-1] == "/opt/clearwater/install.sh"
    assert {"CSIT_COMPONENT=sprout", "CSIT_INSTANCE=2", "CSIT_ADDRESS=@sprout-2@", "CSIT_MEMORY_MB=2048"} <= set(words)
    assert "CSIT_ADDRESSES_SPROUT=@sprout-1@ @sprout-2@" in words


@pytest.mark.parametrize(("count", "policy"), [(1, "affinity"), (3, "anti-affinity"), (2, "soft-anti-affinity")])
def test_hosts_are_shared_as_the_specification_says(count: int, policy: str) -> None:
    assert hot_of(clearwater(count=count), 0)["resources"]["hosts"]["properties"]["policies"] == [policy]


def test_what_openstack_cannot_have_is_refused(tmp_path: Path) -> None:
    folder = SPECS / "clearwater"
    text = (folder / "scaling.json").read_text(encoding="utf-8").replace('"vcpus": 1,', '"vcpus": 0.5,')
    shell_program(tmp_path / "install.sh", "")
    (tmp_path / "deployment.json").write_text(text, encoding="utf-8")
    asked = load_specifications(tmp_path / "deployment.json", folder / "workload.json")
    with pytest.raises(ConfigError, match=r"flavors\.small\.vcpus: 0\.5; OpenStack has whole vCPUs only"):
        heat_template(asked, asked.deployment.sizes[0])
    whole = Size(components={row.name: Share(flavor="medium") for row in asked.deployment.components})
    (tmp_path / "table.txt").write_bytes(bytes(40_000))  # 53 kB in base64
    with pytest.raises(ConfigError, match=r"at least 53[0-9]{3} bytes for cloud-init; an instance takes 49151"):
        heat_template(asked, whole)
    with (tmp_path / "disk.img").open("wb") as image:
        image.truncate(1 << 40)  # without blocks; reading it would end in a lack of memory
    with pytest.raises(ConfigError, match="at least 1099511627776 bytes for cloud-init"):
        heat_template(asked, whole)
