"""GraphQL operations that several test modules send."""

from __future__ import annotations

# ── people ──

UPDATE_PROFILE = """
mutation ($input: UpdateProfileInput!) {
  updateProfile(input: $input) {
    ... on ProfileUpdated { user { id name email timeZone avatarUrl joinedAt } }
    ... on Refused { code message path }
  }
}
"""

SUSPEND = """mutation ($input: SuspendMemberInput!) { suspendMember(input: $input) {
  ... on MemberSuspended { user { id suspension { until reason at } } } ... on Refused { code message path } } }"""
REINSTATE = """mutation ($input: ReinstateMemberInput!) { reinstateMember(input: $input) {
  ... on MemberReinstated { user { id suspension { reason } } } ... on Refused { code message path } } }"""
TAKE_BACK = """mutation ($input: TakeBackInput!) { takeBack(input: $input) {
  ... on TakenBack { job { id } } ... on Refused { code message path } } }"""


# ── voting ──

CREATE_BOARD = """
mutation ($input: CreateBoardInput!) { createBoard(input: $input) {
  ... on BoardCreated { board { id slug title contenderCount pairCount votes createdAt } }
  ... on Refused { code message path } } }
"""
ADD_CONTENDER = """
mutation ($input: AddContenderInput!) { addContender(input: $input) {
  ... on ContenderAdded { contender { id name svg retired wins losses ties score winRate rank board { slug } } }
  ... on Refused { code message path } } }
"""
UPDATE_CONTENDER = """
mutation ($input: UpdateContenderInput!) { updateContender(input: $input) {
  ... on ContenderUpdated { contender { id name svg } } ... on Refused { code message path } } }
"""
RETIRE_CONTENDER = """
mutation ($input: RetireContenderInput!) { retireContender(input: $input) {
  ... on ContenderRetired { contender { id name retired rank } } ... on Refused { code message path } } }
"""
RESTORE_CONTENDER = """
mutation ($input: RestoreContenderInput!) { restoreContender(input: $input) {
  ... on ContenderRestored { contender { id name retired rank wins losses ties score } }
  ... on Refused { code message path } } }
"""
UPDATE_BOARD = """
mutation ($input: UpdateBoardInput!) { updateBoard(input: $input) {
  ... on BoardUpdated { board { slug title opensAt closesAt closed } } ... on Refused { code message path } } }
"""
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
VOID_VOTER = """
mutation ($input: VoidVoterInput!) { voidVoter(input: $input) {
  ... on VoterVoided { votesRemoved } ... on Refused { code message path } } }
"""
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


def mutation(name: str, payload: str, fields: str) -> str:
    """A mutation that selects these fields of its payload."""
    input_type = f"{name[0].upper()}{name[1:]}Input"
    refused = "... on Refused { code message path }"
    return (
        f"mutation ($input: {input_type}!) {{ {name}(input: $input) {{ ... on {payload} {{ {fields} }} {refused} }} }}"
    )


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
POST_COMMENT = """
mutation ($input: PostCommentInput!) {
  postComment(input: $input) {
    ... on CommentPosted { comment { COMMENT_FIELDS } }
    ... on Refused { code message path retryAfterSeconds }
  }
}
""".replace("COMMENT_FIELDS", COMMENT_FIELDS)
EDIT_COMMENT = """
mutation ($input: EditCommentInput!) {
  editComment(input: $input) {
    ... on CommentEdited { comment { COMMENT_FIELDS } }
    ... on Refused { code message path }
  }
}
""".replace("COMMENT_FIELDS", COMMENT_FIELDS)
DELETE_COMMENT = """
mutation ($input: DeleteCommentInput!) {
  deleteComment(input: $input) { ... on CommentDeleted { deletedId } ... on Refused { code message path } }
}
"""
REPORT_COMMENT = """
mutation ($input: ReportCommentInput!) {
  reportComment(input: $input) {
    ... on CommentReported { comment { id status } }
    ... on Refused { code message path }
  }
}
"""
MODERATE_COMMENT = """
mutation ($input: ModerateCommentInput!) {
  moderateComment(input: $input) {
    ... on CommentModerated { comment { id status moderationNote } }
    ... on Refused { code message path }
  }
}
"""
MODERATE_COMMENTS = """
mutation ($input: ModerateCommentsInput!) {
  moderateComments(input: $input) {
    ... on CommentsModerated { comments { id status moderationNote author { id } } refused { id code message } }
    ... on Refused { code message path }
  }
}
"""
SET_HOLD_RULES = """
mutation ($input: SetHoldRulesInput!) {
  setHoldRules(input: $input) {
    ... on HoldRulesSet { rules { revision rules { name language words links firstComments perHour guests } } }
    ... on Refused { code message path }
  }
}
"""
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

CREATE_LIST = """
mutation ($input: CreateWordListInput!) {
  createWordList(input: $input) {
    ... on WordListCreated { list { id name level public owner { name } wordCount subscriberCount } }
    ... on Refused { code message path }
  }
}
"""
ADD_WORDS = """
mutation ($input: AddWordsInput!) {
  addWords(input: $input) {
    ... on WordsAdded {
      list { id wordCount }
      words { id term reading example audioUrl simplified traditional pinyin definition }
    }
    ... on Refused { code message path }
  }
}
"""
UPDATE_WORD = """
mutation ($input: UpdateWordInput!) {
  updateWord(input: $input) {
    ... on WordUpdated { word { id term reading example audioUrl simplified traditional pinyin definition } }
    ... on Refused { code message path }
  }
}
"""
REMOVE_WORD = """
mutation ($input: RemoveWordInput!) {
  removeWord(input: $input) {
    ... on WordRemoved { list { id wordCount words(first: 100) { nodes { id } } } }
    ... on Refused { code message path }
  }
}
"""
UPDATE_LIST = """
mutation ($input: UpdateWordListInput!) {
  updateWordList(input: $input) {
    ... on WordListUpdated { list { id name level public owner { name } wordCount } }
    ... on Refused { code message path }
  }
}
"""
DELETE_LIST = """
mutation ($input: DeleteWordListInput!) {
  deleteWordList(input: $input) { ... on WordListDeleted { deletedId } ... on Refused { code message path } }
}
"""
DELETE_SENTENCE = """
mutation ($input: DeleteSentenceInput!) {
  deleteSentence(input: $input) { ... on SentenceDeleted { deletedId } ... on Refused { code message path } }
}
"""
SUBSCRIBE = """
mutation ($input: SubscribeInput!) {
  subscribe(input: $input) {
    ... on Subscribed { subscription { active since characterSet list { id } } }
    ... on Refused { code message path }
  }
}
"""
UNSUBSCRIBE = """
mutation ($input: UnsubscribeInput!) {
  unsubscribe(input: $input) {
    ... on Unsubscribed { subscription { active since characterSet } }
    ... on Refused { code message path }
  }
}
"""
RECORD_QUIZ = """
mutation ($input: RecordQuizInput!) {
  recordQuiz(input: $input) {
    ... on QuizRecorded {
      result { id date correct total list { id } user { name } }
      streak { current longest lastActiveOn }
    }
    ... on Refused { code message path }
  }
}
"""
WRITE_SENTENCE = """
mutation ($input: WriteSentenceInput!) {
  writeSentence(input: $input) {
    ... on SentenceWritten { sentence { id date text createdAt word { id simplified } } }
    ... on Refused { code message path }
  }
}
"""
