"""What really happens outside: a line in a file for every effect."""

from pathlib import Path

LOG = Path(__file__).with_name("world.log")


def happened(what: str) -> None:
    with LOG.open("a", encoding="utf-8") as log:
        log.write(what + "\n")


def look_up(order_id: str) -> dict:
    happened(f"looked {order_id} up")
    return {"order_id": order_id, "status": "lost"}


def pay_back(order_id: str) -> str:
    happened(f"refunded {order_id}")
    return f"refunded {order_id}"
