import { beforeAll, expect, test } from "bun:test"
import type { Command } from "commander"
import { openClient } from "../../cli/lib/client"
import { NOBODY } from "../../cli/lib/profiles"
import { createProgram } from "../../cli/program"
import { type AppParts, routeTable } from "../../src/app"
import type { AnyRoute } from "../../src/http/route"
import {
  anonymous,
  calls,
  everything,
  further,
  of_users,
  personal,
  writeFiles,
} from "./every-command"
import { KEY } from "./fake-api"
import { belfry } from "./lines"
import { ACCESS_TOKEN, ACCOUNT, REFRESH_TOKEN, session, signedInHome } from "./signed-in"

/** These open data or files of this machine, serve a page or a model, or ask a receiver of the user's. */
const local =
  /^(up|open|serve|init|mcp|migrate|version|tui|completion|profiles .*|config .*|admin .*|backup .*|db .*|restore|queue purge|smoke|upgrade|webhooks verify|smtp .*)$/

const PASSWORD = "Correct-Horse-7"
const { access_token, refresh_token } = session()
const secrets = [KEY, PASSWORD, ACCESS_TOKEN, REFRESH_TOKEN, access_token, refresh_token]

const query_names = `
  action actor_id address after application_id batch_id before category channel created_after created_before cursor device_id diagnostic
  direction domain email environment event_id event_type external_id extract force format forward from key_id kind limit locale
  organization_id origin path per_page period phone phone_number platform project_id q reason request_id search since state status
  subject tag target_type template_id thread_id timeout to topic types user_id version window`
const allowed = query_names.trim().split(/\s+/)

/** Every command that does something: also a group that is one itself, as `usage`. */
function doers(command: Command, before = ""): string[] {
  return command.commands.flatMap((child) => {
    const name = `${before}${child.name()}`
    const inside = doers(child, `${name} `)
    return Reflect.get(child, "_actionHandler") ? [name, ...inside] : inside
  })
}

/** Signs in by a frame, with a token of the subscriber. */
const INBOX_SOCKET = "/v1/subscriber-inbox/ws"

/** What stdin holds where it is no password. */
const INPUT: Record<string, string> = {
  "emails batch": '[{"to":"a@b.c"}]',
  "sms batch": '[{"to":"+14155550100","body":"hi"}]',
  "push batch": '[{"user_id":"u","title":"hi"}]',
  "devices batch": '[{"user_id":"u","platform":"ios","token":"t"}]',
  "suppressions import": "a@b.c\n",
}

/** Runs one of them; gives what the server saw, after a look at its addresses. */
async function requestsOf(name: string, words: readonly string[], as: "key" | "person") {
  using api = everything()
  const { env } = signedInHome(api.url, 600)
  const who = as === "key" ? ["--url", api.url, "--api-key", KEY] : []
  const flags = [...who, "--verbose", "--yes", "--timeout", "9s"]
  const stdin = INPUT[name] ?? `${PASSWORD}\n${PASSWORD}\n`
  const line = [...name.split(" "), ...words, ...flags]
  const own = as === "key" ? {} : env
  const { exit, err } = await belfry(line, { env: own, stdin })
  expect([name, exit, err]).toEqual([name, 0, expect.any(String)])
  expect(api.seen.length).toBeGreaterThan(0)
  for (const secret of secrets) expect(err).not.toContain(secret)
  for (const { url, query } of api.seen) {
    for (const secret of secrets) expect(url).not.toContain(secret)
    expect(Object.keys(query).filter((field) => !allowed.includes(field))).toEqual([])
  }
  return api.seen
}

beforeAll(writeFiles)

test("the list of calls names every command that talks to a server", () => {
  const remote = doers(createProgram()).filter((name) => !local.test(name))
  expect(Object.keys(calls).sort()).toEqual(remote.sort())
})

