import { and, count, eq, gt, isNull, lt } from "drizzle-orm"
import { getTableConfig, type SQLiteColumn, type SQLiteTable } from "drizzle-orm/sqlite-core"
import { consents, unsubscribeLinks } from "../consents/tables"
import { domains } from "../domains/tables"
import { events } from "../events/tables"
import { fanOuts } from "../fan-out/tables"
import { accountMembers, accounts, apiKeys, projects } from "../identity/tables"
import { inboundEmails, inboundRoutes } from "../inbound/tables"
import { mailboxMails } from "../mailbox/tables"
import { messages } from "../messages/tables"
import { INSTANCE, providerConfigs } from "../providers/tables"
import { signingKeys } from "../signing-keys/tables"
import type { Reader } from "../store/store"
import { categories, subscribers } from "../subscribers/tables"
import { suppressions } from "../suppressions/tables"
import { templates } from "../templates/tables"
import { invitations } from "../tenancy/tables"
import { topics } from "../topics/tables"
import { webhooks } from "../webhooks/tables"

/**
 * Tables whose rows go with their project, and that nothing writes for a project that is gone. Members of a
 * project are not among them: without other rows there is nothing that they could read.
 */
const OF_PROJECTS = [
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
