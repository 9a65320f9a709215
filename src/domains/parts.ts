import type { Settings } from "../core/config"
import { resolver } from "../core/dns"
import type { Store } from "../store/store"
import type { CheckParts } from "./checking"
import { placeOf } from "./place"

/** Shorter than usual: somebody waits for a check, and every server is asked twice. */
const TRY_MS = 1500

/** What checks need, by the settings. */
export function checkParts(store: Store, settings: Settings): CheckParts {
  const servers = settings["dns.servers"]
  const dns = resolver({ servers, try_ms: TRY_MS })
  return { store, net: { dns, servers, try_ms: TRY_MS }, place: placeOf(settings) }
}
