*** Settings ***
Documentation       Network functions alone, under loads from low to well beyond their capacity:
...                 throughput, loss, delay and CPU every second, the saturation point, and functions of the
...                 input rate.
...
...                 Flavors are data cores (1c, 2c, 3c and so on). A flavor that does not fit on the testbed is skipped.
Resource            ../../resources/libraries/robot/characterization.resource
Suite Setup         Open Testbed
Suite Teardown      Close Testbed
Test Template       Service Should Be Profiled
Test Teardown       Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Tags           SWEEP


*** Test Cases ***    NAME             KINDS          SIZE    FRAME
Firewall
    [Documentation]    Also a part in the suite of chains; not measured again if that ran before.
    [Tags]    FIREWALL    1C
    firewall    ${FIREWALL}    1c    ${FRAME}    once=on

Firewall With 2 Cores
    [Tags]    FIREWALL    2C
    firewall-2c    ${FIREWALL}    2c    ${FRAME}

Firewall With 3 Cores
    [Tags]    FIREWALL    3C
    firewall-3c    ${FIREWALL}    3c    ${FRAME}

Firewall With 512B
    [Tags]    FIREWALL    1C    512B
    firewall    ${FIREWALL}    1c    512B

Firewall With 1518B
    [Tags]    FIREWALL    1C    1518B
    firewall    ${FIREWALL}    1c    1518B

Address Translation
    [Tags]    NAT    1C
    nat    ${NAT}    1c    ${FRAME}
