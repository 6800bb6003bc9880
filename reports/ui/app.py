"""The server behind the page: access control, routes, and its lifetime.

It listens on the loopback interface alone. A request needs the token, which is in the address that is printed and then in a cookie; it has
to name this server as its host (against DNS rebinding) and, where it changes anything, to come from this page (against forged requests).
Bodies are limited, files come from one folder, and answers may run no script but that of the page.
"""

import json
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from time import monotonic
from typing import Any, Final, NoReturn
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from crossopt.instances.catalogue.registry import descriptions, shipped
from crossopt.instances.errors import InstanceError, ModelError, RefusedError, VerificationError
from crossopt.instances.files.document import text_in, text_of
from crossopt.instances.files.saved import file_name
from crossopt.instances.kinds import KINDS, kind_in
from crossopt.reports.render.style import style
from crossopt.reports.ui import question as asked
from crossopt.reports.ui.runs import Desk

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LOOPBACK: Final = "127.0.0.1"
LARGEST_BODY: Final = 4 << 20
"""Most bytes of a request: four times the longest question."""
LARGEST_FILE: Final = 64 << 20
"""Most bytes of an uploaded file, as of any saved result."""
_HERE: Final = Path(__file__).parent
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_OF_ANSWERS: Final = "frame-ancestors 'self'"
"""The policy of the page; pages of answers carry their own."""
_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_LOCKED: Final = "This page is opened by the address that `crossopt ui` printed, which holds its key.\n"


