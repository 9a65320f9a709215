import { Type as t } from "@sinclair/typebox"
import { fail } from "../core/errors"
import { type Cursors, listPage, pageQuery } from "../http/page"
import { type AnyRoute, consoleRow, type Method, projectRow, route } from "../http/route"
import type { Caller } from "../identity/caller"
import { recordInAccounts } from "../identity/users"
import { count, flag, text } from "../lib/record-fields"
import { listInMemory } from "../store/rows"
import type { Store } from "../store/store"
import type { OnPauseChange, QueuePauses } from "./holds"
import * as longJobs from "./long-jobs"
import { Job } from "./schemas"

const ONE = "/v1/jobs/{job_id}"

const jobRow = <const Path extends string>(method: Method, path: Path) => ({
  ...projectRow(method, path, "-"),
  response: Job,
})

export const longJobRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    ...jobRow("GET", ONE),
    summary: "Show the progress and the result of a long job",
    description:
      "A request that begins long work answers 201 with a job. Ask again until `status` is `completed`, `failed` or `cancelled`. Operators also read the jobs of the instance, such as a backup.",
    handle: async ({ project_id, params, caller }) => ({
      data: await longJobs.find(store.read, project_id, params.job_id, caller.operator),
    }),
  }),
  route({
    ...jobRow("POST", `${ONE}/cancel`),
    summary: "Cancel a long job",
    description: "Finished work stays. A job that has ended answers 409.",
    errors: ["conflict"],
    handle: async ({ project_id, params, caller }) => ({
      data: await store.tx((tx) => longJobs.cancel(tx, project_id, params.job_id, caller.operator)),
    }),
  }),
]

const Queue = t.Object(
  {
    queue: text("email"),
    depth: count(12, "Jobs that wait, also for a later time or for the end of a pause."),
    oldest_seconds: count(4),
    running: count(3),
    failed_24h: count(0),
    paused: flag(false),
  },
  { title: "Queue" },
)

const QUEUES = "/v1/admin/queues"

export interface QueueControlParts {
  queues: QueuePauses
  cursors: Cursors
}

const queueRow = <const Path extends string>(method: Method, path: Path) => ({
  ...consoleRow(method, path, "role:operator"),
  response: Queue,
})

export const queueControlRoutes = ({ queues, cursors }: QueueControlParts): AnyRoute[] => [
  route({
    ...queueRow("GET", QUEUES),
    summary: "List the queues of this instance, with waiting, running, failed and paused work",
    description: "Only for operators. Counts of long queues may be some seconds old.",
    query: pageQuery({}),
    handle: async (call) => {
      const all = (await queues.list()).map((line) => ({ ...line, id: line.queue }))
      const rows = listInMemory(all, {
        nameOf: ({ id }) => id,
        order: "rising",
        missing: (name) => fail("not_found", `There is no queue ${name}.`),
      })
      return listPage(call, cursors, rows, ({ id: _, ...line }) => line)
    },
  }),
  route({
    ...queueRow("POST", `${QUEUES}/{queue}/pause`),
    errors: ["conflict"],
    summary: "Begin nothing more of a queue (`email`), or of one domain (`email:example.com`)",
    description:
      "The server finishes the work that is running, and keeps waiting work until `resume`.",
    handle: async ({ params, caller }) => ({
      data: await queues.pause(params.queue, caller.user_id, notifyAccounts(caller)),
    }),
  }),
  route({
    ...queueRow("POST", `${QUEUES}/{queue}/resume`),
    errors: ["conflict"],
    summary: "Resume a paused queue or domain",
    description:
      "The server continues the waiting work at once. `held_after_restore` is there while work of a restored copy is held, and resuming it sends all of that.",
    handle: async ({ params, caller }) => ({
      data: await queues.resume(params.queue, notifyAccounts(caller)),
    }),
  }),
]

/** A pause concerns everybody, so each account of the operator records it. */
const notifyAccounts =
  (caller: Caller): OnPauseChange =>
  async (tx, action, queue) => {
    const entry = { action, target: { type: "queue", id: queue } }
    if (caller.user_id) await recordInAccounts(tx, caller.user_id, caller, entry)
  }
