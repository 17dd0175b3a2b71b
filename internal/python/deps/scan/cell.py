"""Notebook cells: what IPython takes out of the text before Python sees it. Nothing of IPython is needed for that."""

PYTHON_CELLS = {"time", "timeit", "capture", "prun", "python", "python3", "debug", "memit", "mprun", "lprun"}
SHELL_CELLS = {"bash", "sh", "zsh", "script", "!", "sx", "system"}
TIMERS = {"time", "timeit", "prun", "memit", "lprun", "mprun"}
TOOLS = ("pip", "conda", "uv", "mamba", "micromamba")
OWN_EXTENSIONS = {"autoreload", "storemagic"}


def sql(rest):
    """What %sql stands for: its extension, and the driver of the database that is named."""
    url = word_of(rest)[0]
    return "import sql" + ("; import sqlalchemy; sqlalchemy.create_engine(%r)" % url if "://" in url else "")


def parses(text):
    try:
        compile(text, "", "exec", ONLY_AST, True)
        return True
    except Exception:
        return False


def word_of(text):
    """The first word of a text and what follows it."""
    first, _, rest = text.lstrip().partition(" ")
    return first, rest.strip()


def timed(rest):
    """The statement behind a timing magic and its options."""
    while True:
        if parses(rest) and not rest.startswith("-"):
            return rest
        first, rest = word_of(rest)
        if not first:
            return "pass"


class Cell:
    """A cell's Python, in text, and its shell command lines, in shell."""

    def __init__(self, text):
        self.shell = []
        lines = text.split("\n")
        if text.lstrip(" \t\n").startswith(">>> "):
            lines = [line.lstrip()[4:] for line in lines if line.lstrip()[:4] in (">>> ", "... ")]
        lines = self.body(lines)
        out, at = [], 0
        quote, depth, open_line = "", 0, False
        while at < len(lines):
            line = lines[at]
            at += 1
            if not quote and not depth and not open_line:
                whole, end = line, at
                while whole.endswith("\\") and end < len(lines):
                    whole, end = whole[:-1] + " " + lines[end], end + 1
                changed = self.magic(whole)
                if changed is not None:
                    out.append(whole[: len(whole) - len(whole.lstrip())] + changed)
                    at = end
                    continue
            quote, depth, open_line = advance(line, quote, depth)
            out.append(line)
        self.text = "\n".join(out)

    def body(self, lines):
        """The Python lines of a cell that may begin with cell magics."""
        while True:
            while lines and not lines[0].strip():
                lines = lines[1:]
            if not lines or not lines[0].startswith("%%"):
                return lines
            name, rest = word_of(lines[0][2:])
            lines = lines[1:]
            if name in SHELL_CELLS and (name != "script" or word_of(rest)[0].rpartition("/")[2] in SHELL_CELLS):
                self.shell += [line for line in "\n".join(lines).replace("\\\n", " ").split("\n") if installs(line) or started(line)]
            if name == "sql":
                return [sql(rest)]
            if name not in PYTHON_CELLS:
                return []
            if name in TIMERS and rest:
                lines = [timed(rest)] + lines
                return lines

    def run(self, command):
        """Notes a command line and returns the statement to put in its place."""
        self.shell.append(command)
        return INSTALL if installs(command) else "pass"

    def magic(self, line):
        """The Python to put in the place of a line, without its indentation; None when it is Python already."""
        s = line.strip()
        if s.startswith("!"):
            return self.run(s.lstrip("!"))
        if s.startswith("%"):
            name, rest = word_of(s.lstrip("%"))
            if name in TOOLS:
                return self.run(name + " " + rest)
            if name in ("system", "sx", "sc", "bash", "sh"):
                return self.run(rest)
            if name in ("load_ext", "reload_ext") and rest not in OWN_EXTENSIONS and parses("import " + rest):
                return "import " + rest
            if name == "sql":
                return sql(rest)
            return timed(rest) if name in TIMERS else "pass"
        if word_of(s)[0] in TOOLS and "install" in s and not parses(s):
            return self.run(s)
        if s.startswith("?") or s.endswith("?") and not any(c in " #=" for c in s):
            return "pass"
        name, equals, value = s.partition("=")
        value = value.lstrip()
        if equals and value[:1] in ("!", "%") and all(n.strip().isidentifier() for n in name.split(",")):
            command = value.lstrip("!%")
            if value[0] == "!" or word_of(command)[0] in TOOLS + ("sx", "system"):
                return name.strip() + " = " + self.run(command).replace("pass", "None")
            magic, rest = word_of(command)
            return (sql(rest) + "; " if magic == "sql" else "") + name.strip() + " = None"
        return None


def advance(line, quote, depth):
    """How a line leaves the text: inside which quotes and how many brackets, and whether a backslash continues it."""
    i, n = 0, len(line)
    while i < n:
        c = line[i]
        if c == "\\":
            i += 2
        elif quote:
            if line.startswith(quote, i):
                i += len(quote)
                quote = ""
            else:
                i += 1
        elif c == "#":
            return quote, depth, False
        elif c in "\"'":
            quote = c * 3 if line.startswith(c * 3, i) else c
            i += len(quote)
        else:
            depth = max(depth + (c in "([{") - (c in ")]}"), 0)
            i += 1
    continued = line.endswith("\\")
    return ("" if len(quote) == 1 and not continued else quote), depth, continued and not quote


def tolerant(text, finder):
    """Finds import statements line by line in what is not Python."""
    quote = ""
    for line in text.replace("\\\n", " ").split("\n"):
        inside = quote
        quote = advance(line, quote, 0)[0]
        if len(quote) == 1:
            quote = ""
        for part in [] if inside else line.partition("#")[0].split(";"):
            # Bytes, because only the spaces of ASCII separate words here.
            words = [w.decode() for w in part.replace("(", " ( ").encode("utf-8", "replace").split()]
            if words[:1] == ["import"]:
                for name in " ".join(words[1:]).split(","):
                    finder.add(name.strip(" ").partition(" ")[0], [], Context())
            elif words[:1] == ["from"] and words[2:3] == ["import"]:
                finder.add(words[1], [], Context())
