"""Imports of what an editor pastes."""

import strawberry

from resolvers.whole import importing
from schema.framework.declarations import described, mutation, object_type, record_type, result_of
from schema.jobs import Job
from schema.voting import BOARD_SLUG

LENGTH = "at most 1 MB; the request with its escapes has to fit into RINGSIDE_MAX_BODY_BYTES, too"
DRY_RUN = "Whether to change nothing, and only to say what would be added and what is wrong."


@record_type(importing.ImportProblem, "A row of an import that is not valid.")
class ImportProblem:
    line: int = described("The line where it begins; of an event, its position in the list. Both count from 1.")
    message: str = described("What is wrong with it.")


Imported = object_type(
    "Imported",
    "What was imported.",
    added=(
        int,
        (
            "How many were added; so far, if there is a job; would be, in a dry run. The others existed already, were "
            "removed or renamed since, or are not valid."
        ),
    ),
    problems=(list[ImportProblem], f"What is wrong, for at most {importing.MOST_PROBLEMS} rows."),
    job=(Job | None, "What adds the rest, if that takes longer than 5 s; null when all is done."),
)
IMPORT_RESULT = result_of("Import", Imported, "What was imported, or why nothing was.")


@strawberry.type
class ImportsMutation:
    import_contenders = mutation(
        importing.import_contenders,
        "Adds contenders from a table, except those whose name the board has, or an import gave to a contender "
        "renamed since. If a row is not valid, none is added. For editors.",
        Imported,
        input_description="Contenders for a board.",
        result=IMPORT_RESULT,
        board=BOARD_SLUG,
        text="CSV with the columns name and, optionally, description, link, imageUrl and svg (the picture's text); "
        f"{LENGTH}. The first line names the columns.",
        dry_run=DRY_RUN,
    )
    import_events = mutation(
        importing.import_events,
        "Adds the events of a season file, with their cards. Those that exist are left as they are. If one is not "
        "valid, none is added. For editors.",
        Imported,
        input_description="A season.",
        result=IMPORT_RESULT,
        text=f"JSON, as `ringside export events` writes it; {LENGTH}.",
        dry_run=DRY_RUN,
    )
    import_words = mutation(
        importing.import_words,
        "Adds words to a public list. Those that it has, or that were removed from it, are not added (`addWords` adds "
        "them); rows that are not valid are skipped. For editors.",
        Imported,
        input_description="Words for a public list.",
        result=IMPORT_RESULT,
        list="The list.",
        text=f"CSV with the columns definition and term or simplified; {LENGTH}. The first line names the columns.",
        dry_run=DRY_RUN,
    )
