"""A headless Chromium without a network, driven over its DevTools protocol."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import websocket

from fgl_core.pdf import chromium

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-allow-origins=*",
    "--remote-debugging-port=0",
)
SECONDS = 60


class Browser:
    """One tab.

    Attributes:
        requested: every address that pages have asked for since it was opened.
        errors: what their scripts did not catch.
    """

    def __init__(self, profile: Path) -> None:
        self.requested: list[str] = []
        self.errors: list[str] = []
        self.process = subprocess.Popen(
            [str(chromium()), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._number = 0
        try:
            self._socket = websocket.create_connection(self._address(profile), timeout=SECONDS)
            self.call("Page.enable")
            self.call("Network.enable")
            self.call("Runtime.enable")
        except BaseException:
            self.close()
            raise

    def _address(self, profile: Path) -> str:
        deadline = time.monotonic() + SECONDS
        port_file = profile / "DevToolsActivePort"
        while time.monotonic() < deadline:
            if port_file.is_file() and (lines := port_file.read_text().split()):
                with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json", timeout=SECONDS) as answer:
                    tabs = [tab for tab in json.load(answer) if tab["type"] == "page"]
                if tabs:
                    return tabs[0]["webSocketDebuggerUrl"]
            time.sleep(0.1)
        raise TimeoutError("Chromium did not start")

    def _receive(self) -> dict[str, Any]:
        message = json.loads(self._socket.recv())
        if message.get("method") == "Network.requestWillBeSent":
            self.requested.append(message["params"]["request"]["url"])
        if message.get("method") == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        return message

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol; returns its result."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while (message := self._receive()).get("id") != self._number:
            pass
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def open(self, address: str) -> None:
        """Go to a page and wait until it is loaded and its maths, if any, is set."""
        self.call("Page.navigate", url=address)
        while self._receive().get("method") != "Page.loadEventFired":
            pass
        self.value("window.MathJax?.startup?.promise?.then(() => true)")

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release ``Tab`` or ``Enter``."""
        code, text = {"Tab": (9, {}), "Enter": (13, {"text": "\r"})}[key]
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def close(self) -> None:
        """End the browser."""
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
