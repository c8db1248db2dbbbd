"""XDP live frames: the kernel runs a small program for each frame, which paces, counts and addresses it.

`live_frames.bpf.c` has the programs that send, `bpf` loads them, `memory` is what they share with the worker, `sender`
runs a trial. `receiver.bpf.c` counts numbered frames where they arrive, and `receiver` returns what it counted. See
docs/adr/0010 and 0037.
"""
