"""Sampler and tracer as a study of chains uses them, switched on and off while packets flow."""

from collections.abc import Collection
from contextlib import ExitStack

from csit_utils.bench.nf_under_load import ServiceUnderLoad
from resources.libraries.python.drivers.probes.sampler.features import INTERVAL_S, LinuxFeatureSampler
from resources.libraries.python.drivers.probes.tracer.driver import PERIOD_S, KernelTracer
from resources.libraries.python.errors import CsitError

SAMPLER, TRACER = "sampler", "tracer"


class Watchers:
    """Both, once or several times as much: so many readings and windows in a second."""

    def __init__(self, here: ServiceUnderLoad, held: ExitStack, times: int) -> None:
        """Start the tracer, and pause it: its programs would take long to start under load.

        Raises:
            CsitError: It cannot trace here.
        """
        self._sampler = LinuxFeatureSampler(here.plan, here.fabric, here.aside, interval_s=INTERVAL_S / times)
        self._tracer = KernelTracer(lambda: here.threads, here.lock, period_s=PERIOD_S / times, cpu=here.aside)
        self._cpu_s = dict.fromkeys((SAMPLER, TRACER), 0.0)
        self._watched_s = dict.fromkeys((SAMPLER, TRACER), 0.0)
        held.callback(self._tracer.stop)
        self._tracer.start()
        if "window" not in self._tracer.facts():
            raise CsitError(f"the tracer does not trace: {self._tracer.facts()}")
        self._tracer.pause()

    def switch(self, who: Collection[str], held: ExitStack) -> None:
        """Have some of them watch until the stack is left."""
        if TRACER in who:
            held.callback(self._tracer.pause)
            self._tracer.resume()
        if SAMPLER in who:
            held.callback(self._end_sampling)
            self._sampler.start()

    def _end_sampling(self) -> None:
        if not self._sampler.stop():
            raise CsitError(f"the sampler read nothing: {self._sampler.facts()}")
        self._cpu_s[SAMPLER] += self._sampler.cpu_s

    def watched(self, who: Collection[str], lasted_s: float) -> None:
        """Take note that some of them have watched so many seconds."""
        for name in who:
            self._watched_s[name] += lasted_s

    def end(self) -> dict[str, float]:
        """End; return the processor time of each while it watched, as a share of one CPU."""
        self._tracer.stop()
        self._cpu_s[TRACER] = self._tracer.cpu_s
        return {name: self._cpu_s[name] / self._watched_s[name] for name in self._cpu_s}
