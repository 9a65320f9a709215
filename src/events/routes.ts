import { type Static, Type as t } from "@sinclair/typebox"
import type { Call } from "../http/call"
import type { Health } from "../http/health"
import { Problems } from "../http/problems"
import { type AnyRoute, route } from "../http/route"
import { nearest } from "../lib/nearest"
import type { Store } from "../store/store"
import * as feed from "./feed"
import { eventTypes, isPattern } from "./registry"

const MOST = 100

const Envelope = t.Object({
  id: t.String(),
  type: t.String(),
  api_version: t.String(),
  created_at: t.String(),
  data: t.Record(t.String(), t.Unknown()),
})

const feedQuery = t.Object({
  after: t.Optional(t.String({ maxLength: 64, description: "The id of the last event seen." })),
  limit: t.Integer({ default: 25, minimum: 1, maximum: MOST }),
  types: t.Optional(
    t.String({ maxLength: 1000, description: "Comma list; `email.*` is allowed." }),
  ),
  wait: t.Integer({ default: 0, minimum: 0, maximum: 25, description: "Seconds to wait." }),
})

type FeedQuery = Static<typeof feedQuery>

export const eventRoutes = (store: Store, health: Health): AnyRoute[] => [
  route<unknown, FeedQuery>({
    method: "GET",
    path: "/v1/events",
    callers: ["key", "console"],
    scope: "webhooks:read",
    status: [200],
    summary: "Events after a known one, oldest first; waits for the first if asked to",
    query: feedQuery,
    response: Envelope,
    handle: (call) => read(store, health, call),
  }),
]

async function read(
  store: Store,
  health: Health,
  { project_id, query, request, signal }: Call<unknown, FeedQuery>,
) {
  const types = typesOf(query.types ?? "")
  const wanted = { after: query.after, limit: query.limit + 1, types }
  const draining = new AbortController()
  const off = health.onDrain(() => draining.abort()) // a poll must not hold up the stop
  const stop = AbortSignal.any([signal, request.signal, draining.signal])
  const wait_ms = query.wait * 1000
  const found = await feed.readWaiting(store.read, project_id, wanted, wait_ms, stop).finally(off)
  const rows = found.slice(0, query.limit)
  const next_after = rows.at(-1)?.id ?? query.after ?? null
  const meta = { next_after, has_more: found.length > query.limit }
  return { data: rows.map(feed.envelopeOf), meta }
}

/** Throws 422 for what is no registered type, no `prefix.*` of one, and not `*`. */
function typesOf(list: string): string[] {
  const types = list.split(",").flatMap((type) => type.trim() || [])
  const problems = new Problems()
  const unknown = types.find((type) => !isPattern(type))
  if (unknown !== undefined) {
    const near = nearest(unknown, NAMES)?.text
    problems.add("types", "invalid", `There is no event type ${unknown}; the nearest is ${near}.`)
  }
  problems.throwIfAny()
  return types
}

const NAMES = eventTypes.map(({ type }) => type)
