import { desc, eq } from "drizzle-orm"
import type { Reader } from "../store/store"
import { subscribers } from "../subscribers/tables"
import { wholeSubscriber } from "../subscribers/template-subscriber"
import { templates } from "../templates/tables"

const MOST_TEMPLATES = 100
const MOST_SUBSCRIBERS = 50
const MOST_NAMES = 200

/** A key of an API, or a text that wants to instruct a model, is longer or has other characters. */
const NAME = /^(?=.{1,64}$)[\p{L}_][\p{L}\p{N}_-]{0,39}(\.[\p{L}\p{N}_-]{1,40})*$/u

const FIELDS = Object.keys(wholeSubscriber({ id: "", external_id: "" }))
  .filter((name) => name !== "metadata")
  .map((name) => `subscriber.${name}`)

/** What every template of any project is given. */
const GIVEN = [...FIELDS, "project.name", "project.id", "unsubscribe_url", "preferences_url", "now"]

/** A template is given certain fields of a recipient and of a project. Another one is a mistake in a template. */
const MISTAKE = /^(subscriber|project)(\.(?!metadata\.)|$)/

/** The names that the texts of a project can use. No value is among them. */
export interface ProjectContext {
  /** With them a text of a model is compared. */
  known: string[]
  /**
   * What a prompt may name. A key that one subscriber alone has in their metadata is missing here: such a key may
   * be the name of a person.
   */
  shown: string[]
}

/** Reads the newest templates and subscribers of a project, a fixed number of rows of each. */
export async function projectContext(db: Reader, project_id: string): Promise<ProjectContext> {
  const texts = db.select({ summary: templates.summary }).from(templates)
  const summaries = await texts
    .where(eq(templates.project_id, project_id))
    .orderBy(desc(templates.id))
    .limit(MOST_TEMPLATES)
  const people = db.select({ metadata: subscribers.metadata }).from(subscribers)
  const rows = await people
    .where(eq(subscribers.project_id, project_id))
    .orderBy(desc(subscribers.id))
    .limit(MOST_SUBSCRIBERS)
  const declared = summaries.flatMap(({ summary }) => summary.variables.map(({ key }) => key))
  const detected = summaries.flatMap(({ summary }) =>
    summary.detected_variables.slice(0, MOST_NAMES),
  )
  const used = [...declared, ...detected].filter((name) => !MISTAKE.test(name))
  const own = used.filter((name) => !name.startsWith("subscriber."))
  const keys = rows.flatMap(({ metadata }) => Object.keys(metadata))
  const paths = [...Map.groupBy(keys, (key) => `subscriber.metadata.${key}`)]
  const shared = paths.flatMap(([path, users]) => (users.length > 1 ? [path] : []))
  return {
    known: named([...GIVEN, ...paths.map(([path]) => path), ...used]),
    shown: named([...GIVEN, ...shared, ...own]),
  }
}

const named = (names: string[]): string[] =>
  [...new Set(names)].filter((name) => NAME.test(name)).slice(0, MOST_NAMES)
