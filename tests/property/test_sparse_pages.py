"""Pages that leave out some of what they read: a walk over them sees all the rest, in order, and comes to its end."""

from bisect import bisect_left, bisect_right

from hypothesis import given
from hypothesis import strategies as st

from datastore.dynamo.paging import Page, Window
from datastore.values.seal import Seal

SEAL = Seal(["a secret for the cursors of these tests"])
POSITIONS = [f"{number:03}" for number in range(40)]


def read_page(shown: frozenset[str], window: Window) -> Page[str]:
    """A page of all positions whose nodes are left out unless they are `shown`."""
    request = window.open("sparse")
    if request.forward:
        start = 0 if request.position is None else bisect_right(POSITIONS, request.position)
        read = POSITIONS[start : start + request.wanted]
    else:
        end = len(POSITIONS) if request.position is None else bisect_left(POSITIONS, request.position)
        read = POSITIONS[max(0, end - request.wanted) : end][::-1]
    page = Page.cut([(position, position) for position in read], request)
    return page.map(node if node in shown else None for node in page.nodes)


@given(shown=st.frozensets(st.sampled_from(POSITIONS)), size=st.integers(1, 50), forward=st.booleans())
def test_a_walk_over_sparse_pages_sees_every_shown_node_once(
    *, shown: frozenset[str], size: int, forward: bool
) -> None:
    seen: list[str] = []
    cursor, follows, pages = None, True, 0
    while follows:
        page = read_page(shown, Window(size, SEAL, forward=forward, cursor=cursor))
        pages += 1
        if forward:
            seen, cursor, follows = seen + page.nodes, page.end_cursor, page.has_next_page
        else:
            seen, cursor, follows = page.nodes + seen, page.start_cursor, page.has_previous_page
        assert cursor is not None
        assert pages <= len(POSITIONS) / size + 1
    assert seen == sorted(shown)


def test_a_page_of_which_nothing_was_read_has_no_cursors() -> None:
    request = Window(2, SEAL).open("sparse")
    page: Page[str] = Page.cut([], request)
    assert (page.start_cursor, page.end_cursor, page.has_next_page) == (None, None, False)
