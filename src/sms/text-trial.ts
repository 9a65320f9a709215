import { invalid, Problems } from "../core/errors"
import { newId } from "../core/ids"
import { readPhone } from "../lib/phone"
import { smsSegments } from "../lib/sms-segments"
import { ProviderError } from "../providers/provider"
import { checked, sent, type Trial, type TrialSubject } from "../providers/try-provider"
import { type OutgoingText, UNCONFIRMED } from "./providers/provider"

/** Logs in at a provider of texts or, with `to`, sends a text through it, from the sender of its configuration. */
export async function textTrial(
  _: unknown,
  { row, project_id }: TrialSubject,
  to: string | undefined,
): Promise<Trial> {
  if (to === undefined) return checked
  const problems = new Problems()
  readPhone(to, "to", problems)
  problems.throwIfAny()
  const text = `This text is a test of ${row.provider} (${row.name}). It arrived, so the provider works.`
  const message: OutgoingText = {
    ...{ message_id: newId(), project_id, to: [to], from: null, text, attempt: 1 },
    encoding: smsSegments(text).encoding,
  }
  return async (provider) => {
    if (provider.takes?.(message) === false) {
      const reason = "country_not_allowed"
      throw invalid("to", reason, NOT_ALLOWED, { field: "to", reason })
    }
    const { words, outcome } = await sent(provider, message, "a text")
    // Nobody knows whether the text was taken, so it is no success and ends no pause.
    if (outcome.reason === UNCONFIRMED) {
      throw new ProviderError("connection", outcome.reply.response ?? UNCONFIRMED)
    }
    return words
  }
}

const NOT_ALLOWED =
  "The setting `allowed_countries` of this provider does not name the country of the number."
