

# ---------------------------------------------------------------------------------------------------------------------
# What the variables are, for people who look at them (variables.py, between widgets.py and plot_style.py in one file)
#
# Nothing here runs code of the user's, who may have given a class a __repr__ that takes a minute: only values of types that Python, numpy, pandas and polars
# bring are looked into, and others are told by their type alone.

import datetime
import decimal

MOST_VARIABLES = 500
MOST_ROWS, MOST_COLUMNS = 500, 200  # of a piece of a table
LONGEST_TEXT = 500  # characters of a cell
HEAD_ROWS, HEAD_COLUMNS = 50, 50  # that a shown table brings along
SHOWN = 50  # tables that are remembered by the names under which they were shown
IN_NUMBERS = set("0123456789.+-e" "inf" "true" "false")  # all that numbers and booleans are written with, in lower case
SAMPLE = 1_000_000  # rows that a column's profile is made of, and that can be sorted and searched
BUCKETS, COMMON = 20, 10  # bars of a histogram; values that are told with how often they come
PLAIN_SCALARS = (bool, int, float, complex, str, bytes, type(None))
PRINTED = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal)
COMPARABLE = {bool, int, float, str, type(None), *PRINTED}
CONTAINERS = (list, tuple, set, frozenset, dict)
HIDDEN_KINDS = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)


class Refused(Exception):
    """What is asked for is not there, in a sentence; the code tells it apart."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


# What a class is called, whatever its metaclass says.
_qualname = type.__dict__["__qualname__"].__get__


def _module(kind):
    module = type.__dict__["__module__"].__get__(kind)
    return module if type(module) is str else ""


def _kind(value):
    """The full name of a value's type, "numpy.ndarray" for example; of code's own only what it is called."""
    name, module = _qualname(type(value)), _module(type(value))
    return name if module in ("builtins", "__main__") else "%s.%s" % (module, name)


def _library(value):
    """The library whose own type a value has: not one that code has derived from it."""
    kind = type(value)
    root = _module(kind).partition(".")[0]
    module = sys.modules.get(root) if root in ("numpy", "pandas", "polars", "geopandas") else None
    if module is not None and getattr(module, _qualname(kind), None) is kind:
        return root
    return ""


def _text(value):
    """A cell as JSON can hold it: null for what is missing."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if abs(value) < 1 << 53 else str(value) if abs(value) < 1 << 4096 else "a number of %d bits" % value.bit_length()
    if kind is float:
        return value if value - value == 0 else None if value != value else "inf" if value > 0 else "-inf"
    if kind is str:
        return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT] + "…"
    if kind in (complex, bytes):
        return _text(repr(value[:LONGEST_TEXT] if kind is bytes else value))
    if kind in PRINTED:
        return str(value)
    library, name = _module(kind), _qualname(kind)
    if library == "numpy":
        return _text(value.item() if name not in ("datetime64", "timedelta64", "longdouble", "void", "ndarray") else str(value)[:LONGEST_TEXT])
    if library.startswith("pandas") and name in ("Timestamp", "Timedelta", "Period", "Interval"):
        return str(value)
    if library.startswith("pandas") and name in ("NAType", "NaTType"):
        return None
    if kind in CONTAINERS:
        return _preview(value)
    return "<%s>" % _kind(value)


def _preview(value, most=80):
    """A short line for a value."""
    kind = type(value)
    if kind in CONTAINERS:
        begin, end = {list: "[]", tuple: "()"}.get(kind, "{}")
        parts, length = [], 0
        for item in list(itertools.islice(value.items() if kind is dict else value, 20)):
            part = "%s: %s" % tuple(_inside(i) for i in item) if kind is dict else _inside(item)
            length += len(part) + 2
            if length > most:
                break
            parts.append(part)
        return begin + ", ".join(parts) + (", …" if parts and len(parts) < len(value) else "…" if len(value) > len(parts) else "") + end
    if kind in PLAIN_SCALARS:
        if kind in (str, bytes):
            return repr(value[:most]) + ("…" if len(value) > most else "")
        text = _text(value)
        return text if type(text) is str else repr(value)
    text = _text(value)
    return text if type(text) is str and not text.startswith("<") else ""


def _names(columns, most=300):
    """The names of columns, as many as there is room for."""
    text = ""
    for column in itertools.islice(columns, most):
        name = str(_text(column))
        if len(text) + len(name) > most:
            return text + ", …"
        text += (", " if text else "") + name
    return text


