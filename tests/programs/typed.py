"""A program as type checkers see it: `make lint` checks that each wrong line is refused, because an
ignored error that is none is one."""

import weir


def right() -> None:
    with weir.open() as store:
        store.create_stream("shop/orders", "customer", segments=4, retention="consumed")
        group = store.create_reader_group("totals", ["shop/orders"])
        committed = store.append("shop/orders", [{"customer": "c1"}])
        print(group["start"]["shop/orders"], store.upkeep()["deleted"]["bytes"])
        print(committed.events + store.count("shop/orders"), store.tail("shop/orders", 3))
        store.seal_stream("shop/orders")


def wrong(store: weir.StreamStore) -> None:
    store.create_stream("shop/orders", "customer", segmnets=4)  # type: ignore[call-arg]
    store.create_stream("shop/orders", "customer", segments="4")  # type: ignore[arg-type]
    store.create_stream("shop/orders", "customer", retention="no")  # type: ignore[arg-type]
    store.create_streams("shop/orders", "customer")  # type: ignore[attr-defined]
    store.seal_stream("shop/orders", "totals")  # type: ignore[call-arg]
    store.seal_stream()  # type: ignore[call-arg]
    store.append("shop/orders")  # type: ignore[call-arg]
    print(store.retention()["truncated"])  # type: ignore[typeddict-item]
    print(store.count("shop/orders") + "1")  # type: ignore[operator]
