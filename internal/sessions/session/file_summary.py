

# What a model is told of files before it reads them (file_summary.py, behind preview.py in one program): for each file what it is, in one line, and a few lines of what is in it. Each
# file is read by a process of its own, which is bounded as that of a preview is.

import ast
import re
import select

AT_ONCE = 2  # processes
FILE_SECONDS, ALL_SECONDS = 6, 10
MOST_LINES, LONGEST_SHOWN, LONGEST_ANSWER = 6, 300, 32 << 10
SAMPLE = 256 << 10
SHAPE, DEPTH, KEYS, ELEMENTS = 1500, 6, 24, 50
WHOLE_JSON, COUNTED_LINES = 20 << 20, 256 << 20
SHOWN_SHEETS, SHOWN_ROWS, SHOWN_COLUMNS, SHOWN_CELL = 8, 3, 40, 60


def grouped(n):
    return "{:,}".format(n)


def several(n, word):
    return "%s %s" % (grouped(n), word if n == 1 else word + "s")


def size_of(rows, columns):
    return several(columns, "column") if rows is None else "%s × %s" % (several(rows, "row"), several(columns, "column"))


def csv_line(values):
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(["" if v is None else str(v)[:SHOWN_CELL] for v in values[:SHOWN_COLUMNS]])
    return out.getvalue() + (",…" if len(values) > SHOWN_COLUMNS else "")


def how_encoded(named):
    if named in (None, "utf-8"):
        return ""
    if named == "utf-8-sig":
        return ", UTF-8 with BOM"
    return ', not UTF-8: read it with encoding="%s"' % named + (' (less likely: "%s")' % named.other if getattr(named, "other", None) else "")


def counted_lines(file, size):
    """How many lines a file has, and whether that is known; an estimate from a part where it is large."""
    file.seek(0)
    count, got, last = 0, 0, b""
    while got < COUNTED_LINES and not late():
        part = file.read(1 << 20)
        if not part:
            return count + (not last.endswith(b"\n") and got > 0), True
        count, got, last = count + part.count(b"\n"), got + len(part), part[-1:]
    return count * size // max(got, 1), False


def looks_named(row):
    """Whether a row may be the names of columns."""
    return bool(row) and all(v not in (None, "") and number(str(v)) is None and not re.match(r"\d{1,4}[-/.]\d", str(v)) for v in row)