@dataclass(slots=True)
class Access:
    """The token of this server, and its host names."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    ticket: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Single-use key that opens the page: other users of a machine may see it on the command line of the browser. Empty after use."""
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    """Distinguishes this server from an earlier one on the same port."""

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers share cookies between all ports of a host."""
        return f"crossopt-{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        return f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"

    def address(self, token: str) -> str:
        return f"http://{self.hosts[0]}/?token={token}"

    def is_token(self, given: str | None) -> bool:
        """Whether this is the token, in constant time."""
        return given is not None and secrets.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def refusal(self, scope: Scope) -> str:
        """The reason to refuse a request; empty if it is allowed."""
        headers = dict[str, str]()
        for name, value in scope["headers"]:
            key = name.decode("latin-1")
            headers[key] = f"{headers[key]}; {value.decode('latin-1')}" if key in headers else value.decode("latin-1")
        origin, first = headers.get("origin"), scope["path"] == "/" and scope["method"] in {"GET", "HEAD"}
        if headers.get("host") not in self.hosts:
            return "This server answers to its own address alone.\n"
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts}:
            return "This request comes from another page.\n"
        if scope["method"] not in {"GET", "HEAD"} and origin is None:
            return "A request that changes something has to say which page it comes from.\n"
        if headers.get("sec-fetch-site", "none") not in {"same-origin", "none"} and not first:
            return "This request comes from another site.\n"
        in_address = parse_qs(scope["query_string"].decode("latin-1")).get("token", [None])[0] if first else None
        if self.is_token(in_address) or self.is_token(self._in_cookie(headers.get("cookie", ""))) or self._is_ticket(in_address):
            return ""
        return _LOCKED

    def _is_ticket(self, given: str | None) -> bool:
        """Whether this is the ticket, which becomes invalid."""
        if not given or not self.ticket or not secrets.compare_digest(given.encode("utf-8", "replace"), self.ticket.encode()):
            return False
        self.ticket = ""
        return True

    def _in_cookie(self, header: str) -> str | None:
        try:
            found = SimpleCookie(header).get(self.cookie)
        except CookieError:
            return None
        return found.value if found is not None else None


@dataclass(frozen=True, slots=True)
class Guard:
    """An application with access checks on each request, and security headers on each response."""

    app: Callable[[Scope, Receive, Send], Awaitable[None]]
    access: Access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if refused := self.access.refusal(scope):
            await PlainTextResponse(refused, 403, _HEADERS)(scope, receive, send)
            return
        most, seen = LARGEST_FILE if scope["path"] == "/api/open" else LARGEST_BODY, 0

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise HTTPException(413, f"More than {most:,} bytes are not read here.\n")
            return message

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                policy = {"content-security-policy": _POLICY, **_HEADERS}
                more = [(name.encode(), value.encode()) for name, value in policy.items() if name.encode() not in present]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        await self.app(scope, limited, marked)


Given = dict[str, Any]


def _no_number(token: str) -> NoReturn:
    raise ValueError(f"{token} is no number that JSON knows")


async def _given(request: Request, **kinds: type | tuple[type, ...]) -> Given:
    """The JSON object of a request with its typed fields; a ValueError for other requests."""
    try:
        data = json.loads(await request.body(), parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON: {error.msg.lower()}") from error
    if not isinstance(data, dict):
        raise ValueError("an object is needed")
    for name, kind in kinds.items():
        if not isinstance(data.get(name), kind) or isinstance(data.get(name), bool) != (kind is bool):
            raise ValueError(f"{name}: this is missing, or no {getattr(kind, '__name__', 'value of its kind')}")
    return data


def _answering(answer: Callable[[Request], Awaitable[Response]], refused: int = 200) -> Callable[[Request], Awaitable[Response]]:
    """The handler with refusals as one-sentence JSON responses of this status; malformed requests have their own status."""

    async def run(request: Request) -> Response:
        try:
            return await answer(request)
        except (InstanceError, ModelError, RefusedError, VerificationError) as error:
            return JSONResponse({"refused": str(error)}, refused)
        except (ValueError, RecursionError) as error:
            return JSONResponse({"refused": str(error) or "this is nested too deeply"}, 400)

    return run


@cache
def _page_files() -> Mapping[str, tuple[str, str]]:
    """The files of the page by their paths, with their types."""
    kinds = {".js": "text/javascript", ".css": "text/css"}
    texts = {name: (_HERE / name).read_text(encoding="utf-8") for name in ("form.js", "page.js", "style.css")}
    texts["style.css"] = style() + texts["style.css"]
    return {f"/{name}": (text, kinds[Path(name).suffix]) for name, text in texts.items()}


@dataclass(frozen=True, slots=True)
class Served:
    """State of the page: the initial question, and the folder of the files that questions name."""

    access: Access
    desk: Desk
    folder: Path
    text: str = ""
    name: str = ""
    origin: str = ""
    """The name of the shipped question, if the text is one."""

    def base(self, origin: str) -> Path:
        """The folder of the files that a question names; of a shipped question, its own."""
        return shipped()[origin].parent if origin in shipped() else self.folder

    async def opened(self, given: Given) -> asked.Opened:
        return await run_in_threadpool(asked.opened, given["text"], self.base(given["origin"]))

    # --- the page, and its initial state ---

    async def first(self, request: Request) -> Response:
        response = HTMLResponse((_HERE / "page.html").read_text(encoding="utf-8"))
        if "token" in request.query_params:
            response.set_cookie(self.access.cookie, self.access.token, httponly=True, samesite="strict")
        return response

    async def file(self, request: Request) -> Response:
        text, kind = _page_files().get(request.url.path, ("", "text/plain"))
        return Response(text, media_type=kind, status_code=200 if text else 204)

    async def start(self, request: Request) -> Response:
        del request
        kinds = {name: kind_in(path.read_text(encoding="utf-8")) for name, path in shipped().items()}
        rows = [{"name": name, "about": text, "kind": KINDS[kinds[name]].about} for name, text in descriptions("instances")]
        state = {"shipped": [row for row in rows if KINDS[kinds[row["name"]]].family], "text": self.text, "name": self.name}
        state |= {"run": self.access.run}
        jobs = [job.number for job in self.desk.jobs.values() if job.code is None]
        return JSONResponse({**state, "origin": self.origin, "jobs": jobs, "results": [saved.row for saved in self.desk.results.values()]})

    async def shipped_text(self, request: Request) -> Response:
        path = shipped().get(request.path_params["name"])
        return JSONResponse({"refused": "there is no such question"}, 404) if path is None else JSONResponse({"text": text_of(path)})

    async def schema(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in KINDS:
            return JSONResponse({"refused": "there is no such kind of question"}, 404)
        folder = shipped()["tiny"].parent
        name = f"{kind}.schema.json"
        path = next(path for path in (folder / name, folder / "schemas" / name) if path.is_file())
        return FileResponse(path, media_type="application/json")

    # --- the question, and one design of it ---

    async def read(self, request: Request) -> Response:
        given = await _given(request, text=str, origin=str)
        return JSONResponse(await run_in_threadpool(asked.described, given["text"], self.base(given["origin"])))

    async def edit(self, request: Request) -> Response:
        given = await _given(request, text=str, path=list, remove=bool)
        path, value = [step if type(step) is int else str(step) for step in given["path"]], _as_text(given.get("value"))
        text = await run_in_threadpool(asked.edited, given["text"], path, value, remove=given["remove"])
        return JSONResponse({"text": text})

    async def levers(self, request: Request) -> Response:
        given = await _given(request, text=str, origin=str)
        found, result = await self.opened(given), given.get("result")
        design = self.desk.design(result, found) if type(result) is int else None
        return JSONResponse(await run_in_threadpool(asked.levers_json, found, design))

    async def price(self, request: Request) -> Response:
        given, began = await _given(request, text=str, origin=str, picks=dict), monotonic()
        picks = {str(name): option for name, option in given["picks"].items() if type(option) is int}
        answer = await run_in_threadpool(asked.price_json, await self.opened(given), picks)
        return JSONResponse({**answer, "milliseconds": 1000.0 * (monotonic() - began)})

    # --- searches, checks and results ---

    async def solve(self, request: Request) -> Response:
        given = await _given(request, text=str, origin=str, name=str, engine=str, limit=str)
        job = self.desk.solve(await self.opened(given), given["name"], given["engine"], given["limit"])
        return JSONResponse({"job": job.number})

    async def check(self, request: Request) -> Response:
        given = await _given(request, result=int)
        return JSONResponse({"job": self.desk.check(given["result"]).number})

    async def stop(self, request: Request) -> Response:
        self.desk.stop((await _given(request, job=int))["job"])
        return JSONResponse({})

    async def events(self, request: Request) -> Response:
        number = request.path_params["number"]
        if number not in self.desk.jobs:
            return PlainTextResponse("there is no such job\n", 404)
        return StreamingResponse(self.desk.events(number), media_type="text/event-stream")

    async def open(self, request: Request) -> Response:
        """A file dropped on the page: a saved result, or a question, whose text is returned."""
        name = file_name(request.query_params.get("name", ""))
        text = text_in(await request.body(), name, LARGEST_FILE)
        saved = await run_in_threadpool(self.desk.open_text, name, text)
        return JSONResponse({"question": text, "name": Path(name).stem} if saved is None else {"result": saved.row})

    async def drop(self, request: Request) -> Response:
        self.desk.results.pop((await _given(request, result=int))["result"], None)
        return JSONResponse({})

    async def page(self, request: Request) -> Response:
        numbers = [int(text) for text in request.path_params["numbers"].split("-") if text.isdecimal() and len(text) < 9]
        return HTMLResponse(await run_in_threadpool(self.desk.page, numbers), headers={"content-security-policy": _OF_ANSWERS})

    async def saved(self, request: Request) -> Response:
        found = self.desk.results.get(request.path_params["number"])
        if found is None:
            return PlainTextResponse("there is no such result\n", 404)
        name = f"{Path(file_name(found.name)).stem}.json"
        return FileResponse(found.path, media_type="application/json", filename=name)


def application(served: Served) -> Guard:
    """The application with its access checks."""
    posts = ("read", "edit", "levers", "price", "solve", "check", "stop", "open", "drop")
    gets = {
        "/api/start": served.start,
        "/api/shipped/{name}": served.shipped_text,
        "/api/schema/{kind}": served.schema,
        "/api/jobs/{number:int}": served.events,
        "/results/{numbers}.html": served.page,
        "/results/{number:int}.json": served.saved,
    }
    routes = [
        Route("/", served.first),
        *(Route(path, served.file) for path in (*_page_files(), "/favicon.ico")),
        *(Route(path, _answering(answer, 404)) for path, answer in gets.items()),
        *(Route(f"/api/{name}", _answering(getattr(served, name)), methods=["POST"]) for name in posts),
    ]
    return Guard(Starlette(routes=routes), served.access)


def _as_text(value: object) -> asked.Plain:
    """A value of the form: text, or lists and mappings of such."""
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case list():
            return [_as_text(item) for item in value]
        case dict():
            return {str(key): _as_text(item) for key, item in value.items()}
    return str(value)


def listening(port: int) -> socket.socket:
    """A loopback socket; port 0 takes any free port."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # explicit, or asyncio delays each response by 40 ms
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK, port))
    except OSError:
        found.close()
        raise
    return found


def serve(served: Served, sockets: Sequence[socket.socket]) -> None:
    """Serve until Ctrl-C or SIGTERM, and terminate all children."""
    import uvicorn  # noqa: PLC0415 - tests do without

    config = uvicorn.Config(
        application(served),
        log_level="critical",
        access_log=False,
        server_header=False,
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    try:
        uvicorn.Server(config).run(sockets=list(sockets))
    finally:
        served.desk.close()
