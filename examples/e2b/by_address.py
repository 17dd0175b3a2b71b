"""Has e2b-code-interpreter before 2.9, which CrewAI's tools still ask for, find the code interpreter at E2B_SANDBOX_URL, as later versions do by themselves.

Import it before the first sandbox is made:

    import by_address
    from crewai_tools import E2BPythonTool
"""

import os

import httpx
from e2b_code_interpreter import AsyncSandbox, Sandbox
from e2b_code_interpreter.constants import JUPYTER_PORT

for kind, client in ((Sandbox, httpx.Client), (AsyncSandbox, httpx.AsyncClient)):
    kind._jupyter_url = property(lambda box: os.environ["E2B_SANDBOX_URL"].rstrip("/"))
    kind._client = property(
        lambda box, client=client: client(
            transport=box._transport,
            headers={"E2b-Sandbox-Id": box.sandbox_id, "E2b-Sandbox-Port": str(JUPYTER_PORT)},
        )
    )
