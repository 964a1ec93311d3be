"""A worker of `dgn serve`: a process that answers requests, and that can be ended.

    parent ── batch of requests ──► worker
    parent ◄── batch of answers ─── worker

A message is the length of a header, the length of what follows it, the header as JSON, and the
bodies end to end. The first message of the parent says which model to load, and the first one of
the worker that it is ready, or why it is not. A worker ends when its parent does, however that
ends.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

LENGTHS = struct.Struct("!II")


def to_message(header: Any, bodies: Sequence[bytes] = ()) -> bytes:
    """A message with this header and these bodies."""
    content = json.dumps(header, separators=(",", ":")).encode()
    return b"".join([LENGTHS.pack(len(content), sum(map(len, bodies))), content, *bodies])


def divided(bodies: bytes, sizes: Sequence[int]) -> list[bytes]:
    """The bodies of a message, given their sizes."""
    start, found = 0, list[bytes]()
    for size in sizes:
        found.append(bodies[start : start + size])
        start += size
    return found


def main(descriptor: int) -> None:
    """Answer the requests of a parent until it ends.

    Args:
        descriptor: The file descriptor of a socket, whose other end the parent has.
    """
    channel = socket.socket(fileno=descriptor)
    with channel, channel.makefile("rb", 1 << 20) as stream:
        started = _received(stream)
        if started is None:
            return
        try:
            answerer = _answerer(started[0])
        except Exception as error:
            channel.sendall(to_message({"problem": str(error)}))
            return
        channel.sendall(to_message({}))
        while (message := _received(stream)) is not None:
            channel.sendall(_answers(answerer, *message))


def _answerer(options: dict[str, Any]) -> Any:
    from dgn.apps.service.answering import Answerer
    from dgn.apps.service.refusals import ServiceLimits
    from dgn.selector import Selector

    selector = Selector.from_pretrained(options["model"])
    answerer = Answerer(selector, ServiceLimits(**options["limits"]))
    answerer.warm()
    return answerer


def _answers(answerer: Any, header: Any, content: bytes) -> bytes:
    from dgn.apps.service.answering import Asked

    bodies = divided(content, [one["size"] for one in header])
    asked = [
        Asked(one["path"], one["request_id"], body)
        for one, body in zip(header, bodies, strict=True)
    ]
    answered = answerer.answer(asked)
    rows: list[dict[str, Any]] = []
    for one in answered:
        row = asdict(one)
        del row["body"]
        rows.append({**row, "size": len(one.body)})
    return to_message(rows, [one.body for one in answered])


def _received(stream: Any) -> tuple[Any, bytes] | None:
    """The next message; None when the parent has ended."""
    lengths = stream.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    header, bodies = LENGTHS.unpack(lengths)
    content, rest = stream.read(header), stream.read(bodies)
    return (json.loads(content), rest) if len(rest) == bodies else None
