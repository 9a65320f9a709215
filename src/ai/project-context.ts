import { desc, eq } from "drizzle-orm"
import type { Reader } from "../store/store"
import { subscribers } from "../subscribers/tables"
import { templates } from "../templates/tables"

const MOST_TEMPLATES = 100
const MOST_SUBSCRIBERS = 50
const MOST_NAMES = 200

/** A key of an API, or a text that wants to instruct a model, is longer or has other characters. */
const NAME = /^(?=.{1,64}$)[\p{L}_][\p{L}\p{N}_-]{0,39}(\.[\p{L}\p{N}_-]{1,40})*$/u

/** What every template of any project is given. */
const FIELDS = "id external_id email phone name avatar_url locale timezone tags".split(" ")
const OTHERS = "project.name project.id unsubscribe_url preferences_url now".split(" ")
const GIVEN = [...FIELDS.map((name) => `subscriber.${name}`), ...OTHERS]

/** A template is given certain fields of a recipient and of a project. Another one is a mistake in a template. */
const MISTAKE = /^(subscriber|project)(\.(?!metadata\.)|$)/

/**
 * The names that the texts of a project can use, and no values: of its newest templates and subscribers, a fixed number
 * of rows of each. With `known` a text of a model is compared; a prompt has `shown`. A key of metadata that one
 * subscriber alone has is only known, because it may be the name of a person. `own` are names that the caller gives.
 */
export async function projectContext(db: Reader, project_id: string, own: string[] = []) {
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
  const used = summaries
    .flatMap(({ summary: { variables, detected_variables: detected } }) => [
      ...variables.map(({ key }) => key),
      ...detected.slice(0, MOST_NAMES),
    ])
    .filter((name) => !MISTAKE.test(name))
  const keys = rows.flatMap(({ metadata }) => Object.keys(metadata))
  const paths = [...Map.groupBy(keys, (key) => `subscriber.metadata.${key}`)]
  const shared = paths.flatMap(([path, users]) => (users.length > 1 ? [path] : []))
  return {
    known: [...own, ...named([...GIVEN, ...paths.map(([path]) => path), ...used])],
    shown: [...own, ...named([...GIVEN, ...shared, ...used])],
  }
}

const named = (names: string[]): string[] =>
  [...new Set(names)].filter((name) => NAME.test(name)).slice(0, MOST_NAMES)
