*** Settings ***
Documentation       NDR and PDR of VM service chains, then latency at 0, 10, 50 and 90 % of PDR.
...
...                 A chain is a snake: every hop from NF to NF crosses the vSwitch.
Resource            ../../resources/libraries/robot/density.resource
Suite Setup         Open Testbed
Suite Teardown      Close Testbed
Test Template       Ndr And Pdr Should Be Found
Test Teardown       Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Tags           VSC    CHAIN    NDRPDR


*** Variables ***
${SERVICE_TYPE}     VSC
${TEST_TYPE}        NDRPDR


*** Test Cases ***    SERVICE    CHAINS    NODES    FRAME    NF SIZE    VSWITCH
Place Of The Rows     VSC        1         1        64B      1c         1

Place Of The Rows With Exclude    VSC    1    1    64B    1c    1
    [Tags]    -*