def header_of(rows):
    """Where the names of the columns are among the first rows of a table, or None where there are none: titles and notes may stand above them."""
    filled = [sum(1 for v in row if v not in (None, "")) for row in rows]
    some = sorted(n for n in filled if n)
    usual = some[len(some) // 2] if some else 0
    if usual < 2:
        return 0 if rows else None
    for at, row in enumerate(rows[:15]):
        if filled[at] >= max(2, usual * 0.6):
            named = looks_named([v for v in row if v not in (None, "")])
            below = rows[at + 1 : at + 6]
            typed = any(number(str(v)) is not None for r in below for v in r if v not in (None, ""))
            return at if named or not typed else None
    return 0


def above(at):
    if at is None:
        return ", no header"
    return "" if at == 0 else ", header in row %d below %s" % (at + 1, several(at, "other row"))


# Numbers as people write them, which pandas reads as text: with signs of currencies, per cent, or marks between thousands.
WRITTEN_NUMBER = re.compile(r"\(?[-+−]?\s?(?:[¥￥$€£₩₹]|RMB|CNY|USD|EUR)?\s?[-+−]?(?:\d{1,3}(?:[,.'’ \u00a0\u202f]\d{3})+|\d+)(?:[.,]\d+)?\s?(?:[%％‰¥￥$€£₩₹元円원万亿]|RMB|CNY|USD|EUR)?\)?-?")
READ_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
WRITTEN_DATE = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-]\d{2,4}")
NO_VALUE = frozenset(["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "-", "—", "–", "无", "暂无", "缺失"])
MOST_SAID = 12  # columns of one kind


def columns_told(names, body, comma=False):
    """What is not seen at once of a table's columns: numbers that are text, days before months, and missing values. comma says that numbers have a decimal comma, which is told already."""
    texts, days, missing = [], [], []
    width = max(map(len, body), default=0)
    for at in range(min(width, MOST_COLUMNS)):
        name = str(names[at]) if at < len(names) and names[at] not in (None, "") else "column %d" % (at + 1)
        cells = [row[at] if at < len(row) else None for row in body]
        written = [v.strip() for v in cells if isinstance(v, str) and v.strip() not in NO_VALUE]
        odd = [v for v in written if not READ_NUMBER.fullmatch(v.replace(",", ".") if comma else v)]
        if odd and len(written) > 1 and sum(1 for v in written if WRITTEN_NUMBER.fullmatch(v)) >= 0.9 * len(written) and not all(WRITTEN_DATE.fullmatch(v) for v in odd):
            texts.append("%s (as %s)" % (name[:SHOWN_CELL], json.dumps(odd[0], ensure_ascii=False)))
        dates = [WRITTEN_DATE.fullmatch(v) for v in written]
        if len(dates) > 1 and all(dates) and any(int(d[1]) > 12 for d in dates) and all(int(d[2]) <= 12 for d in dates):
            days.append("%s (as %s)" % (name[:SHOWN_CELL], next(v for v, d in zip(written, dates) if int(d[1]) > 12)))
        gone = sum(1 for v in cells if v is None or isinstance(v, str) and v.strip() in NO_VALUE)
        if gone:
            missing.append("%s %d" % (name[:SHOWN_CELL], gone))
    out = []
    for said, what in ((texts, "numbers held as text: "), (days, "dates with the day first: "), (missing, "missing in these %d rows: " % len(body) if len(body) < 200 else "missing in the first 200 rows: ")):
        if said:
            out.append("[%s%s%s]" % (what, ", ".join(said[:MOST_SAID]), " and %d more columns" % (len(said) - MOST_SAID) if len(said) > MOST_SAID else ""))
    return out


def further_tables(rows):
    """Where other tables begin in rows that have more than one: below an empty row, with names of columns of their own; counted from 1."""
    out = []
    for at in range(2, len(rows) - 1):
        blank = all(v in (None, "") for v in rows[at - 1])
        filled = [v for v in rows[at] if v not in (None, "")]
        if blank and len(filled) > 1 and looks_named(filled) and any(number(str(v)) is not None for v in rows[at + 1] if v not in (None, "")):
            if any(sum(1 for v in row if v not in (None, "")) > 1 for row in rows[: at - 1]):
                out.append(at + 1)
    return out


def tables_told(rows):
    found = further_tables(rows)
    return ["[more than one table: another begins in row %s]" % ", ".join(map(str, found[:5]))] if found else []


def first_text(file, size, name):
    head = file.read(SAMPLE)
    named = encoding(head, len(head) == size)
    if named is None:
        return binary(head, name)
    text = decoded(head, named, len(head) == size) or ""
    shown = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while shown and not shown[-1].strip():
        shown.pop()
    wide = named.startswith("utf-16")
    total, known = (None, False) if wide else counted_lines(file, size)
    if name.endswith((".csv", ".tsv", ".tab")) or name.endswith((".txt", ".dat", ".data")) and tabular(shown, name):
        return first_table(text, shown, name, named, total, known, len(head) == size)
    if name.endswith((".jsonl", ".ndjson")):
        return first_records(shown, named, total, known)
    if name.endswith((".json", ".geojson")):
        return first_json(file, size, named, shown)
    if name.endswith((".py", ".pyw")):
        return first_program(text, shown, named, total, known)
    kind = {".md": "Markdown", ".html": "HTML", ".htm": "HTML", ".xml": "XML", ".yaml": "YAML", ".yml": "YAML", ".log": "log", ".sql": "SQL", ".toml": "TOML", ".ini": "INI"}
    what = kind.get(os.path.splitext(name)[1], "text")
    lines_word = "" if total is None else ", %s%s" % ("" if known else "about ", several(total, "line"))
    return what + lines_word + how_encoded(named), shown[:MOST_LINES]


def tabular(shown, name):
    sample = shown[:20]
    between = separator("\n".join(sample), name)
    counts = {line.count(between) for line in sample if line.strip()}
    return len(sample) > 2 and len(counts) == 1 and counts != {0}


def first_table(text, shown, name, named, total, known, whole):
    csv.field_size_limit(LONGEST_LINE)
    between = separator(text[: 64 << 10], name)
    rows, lines = [], []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=between):
            lines.append(row)
            if row:
                rows.append(row)
            if len(rows) == 200:
                break
    except csv.Error:
        pass
    if len(rows) > 1 and not whole and len(rows) < 200:
        rows.pop()  # it may be cut off
    at = header_of(rows[:40])
    body = rows[(0 if at is None else at + 1) :]
    width = max([len(r) for r in rows[:200]] or [0])
    empty = sum(1 for line in shown if not line.strip()) if whole else 0
    count = None if total is None else max(0, total - empty - (0 if at is None else at + 1))
    exact = known and not any("\n" in v for r in rows for v in r)
    what = "%s%s" % ("" if exact or count is None else "about ", size_of(count, width))
    if between != ",":
        what += ", separated by %s" % {"\t": "tabs", ";": '";"', "|": '"|"'}[between]
    cells = [v.strip() for r in body[:50] for v in r if v.strip()]
    commas = sum(1 for v in cells if re.fullmatch(r"[-+]?\d{1,3}(?:\.\d{3})*,\d+|[-+]?\d+,\d+", v))
    points = sum(1 for v in cells if re.fullmatch(r"[-+]?\d+\.\d+", v))
    comma = between != "," and commas > points
    if comma:
        what += ", decimal comma"
    said = tables_told(lines) or columns_told([] if at is None else rows[at], body, comma)
    return what + above(at) + how_encoded(named), shown[: MOST_LINES + min(at or 0, 4)] + said


def shape(value, depth=0):
    """The types of a JSON value, in one line: {"id": int, "tags": [3 × str]}."""
    if isinstance(value, dict):
        if depth == DEPTH:
            return "{…}"
        return "{" + ", ".join("%s: %s" % (json.dumps(k, ensure_ascii=False)[:80], shape(v, depth + 1)) for k, v in list(value.items())[:KEYS]) + (", … %d more keys" % (len(value) - KEYS) if len(value) > KEYS else "") + "}"
    if isinstance(value, list):
        if not value:
            return "[]"
        return "[…]" if depth == DEPTH else "[%s × %s]" % (grouped(len(value)), common(value[:ELEMENTS], depth + 1))
    return {bool: "bool", int: "int", float: "float", str: "str", type(None): "null"}[type(value)]


def common(values, depth):
    """The shape that values have in common; keys that some do not have get a question mark."""
    dicts = [v for v in values if isinstance(v, dict)]
    if len(dicts) == len(values) and depth < DEPTH:
        names = list(dict.fromkeys(k for v in dicts for k in list(v)[: 2 * KEYS]))
        parts = ["%s%s: %s" % (json.dumps(k, ensure_ascii=False)[:80], "" if all(k in v for v in dicts) else "?", common([v[k] for v in dicts if k in v], depth + 1)) for k in names[:KEYS]]
        return "{" + ", ".join(parts) + (", … %d more keys" % (len(names) - KEYS) if len(names) > KEYS else "") + "}"
    found = list(dict.fromkeys(shape(v, depth) for v in values))
    if len(found) > 1 and all(isinstance(v, list) for v in values):
        return "[%s to %s × %s]" % (min(map(len, values)), max(map(len, values)), common([e for v in values for e in v[:ELEMENTS]][:ELEMENTS] or [None], depth + 1))
    return "|".join(found[:3]) + ("|…" if len(found) > 3 else "")


def clipped(text, most):
    return text if len(text) <= most else text[:most] + "…"


def first_json(file, size, named, shown):
    if size > WHOLE_JSON:
        return "JSON, too large to be looked at as a whole; first lines" + how_encoded(named), shown[:MOST_LINES]
    file.seek(0)
    try:
        value = json.loads(file.read().decode(named))
    except ValueError as e:
        if len(shown) > 1 and shown[0].lstrip()[:1] in ("{", "["):
            try:
                json.loads(shown[0])
                return first_records(shown, named, None, False)
            except ValueError:
                pass
        return "not valid JSON (%s)%s" % (clipped(str(e), 100), how_encoded(named)), shown[:MOST_LINES]
    return "JSON" + how_encoded(named), [clipped(shape(value), SHAPE)]


def first_records(shown, named, total, known):
    values = []
    for line in shown[:ELEMENTS]:
        try:
            values.append(json.loads(line))
        except ValueError:
            break
    count = "" if total is None else ", %s%s" % ("" if known else "about ", several(total, "record"))
    if not values:
        return "text" + count.replace("record", "line") + how_encoded(named), shown[:MOST_LINES]
    return "JSON Lines" + count + how_encoded(named), [clipped(common(values, 1), SHAPE), shown[0]]


def first_program(text, shown, named, total, known):
    try:
        tree = ast.parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return "Python, %s%s" % (several(total or len(shown), "line"), how_encoded(named)), shown[:MOST_LINES]
    imports, found = [], []
    for node in tree.body:
        if isinstance(node, ast.Import):
            imports += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            imports.append(node.module or ".")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append("def %s(%s)" % (node.name, ", ".join(a.arg for a in node.args.args)))
        elif isinstance(node, ast.ClassDef):
            found.append("class %s: %s" % (node.name, ", ".join(n.name for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))))
    what = "Python, " + several(total or len(shown), "line") + (", imports " + ", ".join(dict.fromkeys(imports)) if imports else "")
    return clipped(what, 250) + how_encoded(named), found[:15] or shown[:MOST_LINES]


