"""Open vSwitch with its userspace datapath, in daemons of its own."""
