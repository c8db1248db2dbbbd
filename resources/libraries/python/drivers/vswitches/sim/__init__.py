"""The simulated vSwitch."""
