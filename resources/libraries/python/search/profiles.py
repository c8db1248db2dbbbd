"""Search profiles by name: `csit` measures like FD.io CSIT, `quick` looks around on a small machine."""

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.goal import Goal, SearchProfile

NDR = "NDR"
PDR = "PDR"

CSIT = SearchProfile(
    name="csit",
    goals=(Goal(name=NDR, loss_ratio=0.0), Goal(name=PDR, loss_ratio=0.005)),
    duration_max_s=1200.0,
    latency_duration_s=5.0,
    latency_probe_pps=1000.0,
    mrr_trials=10,
    mrr_duration_s=1.0,
)
"""FD.io CSIT's settings (TrafficGenerator.perform_mlr_search, performance_utils.robot): trials of 1 s, a load decided
by 21 s of them, bounds 0.5 % apart, 1200 s at most; MRR of 10 trials of 1 s. Latency trials of 5 s: CSIT's stream of
9000 probes per second is one per direction, ours is one per direction *and instance*, so each may be thinner."""

_QUICK = {
    "relative_width": 0.02,
    "initial_trial_duration_s": 0.3,
    "final_trial_duration_s": 0.3,
    "duration_sum_s": 8.0,
}
QUICK = SearchProfile(
    name="quick",
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
(`csit`: 0.6 % at 2 %). Rare losses are overlooked more often, and a system that runs in two bands may be reported in
either. The time limit is kept before each trial, so a search stays below a minute, and then says that its bounds are
not close enough.
"""

_PROFILES = {each.name: each for each in (CSIT, QUICK)}


def profile(name: str) -> SearchProfile:
    """The profile of that name.

    Raises:
        ConfigError: There is none.
    """
    if name not in _PROFILES:
        raise ConfigError(f"no search profile '{name}'; there are {', '.join(_PROFILES)}")
    return _PROFILES[name]
