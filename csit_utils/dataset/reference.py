"""Published figures of density and of papers, for comparison with own results; rounded in print."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from csit_utils.dataset.goal_words import GoalWords
from csit_utils.dataset.items import ImportedTest, Status
from csit_utils.dataset.rows import PUBLISHED, TestRow, frame_text
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import Dimensions, ServiceType
from resources.libraries.python.studies.sweep.model import BreakPoint, Fit, MetricProfile, Profile, ProfileMetric

FDIO_2019 = "fdio-2019"
_STEP_PPS = 100_000.0
"""The slides print Mpps with one decimal."""
_SLIDES = 'slides "NF Service Density", IETF 105, BMWG, July 2019'


def reference_items(name: str) -> Sequence[ImportedTest]:
    """Return the tests of a set of published figures.

    CSIT-1904, 64 B, NDR: service types, NF sizes and cells as on the slides.

    Raises:
        ConfigError: No such set.
    """
    if name not in names():
        raise ConfigError(f"no reference set '{name}'; choose from {', '.join(names())}")
    cores = {
        (row["nf_cores"], row["instances"], row["nfs_per_instance"]): float(row["cores"])
        for row in _published_rows("csit1904_density_cores.csv")
    }
    return [
        _fdio_cell(row, cores[row["nf_cores"], row["instances"], row["nfs_per_instance"]])
        for row in _published_rows("csit1904_density_ndr_64b.csv")
    ]


def names() -> tuple[str, ...]:
    """Return the names of all sets."""
    return (FDIO_2019,)


def _fdio_cell(row: dict[str, str], cores_used: float) -> ImportedTest:
    from csit_utils.dataset.foreign.parts import frame_of, goal_columns  # noqa: PLC0415 - numpy costs time where papers are read

    service, size = ServiceType(row["topology"]), f"{float(row['nf_cores']):g}c"
    dimensions = Dimensions(int(row["instances"]), int(row["nfs_per_instance"]))
    nf_cores = float(row["nf_cores"]) * dimensions.instances * dimensions.nfs
    frame = frame_of("64B", [(64, 1)])
    name = f"64B-1c-{service.value}-{dimensions.locator}-NF-{size}"
    ndr = goal_columns("ndr", 0.0, round(float(row["ndr_mpps"]) * 10) * _STEP_PPS, None, None, frame, 1 + nf_cores)
    return ImportedTest(
        TestRow(
            anchor=f"test-{FDIO_2019}-{service.value}-{dimensions.locator}-{size.replace('.', '')}".lower(),
            test_id=f"{FDIO_2019}.{name}".lower(),
            test_name=name,
            source=_SLIDES,
            recorded=True,
            status=Status.PASS,
            message="",
            tags=f"{service.value} {dimensions.locator} 64B 1C",
            origin="fdio-csit 1904 (published)",
            run=FDIO_2019,
            label="CSIT-1904",
            world=PUBLISHED,
            simulated=False,
            testbed="FD.io 2x Intel Xeon 8180",
            drivers=row["drivers"],
            version=row["version"],
            goals=GoalWords("NDR", 0.0, step_pps=_STEP_PPS).text,
            test_type="NDR",
            service_type=service.value,
            **dimensions.columns,
            nf_size=size,
            vs_dtc=1,
            frame=frame_text(frame),
            frame_mean_bytes=frame.mean_bytes,
            vswitch_data_cores=1.0,
            nf_data_cores=nf_cores,
            data_cores=1 + nf_cores,
            slide_cores=cores_used,
            evidence=f"published in the {_SLIDES}; not measured here; rounded to 0.1 Mpps",
            **ndr,
        )
    )


_FOLDER = Path(__file__).parent / "published"
_SOURCES = {
    "nfv-vital": (
        "NFV-VITAL",
        'Cao et al., "NFV-VITAL: A Framework for Characterizing the Performance of Virtual Network Functions", '
        "IEEE NFV-SDN 2015",
    ),
    "zeng": (
        "Zeng et al.",
        'Zeng et al., "Demystifying the Performance Interference of Co-located Virtual Network Functions", '
        "IEEE INFOCOM 2018",
    ),
    "probius": (
        "Probius",
        'Nam et al., "Probius: Automated Approach for VNF and Service Chain Analysis in Software-Defined NFV", '
        "ACM SOSR 2018",
    ),
    "troia": (
        "Troia et al.",
        'Troia et al., "Performance Characterization and Profiling of Chained CPU-bound Virtual Network Functions"',
    ),
}
_MIN_GBPS = 0.05
_RATES_GBPS = {"ADVA": (2.5, 3.5), "BONSAI": (0.87, 1.3)}
"""Saturation of the router, and last rate of its plotted functions, which the text does not state."""


@dataclass(frozen=True)
class PublishedFigure:
    """A published figure."""

    kind: str
    """Kind of comparable records."""
    subject: str
    """Name in the paper."""
    match: str
    """Comparable subject; empty if there is none."""
    condition: str
    """Condition of the measurement; empty if not stated."""
    quantity: str
    value: float
    unit: str
    """Empty for a ratio."""
    place: str
    """Place in the paper."""


@dataclass(frozen=True)
class Paper:
    """A reference set: the figures of one paper."""

    name: str
    title: str
    """Short title for headings and legends."""
    source: str
    figures: tuple[PublishedFigure, ...]
    profiles: tuple[Profile, ...] = ()
    """Its fitted functions."""

    def of(self, kind: str) -> tuple[PublishedFigure, ...]:
        """Return its figures that are comparable with a kind of records."""
        return tuple(figure for figure in self.figures if figure.kind == kind)


def paper_names() -> tuple[str, ...]:
    """Return the names of all papers."""
    return tuple(_SOURCES)


@cache
def paper(name: str) -> Paper:
    """Return the figures of a paper.

    Raises:
        ConfigError: There is no such set.
    """
    if name not in _SOURCES:
        raise ConfigError(f"no figures of a paper '{name}'; choose from {', '.join(paper_names())}")
    title, source = _SOURCES[name]
    figures = tuple(_figure(row) for row in _published_rows("papers.csv") if row["reference"] == name)
    return Paper(name, title, source, figures, _troia_profiles() if name == "troia" else ())


def _figure(row: dict[str, str]) -> PublishedFigure:
    kind: str = row["kind"]  # a test checks the file against the kinds
    words = {name: row[name] for name in ("subject", "match", "condition", "quantity", "unit", "place")}
    return PublishedFigure(kind=kind, value=float(row["value"]), **words)


def _troia_profiles() -> tuple[Profile, ...]:
    """The virtual router on both testbeds."""
    rows = list(_published_rows("troia_functions.csv"))
    return tuple(_profile(testbed, [row for row in rows if row["testbed"] == testbed]) for testbed in _RATES_GBPS)


def _profile(testbed: str, rows: list[dict[str, str]]) -> Profile:
    at, last = _RATES_GBPS[testbed]
    spans = {"nonsat": (_MIN_GBPS, at), "sat": (at, last)}
    fits = {(ProfileMetric(row["metric"]), row["region"]): _fit(row, *spans[row["region"]]) for row in rows}
    metrics = tuple(
        MetricProfile(metric=metric, nonsat=fits[metric, "nonsat"], sat=fits[metric, "sat"]) for metric in ProfileMetric
    )
    break_point = BreakPoint(rate=at, vnf="router", cpus_used=1.0, cpus_there=1, reason="as the paper says")
    return Profile(name=f"router, {testbed} testbed", break_point=break_point, metrics=metrics)


def _fit(row: dict[str, str], first: float, last: float) -> Fit:
    """A function of the catalogue; the paper states no errors."""
    pairs = (word.split("=") for word in row["coefficients"].split())
    return Fit(
        function=row["function"],
        formula=row["formula"],
        coefficients={name: float(value) for name, value in pairs},
        standard_error=0.0,
        relative_error=None,
        points=0,
        first_rate=first,
        last_rate=last,
    )


def _published_rows(file: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a file of published figures."""
    with (_FOLDER / file).open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(line for line in lines if not line.startswith("#"))