def rows_told(title, rows, total, width, kinds=None, merged=()):
    """A sheet or a table: its size, the names of its columns with their types where they are known, and rows. merged are its merged cells, as (first row, first column, last row, last column) from 0."""
    at = 0 if kinds else header_of(rows)
    if at is not None and at + 1 < len(rows) and looks_named([v for v in rows[at + 1] if v not in (None, "")]) and joined_names(rows, at + 1, merged):
        at += 1  # it is the upper row of a header with two
    names = list(rows[at]) if at is not None and rows else []
    body = rows[(at + 1 if at is not None else 0) :]
    count = None if total is None else max(0, total - (at + 1 if at is not None else 0))
    how = above(at)
    if names and at and (joined := joined_names(rows, at, merged)):
        names, how = joined, ", header in rows %d and %d with merged cells, here joined by /: read it with header=[%d, %d]" % (at, at + 1, at - 1, at)
    out = [title + size_of(count, width) + how]
    if names:
        out.append(csv_line(["%s (%s)" % (n, k) for n, k in zip(names, kinds)] if kinds else names))
    out += [csv_line(list(r)) for r in body[:SHOWN_ROWS]]
    return out if kinds else out + (tables_told(rows) or columns_told(names, body))


def joined_names(rows, at, merged):
    """The names of columns whose header has a second row above, in which cells are merged over several columns; None where it has not."""
    if not any(top == bottom == at - 1 and left < right for top, left, bottom, right in merged):
        return None
    upper = list(rows[at - 1])
    for top, left, bottom, right in merged:
        if top == bottom == at - 1:
            upper[left : right + 1] = [upper[left]] * (min(right + 1, len(upper)) - left)
    return ["/".join(str(v) for v in pair if v not in (None, "")) for pair in zip(upper, rows[at])]


