import { and, asc, count, eq, gt, isNull, lt } from "drizzle-orm"
import { getTableConfig, type SQLiteColumn, type SQLiteTable } from "drizzle-orm/sqlite-core"
import { consents, unsubscribeLinks } from "../consents/tables"
import { newId } from "../core/ids"
import { millis, now } from "../core/time"
import { domains } from "../domains/tables"
import { events } from "../events/tables"
import { fanOuts } from "../fan-out/tables"
import { ACCOUNT_DEFAULTS } from "../identity/caller"
import { accountMembers, accounts, apiKeys, projects } from "../identity/tables"
import { inboundEmails, inboundRoutes } from "../inbound/tables"
import { mailboxMails } from "../mailbox/tables"
import { messages } from "../messages/tables"
import { defaultPlan } from "../plans/plans"
import { INSTANCE, providerConfigs } from "../providers/tables"
import { signingKeys } from "../signing-keys/tables"
import { shownId } from "../store/id-bytes"
import type { StandIn } from "../store/recover/lost-rows"
import type { Reader, Store, Tx } from "../store/store"
import { categories, subscribers } from "../subscribers/tables"
import { suppressions } from "../suppressions/tables"
import { templates } from "../templates/tables"
import { INSTANCE_SLUG } from "../tenancy/projects"
import { invitations } from "../tenancy/tables"
import { topics } from "../topics/tables"
import { webhooks } from "../webhooks/tables"

type OwnedTable = SQLiteTable & { project_id: SQLiteColumn; account_id?: SQLiteColumn }

/**
 * Tables whose rows go with their project, and that nothing writes for a project that is gone. Members of a
 * project are not among them: without other rows there is nothing that they could read.
 */
const OF_PROJECTS: OwnedTable[] = [
  ...[apiKeys, messages, events, domains, webhooks, providerConfigs, templates, fanOuts],
  ...[inboundEmails, mailboxMails, suppressions, consents, unsubscribeLinks, subscribers],
  ...[topics, categories, inboundRoutes, signingKeys],
]

const OF_ACCOUNTS = [projects, accountMembers, invitations]

/** Rows of one table whose project or account is missing. */
export interface RowsWithoutOwner {
  table: string
  owner: "project" | "account"
  owner_id: string
  rows: number
}

/** Rows that no key and no list reaches, and that retention does not see. It reads an index of each table. */
export async function* rowsWithoutOwner(db: Reader): AsyncGenerator<RowsWithoutOwner> {
  for (const table of OF_PROJECTS)
    yield* withoutOwner(db, table.project_id, { owner: "project", of: projects.id })
  for (const { account_id } of OF_ACCOUNTS)
    yield* withoutOwner(db, account_id, { owner: "account", of: accounts.id })
}

async function* withoutOwner(
  db: Reader,
  named: SQLiteColumn,
  { owner, of }: { owner: "project" | "account"; of: SQLiteColumn },
): AsyncGenerator<RowsWithoutOwner> {
  // The instance itself owns mail of the project "", and providers of the project `INSTANCE`.
  const orphaned = and(isNull(of), gt(named, ""), lt(named, INSTANCE))
  const all = db.select({ owner_id: named, rows: count() }).from(named.table)
  const rows = await all.leftJoin(of.table, eq(of, named)).where(orphaned).groupBy(named)
  const { name: table } = getTableConfig(named.table as SQLiteTable)
  for (const row of rows)
    yield { table, owner, owner_id: String(row.owner_id), rows: Number(row.rows) }
}

/** What stands in the place of a lost project or account. */
export interface Placeholder {
  table: "projects" | "accounts"
  id: string
  /** Those that name it. */
  rows: number
}

/**
 * Makes a project and an account for rows whose own are lost, so that keys, lists and retention reach them again.
 * Their settings are lost, and nothing may go that they kept, so a placeholder keeps everything for ten years.
 */
export async function makePlaceholders(store: Store): Promise<Placeholder[]> {
  const found = await Array.fromAsync(rowsWithoutOwner(store.read))
  return store.tx(async (tx) => {
    const made: Placeholder[] = []
    for (const [id, rows] of rowsByOwner(found, "account"))
      if (await makeAccount(tx, id)) made.push({ table: "accounts", id, rows })
    for (const [id, rows] of rowsByOwner(found, "project")) {
      const account_id = (await accountOf(tx, id)) ?? newId()
      const is_new = await makeAccount(tx, account_id)
      if (is_new) made.push({ table: "accounts", id: account_id, rows: 1 })
      await makeProject(tx, id, account_id)
      made.push({ table: "projects", id, rows })
    }
    return made
  })
}

function rowsByOwner(found: RowsWithoutOwner[], owner: RowsWithoutOwner["owner"]) {
  const rows = new Map<string, number>()
  for (const one of found) {
    if (one.owner === owner) rows.set(one.owner_id, (rows.get(one.owner_id) ?? 0) + one.rows)
  }
  return rows
}

/** What the rows of a lost project say of its account. */
async function accountOf(tx: Tx, id: string): Promise<string | undefined> {
  for (const { project_id, account_id } of OF_PROJECTS) {
    if (!account_id) continue
    const rows = tx.select({ account_id }).from(account_id.table).where(eq(project_id, id))
    const [row] = await rows.orderBy(asc(account_id)).limit(1)
    if (row && row.account_id !== "") return String(row.account_id)
  }
  return undefined
}

/** Whether the account was missing. */
async function makeAccount(tx: Tx, id: string): Promise<boolean> {
  const row = { ...namesOf("account", id), plan: defaultPlan(), settings: ACCOUNT_DEFAULTS }
  const states = { status: "active", sending_status: "active" } as const
  const made = await tx
    .insert(accounts)
    .values({ id, ...row, ...states, created_at: now(), updated_at: now() })
    .onConflictDoNothing()
    .returning({ id: accounts.id })
  return made.length > 0
}

async function makeProject(tx: Tx, id: string, account_id: string) {
  const [account] = await tx.select().from(accounts).where(eq(accounts.id, account_id))
  const is_instance = account?.slug === INSTANCE_SLUG
  const names = is_instance
    ? { name: "Belfry", slug: INSTANCE_SLUG, hidden: true }
    : { ...namesOf("project", id), hidden: false }
  const times = { created_at: now(), updated_at: now() }
  const settings = { retention: KEEPING }
  await tx
    .insert(projects)
    .values({ id, account_id, ...names, ...times, status: "active", settings })
}

/** The most that the setting `retention` allows. */
const KEEPING = {
  messages_days: 3650,
  bodies_days: 3650,
  inbound_days: 3650,
  webhook_deliveries_days: 3650,
  events_days: 3650,
}

const LAST_CHARACTERS = 12

const namesOf = (noun: "project" | "account", id: string) => ({
  name: `Recovered ${noun}`,
  slug: `recovered-${id.slice(-LAST_CHARACTERS)}`,
})

/** The same account as a row of SQLite: a project keeps its settings although its account is lost. */
export const accountStandIn: StandIn = (id) => ({
  id,
  ...namesOf("account", shownId(id)),
  plan: defaultPlan(),
  settings: JSON.stringify(ACCOUNT_DEFAULTS),
  status: "active",
  sending_status: "active",
  created_at: millis(),
  updated_at: millis(),
})
