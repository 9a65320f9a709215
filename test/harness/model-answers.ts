import type { Settings } from "../../src/core/config"
import type { ModelGatewayCall, ModelScript } from "../fakes/model-gateway"

const template = {
  ...{ name: "order-shipped", subject: "{{firstname}}, your order has shipped" },
  html: "<p>Hi {{firstname}},</p><p>your order is on its way.</p>",
  text: "Hi {{firstname}}, your order is on its way.",
  ...{ title: "On its way", body: "Hi {{firstname}}" },
  variables: [{ key: "firstname", type: "string", required: false, description: null }],
}

const steps = [
  ["hello", "Hello", "email", { subject: "Welcome", text: "Good to see you." }],
  ["wait", "Wait", "delay", { amount: 2, unit: "days" }],
  ["reminder", "Reminder", "email", { subject: "Anything open?", text: "We can help." }],
].map(([step_key, name, type, config], position) => ({ step_key, name, type, config, position }))

const suggestions = [1, 2, 3, 4, 5].map((rank) => ({
  ...{ rank, subject: `Your order is on its way (${rank})`, predicted_open_rate: 0.5 - rank / 20 },
  ...{ rationale: "It says what the mail is about.", length: 28, warnings: [] },
}))

export const advisory = {
  ...{ summary: "The offer is clear.", recommended_action: "send_with_caution" },
  ...{ deliverability_risks: [], frequency_conflicts: [], audience_warnings: [] },
  ...{ send_time_suggestions: [], content_notes: [] },
}

/** What a good model says, by a field that only the schema of that answer has. */
const ANSWERS: Readonly<Record<string, object>> = {
  predicted_open_rate: { suggestions },
  step_key: { workflow: { key: "welcome", name: "Welcome", steps } },
  recommended_action: { advisory },
  subject: { template },
  content: { block: { content: "Your order has shipped." } },
}

/** A model that answers each prompt of ours as its schema says, a few letters at a time. */
export function goodModel({ body }: ModelGatewayCall): ModelScript {
  const schema = JSON.stringify(body.response_format ?? body.output_config)
  const [, answer] = Object.entries(ANSWERS).find(([field]) => schema.includes(`"${field}"`)) ?? []
  return { pieces: JSON.stringify(answer).match(/.{1,9}/gsu) ?? [] }
}

/** Settings as the environment has them. */
export const environmentOf = (settings: Partial<Settings>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [
      `BELFRY_${name.toUpperCase().replaceAll(".", "_")}`,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  )
