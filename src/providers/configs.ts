import { and, eq, type SQL } from "drizzle-orm"
import type * as audit from "../audit-log/audit-log"
import { conflict, fail, tooMany } from "../core/errors"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { noun } from "../identity/noun"
import { fieldsOf } from "../lib/record-fields"
import { forUpdate } from "../store/columns"
import type { RowList } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { callbackHash, callbackPath, callbackToken, INSTANCE_NAME } from "./callbacks"
import { noteChange, type OpenedConfig } from "./change-mail"
import { masked, openCredentials, publicFields, sealCredentials } from "./credentials"
import { enqueueResumed, HEALTHY } from "./health"
import {
  type Credentials,
  findDescriptor,
  type ProviderDescriptor,
  type ProviderKind,
} from "./provider"
import {
  type ConfigSettings,
  knownSettings,
  type ProviderConfig,
  providerConfig,
  type SettingsChange,
} from "./schemas"
import { type ConfigRow, INSTANCE, providerConfigs } from "./tables"

export interface NewProviderConfig
  extends Pick<ConfigRow, "kind" | "provider" | "name" | "priority"> {
  credentials: Credentials
  settings: ConfigSettings
}

export interface ProviderConfigChange
  extends Partial<Pick<ConfigRow, "name" | "priority" | "enabled">> {
  credentials?: Credentials
  settings?: SettingsChange
}

/** As a change is written: its settings are all there are. */
type WrittenChange = Omit<ProviderConfigChange, "settings"> & { settings?: ConfigSettings }

type ConfigOwner = Pick<ConfigRow, "account_id" | "project_id">

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
): Promise<{ made: boolean; row: ConfigRow }> {
  const before = await named(tx, owner, wanted)
  if (before) {
    const { priority, credentials, settings } = wanted
    const change = { priority, credentials, settings, enabled: true }
    return { made: false, row: await change_(tx, before, change, maker) }
  }
  const row = await add(tx, owner, wanted, maker)
  return row ? { made: true, row } : set(tx, owner, wanted, maker) // another node was quicker
}

/** Undefined where the project has one of this name. Throws as `set`. */
export async function add(
  tx: Tx,
  owner: ConfigOwner,
  wanted: NewProviderConfig,
  maker: ConfigMaker,
): Promise<ConfigRow | undefined> {
  const others = tx.select({ id }).from(providerConfigs)
  if ((await others.where(matching(owner.project_id, wanted.kind))).length >= MOST_CONFIGS) {
    const text = `A project may have at most ${MOST_CONFIGS} providers of one kind. Delete one first.`
    tooMany(text, MOST_CONFIGS)
  }
  const row = freshRow(owner, wanted, maker)
  const added = await tx.insert(providerConfigs).values(row).onConflictDoNothing().returning()
  if (added.length === 0) return undefined
  await noteChange(tx, maker.by, "created", { after: opened(row, maker.secrets) })
  await enqueueResumed(tx, row.project_id)
  return row
}

function freshRow(
  owner: ConfigOwner,
  wanted: NewProviderConfig,
  { secrets, table }: ConfigMaker,
): ConfigRow {
  const { kind, provider, name, priority, settings } = wanted
  const descriptor = findDescriptor(table, kind, provider)
  const credentials = completed(descriptor, wanted.credentials)
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

const opened = (row: ConfigRow, secrets: Secrets): OpenedConfig => ({
  row,
  credentials: () => openCredentials(secrets, row),
})

const completed = (
  descriptor: ProviderDescriptor | undefined,
  given: Credentials,
  before: () => Credentials = () => ({}),
): Credentials => (descriptor?.complete?.(given, before()) as Credentials | undefined) ?? given

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
      conflict("name", other.id, text)
    }
  }
  const { settings, ...rest } = change
  const descriptor = findDescriptor(maker.table, before.kind, before.provider)
  const changed = settings && changedSettings(shownSettings(before, descriptor), settings)
  const wanted = { ...rest, ...(changed && { settings: changed }) }
  return change_(tx, before, wanted, maker)
}

