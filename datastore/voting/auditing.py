"""Reads for `ringside audit`: every record of boards, contenders and votes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, TypeAlias

from datastore.voting.boards import BOARD, Board
from datastore.voting.contenders import CONTENDER, NAME, Contender, Name
from datastore.voting.results import RESULTS, ResultsBlock
from datastore.voting.tallies import PAIR, TALLY, PairTally, Tally
from datastore.voting.votes import VOTE, Vote

if TYPE_CHECKING:
    from datastore.dynamo import Table

VotingRecord: TypeAlias = Board | Contender | Name | ResultsBlock | Tally | PairTally | Vote


def all_records(table: Table) -> AsyncIterator[VotingRecord]:
    return table.scan(BOARD, CONTENDER, NAME, RESULTS, TALLY, PAIR, VOTE)
