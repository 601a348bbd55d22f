"""`weir recover` takes the certificates that were kept elsewhere as files."""

import json
from collections.abc import Callable
from pathlib import Path

import weir as library
from tests.terminal.conftest import Done
from tests.world.streams import rows
from weir.settings import Settings


def test_recover_says_of_files_with_certificates_whether_they_are_known(
    weir: Callable[..., Done], settings: Settings, tmp_path: Path
) -> None:
    with library.open(settings=settings) as store:
        store.create_stream("shop/orders", "customer")
        store.append("shop/orders", [{"customer": "ann"}, {"customer": "bob"}])
        store.erase("shop/orders", "asked", keys=["ann"], dry_run=False)
        [made] = rows(store.database, "SELECT certificate FROM weir.certificates")
    other = json.loads(json.dumps(made.certificate))
    other["document"]["request"] = "of another life"
    (tmp_path / "a.json").write_text(json.dumps(made.certificate, indent=2))
    (tmp_path / "b.json").write_text(json.dumps(other))
    done = weir("recover", "--erased", "a.json", "--erased", "b.json", "--json")
    assert done.status == 0
    said = done.json["erased"]
    assert [one["known"] for one in said["certificates"]] == [True, False]
    assert "weir erase shop/orders" in said["then"][0]
    (tmp_path / "c.json").write_text("s3cret")
    for file in ("no.json", "c.json"):
        refused = weir("recover", "--erased", file)
        assert (refused.status, "argument_invalid" in refused.err) == (2, True)
        assert "s3cret" not in refused.out + refused.err
