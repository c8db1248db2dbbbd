"""How to read figures of studies of stateful density."""

from csit_utils.report.explanations import Explanation

EXPLANATIONS = (
    Explanation(
        "connection-rate",
        "Connection establishment rate",
        "How many new connections per second NATs and firewalls take, per service instance and in sum.",
        "Connections per second, of all instances together; the share of each instance is beside it.",
        "Maximum connection establishment rate of RFC 9693, section 4.5: each packet is a UDP datagram with a 5-tuple "
        "that no earlier one of the trial had, from the initiator's side only. A rate counts where every packet "
        "arrives and every table has an entry for it (validation, section 4.6, by the tables themselves instead of "
        "packets from the responder). It is searched as NDR is. Tables are emptied, and verified to be empty, before "
        "each trial (section 4.4).",
        "A packet that opens a connection costs more than one that follows: this rate is far below NDR of the same "
        "cell. UDP only; section 8 of the RFC names what that cannot show. Where a trial at a higher rate would fill "
        "the table, the rate is a lower bound.",
    ),
    Explanation(
        "tear-down-rate",
        "Connection tear-down rate",
        "How many entries of connection tables are deleted per second, of all tables together.",
        "Entries per second.",
        "Connection tear-down rate of RFC 9693, section 4.8: tables are filled below the establishment rate, all "
        "entries of all tables are deleted at the same time, and their number is divided by the time from the first "
        "request to the last answer. After each deletion the tables are verified to be empty.",
        "The time of a deletion includes a walk through the hash table: compare with that of an empty table. With few "
        "entries the walk dominates.",
    ),
    Explanation(
        "table-capacity",
        "Connection table capacity",
        "How many connections each table holds while all instances fill theirs at the same time.",
        "Entries of one table.",
        "Connection tracking table capacity of RFC 9693, section 4.9: tables are filled below the establishment rate "
        "with more and more connections, then the number is bisected. A number counts where every packet arrives and "
        "every table has as many entries; where it does not, it is tried once more.",
        "A full table that evicts old entries lets all packets pass: only its entries show that it is full. Network "
        "functions of one kernel share one hash table, whose buckets are in the table of cells.",
    ),
)