def first_book(file):
    safe_zip(file)
    file.seek(0)
    import openpyxl
    book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
    sheets = book.worksheets
    written = written_book(file)
    out = []
    for n, one in enumerate(sheets[:SHOWN_SHEETS]):
        said = one.max_row  # what the file says of itself; it may be missing, or wrong
        one.reset_dimensions()
        rows = []
        for row in one.iter_rows(values_only=True, max_row=40, max_col=MOST_COLUMNS + 1):
            rows.append(row)
            if late():
                break
        rows, width = trimmed(rows)
        total = len(rows) if len(rows) < 40 else said if isinstance(said, int) and said >= 40 else None
        hidden = "" if one.sheet_state == "visible" else " (hidden)"
        merged, unknown = written_cells(written[n], rows) if n < len(written) else ((), [])
        out += rows_told("sheet %s%s: " % (json.dumps(one.title[:100], ensure_ascii=False), hidden), rows, total, width, merged=merged)
        if unknown:
            out.append("[formulas without a stored value, which are read as missing: %s%s]" % (", ".join(unknown[:3]), " and %d more" % (len(unknown) - 3) if len(unknown) > 3 else ""))
        if late():
            break
    return "Excel workbook, " + several(len(sheets), "sheet"), out


WRITTEN_BOOK = 2 << 20  # bytes of a workbook that is read whole


