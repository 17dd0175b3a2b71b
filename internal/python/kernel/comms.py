

# ---------------------------------------------------------------------------------------------------------------------
# Comms: what widgets and a client of notebooks say to each other (comms.py, between kernel.py and widgets.py in one file)

COMM_MIME = "application/vnd.cove.comm+json"  # a message of a comm, in a display
MOST_COMMS = 2_000  # that a client is told of


class Comms:
    """Leads the comms that code opens to the client, and a client's messages to code.

    ipywidgets and others open comms with the package comm, which asks for the class of them to be replaced. A message goes to the client as a display, while code of the client runs; what
    threads say at other times is lost, for there is nobody to be told. A client's message comes as code, a call of take().
    """

    def __init__(self, kernel):
        self.kernel = kernel
        self.manager = None  # a function; None: code has not imported the package
        self.begun = False  # the interpreter is in the folder of its notebook

    def adapt(self, module):
        comms = self

        class Comm(module.base_comm.BaseComm):
            def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
                comms.tell(msg_type, {**keys, "comm_id": self.comm_id, "data": data or {}}, metadata, buffers)

        module.create_comm = Comm
        self.manager = module.get_comm_manager

    def tell(self, kind, content, metadata=None, buffers=None):
        kernel = self.kernel
        if not kernel.request.get("payloads") or kernel.outlet.child:
            kernel.widgets.note(kind, content)
            return
        message = {"kind": kind, "content": content, "metadata": metadata or {},
                   "buffers": [base64.b64encode(memoryview(b).cast("B")).decode("ascii") for b in buffers or ()]}
        kernel.outlet.send({"type": "display", "data": {"text/plain": "", COMM_MIME: message}, "metadata": {}, "display_id": "", "update": False})

    def take(self, text):
        """Has code answer a client's message."""
        message = json.loads(text)
        kind, content = message["kind"], message["content"]
        manager = self.manager and self.manager()
        if not manager or self.kernel.widgets.wanted() and content.get("comm_id") not in manager.comms:
            if kind == "comm_open" or not self.kernel.request.get("payloads"):
                self.tell("comm_close", {"comm_id": content.get("comm_id"), "data": {}})
            return
        buffers = [memoryview(base64.b64decode(b)) for b in message.get("buffers") or ()]
        getattr(manager, {"comm_open": "comm_open", "comm_close": "comm_close"}.get(kind, "comm_msg"))(None, None, {
            "header": {**self.parent()["header"], "msg_type": kind}, "parent_header": {}, "content": content, "metadata": message.get("metadata") or {}, "buffers": buffers})
        if self.kernel.widgets.wanted():
            self.kernel.widgets.changed[content.get("comm_id")] = True  # what the client has set is told it when it holds

    def parent(self):
        """The client's message that runs now, in the form that ipykernel has it: an Output widget takes what is shown for it."""
        return {"header": {"msg_id": str(self.kernel.request.get("parent") or "")}}

    def begin(self, folder):
        """Goes to the folder of the notebook, once, and tells a client that has just come of the comms that are open and the last number of a cell."""
        if folder and not self.begun:
            self.begun = True
            try:
                os.chdir(folder)
            except OSError:
                pass  # it is gone
        manager = self.manager and self.manager()
        comms = {str(id): {"target_name": str(one.target_name)} for id, one in itertools.islice(manager.comms.items(), MOST_COMMS)} if manager else {}
        self.tell("state", {"comms": comms, "count": self.kernel.shell.execution_count - 1})
