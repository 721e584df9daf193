"""Lines and columns in a document are those that graphql-core tells."""

from graphql import GraphQLError, Source
from hypothesis import given
from hypothesis import strategies as st

from server.execution.lexer import DocumentSource

TEXTS = st.lists(st.sampled_from(["\n", "\r", "\r\n", "a", "é", "\u2028", " "]), max_size=30).map("".join)


@given(TEXTS, st.lists(st.integers(0, 70), min_size=1, max_size=4))
def test_a_position_has_the_line_and_column_that_graphql_core_tells(text: str, positions: list[int]) -> None:
    """For errors with one position and with several, whichever line ends are mixed."""
    ours, theirs = (
        GraphQLError("", source=source, positions=positions) for source in (DocumentSource(text), Source(text))
    )
    assert ours.locations == theirs.locations


@given(TEXTS, TEXTS, st.integers(0, 70))
def test_an_error_in_two_texts_has_the_locations_of_both(first: str, second: str, position: int) -> None:
    """Each is looked up in its own text."""
    sources = DocumentSource(first), DocumentSource(second)
    found = [GraphQLError("", source=source, positions=[position, 0]).locations for source in sources]
    assert found == [
        GraphQLError("", source=Source(text), positions=[position, 0]).locations for text in (first, second)
    ]
