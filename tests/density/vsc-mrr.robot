*** Settings ***
Documentation       Maximum receive rate of VM service chains.
...
...                 A chain is a snake: every hop from NF to NF crosses the vSwitch.
Resource            ../../resources/libraries/robot/density.resource
Suite Setup         Open Testbed
Suite Teardown      Close Testbed
Test Template       Mrr Should Be Measured
Test Teardown       Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Tags           VSC    CHAIN    MRR


*** Variables ***
${SERVICE_TYPE}     VSC
${TEST_TYPE}        MRR


*** Test Cases ***    SERVICE    CHAINS    NODES    FRAME    NF SIZE    VSWITCH
Place Of The Rows     VSC        1         1        64B      1c         1

Place Of The Rows With Exclude    VSC    1    1    64B    1c    1
    [Tags]    -*
