# SPDX-License-Identifier: Apache-2.0
"""The patterns of the shipped signatures for rg and grep -E.

words: the texts that the classifier's search proposes lines by. lines: what has to hold for a line,
as extended regular expressions. Progress lines are in neither list: nobody would grep for them, and
the classifier looks for them only while it waits for a sign of life. Lookarounds, which grep -E has
not, are left out of the second list, so that it matches a little more than the signatures do.
"""
import json
import re

MACROS = {"%size%": r"\d[\d.,]*\s?(?:[KMGTPE]i?[Bb]|[Bb]ytes|[KMGT]\b|B\b)?", "%int%": r"\d+"}
CLASSES = {"d": "[:digit:]", "w": "[:alnum:]_", "s": "[:space:]"}


def quoted(text):
    return re.sub(r"([][\\.*^$(){}?+|])", r"\\\1", text)


def end_of_class(text, at):
    """Behind the ']' of the class that begins at `at`."""
    at += 2 if text[at + 1] == "^" else 1
    first = at
    while text[at] != "]" or at == first:
        at += 2 if text[at] == "\\" else 1
    return at + 1


def end_of_group(text, at):
    depth = 0
    while True:
        if text[at] == "\\":
            at += 2
            continue
        if text[at] == "[":
            at = end_of_class(text, at)
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at


def bracket(inside, nocase):
    """A class as both tools read it: brackets and backslashes stand beside it as alternatives, and
    are left out of a class that is negated."""
    negated = inside.startswith("^")
    out, apart = "", []
    for code, escape, letter in re.findall(r"\\x(..)|\\(.)|(.)", inside[negated:], re.S):
        letter = chr(int(code, 16)) if code else letter
        if escape in CLASSES:
            out += CLASSES[escape]
        elif (escape or letter) in ("[", "]", "\\", "-") and (escape or letter != "-"):
            apart.append(escape or letter)
        else:
            plain = {"t": "\t", "n": "\n"}.get(escape, escape) or letter
            out += plain + (plain.swapcase() if nocase and plain.isalpha() else "")
    if negated:
        return f"[^{']' if ']' in apart else ''}{out}{'-' if '-' in apart else ''}]"
    alternatives = [quoted(letter) for letter in apart] + ([f"[{out}]"] if out else [])
    return alternatives[0] if len(alternatives) == 1 else f"({'|'.join(alternatives)})"


def expression(text, nocase):
    """A Perl-compatible expression as an extended one."""
    for name, body in MACROS.items():
        text = text.replace(name, body)
    out, at = "", 0
    while at < len(text):
        rest = text[at:]
        if rest.startswith("(?i)"):
            nocase, at = True, at + 4
        elif rest.startswith("(?i:"):
            end = end_of_group(text, at)
            out, at = out + "(" + expression(text[at + 4:end - 1], True) + ")", end
        elif re.match(r"\(\?<?[!=]", rest):
            at = end_of_group(text, at)
        elif re.match(r"\(\?(:|<\w+>)", rest):
            out, at = out + "(", at + re.match(r"\(\?(:|<\w+>)", rest).end()
        elif rest[0] == "[":
            end = end_of_class(text, at)
            out += bracket(text[at + 1:end - 1], nocase)
            at = end
        elif rest[0] == "\\":
            letter = rest[1]
            if letter in "bWwSs":
                out += "\\" + letter
            elif letter == "d":
                out += "[0-9]"
            elif letter == "x":
                out += quoted(chr(int(rest[2:4], 16)))
                at += 2
            else:
                out += {"t": "\t"}.get(letter, quoted(letter))
            at += 2
        elif rest[0] == "?" and text[at - 1] in "*+?}":
            at += 1  # lazy: whether a line matches is the same
        elif nocase and rest[0].isalpha():
            out, at = out + f"[{rest[0].upper()}{rest[0].lower()}]", at + 1
        else:
            out, at = out + rest[0], at + 1
    return out


def lists(directory):
    words, lines = set(), set()
    for path in sorted(directory.glob("*.json")):
        for signature in json.loads(path.read_text())["signatures"]:
            if signature["kind"] == "progress":
                continue
            words.update(signature["find"])
            if "match" in signature:
                lines.add(expression(signature["match"], signature.get("nocase", False)))
            else:
                lines.update(quoted(text) for text in signature["find"])
    return sorted(words), sorted(lines)
