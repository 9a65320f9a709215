import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { smtpSink } from "../fakes/smtp-sink"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { mailWith } from "./page-mails"
import { lean, startServe } from "./serve"

interface LinkOfCheck {
  url: string
  ok: boolean | null
  status: number | null
}

describe("on the machine of a developer", () => {
  const home = makeHome()
  let server: Belfry
  const asked: string[] = []
  const site = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => {
      const { pathname } = new URL(url)
      asked.push(pathname)
      return new Response("page", { status: pathname === "/dead" ? 404 : 200 })
    },
  })

  beforeAll(async () => {
    server = await startBelfry({ env: lean, home })
  })
  afterAll(async () => {
    await server?.stop()
    await site.stop(true)
  })

  const belfry = async (...words: string[]) => {
    const { code, stdout, stderr } = await server.cli(...words)
    return { code, stdout, stderr, json: () => JSON.parse(stdout) }
  }

  const send = async (subject: string, ...more: string[]) => {
    const to = ["--to", "ann@example.com", "--from", "me@mailbox.test"]
    return belfry("emails", "send", ...to, "--subject", subject, ...more)
  }

  test("a mail is found, marked, saved, checked and removed by commands", async () => {
    const at = (path: string) => `http://127.0.0.1:${site.port}${path}`
    const links = ["/dead", "/shop", "/unsubscribe"].map((path) => `<a href="${at(path)}">x</a>`)
    const file = join(home, "work", "receipt.txt")
    writeFileSync(file, "a receipt")
    const html = `<html lang="en"><p style="display:flex">${links.join("")}</p></html>`
    await send("Your receipt", "--html", html, "--attach", file)
    const { id } = await mailWith(server, "Your receipt")

    const unread = await belfry("mailbox", "list", "--unread", "--search", "receipt", "--json")
    expect(unread.json()).toMatchObject([{ id, read: false, attachments: 1 }])
    expect((await belfry("mailbox", "read", id)).code).toBe(0)
    expect((await belfry("mailbox", "list", "--unread", "--json")).json()).toEqual([])

    expect((await belfry("mailbox", "raw", id)).stdout).toContain("Subject: Your receipt\r\n")
    const saved = join(home, "work", "saved.txt")
    await belfry("mailbox", "attachments", id, "0", "--save-as", saved)
    expect(readFileSync(saved, "utf8")).toBe("a receipt")

    const plain = await belfry("mailbox", "check", id, "--json")
    expect([plain.code, plain.json().links, asked]).toEqual([0, null, []])
    const features = plain.json().html.map(({ feature }: { feature: string }) => feature)
    expect(features).toContain("display:flex")
    const whole = await belfry("mailbox", "check", id, "--links", "--json")
    expect(whole.code).toBe(1)
    const found: LinkOfCheck[] = whole.json().links
    expect(found.map(({ status, ok }) => [status, ok])).toEqual([
      [404, false],
      [200, true],
      [null, null],
    ])
    expect(asked).not.toContain("/unsubscribe")

    expect((await belfry("mailbox", "rm", id, "--yes")).code).toBe(0)
    expect((await belfry("mailbox", "get", id)).code).toBe(3)
  })

  test("chaos outlives the server, and ends when it is told to", async () => {
    expect((await belfry("mailbox", "chaos", "--refuse", "1")).code).toBe(0)
    await server.stop()
    server = await startBelfry({ env: lean, home })
    expect((await belfry("mailbox", "chaos", "--json")).json()).toMatchObject({ refuse_rate: 1 })
    const refused = await send("Refused", "--text", "x", "--wait", "--json")
    expect(refused.stdout).toContain("5.7.1 Refused by policy")
    await belfry("mailbox", "chaos", "--off")
    await send("Welcome again", "--text", "x", "--wait")
    expect(await mailWith(server, "Welcome again")).toMatchObject({ read: false })
  })

  test("a mail is not released where there is no real provider", async () => {
    const { id } = await mailWith(server, "Welcome again")
    const { code, stderr } = await belfry("mailbox", "release", id)
    expect(code).toBe(75)
    expect(stderr).toContain("no provider but the embedded mailbox")
  })
})

test("under up, a mail is released as the README says: sandbox, relay, release", async () => {
  using relay = smtpSink()
  const home = makeHome()
  const first = await startBelfry({ env: lean, home })
  expect((await first.cli("settings", "set", "sandbox=true")).code).toBe(0)
  await first.stop()
  const env = {
    ...{ ...lean, BELFRY_SENDING_DOMAINS: "example.com", BELFRY_DELIVERY_PROVIDER: "smtp" },
    ...{ BELFRY_PROVIDERS_SMTP_HOST: "127.0.0.1", BELFRY_PROVIDERS_SMTP_TLS: "none" },
    BELFRY_PROVIDERS_SMTP_PORT: String(relay.port),
  }
  const second = await startBelfry({ env, home })
  const to = ["--to", "ann@example.org", "--from", "me@example.com", "--subject", "Really"]
  await second.cli("emails", "send", ...to, "--text", "hello")
  const { id } = await mailWith(second, "Really")
  expect(relay.received).toEqual([])
  expect((await second.cli("mailbox", "release", id)).code).toBe(0)
  while (relay.received.length === 0) await Bun.sleep(20)
  expect(relay.received[0]).toContain("Subject: Really")
  await second.stop()
})

test("under serve, a mail of the sandbox is released to the relay, and no private link is asked", async () => {
  using relay = smtpSink()
  const asked: string[] = []
  await using site = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => new Response(String(asked.push(url))),
  })
  const env = {
    ...{ BELFRY_DELIVERY_PROVIDER: "smtp", BELFRY_PROVIDERS_SMTP_HOST: "127.0.0.1" },
    ...{ BELFRY_PROVIDERS_SMTP_PORT: String(relay.port), BELFRY_PROVIDERS_SMTP_TLS: "none" },
    BELFRY_SENDING_DOMAINS: "example.test",
  }
  await using server = await startServe({ env })
  const call = async (method: string, path: string, body?: object) => {
    const headers = { "x-api-key": server.api_key, "content-type": "application/json" }
    const given = body && { body: JSON.stringify(body) }
    const answer = await fetch(`${server.url}${path}`, { method, headers, ...given })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return JSON.parse(text).data
  }
  await call("PATCH", "/v1/settings", { sandbox: true })
  const html = `<a href="http://127.0.0.1:${site.port}/">x</a><a href="http://localhost:${site.port}/">y</a>`
  const mail = { from: "me@example.test", to: "ann@example.com", subject: "Caught", html }
  await call("POST", "/v1/emails", mail)
  let caught: { id: string } | undefined
  while (!caught) [caught] = await call("GET", "/v1/mailbox")
  const { links } = await call("POST", `/v1/mailbox/${caught.id}/check`, { links: true })
  expect(links.map(({ ok }: LinkOfCheck) => ok)).toEqual([null, null])
  expect(asked).toEqual([])
  expect(relay.received).toEqual([])

  const released = await call("POST", `/v1/mailbox/${caught.id}/release`, {})
  while (relay.received.length === 0) await Bun.sleep(20)
  expect(relay.received[0]).toContain(`Message-ID: ${released.rfc_message_id}`)
  expect(relay.received[0]).toContain("Subject: Caught")
})
