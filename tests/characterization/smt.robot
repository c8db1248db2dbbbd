*** Settings ***
Documentation       A network function alone with simultaneous multithreading (SMT) on and off, and what SMT adds to the
...                 break-point and to the saturated throughput.
...
...                 SMT is switched off for the second test, and on again when its service is removed. Both are skipped
...                 on a machine without SMT.
Resource            ../../resources/libraries/robot/characterization.resource
Suite Setup         Open Testbed
Suite Teardown      Close Testbed
Test Teardown       Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Tags           SMT    FIREWALL    1C


*** Test Cases ***
Service With SMT
    [Documentation]    Two data threads on a core.
    [Template]    Service Should Be Profiled
    firewall    ${FIREWALL}    1c    ${FRAME}    smt=on

Service Without SMT
    [Documentation]    One data thread on a core.
    [Template]    Service Should Be Profiled
    firewall    ${FIREWALL}    1c    ${FRAME}    smt=off    compare_smt=on
