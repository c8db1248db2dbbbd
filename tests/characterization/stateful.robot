*** Settings ***
Documentation     Stateful density after RFC 9693: how many new connections per second NATs and firewalls take, how
...               many they tear down, and how many their tables hold, of each service instance and in sum.
...
...               Cells are described in `specs/stateful/`. Choose the frame with `-v SET:frame=512B` and the search
...               of the rate with `-v SET:search=quick,width=0.05`; any other key is set in the same way.

Library           resources.libraries.python.studies.shared.StudyLibrary    stateful

Suite Setup       Open Testbed
Suite Teardown    Close Testbed
Test Teardown     Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Template     Run Study

Test Tags         STATEFUL


*** Test Cases ***    SPECIFICATION
NAT
    [Documentation]    Source addresses are translated.
    [Tags]    NAT
    stateful/nat.yaml

Firewall
    [Documentation]    The first packet of each connection is looked up in the rules.
    [Tags]    FIREWALL
    stateful/firewall.yaml
