"""Places of other tools' results in the matrix, by the names of their files."""

import json
import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.analysis.grouping import series_of
from csit_utils.commands.results.inputs import opened
from csit_utils.dataset.foreign.place import NameTemplate
from csit_utils.dataset.items import ImportedTest
from csit_utils.dataset.load import read_foreign
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import ServiceType
from tests.unit.csit_utils.datasets import invoked
from tests.unit.csit_utils.foreign_files import fixed, nfvbench, packed, searched

PLAIN = NameTemplate("{service}_{instances}c{nfs}n")
IN_FOLDER = NameTemplate("*t{vswitch_cores}c*/{service}_{instances}c{nfs}n_NF-{nf_cores}c")


def read(source: str, size: str = "64", chain: str = "EXT") -> ImportedTest:
    (item,) = read_foreign(packed(nfvbench({size: searched()}, chain)), source)
    assert isinstance(item, ImportedTest)
    return item


@given(
    st.sampled_from(ServiceType),
    st.integers(1, 99),
    st.integers(0, 99),
    st.sampled_from(["", "a/", "c:\\x\\", "2c3n/"]),
)
def test_a_name_states_its_cell_whatever_follows(service: ServiceType, instances: int, nfs: int, folder: str) -> None:
    place = PLAIN.place(f"{folder}{service.value.lower()}_{instances}c{nfs}n_18500000pps-1.json")
    assert (place.service_type, *place.dimensions) == (service, instances, nfs)


@pytest.mark.parametrize(
    "name", ["xcsc_2c4n.json", "csc_2c4.json", "csd_2c4n.json", "csc_0c4n.json", "csc_2c4n/a.json"]
)
def test_other_names_state_none(name: str) -> None:
    assert PLAIN.place(name) is None


def test_folders_state_sizes_and_these_the_cores() -> None:
    place = IN_FOLDER.place("results/4t2c_novlan/csp_2c4n_NF-0.5c_ndr-1.json")
    assert place.columns["data_cores"] == 2 + 0.5 * 8
    row = IN_FOLDER.placed(read("results/4t2c_novlan/csp_2c4n_NF-1c_ndr-1.json")).row
    assert row.ndr_lower_pps and row.ndr_pps_per_core == pytest.approx(row.ndr_lower_pps / 10)


def test_a_test_of_ext_chains_is_placed_and_one_whose_file_states_its_place_is_not() -> None:
    item = PLAIN.placed(read("64B/csc_3c2n_ndr-1.json"))
    assert (item.row.service_type, item.row.nf_chains, item.row.nf_nodes, item.row.evidence) == ("CSC", 3, 2, "")
    assert item.row.test_id != PLAIN.placed(read("64B/csc_3c2n_ndr-2.json")).row.test_id
    own = read("csc_3c2n.json", chain="PVVP")
    assert PLAIN.placed(own) == own


def test_what_the_name_contradicts_or_does_not_state_is_a_remark() -> None:
    assert "IMIX" in PLAIN.placed(read("64B/csc_3c2n.json", size="IMIX")).row.evidence
    assert not PLAIN.placed(read("64B/csc_3c2n.json")).row.evidence
    row = PLAIN.placed(read("phy.json")).row
    assert row.service_type is None and PLAIN.text in row.evidence


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{service}_{rows}", "{rows}"),
        ("{service}_{instances}", "{nfs}"),
        ("{service}{instances}{instances}{nfs}", "{instances} occurs twice"),
        ("{service}{instances}{nfs}}", "brace"),
        ("{service}{instances}{nfs}*****", "*"),
        ("{service}{instances}{nfs}{nf_cores=big}", "out of range"),
        ("{service=CSC}{instances=1}{nfs=500}", "{nfs=500}"),
        ("{service}{instances}{nfs}" + "x" * 200, "200"),
    ],
)
def test_a_template_with_a_fault_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(fault)):
        NameTemplate(text)


def test_a_value_in_the_template_holds_for_all_files() -> None:
    template = NameTemplate("{service=csc}{nf_cores=0.5}{vswitch_cores=1}run_{instances}_{nfs}")
    place = template.place("a.zip!run_4_2.json")
    assert (place.service_type, *place.dimensions, place.data_cores) == (ServiceType.CSC, 4, 2, 1 + 0.5 * 8)


def test_import_places_files_and_a_cell_has_the_figures_of_two(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name, found in (("csc_3c2n_ndr", searched()), ("csc_3c2n_1000pps", fixed(20.0)), ("phy", searched())):
            archive.writestr(f"{name}.json", packed(nfvbench({"64": found}, "EXT", label=name)))
    into, options = tmp_path / "dataset", ("--place", PLAIN.text, "--format", "json")
    counts = json.loads(invoked("import", tmp_path / "all.zip", "-o", into, *options).stdout)
    assert [counts[name] for name in ("tests", "placed", "not_placed")] == [3, 2, 1]
    placed = [row for row in opened([into]).contents().tests if row.service_type]
    ndr, mrr = sorted(placed, key=lambda row: row.mrr_pps is not None)
    assert ndr.ndr_lower_pps and mrr.mrr_pps and (series_of(ndr), ndr.run) == (series_of(mrr), mrr.run)


def test_tests_with_two_definitions_of_a_figure_stay_apart(tmp_path: Path) -> None:
    for name, found in (("ndr", searched()), ("20pc", fixed(20.0)), ("30pc", fixed(30.0))):
        (tmp_path / f"csc_3c2n_{name}.json").write_bytes(packed(nfvbench({"64": found}, "EXT")))
    invoked("import", tmp_path, "-o", tmp_path / "dataset", "--place", PLAIN.text)
    assert len({series_of(row) for row in opened([tmp_path / "dataset"]).contents().tests}) == 3