def written_book(file):
    """The sheets of a workbook with formulas and merged cells; none where it is large, since it is read whole for them."""
    file.seek(0, os.SEEK_END)
    if file.tell() > WRITTEN_BOOK:
        return []
    file.seek(0)
    import openpyxl
    try:
        return openpyxl.load_workbook(file, keep_links=False).worksheets
    except Exception:
        return []  # the rows are told all the same


def written_cells(sheet, rows):
    """The merged cells of a sheet, from 0, and the formulas that have no value in its rows, each with its place."""
    merged = [(m.min_row - 1, m.min_col - 1, m.max_row - 1, m.max_col - 1) for m in list(sheet.merged_cells.ranges)[:1000]]
    unknown = []
    for cells, values in zip(sheet.iter_rows(max_row=len(rows), max_col=MOST_COLUMNS), rows):
        for cell, value in zip(cells, values):
            if cell.data_type == "f" and value is None:
                unknown.append("%s %s" % (cell.coordinate, str(getattr(cell.value, "text", cell.value))[:SHOWN_CELL]))
    return merged, unknown


def trimmed(rows):
    """Rows without what is empty at the right and at the end, and how wide they are."""
    width = max([0] + [i + 1 for r in rows for i, v in enumerate(r) if v not in (None, "")])
    rows = [list(r[:width]) + [None] * (width - len(r)) for r in rows]
    while rows and all(v in (None, "") for v in rows[-1]):
        rows.pop()
    return rows, width


def first_old_book(file):
    import xlrd
    book = xlrd.open_workbook(file_contents=file.read(64 << 20), on_demand=True)
    out = []
    for name in book.sheet_names()[:SHOWN_SHEETS]:
        one = book.sheet_by_name(name)
        rows, width = trimmed([one.row_values(i) for i in range(min(one.nrows, 40))])
        out += rows_told("sheet %s: " % json.dumps(name[:100], ensure_ascii=False), rows, one.nrows, width)
        book.unload_sheet(name)
    return "Excel workbook, " + several(book.nsheets, "sheet"), out


def first_columns(what, schema, total, batches):
    names, kinds = list(schema.names), [str(t)[:60] for t in schema.types]
    rows = [names]
    for batch in batches:
        rows += [list(r) for r in zip(*[c.to_pylist() for c in batch.slice(0, SHOWN_ROWS).columns])]
        break
    return what, rows_told("", rows, None if total is None else total + 1, len(names), kinds)


