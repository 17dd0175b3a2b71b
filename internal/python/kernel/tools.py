

# ---------------------------------------------------------------------------------------------------------------------
# Tools


MOST_CALLS = 1000  # without an answer, at one time; the host counts too
CALLS_WINDOW = 32  # sent and not answered; the guest keeps twice as many messages for a kernel that does not read, and drops more
LARGEST_CALL = 1 << 20  # bytes of arguments
INTERRUPT_MS = 500  # how long a wait may be before Python looks whether it was interrupted: a signal that came just before, or that another thread got, does not end it
POLL_MS = 50  # how long somebody waits for the guest before looking whether another thread has read


class ToolError(RuntimeError):
    """A tool could not do what it was asked for; the message says why."""

    __module__ = "tools"  # where code finds it


class Call:
    """One call of a tool, until it is answered."""

    def __init__(self, number, name, arguments):
        self.number, self.name, self.arguments = number, name, arguments
        self.answer = None  # the host's message, or a dict with an error
        self.loop = self.future = None  # of one that is awaited
        self.asleep = False  # its thread waits for another one that reads
        self.wake = threading.Lock()  # free when its thread is to look again
        self.wake.acquire()

    def rouse(self):
        try:
            self.wake.release()
        except RuntimeError:
            pass  # it looks again in any case

    def result(self):
        if "error" in self.answer:
            raise ToolError("%s: %s" % (self.name, self.answer["error"]))
        return self.answer.get("value")


class Whole:
    """What is done in this context is done as a whole: in the main thread, an interrupt waits for its end.

    An interrupt is an exception at any call and at any step of a loop, also between taking a lock and the `try` that would give it back.
    """

    def __init__(self, interrupts):
        self.interrupts = interrupts if _ident() == interrupts.main else None

    def __enter__(self):
        if self.interrupts is not None:
            self.interrupts.depth += 1

    def __exit__(self, *exc):
        if self.interrupts is not None:
            self.interrupts.leave()


