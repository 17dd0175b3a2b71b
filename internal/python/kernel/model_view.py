

# ---------------------------------------------------------------------------------------------------------------------
# What a model is told of tables (model_view.py, between plot_style.py and charts.py in one file)
#
# People see pandas' own forms. A model has no screen to scroll: it gets every column that there is room for, the kinds of the others, the shape and what is missing.

TOLD_MIME = "text/vnd.cove.told"  # the host takes it out of each bundle
TOLD_ROOM = 4000  # characters of rows, and a part of that for the names of columns that find no room
TOLD_WHOLE, TOLD_HEAD, TOLD_TAIL = 20, 6, 4  # rows that are told in full, and otherwise from either end
TOLD_NAMES = 1500  # characters of one line of names
TOLD_CELL = 80  # characters
TOLD_COLUMNS = 400  # that are looked at
TOLD_CELLS = 2_000_000  # that are searched for missing values
PRINT_COLUMNS, PRINT_WIDTH = 30, 200  # of what a model's code prints, where it has set neither
ARRAY_WIDTH = 75  # characters of a line of an array: numpy's own default
POLARS_FORMS = {"POLARS_FMT_MAX_COLS": "20", "POLARS_TABLE_WIDTH": "300"}  # of what a model's code prints with Polars, which looks there each time; it shows 8 columns otherwise
CELL_COLUMNS = 20  # of what cells show where there is no terminal: pandas' own default there, which it takes only from Jupyter


class ToldFormatter(BaseFormatter):
    """Tables for the model whose code runs; nothing for people."""

    format_type = Unicode(TOLD_MIME)
    print_method = ObjectName("_repr_cove_told_")
    _return_type = str


def told_float(value):
    """With six decimals at most, as pandas shows it, and never less than the digits before the point."""
    text = repr(value)
    if len(text) <= 8 or value - value != 0:
        return text
    if not 1e-4 <= abs(value) < 1e15:
        return "%.6g" % value
    text = ("%.6f" % value).rstrip("0")
    return text + "0" if text[-1] == "." else text


def told_cell(value):
    kind = type(value)
    if kind is float:
        text = told_float(value)
    elif kind is str:
        text = value[:TOLD_CELL + 1]
    else:
        text = _text(value)
        if text is None:
            text = "NaT" if _qualname(kind) == "NaTType" else "None" if value is None else "nan" if kind is not bool else text
        elif type(text) is float:
            text = told_float(text)
        elif type(text) is str and text.startswith("<") and kind not in PLAIN_SCALARS:
            try:
                text = str(value)[:TOLD_CELL + 1]
            except Exception:
                pass  # its type is told
        text = str(text)
        if _qualname(kind) == "Timestamp":
            text = MIDNIGHT.sub("", text)
    if len(text) > TOLD_CELL:
        text = text[:TOLD_CELL] + "…"
    text = text.replace("\r", "\\r").replace("\n", "\\n")
    return '"%s"' % text.replace('"', '""') if "," in text or '"' in text else text


def told_name(value):
    return told_cell("/".join(map(told_cell, value)) if type(value) is tuple else value)


def told_list(parts, total=None):
    """As many of the parts, which are all or the first of a total, as there is room for, and how many more there are."""
    room, total = TOLD_NAMES, len(parts) if total is None else total
    for at, part in enumerate(parts):
        room -= len(part) + 2
        if room < 0:
            return ", ".join(parts[:at]) + " and %d more" % (total - at)
    return ", ".join(parts) + (" and %d more" % (total - len(parts)) if total > len(parts) else "")


def told_kinds(kinds):
    """Kinds in the order of their columns, those that repeat told once."""
    return told_list([kind if n == 1 else "%s ×%d" % (kind, n) for kind, n in ((kind, len([*same])) for kind, same in itertools.groupby(kinds))])


