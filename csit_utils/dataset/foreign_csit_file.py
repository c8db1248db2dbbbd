"""Model of the parts of FD.io CSIT's result file of one test (`*.info.json`, model 1.x) that are read."""

from pydantic import Field

from csit_utils.dataset.foreign_parts import Amount, Read


class RateWithUnit(Read):
    """A number with its unit."""

    value: Amount
    unit: str


class RateOnly(Read):
    """A rate; bandwidths beside it follow from it."""

    rate: RateWithUnit


class RateBounds(Read):
    """Of a searched rate."""

    lower: RateOnly
    upper: RateOnly | None = None


class Trials(Read):
    """Receive rates of the trials of MRR."""

    values: tuple[Amount, ...] = Field(min_length=1)
    avg: Amount
    stdev: Amount
    unit: str


class Received(Read):
    """MRR."""

    rate: Trials


class Latency(Read):
    """At one load in one direction, in microseconds."""

    min: Amount
    avg: Amount
    max: Amount
    hdrh: str = ""


class Latencies(Read):
    """In one direction, by percent of PDR."""

    pdr_0: Latency | None = None
    pdr_10: Latency | None = None
    pdr_50: Latency | None = None
    pdr_90: Latency | None = None


class Found(Read):
    """The figures, by what was measured."""

    type: str
    receive_rate: Received | None = None
    ndr: RateBounds | None = None
    pdr: RateBounds | None = None
    critical_rate: RateBounds | None = None
    latency_forward: Latencies | None = None
    latency_reverse: Latencies | None = None


class Test(Read):
    """The whole file."""

    __test__ = False  # not a pytest class

    version: str
    test_id: str = Field(min_length=3)
    test_name_long: str
    test_name_short: str = ""
    test_type: str
    start_time: str
    end_time: str
    passed: bool = Field(strict=True)
    message: str = ""
    tags: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    dut_type: str = "none"
    dut_version: str = ""
    tg_type: str = ""
    tg_version: str = ""
    result: Found