def first_parquet(file):
    import pyarrow.parquet
    whole = pyarrow.parquet.ParquetFile(file)
    return first_columns("Parquet", whole.schema_arrow, whole.metadata.num_rows, whole.iter_batches(batch_size=SHOWN_ROWS, use_threads=False))


def first_arrow(file):
    import pyarrow
    whole = pyarrow.ipc.open_file(file)
    total = sum(whole.get_batch(i).num_rows for i in range(min(whole.num_record_batches, 1000)))
    return first_columns("Arrow", whole.schema, total, (whole.get_batch(i) for i in range(min(1, whole.num_record_batches))))


def first_database(path):
    tables = read_sqlite(path)["tables"]
    out = []
    for t in tables[:20]:
        columns = ", ".join("%s %s" % (c["name"], c["type"]) for c in t["columns"][:SHOWN_COLUMNS])
        out.append("%s%s(%s)%s" % ("view " if t["view"] else "", t["name"], columns.replace(" ,", ","), "" if t["rows"] is None else ": " + several(t["rows"], "row")))
    views = sum(t["view"] for t in tables)
    return "SQLite database, " + several(len(tables) - views, "table") + (", " + several(views, "view") if views else ""), out


def first_pdf(file):
    seen = read_pdf(file)
    if "pages" not in seen:
        return "PDF", []
    shown = [line for line in seen.get("text", "").split("\n") if line.strip()][: MOST_LINES + 2]
    return "PDF, " + several(seen["pages"], "page") + ("; of the first page" if shown else "; its first page has no text" if seen["pages"] else ""), shown


def first_notebook(file, size):
    seen = read_notebook(file, size)
    if seen is None:
        return None
    cells = seen["cells"]
    code = [c for c in cells if c["kind"] == "code"]
    out = []
    for c in cells:
        first = next((line for line in c["source"].split("\n") if line.strip()), "")
        if c["kind"] == "markdown" and first.startswith("#") or c["kind"] == "code" and first:
            out.append(first)
    return "notebook, %s, %d of them with code" % (several(len(cells) + seen["more"], "cell"), len(code)), out[:12]


def human(n):
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            return ("%d %s" if unit == "B" else "%.1f %s") % (n, unit)
        n /= 1000


def first_archive(file, name):
    seen = read_archive(file, name)
    entries = [e for e in seen["entries"] if not e["folder"]]
    more = "" if seen["more"] == 0 else " and more"
    what = "archive, %s%s, %s unpacked" % (several(len(entries) + max(seen["more"], 0), "file"), " and more" if seen["more"] < 0 else "", human(sum(e["size"] for e in entries)) + more)
    if seen.get("encoding"):
        what += ', names not in UTF-8: open it with zipfile.ZipFile(path, metadata_encoding="%s")' % seen["encoding"]
    return what, ["%s (%s)" % (e["path"], human(e["size"])) for e in entries[:15]] + (["…"] if len(entries) > 15 else [])


def first_office(file, name):
    """A document or slides, from the texts in its XML, which is not parsed."""
    import html
    import zipfile
    archive = zipfile.ZipFile(file)
    slides = [i for i in archive.infolist() if re.fullmatch(r"ppt/slides/slide\d+\.xml", i.filename)]
    part = "word/document.xml" if name.endswith(".docx") else min(slides, key=lambda i: int(re.sub(r"\D", "", i.filename)), default=None)
    if part is None:
        return "slides, none", []
    with archive.open(part) as f:
        text = f.read(4 << 20).decode("utf-8", "replace")
    end, piece = ("</w:p>", r"<w:t(?: [^>]*)?>([^<]*)") if name.endswith(".docx") else ("</a:p>", r"<a:t(?: [^>]*)?>([^<]*)")
    paragraphs = [p for p in (html.unescape("".join(re.findall(piece, p))).strip() for p in text.split(end)[:2000]) if p]
    what = "Word document, " + several(len(paragraphs), "paragraph") if name.endswith(".docx") else "presentation, " + several(len(slides), "slide")
    return what, paragraphs[:MOST_LINES]


