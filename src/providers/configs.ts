import { and, count as counted, eq, type SQL } from "drizzle-orm"
import type * as audit from "../audit-log/audit-log"
import { fail, tooMany } from "../core/errors"
import { isUuid, newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { forUpdate } from "../store/dialect"
import { type Keyset, newestFirst } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { callbackHash, callbackToken } from "./callbacks"
import {
  type ConfigSettings,
  changedSettings,
  type SettingsChange,
  shownSettings,
  tell,
} from "./config-record"
import { openCredentials, publicFields, sealCredentials } from "./credentials"
import { enqueueResumed, HEALTHY } from "./health"
import {
  type Credentials,
  findDescriptor,
  type ProviderDescriptor,
  type ProviderKind,
} from "./provider"
import { type ConfigRow, providerConfigs } from "./tables"

export interface NewProviderConfig {
  kind: ProviderKind
  provider: string
  name: string
  priority: number
  credentials: Credentials
  settings: ConfigSettings
}

export interface ProviderConfigChange {
  name?: string
  priority?: number
  enabled?: boolean
  credentials?: Credentials
  settings?: SettingsChange
}

/** As a change is written: its settings are all there are. */
type WrittenChange = Omit<ProviderConfigChange, "settings"> & { settings?: ConfigSettings }

interface ConfigOwner {
  account_id: string
  project_id: string
}

interface ConfigMaker {
  secrets: Secrets
  table: readonly ProviderDescriptor[]
  by: audit.By
}

/** Of one kind: a message may have to ask them all. */
const MOST_CONFIGS = 20

/**
 * The same provider and name replaces: `made` tells which of the two it was. Throws 409 `conflict`
 * where the project has too many.
 */
export async function set(
  tx: Tx,
  owner: ConfigOwner,
  wanted: NewProviderConfig,
  maker: ConfigMaker,
) {
  const before = await named(tx, owner, wanted)
  if (before) {
    const { priority, credentials, settings } = wanted
    const change = { priority, credentials, settings, enabled: true }
    return { made: false, row: await change_(tx, before, change, maker) }
  }
  if ((await count(tx, owner.project_id, wanted.kind)) >= MOST_CONFIGS) {
    const text = `A project may have at most ${MOST_CONFIGS} providers of one kind. Delete one first.`
    tooMany(text, MOST_CONFIGS)
  }
  const row = freshRow(owner, wanted, maker)
  const added = await tx.insert(providerConfigs).values(row).onConflictDoNothing().returning()
  if (added.length === 0) return set(tx, owner, wanted, maker) // another node was quicker
  await tell(tx, maker.by, "provider.created", { after: row })
  await enqueueResumed(tx, row.project_id)
  return { made: true, row }
}

function freshRow(
  owner: ConfigOwner,
  wanted: NewProviderConfig,
  { secrets, table }: ConfigMaker,
): ConfigRow {
  const { kind, provider, name, priority, credentials, settings } = wanted
  const descriptor = findDescriptor(table, kind, provider)
  const id = newId()
  const moment = now()
  return {
    id,
    ...owner,
    kind,
    provider,
    name,
    priority,
    enabled: true,
    ...HEALTHY,
    credentials: sealCredentials(secrets, id, credentials),
    settings: keptSettings(descriptor, settings, credentials),
    callback_token_hash: descriptor?.callbacks
      ? callbackHash(callbackToken(secrets, { id, ...owner }))
      : null,
    created_at: moment,
    updated_at: moment,
  }
}

const keptSettings = (
  descriptor: ProviderDescriptor | undefined,
  settings: ConfigSettings,
  credentials: Credentials,
) => ({ ...settings, ...(descriptor && publicFields(descriptor, credentials)) })

/** What is absent stays, of the settings too. Throws 409 `conflict` for a name that another one has. */
export async function patch(
  tx: Tx,
  owner: ConfigOwner,
  config: { kind: ProviderKind; id: string },
  change: ProviderConfigChange,
  maker: ConfigMaker,
) {
  const before = await findForUpdate(tx, owner.project_id, config)
  if (change.name !== undefined && change.name !== before.name) {
    const other = await named(tx, owner, { ...before, name: change.name })
    if (other) {
      const text = `The project already has a configuration ${change.name} of ${before.provider}. Give another name.`
      fail("conflict", text, { reason: "name", id: other.id })
    }
  }
  const { settings, ...rest } = change
  const wanted = { ...rest, ...(settings && { settings: changedSettings(before, settings) }) }
  return change_(tx, before, wanted, maker)
}

/** New credentials end a pause; so does being asked to go on. */
async function change_(
  tx: Tx,
  before: ConfigRow,
  wanted: WrittenChange,
  { secrets, by, table }: ConfigMaker,
) {
  const { credentials, settings, ...plain } = wanted
  const { callback_account } = before.settings
  const descriptor = findDescriptor(table, before.kind, before.provider)
  const known = () => openCredentials(secrets, before)
  const after: ConfigRow = {
    ...before,
    ...plain,
    ...(credentials && { credentials: sealCredentials(secrets, before.id, credentials) }),
    ...((settings || credentials) && {
      settings: {
        ...keptSettings(descriptor, settings ?? shownSettings(before), credentials ?? known()),
        // With other credentials it may be another account.
        ...(!credentials && callback_account !== undefined && { callback_account }),
      },
    }),
    ...((credentials || plain.enabled) && HEALTHY),
    updated_at: now(),
  }
  await tx.update(providerConfigs).set(after).where(eq(providerConfigs.id, before.id))
  await tell(tx, by, "provider.updated", { before, after }, credentials !== undefined)
  await enqueueResumed(tx, after.project_id)
  return after
}

/**
 * Waiting messages go on with the providers that are left. Receipts stay until their messages are
 * deleted: there may be millions, and without the configuration none of them is looked up.
 */
export async function remove(
  tx: Tx,
  owner: ConfigOwner,
  config: { kind: ProviderKind; id: string },
  by: audit.By,
) {
  const row = await findForUpdate(tx, owner.project_id, config)
  await tx.delete(providerConfigs).where(eq(providerConfigs.id, row.id))
  await tell(tx, by, "provider.deleted", { before: row })
  await enqueueResumed(tx, row.project_id)
}

interface ConfigPart extends Keyset {
  limit: number
  offset: number
}

/** Newest first. */
export function list(
  db: Reader,
  project_id: string,
  kind: ProviderKind | undefined,
  { limit, offset, ...stretch }: ConfigPart,
) {
  const { where, order } = newestFirst(id, stretch)
  const rows = db
    .select()
    .from(providerConfigs)
    .where(and(matching(project_id, kind), where))
  return rows.orderBy(order).limit(limit).offset(offset)
}

export async function count(db: Reader, project_id: string, kind: ProviderKind | undefined) {
  const rows = db.select({ all: counted() }).from(providerConfigs)
  const [row] = await rows.where(matching(project_id, kind))
  return row?.all ?? 0
}

/** Throws 404. */
export async function find(
  db: Reader,
  project_id: string,
  { kind, id: config_id }: { kind?: ProviderKind; id: string },
): Promise<ConfigRow> {
  const ours = and(matching(project_id, kind), eq(id, config_id))
  const rows = isUuid(config_id) ? await db.select().from(providerConfigs).where(ours) : []
  return rows[0] ?? gone()
}

async function findForUpdate(
  tx: Tx,
  project_id: string,
  { kind, id: config_id }: { kind: ProviderKind; id: string },
): Promise<ConfigRow> {
  const ours = and(matching(project_id, kind), eq(id, config_id))
  const query = () => forUpdate(tx.select().from(providerConfigs).where(ours))
  const [row] = isUuid(config_id) ? await query() : []
  return row ?? gone()
}

const gone = () => fail("not_found", "There is no such provider configuration.")

async function named(
  tx: Tx,
  { project_id }: ConfigOwner,
  { kind, provider, name }: Pick<ConfigRow, "kind" | "provider" | "name">,
) {
  const same = and(eq(providerConfigs.provider, provider), eq(providerConfigs.name, name))
  const query = tx
    .select()
    .from(providerConfigs)
    .where(and(matching(project_id, kind), same))
  const [row] = await forUpdate(query)
  return row
}

const { id } = providerConfigs

const matching = (project_id: string, kind: ProviderKind | undefined): SQL | undefined =>
  and(eq(providerConfigs.project_id, project_id), kind ? eq(providerConfigs.kind, kind) : undefined)
