*** Settings ***
Documentation       A firewall under bursts below and above its capacity, sampled every second. Bursts have no means and
...                 no profile.
Resource            ../../resources/libraries/robot/characterization.resource
Suite Setup         Open Testbed
Suite Teardown      Close Testbed
Test Template       Bursts Should Be Sampled
Test Teardown       Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Tags           BURSTS


*** Test Cases ***    NAME        KINDS          FRAME       BURSTS                   SECONDS
Bursts Below Saturation
    firewall    ${FIREWALL}    ${FRAME}    on 3 off 2 at 0.5x    10

Bursts Above Saturation
    firewall    ${FIREWALL}    ${FRAME}    on 3 off 2 at 1.3x    10