def array_header(file):
    from numpy.lib import format as npy
    version = npy.read_magic(file)
    where, _, kind = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
    return "%s, shape %s" % (kind, where)


def first_arrays(file, name):
    import zipfile
    if name.endswith(".npy"):
        return "NumPy array, " + array_header(file), []
    archive, out = zipfile.ZipFile(file), []
    for one in archive.namelist()[:20]:
        with archive.open(one) as f:
            out.append("%s: %s" % (one.removesuffix(".npy"), array_header(f)))
    return "NumPy arrays, " + several(len(archive.namelist()), "array"), out


def first_hdf(path):
    import h5py
    out = []

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            out.append("%s: %s, shape %s" % (name, item.dtype, item.shape))
        return True if len(out) >= 30 or late() else None

    with h5py.File(path, "r") as f:
        f.visititems(visit)
    return "HDF5 (or NetCDF 4), " + several(len(out), "dataset"), out[:20]


def first_sound(path):
    import wave
    with wave.open(path) as w:
        rate = w.getframerate()
        return "WAV sound, %.1f s, %s Hz, %s" % (w.getnframes() / max(rate, 1), grouped(rate), several(w.getnchannels(), "channel")), []


def first_packed(file, name):
    """A single text that is packed with gzip: its beginning."""
    import zlib
    unpacker, head, packed = zlib.decompressobj(31), b"", b"x"
    while len(head) < SAMPLE and packed:
        packed = file.read(64 << 10)
        head += unpacker.decompress(packed, SAMPLE - len(head))
    whole = unpacker.eof and len(head) < SAMPLE
    what, shown = first_text(io.BytesIO(head), len(head) if whole else len(head) + 1, name[:-3])
    return "packed with gzip: " + (what if whole else re.sub(r"^about |^[\d,]+ rows × |, (?:about )?[\d,]+ (?:lines?|records?)", "", what)), shown


MARKS = ((b"ID3", "MP3 sound"), (b"OggS", "Ogg sound"), (b"fLaC", "FLAC sound"), (b"\x1aE\xdf\xa3", "Matroska or WebM video"), (b"CDF\x01", "NetCDF 3"), (b"CDF\x02", "NetCDF 3"),
         (b"\x7fELF", "program"), (b"7z\xbc\xaf\x27\x1c", "7z archive"), (b"Rar!", "RAR archive"), (b"\xd0\xcf\x11\xe0", "old Office document"), (b"II*\0", "TIFF image"), (b"MM\0*", "TIFF image"))


def binary(head, name):
    if name.endswith((".pkl", ".pickle", ".joblib")) or head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "pickle; loading it runs the code that is in it", []
    if head[4:8] == b"ftyp":
        return "MP4 or QuickTime video", []
    told = next((what for mark, what in MARKS if head.startswith(mark)), None)
    if told is None and name.endswith((".rds", ".rdata", ".rda")):
        told = "data of R: the package pyreadr reads it"
    return told or "binary content", []


def first_stata(path):
    import pandas
    with pandas.read_stata(path, iterator=True) as reader:
        some = reader.read(SHOWN_ROWS, convert_categoricals=False)
        labels = {name: text for name, text in reader.variable_labels().items() if text}
    kinds = ["%s%s" % (kind, ", " + clipped(labels[name], SHOWN_CELL) if name in labels else "") for name, kind in some.dtypes.astype(str).items()]
    return "Stata data", rows_told("", [list(some.columns)] + some.astype(object).values.tolist(), None, len(some.columns), kinds)


