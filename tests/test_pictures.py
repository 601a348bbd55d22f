"""The pictures of the pages in docs/ are those that `make pictures` makes, shown, and small."""

from docs.generate_pictures import PICTURES, TARGET


def test_each_picture_of_the_pages_is_made_by_the_command_shown_and_small() -> None:
    tour = (TARGET.parents[1] / "tour.md").read_text()
    made = {f"{view}-{mode}.png" for view, mode in PICTURES}
    there = {one.name: one.stat().st_size for one in TARGET.iterdir()}
    assert set(there) == made
    assert not [name for name in there if f"](images/pages/{name})" not in tour]
    assert max(there.values()) < 120_000
