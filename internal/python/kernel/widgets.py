

# ---------------------------------------------------------------------------------------------------------------------
# Widgets for clients that show them by their states (widgets.py, between comms.py and variables.py in one file)

import weakref

VIEW_MIME = "application/vnd.jupyter.widget-view+json"
MODEL = "IPY_MODEL_"  # begins a value that stands for another widget
WIDGET_TARGET = "jupyter.widget"
MOST_WIDGETS = 500  # in one message
WIDGET_ROOM = 1 << 20  # bytes of the state of one widget
WIDGETS_ROOM = 3 << 20  # bytes of all that one message tells
WIDGETS_EVERY = 0.2  # seconds between messages about changes
OUTPUT_ROOM = 700_000  # characters that an Output widget keeps, of text and of pictures
TOLD_OUTPUT = 2000  # characters of them for a model
TOLD_WIDGETS = 20  # that one sentence tells of


class Widgets:
    """Tells the client which state widgets are in: all of those that a view needs before it is shown, and those that have changed, a few times a second.

    A client of Jupyter's takes messages of comms instead; so does what an Output widget captures go to the client there, and into the widget itself here.
    """

    def __init__(self, kernel):
        self.kernel = kernel
        self.changed = {}  # ids of widgets that the client is to be told of, in order
        self.closed = []
        self.told = set()  # ids that the client knows of the running execution
        self.telling = False
        self.last = 0.0
        self.timer = None
        self.captures = []
        self.clearing = weakref.WeakSet()  # Output widgets that the next output clears

    def wanted(self):
        return bool(self.kernel.request.get("widgets")) and not self.kernel.outlet.child

    @staticmethod
    def known():
        """All widgets by their ids."""
        module = sys.modules.get("ipywidgets.widgets.widget")
        if module is None:
            return {}
        known = getattr(module, "_instances", None)
        return known if known is not None else getattr(module.Widget, "widgets", {})

    def note(self, kind, content):
        """Takes notice of a message of a comm."""
        if not self.wanted():
            return
        id = content["comm_id"]
        if kind == "comm_close":
            self.changed.pop(id, None)
            self.closed.append(id)
        elif kind == "comm_open" and content.get("target_name") == WIDGET_TARGET or content["data"].get("method") == "update":
            self.changed[id] = True
        else:
            return
        if not self.captures and _monotonic() - self.last >= WIDGETS_EVERY:
            self.tell()
        elif self.timer is None:
            self.timer = timer = threading.Timer(WIDGETS_EVERY, self.tick)
            timer.daemon = True
            timer.start()

    def tick(self):
        self.timer = None
        if self.wanted():
            self.tell()

    def tell(self):
        """Tells what has changed."""
        if self.telling:  # to read a state can make a widget
            return
        self.telling = True
        try:
            self.last = _monotonic()
            known = self.known()
            ids, models, room = [id for id in list(self.changed) if id in known], {}, WIDGETS_ROOM
            for id in ids:
                self.changed.pop(id, None)
                model, size = self.state(known.get(id))
                if model is None:
                    continue
                if models and (size > room or len(models) >= MOST_WIDGETS):
                    self.send(models)
                    models, room = {}, WIDGETS_ROOM
                models[id] = model
                room -= size
                self.told.add(id)
            if models or self.closed:
                self.send(models)
        finally:
            self.telling = False

    def send(self, models):
        closed, self.closed = self.closed[:MOST_WIDGETS], self.closed[MOST_WIDGETS:]
        self.kernel.outlet.send({"type": "widgets", "models": models, "closed": closed})

    @staticmethod
    def state(widget):
        """The state of a widget in the form in which notebooks have it, and its size in bytes."""
        try:
            model = widget._get_embed_state()
            if model.get("model_name") == "PasswordModel":  # what it holds is in no record
                model = {**model, "state": {**model["state"], "value": ""}}
            size = len(to_json(model))
            if size > WIDGET_ROOM:
                model = {**model, "state": {}, "buffers": [], "too_large": size}
                size = 200
            return model, size
        except Exception:
            return None, 0  # it is closed, or has a state that is none

    def needed(self, id, known):
        """The ids of a widget and of all that its state refers to, these first."""
        found, line = {}, [id]
        while line and len(found) < MOST_WIDGETS:
            at = line.pop()
            if at in found or at not in known:
                continue
            found[at] = True
            try:
                state = known[at].get_state()
            except Exception:
                continue
            values = list(state.values())
            while values:
                value = values.pop()
                if isinstance(value, str):
                    if value.startswith(MODEL):
                        line.append(value[len(MODEL):])
                elif isinstance(value, (list, tuple)):
                    values += value[:MOST_WIDGETS]
                elif isinstance(value, dict):
                    values += list(value.values())[:MOST_WIDGETS]
        return [*reversed(found)]

    def show(self, data):
        """Readies the bundle of a view: the client is told of what the view needs first, and a model what it is."""
        view = data.get(VIEW_MIME)
        if not isinstance(view, dict) or not self.wanted():
            return
        known = self.known()
        id = str(view.get("model_id"))
        for needed in self.needed(id, known):
            if needed not in self.told:
                self.changed[needed] = True
        self.tell()
        if self.kernel.request.get("model") and id in known:
            data[TOLD_MIME] = "%s\n%s" % (str(data.get("text/plain", ""))[:TOLD_OUTPUT], self.sentence(id, known))

    def sentence(self, id, known):
        """What a model is told of a widget: its kind, its description, its value, and what an Output widget has."""
        parts, written = [], ""
        for at in reversed(self.needed(id, known)):
            try:
                state = known[at].get_state()
                if isinstance(state.get("outputs"), (list, tuple)):
                    for one in state["outputs"]:
                        written += str(one.get("text") or one.get("evalue") or one.get("data", {}).get("text/plain", "")) + "\n"
                elif state.get("_view_name") and ("value" in state or "index" in state or state.get("description")):
                    value = getattr(known[at], "value", None)
                    parts.append("%s%s%s" % (type(known[at]).__name__, " %r" % str(state["description"])[:80] if state.get("description") else "",
                                             "" if value is None else " with the value " + repr(value)[:80]))
            except Exception:
                continue
        more = len(parts) - TOLD_WIDGETS
        listed = "; ".join(parts[:TOLD_WIDGETS]) + ("; and %d more" % more if more > 0 else "") if parts else type(known[id]).__name__
        text = "[shown on the page as a widget that a person can use: %s]" % listed
        return text + ("\n[it shows]\n" + written.strip()[:TOLD_OUTPUT] if written.strip() else "")

    def end(self):
        """Ends the execution."""
        try:
            while self.captures:
                self.captures.pop().leave()
            if self.wanted():
                self.tell()
        except Exception:
            pass  # code has replaced something of a widget's own
        self.changed, self.closed, self.told = {}, [], set()

    def answer(self, request):
        """Tells a client that asks for it the states of all widgets, the newest first, as far as there is room."""
        known = self.known()
        models, more, room = {}, 0, WIDGETS_ROOM
        for id, widget in reversed(list(known.items())):
            if room <= 0 or len(models) >= MOST_WIDGETS:
                more = len(known) - len(models)
                break
            model, size = self.state(widget)
            if model is None or size > room:
                more += 1
                continue
            models[str(id)] = model
            room -= size
        self.kernel.outlet.send({"type": "widgets_reply", "id": request.get("id", ""), "models": models, "more": more})

    def adapt_output(self, module):
        """Has an Output widget keep itself what is shown inside, unless a client of Jupyter's does that."""
        enter, leave, widgets = module.Output.__enter__, module.Output.__exit__, self

        @functools.wraps(enter)
        def entered(output):
            if widgets.wanted():
                widgets.captures.append(Capture(widgets, output))
                return None
            return enter(output)

        @functools.wraps(leave)
        def left(output, kind, value, trace):
            capture = widgets.captures[-1] if widgets.captures else None
            if capture is None or capture.output is not output:
                return leave(output, kind, value, trace)
            widgets.captures.pop()
            shown = isinstance(value, Exception)
            if shown:
                error = describe_error(value)
                capture.add({"output_type": "error", "ename": error["name"], "evalue": error["value"], "traceback": error["traceback"]})
            capture.leave()
            return shown or None

        module.Output.__enter__, module.Output.__exit__ = entered, left

    @property
    def capture(self):
        return self.captures[-1] if self.captures else None


