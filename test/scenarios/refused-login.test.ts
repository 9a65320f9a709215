import { expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { smtpSink } from "../fakes/smtp-sink"
import { makeHome, runBinary } from "../harness/binary"
import { mail } from "../harness/mail"
import { relaySettings, startServe } from "./serve"

const MAILS = 6

interface Mail {
  status: string
  status_reason: string | null
  next_attempt_at: string | null
  attempts: number
}

test("a relay that refuses the login of `serve`: mail waits in sight, and a start with another password sends it", async () => {
  const right = btoa("\0belfry\0new")
  using sink = smtpSink({
    EHLO: "250-sink.test\r\n250-PIPELINING\r\n250 AUTH PLAIN",
    AUTH: (line) => (line.includes(right) ? undefined : "535 5.7.8 wrong"),
  })
  const home = makeHome()
  const env = (password: string) =>
    relaySettings(sink.port, {
      BELFRY_BASE_URL: "https://belfry.test",
      BELFRY_PROVIDERS_SMTP_USERNAME: "belfry",
      BELFRY_PROVIDERS_SMTP_PASSWORD: password,
    })
  let api_key = ""
  {
    await using server = await startServe({ home, env: env("old") })
    api_key = server.api_key
    const json = async (path: string) => (await server.request(path)).json()
    for (let at = 0; at < MAILS; at++) {
      const body = JSON.stringify(mail())
      expect((await server.request("/v1/emails", { method: "POST", body })).status).toBe(201)
    }
    const mails = async () => ((await json("/v1/emails")) as { data: Mail[] }).data
    const isHeld = ({ status_reason }: Mail) => status_reason?.includes("535 5.7.8 wrong")
    while (!(await mails()).every(isHeld)) await Bun.sleep(50)

    const { next_attempt_at } = (await mails())[0] as Mail
    expect(next_attempt_at).not.toBeNull()
    const status_reason =
      "smtp refuses our login: AUTH: 535 5.7.8 wrong. Messages wait until it accepts the login."
    for (const one of await mails()) {
      expect(one).toMatchObject({ status: "queued", status_reason, next_attempt_at })
    }
    const tries = (await mails()).map(({ attempts }) => attempts)
    expect(tries.reduce((sum, attempts) => sum + attempts, 0)).toBe(1)

    const ready = await fetch(`${server.url}/readyz`)
    const told = (await ready.json()) as { status: string; warnings: string[] }
    expect([ready.status, told.status]).toEqual([200, "ok"])
    const refusal = /^smtp, the provider of this instance, refuses our login/
    expect(told.warnings).toEqual([expect.stringMatching(refusal)]) // once, with all channels

    const asked = (...words: string[]) =>
      runBinary([...words, "--json", "--url", server.url, "--api-key", api_key], { home })
    const providers = JSON.parse((await asked("providers", "list")).stdout.split("\n")[0] ?? "")
    const first = Array.isArray(providers) ? providers[0] : providers
    expect(first).toMatchObject({ id: "instance", status: "error", next_probe_at: next_attempt_at })
    const queue = JSON.parse((await asked("queue", "list")).stdout)
    const line = { queue: "email", state: "held", count: MAILS, next_attempt_at }
    expect(queue.by_state).toMatchObject([line])
    const warning = server.stderr.all.find((one) => one.includes("A provider refuses our login"))
    expect(JSON.parse(warning ?? "")).toMatchObject({ level: "warn", config_id: "instance" })
  }
  expect(sink.received).toEqual([])
  await using server = await startServe({ home, api_key, env: env("new") })
  while (sink.received.length < MAILS) await Bun.sleep(50)
  const isTold = (line: string) => line.includes("A provider accepts our login again")
  while (!server.stderr.all.some(isTold)) await Bun.sleep(50)
  expect(await (await fetch(`${server.url}/readyz`)).json()).not.toHaveProperty("warnings")
  rmSync(home, { recursive: true, force: true })
})