/** New credentials end a pause; so does being asked to go on. */
async function change_(
  tx: Tx,
  before: ConfigRow,
  wanted: WrittenChange,
  { secrets, by, table }: ConfigMaker,
) {
  const { credentials: given, settings, ...plain } = wanted
  const { callback_account } = before.settings
  const descriptor = findDescriptor(table, before.kind, before.provider)
  const known = () => openCredentials(secrets, before)
  const credentials = given && completed(descriptor, given, known)
  const after: ConfigRow = {
    ...before,
    ...plain,
    ...(credentials && { credentials: sealCredentials(secrets, before.id, credentials) }),
    ...((settings || credentials) && {
      settings: {
        ...keptSettings(
          descriptor,
          settings ?? shownSettings(before, descriptor),
          credentials ?? known(),
        ),
        // With other credentials it may be another account.
        ...(!credentials && callback_account !== undefined && { callback_account }),
      },
    }),
    ...((credentials || plain.enabled) && HEALTHY),
    updated_at: now(),
  }
  await tx.update(providerConfigs).set(after).where(eq(providerConfigs.id, before.id))
  const both = { before: opened(before, secrets), after: opened(after, secrets) }
  await noteChange(tx, by, "updated", both, credentials !== undefined)
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
  await noteChange(tx, by, "deleted", { before: { row, credentials: () => ({}) } })
  await enqueueResumed(tx, row.project_id)
}

const all = noun({ name: "provider_config", table: providerConfigs, missing: () => gone() })

/** Newest first. */
export const list = (
  db: Reader,
  project_id: string,
  kind: ProviderKind | undefined,
): RowList<ConfigRow> => all.list(db, project_id, { indexed: ofKind(kind) })

/** Throws 404. */
export async function find(
  db: Reader,
  project_id: string,
  config: { kind?: ProviderKind; id: string },
): Promise<ConfigRow> {
  const row = await all.find(db, project_id, config.id)
  return config.kind === undefined || row.kind === config.kind ? row : gone()
}

async function findForUpdate(
  tx: Tx,
  project_id: string,
  config: { kind: ProviderKind; id: string },
): Promise<ConfigRow> {
  const row = await all.forUpdate(tx, project_id, config.id)
  return row.kind === config.kind ? row : gone()
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

const ofKind = (kind: ProviderKind | undefined): SQL | undefined =>
  kind && eq(providerConfigs.kind, kind)

const matching = (project_id: string, kind: ProviderKind): SQL | undefined =>
  and(eq(providerConfigs.project_id, project_id), ofKind(kind))

/** ProviderConfig of the contract. */
export function toResponse(
  row: ConfigRow,
  { secrets, link_base, table }: Omit<ConfigMaker, "by"> & { link_base: string },
) {
  const token = row.callback_token_hash === null ? null : callbackToken(secrets, row)
  const descriptor = findDescriptor(table, row.kind, row.provider)
  return fieldsOf(providerConfig(table), {
    ...row,
    next_probe_at: row.paused_until,
    credentials: masked(descriptor, openCredentials(secrets, row)),
    settings: shownSettings(row, descriptor),
    callback_url: token && `${link_base}${callbackPath(row)}/${token}`,
  })
}

/**
 * The instance's own provider as a project sees it that has no other, and only while it has trouble:
 * whose messages wait has to see why. What the operator has set up stays theirs.
 */
export function instanceResponse(
  row: ConfigRow | undefined,
  table: readonly ProviderDescriptor[],
): ProviderConfig | undefined {
  if (row?.project_id !== INSTANCE || row.status !== "error") return undefined
  const since = row.trouble_since ?? row.updated_at
  return fieldsOf(providerConfig(table), {
    ...row,
    ...{ id: INSTANCE_NAME, name: INSTANCE_NAME, created_at: since, updated_at: since },
    ...{ next_probe_at: row.paused_until, credentials: {}, settings: {}, callback_url: null },
  })
}

/** Without what is kept there besides. */
const shownSettings = (
  { settings }: ConfigRow,
  descriptor: ProviderDescriptor | undefined,
): ConfigSettings => (descriptor ? knownSettings(descriptor, settings as ConfigSettings) : {})

/** The settings after a change of some. */
function changedSettings(before: ConfigSettings, change: SettingsChange): ConfigSettings {
  const all = Object.entries({ ...before, ...change })
  return Object.fromEntries(all.filter(([, value]) => value !== null))
}
