import type { Failure } from "./junit"

/** Words of the failures of nothing-lost.ts. */
export const LOST = "acknowledged and lost"
export const TWICE = "came twice"

/** Tests that promise it in their names say it in any failure of theirs, whatever its words are. */
const PROMISES = /\b(lost|loses?|twice|acknowledged|each once|exactly once|kill(s|ed)?)\b/

/** Whether a failure says, or may say, that something acknowledged was lost or came twice. */
export function isLoss({ file, name, message }: Failure): boolean {
  return PROMISES.test(`${file} ${name}`) || message.includes(LOST) || message.includes(TWICE)
}

const MOST_FILES = 3

export interface Failed<Group> extends Failure {
  group: Group
}

/**
 * The files that are run once more, alone: those of which no failure is a loss. None at all where more
 * files failed than may be flaky.
 */
export function onceMore<Group>(failures: Failed<Group>[]): { file: string; group: Group }[] {
  const groups = [...new Set(failures.map(({ group }) => group))]
  const files = groups.flatMap((group) => {
    const own = failures.filter((one) => one.group === group)
    return [...Map.groupBy(own, ({ file }) => file)].map(([file, all]) => ({ file, group, all }))
  })
  if (files.length > MOST_FILES) return []
  return files.flatMap(({ all, ...one }) => (all.some(isLoss) ? [] : one))
}
