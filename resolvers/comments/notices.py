"""Telling authors of replies by email: which reply is told to whom."""

from datastore.comments.changes import CommentChange
from datastore.comments.notices import ReplyNotice, answer_notice, new_notice
from datastore.comments.records import Comment
from datastore.comments.threads import is_visible, read_answered
from datastore.people.profiles import Profile
from resolvers.people.confirmations import Confirmations
from resolvers.requests.context import Services


async def notice_of(services: Services, change: CommentChange, answered: Comment | None) -> ReplyNotice | None:
    """What tells an author of a reply that becomes visible, or else of the site's answer; None if they do not want it.

    The answered comment is read if it is not given.
    """
    new = change.new
    if new is None or not is_visible(new) or not services.get(Confirmations).can_send:
        return None
    notice = None if is_visible(change.old) else await _notice_of_reply(services, new, answered)
    return notice or (await _notice_of_answer(services, new) if _is_answered(change.old, new) else None)


async def _notice_of_reply(services: Services, reply: Comment, answered: Comment | None) -> ReplyNotice | None:
    if reply.reply_to is None:
        return None
    if answered is None:
        place = (reply.product, reply.reply_to, reply.reply_to != reply.root)
        answered = (await read_answered(services.table, [place])).get(place)
    if answered is None or answered.removed or answered.author == reply.author:
        return None
    if not wants_replies(await services.profiles.load(answered.author)):
        return None
    return new_notice(answered.author, reply, services.clock())


def _is_answered(old: Comment | None, new: Comment) -> bool:
    """Whether the site's answer is what becomes visible."""
    seen = old.answer if old is not None and is_visible(old) else None
    return new.answer is not None and new.answer != seen


async def _notice_of_answer(services: Services, comment: Comment) -> ReplyNotice | None:
    """The site's answer counts as a reply, but for an editor who answers themselves."""
    if comment.answer is None or comment.answer.by == comment.author:
        return None
    if not wants_replies(await services.profiles.load(comment.author)):
        return None
    return answer_notice(comment, comment.answer, services.clock())


def wants_replies(profile: Profile | None) -> bool:
    """Guests and those whose address is not known to be theirs get no emails, whatever they want."""
    return profile is not None and bool(profile.reply_emails and profile.proven_email) and not profile.is_guest
