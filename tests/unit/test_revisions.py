"""Comparing revisions: what counts as a difference, and what is noise."""

from tests.revisions import differences, named

FIRST = {"a": ["one", "began at 10:00", "two"], "b": ["same"]}
SECOND = {"a": ["one", "began at 10:05", "two"], "b": ["same"]}


def test_lines_that_differ_between_two_runs_of_a_revision_are_noise() -> None:
    now = {"a": ["one", "began at 11:30", "two"], "b": ["same"]}
    assert list(differences(FIRST, SECOND, now)) == []


def test_other_lines_are_differences_with_the_noise_beside_them() -> None:
    now = {"a": ["one", "began at 11:30", "three"], "b": ["same"]}
    (found,) = differences(FIRST, SECOND, now)
    assert found[:2] == ["--- before/a", "+++ now/a"]
    assert "-two" in found and "+three" in found


def test_added_and_removed_lines_and_outputs_are_differences() -> None:
    longer = {"a": [*FIRST["a"], "four"], "b": ["same"]}
    shorter = {"a": FIRST["a"][:2], "b": ["same"]}
    assert len(list(differences(FIRST, SECOND, longer))) == 1
    assert len(list(differences(FIRST, SECOND, shorter))) == 1
    missing = {"a": FIRST["a"]}
    assert [found[0] for found in differences(FIRST, SECOND, missing)] == ["--- before/b"]
    more = {**FIRST, "c": ["new"]}
    assert [found[1] for found in differences(FIRST, SECOND, more)] == ["+++ now/c"]


def test_times_and_digests_are_no_differences_and_files_named_by_them_are_matched_by_text() -> None:
    before = [("t-0a1b2c3d.html", "b 2026-11-24T03:42:51.550+00:00"), ("t-9e8d7c6b.html", 'a "duration": 0.008')]
    after = [("t-11aa22bb.html", 'a "duration": 0.015'), ("t-33cc44dd.html", "b 2026-11-25 03:46")]
    assert (
        named(before)
        == named(after)
        == {
            "t-DIGEST.html 1": ['a "duration": DURATION'],
            "t-DIGEST.html 2": ["b TIME"],
        }
    )
    assert named([("a", "12345678 abcdefab cafe123")]) == {"a": ["12345678 abcdefab DIGEST"]}, "numbers and words stay"
    digits = [("a", 'href="#test-csc-17105598" Deployment: 15.4 µs. Removal: 9.75 ms.')]
    assert named(digits) == {"a": ['href="#test-csc-DIGEST" Deployment: DURATION. Removal: DURATION.']}
    assert named([("a-12345678.html", '6.0123456e-05 "cpu_s": 6.01e-05')]) == {
        "a-DIGEST.html": ['6.0123456e-05 "cpu_s": DURATION']
    }
