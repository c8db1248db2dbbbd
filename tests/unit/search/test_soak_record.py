"""A soak from search to record, on the simulated testbed."""

from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.result import VerdictKind
from tests.unit.search.density_tests import deployed
from tests.unit.search.search_fakes import found


def test_latency_is_of_shares_of_the_soak_rate_and_the_rate_has_its_verdict() -> None:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=2, nf_nodes=1)
    experiment = deployed(cell=cell, searched="soak,time=120")
    experiment.search(("NDR", "PDR"))
    said = experiment.latency()
    experiment.remove()
    draft = experiment.draft
    lower, _ = found(draft.soak)
    assert (draft.ndr, draft.pdr) == (None, None)
    assert [(row.label, round(row.load_pps / lower, 9)) for row in draft.latency] == [
        ("SOAK0", 0.0),
        ("SOAK10", 0.1),
        ("SOAK50", 0.5),
        ("SOAK90", 0.9),
    ]
    assert said[-1].startswith("SOAK90 p99 ")
    assert [item.number for item in draft.itemized] == ["overload"]
    assert draft.verdict is not None
    assert draft.verdict.of("SOAK") == (VerdictKind.VSWITCH_BOUND,)
    assert draft.search is not None
    assert (draft.search.algorithm, draft.search.prior) == ("plr", None)
