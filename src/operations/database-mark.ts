import { join } from "node:path"
import { newId } from "../core/ids"
import { log } from "../core/log"
import { readSmallFile, replaceFile, UnusableFile } from "../core/small-file"
import { millis } from "../core/time"
import * as instanceValues from "../store/instance-values"
import type { Store, Tx } from "../store/store"

/** The instance value, and the file in the data folder. */
const MARK = "database_mark"
export const MARK_FILE = "database-mark"

/** How far a database has come: a number that only rises. */
interface DatabaseMark {
  /** Which database: each has an id of its own. */
  database: string
  count: number
}

const markFrom = (text: string | undefined): DatabaseMark | undefined => {
  const [, database, count] = text?.match(/^([0-9a-f-]{36}) (\d{1,15})\s*$/) ?? []
  return database === undefined ? undefined : { database, count: Number(count) }
}

const textOf = ({ database, count }: DatabaseMark) => `${database} ${count}`

/** Throws UnusableFile for a file that is there and holds no mark: then nobody knows what was put back. */
function folderMark(data_dir: string): DatabaseMark | undefined {
  const path = join(data_dir, MARK_FILE)
  const text = readSmallFile(path, WITHOUT_MARK)
  const mark = markFrom(text)
  if (text !== undefined && !mark) throw new UnusableFile(path, "holds no mark", WITHOUT_MARK)
  return mark
}

const WITHOUT_MARK =
  "It shows whether the database was replaced by an older one. If it was not, remove this file: the next start writes " +
  "it anew, and holds what is open until you resume it."

/**
 * Why the database is not the one that this folder knew last: it was put back by hand, so what is open
 * in it may have been sent. Undefined for the database that the folder knows, and for one of an
 * earlier version. On Postgres, a folder that does not know the database belongs to a new node.
 */
export async function whyPutBack(store: Store, data_dir: string): Promise<string | undefined> {
  const here = folderMark(data_dir)
  const mark = markFrom(await instanceValues.find(store.read, MARK))
  if (!mark) return here && "The database has no mark, but its folder has one."
  if (here?.database !== mark.database) {
    return store.isAlone ? "The database comes from another folder." : undefined
  }
  if (mark.count >= here.count) return undefined
  const older = `The database is older than its folder knows it: its mark is ${mark.count}, not ${here.count}.`
  const missing = here.count - mark.count
  if (missing > WEEK_OF_MARKS) return `${older} So more than a week of work may be missing in it.`
  return `${older} So up to ${missing} minutes of work are missing in it.`
}

/** More than these are no minutes any more: a hold raises the mark by a leap, too. */
const WEEK_OF_MARKS = 7 * 24 * 60

/**
 * Raises the mark of the database above the one before, above its folder's and above `above`, and then writes it
 * into the folder, or into `to`, which is to become the folder. Whatever was copied until now is older from here on.
 */
export async function raiseMark(
  store: Store,
  data_dir: string,
  { to = data_dir, above = 0 } = {},
): Promise<void> {
  const here = markToReplace(data_dir)
  const mark = await store.tx(async (tx) => {
    const kept = markFrom(await instanceValues.findForUpdate(tx, MARK))
    const { database, count } = kept ?? { database: newId(), count: 0 }
    const known = here?.database === database ? here.count : 0
    const raised = { database, count: Math.max(count, known, above) + 1 }
    await instanceValues.set(tx, MARK, textOf(raised))
    return raised
  })
  replaceFile(join(to, MARK_FILE), `${textOf(mark)}\n`)
}

/** None where it cannot be read: a file that was spoilt under a running server is written anew. */
function markToReplace(data_dir: string): DatabaseMark | undefined {
  try {
    return folderMark(data_dir)
  } catch (error) {
    if (!(error instanceof UnusableFile)) throw error
    log.warn("the mark of the database is written anew", { error })
    return undefined
  }
}

/**
 * Raises the mark above that of every folder: the open work of the database is held now. A node whose
 * folder knew the database further would otherwise take it for one that was just put back. The mark of a
 * folder rises by less than one in a millisecond, so the present time in milliseconds is above all of them.
 */
export const raiseMarkAboveAll = (store: Store, data_dir: string, to = data_dir): Promise<void> =>
  raiseMark(store, data_dir, { to, above: millis() })

/** Makes the database one that no folder knows: its next start holds what is open. */
export const leaveFolder = (tx: Tx): Promise<void> =>
  instanceValues.set(tx, MARK, textOf({ database: newId(), count: 0 }))

/** As `raiseMark`, at the start and at the end of a server: neither fails where the mark cannot be raised. */
export const tryRaiseMark = (store: Store, data_dir: string): Promise<void> =>
  raiseMark(store, data_dir).catch((error) =>
    log.warn("the mark of the database could not be raised", { error }),
  )
