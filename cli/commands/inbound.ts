import type { AnswerOf } from "../../src/client/client"
import type { Components } from "../../src/client/components"
import { attachments, html, text } from "../lib/body-flags"
import type { Action, Context } from "../lib/context"
import { exits, Failure, usage } from "../lib/errors"
import { flag, type OptionWords, type PlainOptions } from "../lib/field-flags"
import { SINCE } from "../lib/flags"
import { inboundColumns, inboundText } from "../lib/inbound-text"
import { given } from "../lib/input"
import { listed, saveFile } from "../lib/mail-files"
import { deletes, own, row } from "../lib/resource"
import { ago, type Columns, idColumn, wide } from "../lib/table"
import { cleanText } from "../lib/terminal"
import { millis, moment, pause } from "../lib/time"
import { queued } from "./emails-send"

interface WaitOptions {
  to: string
  since?: string
  extract?: string
}

const WAIT_MILLISECONDS = 30_000

/** Of one request; the server allows no more. */
const LONGEST_SECONDS = 25

const PAUSE_MILLISECONDS = 200

/** Beside the wait itself, for the way to the server and back. */
const SLACK_MILLISECONDS = 5000

/** Asks again and again until the time is over. With --extract the code alone is printed. */
const wait: Action<WaitOptions> = async (context, options) => {
  const { to, since } = options
  const extract = formOf(options.extract)
  const limit = context.timeout ?? WAIT_MILLISECONDS
  const deadline = millis() + limit
  const query = given({ to, since: since && moment(since, "--since"), extract })
  const client = context.client(LONGEST_SECONDS * 1000 + SLACK_MILLISECONDS)
  while (true) {
    const left = Math.max(0, Math.ceil((deadline - millis()) / 1000))
    const timeout = Math.min(left, LONGEST_SECONDS)
    const asked = { query: { ...query, to, timeout } }
    const { data } = await client.call("GET /v1/inbound-emails/wait", asked)
    const is_found = data && (extract === undefined || data.extracted !== null)
    if (is_found) return await told(context, data, extract !== undefined)
    if (millis() >= deadline) throw nothingCame(context, options, limit, data?.id)
    await pause(PAUSE_MILLISECONDS) // a server that stops answers before the time is over
  }
}

function formOf(text: string | undefined): "otp" | "link" | undefined {
  if (text === undefined || text === "otp" || text === "link") return text
  throw usage(`--extract: "${text}" is not one of otp and link`)
}

type Awaited = NonNullable<AnswerOf<"GET /v1/inbound-emails/wait">["data"]>

async function told(context: Context, mail: Awaited, is_code: boolean): Promise<number> {
  const { output, paint } = context
  const { extracted } = mail
  const wants_json = context.flags.json !== undefined || output.form === "ndjson"
  if (is_code && extracted !== null && !wants_json) {
    await output.raw(`${context.terminal.out ? cleanText(extracted) : extracted}\n`)
  } else await output.record(mail, () => inboundText(mail, paint))
  return exits.done
}

function nothingCame(
  { output }: Context,
  { to, extract }: WaitOptions,
  limit: number,
  id: string | undefined,
): Failure {
  const what = extract === "link" ? "link" : "code"
  const message = id
    ? `The newest mail to ${to} has no ${what} that could be found.`
    : `No mail to ${to} came within ${limit / 1000} s.`
  const hint = `\`${output.again(id ? `belfry inbound get ${id}` : "belfry inbound list")}\` shows what came in`
  const details = { to, limit_ms: limit, ...(id && { inbound_id: id }) }
  return new Failure(exits.failed, "timeout", message, { details, hint })
}

type InboundRoute = Components["InboundRoute"]

const columns: Columns<InboundRoute> = {
  ID: idColumn("inbound_route"),
  MATCH: wide(({ match }) => match.to, "last"),
  ACTION: "action",
  TARGET: wide(({ target }) => target),
  PRIORITY: "priority",
  AGE: ago(({ created_at }) => created_at),
}

const PRIORITY = "0 to 1000; the lowest number decides first"

const ACTIONS = ["webhook", "forward", "drop"] as const

const ACTION_FLAGS: readonly OptionWords[] = [
  ["--webhook <id>", "send the event to this endpoint alone; all for every endpoint"],
  ["--forward <address>", "send the mail to this address"],
  ["--drop", "keep the mail, and make no event"],
]

const actionsIn = (options: PlainOptions) => ACTIONS.filter((one) => options[one] !== undefined)

const ONE_ACTION = "give one of --webhook, --forward and --drop"

/** The action is the name of its flag, and the target its value. */
function actionOf(options: PlainOptions) {
  const [action] = actionsIn(options)
  const value = action && options[action]
  const target = typeof value === "string" && value !== "all" ? value : null
  return action ? { action, target } : {}
}

