"""A stand-in for the file API of the Hugging Face hub: dataset repositories in memory, one commit after the other."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"
ROUTES = {
    ("POST", re.compile(r"/api/repos/create")): "create",
    ("POST", re.compile(r"/api/validate-yaml")): "validate",
    ("POST", re.compile(rf"/api/datasets/{REPO}/preupload/main")): "preupload",
    ("POST", re.compile(rf"/api/datasets/{REPO}/commit/main")): "commit",
    ("HEAD", re.compile(rf"/datasets/{REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)")): "resolve",
    ("GET", re.compile(rf"/datasets/{REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)")): "resolve",
}


@dataclass
class Hub:
    """What the server holds: of each repository its commits, each with all files.

    Attributes:
        refuses: the status of every answer, such as 403, instead of an answer.
        cards: the metadata that were checked.
    """

    repos: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    refuses: int | None = None
    cards: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def files(self, repo):
        """Those of the newest commit."""
        return list(self.repos[repo].values())[-1] if self.repos[repo] else {}


def server(hub):
    """A server of the hub, not yet serving, on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            path = unquote(urlsplit(self.path).path)
            hub.asked.append(f"{self.command} {path}")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if hub.refuses:
                self.reply(hub.refuses, {"error": "no"}, {"X-Error-Message": "not with this token"})
                return
            for (method, route), name in ROUTES.items():
                match = route.fullmatch(path)
                if match and method == self.command:
                    getattr(self, name)(body, **match.groupdict())
                    return
            self.reply(404, {"error": f"no route {path}"})

        do_GET = do_POST = do_HEAD = answer  # noqa: N815

        def create(self, body):
            asked = json.loads(body)
            assert asked["type"] == "dataset"
            repo = f"{asked['organization']}/{asked['name']}"
            there = repo in hub.repos
            hub.repos.setdefault(repo, {})
            self.reply(409 if there else 200, {"url": f"{self.origin}/datasets/{repo}"})

        def validate(self, body):
            hub.cards.append(json.loads(body)["content"])
            self.reply(200, {"errors": [], "warnings": []})

        def preupload(self, body, repo):
            files = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                for one in json.loads(body)["files"]
            ]
            self.reply(200, {"files": files})

        def commit(self, body, repo):
            lines = [json.loads(line) for line in body.splitlines()]
            new = {
                one["value"]["path"]: base64.b64decode(one["value"]["content"])
                for one in lines
                if one["key"] == "file"
            }
            oid = hashlib.sha1(body).hexdigest()
            hub.repos[repo][oid] = {**hub.files(repo), **new}
            url = f"{self.origin}/datasets/{repo}/commit/{oid}"
            self.reply(200, {"commitUrl": url, "commitOid": oid, "pullRequestUrl": None})

        def resolve(self, body, repo, revision, path):
            if repo not in hub.repos:
                self.reply(404, {}, {"X-Error-Code": "RepoNotFound"})
                return
            oid = next(reversed(hub.repos[repo]), None) if revision == "main" else revision
            if oid not in hub.repos[repo]:
                self.reply(404, {}, {"X-Error-Code": "RevisionNotFound"})
                return
            content = hub.repos[repo][oid].get(path)
            if content is None:
                self.reply(404, {}, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": oid})
                return
            etag = hashlib.sha1(content).hexdigest()
            self.reply(200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": oid})

        def reply(self, status, content, headers=None):
            raw = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {"Content-Length": len(raw), **(headers or {})}.items():
                self.send_header(name, str(value))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(raw)

        @property
        def origin(self):
            return f"http://127.0.0.1:{self.server.server_address[1]}"

        def log_message(self, *_):
            """Says nothing."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)
