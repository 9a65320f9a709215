import { expect, test } from "bun:test"
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { makeHome, runBinary, startBelfry } from "../harness/binary"
import { type Caught, eventTypes, get, type Mail, reaches, send } from "./mails"
import { lean } from "./serve"

/** A home that several starts share, gone at the end. */
function lastingHome() {
  const home = makeHome()
  return { home, [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) }
}

test("from an empty folder to a delivered email, with nothing but the binary", async () => {
  const begun = performance.now()
  const passed = () => `${Math.round(performance.now() - begun)} ms`

  await using server = await startBelfry()
  const ready = passed()
  expect(readdirSync(join(server.home, "work"))).toEqual([]) // no source beside it, no settings
  expect(Object.keys(server.smtp)).toEqual(["submission", "inbound", "mailbox"])
  expect(server.api_key).toStartWith("svc_live_")

  const id = await send(server, { to: "Ann <ann@mailbox.test>", html: "<p>hello</p>" })
  const accepted = passed()
  const mail = await reaches(server, id, "delivered")
  const delivered = passed()
  console.log(`first run: ready ${ready}, accepted ${accepted}, delivered ${delivered}`)

  expect(mail).toMatchObject({ status: "delivered", provider: "mailbox", attempts: 1 })
  expect(await eventTypes(server, id)).toEqual(["email.queued", "email.sent", "email.delivered"])

  const steps = ["queued", "sending", "sent", "delivered"]
  for (const status of steps) await server.next((line) => line.id === id && line.status === status)
  const told = server.stdout.all.map((line) => JSON.parse(line) as { id?: string; status?: string })
  expect(told.filter((line) => line.id === id).map(({ status }) => status)).toEqual(steps)
})

test("the command line needs no settings beside a running `up`", async () => {
  await using server = await startBelfry({ env: lean })
  const profiles = join(server.home, "config/belfry/profiles.json")
  expect(statSync(profiles).mode & 0o777).toBe(0o600)
  const stored = JSON.parse(readFileSync(profiles, "utf8"))
  expect(stored.profiles.local).toMatchObject({ url: server.url, api_key: server.api_key })

  const message = ["--from", "me@mailbox.test", "--to", "ann@mailbox.test", "--subject", "Receipt"]
  const sent = await server.cli("emails", "send", ...message, "--text", "paid", "--wait")
  expect(sent).toMatchObject({ code: 0, stderr: "" })
  const { id } = JSON.parse(sent.stdout)

  const words = ["mailbox", "wait", "--to", "ann@mailbox.test", "--timeout", "30s"]
  const waited = await server.cli(...words, "--subject", "receipt")
  expect(waited.code).toBe(0)
  expect(JSON.parse(waited.stdout)).toMatchObject({ email_id: id, text: "paid\n" })

  const listed = await server.cli("mailbox", "list")
  const [caught] = JSON.parse(listed.stdout) as Caught[]
  expect(caught).toMatchObject({ email_id: id, from: "me@mailbox.test", to: "ann@mailbox.test" })
  const got = await server.cli("mailbox", "get", caught?.id ?? "")
  expect(JSON.parse(got.stdout).headers.subject).toBe("Receipt")

  const events = await server.cli("emails", "events", id)
  expect(events.stdout).toContain("email.delivered")
  expect((await server.cli("status")).code).toBe(0)
})

test("a restart on the same folder prints the same key and keeps everything", async () => {
  using lasting = lastingHome()
  const options = { home: lasting.home, env: lean }
  await using first = await startBelfry(options)
  const id = await send(first)
  await reaches(first, id, "delivered")
  expect(await first.stop()).toBe(0)

  await using second = await startBelfry(options)
  expect(second).toMatchObject({ api_key: first.api_key, project_id: first.project_id })
  expect(await get<Mail>(second, `/v1/emails/${id}`)).toMatchObject({ id, status: "delivered" })
  expect(await get<Caught[]>(second, "/v1/mailbox")).toHaveLength(1)
  expect(existsSync(join(lasting.home, "belfry/master.key"))).toBe(true)
})

test("--new-key makes another key, and the old one opens nothing", async () => {
  using lasting = lastingHome()
  const options = { home: lasting.home, env: lean }
  await using first = await startBelfry(options)
  const id = await send(first)
  await first.stop()

  await using second = await startBelfry({ ...options, args: ["--new-key"] })
  expect(second.api_key).not.toBe(first.api_key)
  expect(second.project_id).toBe(first.project_id)
  const headers = { authorization: `Bearer ${first.api_key}` }
  expect((await second.request("/v1/emails", { headers })).status).toBe(401)
  expect((await get<Mail>(second, `/v1/emails/${id}`)).id).toBe(id)
  expect((await second.cli("emails", "get", id)).code).toBe(0) // the profile follows
})

test("the binary knows its version without a folder, a home or a setting", async () => {
  const { code, stdout, stderr } = await runBinary(["--version"])
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
})
