"""Studies on the reading side and their pages: every declared block of every kind of record, and the noise floor."""

import json
import re
from itertools import product
from typing import get_args

import pytest
from syrupy.assertion import SnapshotAssertion

from csit_utils import cli
from csit_utils.dataset.rows import MEASURES
from csit_utils.report.details.machines import noise_figure, noise_floor
from csit_utils.report.record_blocks import Column, Heat, Plot, RecordTables, Row
from csit_utils.report.site import RenderedPage, every_page, render, single_file
from csit_utils.studies import folders, study_commands
from csit_utils.studies.registry import explanations, measures, record_kinds, studies
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.record import Record
from resources.libraries.python.recording.records import RECORDS
from resources.libraries.python.studies.sweep.model import SweepRecord
from resources.libraries.python.testbed.node.checks import processors as noise_check
from tests.builders import SIM, cpu_noise, plan_of
from tests.unit.csit_utils.approved import wording_of_page
from tests.unit.csit_utils.characterization_records import record
from tests.unit.csit_utils.characterized_pages import made, shown, words
from tests.unit.csit_utils.study_records import one_of_every_kind

HOSTILE = "</script><img src=x onerror=alert(1)>"
OF_KINDS = {page.name: page for study in studies() if study.kinds for page in study.pages}


@pytest.fixture(scope="module")
def records() -> list[Record]:
    found = one_of_every_kind()
    assert {each.kind for each in found} == set(record_kinds())
    return found


@pytest.fixture(scope="module")
def pages(records: list[Record]) -> dict[str, RenderedPage]:
    return {name: made(page, *records) for name, page in OF_KINDS.items()}


@pytest.mark.parametrize("name", OF_KINDS)
def test_words_are_approved_and_every_figure_has_its_place_and_every_choice_its_variant(
    pages: dict[str, RenderedPage], name: str, approved: SnapshotAssertion
) -> None:
    html = str(pages[name].html)
    assert wording_of_page(html) == approved
    identities = [figure.identity for page in pages.values() for figure in page.figures]
    assert len(identities) == len(set(identities))
    assert pages[name].figures
    asked = set(re.findall(r'href="#explain-([a-z0-9-]+)"', html))
    assert asked and asked <= explanations().keys(), "every question mark has an answer"
    ids = re.findall(r' id="([^"]*)"', html)
    assert len(ids) == len(set(ids)) and not any(re.search(r"\s", each) for each in ids)
    for figure in pages[name].figures:
        assert html.count(f'="{figure.identity}"') == 1, figure.identity
        choices = {"|".join(choice) for choice in product(*figure.selectors)}
        assert choices <= figure.variants.keys(), figure.identity
        drawn = [variant for key, variant in figure.variants.items() if key in choices]
        values = (trace["y"] for variant in drawn for trace in variant.get("data", ()))
        assert any("maps" in variant for variant in drawn) or any(any(y is not None for y in line) for line in values)


@pytest.mark.parametrize("name", OF_KINDS)
def test_everything_simulated_says_so(records: list[Record], pages: dict[str, RenderedPage], name: str) -> None:
    simulated = [each.model_copy(update={"simulated": True}) for each in records]
    page = made(OF_KINDS[name], *simulated)
    assert page.figures and all(figure.simulated for figure in page.figures)
    assert "No packet was sent" in page.html or "SIMULATED" in page.html
    assert "SIMULATED" not in pages[name].html


@pytest.mark.parametrize("kind", record_kinds())
def test_a_test_without_a_result_has_its_reason_and_no_figure(kind: str) -> None:
    bare = record(kind, "Bare", passed=False, message="the NF is <down>")
    found = [page for each in OF_KINDS.values() if (page := render(each, shown(bare))) is not None]
    assert found
    assert all("the NF is &lt;down&gt;" in page.html and not page.figures for page in found)
    assert [render(page, shown()) for page in OF_KINDS.values()] == [None] * len(OF_KINDS), "there for its records only"


