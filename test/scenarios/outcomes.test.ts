import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { countingRelay } from "../fakes/counting-relay"
import type { Step } from "../fakes/smtp-sink"
import { ahead, forgetClock } from "../harness/ahead"
import { makeHome, startBelfry } from "../harness/binary"
import { freePort } from "../harness/ports"
import {
  deferred,
  drained,
  eventsOf,
  eventTypes,
  get,
  type Mail,
  reaches,
  type Server,
  send,
} from "./mails"
import { lean, relaySettings } from "./serve"

const RETRY_SECONDS = 66 // the first wait is a minute, 10 % about
const OTHERS = 20

interface Try {
  outcome: string
  smtp_code: number | null
  response: string | null
}

const mailTo = (name: string) => ({ from: "me@example.test", to: `${name}@example.test` })

const localPart = (address: string) => address.split("@")[0] ?? ""

const atRecipient: Record<string, Step> = {
  r421: "421 4.3.2 closing",
  r451: "451 4.7.1 greylisted",
  r550: "550 5.1.1 no such user",
  r552: "552 5.2.2 mailbox full",
}

const atEnd: Record<string, Step> = {
  e421: "421 4.3.2 going down",
  e451: "451 4.3.0 try later",
  e550: "550 5.7.1 not wanted",
  e552: "552 5.3.4 too big",
  stalls: "stall",
  drops: "drop",
  closes: "half-close",
}

test.concurrent("each answer of a relay has its outcome, and none holds up the others", async () => {
  using relay = countingRelay({
    atRecipient: (recipient) => atRecipient[localPart(recipient)],
    atEnd: (recipient) => atEnd[localPart(recipient)],
  })
  await using server = await startBelfry({ env: relaySettings(relay.port) })
  const stalling = await send(server, mailTo("stalls"))

  const refused: [string, string, number, string][] = [
    ["r550", "bounced", 550, "NoEmail"],
    ["r552", "bounced", 552, "MailboxFull"],
    ["e550", "bounced", 550, "PolicyRejected"],
    ["e552", "bounced", 552, "MessageTooLarge"],
  ]
  const settled = refused.map(async ([name, status, code, subtype]) => {
    const id = await send(server, mailTo(name))
    const mail = await reaches(server, id, "bounced", "failed")
    expect({ name, ...mail }).toMatchObject({ name, status, next_attempt_at: null })
    expect(mail.error?.smtp_code).toBe(code)
    expect(mail.status_reason).toContain(String(code))
    const event = (await eventsOf(server, id)).find(({ type }) => type === "email.bounced")
    expect(event).toMatchObject({ bounce_type: "Permanent", bounce_subtype: subtype })
    expect(event?.detail.smtp_code).toBe(code)
  })

  const waiting: [string, number | null][] = [
    ["r421", 421],
    ["r451", 451],
    ["e421", 421],
    ["e451", 451],
    ["drops", null],
    ["closes", null],
  ]
  const put_off = waiting.map(async ([name, code]) => {
    const id = await send(server, mailTo(name))
    await expectDeferral(server, id, code)
  })
  const others = Array.from({ length: OTHERS }, async (_, number) => {
    const id = await send(server, mailTo(`n${number}`))
    await reaches(server, id, "sent")
    expect(await eventTypes(server, id)).toEqual(["email.queued", "email.sent"])
  })
  await Promise.all([...settled, ...put_off, ...others])
  expect(relay.counts().size).toBe(OTHERS)

  await expectDeferral(server, stalling, null)
})

async function expectDeferral(server: Server, id: string, code: number | null) {
  const mail = await deferred(server, id)
  expect(mail).toMatchObject({ status: "queued", attempts: 1 })
  const reason = mail.status_reason ?? ""
  expect(reason).not.toBe("")
  expect(Date.parse(mail.next_attempt_at ?? "")).toBeGreaterThan(Date.now())
  const [, event] = await eventsOf(server, id)
  expect(event).toMatchObject({ type: "email.soft_bounced", bounce_type: "Transient" })
  const [tried] = await get<Try[]>(server, `/v1/emails/${id}/attempts`)
  expect(tried).toMatchObject({ outcome: "retry", smtp_code: code })
  if (code !== null) expect(reason).toContain(String(code))
}

