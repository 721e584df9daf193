"""Rules for the texts of lists and words."""

from dataclasses import dataclass

from datastore.refusals import InvalidInput
from datastore.vocabulary.words import Word
from resolvers.values.texts import parse_line, validate_web_address

LONGEST_NAME = 100
LONGEST_TERM = 100
LONGEST_READING = 200
LONGEST_DEFINITION = 1000
LONGEST_EXAMPLE = 500
HIGHEST_LEVEL = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWord:
    """A word whose texts are not validated yet: a `term`, or Chinese with `simplified`."""

    simplified: str | None = None
    traditional: str | None = None
    pinyin: str | None = None
    definition: str
    term: str | None = None
    reading: str | None = None
    example: str | None = None
    audio_url: str | None = None


def parse_list_name(text: str, path: tuple[str, ...]) -> str:
    return parse_line(text, LONGEST_NAME, "A list's name", path)


def validate_level(level: int | None) -> None:
    if level is not None and not 0 <= level <= HIGHEST_LEVEL:
        raise InvalidInput(f"A level is 0 to {HIGHEST_LEVEL}.", path=("input", "level"))


def parse_word(list_id: str, new: NewWord, path: tuple[str, ...]) -> Word:
    """A word with valid texts. Its ordinal is assigned when it is added."""
    chinese = _is_chinese(new, path)
    name, subject = ("simplified", "A word in simplified characters") if chinese else ("term", "A word")

    def optional(text: str | None, longest: int, subject: str, name: str) -> str | None:
        return parse_line(text, longest, subject, (*path, name)) if text and text.strip() else None

    return Word(
        list=list_id,
        ordinal=0,
        term=parse_line((new.simplified if chinese else new.term) or "", LONGEST_TERM, subject, (*path, name)),
        traditional=optional(new.traditional, LONGEST_TERM, "A word in traditional characters", "traditional"),
        pinyin=optional(new.pinyin, LONGEST_READING, "Pinyin", "pinyin"),
        definition=parse_line(new.definition, LONGEST_DEFINITION, "A definition", (*path, "definition")),
        any_language=None if chinese else True,
        own_reading=optional(new.reading, LONGEST_READING, "A reading", "reading"),
        example=optional(new.example, LONGEST_EXAMPLE, "An example", "example"),
        audio_url=validate_web_address(new.audio_url, (*path, "audioUrl"), "A sound") if new.audio_url else None,
    )


def as_new_word(word: Word) -> NewWord:
    """The texts of a word as they were given."""
    return NewWord(
        simplified=word.term if word.chinese else None,
        traditional=word.traditional,
        pinyin=word.pinyin,
        definition=word.definition,
        term=None if word.chinese else word.term,
        reading=word.own_reading,
        example=word.example,
        audio_url=word.audio_url,
    )


def _is_chinese(new: NewWord, path: tuple[str, ...]) -> bool:
    """Whether it is given in Chinese characters; refused if it is given in both ways, or in neither."""
    if (new.term is None) == (new.simplified is None):
        raise InvalidInput(
            "Give either `term`, for a word of any language, or `simplified`, for a Chinese one.", path=(*path, "term")
        )
    if new.term is not None and (new.traditional or new.pinyin):
        name = "traditional" if new.traditional else "pinyin"
        raise InvalidInput(f"`{name}` belongs to a word given as `simplified`. Use `reading`.", path=(*path, name))
    return new.simplified is not None
