import { log } from "../core/log"
import { short } from "../lib/text"
import type { Tx } from "../store/store"
import { current, named, type TriedConfig, write } from "./health"
import type { ReturnPathAnswer } from "./provider"
import type { ConfigRow } from "./tables"

/** Of one relay. Further hosts are asked at each mail, and not told. */
const MOST_HOSTS = 50

type RefusedHosts = Record<string, string>

/** The hosts of our return path that a relay refuses, each with its words. */
export const refusedReturnPaths = ({ settings }: Pick<ConfigRow, "settings">): RefusedHosts =>
  (settings.refused_return_paths as RefusedHosts | undefined) ?? {}

/** Whether a relay says something else than before. */
export const isNews = (config: ConfigRow, { host, refusal }: ReturnPathAnswer): boolean =>
  Object.hasOwn(refusedReturnPaths(config), host) === (refusal === null)

/** Keeps what a relay made of our return path, and tells the log when that changes. Settings that change forget it. */
export async function keepReturnPath(
  tx: Tx,
  tried: TriedConfig,
  answer: ReturnPathAnswer,
): Promise<void> {
  const row = await current(tx, tried)
  if (!row || !isNews(row, answer)) return
  const { host, refusal } = answer
  const { [host]: _, ...others } = refusedReturnPaths(row)
  if (refusal !== null && Object.keys(others).length >= MOST_HOSTS) return
  const refused_return_paths = refusal === null ? others : { ...others, [host]: short(refusal) }
  await write(tx, row, { settings: { ...row.settings, refused_return_paths } })
  tx.afterCommit(() =>
    refusal === null
      ? log.info(TAKEN, { ...named(row), host })
      : log.warn(REFUSED, { ...named(row), host, reason: refusal }),
  )
}

/** For people: what follows from a refusal, and what to do. */
export const refusalText = (host: string, words: string): string =>
  `The relay refuses ${host} as envelope sender: "${words}" ${CONSEQUENCE}`

const CONSEQUENCE =
  "Mail leaves with the author's address, so its bounces do not come here. Allow the host as a sender at the relay, then run `belfry providers test`."

const REFUSED = `A relay refuses our return path. ${CONSEQUENCE}`
const TAKEN = "A relay takes our return path again."
