import { Type as t } from "@sinclair/typebox"
import { nameText } from "../http/field-schemas"
import { type AnyRoute, route } from "../http/route"
import { count, flag, text } from "../lib/record-fields"
import { begin, collect, type DeviceParts, decide } from "./device-sign-in"
import { LIMIT_BYTES, PER_MINUTE, Session, Token } from "./schemas"
import * as users from "./users"

const Program = t.Object({ client_name: nameText() })
const Question = t.Object({ device_code: Token })
const Answer = t.Object({ user_code: t.String({ maxLength: 64 }), approve: t.Boolean() })

const Begun = t.Object(
  {
    device_code: text("dc_Zk3vX9…", "The code with which the program asks for its session."),
    user_code: text("BCDF-GHJK", "The code that the person enters."),
    verification_uri: text("https://belfry.example.com/device"),
    expires_in: count(600, "Seconds until both codes expire."),
    interval: count(5, "Seconds to wait between two requests."),
  },
  { title: "DeviceSignIn" },
)

const open: Pick<AnyRoute, "method" | "callers" | "scope" | "per_minute" | "limit"> = {
  method: "POST",
  callers: ["none"],
  scope: "-",
  per_minute: PER_MINUTE,
  limit: LIMIT_BYTES,
}

/** Sign-in of a program on a machine without a browser (RFC 8628). */
export const deviceRoutes = (parts: DeviceParts): AnyRoute[] => [
  route({
    ...open,
    path: "/v1/session/device",
    status: [201],
    summary: "Begin a sign-in that is approved on another device",
    description:
      "For programs on machines without a browser (RFC 8628). Show `user_code` and `verification_uri` to the person, then ask `POST /v1/session/device/token` every `interval` seconds.",
    body: Program,
    example: { client_name: "belfry on laptop" },
    response: Begun,
    handle: async ({ body, ip }) => ({ data: await begin(parts, body.client_name, ip) }),
  }),
  route({
    ...open,
    path: "/v1/session/device/token",
    status: [200],
    summary: "Ask whether the person approved the sign-in",
    description:
      "Answers 422 until the person approves the sign-in. `details.reason` is `authorization_pending`, `slow_down`, `expired` or `denied`. After the approval, the first answer has the session.",
    body: Question,
    example: { device_code: "dc_Zk3vX9" },
    response: Session,
    handle: async ({ body, ip, request }) => {
      const client = { ip, user_agent: request.headers.get("user-agent") }
      return { data: await collect(parts, body.device_code, client) }
    },
  }),
  route({
    ...open,
    callers: ["console"],
    scope: "role:any",
    path: "/v1/session/device/approve",
    status: [200],
    summary: "Approve or deny the sign-in of a program",
    description:
      "The person sends the code that the program shows. `approve: false` denies the sign-in.",
    body: Answer,
    example: { user_code: "BCDF-GHJK", approve: true },
    response: t.Object({ approved: flag(true) }),
    errors: ["not_found"],
    handle: async ({ body, caller, ip }) => {
      const { store, secrets } = parts
      await store.tx(async (tx) => {
        const user = await users.find(tx, caller.user_id ?? "")
        await decide(tx, secrets, user, { ...body, ip })
      })
      return { data: { approved: body.approve } }
    },
  }),
]
