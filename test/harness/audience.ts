import { asc, eq } from "drizzle-orm"
import { consents } from "../../src/consents/tables"
import { nobody } from "../../src/identity/caller"
import { type CategoryRow, create, type NewCategory } from "../../src/subscribers/categories"
import type { TestProject, TestService } from "./service"

/** Subscribers of the test run, so that each has a name of its own. */
let subscribers = 0

/** A subscriber of the project, made through the API, as the API shows it. */
export async function addSubscriber(project: TestProject, fields: object = {}) {
  subscribers += 1
  const given = { external_id: `person-${subscribers}`, ...fields }
  const { status, text, body } = await project.post("/v1/subscribers", given)
  if (status !== 201) throw new Error(`no subscriber: ${text}`)
  return body.data as { id: string; external_id: string; email: string | null }
}

/** A category of the project. */
export function addCategory(
  { store }: Pick<TestService, "store">,
  { account_id, project_id }: Pick<TestProject, "account_id" | "project_id">,
  name: string,
  fields: Partial<NewCategory> = {},
): Promise<CategoryRow> {
  const caller = { ...nobody("127.0.0.1"), account_id, project_id }
  return store.tx((tx) => create(tx, caller, { name, ...fields }))
}

/** The consent records of a subscriber, in the order of the chain. */
export const chainOfSubscriber = ({ store }: Pick<TestService, "store">, id: string) =>
  store.read
    .select()
    .from(consents)
    .where(eq(consents.subscriber_id, id))
    .orderBy(asc(consents.number))