test("no address of any request holds the key, or any other flag that is not for the server", async () => {
  const all = Object.entries(calls).filter(([name]) => !personal.includes(name))
  for (const [name, words] of all) {
    for (const { headers, path } of await requestsOf(name, words, "key")) {
      const of_user = of_users.includes(name)
      const is_bare = of_user || anonymous.includes(name) || path === INBOX_SOCKET
      expect([name, headers["x-api-key"]]).toEqual([name, is_bare ? undefined : KEY])
      const bearer = of_user ? `Bearer ${PASSWORD}` : undefined
      expect([name, headers.authorization]).toEqual([name, bearer])
    }
  }
})

/**
 * Pages, other names of what a command reaches, what `login --device` and refreshing ask, and the inbox as its subscriber
 * uses it, with a token that no person in a terminal has.
 */
const without_command = `
DELETE /session
DELETE /v1/auth/identities/{identity_id}
DELETE /v1/auth/passkeys/{passkey_id}
DELETE /v1/auth/sessions/{session_id}
DELETE /v1/auth/users/me
DELETE /v1/subscriber-inbox/{inbox_id}
GET /
GET /.well-known/webauthn
GET /a/{token}
GET /assets/{name}
GET /device
GET /docs
GET /docs/
GET /docs/errors
GET /docs/errors/{name}
GET /docs/guides/{name}
GET /docs/search
GET /docs/search-index
GET /docs/{name}
GET /inbox
GET /inbox.js
GET /invitation/{token}
GET /mailbox
GET /mailbox/html/{token}
GET /mailbox/{mail_id}
GET /p/{token}
GET /parts
GET /password-reset/{token}
GET /sign-in
GET /sw.js
GET /t/c/{token}
GET /t/o/{token}
GET /u/{token}
GET /v1/accounts/me/projects
GET /v1/admin/backups
GET /v1/admin/doctor
GET /v1/auth/applications/self
GET /v1/auth/applications/{application_id}/.well-known/openid-configuration
GET /v1/auth/applications/{application_id}/jwks.json
GET /v1/auth/config
GET /v1/auth/email-otp/availability
GET /v1/auth/identities
GET /v1/auth/mfa
GET /v1/auth/oauth/providers
GET /v1/auth/oauth/{provider}/authorize
GET /v1/auth/oauth/{provider}/callback
GET /v1/auth/password-requirements
GET /v1/auth/phone/availability
GET /v1/auth/sessions
GET /v1/auth/users/me
GET /v1/callbacks/sms/{provider}/{config_token}
GET /v1/domains/{domain_id}/status
GET /v1/health
GET /v1/projects/{project_id}/jwks.json
GET /v1/subscriber-inbox
GET /v1/subscriber-inbox/preferences
GET /v1/subscriber-inbox/unread-count
GET /v1/subscriber-inbox/{inbox_id}
PATCH /v1/auth/passkeys/{passkey_id}
PATCH /v1/auth/users/me
PATCH /v1/subscriber-inbox/{inbox_id}
PATCH /v1/subscribers/{subscriber_id}/preferences
POST /a/{token}
POST /device
POST /invitation/{token}
POST /p/{token}
POST /password-reset/{token}
POST /session
POST /session/link
POST /session/mfa
POST /session/token
POST /u/{token}
POST /v1/accounts/me/projects
POST /v1/admin/backups
POST /v1/auth/anonymous
POST /v1/auth/anonymous/convert
POST /v1/auth/change-email
POST /v1/auth/change-email/confirm
POST /v1/auth/change-password
POST /v1/auth/email-otp/send
POST /v1/auth/email-otp/verify
POST /v1/auth/forgot-password
POST /v1/auth/game-center
POST /v1/auth/magic-link/send
POST /v1/auth/magic-link/verify
POST /v1/auth/mfa/backup-codes
POST /v1/auth/mfa/challenge/send
POST /v1/auth/mfa/disable
POST /v1/auth/mfa/recovery
POST /v1/auth/mfa/step-up
POST /v1/auth/mfa/verify
POST /v1/auth/oauth/{provider}/callback
POST /v1/auth/oauth/{provider}/id-token
POST /v1/auth/oauth/{provider}/link
POST /v1/auth/organizations/invitations/accept
POST /v1/auth/organizations/{organization_id}/leave
POST /v1/auth/passkeys/login/options
POST /v1/auth/passkeys/login/verify
POST /v1/auth/passkeys/register/options
POST /v1/auth/passkeys/register/verify
POST /v1/auth/phone/send
POST /v1/auth/phone/verify
POST /v1/auth/play-games
POST /v1/auth/reset-password
POST /v1/auth/sessions/introspect
POST /v1/auth/sessions/refresh
POST /v1/auth/sessions/revoke
POST /v1/auth/sessions/revoke-all
POST /v1/auth/sessions/switch-organization
POST /v1/auth/users/login
POST /v1/auth/users/logout
POST /v1/auth/users/register
POST /v1/auth/validate-reset-token
POST /v1/auth/verify-email/confirm
POST /v1/auth/verify-email/resend
POST /v1/auth/verify-email/send
POST /v1/callbacks/email/{provider}/{config_token}
POST /v1/callbacks/sms/{provider}/{config_token}
POST /v1/domains/{domain_id}/verify
POST /v1/emails/{email_id}/events
POST /v1/emails/{email_id}/tracking
POST /v1/session/device
POST /v1/session/device/token
POST /v1/session/refresh
POST /v1/subscriber-inbox/archive-all
POST /v1/subscriber-inbox/mark
POST /v1/subscriber-inbox/read-all
POST /v1/subscriber-inbox/seen-all
POST /v1/subscriber-inbox/ticket
POST /v1/subscriber-inbox/{inbox_id}/actions/{action_key}
PUT /v1/subscriber-inbox/preferences
PUT /v1/templates/{template_id}
PUT /v1/webhooks/{webhook_id}
`

