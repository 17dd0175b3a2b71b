# Writes the API reference of the module as Markdown. Griffe reads the code; nothing of it runs.
import logging, tempfile


def plain(text):
    """Text for a cell of a table."""
    return " ".join(str(text or "").split()).replace("|", "\\|")


def code(text):
    return "`" + " ".join(str(text).split()).replace("`", "'").replace("|", "\\|") + "`" if text is not None and str(text) else ""


def style(text):
    """The convention that a docstring follows."""
    if ":param" in text or ":return" in text or ":raises" in text:
        return "sphinx"
    lines = [line.strip() for line in text.splitlines()]
    if any(a and set(b) == {"-"} and len(b) >= 3 for a, b in zip(lines, lines[1:])):
        return "numpy"
    return "google"


def parameter(p):
    kind = p.kind.value if p.kind else ""
    star = "*" if kind == "variadic positional" else "**" if kind == "variadic keyword" else ""
    text = star + p.name
    if p.annotation is not None:
        text += f": {p.annotation}"
    if p.default is not None and not star:
        text += f" = {p.default}" if p.annotation is not None else f"={p.default}"
    return text


def signature(f, method):
    parts, keyword_only, positional = [], False, False
    for i, p in enumerate(f.parameters):
        kind = p.kind.value if p.kind else ""
        if method and i == 0 and p.name in ("self", "cls") and "staticmethod" not in f.labels:
            continue
        if positional and kind != "positional-only":
            parts.append("/")
        positional = kind == "positional-only"
        if kind == "variadic positional":
            keyword_only = True
        elif kind == "keyword-only" and not keyword_only:
            parts.append("*")
            keyword_only = True
        parts.append(parameter(p))
    if positional:
        parts.append("/")
    text = f"{f.name}({', '.join(parts)})"
    if f.returns is not None:
        text += f" -> {f.returns}"
    return ("async " if "async" in f.labels else "") + text


def rows(out, title, columns, values):
    values = list(values)
    if values:
        out += ["**" + title + "**", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        out += ["| " + " | ".join(v) + " |" for v in values] + [""]


def sections(out, obj):
    """Write what a docstring says; return whether it describes attributes."""
    described = False
    if obj.docstring is None or not obj.docstring.value.strip():
        out += ["*There is no documentation.*", ""] if obj.kind.value in ("function", "class") else []
        return False
    for s in obj.docstring.parse(style(obj.docstring.value)):
        kind, value = s.kind.value, s.value
        if kind == "text":
            out += [value.strip(), ""]
        elif kind in ("parameters", "other parameters", "attributes"):
            described = described or kind == "attributes"
            title = {"parameters": "Parameters", "other parameters": "Further parameters", "attributes": "Attributes"}[kind]
            rows(out, title, ["name", "type", "meaning"], ([code(v.name), code(v.annotation), plain(v.description)] for v in value))
        elif kind in ("returns", "yields"):
            rows(out, kind.capitalize(), ["type", "meaning"], ([code(v.annotation) or code(v.name), plain(v.description)] for v in value))
        elif kind in ("raises", "warns"):
            rows(out, kind.capitalize(), ["exception", "when"], ([code(v.annotation), plain(v.description)] for v in value))
        elif kind == "examples":
            out += ["**Examples**", ""]
            for part, text in value:
                out += [text.strip(), ""] if part.value == "text" else ["```python", text.rstrip(), "```", ""]
        elif kind == "admonition":
            out += [f"**{s.title or value.kind}**", "", str(value.contents).strip(), ""]
    return described


def public(obj, exports):
    if exports is not None:
        return obj.name in exports
    return not obj.name.startswith("_")


def function(out, f, level, method=False):
    name = f"{f.parent.name}.{f.name}" if method else f.name
    out += [f"{'#' * level} {name}".replace("_", "\\_"), "", "```python", signature(f, method), "```", ""]
    sections(out, f)


def attributes(out, of):
    values = [a for a in of.attributes.values() if not a.is_alias and not a.name.startswith("_") and (a.docstring or a.annotation is not None or a.name.isupper())]
    rows(out, "Values", ["name", "type", "value", "meaning"],
         ([code(a.name), code(a.annotation), code(a.value) if a.value is not None and len(str(a.value)) <= 60 else "", plain(a.docstring.value if a.docstring else "")] for a in values))


def klass(out, c, level):
    bases = ", ".join(str(b) for b in c.bases)
    out += [f"{'#' * level} class {c.name}".replace("_", "\\_"), "", "```python", f"class {c.name}" + (f"({bases})" if bases else ""), "```", ""]
    init = c.functions.get("__init__")
    if init is not None and not init.is_alias and [p for p in init.parameters if p.name != "self"]:
        out += ["```python", signature(init, True).replace("__init__", c.name, 1).removesuffix(" -> None"), "```", ""]
    told = sections(out, c)
    if init is not None and not init.is_alias and init.docstring:
        sections(out, init)
    if not told:
        attributes(out, c)
    for f in c.functions.values():
        if not f.is_alias and not f.name.startswith("_"):
            function(out, f, level + 1, method=True)
    for inner in c.classes.values():
        if not inner.is_alias and not inner.name.startswith("_"):
            klass(out, inner, level + 1)


def document():
    griffe = tool("griffe", "griffe")
    if griffe is None:
        return
    logging.disable(logging.WARNING)
    name = os.path.splitext(os.path.basename(TASK["file"]))[0]
    importable = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, importable + ".py"), "w", encoding="utf-8") as f:
        f.write(TASK["text"])
    module = griffe.load(importable, search_paths=[folder], allow_inspection=False, submodules=False)
    exports = {str(e) for e in module.exports} if module.exports is not None else None
    out = [f"# {name}".replace("_", "\\_"), ""]
    if not sections(out, module):
        attributes(out, module)
    members = [m for m in module.members.values() if not m.is_alias and public(m, exports)]
    for m in members:
        if m.kind.value == "class":
            klass(out, m, 2)
        elif m.kind.value == "function":
            function(out, m, 2)
    undocumented = sum(1 for m in members if m.kind.value in ("class", "function") and not (m.docstring and m.docstring.value.strip()))
    described = sum(1 for m in members if m.kind.value in ("class", "function"))
    os.makedirs(".cove-check", exist_ok=True)
    with open(".cove-check/document", "w", encoding="utf-8") as f:
        f.write("\n".join(out).rstrip() + "\n")
    emit("document", described=described, undocumented=undocumented)


document()
