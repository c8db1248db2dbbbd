"""TRex, by its stateless API.

`driver.TrexGenerator` starts two processes in the generator's network namespace: `server`, the program that sends and
counts, and `client`, a Python that speaks to it with the client library out of the same folder, so that their versions
always match. Driver and client exchange the lines of `wire`. What the client runs is `stand_alone.py`, which imports
nothing of this project: TRex's library puts its own old copies of common packages in the place of others.
"""
