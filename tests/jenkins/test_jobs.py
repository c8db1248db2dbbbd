"""The jobs as Jenkins would get them: rendered by Jenkins Job Builder, compared with the pipelines that they start."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from defusedxml import ElementTree

from csit_utils.commands.runs.command_line import spread
from resources.libraries.python.model.load import load_topology

ROOT = Path(__file__).parents[2]
JENKINS = ROOT / "jenkins"
BUILDER = Path(os.environ.get("JENKINS_JOBS", ROOT / ".tox" / "jenkins" / "bin" / "jenkins-jobs"))
JOBS = {
    "density": "density.Jenkinsfile",
    "density-patch": "patch.Jenkinsfile",
    "density-bisect": "bisect.Jenkinsfile",
    "density-nightly-local": "nightly.Jenkinsfile",
    "density-nightly-sim": "nightly.Jenkinsfile",
}


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert BUILDER.exists(), "Jenkins Job Builder is installed by ./csit test -e jenkins"
    folder = tmp_path_factory.mktemp("jobs")
    command = [BUILDER, "--conf", JENKINS / "jobs" / "jenkins_jobs.ini", "test", "--config-xml"]
    argv, env = (
        [*command, "-o", folder / "xml", JENKINS / "jobs"],
        {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
    )
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "xml"


def config(rendered: Path, name: str) -> Any:
    return ElementTree.parse(rendered / name / "config.xml").getroot()


def parameters(job: Any) -> dict[str, tuple[str, str]]:
    found = {}
    for one in job.find("properties/hudson.model.ParametersDefinitionProperty/parameterDefinitions"):
        default = one.findtext("defaultValue") or ""
        found[one.findtext("name")] = (default, one.findtext("description"))
    return found


def declared(pipeline: str) -> dict[str, tuple[str, str]]:
    """The same of a pipeline's own `parameters` block."""
    text = (JENKINS / pipeline).read_text(encoding="utf-8")
    strings = re.findall(r"string\(name: '(\w+)', defaultValue: '([^']*)', description: '([^']*)'\)", text)
    assert len(strings) == len(re.findall(r"\w+\(name: ", text))
    return {name: (default, said) for name, default, said in strings}


def test_there_is_a_job_for_each_purpose_and_a_view_for_each_job(rendered: Path) -> None:
    views = {path.name for path in rendered.iterdir()} - set(JOBS)
    assert {path.name for path in rendered.iterdir()} >= set(JOBS)
    assert views == {"Density nightly", "Density on demand"}
    nightly = config(rendered, "Density nightly").findtext("includeRegex")
    named = [each.text for each in config(rendered, "Density on demand").iter("string")]
    for name in JOBS:
        assert (re.fullmatch(nightly, name) is not None) != (name in named), name


@pytest.mark.parametrize("name", JOBS)
def test_a_job_starts_a_pipeline_that_exists_with_its_clock_and_concurrency(rendered: Path, name: str) -> None:
    job = config(rendered, name)
    script = job.findtext("definition/scriptPath")
    assert script == f"jenkins/{JOBS[name]}" and job.findtext("definition/sandbox") == "true"
    text = (ROOT / script).read_text(encoding="utf-8")
    assert job.find(".//hudson.plugins.git.extensions.impl.WipeWorkspace") is None
    discarder = job.find("properties/jenkins.model.BuildDiscarderProperty/strategy")
    assert int(discarder.findtext("daysToKeep")) > 0
    assert 0 < int(discarder.findtext("artifactNumToKeep")) < int(discarder.findtext("numToKeep"))
    assert [each.text for each in job.iter("spec")] == re.findall(r"cron\('([^']*)'\)", text)
    alone = next(job.iter("org.jenkinsci.plugins.workflow.job.properties.DisableConcurrentBuildsJobProperty"), None)
    assert (alone is not None) == ("disableConcurrentBuilds()" in text)


@pytest.mark.parametrize("name", JOBS)
def test_parameters_are_those_of_the_pipeline_and_a_build_can_measure_their_defaults(
    rendered: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    found = parameters(config(rendered, name))
    assert name.startswith("density-nightly") or found == declared(JOBS[name])
    for topology in found["TESTBEDS"][0].split():
        assert topology.startswith("topologies/")
        load_topology(ROOT / topology)
    assert found["HOURS"][0].isdigit()
    if name != "density-bisect":
        words = spread(["robot", "--args", found["ARGS"][0]])
        assert any(word.startswith("tests/") for word in words)
        assert {"TESTBEDS", "ARGS", "VPP", "HOURS", "WAIT", "REASON"} <= found.keys()


def test_no_job_has_a_secret(rendered: Path) -> None:
    for path in [*rendered.rglob("*.xml"), *(JENKINS / "jobs").iterdir()]:
        text = path.read_text(encoding="utf-8").lower()
        assert not re.search(r"passw(or)?d *[=:>] *\S|token *[=:>]|credentialsid|private key", text), path.name
