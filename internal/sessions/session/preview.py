# What is in a file of the workspace, for people who look at it: one program that is begun for one file and ends with it. The file may be anything: each
# library gets it within bounds of time and memory, and what is told is one short JSON object.

import csv
import io
import json
import os
import re
import resource
import signal
import stat
import sys
import time

SECONDS = 9
MEMORY = 1 << 30
MOST_ROWS, MOST_COLUMNS, LONGEST_CELL = 200, 200, 500
LONGEST_LINE = 1 << 20
TEXT = 64 << 10
COUNTED = 64 << 20  # bytes of a table as text whose rows are counted
DOCUMENT = 20 << 20  # bytes of a notebook
MOST_ENTRIES, MOST_CELLS, MOST_TABLES, MOST_SHEETS = 1000, 300, 200, 200
UNPACKED, UNPACKED_PART = 1 << 30, 256 << 20  # bytes that a workbook may say to have
SHARED_TEXTS = 64 << 20
TABLES = (".csv", ".tsv", ".tab")
BOOKS = (".xlsx", ".xlsm", ".xltx", ".xltm")
PARQUET = (".parquet", ".pq")


class Refused(Exception):
    """Why a file cannot be shown, in a sentence."""


def bound():
    signal.alarm(SECONDS + 2)
    for what, limit in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, SECONDS + 2), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        try:
            resource.setrlimit(what, (limit, limit))
        except (ValueError, OSError):
            pass


BEGAN = time.monotonic()


def late():
    return time.monotonic() - BEGAN > SECONDS - 2


