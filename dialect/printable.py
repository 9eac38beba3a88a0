"""Text for a terminal: what would steer it, or look like something else, in the names of a model, as escapes that one sees."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["joined_lines", "printable"]

# Categories of characters that steer: controls, formats, separators of lines and of paragraphs. Surrogates are bytes of file
# names, which terminals get as they are; private and unassigned ones are what a font or a newer Unicode shows.
_STEERING = frozenset({"Cc", "Cf", "Zl", "Zp"})
# Of these, what text is made of: hyphenation, joiners and marks of direction, and the tags in flags.
_ORDINARY = frozenset(map(chr, (0xAD, *range(0x200C, 0x2010), *range(0xE0020, 0xE0080))))


def printable(text: str, lines: bool = False) -> str:
    r"""The text with control characters as ``\x1b``; tabs stay, and ends of lines where it has several lines."""
    if text.isprintable():
        return text
    kept = "\t\n" if lines else "\t"
    return "".join(c if c.isprintable() or c in kept or not _steers(c) else c.encode("unicode_escape").decode() for c in text)


def joined_lines(lines: Iterable[str]) -> str:
    """One text of lines, none of which becomes two by what is in it."""
    return "\n".join(map(printable, lines))


def _steers(char: str) -> bool:
    from unicodedata import category  # here: most text needs none of it

    return category(char) in _STEERING and char not in _ORDINARY
