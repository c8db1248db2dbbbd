"""Answers of container engines, from stand-ins of their programs."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.containers import container_facts


@pytest.mark.parametrize(
    ("script", "version", "problem"),
    [
        ('echo \'{"Client": {"Version": "5.4.2"}}\'', "5.4.2", None),
        ("echo broken storage >&2; exit 125", None, "prints no version (status 125): broken storage"),
        ("echo hello", None, "prints no version (status 0): nothing on stderr"),
        ("exec sleep 60", None, "does not answer within 0 s"),
    ],
)
def test_podman_prints_its_version(
    script: str, version: str | None, problem: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "podman"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(container_facts, "_PATH", f"{tmp_path}:/usr/bin:/bin")
    if "sleep" in script:
        monkeypatch.setattr(container_facts, "_WITHIN_S", 0.2)
    assert container_facts._podman() == {"there": True, "version": version, "problem": problem}
    assert container_facts.answer({"docker": str(tmp_path / "none")})["runc"]["problem"] is None
