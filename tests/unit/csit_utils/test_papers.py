"""Figures of papers: that they are those that are printed, and what of one's own is laid beside them."""

from typing import cast

import pytest

from csit_utils.dataset.reference import paper, paper_names
from csit_utils.report.record_page import PublishedSection
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import render
from csit_utils.report.study import Page
from csit_utils.studies.chains import study as chain_study
from csit_utils.studies.interference import study as interference_page
from csit_utils.studies.registry import record_kinds
from csit_utils.studies.sizing import study as sizings
from csit_utils.studies.sweep import profiles
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.service.workload import Option
from resources.libraries.python.studies.chains.model import ChainStudy
from resources.libraries.python.studies.chains.model.spec import Chain, Member, Mode, VnfSpec
from resources.libraries.python.studies.interference.model import NfType
from resources.libraries.python.studies.sizing.model import SizingRecord
from resources.libraries.python.studies.sweep.analysis.curves import BY_NAME
from resources.libraries.python.studies.sweep.analysis.profile import value_at
from resources.libraries.python.studies.sweep.model import ProfileMetric
from tests.unit.csit_utils.characterization_records import sized, sweep_of, swept
from tests.unit.csit_utils.characterized_pages import shown, words
from tests.unit.csit_utils.study_records import chain_studied, interfered, interference
from tests.unit.studies.chains.chain_runs import run, spec_of

_PAGES: dict[str, Page[ReportContents]] = {
    "sweep": profiles.PAGE,
    "sizing": sizings.PAGE,
    "chains": chain_study.PAGE,
    "interference": interference_page.PAGE,
}


def beside(name: str, kind: str, *records: Record) -> PublishedSection:
    (section,) = cast("list[PublishedSection]", _PAGES[kind].build(with_paper(name, *records))["papers"])
    return section


def with_paper(name: str, *records: Record) -> ReportContents:
    all_of_it = shown(*records)
    all_of_it.papers = (paper(name),)
    return all_of_it


def own(section: PublishedSection) -> dict[tuple[str, str], list[float]]:
    return {(row.figure.subject, row.figure.condition): [each.value for each in row.own] for row in section.rows}


def clearwater(**workload: object) -> SizingRecord:
    """One size of the paper with another capacity, under calls of the paper's kind."""
    record = sized()
    first = record.sizing.sizes[0].model_copy(update={"name": "bn1s-sp1s-hs1s", "capacity": 280.0})
    calls = record.sizing.workload.model_copy(update={"generator": "scripts/reg-dereg.sh", **workload})
    return record.model_copy(update={"sizing": record.sizing.model_copy(update={"sizes": (first,), "workload": calls})})


@pytest.mark.parametrize(("calls", "values"), [("reg-dereg", [280]), ("reg-invite", [])])
def test_calls_of_the_papers_kind_may_be_an_option_of_the_workload(calls: str, values: list[float]) -> None:
    options = {"calls": Option(values=("reg-dereg", "reg-invite"), value=calls)}
    section = beside("nfv-vital", "sizing", clearwater(generator="calls.py", options=options))
    assert own(section)["bn1s-sp1s-hs1s", "reg-dereg"] == values


def test_figures_are_those_that_are_printed_with_a_place_a_unit_or_a_ratio_and_a_known_kind() -> None:
    assert paper_names() == ("nfv-vital", "zeng", "probius", "troia")
    with pytest.raises(ConfigError, match="no figures of a paper 'etsi'; choose from nfv-vital, zeng"):
        paper("etsi")
    for name in paper_names():
        found = paper(name)
        assert found.figures and found.source
        for figure in found.figures:
            assert figure.kind in record_kinds() and figure.place
            assert figure.value > 0 and (figure.unit or figure.value < 1)
    values = {name: {(row.match, row.condition): row.value for row in paper(name).figures} for name in paper_names()}
    assert [values["nfv-vital"][f"bn1{s}-sp1{s}-hs1{s}", "reg-dereg"] for s in "sml"] == [350, 600, 1000]
    means = [values["zeng"][name, ""] for name in ("I", "II", "III", "IV", "V")]
    assert means == [0.8764, 0.4969, 0.6407, 0.6478, 0.6114]
    # Table I prints rates: 955 to 615.88 and 169 to 103.99 Mbit/s.
    assert values["zeng"]["III II", ""] == pytest.approx(615.88 / 955, abs=1e-4)
    assert values["zeng"]["II III", ""] == pytest.approx(103.99 / 169, abs=1e-4)
    assert min(means) == values["zeng"]["II", ""], "type II is the most sensitive"
    assert values["probius"]["suricata inline", "virtio NIC"] == 489.2


