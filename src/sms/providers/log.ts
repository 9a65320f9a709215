import type { RetrySchedule } from "../../jobs/work-item"
import type { ProviderDescriptor } from "../../providers/provider"
import {
  allows,
  type OutgoingText,
  type SimulatedReport,
  SMS_SETTINGS,
  type SmsContext,
  senderFor,
  type TextAnswer,
  textOutcome,
} from "./provider"

/** The sender of a text for which nothing names one: fictitious, as the numbers of the table. */
export const LOG_SENDER = "+14155550100"

/** In seconds, so that every outcome shows soon. */
const WAITS = [1, 2, 4]

const logSchedule: RetrySchedule = (attempt) => WAITS[attempt - 1]

const REPORT_SECONDS = 1
const REPLY_SECONDS = 2
const SECOND_REPLY_SECONDS = 5

/** What becomes of a text, by the number it goes to. */
interface Play {
  /** Where the text is not taken; absent: it is sent. */
  refusal?(attempt: number): TextAnswer | undefined
  /** `none`: nobody ever tells. */
  report: "delivered" | "undelivered" | "none"
  /** What the person answers, one after the other. */
  replies?: string[]
}

const DELIVERED: Play = { report: "delivered" }

const REFUSED: TextAnswer = {
  meaning: "refused",
  said: "The number cannot receive texts.",
  provider_code: "refused",
}
const THROTTLED: TextAnswer = {
  meaning: "throttled",
  said: "Too many texts at once.",
  provider_code: "throttled",
}
const OUTAGE: TextAnswer = {
  meaning: "outage",
  said: "The provider is out of service.",
  provider_code: "outage",
}

/** Contract 41: every other number gets its text. */
const PLAYS: Readonly<Record<string, Play>> = {
  "+14155550110": { refusal: () => REFUSED, report: "none" },
  "+14155550111": { report: "undelivered" },
  "+14155550112": { report: "none" },
  "+14155550113": {
    refusal: (attempt) => (attempt === 1 ? THROTTLED : undefined),
    report: "delivered",
  },
  "+14155550114": { refusal: () => OUTAGE, report: "none" },
  "+14155550115": { report: "delivered", replies: ["Yes"] },
  "+14155550116": { report: "delivered", replies: ["STOP"] },
  "+14155550117": { report: "delivered", replies: ["STOP", "START"] },
}

/**
 * Sends nothing anywhere: a text is shown in the embedded mailbox, and reports and replies come as those
 * of a real provider would.
 */
export const logProvider: ProviderDescriptor<object, SmsContext, OutgoingText> = {
  name: "log",
  channel: "sms",
  about: "the simulator of texts",
  reports: "what the table of fictitious numbers says, and `delivered` for every other number",
  credentials: {},
  settings: SMS_SETTINGS,
  banner: () => "the simulator of texts",
  fromSettings: () => ({}),
  open: (_, { simulator }, { settings }) => ({
    name: "log",
    schedule: logSchedule,
    takes: ({ to: [number = ""] }) => allows(settings, number),
    async send(text) {
      const [to = ""] = text.to
      const play = PLAYS[to] ?? DELIVERED
      const answer = play.refusal?.(text.attempt)
      if (answer) return textOutcome("log", text, answer, logSchedule)
      const sender = text.from ?? senderFor(settings, to) ?? LOG_SENDER
      await simulator.show(text, sender)
      for (const { in_seconds, ...report } of reportsOf(play, text.message_id, to, sender)) {
        await simulator.report(text, report, in_seconds)
      }
      const sent: TextAnswer = { meaning: "sent", said: null, sender }
      return textOutcome("log", text, sent, logSchedule)
    },
    close: async () => {},
  }),
}

/** A repeated attempt brings the same ids, by which a reply counts once. */
function reportsOf(
  { report, replies = [] }: Play,
  message_id: string,
  person: string,
  to: string,
): (SimulatedReport & { in_seconds: number })[] {
  const told = report === "none" ? [] : [{ in_seconds: REPORT_SECONDS, type: report }]
  const answered = replies.map((text, at) => ({
    in_seconds: REPLY_SECONDS + at * SECOND_REPLY_SECONDS,
    received: { provider_message_id: `${message_id}-${at + 1}`, from: person, to, text },
  }))
  return [...told, ...answered]
}
