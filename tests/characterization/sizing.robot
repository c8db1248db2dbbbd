*** Settings ***
Documentation       Capacity of a service by deployment size: instances of its components with limited CPU and memory,
...                 under growing load until the service is overloaded.
...
...                 Service and workload are described in `specs/`, with the scripts that deploy and load them.
...                 Clearwater and the service `snort` are simulated; the SIP service, the HTTP proxy and intrusion
...                 detection are real, and need their programs on the machine, or on the nodes of a lab.
...                 Of the traffic of intrusion detection half is malicious; `-v MORE:yes` measures other shares too.
...                 `-v RESUME:results/20260101-120000` resumes an interrupted run.
Library             resources.libraries.python.studies.shared.StudyLibrary    sizing
Suite Setup         Open Testbed
Suite Teardown      Close Testbed
Test Template       Run Study
Test Teardown       Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Tags           SIZING


*** Variables ***
${MORE}            no
&{UNLESS ASKED}    no=robot:skip    yes=MORE


*** Test Cases ***    DEPLOYMENT                         ONLY IN    WORKLOAD
Clearwater
    [Documentation]    Directed search within 6 vCPUs.
    [Tags]    CLEARWATER
    clearwater/deployment.json    sim    workload=clearwater/workload.json

Clearwater With Invite Calls
    [Documentation]    The same with calls of four times the cost.
    [Tags]    CLEARWATER
    clearwater/deployment.json    sim    workload=clearwater/invite.json

Clearwater Up And Out
    [Documentation]    Larger instances against more instances.
    [Tags]    CLEARWATER
    clearwater/scaling.json    sim    workload=clearwater/quick.json

Snort
    [Documentation]    More vCPUs than a program with one thread can use.
    [Tags]    IDS
    snort/deployment.json    sim    workload=snort/workload.json

SIP Service
    [Documentation]    Directed search: edge proxy, registrar and subscriber database under registrations.
    [Tags]    SIP
    sip-service/deployment.json    real    workload=sip-service/reg-dereg.json

SIP Service With Invite Calls
    [Documentation]    The same with calls of REGISTER and INVITE, which reach the called side through the service.
    [Tags]    SIP    INVITE
    sip-service/deployment.json    real    workload=sip-service/reg-invite.json

HTTP Proxy
    [Documentation]    Given sizes, with one proxy or two.
    [Tags]    HTTP
    http-proxy/deployment.json    real    workload=http-proxy/requests.json

HTTP Proxy Without Core Pinning
    [Documentation]    One size, its instances on any CPU.
    [Tags]    HTTP    PINNING
    http-proxy/unpinned.json    real    workload=http-proxy/requests.json

HTTP Proxy With Core Pinning
    [Documentation]    The same size, each instance on CPUs of its own.
    [Tags]    HTTP    PINNING
    http-proxy/pinned.json    real    workload=http-proxy/requests.json

Suricata IDS Malicious 0
    [Tags]    INTRUSION    SURICATA    MALICIOUS_0    ${UNLESS ASKED}[${MORE}]
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=suricata-ids    malicious=0

Suricata IDS Malicious 25
    [Tags]    INTRUSION    SURICATA    MALICIOUS_25    ${UNLESS ASKED}[${MORE}]
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=suricata-ids    malicious=25

Suricata IDS Malicious 50
    [Tags]    INTRUSION    SURICATA    MALICIOUS_50
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=suricata-ids    malicious=50

Suricata IDS Malicious 75
    [Tags]    INTRUSION    SURICATA    MALICIOUS_75    ${UNLESS ASKED}[${MORE}]
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=suricata-ids    malicious=75

Suricata IDS Malicious 100
    [Tags]    INTRUSION    SURICATA    MALICIOUS_100    ${UNLESS ASKED}[${MORE}]
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=suricata-ids    malicious=100

Suricata IPS Malicious 0
    [Tags]    INTRUSION    SURICATA    MALICIOUS_0    ${UNLESS ASKED}[${MORE}]
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=suricata-ips    malicious=0

Suricata IPS Malicious 25
    [Tags]    INTRUSION    SURICATA    MALICIOUS_25    ${UNLESS ASKED}[${MORE}]
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=suricata-ips    malicious=25

Suricata IPS Malicious 50
    [Tags]    INTRUSION    SURICATA    MALICIOUS_50
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=suricata-ips    malicious=50

Suricata IPS Malicious 75
    [Tags]    INTRUSION    SURICATA    MALICIOUS_75    ${UNLESS ASKED}[${MORE}]
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=suricata-ips    malicious=75

Suricata IPS Malicious 100
    [Tags]    INTRUSION    SURICATA    MALICIOUS_100    ${UNLESS ASKED}[${MORE}]
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=suricata-ips    malicious=100

Snort IDS Malicious 0
    [Tags]    INTRUSION    MALICIOUS_0    ${UNLESS ASKED}[${MORE}]
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=snort    malicious=0

Snort IDS Malicious 25
    [Tags]    INTRUSION    MALICIOUS_25    ${UNLESS ASKED}[${MORE}]
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=snort    malicious=25

Snort IDS Malicious 50
    [Tags]    INTRUSION    MALICIOUS_50
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=snort    malicious=50

Snort IDS Malicious 75
    [Tags]    INTRUSION    MALICIOUS_75    ${UNLESS ASKED}[${MORE}]
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=snort    malicious=75

Snort IDS Malicious 100
    [Tags]    INTRUSION    MALICIOUS_100    ${UNLESS ASKED}[${MORE}]
    ids/deployment.json    real    workload=ids/udp-64b.json    engine=snort    malicious=100
