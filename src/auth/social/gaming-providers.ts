import { type Static, Type as t } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import { fail, invalid, Problems } from "../../core/errors"
import { newId } from "../../core/ids"
import type { Secrets } from "../../core/secrets"
import { noun, type ProjectActor } from "../../identity/noun"
import { fieldsOf, flag, maybe, rarely, text, time, word } from "../../lib/record-fields"
import { maskedText, secretText } from "../../providers/credentials"
import type { Reader, Tx } from "../../store/store"
import * as applications from "../applications"
import { targetFields } from "../auth-rows"
import type { AuthEnvironment } from "../environments"
import { ENVIRONMENT_NAMES } from "../tables"
import { GAMING_PROVIDERS, type GamingProvider, gamingProviders } from "./tables"

type GamingProviderRow = typeof gamingProviders.$inferSelect

const MOST_BUNDLES = 50

/** The GamingConfig of the contract (52, section 2). */
export const GamingConfig = t.Object(
  {
    provider: word(GAMING_PROVIDERS),
    environment: word(ENVIRONMENT_NAMES),
    enabled: flag(true),
    bundle_ids: t.Array(text("com.example.game")),
    team_id: maybe(text("DEF123GHIJ")),
    client_id: rarely(text("1234-abcd.apps.googleusercontent.com")),
    client_secret: rarely(text("****9Xyz")),
    updated_at: time(),
  },
  { title: "GamingConfig" },
)

export const GamingInput = t.Object({
  environment: targetFields.environment,
  enabled: t.Boolean(),
  bundle_ids: t.Optional(
    t.Array(t.String({ pattern: "^[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)+$", maxLength: 155 }), {
      ...{ minItems: 1, maxItems: MOST_BUNDLES },
      description: "The games of `game-center` whose players are let in.",
    }),
  ),
  team_id: t.Optional(
    t.String({
      ...{ pattern: "^\\S+$", maxLength: 64 },
      description: "The developer's team, for `game-center`.",
    }),
  ),
  client_id: t.Optional(
    t.String({
      ...{ pattern: "^\\S+$", maxLength: 255 },
      description: "The OAuth client of the game server, for `play-games`.",
    }),
  ),
  client_secret: t.Optional({
    ...secretText(512),
    description: "The secret of that client. Without it the stored one is kept.",
  }),
})

type GamingWish = Static<typeof GamingInput>

/** Throws 422 `validation_error` where a field is missing that the platform needs. */
export function requireFields(provider: GamingProvider, given: GamingWish): void {
  const problems = new Problems()
  for (const field of NEEDED[provider])
    if (given[field] === undefined) problems.add(field, "required", needs(provider, field))
  problems.throwIfAny()
}

const NEEDED = {
  "game-center": ["bundle_ids", "team_id"],
  "play-games": ["client_id"],
} as const satisfies Record<GamingProvider, (keyof GamingWish)[]>

const needs = (provider: GamingProvider, field: string) => `${provider} needs the field ${field}.`

const noPlatform = (): never =>
  fail("not_found", "This environment has no such platform of games. Set it up first.")

const gamingProvider = noun({
  name: "gaming_provider",
  table: gamingProviders,
  missing: noPlatform,
})

/** A platform of an environment. */
interface GamingPlace {
  environment: AuthEnvironment
  provider: GamingProvider
}

/** Undefined where the environment has none. */
export async function lookup(
  db: Reader,
  { environment: { id, project_id }, provider }: GamingPlace,
): Promise<GamingProviderRow | undefined> {
  const own = and(ofProject(project_id), eq(gamingProviders.environment_id, id))
  const wanted = and(own, eq(gamingProviders.provider, provider))
  const [row] = await db.select().from(gamingProviders).where(wanted)
  return row
}

const ofProject = (project_id: string) => eq(gamingProviders.project_id, project_id)

/** Sets a platform up, or changes it as a whole; an absent secret keeps the stored one. Throws 422 without any. */
export async function put(
  tx: Tx,
  secrets: Secrets,
  by: ProjectActor,
  place: GamingPlace,
  given: GamingWish,
): Promise<GamingProviderRow> {
  const { environment, provider } = place
  const { id: environment_id, application } = environment
  await applications.forUpdate(tx, by.project_id, application.id)
  const before = await lookup(tx, place)
  const id = before?.id ?? newId()
  const wanted = { ...columnsOf(provider, given), ...sealed(secrets, id, provider, given, before) }
  if (before) return gamingProvider.update(tx, by, before, wanted)
  const own = { id, application_id: application.id, environment_id, provider }
  return gamingProvider.insert(tx, by, { ...own, ...wanted })
}

/** What other platforms need is left out. */
const columnsOf = (provider: GamingProvider, given: GamingWish) => {
  const { enabled, bundle_ids = [], team_id = null, client_id = null } = given
  return provider === "game-center"
    ? { enabled, bundle_ids: [...new Set(bundle_ids)], team_id, client_id: null }
    : { enabled, bundle_ids: [], team_id: null, client_id }
}

function sealed(
  secrets: Secrets,
  id: string,
  provider: GamingProvider,
  { client_secret }: GamingWish,
  before: GamingProviderRow | undefined,
): Pick<GamingProviderRow, "client_secret"> {
  if (provider === "game-center") return { client_secret: null }
  if (client_secret !== undefined)
    return { client_secret: secrets.seal(client_secret, contextOf(id)) }
  if (before?.client_secret) return { client_secret: before.client_secret }
  throw invalid("client_secret", "required", needs(provider, "client_secret"))
}

/** The players of the platform sign in no more. Throws 404. Resolves with the row's id. */
export async function remove(tx: Tx, by: ProjectActor, place: GamingPlace): Promise<string> {
  await applications.forUpdate(tx, by.project_id, place.environment.application.id)
  const row = (await lookup(tx, place)) ?? noPlatform()
  await gamingProvider.remove(tx, by, row)
  return row.id
}

/** The platforms of an application's environments, by environment and name. */
export async function list(db: Reader, secrets: Secrets, environments: AuthEnvironment[]) {
  const places = environments.flatMap((environment) =>
    GAMING_PROVIDERS.map((provider) => ({ environment, provider })),
  )
  const rows = await Promise.all(places.map((place) => lookup(db, place)))
  return places.flatMap(({ environment }, at) => {
    const row = rows[at]
    return row ? [toResponse(secrets, environment, row)] : []
  })
}

/** The record of the contract. */
export const toResponse = (secrets: Secrets, { name }: AuthEnvironment, row: GamingProviderRow) =>
  fieldsOf(GamingConfig, {
    ...row,
    environment: name,
    client_secret: row.client_secret && maskedText(openSecret(secrets, row)),
  })

/** Throws SecretError for another master key. */
export const openSecret = (
  secrets: Secrets,
  { id, client_secret }: Pick<GamingProviderRow, "id" | "client_secret">,
): string => secrets.open(client_secret ?? "", contextOf(id))

const contextOf = (id: string) => `gaming_providers:${id}:client_secret`