def first(path):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    about = os.fstat(fd)
    if not stat.S_ISREG(about.st_mode):
        raise Refused("it is no file")
    with os.fdopen(fd, "rb") as file:
        size, name = about.st_size, path.lower()
        if size == 0:
            return "empty", []
        head = file.read(64)
        seen = image(head, file)
        if seen:
            return "%s image, %d × %d pixels" % (seen[0].partition("/")[2].upper(), seen[1], seen[2]), []
        file.seek(0)
        packed = head[:4] in (b"PK\3\4", b"PK\5\6")
        if head.startswith(b"%PDF-"):
            return first_pdf(file)
        if head.startswith(b"SQLite format 3\0"):
            return first_database(path)
        if head.startswith(b"\x89HDF\r\n\x1a\n"):
            return first_hdf(path)
        if head[:4] in (b"$FL2", b"$FL3"):
            return "SPSS data: pandas.read_spss reads it, with the package pyreadstat", []
        if name.endswith(".dta") and (head.startswith(b"<stata_dta>") or head[:1] in (b"\x69", b"\x6c", b"\x6e", b"\x6f", b"\x71", b"\x72", b"\x73")):
            return first_stata(path)
        if head[:4] == b"PAR1":
            return first_parquet(file)
        if head[:6] == b"ARROW1":
            return first_arrow(file)
        if head[:6] == b"\x93NUMPY" or packed and name.endswith(".npz"):
            return first_arrays(file, name if name.endswith((".npy", ".npz")) else ".npy")
        if packed and name.endswith(BOOKS):
            return first_book(file)
        if packed and name.endswith((".docx", ".pptx")):
            return first_office(file, name)
        if head[:4] == b"\xd0\xcf\x11\xe0" and name.endswith(".xls"):
            return first_old_book(file)
        if packed or name.endswith((".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")):
            return first_archive(file, name)
        if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
            return first_sound(path)
        if head[:2] == b"\x1f\x8b" and name.endswith(".gz"):
            return first_packed(file, name)
        if head[:2] == b"\x1f\x8b":
            return binary(head, name)
        if name.endswith(".ipynb"):
            told = first_notebook(file, size)
            if told:
                return told
            file.seek(0)
        return first_text(file, size, name)


def answer(path):
    try:
        found = meant(path)
        what, shown = first(found)
        raw = os.fsencode(os.path.relpath(found))
        if raw != path.encode() and b"%" in path.encode():
            what += ", name not in UTF-8: open it as os.fsdecode(%r)" % raw
        out = {"what": what, "lines": [clipped(str(line), LONGEST_SHOWN if len(shown) > 2 else SHAPE) for line in shown[:40]]}
    except BaseException as failure:
        out = {"what": why(failure)}
    return json.dumps(out).encode("utf-8", "replace")[:LONGEST_ANSWER]


def begin_first(path):
    """Begins a process that looks at a file, and returns it and where it writes."""
    global BEGAN, SECONDS
    source, sink = os.pipe()
    child = os.fork()
    if child:
        os.close(sink)
        return child, source
    try:
        os.close(source)
        BEGAN, SECONDS = time.monotonic(), FILE_SECONDS
        bound()
        said = answer(path)
        while said:
            said = said[os.write(sink, said) :]
    finally:
        os._exit(0)


def main_first():
    paths = json.loads(sys.argv[1])
    waiting, running, said = list(enumerate(paths)), {}, {}
    while (waiting or running) and time.monotonic() - BEGAN < ALL_SECONDS:
        while waiting and len(running) < AT_ONCE:
            n, path = waiting.pop(0)
            child, source = begin_first(path)
            running[source], said[n] = (child, n), b""
        for source in select.select(list(running), [], [], 0.5)[0]:
            part = os.read(source, 64 << 10)
            child, n = running[source]
            said[n] += part
            if not part or len(said[n]) > LONGEST_ANSWER:
                os.close(source)
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                del running[source]
    for child, n in running.values():
        os.kill(child, signal.SIGKILL)
        said[n] = b""
    unsaid = json.dumps({"what": "not looked at: that takes too much time or memory"}).encode()
    for n, path in enumerate(paths):
        sys.stdout.buffer.write(said.get(n) or unsaid)
        sys.stdout.buffer.write(b"\n")
    sys.stdout.flush()
    os._exit(0)
