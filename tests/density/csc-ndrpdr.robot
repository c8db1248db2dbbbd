*** Settings ***
Documentation       NDR and PDR of container service chains, then latency at 0, 10, 50 and 90 % of PDR.
...
...                 A chain is a snake: every hop from NF to NF crosses the vSwitch.
Resource            ../../resources/libraries/robot/density.resource
Suite Setup         Open Testbed
Suite Teardown      Close Testbed
Test Template       Ndr And Pdr Should Be Found
Test Teardown       Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Tags           CSC    CHAIN    NDRPDR


*** Variables ***
${SERVICE_TYPE}     CSC
${TEST_TYPE}        NDRPDR


*** Test Cases ***    SERVICE    CHAINS    NODES    FRAME    NF SIZE    VSWITCH
Place Of The Rows     CSC        1         1        64B      1c         1

Place Of The Rows With Exclude    CSC    1    1    64B    1c    1
    [Tags]    -*
