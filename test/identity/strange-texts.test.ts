import { expect, test } from "bun:test"
import { sharedService } from "../harness/shared-service"
import { BEHIND_PROXY, PASSWORD, stranger, visitor } from "./entrance"

const service = await sharedService(BEHIND_PROXY)

/** No database keeps the first, no UTF-8 the second. */
const STRANGE = ["\u0000", "\ud800", "\u202e", "a\u0000b@people.test", "é\u0301@people.test"]

const form = (fields: Record<string, string>) => ({
  body: new URLSearchParams(fields).toString(),
  headers: { "content-type": "application/x-www-form-urlencoded" },
})

test.each(STRANGE.map((text) => [text]))("%j is answered, and breaks nothing", async (text) => {
  const door = stranger(service)
  const { patch, post, remove } = await visitor(service)
  const path = encodeURIComponent(text.toWellFormed())
  const answers = await Promise.all([
    door.post("/v1/setup", { setup_token: text, email: text, password: text, account_name: text }),
    door.post("/v1/session", { email: text, password: text }),
    door.post("/v1/session/mfa", { token: text, code: text }),
    door.post("/v1/session/refresh", { refresh_token: text }),
    door.post("/v1/session/device", { client_name: text }),
    door.post("/v1/session/device/token", { device_code: text }),
    door.post("/v1/users", { email: text, password: PASSWORD, invitation_token: text }),
    door.post("/v1/users", { email: "a@people.test", password: text, name: text }),
    door.post("/v1/password/forgot", { email: text }),
    door.post("/v1/password/reset", { token: text, new_password: PASSWORD }),
    door.get(`/v1/invitations/${path}`),
    door.post(`/v1/invitations/${path}/accept`, { name: text, password: text }),
    door.get(`/invitation/${path}`),
    door.get(`/password-reset/${path}`),
    door.get(`/device?user_code=${path}`),
    door.call("POST", "/device", form({ user_code: text, email: text, password: text })),
    door.call("POST", "/invitation/x", form({ name: text, password: text })),
    door.call("POST", "/password-reset/x", form({ new_password: text })),
    post("/v1/session/device/approve", { user_code: text, approve: true }),
    post("/v1/users/me/password", { current_password: text, new_password: text }),
    post("/v1/users/me/mfa/disable", { code: text }),
    patch("/v1/users/me", { name: text, locale: text, timezone: text }),
    remove(`/v1/users/me/sessions/${path}`),
    post("/v1/accounts", { name: text, slug: text }),
  ])
  const broken = answers.filter(({ status }) => status >= 500)
  expect(broken.map(({ status, text: body }) => [status, body])).toEqual([])
})
