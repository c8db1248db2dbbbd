"""Sending by XDP live frames: the kernel runs a small program for each frame, which paces, counts and addresses it.

`assembler` writes instructions, `program` and `making` are the program, `memory` is what it shares with us, `bpf` the
system calls, `sender` runs a trial, `machine` finds out whether this machine can do it. See docs/adr/0010.
"""