def _inside(value):
    if type(value) in CONTAINERS:
        return "%s of %d" % (type(value).__name__, len(value))
    return _preview(value, 30) or _kind(value)


class Variables:
    """What is in the user's namespace, and tables in pieces."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.shown, self.number = {}, 0  # weak references to tables that were shown

    def list(self, request):
        """The user's variables, the newest last, without modules, functions and classes."""
        namespace, pristine = self.kernel.shell.user_ns, self.kernel.pristine
        found = []
        for name, value in list(namespace.items()):
            if type(name) is str and not name.startswith("_") and name not in pristine and not issubclass(type(value), HIDDEN_KINDS):
                found.append((name, value))
        return {"items": [self.about(name, value) for name, value in found[-MOST_VARIABLES:]], "more": max(0, len(found) - MOST_VARIABLES)}

    def about(self, name, value):
        out = {"name": name[:200], "type": _kind(value)[:200]}
        try:
            library = _library(value)
            if library:
                shape = getattr(value, "shape", None)
                if type(shape) is tuple:
                    out["shape"] = [int(n) for n in shape]
                size = getattr(value, "nbytes", None)
                if library == "pandas" and hasattr(value, "memory_usage"):
                    size = value.memory_usage()
                    size = int(size.sum()) if hasattr(size, "sum") else size
                elif library == "polars":
                    size = value.estimated_size()
                if size is not None:
                    out["bytes"] = int(size)
                out["table"] = is_table(value)
                if not out.get("shape"):
                    out["preview"] = _preview(value)
                else:
                    out["preview"] = _names(value.columns) if _qualname(type(value)) in ("DataFrame", "GeoDataFrame") else _text(str(getattr(value, "dtype", "")))
            elif type(value) in CONTAINERS + (str, bytes):
                out["length"], out["preview"], out["bytes"] = len(value), _preview(value), sys.getsizeof(value)
            else:
                out["preview"] = _preview(value)
        except Exception:
            pass  # a library that is only half there
        return out

    def remember(self, value):
        """A name for a table that is shown. The table is not kept for it: what nobody else has any more is gone."""
        self.number += 1
        name = "~%d" % self.number
        try:
            self.shown[name] = weakref.ref(value)
        except TypeError:
            return ""
        while len(self.shown) > SHOWN:
            del self.shown[next(iter(self.shown))]
        return name

    def shown_table(self, value):
        """A table as an event brings it; nothing for what is a table of another kind, which has an HTML form."""
        try:
            return {**Table.of(value).head(), "name": self.remember(value)} if is_table(value) else None
        except Exception:
            return None  # a column of a kind that pandas cannot list

    def value(self, name):
        if name.startswith("~"):
            value = self.shown.get(name, lambda: None)()
            if value is None:
                raise Refused("gone", "the table is not in memory any more")
            return value
        namespace = self.kernel.shell.user_ns
        if name not in namespace:
            raise Refused("unknown", "there is no variable of that name")
        return namespace[name]

    def table(self, request):
        """A piece of a table: rows from `offset`, sorted by the column of a number, of those with a text in them."""
        table = Table.of(self.value(str(request.get("name"))))
        offset, limit = int(request.get("offset") or 0), int(request.get("limit") or 0)
        return table.piece(max(0, offset), max(0, min(limit, MOST_ROWS)), request.get("sort"), bool(request.get("descending")), str(request.get("filter") or ""))

    def profile(self, request):
        return Table.of(self.value(str(request.get("name")))).profile(int(request.get("column") or 0))

    def answer(self, work, reply):
        def handle(request):
            message = {"type": reply, "id": request.get("id", "")}
            try:
                message["reply"] = work(request)
            except Refused as refusal:
                message["code"], message["error"] = refusal.code, str(refusal)
            except BaseException as failure:
                message["code"], message["error"] = "failed", (type(failure).__name__ + ": " + (_value_of(failure) or ""))[:LONGEST_TEXT]
            self.kernel.outlet.send(message)
        return handle

    def handlers(self):
        return {"variables": self.answer(self.list, "variables_reply"), "table": self.answer(self.table, "table_reply"),
                "profile": self.answer(self.profile, "profile_reply")}


def is_table(value):
    library, kind = _library(value), _qualname(type(value))
    return (library == "pandas" and kind in ("DataFrame", "Series") or library == "polars" and kind == "DataFrame"
            or library == "numpy" and kind == "ndarray" and value.ndim in (1, 2) and value.dtype.names is None)


