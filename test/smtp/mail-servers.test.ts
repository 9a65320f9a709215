import { afterAll, afterEach, expect, spyOn, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type Server } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { loadSettings } from "../../src/core/config"
import { log } from "../../src/core/log"
import type { ServerTrouble } from "../../src/http/server-health"
import { mailConnections, openMailServers } from "../../src/smtp/mail-servers"
import { SmtpDialogue } from "../harness/smtp-dialogue"

const spies = [spyOn(log, "info"), spyOn(log, "warn")].map((spy) =>
  spy.mockImplementation(() => {}),
)
const [, warn] = spies
const data_dir = mkdtempSync(join(tmpdir(), "belfry-mail-servers-"))
afterEach(() => warn?.mockClear())
afterAll(() => {
  for (const spy of spies) spy.mockRestore()
  rmSync(data_dir, { recursive: true })
})

const free = { "smtp.submission.listen": "127.0.0.1:0", "smtp.inbound.listen": "127.0.0.1:0" }
const handlers = { onRecipient: async () => {}, onMail: async () => "2.0.0 Ok" }
const login = { ...handlers, authenticate: async () => "me" }

interface Input {
  flags?: Record<string, string | boolean | number>
  defaults?: Record<string, string>
  mode?: "up" | "serve"
  trouble?: () => ServerTrouble | undefined
  with?: { submission?: typeof login; inbound?: typeof handlers }
}

function open({ flags = free, defaults = {}, mode = "serve", trouble, ...given }: Input = {}) {
  const loaded = loadSettings({ environment: {}, flags: { data_dir, ...flags }, defaults })
  return openMailServers({
    settings: loaded.values,
    host: "mail.test",
    handlers: given.with ?? { submission: login, inbound: handlers },
    isExplicit: (setting) => loaded.explain(setting).source !== "default",
    mode,
    trouble: trouble ?? (() => undefined),
    descriptors: 20_000,
  })
}

async function occupied(): Promise<{ server: Server; port: number; [Symbol.dispose](): void }> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as { port: number }
  return { server, port, [Symbol.dispose]: () => void server.close() }
}

test("both servers run on their ports, each with its own limits", async () => {
  const servers = await open()
  using inside = SmtpDialogue.connect(servers.ports.submission ?? 0)
  using outside = SmtpDialogue.connect(servers.ports.inbound ?? 0)
  for (const client of [inside, outside]) {
    expect((await client.reply()).text).toBe("220 mail.test ESMTP")
    client.write("EHLO me.test\r\n")
  }
  expect((await inside.reply()).lines).toContain("SIZE 15728640")
  expect((await outside.reply()).lines).toContain("SIZE 26214400")
  expect(await outside.say("MAIL FROM:<a@b.test>")).toStartWith("250 ")
  expect(servers.state()).toBe("ok")
  expect(servers.counts()).toMatchObject({ submission: { sessions: 1 }, inbound: { sessions: 1 } })
  await servers.close(0)
  expect(servers.state()).toBe("not listening")
})

test("a certificate that the server signed itself is said loudly, with its fingerprint", async () => {
  const servers = await open()
  await servers.close(0)
  const [text, fields] = warn?.mock.calls[0] ?? []
  expect(text).toContain("signed itself")
  expect(fields).toMatchObject({ host: "mail.test", file: join(data_dir, "tls/cert.pem") })
  expect(fields?.fingerprint).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/)
  warn?.mockClear()
  const local = await open({ mode: "up" }) // there the banner says it
  await local.close(0)
  expect(warn).not.toHaveBeenCalled()
})

test("a server without handlers, or that is not enabled, is not there", async () => {
  const none = await open({ with: {} })
  expect([none.ports, none.state()]).toEqual([{ submission: null, inbound: null }, "ok"])
  const one = await open({ flags: { ...free, "smtp.inbound.enabled": false } })
  expect(one.ports).toEqual({ submission: expect.any(Number), inbound: null })
  await one.close(0)
})

test("a usual port that is taken leaves its server off, with the ways to get it", async () => {
  using taken = await occupied()
  const defaults = { ...free, "smtp.inbound.listen": `127.0.0.1:${taken.port}` }
  const servers = await open({ flags: {}, defaults })
  expect(servers.ports).toEqual({ submission: expect.any(Number), inbound: null })
  expect(servers.state()).toBe(`off: inbound on port ${taken.port}: another program has the port`)
  const [text, fields] = warn?.mock.calls.at(-1) ?? []
  expect(text).toContain("A mail server is off")
  expect(fields).toMatchObject({ server: "inbound" })
  const ways = JSON.stringify(fields?.ways)
  for (const way of ["CAP_NET_BIND_SERVICE", "ip_unprivileged_port_start", "smtp.inbound.listen"]) {
    expect(ways).toContain(way)
  }
  await servers.close(0)
})

test("under up a free port takes the place of a usual one", async () => {
  using taken = await occupied()
  const defaults = { ...free, "smtp.submission.listen": `127.0.0.1:${taken.port}` }
  const servers = await open({ flags: {}, defaults, mode: "up" })
  expect(servers.ports.submission).not.toBe(taken.port)
  expect(servers.state()).toBe("ok")
  await servers.close(0)
})

test("a port that a setting names must be free", async () => {
  using taken = await occupied()
  const listen = `127.0.0.1:${taken.port}`
  for (const name of ["submission.listen", "inbound.listen", "submission.implicit_listen"]) {
    const refused = open({ flags: { ...free, [`smtp.${name}`]: listen }, mode: "up" })
    const error = { code: "EADDRINUSE", syscall: "listen", port: taken.port }
    await expect(refused).rejects.toMatchObject(error)
  }
})

test("mail is refused for now while it could not be stored", async () => {
  let trouble: ServerTrouble | undefined
  const servers = await open({ trouble: () => trouble })
  const reply = async (name: ServerTrouble) => {
    trouble = undefined
    using client = await SmtpDialogue.open(servers.ports.inbound ?? 0)
    await client.say("EHLO me.test")
    trouble = name
    return await client.say("MAIL FROM:<a@b.test>")
  }
  expect(await reply("unwritable")).toStartWith("452 4.3.1 service_unavailable: ")
  expect(await reply("disk_low")).toStartWith("452 4.3.1 service_unavailable: ")
  expect(await reply("damaged")).toStartWith("421 4.3.0 service_unavailable: ")
  expect(await reply("away")).toStartWith("421 4.3.0 service_unavailable: ")
  expect(await reply("draining")).toStartWith("421 4.3.2 service_unavailable: ")
  await servers.close(0)
})

test("few open files allow few connections", () => {
  const { values } = loadSettings({ environment: {}, flags: { data_dir } })
  expect(mailConnections(values, 20_000)).toEqual({ submission: 500, inbound: 500 })
  expect(mailConnections(values, 1024)).toEqual({ submission: 128, inbound: 128 })
  expect(mailConnections(values, 64)).toEqual({ submission: 16, inbound: 16 })
  const off = { ...values, "smtp.inbound.enabled": false }
  expect(mailConnections(off, 20_000)).toEqual({ submission: 500, inbound: 0 })
})
