import { describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { mailTo } from "../contracts/email-provider"
import { failover } from "../emails/failover-setup"
import { smtpSink } from "../fakes/smtp-sink"
import { refusal } from "../harness/client"
import { deliverAll } from "../harness/delivery"
import { mail, NOBODY } from "../harness/mail"
import { type Team, team } from "../harness/people"
import { quietLog } from "../harness/quiet"
import { type TestService, testService } from "../harness/service"
import { PROJECT } from "../messages/letters"
import { htmlMail, inlinePart, putMail } from "./received"

quietLog()

const ALL = "/v1/providers/email_provider/config"

const here = ({ account_id, project_id }: Team) => ({
  "x-account-id": account_id,
  "x-project-id": project_id,
})

async function addProvider(home: Team, name: string, more: object = {}): Promise<string> {
  const credentials = { host: "127.0.0.1", port: 9, tls: "none" }
  const body = { provider: "smtp", name, credentials, ...more }
  return (await home.owner.post(ALL, body, here(home))).body.data.id
}

const caught = (service: TestService, home: Team, raw = RAW, to = "ann@example.org") =>
  putMail(service, home, { raw, to, from: "bell@example.test" })

/** What the mail says of a release before one is tried. */
const foreseen = async (home: Team, id: string) =>
  (await home.owner.get(`/v1/mailbox/${id}`, here(home))).body.data.release_refusal

const RAW = [
  "DKIM-Signature: v=1; d=example.test; s=old; b=abc",
  "Return-Path: <bell@example.test>",
  "From: Bell <bell@example.test>",
  "To: Ann <ann@example.org>",
  "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=",
  "Message-ID: <old@example.test>",
  "Date: Mon, 23 Nov 2026 06:00:00 +0000",
  "X-Custom: stays",
  "MIME-Version: 1.0",
  "Content-Type: text/plain; charset=utf-8",
  "",
  "The body stays as it is.",
  "",
].join("\n")

describe("a release", () => {
  test("sends the mail as it stands to its recipient, under its own Message-ID", async () => {
    await using service = await testService()
    const home = await team(service)
    const relay = await addProvider(home, "relay")
    const id = await caught(service, home)
    const answer = await home.owner.post(`/v1/mailbox/${id}/release`, {}, here(home))
    expect(answer.status).toBe(201)
    expect(answer.body.data).toMatchObject({
      status: "queued",
      to: { email: "ann@example.org", name: "Ann" },
    })
    expect(answer.body.id).toBe(answer.body.data.id)

    const [handed] = await deliverAll(service)
    const text = Buffer.from(handed?.raw ?? []).toString()
    expect(handed).toMatchObject({ to: ["ann@example.org"], config_id: relay })
    expect(text).toContain("Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n")
    expect(text).toContain("X-Custom: stays\r\n")
    expect(text).toContain("\r\n\r\nThe body stays as it is.\r\n")
    expect(text.match(/^message-id:.*$/gim)).toEqual([
      `Message-ID: ${answer.body.data.rfc_message_id}`,
    ])
    expect(text).not.toMatch(/^(received|return-path):|s=old|old@example\.test/im)
    const shown = (await home.owner.get(`/v1/emails/${answer.body.id}`, here(home))).body.data
    expect(shown).toMatchObject({ subject: "Grüße", status: "delivered" })
    expect((await home.owner.get("/v1/mailbox", here(home))).body.meta.total).toBe(1)
  })

  test("keeps html, inline images and files, and is not tracked again", async () => {
    await using service = await testService()
    const home = await team(service)
    await addProvider(home, "relay")
    await home.owner.patch("/v1/settings", { track_opens: true, track_clicks: true }, here(home))
    const html = '<p><a href="https://shop.test/">x</a><img src="cid:logo">'
    const raw = htmlMail(html, inlinePart("logo")).replace("a@b.test", "bell@example.test")
    const id = await caught(service, home, raw)
    await home.owner.post(`/v1/mailbox/${id}/release`, {}, here(home))
    const [handed] = await deliverAll(service)
    const text = Buffer.from(handed?.raw ?? []).toString()
    expect(text).toContain(html)
    expect(text).not.toContain("/t/o/")
    expect(text).toContain("Content-ID: <logo>")
  })

  test("goes to the address and the provider that are named", async () => {
    await using service = await testService()
    const home = await team(service)
    await addProvider(home, "first", { priority: 1 })
    const second = await addProvider(home, "second", { priority: 2 })
    const id = await caught(service, home)
    const body = { to: "Kim <kim@example.net>", provider: second }
    await home.owner.post(`/v1/mailbox/${id}/release`, body, here(home))
    const [handed] = await deliverAll(service)
    expect(handed).toMatchObject({ to: ["kim@example.net"], config_id: second })
  })

  test("passes by the mailbox, and needs another provider", async () => {
    await using service = await testService()
    const home = await team(service)
    const id = await caught(service, home)
    const release = (body: object = {}) =>
      home.owner.post(`/v1/mailbox/${id}/release`, body, here(home))
    expect(await foreseen(home, id)).toBe("no_provider")
    const none = await release()
    expect(refusal(none)).toEqual([503, "service_unavailable"])
    expect(none.body.error.details.reason).toBe("no_provider")

    const box = await addProvider(home, "box", {
      provider: "mailbox",
      credentials: {},
      priority: 1,
    })
    expect(refusal(await release())).toEqual([503, "service_unavailable"])
    expect(refusal(await release({ provider: box }))).toEqual([404, "not_found"])

    const relay = await addProvider(home, "relay", { priority: 2 })
    expect(await foreseen(home, id)).toBeNull()
    expect((await release()).status).toBe(201)
    expect((await deliverAll(service))[0]?.config_id).toBe(relay)
    await home.owner.patch(`${ALL}/${relay}`, { enabled: false }, here(home))
    expect(refusal(await release({ provider: relay }))).toEqual([404, "not_found"])
  })

  test("goes out from a project in the sandbox", async () => {
    await using service = await testService()
    const home = await team(service)
    const relay = await addProvider(home, "relay")
    await home.owner.patch("/v1/settings", { sandbox: true }, here(home))
    const id = await caught(service, home)
    await home.owner.post(`/v1/mailbox/${id}/release`, {}, here(home))
    expect((await deliverAll(service))[0]?.config_id).toBe(relay)
    const [email] = (await home.owner.get("/v1/emails", here(home))).body.data
    expect(email.sandbox ?? false).toBe(false)
  })

  test("is refused where a send would be", async () => {
    await using service = await testService()
    const home = await team(service)
    await addProvider(home, "relay")
    const codeOf = async (raw: string, body: object = {}) => {
      const id = await caught(service, home, raw)
      return refusal(await home.owner.post(`/v1/mailbox/${id}/release`, body, here(home)))
    }
    const from = (address: string) => RAW.replace("bell@example.test>\nTo", `${address}>\nTo`)
    expect(await codeOf(from("me@mailbox.test"))).toEqual([400, "domain_not_verified"])
    expect(await codeOf(from("me@elsewhere.test"))).toEqual([400, "domain_not_verified"])
    const elsewhere = { raw: RAW, from: "me@elsewhere.test" }
    expect(await foreseen(home, await putMail(service, home, elsewhere))).toBe(
      "domain_not_verified",
    )
    expect(await codeOf("Subject: no sender\n\nx\n")).toEqual([422, "validation_error"])
    expect(await codeOf(RAW, { to: "nobody" })).toEqual([422, "invalid_email"])
    expect(await codeOf(RAW, { provider: 7 })).toEqual([422, "validation_error"])
    await home.owner.post("/v1/suppressions", { email: "ann@example.org" }, here(home))
    expect((await codeOf(RAW))[1]).toBe("suppressed_recipient")
  })

  test("is of the own project's mail and providers alone, and happens once", async () => {
    await using service = await testService()
    const [home, other] = [await team(service), await team(service)]
    await addProvider(home, "relay")
    const foreign = await addProvider(other, "relay")
    const id = await caught(service, home)
    const of = (team: Team, mail_id: string, body: object = {}) =>
      team.owner.post(`/v1/mailbox/${mail_id}/release`, body, here(team))
    for (const one of [id, NOBODY, "x"]) {
      expect(refusal(await of(other, one))).toEqual([404, "not_found"])
    }
    for (const provider of [foreign, newId(), "x"]) {
      expect(refusal(await of(home, id, { provider }))).toEqual([404, "not_found"])
    }
    const headers = { ...here(home), "Idempotency-Key": "once" }
    const [first, second] = [
      await home.owner.post(`/v1/mailbox/${id}/release`, {}, headers),
      await home.owner.post(`/v1/mailbox/${id}/release`, {}, headers),
    ]
    expect(second.body.data.id).toBe(first.body.data.id)
    expect(await deliverAll(service)).toHaveLength(1)
  })
})

test("a message with a provider of its own is handed to that one, and waits where it is gone", async () => {
  using one = smtpSink()
  using two = smtpSink()
  await using providers = await failover()
  const access = (port: number) => ({ host: "127.0.0.1", port, tls: "none" })
  await providers.add("smtp", access(one.port), { priority: 1 })
  const second = await providers.add("smtp", access(two.port), { priority: 2 })
  const message = { ...mailTo("ann@example.test"), project_id: PROJECT, config_id: second.id }
  expect((await providers.provider.send(message)).status).toBe("sent")
  expect([one.received.length, two.received.length]).toEqual([0, 1])
  await providers.change(second.id, { enabled: false })
  await expect(providers.provider.send(message)).rejects.toThrow("waits")
})

test("a mail that was sent is released with its own content", async () => {
  await using service = await testService()
  const home = await team(service)
  const sent = await home.owner.post("/v1/emails", mail({ to: "ann@example.org" }), here(home))
  const [handed] = await deliverAll(service)
  const raw = Buffer.from(handed?.raw ?? [])
  const email_id = sent.body.data.id
  const id = await putMail(service, home, { raw, to: "ann@example.org", email_id })
  await addProvider(home, "relay")
  await home.owner.post(`/v1/mailbox/${id}/release`, {}, here(home))
  const [released] = await deliverAll(service)
  const bodyOf = (bytes: Uint8Array) => Buffer.from(bytes).toString().split("\r\n\r\n").slice(1)
  expect(bodyOf(released?.raw ?? raw)).toEqual(bodyOf(raw))
  expect(Buffer.from(released?.raw ?? []).toString()).not.toContain(email_id)
})
