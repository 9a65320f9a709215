"""As ws.mjs, by Debian's python3-websockets: `python3 follow.py CONFIG`."""
import asyncio
import json
import random
import sys
import urllib.error
import urllib.request

import websockets

PATH = "/v1/subscriber-inbox"
CONFIG = json.load(open(sys.argv[1]))
NAMES = {"messages.read": "read_at", "messages.seen": "seen_at", "messages.archived": "archived_at"}


def post_once(server, path, credential, body):
    request = urllib.request.Request(
        server + path,
        json.dumps(body).encode(),
        {"authorization": "Bearer " + credential, "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["data"]


async def post(path, credential, body):
    tries = 0
    while True:
        server = CONFIG["api"][tries % len(CONFIG["api"])]
        try:
            return await asyncio.to_thread(post_once, server, path, credential, body)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                raise
        except OSError:
            pass
        tries += 1
        await asyncio.sleep(0.05 + random.random() * 0.2)


class Client:
    def __init__(self, person, at):
        self.person, self.at, self.last, self.messages, self.errors = person, at, 0, {}, []
        self.socket, self.tries, self.ready = None, 0, False

    async def run(self):
        while True:
            try:
                await self.connect()
            except (OSError, websockets.WebSocketException, asyncio.TimeoutError):
                pass
            self.ready = False
            await asyncio.sleep(0.05 + random.random() * 0.2)

    async def connect(self):
        asked = {"subscriber_id": self.person, "ttl_seconds": CONFIG["ttl_seconds"]}
        token = (await post(PATH + "/token", CONFIG["key"], asked))["token"]
        way = (self.at + self.tries) % 3
        addresses = CONFIG["addresses"]
        address = addresses[self.tries % len(addresses)] + PATH + "/ws"
        self.tries += 1
        if way == 1:
            address += "?ticket=" + (await post(PATH + "/ticket", token, {}))["ticket"]
        protocols = ["svc.inbox.v1"] + (["bearer." + token] if way == 2 else [])
        async with websockets.connect(address, subprotocols=protocols, max_size=None) as socket:
            self.socket = socket
            first = {"type": "resume", "after_seq": self.last}
            if way == 0:
                first = {"type": "auth", "token": token, "after_seq": self.last}
            await socket.send(json.dumps(first))
            try:
                async for text in socket:
                    await self.hear(json.loads(text))
            finally:
                if socket.close_code in (4400, 4403, 4429):
                    self.errors.append("closed %d" % socket.close_code)

    async def hear(self, frame):
        kind = frame["type"]
        if kind == "ready":
            self.ready = True
        if kind == "ping":
            await self.socket.send('{"type":"pong"}')
        if kind == "resync":
            self.errors.append("resync")
        seq = frame.get("seq", frame.get("upto_seq"))
        if seq is None:
            return
        if seq != self.last + 1:
            self.errors.append("%s %d after %d" % (kind, seq, self.last))
        self.last = seq
        if "message" in frame:
            self.messages[frame["message"]["id"]] = frame["message"]
        elif kind == "message.deleted":
            self.messages.pop(frame["id"], None)
        else:
            for message in self.messages.values():
                bulk(frame, message)

    async def mark(self, id, mark):
        frame = {"type": "mark", "id": id, "as": mark, "ref": "m"}
        try:
            await self.socket.send(json.dumps(frame))
        except websockets.ConnectionClosed:
            pass

    def known(self):
        fields = ("seen_at", "read_at", "archived_at")
        messages = [
            [one["id"], one["seq"], one["title"]] + [bool(one[name]) for name in fields] + [one["snoozed_until"]]
            for one in self.messages.values()
        ]
        return {"person": self.person, "last": self.last, "errors": self.errors, "messages": messages}


def bulk(frame, message):
    if message["seq"] >= frame["upto_seq"]:
        return
    if frame.get("category") and message["category"] != frame["category"]:
        return
    if frame.get("before") and message["created_at"] >= frame["before"]:
        return
    if frame.get("read_only") and not message["read_at"]:
        return
    name = NAMES[frame["type"]]
    if message[name]:
        return
    message[name] = "then"
    if name == "read_at" and not message["seen_at"]:
        message["seen_at"] = "then"
    message["seq"] = frame["upto_seq"]


async def main():
    clients = [Client(person, at) for at, person in enumerate(CONFIG["people"])]
    tasks = [asyncio.create_task(client.run()) for client in clients]
    while True:
        line = await asyncio.to_thread(sys.stdin.readline)
        if not line:
            break
        command, *words = line.split()
        if command == "cut":
            for client in clients[::3]:
                if client.socket:
                    client.socket.transport.abort()
        if command == "report":
            print(json.dumps([client.known() for client in clients]), flush=True)
        if command == "mark":
            person, id, mark = words
            for client in clients:
                if client.person == person and client.ready:
                    await client.mark(id, mark)
    for task in tasks:
        task.cancel()


asyncio.run(main())
