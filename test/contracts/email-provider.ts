import { describe, expect, test } from "bun:test"
import type { EmailProvider, OutgoingMail } from "../../src/emails/providers/provider"

/** A provider under test, and a server behind it that refuses or defers some local parts. */
export interface EmailProviderCase extends AsyncDisposable {
  provider: EmailProvider
  /** Addresses to which the other side says yes, not now, and never. */
  addresses: { accepted: string; other: string; deferred: string; refused: string }
  /** What an accepted mail is. */
  success: "sent" | "delivered"
  received(): Promise<string[]> | string[]
}

/** A message with what easily breaks on the way: dots, long lines, text outside ASCII. */
export const RAW = [
  "From: bell@example.test",
  "To: ann@example.test",
  "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=",
  "Message-ID: <019a0000-0000-7000-8000-000000000001@example.test>",
  "",
  "Ding dong.",
  ".",
  "..two dots",
  "x".repeat(900),
  "",
].join("\r\n")

export const mailTo = (...to: string[]): OutgoingMail => ({
  message_id: "019a0000-0000-7000-8000-000000000001",
  project_id: "019a0000-0000-7000-8000-000000000002",
  from: "bell@example.test",
  to,
  raw: Buffer.from(RAW),
  smtputf8: false,
})

/** What every email provider promises. Each adapter's test calls this once. */
export function emailProviderContract(name: string, open: () => Promise<EmailProviderCase>) {
  describe(`${name}, as an email provider,`, () => {
    test("carries the very bytes, and says who took them", async () => {
      await using it = await open()

      const outcome = await it.provider.send(mailTo(it.addresses.accepted))
      expect(outcome).toMatchObject({
        address: it.addresses.accepted,
        status: it.success,
        provider: it.provider.name,
        reason: null,
        others: [],
        reply: { smtp_code: 250, mx: "127.0.0.1" },
      })
      expect(outcome.transcript.join("\n")).toContain(`RCPT TO:<${it.addresses.accepted}>`)
      expect((await it.received()).map((raw) => raw.trimEnd())).toEqual([RAW.trimEnd()])
    })

    test.each([
      ["asks for another try after a temporary refusal", "deferred", "retry"],
      ["reports a permanent refusal as a bounce", "refused", "bounced"],
    ] as const)("%s, with the server's words", async (_, who, status) => {
      await using it = await open()

      const outcome = await it.provider.send(mailTo(it.addresses[who]))
      expect(outcome.status).toBe(status)
      expect(outcome.reason).toBe(outcome.reply.response)
      expect(outcome.reply.smtp_code).toBeGreaterThanOrEqual(400)
      expect(outcome.bounce_subtype === null).toBe(status === "retry")
      expect(await it.received()).toEqual([])
    })

    test("tells the recipients of one message apart", async () => {
      await using it = await open()
      const { accepted, other, deferred, refused } = it.addresses

      const outcome = await it.provider.send(mailTo(refused, accepted, deferred, other))
      const all = [outcome, ...outcome.others].map(({ address: email, status }) => [email, status])
      expect(all).toEqual([
        [refused, "bounced"],
        [accepted, it.success],
        [deferred, "retry"],
        [other, it.success],
      ])
      expect(await it.received()).toHaveLength(1)
    })

    test("goes on after a refusal, one message after another and many at once", async () => {
      await using it = await open()
      const { accepted, refused } = it.addresses

      const turns = [refused, accepted, refused, accepted]
      const statuses: string[] = []
      for (const to of turns) statuses.push((await it.provider.send(mailTo(to))).status)
      expect(statuses).toEqual(["bounced", it.success, "bounced", it.success])

      const many = Array.from({ length: 50 }, () => it.provider.send(mailTo(accepted)))
      const outcomes = await Promise.all(many)
      expect(outcomes.filter(({ status }) => status !== it.success)).toEqual([])
      expect(await it.received()).toHaveLength(52)
    })

    test("gives up at some time, and not at the first attempt", async () => {
      await using it = await open()

      const { schedule } = it.provider
      expect(schedule(1, 0)).toBeGreaterThan(0)
      expect(schedule(100, 365 * 24 * 3600)).toBeUndefined()
    })

    test("asks for another try when nobody answers, and after it was closed", async () => {
      const it = await open()
      await it[Symbol.asyncDispose]()

      const outcome = await it.provider.send(mailTo(it.addresses.accepted))
      expect(outcome).toMatchObject({ status: "retry", reply: { smtp_code: null } })
      expect(outcome.reason).toBeTruthy()
      await it.provider.close()
    })

    test("never lets an address or a message become a command", async () => {
      await using it = await open()
      const { accepted } = it.addresses

      const injected = await it.provider.send(mailTo(`a@b.test>\r\nRCPT TO:<${accepted}`))
      expect(injected).toMatchObject({ status: "failed", code: "internal_error" })
      const raw = Buffer.from(`${RAW}\n.\nMAIL FROM:<a@b.test>`)
      const smuggled = await it.provider.send({ ...mailTo(accepted), raw })
      expect(smuggled).toMatchObject({ status: "failed", code: "internal_error" })
      expect(await it.received()).toEqual([])
    })
  })
}
