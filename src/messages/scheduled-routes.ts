import { fail } from "../core/errors"
import { type ListParts, listPage } from "../http/page"
import { type AnyRoute, type Call, projectRow, route } from "../http/route"
import { grants } from "../identity/scopes"
import { isOutgoing, OUTGOING_CHANNELS } from "../lib/preferences"
import * as scheduled from "./scheduled"
import * as schemas from "./schemas"
import type { ChannelName } from "./tables"

/** The scope of a caller that may do this with scheduled messages of one channel at least. */
const scopeFor = (verb: "read" | "send") =>
  OUTGOING_CHANNELS.map((channel) => `${channel}:${verb}`).join("|")

const READ = scopeFor("read")
const SEND = scopeFor("send")

const ONE = "/v1/scheduled/{scheduled_id}"

export const scheduledRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...projectRow("GET", "/v1/scheduled", READ),
    summary: "List the scheduled messages, newest first",
    description:
      "The list has the channels that the caller may read. A message leaves the list when it is handed over.",
    query: schemas.scheduledQuery,
    response: schemas.Scheduled,
    handle: (call) => {
      const { channel, status } = call.query
      const scope = scopeOf(call, "read", channel)
      const rows = scheduled.list(store.read, scope, status)
      return listPage(call, cursors, rows, scheduled.toResponse)
    },
  }),
  route({
    ...projectRow("GET", ONE, READ),
    summary: "Show one scheduled message",
    description: "The id is the id of the message. `seconds_until_send` is the time that is left.",
    response: schemas.ScheduledDetail,
    handle: async (call) => {
      const { scheduled_id } = call.params
      const message = await scheduled.find(store.read, scopeOf(call, "read"), scheduled_id)
      const seconds_until_send = scheduled.secondsUntilSend(message)
      return { data: { ...scheduled.toResponse(message), seconds_until_send } }
    },
  }),
  route({
    ...projectRow("DELETE", ONE, SEND),
    summary: "Cancel a scheduled message",
    description:
      "The message becomes `cancelled`, or `failed` with the reason `cancelled` where its channel has no such status. A message that was released answers 409.",
    response: schemas.ScheduledCancelled,
    errors: ["conflict"],
    handle: async (call) => {
      const scope = scopeOf(call, "send")
      const { scheduled_id } = call.params
      await scheduled.cancel(store, scope, scheduled_id)
      const message = await scheduled.find(store.read, scope, scheduled_id)
      return { data: { ...scheduled.toResponse(message), deleted: true as const } }
    },
  }),
]

/** Throws 403 for a channel that the caller has no scope for. */
function scopeOf(
  { caller, project_id }: Pick<Call, "caller" | "project_id">,
  verb: "read" | "send",
  channel?: ChannelName,
): scheduled.ScheduledScope {
  const granted = OUTGOING_CHANNELS.filter((one) => grants(caller.scopes, `${one}:${verb}`))
  if (channel === undefined) return { project_id, channels: granted }
  if (!isOutgoing(channel) || granted.includes(channel)) {
    return { project_id, channels: granted.filter((one) => one === channel) }
  }
  const required_scope = `${channel}:${verb}`
  const message = `This needs the scope ${required_scope}. Use a key or a role that has it.`
  return fail("forbidden", message, { required_scope })
}
