import { expect, test } from "bun:test"
import { Value } from "@sinclair/typebox/value"
import { newId } from "../../../src/core/ids"
import type { Outcome } from "../../../src/providers/provider"
import { logProvider } from "../../../src/sms/providers/log"
import {
  type OutgoingText,
  type SimulatedReport,
  SMS_SETTINGS,
  type SmsSettings,
  type TextSimulator,
} from "../../../src/sms/providers/provider"
import { providerContract } from "../../contracts/provider"

interface Taken {
  from: string
  reports: (SimulatedReport & { in_seconds: number })[]
}

async function send(to: string, more: Partial<OutgoingText> = {}, settings: SmsSettings = {}) {
  const taken: Taken[] = []
  const simulator: TextSimulator = {
    show: async (_, from) => void taken.push({ from, reports: [] }),
    report: async (_, report, in_seconds) =>
      void taken.at(-1)?.reports.push({ ...report, in_seconds }),
  }
  const opening = { settings: { ...settings }, callbackUrl: () => undefined }
  const provider = logProvider.open({}, { simulator } as never, opening)
  const text: OutgoingText = {
    ...{ message_id: newId(), project_id: newId(), to: [to], from: null, text: "Ding" },
    ...{ encoding: "gsm7", attempt: 1, ...more },
  }
  return { outcome: await provider.send(text), taken }
}

const told = (taken: Taken[]) =>
  taken.flatMap(({ reports }) => reports.map(({ type, received }) => type ?? received?.text))

test.each<[string, string[]]>([
  ["+14155550109", ["delivered"]],
  ["+14155550111", ["undelivered"]],
  ["+14155550112", []],
  ["+14155550115", ["delivered", "Yes"]],
  ["+14155550116", ["delivered", "STOP"]],
  ["+14155550117", ["delivered", "STOP", "START"]],
  ["+4915112345678", ["delivered"]],
])("a text to %s is sent, then comes %p", async (to, reports) => {
  const { outcome, taken } = await send(to)
  expect(outcome).toMatchObject({ status: "sent", provider: "log", sender: "+14155550100" })
  expect(told(taken)).toEqual(reports)
})

test("a reply goes to the sender, five seconds lie between two of them, and a repetition has the same id", async () => {
  const message_id = newId()
  const twice = [
    await send("+14155550117", { from: "Belfry", message_id }),
    await send("+14155550117", { from: "Belfry", message_id }),
  ]
  const replies = twice.map(({ taken }) => taken[0]?.reports.slice(1))
  expect(replies[0]).toMatchObject([
    { received: { from: "+14155550117", to: "Belfry", text: "STOP" } },
    { received: { from: "+14155550117", to: "Belfry", text: "START" } },
  ])
  const [stop, start] = replies[0] ?? []
  expect((start?.in_seconds ?? 0) - (stop?.in_seconds ?? 0)).toBe(5)
  expect(replies[0]).toEqual(replies[1] as never)
})

const waits = ({ schedule }: Outcome) => [1, 2, 3, 4].map((attempt) => schedule(attempt, 0))

test("one number is refused, one is throttled once, and one is never reached", async () => {
  const refused = await send("+14155550110")
  expect(refused.outcome).toMatchObject({ status: "failed", code: "provider_error" })
  expect(refused.outcome.fault).toBeUndefined()
  const busy = await send("+14155550113")
  expect(busy.outcome).toMatchObject({ status: "retry", held: true })
  expect(waits(busy.outcome)).toEqual([1, 2, 4, undefined])
  expect(told((await send("+14155550113", { attempt: 2 })).taken)).toEqual(["delivered"])
  for (const attempt of [1, 2, 3, 4]) {
    const { outcome, taken } = await send("+14155550114", { attempt })
    expect([outcome.status, outcome.fault, taken]).toEqual(["retry", "infrastructure", []])
  }
})

test.each<[string, Partial<OutgoingText>, SmsSettings, string]>([
  ["the one of the text", { from: "Shop" }, { from: "+14155550104" }, "Shop"],
  ["the one of the country", {}, { from: "+1", per_country_from: { "+49": "Laden" } }, "Laden"],
  ["the one of the configuration", {}, { from: "+14155550104" }, "+14155550104"],
])("the sender is %s", async (_, more, settings, sender) => {
  const { outcome, taken } = await send("+4915112345678", more, settings)
  expect([outcome.sender, taken[0]?.from]).toEqual([sender, sender])
})

test("a configuration takes no text to a country that it does not allow", () => {
  const open = (settings: SmsSettings) =>
    logProvider.open({}, {} as never, { settings: { ...settings }, callbackUrl: () => undefined })
  const takes = (settings: SmsSettings) => open(settings).takes?.({ to: ["+43660"] } as never)
  expect([{}, { allowed_countries: ["+43"] }, { allowed_countries: ["+49"] }].map(takes)).toEqual([
    ...[true, true, false],
  ])
})

providerContract(logProvider as never, async () => {
  const text = (to: string): OutgoingText => ({
    ...{ message_id: newId(), project_id: newId(), to: [to], from: null, text: "Ding" },
    ...{ encoding: "gsm7", attempt: 1 },
  })
  const simulator: TextSimulator = { show: async () => {}, report: async () => {} }
  return {
    credentials: {},
    context: { simulator },
    messages: {
      accepted: text("+14155550109"),
      deferred: text("+14155550114"),
      refused: text("+14155550110"),
    },
    success: "sent" as const,
    [Symbol.asyncDispose]: async () => {},
  }
})

test("the senders of countries are named by prefixes alone", () => {
  const { schema } = SMS_SETTINGS.per_country_from
  const cases = [{}, { "+43": "Acme" }, { "43": "Acme" }, { x: "Acme" }, { "+43": "" }]
  expect(cases.map((one) => Value.Check(schema, one))).toEqual([true, true, false, false, false])
})
