"""How to read figures of studies of outages."""

from csit_utils.report.explanations import Explanation

EXPLANATIONS = (
    Explanation(
        "blast-radius",
        "Blast radius",
        "What an event at one network function or at the vSwitch costs every service instance.",
        "Packets lost from the event on, mean over repetitions with its 95 % confidence interval (Student).",
        "All instances have the same steady load. Every packet has a number and the time at which it was sent, and "
        "the receiver keeps the time at which each arrives: losses are exact, per instance and direction. Each trial "
        "has a deployment of its own, and the order of events is shuffled in each repetition.",
        "Compare with the trials without an event, which stand beside each event: what these lose is the host's noise, "
        "and on a machine with few cores that can be much. An instance is marked where it loses more than without an "
        "event beyond the 95 % interval of the difference (Welch). Trials in which the host loses more than the "
        "specification allows (quarantine_loss), before the event or in the repetition's trial without one, are "
        "quarantined.",
    ),
    Explanation(
        "outage-duration",
        "Outage",
        "How long an instance was without service, by the packets that it lost.",
        "Milliseconds: lost packets over the offered rate, of the direction that lost more.",
        "The frame-loss method of RFC 6201 (section 4, Reset test), which RFC 6412 calls loss-derived.",
        "Losses that are spread over a trial add up to the same number as one interruption: see the longest gap.",
    ),
    Explanation(
        "loss-gap",
        "Longest gap",
        "The longest interruption of one flow.",
        "Milliseconds between the last packet that arrived before lost ones and the first one after them.",
        "The time-stamp method of RFC 6201, by the kernel's time stamps at the receiver.",
        "A pause that drops nothing has no gap: packets that waited show as delay.",
    ),
    Explanation(
        "recovery-time",
        "Recovery time",
        "From an event until an instance loses nothing any more.",
        "Milliseconds from the begin of the event to the packet that ends the last gap.",
        "Mean of the repetitions in which losses ended before the trial did.",
        "A single packet lost late, by whatever reason, counts: the trials without an event show how often that is.",
    ),
    Explanation(
        "first-packet",
        "Time to the first packet",
        "From an event until traffic passes the part that it happened to again.",
        "Milliseconds from the begin of the event to the first packet after the gap that it caused.",
        "Of both directions the later one. The reset time of RFC 6201 by the time-stamp method begins at the last "
        "packet before; this one begins at the event.",
        "It includes the time that the event itself takes, such as starting a program.",
    ),
)
