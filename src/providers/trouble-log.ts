import { log } from "../core/log"
import { millis, millisFrom } from "../core/time"

/** Which provider has trouble, as the log names it. */
export interface Named {
  provider: string
  /** Of its configuration, or `instance` for the instance's own provider. */
  config_id: string
  project_id?: string | null
}

export type TroubleKind = "refuses_login" | "refuses_us" | "unreachable"

/** As somebody reads it behind the provider's name. */
export const TROUBLES: Record<TroubleKind, string> = {
  refuses_login: "refuses our login",
  refuses_us: "refuses to deliver for us",
  unreachable: "cannot be reached",
}

const ENDS: Record<TroubleKind, string> = {
  refuses_login: "accepts our login again",
  refuses_us: "delivers for us again",
  unreachable: "can be reached again",
}

const WHAT_FOLLOWS: Record<TroubleKind, string> = {
  refuses_login: " Its mail waits; one message a minute tries the login again.",
  refuses_us: "",
  unreachable: "",
}

export const tellBegin = (kind: TroubleKind, named: Named, reason: string) =>
  log.warn(`A provider ${TROUBLES[kind]}.${WHAT_FOLLOWS[kind]}`, { ...named, reason })

/** Once a minute while it lasts. */
export const tellStill = (
  kind: TroubleKind,
  named: Named,
  why: { reason: string; since: string },
) => log.warn(`A provider still ${TROUBLES[kind]}.`, { ...named, ...why })

export const tellEnd = (kind: TroubleKind, named: Named, since: string) =>
  log.info(`A provider ${ENDS[kind]}.`, { ...named, since, seconds: secondsSince(since) })

const secondsSince = (since: string) => Math.round((millis() - millisFrom(since)) / 1000)
