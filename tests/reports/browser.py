"""A real browser without a window: pages of any width, light, dark or on paper, keys that are pressed, and what the console complains of.

Chromium is led over two pipes with the messages of its DevTools protocol, each a JSON text that ends with a zero byte
(https://chromedevtools.github.io/devtools-protocol, `--remote-debugging-pipe`). One browser serves all tests of a process.
"""

import atexit
import base64
import fcntl
import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_HIGH = 900
_KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "ArrowRight": (39, ""), "ArrowLeft": (37, ""), "Escape": (27, ""), " ": (32, " ")}
_ABOVE = 20
"""Descriptors below are those that the browser itself reads from and writes to, and those that are always there."""


class Browser:
    """A running Chromium."""

    def __init__(self, program: str) -> None:
        theirs, self._to = _pipe()
        self._from, answers = _pipe()
        switches = "--headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --remote-debugging-pipe about:blank"
        led = f'exec "$0" {switches} 3<&{theirs} 4>&{answers}'
        self._process = subprocess.Popen(
            ["bash", "-c", led, program],
            pass_fds=(theirs, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(answers)
        self._number, self._rest = 0, b""
        self.told: list[dict[str, Any]] = []
        """Events since the last page was opened."""

    def ask(self, method: str, session: str = "", **given: object) -> dict[str, Any]:
        """The answer to one message; an error where there is none."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": given} | ({"sessionId": session} if session else {})
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self.told.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        found: dict[str, Any] = answer["result"]
        return found

    def wait_for(self, event: str) -> None:
        """Until this is told."""
        while not any(one.get("method") == event for one in self.told):
            self.told.append(self._next())

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._from, 1 << 16)
            if not read:
                raise RuntimeError("the browser ended")
            self._rest += read
        text, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found

    def close(self) -> None:
        """End it; it ends by itself, too, when nobody holds the other end of its pipes."""
        os.close(self._to)
        os.close(self._from)
        self._process.terminate()
        self._process.wait()


@dataclass(frozen=True, slots=True)
class View:
    """A page that is open."""

    browser: Browser
    session: str
    target: str = field(default="")

    def run(self, script: str) -> Any:  # noqa: ANN401 - whatever the script gives
        """What an expression of JavaScript gives, awaited where it is a promise."""
        answer = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", script))
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """A key goes down and up."""
        code, text = _KEYS.get(key, (0, key))
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text, windowsVirtualKeyCode=code)

    def point_at(self, x: float, y: float) -> None:
        """The mouse moves there."""
        self._ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, path: Path, whole: bool = False) -> None:
        """What is seen of the page, or all of it, as a file."""
        found = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def complaints(self) -> list[str]:
        """What a reader of the console finds."""
        self.run("0")
        found = list[str]()
        for one in self.browser.told:
            match one.get("method"):
                case "Runtime.consoleAPICalled":
                    found += [str(part.get("value", part.get("description", ""))) for part in one["params"]["args"]]
                case "Runtime.exceptionThrown":
                    details = one["params"]["exceptionDetails"]
                    found.append(details.get("exception", {}).get("description", details["text"]))
                case "Log.entryAdded":
                    found.append(one["params"]["entry"]["text"])
                case _:
                    pass
        return found

    def close(self) -> None:
        """The page goes."""
        self.browser.ask("Target.closeTarget", targetId=self.target)

    def _ask(self, method: str, **given: object) -> dict[str, Any]:
        return self.browser.ask(method, self.session, **given)


def opened(path: Path | str, width: int, high: int = _HIGH, *, dark: bool = False, paper: bool = False, scripts: bool = True) -> View:
    """A file, or an address, as a page of so many pixels; the test is skipped, with its reason, where there is no browser."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    browser = _browser(program)
    target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
    session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    browser.told.clear()
    for part in ("Page", "Runtime", "Log"):
        browser.ask(f"{part}.enable", session)
    browser.ask("Emulation.setDeviceMetricsOverride", session, width=width, height=high, deviceScaleFactor=1, mobile=False)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.ask("Emulation.setEmulatedMedia", session, media="print" if paper else "screen", features=[scheme])
    browser.ask("Emulation.setScriptExecutionDisabled", session, value=not scripts)
    browser.ask("Page.navigate", session, url=path if isinstance(path, str) else path.resolve().as_uri())
    browser.wait_for("Page.loadEventFired")
    return View(browser, session, target)


@cache
def _browser(program: str) -> Browser:
    browser = Browser(program)
    atexit.register(browser.close)
    return browser


def _pipe() -> tuple[int, int]:
    """A pipe whose ends no number that the browser needs."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for end in low)
    for end in low:
        os.close(end)
    return high[0], high[1]
