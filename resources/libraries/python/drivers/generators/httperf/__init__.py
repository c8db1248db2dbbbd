"""httperf, a client that opens TCP connections at a given rate, against nginx: the peer for connection rates by TCP.

Seen on httperf 0.9.0 of Debian:

- `--rate` opens connections by a schedule and catches up after a stall; each has one request, after whose answer the
  server closes it. So `TIME_WAIT` stays at the server, and the client's ports are free again.
- It waits by `select`, which takes 1024 descriptors: with about 1020 open connections the next one fails at once
  (`fd-unavail`). That happens where connections take longer, or where the client itself is late.
- A connection that has no answer within `--timeout` is counted as `client-timo`. The kernel repeats a SYN after 1 s.
- Where the kernel chooses ports, it takes every other one of its range in order: a connection has a 5-tuple of its
  own as long as a trial has fewer connections than half of the range has ports.
- The report is text; counts and durations in it are of all connections.
"""
