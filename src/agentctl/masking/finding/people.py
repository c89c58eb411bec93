"""Names that a text introduces: after a title, a greeting, `my name is`, and under a letter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentctl.masking.finding.hits import Hit
from agentctl.masking.ordinary import NOT_NAMES
from agentctl.masking.tokens.names import is_kept
from agentctl.masking.words import LETTERS

_WORD: Final = rf"{LETTERS}(?:['’.-]{LETTERS})*\.?"
NAME: Final = rf"(?P<name>{_WORD}(?:[ \u00a0]{_WORD}){{0,4}})"
_WHOLE = re.compile(NAME)
_TITLE = re.compile(
    rf"\b(?:Mrs?|Ms|Mx|Miss|Dr|Prof|Sra?|Srta|Herrn?|Frau|Mme|Mlle|Shri|Smt|Signora?|Hr|Fru)\b\.? (?={NAME})"
)
_SURE = re.compile(
    rf"\b(?i:my (?:full )?name is|my name's|me llamo|mi nombre es|je m'appelle|mon nom est|ich hei(?:ß|ss)e"
    rf"|mein name ist|meu nome é|me chamo|mi chiamo|il mio nome è|jag heter|mijn naam is|ik heet"
    rf"|nazywam się|mera naam|меня зовут)"
    rf" (?={NAME})"
)
_LIKELY = re.compile(
    rf"\b(?i:this is|i am|i'm|it's|speaking with|on behalf of|soy|je suis|ich bin|sou|sono) (?={NAME})"
)
_PERSON = re.compile(
    rf"\b(?i:customer|client|passenger|guest|patient|applicant|caller|user|wife|husband|spouse|partner|mother|father|son"
    rf"|daughter|brother|sister|boss|colleague|kundin?|cliente|pasajer[oa]|esposa|esposo|mann|mari|femme) (?={NAME})"
)
_GREETING = re.compile(
    rf"(?m)^\W{{0,3}}(?i:dear|hi|hello|hey|good (?:morning|afternoon|evening)|hola|estimad[oa]|bonjour|ch(?:er|ère)"
    rf"|hallo|guten tag|liebe[rs]?|sehr geehrter?|olá|prezad[oa]|caro|cara|ciao|buongiorno|namaste) {NAME}(?=[,!:\n])"
)
_SIGNED = re.compile(
    rf"(?m)^(?i:(?:best |kind |warm )?regards|best|many thanks|thanks|thank you|sincerely|yours \w+|cheers|saludos"
    rf"|cordialement|(?:viele |mit freundlichen )?grü(?:ße|ßen|sse)|atenciosamente|abraços"
    rf"|cordiali saluti),?[ ]*\n+[ ]*{NAME}[ ]*$"
)
_SIGNS: Final = (  # pattern, words of a name at least, texts of which one stands where it finds anything
    (
        _TITLE,
        1,
        ("mr", "ms", "mx", "miss", "dr", "prof", "sr", "herr", "frau", "mme", "mlle", "shri", "smt", "hr", "fru"),
    ),
    (
        _SURE,
        1,
        ("name", "llam", "nombre", "appelle", "nom est", "hei", "nome", "chiamo", "heter", "heet", "naam", "зовут"),
    ),
    (_LIKELY, 2, ("this is", "i am", "i'm", "it's", "speaking", "behalf", "soy", "suis", "ich bin", "sou", "sono")),
    (_PERSON, 2, (" ",)),
    (_GREETING, 1, (",", "!", ":", "\n")),
    (_SIGNED, 1, ("\n",)),
)


def introduced_in(text: str, name: str) -> Iterator[Hit]:
    """Finds names that a text introduces."""
    lower = text.lower()
    for pattern, least, signs in _SIGNS:
        if any(sign in lower for sign in signs):
            for found in pattern.finditer(text):
                end = name_end(text, found.start("name"), found.end("name"), least=least)
                if end is not None:
                    yield Hit(found.start("name"), end, "name", 3)


def name_end(text: str, start: int, end: int, *, least: int) -> int | None:
    """Returns where the name that begins at a position ends, or None where no name begins there.

    A name's words begin with a capital letter, where the script has any, but for particles; ordinary words are none.

    Args:
        text: The text.
        start: Where the first word begins.
        end: Where the last one ends at most.
        least: Words that it has at least.
    """
    n_names = 0
    reached = None
    for found in re.finditer(_WORD, text[start:end]):
        word = found[0].rstrip(".").removesuffix("'s").removesuffix("’s")
        if is_kept(word):
            continue
        if word[0].islower() or word.casefold() in NOT_NAMES:
            break
        n_names += 1
        reached = start + found.start() + len(word)
    return reached if n_names >= least else None


def looks_like_name(text: str) -> bool:
    """Says whether a text is a name of two words or more and nothing else."""
    bare = text.strip()
    return _WHOLE.fullmatch(bare) is not None and name_end(bare, 0, len(bare), least=2) == len(bare)
