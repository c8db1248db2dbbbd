"""The built-in traffic generator: what all ways of sending share.

`driver.BuiltInGenerator` is the driver; it starts `worker`, a process inside the generator's network namespace, and the
two speak the lines of `wire`. A worker sends by XDP live frames (`xdp`) or out of a TX ring (`ring`), and counts by the
kernel's counters either way. Nothing the worker imports needs more than the standard library, numpy and hdrh, so that
it can run on another node. This file imports nothing for the same reason.
"""
