import { fail } from "../core/errors"
import { type ListParts, listPage } from "../http/page"
import { type AnyRoute, type Call, projectRow, route } from "../http/route"
import type { Caller } from "../identity/caller"
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

type OfScheduled = Call<unknown, unknown, { scheduled_id: string }>

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
      return listPage(
        call,
        cursors,
        scheduled.list(store.read, scope, status),
        scheduled.scheduledRecord,
      )
    },
  }),
  route({
    ...projectRow("GET", ONE, READ),
    summary: "Show one scheduled message",
    description: "The id is the id of the message. `seconds_until_send` counts down to its time.",
    response: schemas.ScheduledDetail,
    handle: async (call: OfScheduled) => {
      const message = await scheduled.find(store.read, scopeOf(call, "read"), idOf(call))
      const seconds_until_send = scheduled.secondsUntilSend(message)
      return { data: { ...scheduled.scheduledRecord(message), seconds_until_send } }
    },
  }),
  route({
    ...projectRow("DELETE", ONE, SEND),
    summary: "Cancel a scheduled message",
    description:
      "The message becomes `failed` with the reason `cancelled`. A message that was released answers 409.",
    response: schemas.ScheduledCancelled,
    errors: ["conflict"],
    handle: async (call: OfScheduled) => {
      const scope = scopeOf(call, "send")
      await scheduled.cancel(store, scope, idOf(call))
      const message = await scheduled.find(store.read, scope, idOf(call))
      return { data: { ...scheduled.scheduledRecord(message), deleted: true as const } }
    },
  }),
]

const idOf = ({ params }: OfScheduled) => params.scheduled_id

/** Throws 403 for a channel that the caller has no scope for. */
function scopeOf(
  { caller, project_id }: Pick<Call, "caller" | "project_id">,
  verb: "read" | "send",
  channel?: ChannelName,
): scheduled.ScheduledScope {
  const granted = OUTGOING_CHANNELS.filter((one) => mayAct(caller, `${one}:${verb}`))
  if (channel === undefined) return { project_id, channels: granted }
  if (!isOutgoing(channel) || granted.includes(channel)) {
    return { project_id, channels: granted.filter((one) => one === channel) }
  }
  const required_scope = `${channel}:${verb}`
  return fail(
    "forbidden",
    `This needs the scope ${required_scope}. Use a key or a role that has it.`,
    {
      required_scope,
    },
  )
}

const mayAct = ({ scopes }: Caller, scope: string) => grants(scopes, scope)
