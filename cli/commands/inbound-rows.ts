import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import { inboundColumns, inboundText } from "../lib/inbound-text"
import { asks, type PlainOptions, row } from "../lib/resource"
import { ago, type Columns, idColumn, wide } from "../lib/table"

/** Received mail: the commands that are plain. */
export const inboundRows = [
  row("list", "GET /v1/inbound-emails", {
    about: "list received mail, newest first; of reports, what they say",
    example: ["--to support@in.acme.test --since 1d", "--kind dmarc_report", "--kind bounce"],
    aliases: { thread_id: "thread" },
    flags: { thread_id: "show only mail of this conversation" },
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
    about: "send the event of a received mail to the webhook endpoints again",
    done: ({ deliveries }) =>
      `planned ${deliveries.length} ${deliveries.length === 1 ? "delivery" : "deliveries"}`,
    brief: ({ deliveries }) => deliveries.map(({ id }) => id).join("\n"),
    next: ({ deliveries: [first] }) =>
      first && `webhooks deliveries ${first.webhook_id} ${first.id}`,
  }),
  row("rm <id>", "DELETE /v1/inbound-emails/{inbound_id}", {
    about: "delete a received mail with its files",
    example: "--yes",
    confirm: asks((id) => `The received mail ${id} will be deleted now.`, "delete"),
    done: ({ id }) => `deleted ${id}`,
  }),
]

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

const withActions = (command: Command): Command =>
  command
    .option("--webhook <id>", "send the event to this endpoint alone; all for every endpoint")
    .option("--forward <address>", "send the mail to this address")
    .option("--drop", "keep the mail, and make no event")

const actionsIn = (options: PlainOptions) => ACTIONS.filter((one) => options[one] !== undefined)

const ONE_ACTION = "give one of --webhook, --forward and --drop"

/** The action is the name of its flag, and the target its value. */
function routeBody(options: PlainOptions, [word]: readonly string[]) {
  const to = options.match ?? word
  const [action] = actionsIn(options)
  const value = action && options[action]
  const target = typeof value === "string" && value !== "all" ? value : null
  return { ...(to !== undefined && { match: { to } }), ...(action && { action, target }) }
}

/** What happens with mail to an address. */
export const inboundRouteRows = [
  row("list", "GET /v1/inbound-routes", {
    about: "list the routes of received mail, newest first",
    columns,
  }),
  row("create <match>", "POST /v1/inbound-routes", {
    about: "make a route for an address; its local part may be * or end with +*",
    word: "'support+*@in.acme.test'",
    example: ["--webhook all", "--forward kim@acme.test --priority 10"],
    flags: { action: false, target: false, priority: `${PRIORITY} (default: 100)` },
    options: withActions,
    refuse: (options) => (actionsIn(options).length === 1 ? undefined : ONE_ACTION),
    body: routeBody,
    done: ({ id, match }) => `created the route ${id} for ${match.to}`,
  }),
  row("get <id>", "GET /v1/inbound-routes/{route_id}"),
  row("update <id>", "PATCH /v1/inbound-routes/{route_id}", {
    about: "change a route; values without a flag stay",
    example: "--drop",
    flags: { action: false, target: false, priority: PRIORITY },
    options: (command) =>
      withActions(command.option("--match <address>", "address, or pattern of addresses")),
    refuse: (options) => (actionsIn(options).length > 1 ? ONE_ACTION : undefined),
    body: (options) => routeBody(options, []),
    done: ({ id }) => `changed ${id}`,
  }),
  row("rm <id>", "DELETE /v1/inbound-routes/{route_id}", {
    about: "delete a route",
    example: "--yes",
    confirm: asks((id) => `The route ${id} will be deleted now.`, "delete"),
    done: ({ id }) => `deleted ${id}`,
  }),
]