class Tools:
    """The module `tools`: functions that somebody else performs, outside of the sandbox.

    A call goes to the host as a message, and its answer comes back as one. Calls that are awaited together go together: they are collected until the event loop
    has run what is ready. Whoever waits reads what comes from the guest for all others too.
    """

    def __init__(self, kernel):
        self.kernel = kernel
        self.number = 0
        self.waiting = {}  # Call by number
        self.queued = []
        self.flying = set()  # numbers of those that were sent
        self.readers = {}  # how many calls wait in an event loop that is not the kernel's
        self.reader = {}  # the one key is of the thread that waits for the guest, as Guard has it
        self.lock = threading.RLock()  # entered by `with` alone, which no interrupt cuts in two; a finalizer or a signal handler may call a tool within it
        self.functions, self.globals = {}, {}
        self.module = types.ModuleType("tools", "Functions that the caller of this code offers. `help(tools)` lists them; `tools.find_tools('words')` finds some.")
        self.module.__dict__.update(ToolError=ToolError, find_tools=self.find, aio=types.ModuleType("tools.aio", "The same functions, to be awaited."))
        self.open = False  # calls can be made; changed, as what is queued, with the lock
        self.execution = ""  # the id of the one that makes them
        kernel.inlet.tools = self

    # -- what an execution is offered

    def begin(self, request):
        """Makes the functions of an execution."""
        offered = request.get("tools") or {}
        for namespace in (self.module.__dict__, self.module.aio.__dict__):
            for name in self.functions:
                namespace.pop(name, None)
        names = self.kernel.shell.user_ns
        for name, function in self.globals.items():
            if names.get(name) is function:
                del names[name]
        self.functions = {tool["function"]: tool for tool in offered.get("list") or ()}
        with self.lock:
            self.open, self.execution = bool(self.functions), request.get("id", "")
            self.queued, self.flying = [], set()
        self.globals = {}
        for name, tool in self.functions.items():
            setattr(self.module, name, self._function(tool, self._called))
            awaited = self._function(tool, self._awaited)
            setattr(self.module.aio, name, awaited)
            if offered.get("globals"):
                self.globals[name] = awaited
        names.update(self.globals)
        for name, module in (("tools", self.module), ("tools.aio", self.module.aio)):
            if self.functions:
                sys.modules[name] = module
            elif sys.modules.get(name) is module:
                del sys.modules[name]

    def end(self):
        """Ends the calls that nobody has waited for. From then on no thread reads what comes from the guest."""
        with self.lock:
            self.open = False
        for call in list(self.waiting.values()):
            self.take({"number": call.number, "error": "the code that called has ended"})
        while self.reader:
            _sleep(0.001)

    def find(self, words, limit=10):
        """The tools whose name or description has the words, the best first: a dict of their signatures and descriptions."""
        wanted = str(words).lower().split()

        def rank(item):
            name, text = item[0].lower(), item[1].get("description", "").lower()
            return -sum(3 * (word in name) + (word in text) for word in wanted)

        found = sorted((item for item in self.functions.items() if rank(item)), key=rank)[:limit]
        return {name + str(inspect.signature(getattr(self.module, name))): tool.get("description", "") for name, tool in found}

    def _function(self, tool, how):
        schema = tool.get("parameters") or {}
        properties, required = schema.get("properties") or {}, schema.get("required") or ()
        parameters, free = [], schema.get("additionalProperties", not properties) is not False
        for name in sorted(properties, key=lambda name: name not in required):
            if not name.isidentifier() or keyword.iskeyword(name):
                free = True
                continue
            default = inspect.Parameter.empty if name in required else (properties[name].get("default") if isinstance(properties[name], dict) else None)
            parameters.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation_of(properties[name])))
        if free:
            parameters.append(inspect.Parameter("others", inspect.Parameter.VAR_KEYWORD))
        result = tool.get("result")
        signature = inspect.Signature(parameters, return_annotation=annotation_of(result) if result else inspect.Signature.empty)

        def function(*args, **kwargs):
            given = signature.bind(*args, **kwargs).arguments
            given.update(given.pop("others", {}) if free else {})
            return how(tool["name"], given)

        if how == self._awaited:
            inspect.markcoroutinefunction(function) if hasattr(inspect, "markcoroutinefunction") else None
        function.__name__ = function.__qualname__ = tool["function"]
        function.__module__ = "tools"
        function.__doc__ = describe_tool(tool, properties)
        function.__signature__ = signature
        function.__annotations__ = {p.name: p.annotation for p in parameters if p.annotation is not p.empty}
        return function

    # -- calls

    def _call(self, name, arguments):
        kernel = self.kernel
        if kernel.outlet.child:
            raise ToolError("%s: a process that was forked off cannot call tools" % name)
        if len(self.waiting) >= MOST_CALLS:
            raise ToolError("%s: %d calls wait for an answer, which is the most at a time" % (name, MOST_CALLS))
        try:
            text = json.dumps(arguments, allow_nan=False, default=_argument)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError("%s: the arguments are no JSON: %s" % (name, error)) from None
        if len(text) > LARGEST_CALL:
            raise ToolError("%s: the arguments are larger than 1 MiB: hand over the name of a file, or a part" % name)
        with self.lock:
            if not self.open:
                raise ToolError("%s: the tools of an execution can be called until it ends" % name)
            self.number += 1
            call = Call(self.number, name, text)
            self.waiting[call.number] = call
            self.queued.append(call)
        return call

    def flush(self):
        """Sends the calls that were made since the last time, as many as may wait at the host."""
        with Whole(self.kernel.interrupts):  # those of other threads are among them
            with self.lock:
                room = CALLS_WINDOW - len(self.flying)
                calls, self.queued = self.queued[:room], self.queued[room:]
                self.flying.update(call.number for call in calls)
                execution = self.execution  # the next one may begin before they are sent
            if calls:
                self.kernel.outlet.send({"type": "tool_calls", "id": execution,
                                         "calls": [{"number": call.number, "name": call.name, "arguments": call.arguments} for call in calls]})

    def _called(self, name, arguments):
        call = self._call(name, arguments)
        try:
            self.flush()
            self._wait(call)
        finally:
            self._forget(call)
        return call.result()

    async def _awaited(self, name, arguments):
        loop = asyncio.get_running_loop()
        call = self._call(name, arguments)
        call.loop, call.future = loop, loop.create_future()
        if call.answer is not None:
            return call.result()
        self._watch(loop)
        try:
            loop.call_soon(self.flush)
            await call.future
        finally:
            self._forget(call)
            self._unwatch(loop)
        return call.result()

    def _forget(self, call):
        """Ends a call that is answered, or that nobody waits for any more."""
        self.waiting.pop(call.number, None)
        if call in self.queued:
            with self.lock:
                self.queued = [other for other in self.queued if other is not call]

    def _wait(self, call):
        """Waits for an answer in a thread without an event loop that could. One thread reads for all."""
        inlet, interrupts, me = self.kernel.inlet, self.kernel.interrupts, _ident()
        main = me == interrupts.main
        poller = _poll()
        poller.register(inlet.sock, select.POLLIN)
        while call.answer is None:
            try:
                if self.reader.setdefault(0, me) != me:
                    call.asleep = True
                    if self.reader:
                        call.wake.acquire(timeout=1)
                    continue
                # An event loop may take in what is waited for here.
                alone = main and not self.readers
                if call.answer is None and poller.poll(INTERRUPT_MS if alone else POLL_MS):
                    inlet.pump()
            finally:
                if main:
                    interrupts.depth += 1  # without a call before it, at which an interrupt could come
                try:
                    call.asleep = False
                    if self.reader.get(0) == me:
                        del self.reader[0]
                        for other in list(self.waiting.values()):  # one of those that are still there reads on
                            if other.asleep:
                                other.rouse()
                                break
                finally:
                    if main:
                        interrupts.leave()

    def _watch(self, loop):
        """Has an event loop of the code's own read what comes from the guest."""
        if loop is not self.kernel.loop:
            if not self.readers.get(loop):
                loop.add_reader(self.kernel.inlet.sock, self.kernel.inlet.pump)
            self.readers[loop] = self.readers.get(loop, 0) + 1

    def _unwatch(self, loop):
        if loop is not self.kernel.loop:
            self.readers[loop] -= 1
            if not self.readers[loop]:
                del self.readers[loop]
                loop.remove_reader(self.kernel.inlet.sock)

    def take(self, message):
        """Takes in the host's answer to a call. It may come in any thread."""
        number = message.get("number")
        self.flying.discard(number)
        if self.queued and self.open:
            self.flush()
        call = self.waiting.pop(number, None)
        if call is None:
            return
        call.answer = message
        call.rouse()
        if call.future is not None:
            try:
                call.loop.call_soon_threadsafe(lambda: call.future.done() or call.future.set_result(None))
            except RuntimeError:
                pass  # that loop is closed: nobody waits any more


