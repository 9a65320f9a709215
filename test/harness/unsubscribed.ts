import { asc, eq } from "drizzle-orm"
import { consents } from "../../src/consents/tables"
import type { UnsubscribeScope } from "../../src/consents/unsubscribe-links"
import { keepLinks } from "../../src/consents/unsubscribe-links"
import { events } from "../../src/events/tables"
import { suppressions } from "../../src/suppressions/tables"
import type { TestProject, TestService } from "./service"

/** The link that mail of one kind to one address carries, as accept keeps it. */
export async function linkTo(
  { parts, store }: TestService,
  { project_id }: Pick<TestProject, "project_id">,
  key = "news",
  { address = "ann@example.test", type = "category" }: LinkChoice = {},
): Promise<string> {
  const about = { project_id, address, scope: { type, key: type === "broadcast" ? null : key } }
  const token = parts.rules.unsubscribe.tokenFor(about)
  await store.tx((tx) => keepLinks(tx, [{ token, ...about }]))
  return token
}

interface LinkChoice {
  address?: string
  type?: UnsubscribeScope["type"]
}

/** Everything of a project that following a link may change, without ids and times. */
export async function unsubscribedIn({ store }: TestService, { project_id }: TestProject) {
  const db = store.read
  const ended = await db
    .select()
    .from(suppressions)
    .where(eq(suppressions.project_id, project_id))
    .orderBy(asc(suppressions.id))
  const chain = await chainOf({ store }, project_id)
  const told = await db
    .select()
    .from(events)
    .where(eq(events.project_id, project_id))
    .orderBy(asc(events.id))
  return {
    ended: ended.map(({ address, reason, origin, scope_type, scope_key }) =>
      [address, reason, origin, scope_type, scope_key].join(" "),
    ),
    consents: chain.map(({ address, scope_key, action, source }) =>
      [address, scope_key, action, source].join(" "),
    ),
    events: told.filter(({ type }) => /^(subscriber|suppression)\./.test(type)),
  }
}

/** The consent records of a project, in the order of their making. */
export const chainOf = ({ store }: Pick<TestService, "store">, project_id: string) =>
  store.read
    .select()
    .from(consents)
    .where(eq(consents.project_id, project_id))
    .orderBy(asc(consents.address), asc(consents.number))
