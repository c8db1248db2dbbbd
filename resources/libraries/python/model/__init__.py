"""Frozen types, and the loading of files into them. No other I/O."""
