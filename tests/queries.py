"""GraphQL operations that several test modules send."""


def mutation(name: str, payload: str, fields: str, *, refused: str = "code message path") -> str:
    """A mutation that selects these fields of its payload, or of its refusal."""
    input_type = f"{name[0].upper()}{name[1:]}Input"
    answer = f"... on {payload} {{ {fields} }} ... on Refused {{ {refused} }}"
    return f"mutation ($input: {input_type}!) {{ {name}(input: $input) {{ {answer} }} }}"


# ── people ──

UPDATE_PROFILE = mutation("updateProfile", "ProfileUpdated", "user { id name email timeZone avatarUrl joinedAt }")

SUSPEND = mutation("suspendMember", "MemberSuspended", "user { id suspension { until reason at } }")
REINSTATE = mutation("reinstateMember", "MemberReinstated", "user { id suspension { reason } }")
TAKE_BACK = mutation("takeBack", "TakenBack", "job { id }")


# ── voting ──

CREATE_BOARD = mutation(
    "createBoard", "BoardCreated", "board { id slug title contenderCount pairCount votes createdAt }"
)
ADD_CONTENDER = mutation(
    "addContender",
    "ContenderAdded",
    "contender { id name svg retired wins losses ties score winRate rank board { slug } }",
)
UPDATE_CONTENDER = mutation("updateContender", "ContenderUpdated", "contender { id name svg }")
RETIRE_CONTENDER = mutation("retireContender", "ContenderRetired", "contender { id name retired rank }")
RESTORE_CONTENDER = mutation(
    "restoreContender", "ContenderRestored", "contender { id name retired rank wins losses ties score }"
)
UPDATE_BOARD = mutation("updateBoard", "BoardUpdated", "board { slug title opensAt closesAt closed }")
DRAW_MATCHUP = """
mutation ($board: String! = "main") { drawMatchup(input: { board: $board }) {
  ... on Ballot { token voter left { id name } right { id name } expiresAt progress { seen remaining } }
  ... on Refused { code message path } } }
"""
CAST_VOTE = """
mutation ($token: ID!, $verdict: Verdict!) { castVote(input: { token: $token, verdict: $verdict }) {
  ... on VoteCast {
    winner { id name } progress { seen remaining }
    matchup { left { id } right { id } leftWins rightWins ties votes }
  }
  ... on Refused { code message path retryAfterSeconds } } }
"""
VOID_VOTER = mutation("voidVoter", "VoterVoided", "votesRemoved")
LEADERBOARD = """
query ($board: String! = "main", $first: Int, $after: String) {
  leaderboard(board: $board, first: $first, after: $after) {
  totalCount pageInfo { hasNextPage endCursor }
  nodes { rank score wins losses ties contender { id name rank score } } } }
"""
BOARD_COUNTS = "{ board { votes contenderCount pairCount progress { seen remaining } } }"


# ── pick'em ──

MATCH_FIELDS = (
    "id name order preshow points championships teams { name members champion } result { outcome winner } pickCounts"
)
EVENT_FIELDS = f"id slug name season startsAt state matches {{ {MATCH_FIELDS} }}"
PREDICTION_FIELDS = "id submittedAt points correct rank user { name } picks { match team correct }"


CREATE_EVENT = mutation("createEvent", "EventCreated", f"event {{ {EVENT_FIELDS} }}")
UPDATE_EVENT = mutation("updateEvent", "EventUpdated", f"event {{ {EVENT_FIELDS} }}")
ADD_MATCH = mutation("addMatch", "MatchAdded", f"match {{ {MATCH_FIELDS} }} event {{ {EVENT_FIELDS} }}")
UPDATE_MATCH = mutation("updateMatch", "MatchUpdated", f"match {{ {MATCH_FIELDS} }}")
REMOVE_MATCH = mutation("removeMatch", "MatchRemoved", f"event {{ {EVENT_FIELDS} }}")
REORDER_MATCHES = mutation("reorderMatches", "MatchesReordered", f"event {{ {EVENT_FIELDS} }}")
SUBMIT_PREDICTION = mutation("submitPrediction", "PredictionSubmitted", f"prediction {{ {PREDICTION_FIELDS} }}")
LOCK_EVENT = mutation("lockEvent", "EventLocked", f"event {{ {EVENT_FIELDS} }}")
RECORD_RESULT = mutation("recordResult", "ResultRecorded", f"match {{ {MATCH_FIELDS} }}")
SCORE_EVENT = mutation("scoreEvent", "EventScored", f"predictionsScored event {{ {EVENT_FIELDS} }} job {{ id }}")
RECORD_TIE_BREAK = mutation("recordTieBreak", "TieBreakRecorded", "event { tieBreak { question unit answer } }")
UNSCORE_EVENT = mutation("unscoreEvent", "EventUnscored", f"event {{ {EVENT_FIELDS} }} job {{ id }}")
EVENT_BY_ID = f"""
query ($id: ID!) {{
  event(id: $id) {{
    {EVENT_FIELDS}
    viewerPrediction {{ {PREDICTION_FIELDS} }}
    predictions(first: 100) {{ nodes {{ {PREDICTION_FIELDS} }} }}
  }}
}}
"""
STANDINGS = """
query ($season: String!, $first: Int, $after: String) {
  standings(season: $season, first: $first, after: $after) {
    totalCount nodes { rank points correct eventsPlayed season user { name } } pageInfo { hasNextPage endCursor }
  }
}
"""