def _argument(value):
    """What an argument is in JSON, of a type that JSON does not have."""
    if isinstance(value, (set, frozenset)):
        return list(value)
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return value.to_dict("records")
    for convert in ("isoformat", "tolist", "__fspath__", "model_dump"):
        if hasattr(value, convert):
            return getattr(value, convert)()
    raise TypeError("a value of type %s is none" % type(value).__name__)


TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict, "null": None}


def annotation_of(schema):
    """The Python type of a JSON Schema, as far as one says it."""
    if not isinstance(schema, dict):
        return typing.Any
    choices = schema.get("enum")
    if isinstance(choices, list) and choices and all(isinstance(c, (str, int, bool)) for c in choices):
        return typing.Literal[tuple(choices[:50])]
    kinds = schema.get("type")
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(kinds, list):
        parts = [TYPES.get(kind, typing.Any) for kind in kinds if isinstance(kind, str)]
    elif isinstance(kinds, str):
        parts = [TYPES.get(kinds, typing.Any)]
    elif isinstance(alternatives, list):
        parts = [annotation_of(part) for part in alternatives[:10]]
    else:
        return typing.Any
    items = schema.get("items")
    if parts == [list] and isinstance(items, dict) and isinstance(items.get("type"), str):
        return list[TYPES.get(items["type"]) or typing.Any]
    return typing.Union[tuple(parts)] if parts else typing.Any


def describe_tool(tool, properties):
    """The docstring of a tool's function."""
    lines = [str(tool.get("description") or "A tool of the caller's.")]
    described = [(name, p["description"]) for name, p in properties.items() if isinstance(p, dict) and p.get("description")]
    if described:
        lines += ["", "Arguments:"] + ["    %s: %s" % pair for pair in described]
    return "\n".join(lines)
