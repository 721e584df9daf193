"""What each kind of job does; see `running`."""

from __future__ import annotations

from collections.abc import Mapping

from resolvers.jobs.running import Work
from resolvers.journal.webhooks import REDELIVER, redeliver_job
from resolvers.members.erasing import (
    ERASE_MEMBER,
    ERASE_MEMBER_AGAIN,
    erase_member_again_job,
    erase_member_job,
)
from resolvers.members.exporting import EXPORT_MEMBER, export_member_job
from resolvers.members.taking_back import TAKE_BACK, take_back_job
from resolvers.pickem.event_jobs import SCORE_EVENT, UNSCORE_EVENT
from resolvers.pickem.scoring import score_event_job
from resolvers.pickem.unscoring import unscore_event_job
from resolvers.voting.voiding import VOID_VOTER, void_voter_job

JOB_KINDS: Mapping[str, Work] = {
    ERASE_MEMBER: erase_member_job,
    ERASE_MEMBER_AGAIN: erase_member_again_job,
    EXPORT_MEMBER: export_member_job,
    REDELIVER: redeliver_job,
    SCORE_EVENT: score_event_job,
    TAKE_BACK: take_back_job,
    UNSCORE_EVENT: unscore_event_job,
    VOID_VOTER: void_voter_job,
}