export const inboundRouteRows = [
  row("list", "GET /v1/inbound-routes", {
    columns,
  }),
  row("create <match>", "POST /v1/inbound-routes", {
    about: "make a route for an address; its local part may be * or end with +*",
    word: "'support+*@in.acme.test'",
    example: ["--webhook all", "--forward kim@acme.test --priority 10"],
    flags: { action: false, target: false, priority: `${PRIORITY} (default: 100)` },
    options: ACTION_FLAGS,
    refuse: (options) => (actionsIn(options).length === 1 ? undefined : ONE_ACTION),
    input: (options, [to]) => ({ match: { to }, ...actionOf(options) }),
    done: ({ id, match }) => `created the route ${id} for ${match.to}`,
  }),
  row("get <id>", "GET /v1/inbound-routes/{route_id}"),
  row("update <id>", "PATCH /v1/inbound-routes/{route_id}", {
    about: "change a route; values without a flag stay",
    example: "--drop",
    flags: {
      ...{ action: false, target: false, priority: PRIORITY },
      "match.to": flag(["--match <address>", "address, or pattern of addresses"]),
    },
    options: ACTION_FLAGS,
    refuse: (options) => (actionsIn(options).length > 1 ? ONE_ACTION : undefined),
    input: actionOf,
    done: ({ id }) => `changed ${id}`,
  }),
  row("rm <id>", "DELETE /v1/inbound-routes/{route_id}", {
    ...deletes((id) => `The route ${id} will be deleted now.`),
  }),
]

/** From this server, whatever host the signed address names. */
async function save(context: Context, { id, url }: Components["InboundFileLink"], path: string) {
  const token = new URL(url).pathname.split("/").at(-1) ?? ""
  const bytes = await context.call("GET /v1/files/{token}", { params: { token } })
  await saveFile(context, { id, bytes, path })
}

const attachmentRow = row("", "GET /v1/inbound-emails/{inbound_id}/attachments/{attachment_id}", {
  print: (context, { data }, { saveAs }) =>
    typeof saveAs === "string" ? save(context, data, saveAs) : undefined,
  shown: ({ url }) => url,
})

export const inboundRows = [
  row("list", "GET /v1/inbound-emails", {
    about: "list received mail, newest first; for reports, also what they say",
    example: ["--to support@in.acme.test --since 1d", "--kind dmarc_report", "--kind bounce"],
    aliases: { thread_id: "thread" },
    columns: (_, { kind }) => inboundColumns(typeof kind === "string" ? kind : undefined),
    next: ([first]) => first && `inbound get ${first.id}`,
  }),
  row("get <id>", "GET /v1/inbound-emails/{inbound_id}", {
    about: "show one received mail with its verdicts and its text",
    shown: inboundText,
    next: ({ id, attachments }) =>
      attachments.length > 0 ? `inbound attachments ${id}` : undefined,
  }),
  row("forward <id>", "POST /v1/inbound-emails/{inbound_id}/forward", {
    about: "send a received mail with its attachments to another address",
    example: "--to kim@acme.test",
    flags: {
      to: "recipient of the mail",
      from: "sender (default: the address that received the mail)",
    },
    done: ({ status, id }) => `${status}  ${id}`,
    next: ({ id }) => `emails tail ${id}`,
  }),
  row("redeliver <id>", "POST /v1/inbound-emails/{inbound_id}/redeliver", {
    done: ({ deliveries }) =>
      `planned ${deliveries.length} ${deliveries.length === 1 ? "delivery" : "deliveries"}`,
    brief: ({ deliveries }) => deliveries.map(({ id }) => id).join("\n"),
    next: ({ deliveries: [first] }) =>
      first && `webhooks deliveries ${first.webhook_id} ${first.id}`,
  }),
  row("rm <id>", "DELETE /v1/inbound-emails/{inbound_id}", {
    about: "delete a received mail with its files",
    ...deletes((id) => `The received mail ${id} will be deleted now.`),
  }),
  own("wait", wait, {
    about: "wait for a mail and print it, or its code; exit 1 at --timeout (default: 30s)",
    example: [
      "--to ann@in.acme.test --since 1m --timeout 60s --json=id,text_body",
      "--to ann@in.acme.test --since 1m --extract otp",
    ],
    options: [
      ["--to <address>", "recipient of the mail", "required"],
      SINCE,
      ["--extract <form>", "print only the code or the link of the mail: otp or link"],
    ],
  }),
  row("reply <id>", "POST /v1/inbound-emails/{inbound_id}/reply", {
    about: "send a reply in the thread of a received mail; a file named `-` is stdin",
    example: ['--text "It left this morning."', "--text-file - --attach invoice.pdf < answer.txt"],
    flags: {
      ...{ text, html, attachments },
      from: "sender (default: the address that received the mail)",
      subject: "subject (default: Re: and the old subject)",
    },
    refuse({ text, textFile, html, htmlFile }) {
      if ([text, textFile, html, htmlFile].some((given) => given !== undefined)) return undefined
      return "give the reply with --text, --html or a file"
    },
    ...queued,
  }),
  row("raw <id>", "GET /v1/inbound-emails/{inbound_id}/raw", {
    about: "print a received mail as it came in (RFC 5322)",
    example: "> mail.eml",
  }),
  row("attachments <id> [attachment]", "GET /v1/inbound-emails/{inbound_id}", {
    about: "list the attachments of a received mail, or show one with its signed address",
    example: ["", "0 --save-as invoice.pdf"],
    ...listed("inbound"),
    instead: (_, { length }) => length > 1 && attachmentRow,
  }),
]