def cell(value):
    """A cell as JSON can hold it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 53 else str(value)[:LONGEST_CELL]
    if isinstance(value, float):
        return value if value - value == 0 else None if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, (bytes, bytearray)):
        return repr(bytes(value[:LONGEST_CELL // 4]))
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST_CELL else text[:LONGEST_CELL] + "…"


def table(names, kinds, rows, more, total, offset):
    return {"columns": [{"name": str(cell(n) if n is not None else ""), "type": k} for n, k in zip(names, kinds)], "more_columns": more, "total": total,
            "offset": offset, "index": [str(offset + i) for i in range(len(rows))], "rows": [[cell(c) for c in row] for row in rows]}


def number(text):
    """What a text of a table says as a number, or None."""
    if not text or len(text) > 40 or not text.isascii() or "_" in text or text != text.strip():
        return None
    digits = text.lstrip("+-")
    if digits[:1] == "0" and digits[1:2].isdigit():
        return None  # a number of an article, or of a telephone
    for kind in (int, float):
        try:
            value = kind(text)
            return value if value - value == 0 else None
        except (ValueError, OverflowError):
            pass
    return None


def column(values):
    """The type of a column of texts and its cells."""
    texts = [v for v in values if v not in ("", None)]
    if texts and all(v.lower() in ("true", "false") for v in texts):
        return "bool", [None if v in ("", None) else v.lower() == "true" for v in values]
    numbers = [number(v) for v in texts]
    if texts and all(n is not None for n in numbers):
        kind = "int64" if all(isinstance(n, int) for n in numbers) else "float64"
        return kind, [None if v in ("", None) else number(v) for v in values]
    return "str", [None if v in ("", None) else v for v in values]


def lines(file):
    while True:
        line = file.readline(LONGEST_LINE)
        if not line:
            return
        if len(line) >= LONGEST_LINE:
            raise Refused("a line of the table is longer than 1 MiB")
        yield line.replace("\0", "")


def separator(text, name):
    if name.endswith((".tsv", ".tab")):
        return "\t"
    sample = text.splitlines()[:20]
    best, most = ",", 0
    for candidate in ",;\t|":
        counts = [len(row) - 1 for row in csv.reader(sample[:-1] or sample, delimiter=candidate)]
        score = min(counts, default=0) * 1000 + (counts[0] if counts else 0)
        if score > most:
            best, most = candidate, score
    return best


def read_csv(file, name, size, offset, limit):
    head = file.read(256 << 10)
    named = encoding(head, len(head) == size)
    if named is None:
        return None
    text = head.decode(named, "ignore")
    csv.field_size_limit(LONGEST_LINE)
    between = separator(text[:64 << 10], name)
    file.seek(0)
    rows = csv.reader(lines(io.TextIOWrapper(file, named, "replace", newline="")), delimiter=between)
    header, shown, count, whole = next(rows, []), [], 0, True
    for row in rows:
        if not row:
            continue
        if offset <= count < offset + limit:
            shown.append(row)
        count += 1
        if count >= offset + limit and size > COUNTED or count % 10000 == 0 and late():
            whole = False
            break
    if not whole and count < offset:
        raise Refused("the row is too far into the file to be shown in time")
    width = max([len(header)] + [len(r) for r in shown])
    kept = min(width, MOST_COLUMNS)
    columns = [column([r[i] if i < len(r) else None for r in shown]) for i in range(kept)]
    names = [header[i] if i < len(header) else "" for i in range(kept)]
    data = [[c[1][n] for c in columns] for n in range(len(shown))]
    return {"kind": "table", "encoding": named, "separator": between, "table": table(names, [c[0] for c in columns], data, width - kept, count if whole else None, offset)}


def safe_zip(file):
    import zipfile
    archive = zipfile.ZipFile(file)
    infos = archive.infolist()
    if sum(i.file_size for i in infos) > UNPACKED or any(i.file_size > UNPACKED_PART for i in infos):
        raise Refused("the file says that it unpacks to more than is looked at")
    if any(i.file_size > SHARED_TEXTS for i in infos if i.filename.lower().endswith("sharedstrings.xml")):
        raise Refused("the workbook has more text than is looked at")
    return archive


def book_kind(values):
    kinds = {type(v) for v in values if v is not None}
    if kinds == {bool}:
        return "bool"
    if kinds and kinds <= {int}:
        return "int64"
    if kinds and kinds <= {int, float}:
        return "float64"
    if kinds and all(k.__module__ == "datetime" for k in kinds):
        return "datetime"
    return "str" if kinds <= {str} else "object"


def read_book(file, sheet, offset, limit):
    safe_zip(file)
    file.seek(0)
    try:
        import openpyxl
    except ImportError:
        raise Refused("workbooks can be shown with the standard packages alone") from None
    book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
    names = [s.title for s in book.worksheets]
    if not names:
        raise Refused("the workbook has no sheet")
    if sheet and sheet not in names:
        raise Refused("the workbook has no sheet of that name")
    one = book[sheet or names[0]]
    one.reset_dimensions()  # they are what the file says of itself
    rows, shown, count, whole = one.iter_rows(values_only=True, max_col=MOST_COLUMNS + 1), [], 0, True
    header = next(rows, ())
    for row in rows:
        if offset <= count < offset + limit:
            shown.append(row)
        count += 1
        if count % 500 == 0 and late():
            whole = False
            break
    if not whole and count < offset:
        raise Refused("the row is too far into the sheet to be shown in time")
    width = max([0] + [i + 1 for r in [header, *shown] for i, v in enumerate(r) if v is not None])
    kept = min(width, MOST_COLUMNS)
    data = [[r[i] if i < len(r) else None for i in range(kept)] for r in shown]
    heads = [header[i] if i < len(header) else None for i in range(kept)]
    kinds = [book_kind([r[i] for r in data]) for i in range(kept)]
    return {"kind": "table", "sheets": [str(n)[:200] for n in names[:MOST_SHEETS]], "sheet": one.title[:200],
            "table": table(heads, kinds, data, width - kept, count if whole else None, offset)}


def read_parquet(file, offset, limit):
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Refused("Parquet files can be shown with the standard packages alone") from None
    whole = pyarrow.parquet.ParquetFile(file)
    about, schema = whole.metadata, whole.schema_arrow
    chosen = list(dict.fromkeys(schema.names))[:MOST_COLUMNS]
    groups, first, before = [], 0, 0
    for n in range(about.num_row_groups):
        rows = about.row_group(n).num_rows
        if before + rows > offset and before < offset + limit:
            if not groups:
                first = before
            groups.append(n)
        before += rows
    rows, at = [], first
    if groups:
        for batch in whole.iter_batches(batch_size=1024, row_groups=groups, columns=chosen, use_threads=False):
            low, high = max(offset - at, 0), min(offset + limit - at, batch.num_rows)
            if low < high:
                part = batch.slice(low, high - low)
                columns = [c.to_pylist() for c in part.columns]
                rows += [list(r) for r in zip(*columns)]
            at += batch.num_rows
            if at >= offset + limit or late():
                break
    kinds = [str(schema.field(n).type)[:100] for n in chosen]
    return {"kind": "table", "table": table(chosen, kinds, rows, len(schema.names) - len(chosen), about.num_rows, offset)}


def joined(text, most):
    text = "".join(t for t in text if isinstance(t, str)) if isinstance(text, list) else text if isinstance(text, str) else ""
    return text if len(text) <= most else text[:most] + "…"


def read_notebook(file, size):
    if size > DOCUMENT:
        raise Refused("the notebook is larger than 20 MiB")
    whole = json.loads(file.read())
    if not isinstance(whole, dict):
        return None
    found = whole.get("cells")
    if not isinstance(found, list) and isinstance(whole.get("worksheets"), list):  # of format 3
        found = [c for s in whole["worksheets"] if isinstance(s, dict) and isinstance(s.get("cells"), list) for c in s["cells"]]
    if not isinstance(found, list):
        return None
    cells, room = [], 1 << 20
    for one in found:
        if not isinstance(one, dict) or len(cells) >= MOST_CELLS or room <= 0:
            continue
        out = {"kind": str(one.get("cell_type"))[:20], "source": joined(one.get("source") or one.get("input"), 20000), "outputs": []}
        for shown in (one.get("outputs") if isinstance(one.get("outputs"), list) else [])[:20]:
            if isinstance(shown, dict):
                data = shown.get("data") if isinstance(shown.get("data"), dict) else {k: 0 for k in shown if k in ("png", "jpeg", "svg", "html", "latex", "json", "javascript")}
                text = joined(shown.get("text") or data.get("text/plain"), 4000)
                if shown.get("output_type") in ("error", "pyerr"):
                    text = joined(shown.get("ename"), 200) + ": " + joined(shown.get("evalue"), 2000)
                if not text:
                    text = "(%s)" % ", ".join(str(k)[:60] for k in list(data)[:5])
                out["outputs"].append(text)
        room -= len(out["source"]) + sum(map(len, out["outputs"]))
        cells.append(out)
    return {"kind": "notebook", "cells": cells, "more": max(0, len(found) - len(cells))}


def names_of(raw, names):
    """How names are encoded that are not in UTF-8 (None: all are), and the names as they are to be read. raw has the bytes, or None of what is known."""
    beyond = b"\n".join(r for r in raw if r is not None and not r.isascii())
    named = encoding(beyond, True) if beyond else None
    if named is None:
        return None, names
    return named, [n if r is None else r.decode(named, "replace") for r, n in zip(raw, names)]


def read_archive(file, name):
    import tarfile
    import zipfile
    entries, more = [], 0
    if zipfile.is_zipfile(file):
        file.seek(0)
        infos = zipfile.ZipFile(file).infolist()
        more = max(0, len(infos) - MOST_ENTRIES)
        infos = infos[:MOST_ENTRIES]
        # Without their flag 0x800 names are in the encoding of the machine that packed them, which zipfile takes for cp437.
        named, names = names_of([i.filename.encode("cp437", "replace") if not i.flag_bits & 0x800 else None for i in infos], [i.filename for i in infos])
        entries = [{"path": n[:500], "size": i.file_size, "folder": i.is_dir()} for n, i in zip(names, infos)]
        if named:
            return {"kind": "archive", "entries": entries, "more": more, "encoding": named}
    else:
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:*") as archive:
            for one in archive:
                if len(entries) >= MOST_ENTRIES or late():
                    more = -1  # nobody counts them
                    break
                entries.append({"path": one.name[:500], "size": max(0, one.size), "folder": one.isdir()})
    return {"kind": "archive", "entries": entries, "more": more}


def read_pdf(file):
    out = {"kind": "pdf"}
    try:
        import pypdf
    except ImportError:
        return out
    reader = pypdf.PdfReader(file)
    out["pages"] = len(reader.pages)
    if out["pages"]:
        text = reader.pages[0].extract_text()
        out["text"], out["truncated"] = text[:TEXT // 4], len(text) > TEXT // 4
    return out


def open_sqlite(path):
    """Opens a database without writing to it. What its log has, into which a program may still write, belongs to it."""
    import sqlite3
    from urllib.parse import quote
    address = "file:%s?mode=ro" % quote(os.path.abspath(path))
    if os.path.exists(path + "-wal") and os.path.getsize(path + "-wal"):
        base = sqlite3.connect(address, uri=True, timeout=0)
        try:
            base.execute("SELECT 1 FROM sqlite_master").fetchone()
            return base
        except sqlite3.Error:
            base.close()
    return sqlite3.connect(address + "&immutable=1", uri=True)


def read_sqlite(path):
    import sqlite3
    base = open_sqlite(path)
    base.set_progress_handler(lambda: late(), 10000)
    for pragma in ("PRAGMA trusted_schema=OFF", "PRAGMA cell_size_check=ON", "PRAGMA mmap_size=0"):
        base.execute(pragma)
    tables = []
    for kind, name, sql in base.execute("SELECT type, name, substr(sql, 1, 40) FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY type = 'view' LIMIT " + str(MOST_TABLES)).fetchall():
        one = {"name": str(name)[:200], "columns": [], "rows": None, "view": kind == "view"}
        quoted = '"%s"' % str(name).replace('"', '""')
        try:
            one["columns"] = [{"name": str(c[1])[:200], "type": str(c[2])[:100]} for c in base.execute("PRAGMA table_info(%s)" % quoted).fetchmany(MOST_COLUMNS)]
            if kind == "table" and "VIRTUAL" not in str(sql).upper():  # counting a view may take any time
                one["rows"] = base.execute("SELECT count(*) FROM " + quoted).fetchone()[0]
        except sqlite3.Error:
            pass
        tables.append(one)
    return {"kind": "archive", "type": "sqlite", "tables": tables}


def image(head, file):
    """The type, width and height of a picture, or None."""
    whole = int.from_bytes
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        return "image/png", whole(head[16:20], "big"), whole(head[20:24], "big")
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif", whole(head[6:8], "little"), whole(head[8:10], "little")
    if head[:2] == b"BM" and len(head) >= 26 and whole(head[14:18], "little") >= 40:
        return "image/bmp", whole(head[18:22], "little"), abs(whole(head[22:26], "little", signed=True))
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP" and len(head) >= 30:
        if head[12:16] == b"VP8X":
            return "image/webp", whole(head[24:27], "little") + 1, whole(head[27:30], "little") + 1
        if head[12:16] == b"VP8L":
            bits = whole(head[21:25], "little")
            return "image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        return "image/webp", whole(head[26:28], "little") & 0x3FFF, whole(head[28:30], "little") & 0x3FFF
    if head[:3] == b"\xff\xd8\xff":
        file.seek(2)
        for _ in range(1000):
            mark = file.read(4)
            if len(mark) < 4 or mark[0] != 0xFF:
                break
            if 0xC0 <= mark[1] <= 0xCF and mark[1] not in (0xC4, 0xC8, 0xCC):
                frame = file.read(5)
                return "image/jpeg", whole(frame[3:5], "big"), whole(frame[1:3], "big")
            file.seek(max(whole(mark[2:4], "big") - 2, 0), 1)
        return "image/jpeg", 0, 0
    return None


def read_text(file, size):
    head = file.read(TEXT)
    named = encoding(head, len(head) == size)
    if named is None:
        return {"kind": "binary", "hex": head[:256].hex()}
    return {"kind": "text", "encoding": named, "text": head.decode(named, "ignore" if size > len(head) else "replace"), "truncated": size > len(head)}


def meant(path):
    """The file of the workspace that a listing's path stands for: names that are not UTF-8 have %XX there (spell.go), and symlinks are followed that stay inside."""
    at = ""
    for name in path.split("/"):
        raw = os.fsdecode(re.sub(rb"%([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), name.encode()))
        odd = any("\udc80" <= letter <= "\udcff" for letter in raw) and not os.path.lexists(os.path.join(at, name))
        at = os.path.join(at, raw if odd else name)
    real = os.path.realpath(at)
    return real if real.startswith(os.path.realpath(".") + "/") else at


def look(path, sheet, offset, limit):
    path = meant(path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    about = os.fstat(fd)
    if not stat.S_ISREG(about.st_mode):
        raise Refused("it is no file")
    with os.fdopen(fd, "rb") as file:
        size, name = about.st_size, path.lower()
        head = file.read(64)
        seen = image(head, file)
        if seen:
            return {"kind": "image", "type": seen[0], "width": seen[1], "height": seen[2]}
        file.seek(0)
        out = None
        if head.startswith(b"%PDF-"):
            out = read_pdf(file)
        elif head.startswith(b"SQLite format 3\0"):
            out = read_sqlite(path)
        elif head[:4] == b"PAR1" or name.endswith(PARQUET):
            out = read_parquet(file, offset, limit)
        elif head[:4] == b"PK\3\4" and name.endswith(BOOKS):
            out = read_book(file, sheet, offset, limit)
        elif head[:4] in (b"PK\3\4", b"PK\5\6") or name.endswith((".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")):
            out = read_archive(file, name)
        elif name.endswith(TABLES):
            out = read_csv(file, name, size, offset, limit)
        elif name.endswith(".ipynb"):
            out = read_notebook(file, size)
        if out is None:
            if not file.closed:
                file.seek(0)
            out = read_text(file, size) if not file.closed else {"kind": "binary", "hex": head.hex()}
        return out


def why(failure):
    """Why a file could not be looked at, in words."""
    if isinstance(failure, Refused):
        return str(failure)
    if isinstance(failure, FileNotFoundError):
        return "the file is gone"
    if isinstance(failure, RecursionError):
        return "it is nested too deeply to be looked at"
    if "emory" in type(failure).__name__:  # of Python, and of Arrow
        return "it takes more memory than is given to looking at it"
    return "it cannot be read (%s: %s)" % (type(failure).__name__, str(failure)[:200])


def main():
    bound()
    wanted = json.loads(sys.argv[1])
    try:
        out = look(wanted["path"], wanted["sheet"], wanted["offset"], min(wanted["limit"], MOST_ROWS))
    except BaseException as failure:
        out = {"error": why(failure)}
    sys.stdout.buffer.write(json.dumps(out).encode("utf-8", "replace"))
    sys.stdout.flush()
    os._exit(0)