# ── comments ──

COMMENT_FIELDS = "id product language rating title body status createdAt editedAt viewerCanEdit author { name }"
POST_COMMENT = mutation(
    "postComment",
    "CommentPosted",
    f"comment {{ {COMMENT_FIELDS} }}",
    refused="code message path retryAfterSeconds",
)
EDIT_COMMENT = mutation("editComment", "CommentEdited", f"comment {{ {COMMENT_FIELDS} }}")
DELETE_COMMENT = mutation("deleteComment", "CommentDeleted", "deletedId")
MARK_HELPFUL = mutation("markHelpful", "CommentMarked", "comment { helpful viewerFoundHelpful }")
REPORT_COMMENT = mutation("reportComment", "CommentReported", "comment { id status }")
MODERATE_COMMENT = mutation("moderateComment", "CommentModerated", "comment { id status moderationNote }")
ANSWER_COMMENT = mutation(
    "answerComment", "CommentAnswered", "comment { id editedAt answer { body at by { id name } } }"
)
MODERATE_COMMENTS = mutation(
    "moderateComments",
    "CommentsModerated",
    "comments { id status moderationNote author { id } } refused { id code message }",
)
SET_HOLD_RULES = mutation(
    "setHoldRules",
    "HoldRulesSet",
    "rules { revision rules { name language words links firstComments perHour guests } }",
)
COMMENTS_PAGE = """
query ($product: ID!, $languages: [String!], $ratings: [Int!], $first: Int, $after: String, $last: Int,
       $before: String) {
  comments(product: $product, languages: $languages, ratings: $ratings, first: $first, after: $after, last: $last,
           before: $before) {
    edges { cursor node { id body rating language } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    totalCount
  }
}
"""
COMMENT_STATISTICS = """
query ($product: ID!, $language: String) {
  commentStatistics(product: $product, language: $language) {
    product language total average histogram { rating count } languages { language count }
  }
}
"""
COMMENT_BY_ID = f"query ($id: ID!) {{ comment(id: $id) {{ {COMMENT_FIELDS} moderationNote reportReasons }} }}"
MODERATION_QUEUE = """
query ($status: CommentStatus, $first: Int, $after: String) {
  moderationQueue(status: $status, first: $first, after: $after) {
    nodes { id status reportReasons }
    pageInfo { hasNextPage endCursor }
  }
}
"""
TOP_PRODUCTS = "{ topProducts(first: 100) { nodes { product fiveStars statistics { total } } } }"


# ── vocabulary ──

CREATE_LIST = mutation(
    "createWordList", "WordListCreated", "list { id name level public owner { name } wordCount subscriberCount }"
)
ADD_WORDS = mutation(
    "addWords",
    "WordsAdded",
    "list { id wordCount } words { id term reading example audioUrl simplified traditional pinyin definition }",
)
UPDATE_WORD = mutation(
    "updateWord", "WordUpdated", "word { id term reading example audioUrl simplified traditional pinyin definition }"
)
REMOVE_WORD = mutation("removeWord", "WordRemoved", "list { id wordCount words(first: 100) { nodes { id } } }")
UPDATE_LIST = mutation("updateWordList", "WordListUpdated", "list { id name level public owner { name } wordCount }")
DELETE_LIST = mutation("deleteWordList", "WordListDeleted", "deletedId")
DELETE_SENTENCE = mutation("deleteSentence", "SentenceDeleted", "deletedId")
SUBSCRIBE = mutation("subscribe", "Subscribed", "subscription { active since characterSet list { id } }")
UNSUBSCRIBE = mutation("unsubscribe", "Unsubscribed", "subscription { active since characterSet }")
RECORD_QUIZ = mutation(
    "recordQuiz",
    "QuizRecorded",
    "result { id date correct total list { id } user { name } } streak { current longest lastActiveOn }",
)
WRITE_SENTENCE = mutation(
    "writeSentence", "SentenceWritten", "sentence { id date text createdAt word { id simplified } }"
)
