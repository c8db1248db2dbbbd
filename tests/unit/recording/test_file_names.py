"""Files of tests: each test of a run has its own."""

from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.recording.writer import FileNames, safe_name


def test_tests_of_one_name_in_two_suites_have_files_of_their_own() -> None:
    names = FileNames()
    assert names.of("Mine.Firewall", "Firewall") == "Firewall"
    assert names.of("Yours.Firewall", "Firewall") == "Yours.Firewall"
    assert names.of("Mine.Firewall", "Firewall") == "Firewall"


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=20))
def test_no_two_tests_share_a_name_and_each_keeps_its_own(tests: list[tuple[str, str]]) -> None:
    ids = [(f"{suite}.{test}", test) for suite, test in tests]
    names = FileNames()
    found = {test_id: names.of(test_id, test) for test_id, test in ids}
    assert len(set(found.values())) == len(found)
    assert all(name == safe_name(name) for name in found.values())
    again = FileNames()
    assert {test_id: again.of(test_id, test) for test_id, test in ids} == found
