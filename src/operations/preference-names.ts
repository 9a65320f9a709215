import { Problems } from "../core/errors"
import type { ChosenPreferences } from "../lib/preferences"
import type { Reader } from "../store/store"
import { knownCategories } from "../subscribers/categories"
import { shownPreferences } from "../subscribers/chosen-preferences"
import { namesIn, type PreferencesChange, requireKnown } from "../subscribers/preferences-input"
import { keysAmong } from "../topics/topics"

/** Throws 422 for a category or topic that the project does not have. */
export async function refuseUnknownNames(
  db: Reader,
  project_id: string,
  change: PreferencesChange,
): Promise<void> {
  const problems = new Problems()
  requireKnown(change, await knownNames(db, project_id, namesIn(change).topics), problems)
  problems.throwIfAny()
}

/** Preferences as answers show them: without what is about a category or topic that is gone. */
export const shownNow = async (db: Reader, project_id: string, chosen: ChosenPreferences | null) =>
  shownPreferences(chosen, await knownNames(db, project_id, Object.keys(chosen?.topics ?? {})))

const knownNames = async (db: Reader, project_id: string, topics: string[]) => ({
  categories: new Set((await knownCategories(db, project_id)).keys()),
  topics: await keysAmong(db, project_id, topics),
})
