"""What the pages speak of as if it were there: flights, orders, and who reads them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from weir.programs.store import StreamStore

_FIRST = datetime(2013, 6, 1, 5, tzinfo=UTC)


def flights() -> list[dict[str, object]]:
    """Return a morning of flights."""
    carriers = [("AA", 90.0), ("UA", 61.0), ("DL", None), ("UA", 5.0)] * 6
    return [
        {"carrier": carrier, "flight": n, "tailnum": f"N{n % 5}", "origin": "JFK",
         "dep_delay": delay, "time_hour": _FIRST + timedelta(hours=n // 4)}
        for n, (carrier, delay) in enumerate(carriers)
    ]  # fmt: skip


def orders() -> list[dict[str, object]]:
    """Return the orders that the recipes begin with."""
    bought = [("ann", 10.0), ("bob", 3.0), ("ann", 7.5), ("C123", 1.25)]
    return [{"order_id": n, "customer": who, "amount": x} for n, (who, x) in enumerate(bought)]


def settle(store: StreamStore) -> None:
    """Make the streams and groups that no page makes."""
    store.create_stream("nyc/flights", "carrier", segments=2, event_time="time_hour")
    store.append("nyc/flights", flights())
    store.create_stream("shop/orders", "customer")
    store.append("shop/orders", orders())
    for name, key in {"shop/large": "customer", "shop/payments": "order_id", "nyc/late": "carrier",
                      "nyc/notes": "key", "nyc/hours": "carrier"}.items():  # fmt: skip
        store.create_stream(name, key)
    store.append("nyc/hours", flights())
    for group in ("late", "delays", "late-by-hand"):
        store.create_reader_group(group, ["nyc/flights"])


def bring(home: Path) -> None:
    """Put the files of people into a folder."""
    files = {
        "umsatz.csv": "Kunde;Betrag;Tag\nMüller;1.234,50;31.12.2025\n",
        "bank.csv": "Bank\nKonto\nvon\nbis\niban;amount\n# neu\nDE12;3\n",
        "sensor.csv": "a,1\nb,2\n",
        "corrected.csv": "order_id,customer,amount\n1,bob,4.5\n",
    }
    for name, text in files.items():
        (home / name).write_text(text, encoding="cp1252" if "umsatz" in name else "utf-8")
