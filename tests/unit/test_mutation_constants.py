"""Numbers outside functions that mutation testing changes, and how."""

from tests.mutation_constants import changes

MODULE = '''"""Of 3 lines."""
UNIT, FEWEST = "µs", 5  # two bytes, one character
SHARES: dict[str, float] = {"a": 0.5, "b": -1e3}
FLAG = True
NAME = f(x, 0)

@dataclass(order=1)
class Row:
    count: Annotated[int, Field(ge=9)] = 1

    def half(self, of: int = 8) -> int:
        return of // 2
'''


def test_each_assigned_number_is_doubled_halved_and_zeroed() -> None:
    assert [(each.line, each.before, each.after) for each in changes(MODULE)] == [
        (2, "5", "10"),
        (2, "5", "2"),
        (2, "5", "0"),
        (3, "0.5", "1.0"),
        (3, "0.5", "0.25"),
        (3, "0.5", "0.0"),
        (3, "1e3", "2000.0"),
        (3, "1e3", "500.0"),
        (3, "1e3", "0.0"),
        (5, "0", "1"),
        (9, "1", "2"),
        (9, "1", "0"),
    ]


def test_a_change_replaces_its_number_only() -> None:
    by_change = {(each.line, each.after): each.text for each in changes(MODULE)}
    assert by_change[2, "10"] == MODULE.replace('"µs", 5 ', '"µs", 10 ')
    assert by_change[3, "500.0"] == MODULE.replace("-1e3", "-500.0")
    assert by_change[9, "0"] == MODULE.replace("] = 1\n", "] = 0\n")