/** Routes that none of these requests meets. */
function unreached(asked: Set<string>): string[] {
  const routes = routeTable({} as AppParts)
  const nameOf = ({ method, path }: AnyRoute) => `${method} ${path}`
  const names = new Set(routes.map(nameOf))
  const meets = (name: string) => {
    const form = new RegExp(`^${name.replaceAll(/\{\w+\}/g, "[^/]+")}$`)
    return [...asked].some((one) => one === name || (!names.has(one) && form.test(one)))
  }
  return [...names].filter((name) => !meets(name))
}

test("no address holds a token either, and every route is reached, for whom is signed in", async () => {
  const asked = new Set<string>()
  for (const [name, words] of [...Object.entries(calls), ...further]) {
    for (const { headers, method, path } of await requestsOf(name, words, "person")) {
      const is_bare = anonymous.includes(name) || path === INBOX_SOCKET
      const of_user = of_users.includes(name)
      const bearer = `Bearer ${of_user ? PASSWORD : ACCESS_TOKEN}`
      const token = is_bare ? undefined : bearer
      asked.add(`${method} ${path}`)
      expect([name, headers["x-api-key"]]).toEqual([name, undefined])
      expect([name, headers.authorization]).toEqual([name, token])
      if (token && !of_user) expect([name, headers["x-account-id"]]).toEqual([name, ACCOUNT])
    }
  }
  expect(unreached(asked).sort()).toEqual(without_command.trim().split("\n"))
})

test("the client refuses a query field that it does not know", async () => {
  using api = everything()
  const connection = { ...NOBODY, url: api.url, api_key: KEY }
  const client = openClient(connection, { timeout: 1000, dry_run: false })
  const query = { status: "sent", apiKey: KEY } as const
  await expect(client.call("GET /v1/emails", { query })).rejects.toThrow("apiKey: no query field")
  expect(api.seen).toEqual([])
})
