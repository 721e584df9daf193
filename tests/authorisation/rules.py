"""The rules: for every query, mutation, subscription and field, the viewers who may use it.

A field of the schema without a rule here fails the suite. Connections, edges, page information and the payloads of
mutations need none: they contain what their caller has just been allowed to see.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar


class Viewer(StrEnum):
    """The kinds of viewers. The author is the member who owns the object in question; the member is another one.

    A key is a machine with an API key, which has only the role of a member or is an admin.
    """

    VISITOR = "visitor"
    MEMBER = "member"
    AUTHOR = "author"
    MODERATOR = "moderator"
    EDITOR = "editor"
    ADMIN = "admin"
    KEY = "key"
    ADMIN_KEY = "admin-key"


Viewers = frozenset[Viewer]

EVERYBODY: Final = frozenset(Viewer)
NOBODY: Final[Viewers] = frozenset()
KEYS: Final = frozenset({Viewer.KEY, Viewer.ADMIN_KEY})
MEMBERS: Final = EVERYBODY - KEYS - {Viewer.VISITOR}
AUTHOR: Final = frozenset({Viewer.AUTHOR})
ADMINS: Final = frozenset({Viewer.ADMIN, Viewer.ADMIN_KEY})
AUTHOR_OR_ADMIN: Final = AUTHOR | ADMINS
MODERATORS: Final = ADMINS | {Viewer.MODERATOR}
AUTHOR_OR_MEMBER: Final = AUTHOR | {Viewer.MEMBER}
AUTHOR_OR_MODERATORS: Final = AUTHOR | MODERATORS
EDITORS: Final = ADMINS | {Viewer.EDITOR}

PERSONAL: Final = "says something about the viewer, so it differs between them"
PUBLIC_PART: Final = "complete for the author; others see the public part of it"
MODERATED_PART: Final = "complete for the author and moderators; others see the public part of it"

Rule = Viewers | str
R = TypeVar("R", Viewers, Rule)


def _each(rule: R, names: str) -> dict[str, R]:
    return dict.fromkeys(names.split(), rule)


QUERIES: Final[Mapping[str, Viewers]] = {
    **_each(
        EVERYBODY,
        """
        viewer signInMethods challenge user now node nodes board boards contender contenders leaderboard matchup
        matchups event events nextEvent seasons standings league job predictions comment comments
        commentStatistics commentStatisticsOf topProducts wordList wordLists dailyWords quizLeaderboard
        """,
    ),
    **_each(MODERATORS, "moderationQueue latestComments journal members holdRules previewHoldRules"),
    **_each(EDITORS, "activity previewContender suspects upcomingWords"),
    **_each(ADMINS, "apiKeys webhooks jobs operations lag"),
}

SUBSCRIPTIONS: Final[Mapping[str, Viewers]] = _each(
    EVERYBODY, "leaderboardChanged standingsChanged eventChanged commentPosted"
)

MUTATIONS: Final[Mapping[str, Viewers]] = {
    **_each(EVERYBODY, "drawMatchup castVote requestSubscription requestSignIn signIn signOut"),
    **_each(frozenset({Viewer.VISITOR}), "startVisit signInAsGuest"),
    **_each(
        MEMBERS,
        """
        updateProfile removeIdentity addIdentity continueVisit
        submitPrediction createLeague joinLeague leaveLeague postComment reportComment
        markHelpful claimComments
        createWordList subscribe unsubscribe claimSubscriptions recordQuiz reviewWord startQuiz answerQuiz
        """,
    ),
    **_each(
        EDITORS,
        """
        answerComment createBoard updateBoard addContender updateContender retireContender restoreContender voidVoter
        voidVoters restoreVoters findSuspects
        createEvent updateEvent addMatch updateMatch removeMatch reorderMatches lockEvent recordResult
        recordTieBreak scoreEvent unscoreEvent importContenders importEvents importWords
        """,
    ),
    **_each(AUTHOR, "admitToLeague removeFromLeague rotateLeagueCode deleteLeague"),
    **_each(AUTHOR_OR_MODERATORS, "editComment deleteComment"),
    **_each(AUTHOR_OR_ADMIN, "exportMember eraseMember"),
    **_each(MODERATORS, "moderateComment moderateComments suspendMember reinstateMember takeBack"),
    **_each(AUTHOR, "addWords writeSentence updateWord removeWord updateWordList deleteWordList"),
    "deleteSentence": AUTHOR_OR_MODERATORS,
    "setRoles": frozenset({Viewer.ADMIN}),
    **_each(ADMINS, "setHoldRules createApiKey revokeApiKey addWebhook removeWebhook rotateWebhookSecret redeliver"),
}

NOT_FOR_KEYS: Final = {name for name, viewers in MUTATIONS.items() if viewers == MEMBERS} | {
    "writeSentence",
    "admitToLeague",
    "removeFromLeague",
    "rotateLeagueCode",
    "deleteLeague",
    "setRoles",
}
"""Mutations that need a member: an API key is told to sign in, whatever its roles."""

FIELDS: Final[Mapping[str, Mapping[str, Rule]]] = {
    # ── people ──
    "User": {
        **_each(EVERYBODY, "id name avatarUrl joinedAt isGuest standings standing predictions sentences streak"),
        "quizResults": PUBLIC_PART,
        "dueCount": PERSONAL,
        "comments": MODERATED_PART,
        **_each(AUTHOR_OR_ADMIN, "email identities roles"),
        "suspension": AUTHOR_OR_MODERATORS,
        **_each(AUTHOR, "timeZone dailyWordAt lockReminderHours replyEmails subscriptions leagues due"),
    },
    "Identity": _each(AUTHOR_OR_ADMIN, "method label since lastUsedAt"),
    "Suspension": _each(AUTHOR_OR_MODERATORS, "until reason at"),
    # ── voting ──
    "Board": {
        **_each(
            EVERYBODY,
            """
            id slug title createdAt opensAt closesAt closed electorate membersSince resultsVisible resultsHidden
            contenderCount pairCount votes contenders leaderboard revision
            """,
        ),
        "progress": PERSONAL,
    },
    "Contender": _each(
        EVERYBODY,
        """
        id board name description link svg imageUrl createdAt retired wins losses ties score winRate rank matchups
        revision
        """,
    ),
    "LeaderboardRow": _each(EVERYBODY, "rank contender wins losses ties score strength"),
    "Strength": _each(EVERYBODY, "value low high"),
    "Matchup": _each(EVERYBODY, "left right leftWins rightWins ties votes"),
    "Suspect": _each(EDITORS, "voter votes reasons probability changes"),
    "RankChange": _each(EDITORS, "contender rank without"),
    "Visit": _each(PERSONAL, "token expiresAt"),
    "Ballot": _each(PERSONAL, "token left right expiresAt progress voter"),
    "BoardProgress": _each(PERSONAL, "seen remaining"),
    # ── pick'em ──
    "Event": {
        **_each(
            EVERYBODY,
            "id slug name season startsAt state description place imageUrl tieBreak matches predictions revision",
        ),
        "viewerPrediction": PERSONAL,
    },
    "Match": _each(EVERYBODY, "id name order preshow championships points teams result pickCounts revision"),
    "MatchResult": _each(EVERYBODY, "outcome winner"),
    "Team": _each(EVERYBODY, "name members champion"),
    "Prediction": _each(EVERYBODY, "id event user submittedAt picks guess points correct rank"),
    "TieBreak": _each(EVERYBODY, "question unit answer"),
    "Pick": _each(EVERYBODY, "match team correct"),
    "Season": _each(EVERYBODY, "name events latestEventAt standings"),
    "Standing": _each(EVERYBODY, "user season rank points correct eventsPlayed"),
    "League": {
        **_each(EVERYBODY, "id name season entry memberCount standings event members"),
        "code": AUTHOR,
        "viewerMembership": PERSONAL,
    },
    "LeagueMember": _each(EVERYBODY, "user membership since"),
    "LeagueEvent": _each(EVERYBODY, "event submitted missing predictions"),
    # ── comments ──
    "Comment": {
        **_each(
            EVERYBODY,
            "id product language rating title body author createdAt editedAt revision status removed inReplyTo "
            "inReplyToId thread replyCount replies answer helpful verifiedAt",
        ),
        "viewerFoundHelpful": PERSONAL,
        "viewerCanEdit": PERSONAL,
        "moderationNote": AUTHOR_OR_MODERATORS,
        **_each(MODERATORS, "reportReasons heldBy"),
    },
    "CommentAnswer": _each(EVERYBODY, "body at by"),
    "Challenge": _each(PERSONAL, "token salt target expiresAt"),
    "HoldRules": _each(MODERATORS, "rules revision"),
    "HoldRule": _each(MODERATORS, "name language words links firstComments perHour guests"),
    "HeldComment": _each(MODERATORS, "comment heldBy"),
    "RefusedComment": _each(MODERATORS, "id code message"),
    "CommentStatistics": _each(
        EVERYBODY, "product language total rated replies average histogram languages verified verifiedHistogram"
    ),
    "RatingCount": _each(EVERYBODY, "rating count"),
    "LanguageCount": _each(EVERYBODY, "language count"),
    "ProductStanding": _each(EVERYBODY, "product fiveStars statistics"),
    # ── vocabulary ──
    "WordList": _each(
        EVERYBODY,
        "id name level public owner createdAt wordCount subscriberCount subscribableByEmail words dailyWord review "
        "revision",
    ),
    "Word": _each(
        EVERYBODY, "id term reading example audioUrl simplified traditional pinyin definition chinese revision"
    ),
    "DailyWord": _each(EVERYBODY, "list date word"),
    "ListSubscription": _each(EVERYBODY, "list characterSet active since"),
    "QuizResult": _each(EVERYBODY, "id user list date correct total submittedAt proven"),
    "QuizStanding": _each(EVERYBODY, "user rank correct total quizzes sentences"),
    "Sentence": _each(EVERYBODY, "id user word date text createdAt"),
    "QuizQuestion": _each(PERSONAL, "number prompt choices"),
    "GradedAnswer": _each(PERSONAL, "number right word given"),
    "DueCard": _each(EVERYBODY, "word list due stability difficulty reviews"),
    "Streak": _each(EVERYBODY, "current longest lastActiveOn freezes"),
    # ── machines ──
    "ApiKey": _each(ADMINS, "id name roles createdAt expiresAt lastUsedAt prefix"),
    # ── journal ──
    "Occurrence": _each(MODERATORS, "id at kind source actor actorUser object objectNode ground note"),
    "Webhook": _each(ADMINS, "id url kinds active createdAt deliveries"),
    "Delivery": _each(ADMINS, "id occurrence state attempts lastStatus lastError nextAt"),
    "PicturePreview": _each(EDITORS, "svg removed"),
    "DayActivity": _each(EDITORS, "day votes comments predictions quizzes newMembers"),
    "OperationFigures": _each(ADMINS, "name requests refusals units dollars"),
    "Lag": _each(ADMINS, "settlingSeconds oldestJobSeconds"),
    # ── for everybody ──
    "Job": _each(AUTHOR_OR_ADMIN, "id kind state done total startedAt finishedAt message"),
    "ImportProblem": _each(EDITORS, "line message"),
    "Refused": _each(PERSONAL, "code message path retryAfterSeconds existing"),
}