class Table:
    """A pandas DataFrame that stands for a value; columns are told by their numbers, since names may come twice."""

    def __init__(self, frame, pandas):
        self.frame, self.pandas = frame, pandas

    @classmethod
    def of(cls, value):
        if not is_table(value):
            raise Refused("other", "the variable is no table")
        import pandas
        library, kind = _library(value), _qualname(type(value))
        if kind == "Series":
            value = value.to_frame()
        elif library == "numpy":
            value = pandas.DataFrame(value, copy=False)
        elif library == "polars":
            value = pandas.DataFrame({i: value.to_series(i).to_numpy() for i in range(value.width)}).set_axis(value.columns, axis=1)
        return cls(value, pandas)

    def head(self):
        return self.piece(0, HEAD_ROWS, None, False, "", HEAD_COLUMNS)

    def piece(self, offset, limit, sort, descending, text, most=MOST_COLUMNS):
        frame, total = self.frame, len(self.frame)
        if (text or sort is not None) and total > SAMPLE:
            raise Refused("other", "tables of more than %d rows are not sorted and searched here" % SAMPLE)
        if text:
            frame = frame[self.having(frame, text)]
        if sort is not None:
            frame = frame.iloc[self.order(frame, int(sort), descending)]
        part = frame.iloc[offset:offset + limit]
        columns = range(min(part.shape[1], most))
        data = [part.iloc[:, i].tolist() for i in columns]
        return {
            "columns": [{"name": _name(part.columns[i]), "type": str(part.dtypes.iloc[i])[:100]} for i in columns],
            "more_columns": part.shape[1] - len(columns), "total": total, "matching": len(frame), "offset": offset,
            "index": [_name(i) for i in part.index.tolist()], "index_name": " / ".join("" if n is None else _name(n) for n in part.index.names),
            "rows": [[_text(column[row]) for column in data] for row in range(len(part))],
        }

    def having(self, frame, text):
        import numpy
        wanted = text.lower()
        mask, number = numpy.zeros(len(frame), dtype=bool), IN_NUMBERS.issuperset(wanted)
        for i in range(frame.shape[1]):
            column = frame.iloc[:, i]
            if number or column.dtype.kind not in "biuf":  # writing numbers takes by far the most time
                mask |= numpy.fromiter(((t := _text(v)) is not None and wanted in str(t).lower() for v in column.tolist()), bool, len(frame))
        return mask

    def order(self, frame, column, descending):
        if not -1 <= column < frame.shape[1]:
            raise Refused("unknown", "there is no such column")
        values = _comparable(frame.index.to_series() if column < 0 else frame.iloc[:, column]).reset_index(drop=True)
        try:
            return values.sort_values(ascending=not descending, kind="stable", na_position="last").index.to_numpy()
        except TypeError:  # values that cannot be compared with each other
            return values.map(lambda v: str(_text(v))).sort_values(ascending=not descending, kind="stable").index.to_numpy()

    def profile(self, number):
        if not 0 <= number < self.frame.shape[1]:
            raise Refused("unknown", "there is no such column")
        whole = self.frame.iloc[:, number]
        column = whole.iloc[:SAMPLE]
        there = column.dropna()
        out = {"name": _name(self.frame.columns[number]), "type": str(column.dtype)[:100], "rows": len(whole), "looked_at": len(column), "missing": int(column.isna().sum())}
        kind = column.dtype.kind if hasattr(column.dtype, "kind") else "O"
        counts = _comparable(there).value_counts()
        out["distinct"] = len(counts)
        if len(there) and kind in "iufmM":
            out["min"], out["max"] = _text(there.min()), _text(there.max())
        if len(there) and kind in "iuf":
            numbers = there.astype("float64")
            numbers = numbers[(numbers - numbers) == 0]
            if len(numbers):
                import numpy
                out["mean"], out["median"] = float(numbers.mean()), float(numbers.median())
                bars, edges = numpy.histogram(numbers, bins=min(BUCKETS, max(1, len(counts))))
                out["bars"], out["edges"] = [int(n) for n in bars], [float(e) for e in edges]
        else:
            out["common"] = [{"value": str(_text(value)), "count": int(count)} for value, count in counts.head(COMMON).items()]
        return out


def _comparable(column):
    """A column that can be sorted and counted without code of the user's: objects of other types than Python's own become the text that they are shown as."""
    if column.dtype.kind != "O" or {type(v) for v in column.tolist()} <= COMPARABLE:
        return column
    return column.map(lambda v: str(_text(v)))


def _name(value):
    text = _text(value)
    return text if type(text) is str else str(text)
