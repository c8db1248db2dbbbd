*** Settings ***
Documentation     What an event at one network function costs every other service instance: under a steady load one is
...               killed, restarted, paused, added, reconfigured, or moved to another CPU. Every packet is numbered.
...
...               Events are described in `specs/outage/`. Choose the load with `-v SET:share=0.5` (of NDR) or
...               `-v SET:rate_pps=20000` (of each instance and direction); any other key is set in the same way.

Library           resources.libraries.python.studies.shared.StudyLibrary    outage

Suite Setup       Open Testbed
Suite Teardown    Close Testbed
Test Teardown     Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Template     Run Study

Test Tags         OUTAGE


*** Test Cases ***    SPECIFICATION
Routers
    [Documentation]    All events of a router, and a restart of the vSwitch.
    [Tags]    ROUTERS
    outage/routers.yaml

Firewalls
    [Documentation]    A rule set is loaded anew.
    [Tags]    FIREWALLS
    outage/firewalls.yaml

Chains
    [Documentation]    One network function of a chain, and the whole chain at once.
    [Tags]    CHAINS
    outage/chains.yaml
