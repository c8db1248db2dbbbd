"""Search profiles by name.

`ladder` asks what FD.io CSIT asks by a search of our own on a fixed ladder of loads, `reference` searches as CSIT does
as well; `quick` looks around on a small machine; `rfc2544` and `soak` ask other questions.
"""

from typing import Any

from pydantic import ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import first_error
from resources.libraries.python.model.request.goal import Algorithm, Goal, SearchProfile

NDR = "NDR"
PDR = "PDR"
SOAK_GOAL = "SOAK"

LADDER = SearchProfile(
    name="ladder",
    algorithm=Algorithm.LADDER,
    goals=(Goal(name=NDR, loss_ratio=0.0), Goal(name=PDR, loss_ratio=0.005)),
    duration_max_s=1200.0,
    latency_duration_s=5.0,
    latency_probe_pps=1000.0,
    mrr_trials=10,
    mrr_duration_s=1.0,
)
"""FD.io CSIT's settings (TrafficGenerator.perform_mlr_search, performance_utils.robot): trials of 1 s, a load decided
by 21 s of them, bounds 0.5 % apart, 1200 s at most; MRR of 10 trials of 1 s. Latency trials of 5 s: CSIT's stream of
9000 probes per second is one per direction, ours is one per direction *and instance*, so each may be thinner. Loads are
chosen by our own search, see docs/search.md."""

REFERENCE = LADDER.model_copy(update={"name": "reference", "algorithm": Algorithm.MLRSEARCH})
"""The same goals searched by plain MLRsearch."""

_QUICK = {
    "relative_width": 0.02,
    "initial_trial_duration_s": 0.3,
    "final_trial_duration_s": 0.3,
    "duration_sum_s": 8.0,
}
QUICK = SearchProfile(
    name="quick",
    algorithm=Algorithm.LADDER,
    goals=(Goal(name=NDR, loss_ratio=0.0, **_QUICK), Goal(name=PDR, loss_ratio=0.005, **_QUICK)),
    duration_max_s=58.0,
    latency_duration_s=2.0,
    latency_probe_pps=250.0,
    mrr_trials=3,
    mrr_duration_s=0.5,
)
"""For `./csit local`: the same loss and exceed ratios, so the same question, with less evidence for the answer.

Bounds are 2 % apart instead of 0.5 %, trials take 0.3 s instead of 1 s, and 8 s of them decide a load instead of 21 s.
In simulations with 80 ms overhead a search takes 20 s where capacity varies by 3 % from trial to trial, 30 s at 8 %,
and 40 s at 8 % with a stall every second; NDR then varies by 1, 2 and 7 % from search to search, PDR by 1, 2 and 2 %
(`ladder`: 0.6 % at 2 %). Rare losses are overlooked more often, and a system that runs in two bands may be reported in
either. The time limit is kept before each trial, so a search stays below a minute, and then says that its bounds are
not close enough.
"""

_FULL_TRIAL = {
    "exceed_ratio": 0.0,
    "initial_trial_duration_s": 10.0,
    "final_trial_duration_s": 60.0,
    "duration_sum_s": 60.0,
}
RFC2544 = LADDER.model_copy(
    update={
        "name": "rfc2544",
        "algorithm": Algorithm.RFC2544,
        "goals": tuple(goal.model_copy(update=_FULL_TRIAL) for goal in LADDER.goals),
        "duration_max_s": 3600.0,
    }
)
"""Trials of 60 s decide, 10 s on the way; bounds 0.5 % apart. NDR is RFC 2544's throughput."""

SOAK = LADDER.model_copy(
    update={
        "name": "soak",
        "algorithm": Algorithm.PLR,
        "goals": (
            Goal(
                name=SOAK_GOAL,
                loss_ratio=1e-7,
                initial_trial_duration_s=5.1,
                final_trial_duration_s=5.1,
                duration_sum_s=1800.0,
            ),
        ),
        "duration_max_s": 1800.0,
    }
)
"""PLRsearch: the load with a mean loss ratio of 1e-7, estimated within half an hour, with its deviation. CSIT's
settings: the first trial takes 5.1 s, each further one 0.1 s more."""

_PROFILES = {each.name: each for each in (LADDER, QUICK, REFERENCE, RFC2544, SOAK)}

_SETTINGS = {
    "width": ("relative_width",),
    "loss": ("loss_ratio",),
    "trial": ("final_trial_duration_s",),
    "sum": ("duration_sum_s",),
}
"""Settings after a profile's name: fields of all its goals."""
_OF_ALL = {
    "time": "duration_max_s",
    "latency": "latency_duration_s",
    "mrr": "mrr_trials",
    "mrr_trial": "mrr_duration_s",
}
"""The same: fields of the profile itself."""


def profile(text: str) -> SearchProfile:
    """The profile of a name, with other settings where they are said: `rfc2544,width=0.001`, `soak,loss=1e-6,time=600`.

    Its name is then the whole text, so that its results are not taken for those of the plain profile.

    Raises:
        ConfigError: There is none of that name, or a setting is unknown or does not fit.
    """
    name, *settings = text.split(",")
    if name not in _PROFILES:
        raise ConfigError(f"no search profile '{name}'; choose from {', '.join(_PROFILES)}")
    found = _PROFILES[name]
    for setting in settings:
        found = _with_setting(found, setting)
    return found.model_copy(update={"name": text})


def _with_setting(found: SearchProfile, setting: str) -> SearchProfile:
    key, _, value = setting.partition("=")
    if key in _OF_ALL:
        return _checked(found, setting, {**found.model_dump(), _OF_ALL[key]: value})
    if key not in _SETTINGS:
        known = ", ".join((*_SETTINGS, *_OF_ALL))
        raise ConfigError(f"search {found.name}: unknown setting '{setting}'; choose from {known}")
    if key == "loss" and len(found.goals) > 1:
        raise ConfigError(f"search {found.name}: '{setting}' fits a profile with one goal, such as soak")
    goals = [{**goal.model_dump(), **dict.fromkeys(_SETTINGS[key], value)} for goal in found.goals]
    if key == "trial":
        # Shorter trials on the way stay as they are; where one trial decides, it is still one.
        for goal, before in zip(goals, found.goals, strict=True):
            whole = before.duration_sum_s == before.final_trial_duration_s
            goal["duration_sum_s"] = value if whole else before.duration_sum_s
            shorter = before.initial_trial_duration_s < before.final_trial_duration_s
            goal["initial_trial_duration_s"] = before.initial_trial_duration_s if shorter else value
    return _checked(found, setting, {**found.model_dump(), "goals": goals})


def _checked(found: SearchProfile, setting: str, fields: dict[str, Any]) -> SearchProfile:
    try:
        return SearchProfile.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(f"search {found.name}: '{setting}' does not fit: {first_error(error)[1]}") from error
