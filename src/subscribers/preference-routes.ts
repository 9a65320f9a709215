import { type AnyRoute, type Call, type Method, projectRow, route } from "../http/route"
import { reachabilityOf, refuseUnknownNames, shownNow } from "../operations/reachability"
import type { Store } from "../store/store"
import { choose, chooseDefault } from "./chosen-preferences"
import { find, findForUpdate } from "./find-subscriber"
import {
  EXAMPLE,
  mergedPreferences,
  Preferences,
  PreferencesBody,
  type PreferencesChange,
  Reachability,
  reachabilityQuery,
  readPreferences,
} from "./preferences-input"

interface PreferenceParts {
  store: Store
}

const ONE = "/v1/subscribers/{subscriber_id}" as const
const OWN = `${ONE}/preferences` as const
const DEFAULT = "/v1/subscribers/preferences/default"

const by = <const Path extends string>(method: Method, path: Path) =>
  projectRow(method, path, method === "GET" ? "subscribers:read" : "subscribers:write")

const written = {
  body: PreferencesBody,
  example: EXAMPLE,
  read: readPreferences,
  response: Preferences,
}

const MERGED =
  "Choices that the body does not name stay, and null forgets one. An unknown category or topic is 422."

export const preferenceRoutes = (parts: PreferenceParts): AnyRoute[] => [
  ...defaultRoutes(parts),
  ...ownRoutes(parts),
  reachabilityRoute(parts),
]

const defaultRoutes = ({ store }: PreferenceParts): AnyRoute[] => [
  route({
    ...by("GET", DEFAULT),
    summary: "Show what holds for subscribers without a choice",
    description: "The quiet hours are those of the settings.",
    response: Preferences,
    handle: async ({ project_id, caller }) => {
      const { default_preferences, quiet_hours } = caller.project_settings
      return {
        data: await shownNow(store.read, project_id, { ...default_preferences, quiet_hours }),
      }
    },
  }),
  route({
    ...by("PUT", DEFAULT),
    ...written,
    summary: "Replace what holds for subscribers without a choice",
    description:
      "Belfry forgets choices that the body leaves out. `quiet_hours` is the setting of that name.",
    handle: async ({ project_id, caller, body }) => {
      const chosen = mergedPreferences(null, body)
      await store.tx(async (tx) => {
        await refuseUnknownNames(tx, project_id, body)
        await chooseDefault(tx, caller, chosen)
      })
      return { data: await shownNow(store.read, project_id, chosen) }
    },
  }),
]

const ownRoutes = ({ store }: PreferenceParts): AnyRoute[] => [
  route({
    ...by("GET", OWN),
    summary: "Show what a subscriber chose",
    description: "Where nothing was chosen, the default preferences of the project hold.",
    response: Preferences,
    errors: ["subscriber_not_found"],
    handle: async ({ project_id, params }) => {
      const { preferences } = await find(store.read, project_id, params.subscriber_id)
      return { data: await shownNow(store.read, project_id, preferences) }
    },
  }),
  ...(["POST", "PATCH", "PUT"] as const).map((method) =>
    route({
      ...by(method, OWN),
      ...written,
      ...CHANGES[method],
      errors: ["subscriber_not_found"],
      handle: (call) => changed(store, call, method === "PUT" ? "replace" : "merge"),
    }),
  ),
]

const CHANGES = {
  POST: { summary: "Change what a subscriber chose", description: MERGED },
  PATCH: { summary: "Change what a subscriber chose: another name of POST", description: MERGED },
  PUT: {
    summary: "Replace what a subscriber chose",
    description:
      "Belfry forgets choices that the body leaves out. An unknown category or topic is 422.",
  },
}

async function changed(
  store: Store,
  { project_id, caller, params, body }: Call<PreferencesChange, unknown, { subscriber_id: string }>,
  mode: "merge" | "replace",
) {
  const chosen = await store.tx(async (tx) => {
    await refuseUnknownNames(tx, project_id, body)
    const subscriber = await findForUpdate(tx, project_id, params.subscriber_id)
    const before = mode === "merge" ? subscriber.preferences : null
    const after = mergedPreferences(before, body)
    await choose(tx, caller, subscriber, after)
    return after
  })
  return { data: await shownNow(store.read, project_id, chosen) }
}

const reachabilityRoute = ({ store }: PreferenceParts): AnyRoute =>
  route({
    ...by("GET", `${ONE}/reachability`),
    summary: "Show by which channels a subscriber would get a message now",
    description: "For each channel with the reason, and the time at which that changes by itself.",
    query: reachabilityQuery,
    response: Reachability,
    errors: ["subscriber_not_found"],
    handle: async ({ project_id, caller, params, query }) => {
      const project = { id: project_id, settings: caller.project_settings }
      const { id } = await find(store.read, project_id, params.subscriber_id)
      return { data: await reachabilityOf(store.read, project, id, query.category ?? null) }
    },
  })
