"""The built-in traffic generator of the local world: frames out of `TPACKET_V2` rings, counts out of the kernel.

`driver.RingGenerator` is the driver; it starts `worker`, a process inside the generator's network namespace, and the
two speak the lines of `wire`. Nothing the worker imports needs more than the standard library, numpy and hdrh, so that
it can run on another node. This file imports nothing for the same reason.
"""
