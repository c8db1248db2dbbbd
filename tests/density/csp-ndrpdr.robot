*** Settings ***
Documentation       NDR and PDR of container service pipelines, then latency at 0, 10, 50 and 90 % of PDR.
...
...                 In a pipeline NFs are linked to each other; only its edges cross the vSwitch.
Resource            ../../resources/libraries/robot/density.resource
Suite Setup         Open Testbed
Suite Teardown      Close Testbed
Test Template       Ndr And Pdr Should Be Found
Test Teardown       Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Tags           CSP    PIPELINE    NDRPDR


*** Variables ***
${SERVICE_TYPE}     CSP
${TEST_TYPE}        NDRPDR


*** Test Cases ***    SERVICE    CHAINS    NODES    FRAME    NF SIZE    VSWITCH
Place Of The Rows     CSP        1         1        64B      1c         1

Place Of The Rows With Exclude    CSP    1    1    64B    1c    1
    [Tags]    -*