def test_published_functions_agree_with_each_other_as_the_paper_says() -> None:
    adva, bonsai = paper("troia").profiles
    for profile in (adva, bonsai):
        for row in profile.metrics:
            for fit in (row.nonsat, row.sat):
                assert fit.formula == BY_NAME[fit.function].formula
    for rate in (2.6, 3.0, 3.5):
        through, loss = value_at(adva, ProfileMetric.THROUGHPUT, rate), value_at(adva, ProfileMetric.LOSS, rate)
        assert loss is not None
        assert 100 * (1 - through / rate) == pytest.approx(loss, abs=0.7)
    low = value_at(adva, ProfileMetric.DELAY, 1.0)
    assert low == pytest.approx(0.272, abs=1e-3), "below one millisecond far from saturation"
    jump = value_at(bonsai, ProfileMetric.DELAY, 1.0)
    assert jump == pytest.approx(70.971 - 51.028)


def test_capacities_are_laid_beside_those_of_the_same_size_and_calls() -> None:
    section = beside("nfv-vital", "sizing", clearwater())
    assert own(section)["bn1s-sp1s-hs1s", "reg-dereg"] == [280]
    assert own(section)["bn1m-sp1m-hs1m", "reg-dereg"] == [] and own(section)["bn1s-sp1m-hs1m", "reg-invite"] == []
    assert section.rows[0].change(section.rows[0].own[0]) == "\N{MINUS SIGN}20 %"
    published, here = section.figures[0].variants[""]["data"]
    assert published["y"] == [350, 600, 1000, 600, 150] and here["y"] == [280]
    assert here["x"] == ["bn1s-sp1s-hs1s<br>reg-dereg"]
    other = beside("nfv-vital", "sizing", clearwater(generator="requests.py"))
    assert not any(own(other).values()) and other.figures == (), "other calls are no counterpart"
    published_by = [words(render(sizings.PAGE, with_paper(name, clearwater()))) for name in ("nfv-vital", "zeng")]
    assert ["Published by NFV-VITAL and found here" in text for text in published_by] == [True, False]


def test_row_means_are_laid_beside_those_of_the_same_type() -> None:
    found = interference()
    types = {"gateway": NfType.GATEWAY, "monitor": NfType.MONITOR, "balancer": NfType.BALANCER}
    typed = [one.model_copy(update={"type": types[one.name]}) for one in found.spec.contenders]
    spec = found.spec.model_copy(update={"contenders": tuple(typed)})
    values = own(beside("zeng", "interference", interfered(found.model_copy(update={"spec": spec}))))
    assert found.findings is not None
    means = {each.name: each.normalized.value for each in found.findings.sensitivity}
    assert values["type I", ""] == [pytest.approx(means["gateway"])]
    assert values["type II", ""] == [pytest.approx(means["monitor"])]
    assert values["type III", ""] == [] and values["type II beside III", ""] == []


def test_the_highest_throughput_alone_is_laid_beside_that_of_the_same_kind_and_mode() -> None:
    spec = spec_of(("ips", "ids"), volumes_bps=(1e8, 5e8))
    suricata = NfKind("suricata")
    vnfs = (VnfSpec(name="ips", kind=suricata), VnfSpec(name="ids", kind=suricata, mode=Mode.PASSIVE))
    ips, ids = (Member(name=name, size=NfSize.ONE) for name in ("ips", "ids"))
    loads = [((ips,), 1e8, 1e8), ((ips,), 5e8, 2.5e8), ((ids,), 5e8, 4.5e8), ((ips, ids), 5e8, 4.9e8)]
    runs = tuple(run(Chain(members=members), offered, passed) for members, offered, passed in loads)
    study = ChainStudy(spec=spec.model_copy(update={"vnfs": vnfs}), chains=3, runs=runs)
    values = own(beside("probius", "chains", chain_studied(study)))
    assert values["Suricata-IPS", "virtio NIC"] == [250]
    assert values["Suricata-IDS", "virtio NIC"] == [450]
    assert values["Snort-IDS", "virtio NIC"] == [] and values["NAT", "virtio NIC"] == []


ROUTER = swept("Router", sweep_of("router", (NfKind("linux_router"),), capacity_pps=4e5))


def test_saturation_and_functions_are_laid_beside_those_of_a_vnf_of_the_same_kind() -> None:
    section = beside("troia", "sweep", ROUTER)
    assert own(section)["virtual router", "ADVA testbed"] == [ROUTER.profile.break_point.rate]
    assert own(section)["virtual firewall", "ADVA testbed"] == []
    names = [trace["name"] for trace in section.figures[1].variants["loss"]["data"]]
    assert names == ["published: router, ADVA testbed", "published: router, BONSAI testbed", "router, 64B, 1c on local"]
    page = render(profiles.PAGE, with_paper("troia", ROUTER))
    assert {figure.identity for figure in page.figures} >= {"published-troia-sweep", "published-troia-functions"}
