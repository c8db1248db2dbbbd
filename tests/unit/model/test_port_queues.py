"""Receive queues of a planned port."""

from resources.libraries.python.model.plan import Port

_ONE = Port(owner="vswitch", interface="vs-1", mac="02:00:00:00:00:01", data_thread=3)


def test_a_port_without_a_list_has_one_queue_on_its_data_thread() -> None:
    assert _ONE.queues == (3,)


def test_several_queues_survive_the_journey_through_json() -> None:
    several = _ONE.model_copy(update={"rx_queues": (3, 0)})
    assert Port.model_validate_json(several.model_dump_json()).queues == (3, 0)
