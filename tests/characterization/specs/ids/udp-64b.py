#!/usr/bin/env python3
"""Offers UDP in frames of 64 bytes from four senders, some of which send a malicious payload; prints what the IDS did.

The indicator is the rate of packets that the IDS inspected, by its own statistics. Figures beside it: `malicious`,
packets that were sent with the payload of the rule; `hits`, matches of rules; `detected`, hits over malicious packets;
`missed`, packets that the IDS was too slow for; `blocked`, packets that it did not forward.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from counters import Counters, ask

SENDERS = 4
FLOWS = 8
"""Of each sender: engines share packets among their workers by flow."""
MIN_OFFERED = 0.95
"""Of the asked rate: below it the indicator would be that of the generator, not of the IDS."""
PAYLOADS = {True: b"malicious payload.", False: b"ordinary payload.."}
"""18 bytes each: 64 in all with the headers of Ethernet, IP and UDP, and the FCS."""
NETWORK = "203.0.113"
"""Where the packets go, through the IDS: none is for the IDS itself."""
DISCARD = 9
PAUSE_S = 0.002
COUNTED = ("inspected", "missed", "hits", "blocked")
STILL_S = 4.5
SETTLED_WITHIN_S = 15.0


@dataclass(frozen=True)
class Sent:
    """What a sender sent."""

    packets: int
    seconds: float


def send(number: int, pps: float, duration_s: float, payload: bytes, destinations: Sequence[str]) -> Sent:
    """Send at a rate, the packets that are due every 2 ms, in turn over all flows."""
    flows = []
    for flow in range(FLOWS):
        each = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        each.bind(("", 20000 + number * FLOWS + flow))
        each.connect((destinations[flow % len(destinations)], DISCARD))
        flows.append(each)
    begin, sent = time.monotonic(), 0
    while (passed := time.monotonic() - begin) < duration_s:
        due = int(passed * pps)
        for index in range(sent, due):
            flows[index % FLOWS].send(payload)
        sent = max(sent, due)
        time.sleep(PAUSE_S)
    for each in flows:
        each.close()
    return Sent(sent, passed)


def malicious_senders(percent: int) -> int:
    """How many of the senders are malicious.

    Raises:
        ValueError: The share is not one of whole senders.
    """
    if not 0 <= percent <= 100 or percent * SENDERS % 100:
        raise ValueError(f"{percent} % of {SENDERS} senders are malicious: not a whole number of them")
    return percent * SENDERS // 100


def settled(addresses: Sequence[str], before: Counters, sent: int) -> Counters:
    """Sums over all IDS when every packet is accounted for, or nothing has grown for a while.

    Suricata's workers add to its statistics every 3 s only; those come each second.
    """
    begin = last_growth = time.monotonic()
    now = asked(addresses)
    while sum(now[name] - before[name] for name in ("inspected", "missed")) < sent:
        time.sleep(PAUSE_S * 100)
        seen, now = now, asked(addresses)
        if any(now[name] != seen[name] for name in COUNTED):
            last_growth = time.monotonic()
        if time.monotonic() - last_growth > STILL_S:
            break
        if time.monotonic() - begin > SETTLED_WITHIN_S:
            sys.exit(f"the counters of the IDS still grow {SETTLED_WITHIN_S:g} s after the load")
    return now


def asked(addresses: Sequence[str]) -> Counters:
    """Sums over all IDS."""
    rows = [ask(address) for address in addresses]
    return {name: sum(row[name] for row in rows) for name in COUNTED}


def report(load: float, sent: Sequence[Sent], malicious: int, before: Counters, after: Counters) -> dict[str, float]:
    """Indicator and figures. The first `malicious` of the senders are those.

    Args:
        load: In kpps.
        sent: By the senders.
        malicious: How many of them are.
        before: Counters of the IDS.
        after: The same when the load had passed.

    Raises:
        ValueError: The senders were too slow.
    """
    seconds = max(each.seconds for each in sent)
    offered = sum(each.packets for each in sent) / seconds / 1000
    if offered < MIN_OFFERED * load:
        raise ValueError(f"{offered:.1f} of {load:g} kpps were offered: the generator is at its limit")
    counted = {name: after[name] - before[name] for name in COUNTED}
    attacks = sum(each.packets for each in sent[:malicious])
    found = {
        "indicator": round(counted.pop("inspected") / seconds / 1000, 3),
        "offered": round(offered, 3),
        "malicious": attacks,
        **counted,
    }
    return {**found, "detected": round(counted["hits"] / attacks, 4)} if attacks else found


def prepare(addresses: Sequence[str], own: str) -> list[str]:
    """Routes through the IDS; a destination for each."""
    named = subprocess.run(["ip", "-j", "addr", "show", "to", own], check=True, capture_output=True).stdout
    interface = json.loads(named)[0]["ifname"]
    # An inline IDS copies packets as they are: they need their checksums.
    subprocess.run(["ethtool", "-K", interface, "tx", "off"], check=False, capture_output=True)
    for number, address in enumerate(addresses, 1):
        subprocess.run(["ip", "route", "replace", f"{NETWORK}.{number}/32", "via", address], check=True)
    return [f"{NETWORK}.{number}" for number in range(1, len(addresses) + 1)]


def main() -> None:
    """Offer, read, report."""
    load, duration_s = float(os.environ["CSIT_LOAD"]), float(os.environ["CSIT_DURATION_S"])
    addresses = os.environ["CSIT_ADDRESSES_IDS"].split()
    malicious = malicious_senders(int(os.environ["CSIT_OPTION_MALICIOUS"]))
    destinations = prepare(addresses, os.environ["CSIT_ADDRESS"])
    before = asked(addresses)
    with ProcessPoolExecutor(SENDERS) as pool:
        running = [
            pool.submit(send, n, 1000 * load / SENDERS, duration_s, PAYLOADS[n < malicious], destinations)
            for n in range(SENDERS)
        ]
        sent = [each.result() for each in running]
    after = settled(addresses, before, sum(each.packets for each in sent))
    print(json.dumps(report(load, sent, malicious, before, after)))


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(str(error))
