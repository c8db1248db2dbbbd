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
        "cell. UDP only: see section 8 of the RFC, and TCP beside it. Where a trial at a higher rate would fill "
        "the table, the rate is a lower bound.",
    ),
    Explanation(
        "tcp-connection-rate",
        "TCP connection rate",
        "How many TCP connections per second are opened, answered and closed through NATs and firewalls.",
        "Connections per second, of all instances together.",
        "A peer tool opens connections at a given rate, sends a request in each and waits for the answer, after which "
        "the server closes it. A connection is established where its answer came and every table has an entry for it. "
        "The rate is searched as that of UDP is. RFC 9693 measures with UDP (section 8 says why); TCP adds the set-up "
        "and tear-down of three and more packets. The same search with the peer's ports joined to each other shows "
        "what the peer does by itself.",
        "Client and server take more CPU time for a connection than a NAT does: where the rate without network "
        "functions is no higher, it is the limit of the peer, not of the network function, and is not compared. The "
        "server closes first, so that TIME_WAIT does not use up the client's ports; a trial has at most half as many "
        "connections of an instance as a client has ports.",
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
        "with more and more connections, then the number is bisected. It is the number of entries that tables held "
        "when they had refused and evicted none. A number of which one table refuses some is tried once more.",
        "A full table that evicts old entries lets all packets pass: only its entries show that it is full. Network "
        "functions of one kernel share one hash table, whose buckets are below the table of cells.",
    ),
)
