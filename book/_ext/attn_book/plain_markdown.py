"""MyST into the Markdown that Colab, VS Code and GitHub show: directives and roles become
words.

``plain(text, resolve)`` is a pure function of the text of one Markdown cell. ``resolve(role,
target)`` gives the words for a reference ("Theorem 2", "Vaswani et al. (2017)"), or None when
it knows none.
"""

import re
from dataclasses import dataclass, field

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|:{3,}|~{3,})(?P<rest>.*)$")
NAME = re.compile(r"^\{(?P<name>[\w:.+-]+)\}\s*(?P<argument>.*)$")
OPTION = re.compile(r"^ *:(?P<key>[\w-]+):\s*(?P<value>.*)$")
CODE = re.compile(r"(?<!\\)(?<!`)(`+)(?!`)(?P<body>.+?)(?<!`)\1(?!`)", re.DOTALL)
ROLE = re.compile(r"\{(?P<role>[a-z][\w:.-]*)\}$")
TITLED = re.compile(r"^(?P<title>.*?)\s*<(?P<target>[^<>]+)>$", re.DOTALL)
LINK = re.compile(r"\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]+)\)")
EQUATION = re.compile(r"^\$\$\s*\((?P<label>[\w:.-]+)\)\s*$")

DROPPED = {"contents", "exercise-end", "index", "solution-end", "tableofcontents", "toctree"}
FOLDED = {"dropdown", "solution"}
NUMBERED = {"exercise", "exercise-start", "solution", "solution-start"}
UNTITLED = {"div", "container", "epigraph", "glossary", "grid", "grid-item", "margin", "tab-set"}


@dataclass
class Directive:
    """One fenced directive: ``name``, what follows it, its options and its body."""

    name: str
    argument: str
    options: dict[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)


def plain(text, resolve):
    """Return ``text`` without MyST."""
    return "\n".join(tidy(blocks(text.splitlines(), resolve))).strip("\n")


# --- blocks ---------------------------------------------------------------------------------------
def blocks(lines, resolve):
    """Yield the plain lines of a run of MyST lines."""
    prose, i = [], 0
    while i < len(lines):
        fence = FENCE.match(lines[i])
        if not fence:
            prose.append(lines[i])
            i += 1
            continue
        yield from paragraphs(prose, resolve)
        prose, end = [], closing(lines, i, fence)
        named = NAME.match(fence["rest"].strip())
        inside = [line.removeprefix(fence["indent"]) for line in lines[i + 1 : end]]
        if named:
            directive = read(named["name"], named["argument"].strip(), inside)
            yield from (
                fence["indent"] + line if line else "" for line in write(directive, resolve)
            )
        elif fence["fence"][0] == ":":
            yield from blocks(inside, resolve)
        else:
            yield from lines[i : end + 1]
        i = end + 1
    yield from paragraphs(prose, resolve)


def closing(lines, start, fence):
    """Return the index of the line that closes the fence (the end of the text, if none does)."""
    mark = fence["fence"]
    for i in range(start + 1, len(lines)):
        line = lines[i].strip()
        if len(line) >= len(mark) and set(line) == {mark[0]}:
            return i
    return len(lines)


def read(name, argument, lines):
    """Split a directive's lines into options (``:key: value`` or a YAML block) and body."""
    directive, i = Directive(name, argument), 0
    yaml = bool(lines) and lines[0].strip() == "---"
    i += yaml
    while i < len(lines):
        option = OPTION.match(":" + lines[i] if yaml else lines[i])
        if not option:
            break
        directive.options[option["key"]] = option["value"].strip()
        i += 1
    if yaml and i < len(lines) and lines[i].strip() == "---":
        i += 1
    directive.body = lines[i:]
    return directive


def write(directive, resolve):
    """Yield a directive as plain Markdown, an empty line before and after."""
    name, body = directive.name, directive.body
    writer = WRITERS.get(name)
    yield ""
    if name in DROPPED:
        pass
    elif writer:
        yield from writer(directive, resolve)
    else:
        title, inner = heading(directive, resolve), tidy(blocks(body, resolve))
        folded = name in FOLDED or "dropdown" in directive.options.get("class", "").split()
        folded &= not name.endswith("-start")  # its body lies outside, cells and all
        if folded:
            yield from (
                "<details>",
                f"<summary><b>{html(title)}</b></summary>",
                "",
                *inner,
                "",
                "</details>",
            )
        else:
            yield from ([f"**{title}**", ""] if title else []) + inner
            if name == "prf:proof":
                yield from ("", "∎")
    yield ""


def heading(directive, resolve):
    """Return the words that head a directive: its kind, its number, its title."""
    name, title = directive.name, inline(directive.argument, resolve)
    if name in UNTITLED:
        return title
    if name in {"solution", "solution-start"}:
        return f"Solution to {reference(resolve, 'ref', directive.argument)}"
    if name.startswith("prf:") or name in NUMBERED:
        kind = name.removeprefix("prf:").removesuffix("-start").capitalize()
        label = directive.options.get("label")
        words = (label and resolve("prf:ref", label)) or kind
        return f"{words} ({title})" if title else words
    if title or name in {"admonition", "dropdown", "card", "grid-item-card", "tab-item"}:
        return title
    return {"seealso": "See also"}.get(name, name.rpartition(":")[2].replace("-", " ").capitalize())


