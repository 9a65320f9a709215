import { expect, test } from "bun:test"
import type { Command } from "commander"
import { openClient, type Query } from "../../cli/client"
import { createProgram } from "../../cli/program"
import { NOBODY } from "../../cli/settings"
import { belfry } from "./belfry"
import { email, FakeApi, ID, KEY } from "./fake-api"

const mail = { id: ID, from: "a@b.c", to: "d@e.f", subject: "Hi", text: "", attachments: [] }

/** Every command that talks to a server, with all of its filters. */
const calls: Record<string, string[]> = {
  status: [],
  "emails send": ["--to", "a@b.c", "--from", "m@b.c", "--subject", "s", "--text", "t", "--wait"],
  "emails batch": ["-"],
  "emails list": [
    ...["--status", "sent", "--to", "a@b.c", "--from", "m@b.c", "--tag", "t", "--domain", "b.c"],
    ...["--subject", "s", "--batch", ID, "--after", "1h", "--before", "1m", "--limit", "3"],
  ],
  "emails get": [ID],
  "emails events": [ID],
  "emails attempts": [ID],
  "emails raw": [ID],
  "emails content": [ID],
  "emails attachment": [ID, ID],
  "emails tail": [ID, "--since", "1h"],
  "emails cancel": [ID],
  "emails resend": [ID, "--to", "x@b.c"],
  "mailbox list": ["--to", "a@b.c", "--from", "m@b.c", "--search", "s", "--since", "1h"],
  "mailbox get": [ID],
  "mailbox wait": ["--to", "a@b.c", "--from", "m@b.c", "--subject", "hi", "--since", "1h"],
  "mailbox clear": ["--to", "a@b.c"],
  "events list": ["--after", "evt_1", "--types", "email.*", "--limit", "2"],
  "keys create": ["--name", "ci", "--scope", "email:send", "--ip", "127.0.0.1"],
  "keys list": ["--status", "active", "--limit", "2"],
  "keys get": [ID],
  "keys revoke": [ID],
}

/** These open data or files of this machine, and ask no server. */
const local = /^(up|serve|init|migrate|version|profiles .*|config .*)$/

function leaves(command: Command, before = ""): string[] {
  return command.commands.flatMap((child) => {
    const name = `${before}${child.name()}`
    return child.commands.length === 0 ? [name] : leaves(child, `${name} `)
  })
}

function everything(): FakeApi {
  const api = new FakeApi()
  api.answer("GET /healthz", { body: { status: "ok", version: "1", uptime_seconds: 1 } })
  api.answer("GET /readyz", { body: { status: "ok", checks: {} } })
  api.data("POST /v1/emails", { id: ID, status: "queued" })
  api.data("POST /v1/emails/batch", { id: ID, total: 1, succeeded: 1, failed: 0, results: [] })
  api.data("GET /v1/emails", [email()])
  api.data(`GET /v1/emails/${ID}`, email())
  api.data(`GET /v1/emails/${ID}/events`, { email_id: ID, status: "delivered", events: [] })
  api.data(`GET /v1/emails/${ID}/attempts`, [])
  api.answer(`GET /v1/emails/${ID}/raw`, { body: "Subject: Hi" })
  api.answer(`GET /v1/emails/${ID}/attachments/${ID}`, { body: "bytes" })
  api.data(`GET /v1/emails/${ID}/content`, { subject: "Hi", html: null, text: "", headers: {} })
  api.data(`POST /v1/emails/${ID}/cancel`, email())
  api.data(`POST /v1/emails/${ID}/resend`, { id: ID, status: "queued" })
  api.data("GET /v1/mailbox", [mail])
  api.data(`GET /v1/mailbox/${ID}`, mail)
  api.data("DELETE /v1/mailbox", { deleted: 1 })
  api.data("GET /v1/events", [])
  const key = { id: ID, name: "ci", prefix: "p", last4: "1234", scopes: [], status: "active" }
  api.data("POST /v1/api-keys", { ...key, key: "svc_live_new" })
  api.data("GET /v1/api-keys", [key])
  api.data(`GET /v1/api-keys/${ID}`, key)
  api.data(`DELETE /v1/api-keys/${ID}`, key)
  return api
}

test("the list below names every command that talks to a server", () => {
  const remote = leaves(createProgram()).filter((name) => !local.test(name))
  expect(Object.keys(calls).sort()).toEqual(remote.sort())
})

test("no address of any request holds the key, or any other flag that is not for the server", async () => {
  const filters = "after batch_id created_after created_before domain from limit per_page search"
  const allowed = [...filters.split(" "), "since", "status", "subject", "tag", "to", "types"]
  for (const [name, words] of Object.entries(calls)) {
    using api = everything()
    const flags = ["--url", api.url, "--api-key", KEY, "--verbose", "--yes", "--timeout", "9s"]
    const line = [...name.split(" "), ...words, ...flags]
    const { exit, err } = await belfry(line, { stdin: '[{"to":"a@b.c"}]' })
    expect([name, exit]).toEqual([name, 0])
    expect(err).not.toContain(KEY)
    expect(api.seen.length).toBeGreaterThan(0)
    for (const { url, query, headers } of api.seen) {
      expect(url).not.toContain(KEY)
      expect(Object.keys(query).filter((field) => !allowed.includes(field))).toEqual([])
      expect(headers["x-api-key"]).toBe(KEY)
    }
  }
}, 30_000)

test("the client refuses a query field that it does not know", async () => {
  using api = everything()
  const connection = { ...NOBODY, url: api.url, api_key: KEY }
  const client = openClient(connection, { timeout: 1000, dry_run: false })
  const query = { status: "sent", apiKey: KEY } as Query
  await expect(client.get("/v1/emails", query)).rejects.toThrow("apiKey: no query field")
  expect(api.seen).toEqual([])
})
