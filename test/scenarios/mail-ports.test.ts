import { expect, test } from "bun:test"
import { execFileSync } from "node:child_process"
import { chmodSync, copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import type { TLSSocket } from "node:tls"
import { selfSigned } from "../fakes/smtp-certificate"
import { binary, makeHome, runBinary } from "../harness/binary"
import { readLines } from "../harness/lines"
import { note } from "../harness/peers"
import { plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"
import { until } from "./mails"
import { lean, startServe } from "./serve"

const UNREACHABLE = 69
const NOBODY = 65_534

/** Nobody but root may listen below 1024, as long as the kernel is not told otherwise. */
function areLowPortsFree(): boolean {
  const lowest = Number(readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8"))
  if (lowest <= 25) note("every user may listen on port 25 here")
  return lowest <= 25
}

async function occupied(port = 0) {
  const server = createServer()
  await new Promise<void>((resolve) => {
    server.once("error", () => resolve()) // another program has it, which is as good
    server.listen(port, "127.0.0.1", resolve)
  })
  const found = (server.address() as { port: number } | null)?.port ?? port
  return { port: found, [Symbol.dispose]: () => void server.close() }
}

test.skipIf(areLowPortsFree())(
  "a user without the right to low ports gets HTTP, and /readyz says why there is no SMTP",
  async () => {
    const home = makeHome()
    const program = join(home, "belfry-binary")
    copyFileSync(binary, program)
    chmodSync(program, 0o755)
    const is_root = process.getuid?.() === 0
    if (is_root) execFileSync("chown", ["-R", `${NOBODY}:${NOBODY}`, home])
    const drop = ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"]
    const words = ["serve", "--json", "--new", "--listen", "127.0.0.1:0"]
    const child = Bun.spawn({
      cmd: [...(is_root ? drop : []), program, ...words, "--data-dir", join(home, "data")],
      cwd: join(home, "work"),
      env: {
        PATH: process.env.PATH ?? "",
        HOME: home,
        TMPDIR: join(home, "tmp"),
        BELFRY_STORAGE_BALLAST_MB: "0",
        BELFRY_STORAGE_MIN_FREE_MB: "0",
        BELFRY_MAILBOX_LISTEN: "127.0.0.1:0",
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    })
    const log = readLines(child.stderr)
    const line = await readLines(child.stdout).first((text) => text.startsWith("{"))
    const { url, smtp } = JSON.parse(line)
    expect(smtp).toMatchObject({ submission: null, inbound: null })

    const answer = await fetch(`${url}/readyz`)
    const { status, checks } = (await answer.json()) as { status: string; checks: { smtp: string } }
    expect([answer.status, status]).toEqual([200, "ok"])
    const why = "the user of this process may not take the port"
    expect(checks.smtp).toBe(`off: submission on port 587: ${why}; inbound on port 25: ${why}`)
    const told = log.all.find((text) => text.includes("A mail server is off"))
    for (const way of [
      "CAP_NET_BIND_SERVICE",
      "ip_unprivileged_port_start=587",
      "redirect port 587",
    ]) {
      expect(told).toContain(way)
    }
    child.kill("SIGTERM")
    expect(await child.exited).toBe(0)
    rmSync(home, { recursive: true })
  },
)

test("a mail port that a setting names must be free, under up and under serve", async () => {
  using taken = await occupied()
  const address = `127.0.0.1:${taken.port}`
  const starts = [
    ["up", "--json", "--port", "0"],
    ["serve", "--json", "--new", "--listen", "127.0.0.1:0"],
  ]
  const names = ["SUBMISSION_LISTEN", "SUBMISSION_IMPLICIT_LISTEN", "INBOUND_LISTEN"]
  for (const words of starts) {
    for (const name of names) {
      const env = {
        ...lean,
        BELFRY_MAILBOX_LISTEN: "127.0.0.1:0",
        [`BELFRY_SMTP_${name}`]: address,
      }
      const ended = await runBinary(words, { env })
      expect([words[0], name, ended.code, ended.stdout]).toEqual([words[0], name, UNREACHABLE, ""])
      const last = ended.stderr.trim().split("\n").at(-1) ?? ""
      const { error } = JSON.parse(last)
      expect(error).toMatchObject({ code: "port_taken", details: { address } })
    }
  }
})

test("under up a free port takes the place of a usual one that is taken", async () => {
  using _submission = await occupied(2587)
  using _inbound = await occupied(2525)
  const home = makeHome()
  const child = Bun.spawn({
    cmd: [binary, "up", "--json", "--data-dir", join(home, "data")],
    cwd: join(home, "work"),
    env: { PATH: process.env.PATH ?? "", HOME: home, BELFRY_HTTP_LISTEN: "127.0.0.1:0" },
    stdout: "pipe",
    stderr: "ignore",
  })
  const line = await readLines(child.stdout).first((text) => text.startsWith("{"))
  const { submission, inbound } = JSON.parse(line).smtp
  expect([submission, inbound].every((port) => port > 0)).toBe(true)
  expect([submission, inbound]).not.toContain(2587)
  expect([submission, inbound]).not.toContain(2525)
  child.kill("SIGTERM")
  expect(await child.exited).toBe(0)
  rmSync(home, { recursive: true })
})

test("a renewed certificate serves new connections, and an open one goes on", async () => {
  const home = makeHome()
  const files = { cert: join(home, "cert.pem"), key: join(home, "key.pem") }
  const renew = (name: string) => {
    const pair = selfSigned(name)
    for (const part of ["cert", "key"] as const) {
      writeFileSync(`${files[part]}.new`, pair[part])
      renameSync(`${files[part]}.new`, files[part])
    }
  }
  renew("old.test")
  using port = await occupied()
  port[Symbol.dispose]()
  const env = {
    BELFRY_TLS_CERT: files.cert,
    BELFRY_TLS_KEY: files.key,
    BELFRY_SMTP_SUBMISSION_LISTEN: `127.0.0.1:${port.port}`,
  }
  await using server = await startServe({ home, env })
  const connect = async () => {
    const client = await SmtpDialogue.open(port.port)
    await client.say("EHLO me.test")
    const { CN } = ((await client.starttls()) as TLSSocket).getPeerCertificate().subject
    return { client, name: CN }
  }
  const before = await connect()
  expect(before.name).toBe("old.test")
  renew("new.test")
  server.kill("SIGHUP")
  await until("the new certificate is used", async () => {
    const { client, name } = await connect()
    client[Symbol.dispose]()
    return name === "new.test"
  })
  const lines = ["EHLO me.test", plainLogin("svc", server.api_key), "NOOP"]
  expect(await before.client.talk(...lines)).toStartWith("250 ")
  before.client[Symbol.dispose]()
  expect(server.stderr.all.join("\n")).not.toContain("signed itself")
  rmSync(home, { recursive: true, force: true })
})
