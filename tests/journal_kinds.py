"""What each mutation leaves in the journal: kinds, or the reason why it leaves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from datastore.changes.occurrences import Kind

RECORDED: Final[Mapping[str, tuple[Kind, ...]]] = {
    "updateProfile": (Kind.PROFILE_CHANGED,),
    "removeIdentity": (Kind.PROFILE_CHANGED,),
    "addIdentity": (Kind.PROFILE_CHANGED,),
    "setRoles": (Kind.MEMBER_ROLES_SET,),
    "eraseMember": (Kind.MEMBER_ERASED,),
    "exportMember": (Kind.MEMBER_EXPORTED,),
    "takeBack": (Kind.MEMBER_TAKEN_BACK,),
    "suspendMember": (Kind.MEMBER_SUSPENDED,),
    "reinstateMember": (Kind.MEMBER_REINSTATED,),
    "createApiKey": (Kind.API_KEY_CREATED,),
    "revokeApiKey": (Kind.API_KEY_REVOKED,),
    "addWebhook": (Kind.WEBHOOK_ADDED,),
    "removeWebhook": (Kind.WEBHOOK_REMOVED,),
    "rotateWebhookSecret": (Kind.WEBHOOK_SECRET_ROTATED,),
    "redeliver": (Kind.WEBHOOK_REDELIVERED,),
    # ── voting ──
    "createBoard": (Kind.BOARD_CREATED,),
    "updateBoard": (Kind.BOARD_CHANGED,),
    "addContender": (Kind.CONTENDER_ADDED,),
    "updateContender": (Kind.CONTENDER_CHANGED,),
    "retireContender": (Kind.CONTENDER_RETIRED,),
    "restoreContender": (Kind.CONTENDER_RESTORED,),
    "castVote": (Kind.VOTE_CAST,),
    "voidVoter": (Kind.VOTE_VOIDED,),
    "findSuspects": (Kind.SUSPECTS_SOUGHT,),
    "voidVoters": (Kind.VOTERS_VOIDED,),
    "restoreVoters": (Kind.VOTERS_RESTORED,),
    # ── pick'em ──
    "importContenders": (Kind.CONTENDER_ADDED,),
    "importEvents": (Kind.EVENT_CREATED,),
    "importWords": (Kind.WORDS_ADDED,),
    "createEvent": (Kind.EVENT_CREATED,),
    "updateEvent": (Kind.EVENT_CHANGED,),
    "addMatch": (Kind.MATCH_ADDED,),
    "updateMatch": (Kind.MATCH_CHANGED,),
    "removeMatch": (Kind.MATCH_REMOVED,),
    "reorderMatches": (Kind.MATCHES_REORDERED,),
    "submitPrediction": (Kind.PREDICTION_SUBMITTED,),
    "lockEvent": (Kind.EVENT_LOCKED,),
    "recordResult": (Kind.RESULT_RECORDED,),
    "recordTieBreak": (Kind.TIE_BREAK_RECORDED,),
    "scoreEvent": (Kind.EVENT_SCORED,),
    "unscoreEvent": (Kind.EVENT_UNSCORED,),
    # ── leagues ──
    "createLeague": (Kind.LEAGUE_CREATED,),
    "joinLeague": (Kind.LEAGUE_JOINED,),
    "admitToLeague": (Kind.LEAGUE_ADMITTED,),
    "removeFromLeague": (Kind.LEAGUE_MEMBER_REMOVED,),
    "leaveLeague": (Kind.LEAGUE_LEFT,),
    "rotateLeagueCode": (Kind.LEAGUE_CODE_CHANGED,),
    "deleteLeague": (Kind.LEAGUE_DELETED,),
    # ── comments ──
    "postComment": (Kind.COMMENT_POSTED,),
    "editComment": (Kind.COMMENT_EDITED,),
    "deleteComment": (Kind.COMMENT_DELETED,),
    "reportComment": (Kind.COMMENT_REPORTED,),
    "answerComment": (Kind.COMMENT_ANSWERED,),
    "moderateComment": (Kind.COMMENT_MODERATED,),
    "moderateComments": (Kind.COMMENT_MODERATED,),
    "setHoldRules": (Kind.HOLD_RULES_SET,),
    # ── vocabulary ──
    "createWordList": (Kind.WORD_LIST_CREATED,),
    "updateWordList": (Kind.WORD_LIST_CHANGED,),
    "deleteWordList": (Kind.WORD_LIST_DELETED,),
    "updateWord": (Kind.WORD_CHANGED,),
    "removeWord": (Kind.WORD_REMOVED,),
    "deleteSentence": (Kind.SENTENCE_REMOVED,),
    "addWords": (Kind.WORDS_ADDED,),
    "subscribe": (Kind.SUBSCRIPTION_STARTED,),
    "claimSubscriptions": (Kind.SUBSCRIPTION_ENDED, Kind.SUBSCRIPTION_STARTED),
    "unsubscribe": (Kind.SUBSCRIPTION_ENDED,),
    "recordQuiz": (Kind.QUIZ_RECORDED,),
    "answerQuiz": (Kind.QUIZ_RECORDED,),
    "writeSentence": (Kind.SENTENCE_WRITTEN, Kind.SENTENCE_CHANGED),
}

NOT_RECORDED: Final[Mapping[str, str]] = {
    "continueVisit": "It changes whose votes they are, and each of them was recorded, if at all.",
    "startVisit": "It writes nothing: the token says all there is to know.",
    "requestSignIn": "It stores nothing but a keyed hash of digits.",
    "signIn": "It concerns the member alone, whose file has their sessions.",
    "signInAsGuest": "It concerns the guest alone, whose file has their sessions.",
    "signOut": "It concerns the member alone, whose file has their sessions.",
    "requestSubscription": "It stores nothing but a keyed hash; the subscription is recorded once it is confirmed.",
    "markHelpful": "It says nothing but a number, which the comment shows.",
    "startQuiz": "A quiz that is only asked counts for nothing; its answers are recorded.",
    "reviewWord": "It changes when one member is asked for a word again, which concerns nobody else.",
    "drawMatchup": "It writes nothing: the same pair is drawn again until the voter votes on it.",
}
