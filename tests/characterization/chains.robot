*** Settings ***
Documentation       Chains of network functions that perform unlike their parts alone: those that policies allow are
...                 deployed, loaded and sampled each second, and compared with each other.
...
...                 Network functions, policies and workloads are described in `specs/chains/`; `./csit chains` shows
...                 the number of chains. Choose the seconds of each workload with `-v SET:duration_s=10`,
...                 another generator with `-v GENERATOR:iperf3`, call stacks of suspects with `-v STACKS:10`.
Library             resources.libraries.python.studies.shared.StudyLibrary    chains
Suite Setup         Open Testbed
Suite Teardown      Close Testbed
Test Teardown       Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Tags           CHAINS


*** Test Cases ***
Four Network Functions With A Planted Fault
    [Documentation]    One of them is throttled in one order only.
    [Template]    Planted Fault Should Be Found
    chains/four-vnfs.yaml


*** Keywords ***
Planted Fault Should Be Found
    [Documentation]    Rank the chains that stand out; those with planted faults must be the first suspects.
    [Arguments]    ${specification: str}
    Run Study    ${specification}
    Study Should Rank Planted Faults First