class Capture:
    """What is shown inside an Output widget, which becomes its outputs."""

    def __init__(self, widgets, output):
        self.widgets, self.output = widgets, output
        self.set, self.items, self.size, self.last = None, [], 0, _monotonic()
        self.streams = sys.stdout, sys.stderr
        self.texts = CapturedText(self, "stdout", sys.stdout), CapturedText(self, "stderr", sys.stderr)
        sys.stdout, sys.stderr = self.texts

    def leave(self):
        if sys.stdout is self.texts[0]:
            sys.stdout = self.streams[0]
        if sys.stderr is self.texts[1]:
            sys.stderr = self.streams[1]
        self.give(True)

    def begin(self):
        """Goes on from what the widget has, which may have been set otherwise, and clears it when that is due."""
        if self.set is None or self.output.outputs is not self.set and self.output.outputs != self.set:
            self.items = list(self.output.outputs)
            self.set = self.output.outputs
            self.size = len(to_json(self.items))
        if self.output in self.widgets.clearing:
            self.widgets.clearing.discard(self.output)
            self.items, self.size = [], 0

    def add(self, item):
        self.begin()
        last = self.items[-1] if self.items else {}
        size = len(item["text"]) if "text" in item else len(to_json(item))
        if self.size + size > OUTPUT_ROOM:
            item = {"output_type": "stream", "name": "stderr", "text": "[more is not kept here]\n"}
            if self.items and self.items[-1] == item:
                return
        elif item["output_type"] == "stream" == last.get("output_type") and item["name"] == last.get("name"):
            item = {**last, "text": last["text"] + item["text"]}
            self.items.pop()
        self.size += size
        self.items.append(item)
        self.give()

    def display(self, data, metadata, display_id, update):
        """Takes what is displayed in; False: it updates what is elsewhere."""
        self.begin()
        item = {"output_type": "display_data", "data": {k: v for k, v in data.items() if k not in (TOLD_MIME, CHART_MIME)}, "metadata": metadata or {}}
        if display_id:
            item["transient"] = {"display_id": display_id}
        if not update:
            self.add(item)
            return True
        found = [at for at, one in enumerate(self.items) if one.get("transient") == item.get("transient")] if display_id else ()
        for at in found:
            self.items[at] = item
        self.give()
        return bool(found)

    def clear(self, wait):
        if wait:
            self.widgets.clearing.add(self.output)
        else:
            self.widgets.clearing.discard(self.output)
            self.begin()
            self.items, self.size = [], 0
            self.give()

    def give(self, now=False):
        """Has the widget have what there is, a few times a second."""
        if self.set is None or not now and _monotonic() - self.last < WIDGETS_EVERY:
            return
        self.last = _monotonic()
        self.output.outputs = tuple(self.items)
        self.set = self.output.outputs


class CapturedText(io.TextIOBase):
    """sys.stdout or sys.stderr inside an Output widget."""

    encoding, errors, mode = "utf-8", "backslashreplace", "w"

    def __init__(self, capture, name, stream):
        self._capture, self._name, self._stream = capture, name, stream

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not " + type(text).__name__)
        if text:
            self._capture.add({"output_type": "stream", "name": self._name, "text": text})
        return len(text)

    @property
    def name(self):
        return "<%s>" % self._name

    @property
    def buffer(self):
        return self._stream.buffer

    def fileno(self):
        return self._stream.fileno()

    def writable(self):
        return True

    def close(self):
        pass
