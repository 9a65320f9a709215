import type { AnswerOf } from "../../src/client/client"
import { readsFrames } from "../lib/authoring-stream"
import * as texts from "../lib/authoring-text"
import { body } from "../lib/body-flags"
import type { Context } from "../lib/context"
import { type FieldFlags, flag, type PlainOptions } from "../lib/field-flags"
import { wholeNumber } from "../lib/input"
import { type DataOf, type PlainFlags, type Resource, row } from "../lib/resource"
import { wrote } from "./templates"

/** A server ends a call to a model within 120 s; the rest is the way. */
export const LONGEST = 130_000

const OF_MODEL = {
  time_limit: LONGEST,
  /** A key does not tell its project, and people may have only one. */
  async input(_: PlainOptions, __: readonly string[], { call }: Context) {
    return { project_id: (await call("GET /v1/ai/entitlement")).data.project_id }
  },
}

const CHANNEL: FieldFlags = {
  options: [["--channel <channel>", "channel: email, push, sms or in_app (default: email)"]],
  read: ({ channel = "email" }) => channel,
}

const WRITING: PlainFlags = {
  ...{ project_id: false, channel: CHANNEL },
  locale: "language to write in, as a BCP 47 tag",
  variables: flag(["--variable <name>", "variable of the text; may be repeated", "several"]),
}

/** With `--save`, creates the draft by the same request as `templates create`. People publish it later. */
async function saveDraft(context: Context, { data }: Drafted, { save: name }: PlainOptions) {
  if (typeof name !== "string") return
  const { output, paint } = context
  const { channel, variables, name: _, ...all } = data.template
  const written = Object.entries(all).filter(([, text]) => text !== null)
  const channels = { [channel]: Object.fromEntries(written) }
  const request = { body: { name, draft: true, channels, variables } }
  const made = ((await context.client().send("POST /v1/templates", request)) as Created).data
  if (readsFrames(context)) return await output.line({ event: "saved", data: made }, String)
  if (output.form === "json") return
  await output.record(made, () => `\n${paint.green("✓")} ${wrote(made)}`)
  await output.next(`belfry templates render ${name}`)
}

type Drafted = AnswerOf<"POST /v1/ai/templates/draft">
type Created = AnswerOf<"POST /v1/templates">

/** Shows the advice by rules that a refusal may carry. */
async function showRefused({ output, paint }: Context, details: Partial<Analysis>) {
  const { advisory, metadata } = details
  if (output.form !== "human" || !advisory || !metadata) return
  await output.raw(`${texts.advisoryText({ advisory, metadata }, paint)}\n\n`)
}

type Analysis = DataOf<"POST /v1/ai/broadcasts/analyze">

export const authoring: Resource = {
  noun: "ai",
  about: "let a model write and advise; nothing is sent by it",
  example: ["ai draft 'Your order has shipped' --save shipped", "ai usage"],
  rows: [
    row("suggest", "POST /v1/ai/subjects/suggest", {
      ...OF_MODEL,
      about: "suggest five subjects for a text, the best first",
      example: "--body-file receipt.html",
      flags: {
        ...{ project_id: false, channel: CHANNEL },
        template_body: body("body", "text that the subject is for"),
      },
      shown: texts.suggestionText,
    }),
    row("draft <brief>", "POST /v1/ai/templates/draft", {
      ...OF_MODEL,
      streams: true,
      about: "draft a template, and show it as it is written",
      word: "'Tell a customer that the order has shipped'",
      example: ["--variable first_name --save shipped", "--channel sms --tone friendly"],
      flags: WRITING,
      options: [["--save <name>", "store it as a template with this name, not yet published"]],
      shown: texts.draftText,
      after: saveDraft,
    }),
    row("rewrite <instruction>", "POST /v1/ai/templates/rewrite", {
      ...OF_MODEL,
      streams: true,
      about: "write one block of a template in another way",
      word: "'Make it shorter'",
      example: "--content 'We are happy to tell you that your order has shipped.'",
      flags: {
        ...WRITING,
        max_length: "longest content, in characters",
        "block.type": {
          options: [
            ["--type <type>", "heading, paragraph, button, list or html (default: paragraph)"],
          ],
          read: ({ type = "paragraph" }) => type,
        },
        "block.content": body("content", "text of the block"),
      },
      shown: texts.blockText,
    }),
    row("workflow <description>", "POST /v1/ai/workflows/generate", {
      ...OF_MODEL,
      streams: true,
      about: "write a workflow; --json prints it for a file",
      word: "'Welcome a new user, and remind them after two days'",
      example: ["", "--json=workflow"],
      flags: { project_id: false },
      shown: texts.workflowText,
    }),
    row("analyze", "POST /v1/ai/broadcasts/analyze", {
      ...OF_MODEL,
      streams: true,
      about: "advise on a draft before it is sent to many; works without a model, too",
      example: "--subject 'Our winter sale' --body-file sale.html --topic product-news",
      flags: {
        ...{ project_id: false, "draft.channel": CHANNEL },
        "draft.subject": flag(["--subject <text>", "subject of the draft", "required"]),
        "draft.body": body("body", "text of the draft"),
        "draft.topic_key": {
          options: [["--topic <topic>", "topic whose subscribers get it"]],
          read: ({ topic = null }) => topic,
        },
        "draft.audience_size_estimate": flag(
          ["--audience <number>", "how many people get it, as an estimate"],
          wholeNumber,
        ),
      },
      refused: showRefused,
      shown: texts.advisoryText,
    }),
    row("usage", "GET /v1/ai/usage", {
      about: "show what a month cost and how many calls it had, by action and tier",
      example: ["", "--period 2026-11"],
      flags: { project_id: false },
      shown: texts.spendingText,
    }),
    row("entitlement", "GET /v1/ai/entitlement", {
      about: "show what the plan allows, and whether the server has a model",
      flags: { project_id: false },
      values: ({ quotas, used }) => ({
        quotas: Object.fromEntries(
          Object.entries(quotas).map(([action, limit]) => [
            action,
            `${used[action as keyof typeof used]} of ${texts.limitText(limit)}`,
          ]),
        ),
        ...{ used: null, project_id: null },
      }),
    }),
  ],
}
