import { Type as t } from "@sinclair/typebox"
import { optionalText } from "../http/field-schemas"
import { type AnyRoute, route } from "../http/route"
import { offeredTokens, Upgrade } from "../http/sockets"
import { InboxSocket, type InboxSocketParts } from "./inbox-socket"

const query = t.Object({
  ticket: optionalText({
    maxLength: 255,
    description: "A ticket of `POST /v1/subscriber-inbox/ticket`, which opens one socket.",
  }),
})

/** The live inbox of a subscriber. Its client signs in on the socket, so that a refusal is a close code. */
export const inboxSocketRoutes = (parts: InboxSocketParts): AnyRoute[] => [
  route({
    method: "GET",
    path: "/v1/subscriber-inbox/ws",
    callers: ["subscriber", "user", "none"],
    scope: "-",
    status: [101],
    summary: "Follow the inbox of a subscriber over a WebSocket",
    description:
      "Connect with a WebSocket and the subprotocol `svc.inbox.v1`. Sign in with a ticket in the query, with the second subprotocol `bearer.<token>`, or with the first frame `auth`. Every change of the inbox comes as a frame with its `seq`. Send the last one as `after_seq` to get what you missed.",
    socket: "svc.inbox.v1",
    query,
    credentials: ["ticket"],
    handle: ({ request, ip, query: { ticket } }) => {
      const { headers } = request
      const bearer = /^Bearer +(\S+)$/i.exec(headers.get("authorization") ?? "")?.[1]
      const tokens = new Set([...offeredTokens(request), ...(bearer ? [bearer] : [])])
      const proofs = [
        ...[...tokens].map((token) => ({ token })),
        ...(ticket === undefined ? [] : [{ ticket }]),
      ]
      return new Upgrade(new InboxSocket(parts, { ip, origin: headers.get("origin"), proofs }))
    },
  }),
]
