"""Conversations with real processes: an agent with a service of the test's own, a controller's end as it is."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.remote.link import AgentLink

PROJECT = Path(__file__).parents[3]
PROGRAM = """
import os, pathlib, subprocess, sys, time
from resources.libraries.python.testbed.agent import process
from resources.libraries.python.errors import *

def facts(role):
    print("a driver prints")
    os.write(1, b"a program writes")
    subprocess.run(["echo", "so does a child"], check=True)
    return {"role": role, "stdin": sys.stdin.read() if role == "switch" else ""}

def start(role):
    if role == "switch":
        put("work", "")
        time.sleep(60)
    if role == "functions":
        raise CommandFailed(["ip", "link"], 1, "no such link")
    if role == "generator":
        raise KeyError(role)

def answer(name, value):
    role, _, method = name.partition(".")
    return {"facts": facts, "start": start, "problems": lambda role: trace}[method](role)

def put(name, text):
    (folder / "new").write_text(text)
    (folder / "new").rename(folder / name)

folder, trace = pathlib.Path(sys.argv[2]), []
put("pid", str(os.getpid()))
class Service:
    def answer(self, name, value):
        try:
            return answer(name, value)
        except process.Interrupted:
            trace.append(f"{name} was interrupted")
            raise

source, sink = process.take_streams()
process.log_to_stderr()
why = process.Conversation(source, sink, float(sys.argv[1])).serve(Service().answer)
put("end", " | ".join([*trace, why]))
"""


class Agent:
    """A process with the agent's side of a conversation."""

    def __init__(self, folder: Path, silence_s: float = 20.0) -> None:
        self._folder = folder
        self.connection = LocalConnection("DUT1", "no")
        self.channel = self.connection.open(
            [sys.executable, "-c", PROGRAM, str(silence_s), str(folder)], environment={"PYTHONPATH": str(PROJECT)}
        )

    @property
    def pid(self) -> int:
        return int(self.wait_for("pid"))

    def end(self) -> str:
        """Why it has ended, and what was interrupted before."""
        return self.wait_for("end")

    def wait_for(self, name: str, within_s: float = 120.0) -> str:
        """What it has put into its folder under a name."""
        file = self._folder / name
        wait_until(f"{name} of the agent", lambda: "" if file.exists() else "nothing", within_s, pause_s=0.01)
        return file.read_text(encoding="utf-8")


@contextmanager
def running(folder: Path, silence_s: float = 20.0) -> Iterator[Agent]:
    """An agent that nobody talks to yet."""
    agent = Agent(folder, silence_s)
    try:
        yield agent
    finally:
        agent.channel.close()
        agent.connection.close()


@contextmanager
def linked(folder: Path, agent_silence_s: float = 20.0, silence_s: float = 20.0) -> Iterator[tuple[Agent, AgentLink]]:
    """An agent and the controller's end of the conversation with it."""
    with running(folder, agent_silence_s) as agent:
        agent.wait_for("pid")  # a slow start is no silence
        link = AgentLink("DUT1", agent.channel, silence_s)
        try:
            yield agent, link
        finally:
            link.close()
