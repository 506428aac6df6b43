"""Docstrings as they are written here, for docutils: bars of magnitudes are no substitutions, and so on."""

import re

# |F|, ‖G‖₂, ŷ* and names with a trailing underscore mean something else in reStructuredText.
_LITERAL = re.compile(r"(``.+?``|`[^`]+`)")
_SPECIAL = re.compile(r"(?<!\\)([|*])")


def escape_line(line):
    """Escape bars and single stars outside of literals; leave emphasis such as *Privacy.* and **options."""
    line = re.sub(r":math:`([^`]+)`", r"``\1``", line)  # what draws formulas would have to be loaded from elsewhere
    line = re.sub(r"^(\s*[A-Za-z])\.(?=\s|$)", r"\1\\.", line)  # "F." is no item of a list
    parts = _LITERAL.split(line)
    for i in range(0, len(parts), 2):
        text = re.sub(r"(?<!\\)\|", r"\\|", parts[i])
        kept = {}

        def keep(match, kept=kept):
            kept[f"\0{len(kept)}\0"] = match[0]
            return f"\0{len(kept) - 1}\0"

        text = re.sub(r"(?<![\w*\\])\*\*?[^\s*](?:[^*]*[^\s*])?\*\*?(?![\w*])", keep, text)
        text = re.sub(r"(?<!\\)\*", r"\\*", text)
        text = re.sub(r"(?<=\w)_(?!\w)", r"\\_", text)  # V_* is no name of a link
        for key, value in kept.items():
            text = text.replace(key, value)
        parts[i] = text
    return "".join(parts)


def move_model(lines):
    """Make the section "Model", which numpydoc does not know and drops, a part of the summary above all sections."""
    heads = [i for i in range(len(lines) - 1) if lines[i].strip() and re.fullmatch(r"-{3,}", lines[i + 1].strip())]
    for k, i in enumerate(heads):
        if lines[i].strip() == "Model":
            end = heads[k + 1] if k + 1 < len(heads) else len(lines)
            section = [".. rubric:: Model", "", *lines[i + 2 : end], ""]
            del lines[i:end]
            lines[heads[0] : heads[0]] = section
            return


def process(app, what, name, obj, options, lines):
    """Escape the lines of a docstring but for its code and its displays."""
    move_model(lines)
    literal = None
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        if literal is None and not line.lstrip().startswith((">>>", "...", "..")):
            if line.rstrip().endswith("::"):
                literal = indent
            lines[i] = escape_line(line)


def setup(app):
    app.connect("autodoc-process-docstring", process, priority=200)
    return {"parallel_read_safe": True}