def math(directive, resolve):
    """Write a display equation."""
    lines = [directive.argument, *directive.body] if directive.argument else directive.body
    label = directive.options.get("label")
    return ["$$", *[line for line in lines if line.strip()], *tag(label, resolve), "$$"]


def tag(label, resolve):
    """Return the line that numbers an equation as the book does, if the number is known."""
    number = label and resolve("eq", label)
    return [rf"\tag{{{number.strip('()')}}}"] if number else []


def code(directive, resolve):
    """Write a block of code."""
    return [f"```{directive.argument}", *directive.body, "```"]


def picture(directive, resolve):
    """Write an image, and its caption when there is one."""
    alt = directive.options.get("alt", "")
    return [f"![{alt}]({directive.argument})", *caption(directive, resolve)]


def caption(directive, resolve):
    """Write the caption of a figure whose picture a cell draws."""
    words = " ".join(tidy(blocks(directive.body, resolve))).strip()
    label = directive.options.get("name")
    number = (label and resolve("numref", label)) or ""
    return ["", f"*{' '.join(filter(None, [number and number + '.', words]))}*"] if words else []


def table(directive, resolve):
    """Write a ``list-table`` or a ``table``: the title in bold, the rows below."""
    title = inline(directive.argument, resolve)
    lines = [f"**{title}**", ""] if title else []
    if directive.name == "table":
        return lines + tidy(blocks(directive.body, resolve))
    rows = []
    for line in directive.body:
        start = re.match(r"^(?P<row>\*)?\s*-\s?(?P<cell>.*)$", line)
        if start and start["row"]:
            rows.append([])
        if start and rows:
            rows[-1].append(start["cell"])
        elif line.strip() and rows and rows[-1]:
            rows[-1][-1] += " " + line.strip()
    cells = [f"| {' | '.join(inline(cell, resolve) for cell in row)} |" for row in rows]
    return lines + cells[:1] + ["|" + " --- |" * len(rows[0])] + cells[1:] if rows else lines


WRITERS = {
    "math": math,
    "code": code,
    "code-block": code,
    "image": picture,
    "figure": picture,
    "glue:figure": caption,
    "list-table": table,
    "table": table,
    "glue": lambda directive, resolve: [reference(resolve, "glue", directive.argument)],
    "bibliography": lambda directive, resolve: [resolve("bibliography", "") or ""],
}


# --- prose ----------------------------------------------------------------------------------------
def paragraphs(lines, resolve):
    """Return lines of prose without targets, comments, equation labels and roles."""
    kept = []
    for line in lines:
        label = EQUATION.match(line)
        if label:
            kept += [*tag(label["label"], resolve), "$$"]
        elif not re.match(r"^(\([\w:.-]+\)=\s*|%.*|\+\+\+.*)$", line):
            kept.append(line)
    return inline("\n".join(kept), resolve).split("\n") if kept else []


def inline(text, resolve):
    """Replace the roles and the links between chapters in a run of text; code stays as it is."""
    out, rest = "", 0
    for span in CODE.finditer(text):
        before = text[rest : span.start()]
        role = ROLE.search(before)
        if role:
            words = spoken(role["role"], span["body"], resolve)
            out += links(before[: role.start()], resolve) + words
        else:
            out += links(before, resolve) + span[0]
        rest = span.end()
    return out + links(text[rest:], resolve)


def spoken(role, body, resolve):
    """Return the words for one role."""
    titled = TITLED.match(body)
    if role == "math":
        return f"${body}$"
    if titled and titled["title"] and "%s" not in body and "{" not in body:
        return titled["title"]
    return reference(resolve, role, titled["target"] if titled else body)


def reference(resolve, role, target):
    """Return the words ``resolve`` knows for a reference, or the label read aloud."""
    words = resolve(role, target)
    return words if words is not None else re.sub(r"(?<=\w)[-_:](?=\w)", " ", target)


def links(text, resolve):
    """Point links between chapters at their notebooks; name a link that has no words."""

    def link(found):
        words, target = found["text"], found["target"]
        page, _, anchor = target.partition("#")
        if "://" in target:
            return found[0]
        if page.endswith(".md"):
            words = words or reference(resolve, "doc", page.removesuffix(".md"))
            return f"[{words}]({page.removesuffix('.md').rpartition('/')[2]}.ipynb)"
        if not page or "." not in page:
            return words or reference(resolve, "ref", anchor or page)
        return found[0]

    return LINK.sub(link, text)


def html(text):
    """Return text for a summary line, which is HTML: no emphasis, no code marks."""
    return re.sub(r"[*`]", "", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def tidy(lines):
    """Return lines with runs of empty ones outside code made one, and none at the ends."""
    out, fence = [], ""
    for line in lines:
        found = FENCE.match(line)
        if found and not fence:
            fence = found["fence"]
        elif found and found["fence"].startswith(fence) and not found["rest"].strip():
            fence = ""
        if fence or line.strip() or (out and out[-1].strip()):
            out.append(line.rstrip() if not fence else line)
    while out and not out[-1].strip():
        out.pop()
    return out
