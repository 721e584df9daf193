"""The kinds of occurrences: what was done to which object.

A kind is `<thing>.<what happened to it>`. Clients and webhooks store these texts, so a kind is never renamed. A new
mutation that changes something gets a kind here; `tests/unit/test_journal_kinds.py` fails for one that has none.
"""

from __future__ import annotations

from enum import StrEnum


class Ground(StrEnum):
    """Why a moderator decided."""

    SPAM = "SPAM"
    ABUSE = "ABUSE"
    OFF_TOPIC = "OFF_TOPIC"
    ILLEGAL = "ILLEGAL"
    PERSONAL_DATA = "PERSONAL_DATA"
    FRAUD = "FRAUD"
    OTHER = "OTHER"


class Kind(StrEnum):
    """What occurred. The object is the comment, contender, event, … itself."""

    COMMENT_POSTED = "comment.posted"
    COMMENT_EDITED = "comment.edited"
    COMMENT_DELETED = "comment.deleted"
    COMMENT_REPORTED = "comment.reported"
    COMMENT_MODERATED = "comment.moderated"
    COMMENTS_IMPORTED = "comments.imported"

    BOARD_CREATED = "board.created"
    BOARD_CHANGED = "board.changed"
    CONTENDER_ADDED = "contender.added"
    CONTENDER_CHANGED = "contender.changed"
    CONTENDER_RETIRED = "contender.retired"
    CONTENDER_RESTORED = "contender.restored"
    VOTE_CAST = "vote.cast"
    VOTE_VOIDED = "vote.voided"

    EVENT_CREATED = "event.created"
    EVENT_CHANGED = "event.changed"
    EVENT_LOCKED = "event.locked"
    EVENT_SCORED = "event.scored"
    EVENT_UNSCORED = "event.unscored"
    MATCH_ADDED = "match.added"
    MATCH_CHANGED = "match.changed"
    MATCH_REMOVED = "match.removed"
    MATCHES_REORDERED = "matches.reordered"
    RESULT_RECORDED = "result.recorded"
    TIE_BREAK_RECORDED = "tieBreak.recorded"
    PREDICTION_SUBMITTED = "prediction.submitted"
    PREDICTION_VOIDED = "prediction.voided"

    LEAGUE_CREATED = "league.created"
    LEAGUE_JOINED = "league.joined"
    LEAGUE_ADMITTED = "league.admitted"
    LEAGUE_LEFT = "league.left"
    LEAGUE_MEMBER_REMOVED = "league.memberRemoved"
    LEAGUE_CODE_CHANGED = "league.codeChanged"
    LEAGUE_DELETED = "league.deleted"

    WORD_LIST_CREATED = "wordList.created"
    WORD_LIST_CHANGED = "wordList.changed"
    WORD_LIST_DELETED = "wordList.deleted"
    WORDS_ADDED = "words.added"
    WORD_CHANGED = "word.changed"
    WORD_REMOVED = "word.removed"
    SUBSCRIPTION_STARTED = "subscription.started"
    SUBSCRIPTION_ENDED = "subscription.ended"
    QUIZ_RECORDED = "quiz.recorded"
    QUIZ_REMOVED = "quiz.removed"
    SENTENCE_WRITTEN = "sentence.written"
    SENTENCE_CHANGED = "sentence.changed"
    SENTENCE_REMOVED = "sentence.removed"

    PROFILE_CHANGED = "profile.changed"
    MEMBER_EXPORTED = "member.exported"
    MEMBER_ERASED = "member.erased"
    MEMBER_SUSPENDED = "member.suspended"
    MEMBER_REINSTATED = "member.reinstated"
    MEMBER_TAKEN_BACK = "member.takenBack"

    API_KEY_CREATED = "apiKey.created"
    API_KEY_REVOKED = "apiKey.revoked"

    WEBHOOK_ADDED = "webhook.added"
    WEBHOOK_REMOVED = "webhook.removed"
    WEBHOOK_SECRET_ROTATED = "webhook.secretRotated"  # noqa: S105 - it names no secret
    WEBHOOK_REDELIVERED = "webhook.redelivered"


ON_DEMAND = frozenset({Kind.VOTE_CAST, Kind.PREDICTION_SUBMITTED})
"""Recorded only while a webhook names them: there are thousands a second, and each record costs a transaction more."""

REMOVALS = frozenset(
    {
        Kind.COMMENT_DELETED,
        Kind.MATCH_REMOVED,
        Kind.PREDICTION_VOIDED,
        Kind.LEAGUE_DELETED,
        Kind.WORD_LIST_DELETED,
        Kind.WORD_REMOVED,
        Kind.QUIZ_REMOVED,
        Kind.SENTENCE_REMOVED,
        Kind.MEMBER_ERASED,
        Kind.API_KEY_REVOKED,
        Kind.WEBHOOK_REMOVED,
    }
)
"""Those after which the object need not exist any more."""
