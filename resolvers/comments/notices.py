"""Telling authors of replies by email: which reply is told to whom."""

from datastore.comments.changes import CommentChange
from datastore.comments.notices import ReplyNotice, answer_notice, new_notice
from datastore.comments.records import Comment
from datastore.comments.threads import is_visible, read_answered
from datastore.people.profiles import Profile
from resolvers.people.confirmations import Confirmations
from resolvers.requests.context import Services


async def notice_of(services: Services, change: CommentChange, answered: Comment | None) -> ReplyNotice | None:
    """What tells the author of the answered comment of a reply that becomes visible; None if they do not want it.

    The answered comment is read if it is not given.
    """
    reply = change.new
    if reply is None or not is_visible(reply) or not services.get(Confirmations).can_send:
        return None
    if _is_answered(change):
        return await _notice_of_answer(services, reply)
    if reply.reply_to is None or is_visible(change.old):
        return None
    if answered is None:
        place = (reply.product, reply.reply_to, reply.reply_to != reply.root)
        answered = (await read_answered(services.table, [place])).get(place)
    if answered is None or answered.removed or answered.author == reply.author:
        return None
    if not wants_replies(await services.profiles.load(answered.author)):
        return None
    return new_notice(answered.author, reply, services.clock())


def _is_answered(change: CommentChange) -> bool:
    """Whether the site's answer is what changes."""
    old, new = change.old, change.new
    return old is not None and new is not None and new.answer is not None and new.answer != old.answer


async def _notice_of_answer(services: Services, comment: Comment) -> ReplyNotice | None:
    """The site's answer counts as a reply, but for an editor who answers themselves."""
    if comment.answer is None or comment.answer.by == comment.author:
        return None
    if not wants_replies(await services.profiles.load(comment.author)):
        return None
    now = services.clock()
    return answer_notice(comment, services.ids.next(now), now)


def wants_replies(profile: Profile | None) -> bool:
    """Guests and those whose address is not known to be theirs get no emails, whatever they want."""
    return profile is not None and bool(profile.reply_emails and profile.proven_email) and not profile.is_guest
