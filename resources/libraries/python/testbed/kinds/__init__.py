"""The three kinds of testbed: local, simulated, lab; and the drivers of one machine."""
