*** Settings ***
Documentation       Network functions alone with simultaneous multithreading (SMT) on and off, and what SMT adds to the
...                 break-point and to the saturated throughput.
...
...                 SMT is switched off for the second test of each pair and on again when its service is removed. A
...                 machine without SMT skips all of them.
Resource            ../../resources/libraries/robot/characterization.resource
Suite Setup         Open Testbed
Suite Teardown      Close Testbed
Test Teardown       Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Tags           SMT    1C


*** Test Cases ***
Router With SMT
    [Documentation]    Two data threads on a core.
    [Tags]    ROUTER
    [Template]    Service Should Be Profiled
    router    ${ROUTER}    1c    ${FRAME}    smt=on

Router Without SMT
    [Documentation]    One data thread on a core.
    [Tags]    ROUTER
    [Template]    SMT Should Be Compared
    router    ${ROUTER}    1c    ${FRAME}

Firewall With SMT
    [Documentation]    Two data threads on a core.
    [Tags]    FIREWALL
    [Template]    Service Should Be Profiled
    firewall    ${FIREWALL}    1c    ${FRAME}    smt=on

Firewall Without SMT
    [Documentation]    One data thread on a core.
    [Tags]    FIREWALL
    [Template]    SMT Should Be Compared
    firewall    ${FIREWALL}    1c    ${FRAME}
