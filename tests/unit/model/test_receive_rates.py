"""What older records call MRR is read under what it was."""

import json

import pytest

from csit_utils.dataset.records import parse_density
from csit_utils.dataset.testrows import packed_head
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.result import Finding, VerdictKind
from resources.libraries.python.recording.packed_record import pack
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.unit.csit_utils import builders
from tests.unit.recording.characterizations import earlier

NEW = builders.mrr_result(ServiceType.CSC, 1, 1)


def older(version: str, offered_pps: float, *, simulated: bool = False) -> DensityRecord:
    """A record with an MRR of 1 Mpps."""
    assert NEW.mrr is not None
    finding = Finding(kind=VerdictKind.VSWITCH_BOUND, text="vSwitch", numbers=("MRR",))
    verdict = NEW.verdict.model_copy(update={"kinds": (finding.kind,), "findings": (finding,)})
    rate = NEW.mrr.model_copy(update={"offered_pps": offered_pps, "mean_pps": 1e6})
    return NEW.model_copy(update={"schema_version": version, "mrr": rate, "simulated": simulated, "verdict": verdict})


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (older("1.3", 4e6), "ORR"),  # lowered to four times what came back
        (older("1.0", 4e6), "ORR"),
        (older("1.3", 1.5e6), "MRR"),  # less than the limit: the most that the generator could send
        (older("1.3", 20e6, simulated=True), "MRR"),  # always line rate
        (older("2.0", 20e6), "MRR"),
    ],
)
def test_an_older_mrr_has_the_name_of_what_it_was(record: DensityRecord, name: str) -> None:
    data = earlier(record, record.schema_version)
    read, _ = parse_density(json.dumps(data), "x")
    head = packed_head(pack(record))
    for found in (read, head):
        rates = {"MRR": found.mrr, "ORR": found.orr}
        assert [each for each, rate in rates.items() if rate is not None] == [name]
        assert (rates[name].mean_pps, rates[name].offered_pps) == (1e6, record.mrr.offered_pps if record.mrr else None)  # type: ignore[union-attr]
        assert found.verdict.findings[0].numbers == (name,)
    again = DensityRecord.model_validate_json(read.model_dump_json())
    assert (again.mrr, again.orr) == (read.mrr, read.orr)
