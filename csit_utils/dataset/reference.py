"""Published figures of density, for comparison with own results; rounded in print."""

from collections.abc import Callable, Iterator

from csit_utils.dataset.foreign.parts import frame_of, goal_columns
from csit_utils.dataset.goal_words import GoalWords
from csit_utils.dataset.items import ImportedTest, Status
from csit_utils.dataset.papers import published_rows
from csit_utils.dataset.rows import TestRow, frame_text
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import Dimensions, ServiceType

WORLD = "published"
"""World of published tests."""
FDIO_2019 = "fdio-2019"
_STEP_PPS = 100_000.0
"""The slides print Mpps with one decimal."""
_SLIDES = 'slides "NF Service Density", IETF 105, BMWG, July 2019'


def reference_items(name: str) -> Iterator[ImportedTest]:
    """Yield the tests of a set of published figures.

    Raises:
        ConfigError: No such set.
    """
    if name not in _SETS:
        raise ConfigError(f"no reference set '{name}'; choose from {', '.join(names())}")
    return _SETS[name][1]()


def names() -> tuple[str, ...]:
    """Return the names of all sets."""
    return tuple(_SETS)


def title(name: str) -> str:
    """Return the title of a set.

    Raises:
        KeyError: No such set.
    """
    return _SETS[name][0]


def _fdio_2019() -> Iterator[ImportedTest]:
    """CSIT-1904, 64 B, NDR: service types, NF sizes and cells as on the slides."""
    cores = {
        (row["nf_cores"], row["instances"], row["nfs_per_instance"]): float(row["cores"])
        for row in published_rows("csit1904_density_cores.csv")
    }
    for row in published_rows("csit1904_density_ndr_64b.csv"):
        used = cores[row["nf_cores"], row["instances"], row["nfs_per_instance"]]
        yield _fdio_cell(row, used)


def _fdio_cell(row: dict[str, str], cores_used: float) -> ImportedTest:
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
            world=WORLD,
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


_SETS: dict[str, tuple[str, Callable[[], Iterator[ImportedTest]]]] = {
    FDIO_2019: (f"FD.io CSIT-1904: NDR of 64 B frames, vSwitch-1c ({_SLIDES})", _fdio_2019)
}
