import type { KeyName, Loaded } from "../core/config"
import { log } from "../core/log"
import { forgetPlans } from "../plans/plans"

/** What is read at each use. Everything else was decided when the server started. */
const takesEffect = (key: KeyName) =>
  /^(ai|inbound|log|plans|reputation|tls)\./.test(key) || /\.trusted_proxies$/.test(key)

/**
 * Reads the configuration again, applies what can change in a running server, and logs the rest as
 * "restart_needed". A configuration that is not valid is logged, and nothing changes.
 */
export function reload(current: Loaded): void {
  const next = readAgain(current)
  if (!next) return
  const changed = current
    .all()
    .map(({ key }) => key)
    .filter((key) => !isSame(current.values[key], next.values[key]))
  const applied = changed.filter(takesEffect)
  for (const key of applied) Object.assign(current.values, { [key]: next.values[key] })
  forgetPlans()
  const restart_needed = changed.filter((key) => !takesEffect(key))
  log.warn(restart_needed.length > 0 ? PARTLY : WHOLLY, { applied, restart_needed })
}

const WHOLLY = "SIGHUP came. The server read its configuration again."
const PARTLY =
  "SIGHUP came. The server read its configuration again. Some changes take effect only after a restart: see restart_needed."
const REFUSED = "SIGHUP came. The configuration is not valid, so nothing changed."

function readAgain(current: Loaded): Loaded | undefined {
  try {
    return current.again()
  } catch (error) {
    const faults = error instanceof Error && "faults" in error ? error.faults : undefined
    log.error(REFUSED, faults === undefined ? { error } : { faults })
    return undefined
  }
}

/** Values are texts, numbers and lists of them. */
const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)