describe("a relay that does not get as far as a recipient", () => {
  const behaviours: [string, Step, number | null][] = [
    ["drops every connection", "drop", null],
    ["says nothing", "stall", null],
    ["half-closes at once", "half-close", null],
    ["greets with 421", "421 4.3.2 too busy", 421],
  ]
  for (const [what, step, code] of behaviours) {
    test.concurrent(`${what}: the message waits, with the reason, and the API answers`, async () => {
      using relay = countingRelay({ atConnect: () => step })
      await using server = await startBelfry({ env: relaySettings(relay.port) })
      const id = await send(server, mailTo("ann"))
      await expectDeferral(server, id, code)
      expect((await server.request("/readyz")).status).toBe(200)
    })
  }

  test.concurrent("refuses us for good: the message has failed, not bounced", async () => {
    using relay = countingRelay({ atConnect: () => "554 5.7.1 your address is not welcome" })
    await using server = await startBelfry({ env: relaySettings(relay.port) })
    const id = await send(server, mailTo("ann"))
    const mail = await reaches(server, id, "failed", "bounced")
    expect(mail).toMatchObject({ status: "failed", next_attempt_at: null })
    expect(mail.error).toMatchObject({ code: "provider_error", smtp_code: 554 })
    expect(await eventTypes(server, id)).toEqual(["email.queued", "email.failed"])
  })

  test.concurrent("demands a login that is wrong: failed, and no password in any log", async () => {
    using relay = countingRelay()
    const secret = "canary-password-5f1d"
    const env = relaySettings(relay.port, {
      BELFRY_PROVIDERS_SMTP_USERNAME: "belfry",
      BELFRY_PROVIDERS_SMTP_PASSWORD: secret,
    })
    await using server = await startBelfry({ env })
    const id = await send(server, mailTo("ann")) // this relay offers no AUTH at all
    await reaches(server, id, "failed", "queued")
    const attempts = await (await server.request(`/v1/emails/${id}/attempts`)).text()
    const everything = `${attempts}${server.stdout.all.join()}${server.stderr.all.join()}`
    expect(everything).not.toContain(secret)
    expect((await get<Mail>(server, `/v1/emails/${id}`)).status).not.toBe("sent")
  })
})

test.concurrent("a relay that is away is tried again, also by the next start", async () => {
  const home = makeHome()
  const port = await freePort()
  const env = relaySettings(port)
  try {
    await using first = await startBelfry({ home, env })
    const ids = [await send(first, mailTo("ann")), await send(first, mailTo("bob"))]
    for (const id of ids) {
      const mail = await deferred(first, id)
      expect(mail).toMatchObject({ status: "queued", attempts: 1 })
      expect(mail.status_reason).toMatch(/refused|connect/i)
      const wait = Date.parse(mail.next_attempt_at ?? "") - Date.now()
      expect(wait).toBeLessThanOrEqual(RETRY_SECONDS * 1000)
    }
    expect(await first.stop()).toBe(0)

    using relay = countingRelay({ port })
    await using second = await startBelfry({ home, env: { ...env, ...ahead(RETRY_SECONDS) } })
    forgetClock(second.pid)
    for (const id of ids) {
      expect((await get<Mail>(second, `/v1/emails/${id}`)).status).toMatch(/queued|sending|sent/)
    }
    await drained(second)
    for (const id of ids) expect(await reaches(second, id, "sent")).toMatchObject({ attempts: 2 })
    expect([...relay.counts().values()]).toEqual([1, 1])
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

describe("each address of the simulator has its outcome", () => {
  const outcomes: [string, string, Partial<Mail>, string[]][] = [
    ["ann", "delivered", { attempts: 1 }, ["email.sent", "email.delivered"]],
    ["bounce", "bounced", {}, ["email.bounced"]],
    ["bounce+7", "bounced", {}, ["email.bounced"]],
    ["reject", "bounced", {}, ["email.bounced"]],
    [
      "defer",
      "delivered",
      { attempts: 2 },
      ["email.soft_bounced", "email.sent", "email.delivered"],
    ],
    ["softbounce", "failed", { attempts: 4 }, ["email.soft_bounced", "email.failed"]],
    ["complain", "complained", {}, ["email.sent", "email.delivered", "email.complained"]],
    ["slow", "delivered", { attempts: 1 }, ["email.sent", "email.delivered"]],
  ]

  test.concurrent("in one run, side by side", async () => {
    await using server = await startBelfry({ env: lean })
    const walks = outcomes.map(async ([local, status, more, events]) => {
      const id = await send(server, { to: `${local}@mailbox.test` })
      const mail = await reaches(server, id, status)
      expect({ local, ...mail }).toMatchObject({ local, status, ...more })
      expect([local, ...(await eventTypes(server, id))]).toEqual([local, "email.queued", ...events])
      return id
    })
    const ids = await Promise.all(walks)
    const [, , , rejected = ""] = ids
    expect((await get<Mail>(server, `/v1/emails/${rejected}`)).error?.smtp_code).toBe(550)
  })
})
