"""What the pages speak of as if it were there: flights, orders, and who reads them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep

from weir.programs.store import StreamStore
from weir.retention.capture import capture

_FIRST = datetime(2013, 6, 1, 5, tzinfo=UTC)


def flights() -> list[dict[str, object]]:
    """Return a morning of flights."""
    carriers = [("AA", 90.0), ("UA", 61.0), ("DL", None), ("UA", 5.0)] * 6
    return [
        {"carrier": carrier, "flight": n, "tailnum": f"N{n % 5}", "origin": "JFK",
         "dep_delay": delay, "time_hour": _FIRST + timedelta(hours=n // 4)}
        for n, (carrier, delay) in enumerate(carriers)
    ]  # fmt: skip


def orders(whole: bool) -> list[dict[str, object]]:
    """Return the orders that the recipes begin with; `whole`: of whole amounts."""
    bought = [("ann", 10.0), ("bob", 3.0), ("ann", 7.5), ("C123", 1.25)]
    return [
        {"order_id": n, "customer": who, "amount": int(x) if whole else x, "at": _FIRST}
        for n, (who, x) in enumerate(bought, 1)
    ]


TABLE = """CREATE SCHEMA shop;
CREATE TABLE shop.large (customer text PRIMARY KEY, amount numeric(10, 2), at timestamptz);
GRANT USAGE ON SCHEMA shop TO weir_publisher;
GRANT SELECT, INSERT, UPDATE ON shop.large TO weir_publisher"""


def settle(store: StreamStore, page: str) -> None:
    """Make the streams and groups that the page does not make itself."""
    store.create_stream("nyc/flights", "carrier", segments=2, event_time="time_hour")
    store.append("nyc/flights", flights())
    groups = {"docs/retention.md": [], "docs/audit.md": ["late"]}
    for group in groups.get(page, ["late", "delays", "late-by-hand"]):
        store.create_reader_group(group, ["nyc/flights"])
    store.create_stream("nyc/hours", "carrier")
    store.append("nyc/hours", flights())
    store.create_reader_group("hours", ["nyc/hours"])
    if page != "docs/consumers.md":
        timed = page == "docs/event-time.md"
        store.create_stream("shop/orders", "customer", event_time="at" if timed else "")
        until = datetime(2026, 7, 1, tzinfo=UTC) if timed else None
        store.append(
            "shop/orders",
            orders(page == "docs/engines.md"),
            writer_id="till",
            batch_id="1",
            complete_until=until,
        )
        store.create_stream("shop/large", "customer")
    store.create_stream("shop/payments", "order_id")
    store.append("shop/payments", [{"order_id": 3, "paid": True}, {"order_id": 9, "paid": True}])
    for name, key in {"nyc/late": "carrier", "nyc/notes": "key"}.items():
        store.create_stream(name, key)
    if page == "docs/audit.md":
        store.update_stream("nyc/flights", retention="age", retain_max_age="1 s")
        capture(store.database)
        sleep(1.1)  # the youngest age that a policy can name
        store.retention(streams=["nyc/flights"])
    if page == "docs/retention.md":
        store.create_stream("iot/small", "k", retention="consumed", retain_min_age="7 d")
        store.append("iot/small", [{"k": str(n)} for n in range(580)])
        store.create_reader_group("audit", ["iot/small"], subscriber=False, start="tail")
        store.append("iot/small", [{"k": str(n)} for n in range(20)])


def bring(home: Path) -> None:
    """Put the files and functions of people into a folder, and what its settings say of them."""
    package = home / "functions" / "shop"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "orders.py").write_text("def large(orders, threshold):\n    return orders\n")
    with (home / "weir.toml").open("a") as settings:
        settings.write('function_packages = ["shop"]\nfunction_path = ["functions"]\n')
    files = {
        "umsatz.csv": "Kunde;Betrag;Tag\nMüller;1.234,50;31.12.2025\n",
        "bank.csv": "Bank\nKonto\nvon\nbis\niban,amount\n# neu\nDE12,3\n",
        "sensor.csv": "a,1\nb,2\n",
        "corrected.csv": "order_id,customer,amount\n1,bob,4.5\n",
    }
    for name, text in files.items():
        (home / name).write_text(text, encoding="cp1252" if "umsatz" in name else "utf-8")
