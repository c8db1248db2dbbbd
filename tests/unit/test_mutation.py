"""Mutation testing: which modules and tests it takes, and how it counts; what mutmut does is mutmut's."""

import json
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.mutation import (
    ROOT,
    Sampling,
    Score,
    chosen,
    configured,
    mutants,
    pytest_collection_modifyitems,
    read_settings,
    scores,
    total,
)

TEXT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
ROOMS = read_settings(TEXT).tests
KNEE = "resources/libraries/python/studies/sweep/analysis/saturation.py"


def test_all_folders_of_modules_and_tests_are_there() -> None:
    for modules, tests in ROOMS.items():
        assert (ROOT / modules).exists(), modules
        assert all((ROOT / path).exists() for path in tests), tests


def test_paths_are_sorted_into_their_folders_and_taken_once() -> None:
    profiling, behaviour = (
        "resources/libraries/python/studies/sweep/analysis",
        "resources/libraries/python/studies/chains/analysis",
    )
    found = chosen([KNEE, f"{behaviour}/points.py", profiling], ROOMS)
    assert set(found) == {profiling, behaviour}
    assert found[behaviour] == [f"{behaviour}/points.py"]
    assert found[profiling].count(KNEE) == 1
    assert len(found[profiling]) == len(list((ROOT / profiling).glob("*.py")))
    assert chosen([str(ROOT / KNEE)], ROOMS) == {profiling: [KNEE]}
    assert set(chosen([], ROOMS)) == set(ROOMS)


def test_a_module_with_tests_of_its_own_leaves_its_folder(tmp_path: Path) -> None:
    for name in ("slow.py", "quick.py", "inner/slow.py"):
        (tmp_path / "search" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "search" / name).touch()
    rooms = ["search", "search/slow.py"]
    apart = {"search": ["search/inner/slow.py", "search/quick.py"], "search/slow.py": ["search/slow.py"]}
    assert chosen(["search"], rooms, tmp_path) == chosen([], rooms, tmp_path) == apart
    assert chosen(["search/slow.py"], rooms, tmp_path) == {"search/slow.py": ["search/slow.py"]}


@pytest.mark.parametrize(
    "path", ["resources/libraries/python/drivers", "resources", "tests", "/etc", "../elsewhere.py"]
)
def test_modules_that_touch_a_machine_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match=f"{path} is in none of the folders of pure modules: resources/libraries"):
        chosen([path], ROOMS)


def test_a_module_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"knees\.py: no such Python module"):
        chosen([KNEE.replace("saturation", "knees")], ROOMS)


def test_the_choice_is_added_to_the_settings() -> None:
    settings = tomllib.loads(configured(TEXT, [KNEE], ["tests/unit/studies/sweep"]))["tool"]["mutmut"]
    assert settings["only_mutate"] == [KNEE]
    assert settings["pytest_add_cli_args_test_selection"] == ["tests/unit/studies/sweep"]
    assert settings.items() > tomllib.loads(TEXT)["tool"]["mutmut"].items()
    with pytest.raises(ValueError, match="no section"):
        configured("", [KNEE], ["tests/unit/studies/sweep"])


def test_a_score_counts_what_was_not_noticed_or_not_run(tmp_path: Path) -> None:
    codes = {"killed": 1, "timeout": 36, "survived": 0, "no test": 33, "skipped": 34, "not run": None}
    (tmp_path / "mutants").mkdir()
    (tmp_path / "mutants" / "a.py.meta").write_text(json.dumps({"exit_code_by_key": codes}), encoding="utf-8")
    (tmp_path / "empty.py").write_text("CONSTANT = 1\n", encoding="utf-8")
    (tmp_path / "skipped.py").write_text("def function() -> None: ...\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"skipped\.py: mutmut made no mutants"):
        list(scores(tmp_path, ["skipped.py"]))
    one, none = scores(tmp_path, ["a.py", "empty.py"])
    assert one.mutants == 5
    assert one.percent == pytest.approx(40)
    assert one.unnoticed == {"survived": "survived", "no test": "no test runs it", "not run": "not tested"}
    assert (none.mutants, none.percent) == (0, 100)


def test_a_sample_is_repeatable_and_depends_on_its_seed() -> None:
    every = [f"mutant {number}" for number in range(100)]
    sample = Sampling(10, seed=3).of(every)
    assert sample == Sampling(10, seed=3).of(every)
    assert sample == sorted(set(sample), key=every.index)
    assert len(sample) == 10
    assert sample != Sampling(10, seed=4).of(every)
    assert [name.replace("mutant", "moved") for name in sample] == Sampling(10, seed=3).of(
        [name.replace("mutant", "moved") for name in every]
    )


@pytest.mark.parametrize("size", [None, 5, 6])
def test_a_sample_of_all_is_all(size: int | None) -> None:
    assert Sampling(size).of("abcde") == list("abcde")


def test_each_mutant_is_sampled_as_often_as_the_others() -> None:
    drawn = [item for seed in range(2000) for item in Sampling(3, seed).of(range(10))]
    assert all(500 < drawn.count(item) < 700 for item in range(10))


@pytest.mark.slow
def test_mutants_have_the_names_that_mutmut_uses() -> None:
    names = mutants(KNEE)
    assert len(names) == len(set(names)) > 20
    assert all(name.startswith(KNEE.replace("/", ".").removesuffix(".py") + ".x") for name in names)


def test_the_score_of_a_sample_has_a_binomial_interval(tmp_path: Path) -> None:
    codes = {f"m{number}": number % 2 for number in range(40)}
    (tmp_path / "mutants").mkdir()
    (tmp_path / "mutants" / "a.py.meta").write_text(json.dumps({"exit_code_by_key": codes}), encoding="utf-8")
    sample = [*(f"m{number}" for number in range(1, 17, 2)), "m0", "m2", "of another module"]
    (score,) = scores(tmp_path, ["a.py"], sample)
    assert (score.mutants, score.of, set(score.unnoticed)) == (10, 40, {"m0", "m2"})
    assert score.percent == pytest.approx(80)
    assert score.interval == pytest.approx((49.02, 94.33), abs=0.01)  # Wilson, 8 of 10
    assert str(score) == " 80.0 %     8 of   10 mutants noticed  [49.0, 94.3] of 40  a.py"


def test_the_score_of_all_mutants_has_no_interval() -> None:
    score = Score("a.py", 4, {"x": "survived"}, 4)
    assert score.interval == (75, 75)
    assert str(score) == " 75.0 %     3 of    4 mutants noticed  a.py"


def test_the_total_counts_each_tested_mutant_once() -> None:
    every = total([Score("a.py", 10, {"x": "survived"}, 10), Score("b.py", 30, {}, 90), Score("c.py", 0, {}, 0)])
    assert (every.mutants, every.of, every.percent) == (40, 100, 97.5)
    assert every.interval[0] < 97.5 < every.interval[1]


@pytest.mark.slow
def test_no_test_of_a_mutant_takes_what_was_kept_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["of the original", "of the mutant"])

    @cache
    def planned() -> str:
        return next(answers)

    monkeypatch.chdir(tmp_path)
    assert planned() == planned() == "of the original"
    pytest_collection_modifyitems([])
    assert planned() == "of the mutant"
