import { afterAll, beforeAll, expect, test } from "bun:test"
import { box } from "./box"

let server: Awaited<ReturnType<typeof box>>
beforeAll(async () => {
  server = await box()
})
afterAll(() => server[Symbol.asyncDispose]())

/** Runs a command with the key of the server. */
const ask = (words: string[], stdin?: string) =>
  server.ann([...words, "--url", server.url, "--api-key", server.api_key], stdin)

async function json<Printed>(words: string[], stdin?: string): Promise<Printed> {
  const { exit, out, err } = await ask(words, stdin)
  expect([words.join(" "), exit, err]).toEqual([words.join(" "), 0, expect.any(String)])
  return JSON.parse(out) as Printed
}

type Text = { id: string; from: string; to: string; body: string; status: string }

async function until<Found>(look: () => Promise<Found>, is: (found: Found) => boolean) {
  for (let n = 0; n < 200; n++) {
    const found = await look()
    if (is(found)) return found
    await Bun.sleep(50)
  }
  throw new Error("it did not come to be")
}

const received = () => json<Text[]>(["sms", "list", "--direction", "inbound"])
const says = (number: string, body: string) => (texts: Text[]) =>
  texts.some((text) => text.from === number && text.body === body)

test("a text is delivered, its answer STOP refuses the next one, and START lifts that", async () => {
  const number = "+14155550117"
  const sent = await json<Text>(["sms", "send", number, "Your table is ready", "--wait"])
  expect(sent).toMatchObject({ status: "delivered", to: number, body: "Your table is ready" })
  await until(received, says(number, "STOP"))
  const refused = await ask(["sms", "send", number, "Are you coming?"])
  expect(JSON.parse(refused.err).error.code).toBe("suppressed_recipient")
  expect(refused.exit).toBe(7)
  await until(received, says(number, "START"))
  const again = await json<Text>(["sms", "send", number, "Welcome back", "--wait"])
  expect(again.status).toBe("delivered")
  const { out } = await ask(["mailbox", "wait", "--to", "14155550117@sms.mailbox.test"])
  expect(out).toContain("Welcome back")
})

test("of a text that is waited for, all fields of the record can be chosen", async () => {
  const words = ["sms", "send", "+14155550100", "Hi", "--wait", "--json=status,provider"]
  expect(await json<Text>(words)).toEqual({ status: "delivered", provider: "log" } as never)
  expect((await ask([...words.slice(0, -1), "--json=nope"])).exit).toBe(2)
})

test("what is not delivered ends with 1, also where no report tells of it in time", async () => {
  const refused = await ask(["sms", "send", "+14155550111", "Hi", "--wait"])
  expect([refused.exit, JSON.parse(refused.out).status]).toEqual([1, "undelivered"])
  const words = ["sms", "send", "+14155550112", "Hi", "--wait", "--timeout", "1s"]
  const silent = await ask(words)
  expect([silent.exit, JSON.parse(silent.out).status]).toEqual([1, "sent"])
})

test("a scheduled text is cancelled, a text from stdin has no last line break", async () => {
  const words = ["sms", "send", "+14155550100", "-", "--schedule-at", "in 1h", "--tag", "a"]
  const { id, body } = await json<Text>(words, "line one\nline two\n")
  expect(body).toBe("line one\nline two")
  expect(await json<Text>(["sms", "cancel", id])).toMatchObject({ status: "cancelled" })
  const [listed] = await json<Text[]>(["sms", "list", "--tag", "a", "--status", "cancelled"])
  expect(listed?.id).toBe(id)
  const explained = await json<{ summary: string }>(["sms", "explain", id])
  expect(explained.summary).toContain("cancelled")
})

test("a batch tells what was refused, and a wrong number is told with its flag", async () => {
  const lines = ['{"to": "+14155550100", "body": "one"}', '{"to": "0660 1", "body": "two"}']
  const { exit, out } = await ask(["sms", "batch", "-"], lines.join("\n"))
  const { succeeded, failed, results } = JSON.parse(out)
  expect([exit, succeeded, failed]).toEqual([8, 1, 1])
  expect(results[1].error.code).toBe("invalid_phone_number")
  const wrong = await ask(["sms", "send", "0660 1234567", "Hi"])
  expect([wrong.exit, JSON.parse(wrong.err).error.code]).toEqual([7, "invalid_phone_number"])
  expect((await ask(["sms", "send", "+14155550100"])).exit).toBe(2)
})

test("segments are counted without sending, and the month has its sums", async () => {
  const counted = await json<object>(["sms", "segments", "-"], `${"“Hi” ".repeat(20)}\n`)
  expect(counted).toMatchObject({ encoding: "ucs2", segments: 2, per_segment: 67 })
  expect(counted).toMatchObject({ gsm7_suggestion: '"Hi" '.repeat(20) })
  const stats = await json<{ total: number; segments: number }>(["sms", "stats"])
  expect(stats.total).toBeGreaterThan(0)
  expect(stats.segments).toBeGreaterThanOrEqual(stats.total)
  for (const period of ["day", "week", "month", "2026-11-01/2026-11-15"]) {
    expect((await ask(["sms", "stats", "--period", period])).exit).toBe(0)
  }
  expect((await ask(["sms", "stats", "--period", "fortnight"])).exit).toBe(7)
})