def test_texts_of_rows_and_records_are_no_markup(records: list[Record], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = RecordTables.rows

    def hostile(tables: RecordTables, table: str) -> list[Row]:
        found = (row.items() for row in rows(tables, table))
        return [{name: f"{HOSTILE}{each}" if type(each) is str else each for name, each in row} for row in found]

    monkeypatch.setattr(RecordTables, "rows", hostile)
    written = [
        each.model_copy(update={"test_name": HOSTILE, "testbed": HOSTILE, "warnings": (HOSTILE,)}) for each in records
    ]
    text = single_file(shown(*written))
    assert "<img src=x" not in text
    assert text.count("</script>") == text.count("<script"), "no string ends the script that it is in"
    for page in OF_KINDS.values():
        for figure in made(page, *written).figures:
            variants = [each for each in figure.variants.values() if isinstance(each, dict) and "data" in each]
            for variant in variants:
                read = [{name: each for name, each in trace.items() if name != "meta"} for trace in variant["data"]]
                assert "<img" not in json.dumps([read, variant["layout"]]), "Plotly reads a little markup"


ROWS: list[Row] = [
    {"nf": nf, "load": load, "loss": loss, "low": loss - 0.01, "high": loss + 0.03, "way": way}
    for way in ("alone", "beside")
    for nf, loss in (("nat", 0.1), ("ids", 0.0))
    for load in (1, 2)
]
TABLES = RecordTables("a", simulated=True, content=None, tables={"losses": ROWS})
LOSS = Column("loss", "loss, %", scale=100, ends=("low", "high"))


def test_a_plot_has_a_line_for_each_value_and_readers_choose_rows_quantities_and_a_logarithmic_axis() -> None:
    plot = Plot("loss", "Loss", "losses", Column("load"), (LOSS, Column("unknown")), "nf", choose=("way",))
    figure = plot.draw(TABLES)
    assert figure.simulated and figure.identity == "a-loss"
    assert figure.selectors == (("alone", "beside"),), "what is unknown is no choice"
    nat, ids = figure.variants["beside"]["data"]
    assert (nat["name"], nat["x"], nat["y"]) == ("nat", [1, 2], [10, 10])
    assert (nat["error_y"]["array"], nat["error_y"]["arrayminus"]) == ([3, 3], [1, 1])
    assert (nat["meta"]["colour"], ids["meta"]["colour"]) == (0, 1)
    assert Plot("loss", "Loss", "losses", Column("load"), Column("unknown"), "nf").draw(TABLES) is None
    log = Column("loss", "loss, %", log=True, choice="logarithmic")
    figure = Plot("loss", "Loss", "losses", Column("load"), (LOSS, log), "nf", dash="way").draw(TABLES)
    assert figure.selectors == (("loss", "logarithmic"),)
    lines = figure.variants["logarithmic"]["data"]
    assert [line["name"] for line in lines] == ["nat, alone", "ids, alone", "nat, beside", "ids, beside"]
    assert lines[1]["y"] == [None, None] and figure.variants["loss"]["data"][1]["y"] == [0, 0]
    assert lines[0]["line"]["dash"] != lines[2]["line"]["dash"]


def test_a_heat_map_has_the_mean_of_its_rows() -> None:
    heat = Heat("map", "Loss", Column("nf"), Column("way"), ((LOSS, "losses"),), lambda _: "", bracket="load")
    maps = heat.draw(TABLES)
    (squares,) = [one.squares(("loss",)) for one in maps.maps]
    assert [[square.text for square in line] for line in squares] == [["[10.0]"] * 2, ["[0]"] * 2]
    assert squares[0][0].value == 10 and "mean of 2" in squares[0][0].tip


def test_the_table_has_the_cpus_of_the_test_the_noisiest_first() -> None:
    plan = plan_of(SIM, "CSC", cores=SIM.dut.layout)
    used = sorted(each.cpu for each in plan.cores.threads if each.role is ThreadRole.DATA)
    rows = [*(cpu_noise(cpu, 5_000, 3_000 * (cpu + 1)) for cpu in used), cpu_noise(99, 10**9)]
    rows[0] = rows[0].model_copy(update={"interrupts": {"Local timer interrupts": 9, "eth0<b>": 2}, "stolen_s": 0.01})
    lines = noise_floor(plan, rows)
    assert [line.cpu for line in lines] == [str(cpu) for cpu in reversed(used)]
    last = lines[-1]
    assert last.causes == "9 x Local timer interrupts; 2 x eth0<b>; 0.01 s taken by the hypervisor"
    assert last.owners and last.limit_pps and round(last.limit_pps) == round(256e9 / last.longest_ns)
    assert [line.owners for line in noise_floor(None, rows)] == [""] * len(rows), (
        "without one plan all that were observed"
    )
    observed = [cpu_noise(used[0], 3_000, 3_000, 50_000, observed_s=0.5)]
    (trace,) = noise_figure("n", "t", plan, observed, simulated=False).variants[""]["data"]
    assert trace["x"][-1] == 50.0 and trace["y"] == [6.0, 2.0], "those that are as long or longer"


NOISE = (cpu_noise(3, 57_000), cpu_noise(4, 9_000))


@pytest.mark.parametrize("kind", record_kinds())
def test_the_head_of_each_record_of_a_study_has_the_table(records: list[Record], kind: str) -> None:
    quiet = next(each for each in records if each.kind == kind)
    for each, is_there in ((quiet.model_copy(update={"noise": NOISE}), True), (quiet, False)):
        found = [render(page, shown(each)) for page in OF_KINDS.values()]
        text = " ".join(words(page) for page in found if page is not None)
        assert ("Noise floor: the longest interruption of an idle data CPU was 57" in text) is is_there


def test_the_doctor_warns_of_long_and_of_frequent_interruptions() -> None:
    assert not list(noise_check.check_cpu_noise("nodes.DUT1", []))
    (fine,) = noise_check.check_cpu_noise("nodes.DUT1", [cpu_noise(1, 9_000), cpu_noise(2)])
    assert "noise floor of 2 data CPUs: longest interruption 9.00 µs on CPU 1" in str(fine)
    for noise, why in (([2_000_000], "at more than 128 kpps a receive queue"), ([60_000] * 100, "(more than 0.5 %)")):
        (warned,) = noise_check.check_cpu_noise("nodes.DUT1", [cpu_noise(1, *noise)])
        assert warned.level == "warning" and why in warned.what


def test_every_kind_of_record_has_a_study_and_studies_do_not_share_names() -> None:
    patterns = get_args(SweepRecord.model_fields["pattern"].annotation)
    assert {*record_kinds()} == {*RECORDS, *patterns} - {"density"}, "its tests have tables and pages of their own"
    every = studies()
    assert len(every) == len(folders()) == len({study.order for study in every})
    assert len({page.name for page in every_page()}) == len(every_page())
    own = [{measure for kind in study.kinds for measure in kind.measures} for study in every]
    assert len({*measures(), *MEASURES}) == sum(map(len, own)) + len(MEASURES)
    hidden = {name for names in cli._OF_NO_STUDY.values() for name in names} & {*study_commands()}
    assert not hidden, "one hides the other"
