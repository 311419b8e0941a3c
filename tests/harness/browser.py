"""A headless Chromium that tests drive: pages, pointer events, screenshots.

It is spoken to over its debugging pipe (two file descriptors, JSON ended by a zero
byte): https://chromedevtools.github.io/devtools-protocol/.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str | None:
    """The path of a Chromium, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of a headless Chromium."""

    def __init__(self, path: str, folder: str):
        self.read, its_out = os.pipe()
        its_in, self.write = os.pipe()
        its_in, its_out = _beyond(its_in), _beyond(its_out)
        self.count, self.left = 0, b""
        self.messages: list[dict[str, Any]] = []
        command = (
            f'exec "$0" --headless --no-sandbox --disable-gpu --no-first-run '
            f'--user-data-dir="$1" --remote-debugging-pipe about:blank '
            f"3<&{its_in} 4>&{its_out}"  # the two that Chromium looks at
        )
        self.process = subprocess.Popen(
            ["bash", "-c", command, path, folder],
            pass_fds=(its_in, its_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(its_in)
        os.close(its_out)
        targets = self.call("Target.getTargets", session=None)["targetInfos"]
        page = next(each for each in targets if each["type"] == "page")
        attached = self.call(
            "Target.attachToTarget",
            session=None,
            targetId=page["targetId"],
            flatten=True,
        )
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, session: str | None = "", **params: Any) -> Any:
        """The result of a protocol method; its error is an AssertionError."""
        self.count += 1
        message: dict[str, Any] = {
            "id": self.count,
            "method": method,
            "params": params,
        }
        if session is not None:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.messages.append(answer)

    def _next(self, seconds: float = 60) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self.left:
            ready, _, _ = select.select([self.read], [], [], end - time.monotonic())
            assert ready, "the browser does not answer"
            got = os.read(self.read, 1 << 20)
            assert got, "the browser ended"
            self.left += got
        line, _, self.left = self.left.partition(b"\0")
        return dict(json.loads(line))

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)

    def evaluate(self, script: str) -> Any:
        """The value of an expression of JavaScript on the page."""
        made = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in made, made["exceptionDetails"]
        return made["result"].get("value")

    def wait(self, script: str, seconds: float = 120) -> Any:
        """The value of an expression once it is true."""
        end = time.monotonic() + seconds
        while not (value := self.evaluate(script)):
            shown = self.evaluate("document.body.innerText")
            assert time.monotonic() < end, f"{script} stays false: {shown}"
            time.sleep(0.1)
        return value

    def drag(self, points: list[tuple[float, float]]) -> None:
        """Press the pointer at the first point, move along them, and release it."""
        kinds = ["mousePressed", *["mouseMoved"] * (len(points) - 1), "mouseReleased"]
        for kind, (x, y) in zip(kinds, [*points, points[-1]], strict=True):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left",
                buttons=int(kind != "mouseReleased"),
                clickCount=1,
            )

    def press(self, key: str, code: int = 0, text: str = "") -> None:
        """Press and release a key: "Tab", "Enter", a letter. code: Windows' number."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                text=text if kind == "keyDown" else "",
                windowsVirtualKeyCode=code,
            )

    def appears(self, width: int, height: int, dark: bool) -> None:
        """Have a window of this size, and the colours that the person prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        os.close(self.read)
        os.close(self.write)


def _beyond(number: int) -> int:
    """The same file under a number that is not 3 or 4."""
    other = fcntl.fcntl(number, fcntl.F_DUPFD, 10)
    os.close(number)
    return other


@contextmanager
def browser(path: str) -> Iterator[Browser]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        opened = Browser(path, folder)
        try:
            yield opened
        finally:
            opened.close()


class _Handler(SimpleHTTPRequestHandler):
    """Files of a folder; those below /pyodide/ of another."""

    def __init__(self, *args: Any, pyodide: Path, **options: Any):
        self.pyodide = pyodide
        super().__init__(*args, **options)

    def translate_path(self, path: str) -> str:
        if path.startswith("/pyodide/"):
            return str(self.pyodide / Path(path.partition("?")[0]).name)
        return super().translate_path(path)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(folder: Path, pyodide: Path) -> Iterator[str]:
    """The address of a folder on this machine, with Pyodide in it."""
    handler = partial(_Handler, directory=str(folder), pyodide=pyodide)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
