"""A headless Chromium, driven over its DevTools pipe."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# Chromium speaks its protocol on descriptors 3 and 4; this puts our pipes there.
_LAUNCH = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3]]
for fd, wanted in zip(pipes, (3, 4)): os.dup2(fd, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A headless Chromium, driven over its DevTools pipe: commands in, answers out, NUL between
    them.
    """

    def __init__(self, program: str, profile: Path) -> None:
        theirs_in, self.to = os.pipe()
        self.back, theirs_out = os.pipe()
        switches = (
            "headless no-sandbox disable-gpu disable-quic no-first-run "
            "disable-background-networking disable-component-update disable-sync "
            "disable-dev-shm-usage remote-debugging-pipe"
        )
        flags = [f"--{switch}" for switch in re.findall(r"\S+", switches)]
        command = [sys.executable, "-c", _LAUNCH, str(theirs_in), str(theirs_out), program, *flags]
        self.process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer = b""
        self.sent = 0
        self.session = ""
        self.errors: list[Any] = []
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self.session = self.call(
            "Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True
        )["sessionId"]
        self.call("Log.enable")
        self.call("Runtime.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": params}
        os.write(
            self.to,
            json.dumps(message | ({"sessionId": self.session} if self.session else {})).encode()
            + b"\0",
        )
        while True:
            answer = self._read()
            if answer.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
                self.errors.append(answer["params"])
            if answer.get("id") == self.sent:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            assert select.select([self.back], [], [], 60)[0], "the browser does not answer"
            data = os.read(self.back, 1 << 20)
            assert data, "the browser has ended"
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def run(self, script: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        deadline = time.monotonic() + 20
        while not self.run(condition):
            assert time.monotonic() < deadline, f"never true: {condition}"
            time.sleep(0.01)

    def show(
        self, path: Path, fragment: str = "", *, width: int = 1280, scheme: str = "light"
    ) -> None:
        self.resize(width, scheme)
        self.go(path.as_uri() + fragment)

    def resize(self, width: int, scheme: str) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def go(self, url: str) -> None:
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.errors.clear()
        self.call("Page.navigate", url=url)
        self.wait("location.href !== 'about:blank' && document.readyState === 'complete'")

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "ArrowDown": 40, "ArrowUp": 38}.get(key, 0)
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def listed(self) -> list[str]:
        names: list[str] = self.run(
            "[...document.querySelectorAll('#removed-list > li:not([hidden])')].map(e => e.id)"
        )
        return names
