"""Core usage of the matrices of draft and slides, and the cells that fit on 28 cores."""

from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.request.nf_size import NfSize
from tests.builders import cell_of

GRID = (1, 2, 4, 6, 8, 10)
SLIDES_1C = {
    1: (3.5, 5, 8, 11, 14, 17),
    2: (5, 8, 14, 20, 26, 32),
    4: (8, 14, 26, 38, 50, 62),
    6: (11, 20, 38, 56, 74, 92),
    8: (14, 26, 50, 74, 98, 122),
    10: (17, 32, 62, 92, 122, 152),
}
SLIDES_HALF = {
    1: (3, 4, 6, 8, 10, 12),
    2: (4, 6, 10, 14, 18, 22),
    4: (6, 10, 18, 26, 34, 42),
    6: (8, 14, 26, 38, 50, 62),
    8: (10, 18, 34, 50, 66, 82),
    10: (12, 22, 42, 62, 82, 102),
}
DRAFT_1C = {1: (2, 3, 6, 9, 12, 15), 2: (3, 6, 12, 18, 24, 30)}
FEASIBLE_1C = {1: [1, 2, 4, 6, 8, 10], 2: [1, 2, 4, 6, 8], 4: [1, 2, 4], 6: [1, 2], 8: [1, 2], 10: [1]}
FEASIBLE_HALF = {1: [1, 2, 4, 6, 8, 10], 2: [1, 2, 4, 6, 8, 10], 4: [1, 2, 4, 6], 6: [1, 2, 4], 8: [1, 2], 10: [1, 2]}


def cell(rows: int, columns: int, *sizes: str, vs_dtc: int = 1) -> Cell:
    """A cell of containers in a snake."""
    return cell_of("CSC", rows, columns, nf_sizes=tuple(NfSize(size) for size in sizes or ("1c",)), vs_dtc=vs_dtc)