def told_table(rows, names, kinds, index, cells, missing):
    """A table in lines: its shape, its columns as CSV as far as there is room, kinds, missing values.

    The index has columns of told cells with the rows that are shown, and cells(i) returns those of column i, to be told. missing(looked) returns how many values are missing in each column of
    that many rows.
    """
    width = len(names)
    columns = list(index)
    sizes = sum(len(cell) + 1 for column in columns for cell in column)
    told = 0
    for i in range(min(width, TOLD_COLUMNS)):
        column = [told_name(names[i]), *map(told_cell, cells(i))]
        sizes += sum(len(cell) + 1 for cell in column)
        if told and sizes > TOLD_ROOM:
            break
        columns.append(column)
        told += 1
    lines = ["[DataFrame: %d rows × %d columns]" % (rows, width)]
    body = [",".join(cells) for cells in zip(*columns)]
    shown = max(0, len(body) - 1)  # the first line has the names
    if shown < rows:
        body.insert(1 + TOLD_HEAD, "… %d rows …" % (rows - shown))
    lines += body
    lines.append("[dtypes: %s]" % told_kinds([str(kind)[:TOLD_CELL] for kind in kinds[:told]]))
    if told < width:
        listed = ["%s %s" % (told_name(names[i]), str(kinds[i])[:TOLD_CELL]) for i in range(told, min(width, told + TOLD_COLUMNS))]
        lines.append("[%d more columns: %s]" % (width - told, told_list(listed, width - told)))
    looked = min(rows, TOLD_CELLS // max(1, width))
    found = ["%s %d" % (told_name(names[i]), n) for i, n in enumerate(missing(looked) if looked else ()) if n]
    if found:
        lines.append("[missing%s: %s]" % ("" if looked == rows else " in the first %d rows" % looked, told_list(found)))
    return "\n".join(lines)


def told_pandas(frame):
    rows = len(frame)
    part = frame.iloc[[*range(rows)] if rows <= TOLD_WHOLE else [*range(TOLD_HEAD), *range(rows - TOLD_TAIL, rows)], :TOLD_COLUMNS]
    levels = [part.index.get_level_values(i) for i in range(part.index.nlevels)]
    index = [[told_name(level.name) if level.name is not None else "", *map(told_cell, level.tolist())] for level in levels]
    return told_table(rows, frame.columns, frame.dtypes.tolist(), index, lambda i: part.iloc[:, i].tolist(), lambda looked: frame.iloc[:looked].isna().sum().tolist())


def told_polars(frame):
    rows = frame.height
    parts = [frame] if rows <= TOLD_WHOLE else [frame.head(TOLD_HEAD), frame.tail(TOLD_TAIL)]

    def cells(i):
        kind = frame.dtypes[i]
        if not kind.is_nested():
            return [value for part in parts for value in part.to_series(i).to_list()]
        inner = getattr(kind, "inner", None)
        if kind != sys.modules["polars"].List or inner is None or inner.is_nested():
            return ["…"] * sum(part.height for part in parts)  # values of any size, each of which would become an object
        return [value for part in parts for value in part.to_series(i).list.head(TOLD_CELL).to_list()]

    return told_table(rows, frame.columns, frame.dtypes, [], cells, lambda looked: frame.head(looked).null_count().row(0))


class Teller:
    """Has a model's code show more of DataFrames, and tables be as wide as the terminal of a person, as long as pandas' options are as they were when it was imported."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.untouched = None  # the options of tables as repr() uses them
        self.showing = 0  # values that are shown to people, inside one another
        self.columns = None  # of the environment, while a terminal's are there
        self.array_width = ARRAY_WIDTH  # of lines of arrays, as it was set here

    def begin(self, request):
        """Has COLUMNS say how wide the terminal is, for all libraries that look; user code may say otherwise."""
        if self.columns is not None:
            if os.environ.get("COLUMNS") == self.columns:
                del os.environ["COLUMNS"]
            self.columns = None
        columns = request.get("columns")
        if columns and "COLUMNS" not in os.environ:
            self.columns = os.environ["COLUMNS"] = str(columns)
        for name, value in POLARS_FORMS.items():
            if request.get("model"):
                os.environ.setdefault(name, value)
            elif os.environ.get(name) == value:
                del os.environ[name]
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            self.widen_arrays(numpy)

    def widen_arrays(self, numpy):
        """Has arrays be as wide as the terminal, as long as nobody has said how wide they are."""
        try:
            now = numpy.get_printoptions()["linewidth"]
            wanted = int(self.columns) if self.columns else ARRAY_WIDTH
            if now in (ARRAY_WIDTH, self.array_width) and now != wanted:
                numpy.set_printoptions(linewidth=wanted)
                self.array_width = wanted
        except Exception:
            pass  # another program's module of that name

    def tell(self, value):
        """What a formatter calls with a DataFrame. Where it returns nothing, a model is told what people see."""
        if not self.kernel.request.get("model"):
            return None
        library = _library(value)
        try:
            if library == "polars":
                return told_polars(value)
            if library not in ("pandas", "geopandas") or self.untouched is None:
                return None
            return told_pandas(value) if self.plain() == self.untouched else None
        except Exception:
            return None  # a column of a kind that cannot be listed

    def chart(self, figure, drawn=lambda figure: figure):
        """What a formatter calls with a matplotlib figure, or with what another library draws one of."""
        try:
            return chart_json(matplotlib_chart(drawn(figure))) if self.kernel.request.get("model") else None
        except Exception:
            return None  # a figure of a kind that is not known

    def chart_of(self, bundle):
        """What other libraries show, as text, or None."""
        try:
            chart = bundle_chart(bundle) if self.kernel.request.get("model") else None
            return chart_json(chart) if chart is not None else None
        except Exception:
            return None

    def widen(self, module):
        """Has repr() show more columns to a model that prints, as many as there is room for on a terminal, and as many as in Jupyter where there is none; pandas.options read as ever."""
        self.plain = plain = module.get_dataframe_repr_params
        self.untouched = plain()

        def params():
            found = plain()
            if found != self.untouched:
                return found
            if self.kernel.request.get("model") and not self.showing:
                found.update(max_cols=PRINT_COLUMNS, line_width=PRINT_WIDTH)
            elif self.columns:
                found.update(max_cols=0, line_width=int(self.columns))  # 0: as many as COLUMNS has room for
            elif self.kernel.request.get("mode") != "script":
                found.update(max_cols=CELL_COLUMNS)
            return found

        module.get_dataframe_repr_params = functools.wraps(plain)(params)
        self.align(module.printing)

    def align(self, printing):
        """Has the columns of tables line up on a terminal where characters of East Asian scripts take two; elsewhere pandas.options say it."""
        adjustment = printing.get_adjustment
        wide = getattr(printing, "_EastAsianTextAdjustment", None) or printing.EastAsianTextAdjustment
        printing.get_adjustment = functools.wraps(adjustment)(lambda: wide() if self.columns else adjustment())
