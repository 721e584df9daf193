"""What each kind of job does; the runner is told at the start."""

from collections.abc import Mapping
from functools import partial

from datastore.members.suspensions import without_rights
from resolvers.comments.claiming import CLAIM_COMMENTS, claim_comments_job
from resolvers.jobs.running import Work
from resolvers.journal.webhooks import REDELIVER, redeliver_job
from resolvers.pickem.scoring import SCORE_EVENT, UNSCORE_EVENT, score_event_job, unscore_event_job
from resolvers.voting import voiding
from resolvers.voting.suspects import FIND_SUSPECTS, find_suspects_job
from resolvers.whole.erasing import ERASE_MEMBER, TAKE_BACK, erase_member_job, take_back_job
from resolvers.whole.exporting import EXPORT_MEMBER, export_member_job
from resolvers.whole.importing import IMPORT_TEXT, import_text_job

JOB_KINDS: Mapping[str, Work] = {
    CLAIM_COMMENTS: partial(claim_comments_job, without_rights=without_rights),
    ERASE_MEMBER: erase_member_job,
    EXPORT_MEMBER: export_member_job,
    FIND_SUSPECTS: find_suspects_job,
    IMPORT_TEXT: import_text_job,
    REDELIVER: redeliver_job,
    voiding.RESTORE_VOTERS: voiding.restore_voters_job,
    SCORE_EVENT: score_event_job,
    TAKE_BACK: take_back_job,
    UNSCORE_EVENT: unscore_event_job,
    voiding.VOID_VOTER: voiding.void_voter_job,
    voiding.VOID_VOTERS: voiding.void_voters_job,
}
