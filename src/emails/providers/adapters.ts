import { allowedAddress } from "../../core/destination"
import type { Secrets } from "../../core/secrets"
import { monotonic } from "../../core/time"
import type { ConfigRow } from "../../providers/configs"
import { openCredentials, type SesAccess, type SmtpAccess } from "../../providers/credentials"
import type { SesPlace } from "../../providers/ses/api"
import { ProviderRateLimit } from "../provider-permits"
import { smtpSchedule } from "../schedule"
import { mailbox } from "./mailbox"
import { type EmailProvider, ProviderError } from "./provider"
import { ses } from "./ses"
import { smtp } from "./smtp"

/** An adapter that nobody uses any more is closed after this. */
const IDLE_MS = 300_000

const FAILURES_IN_A_ROW = 5
const REST_MS = 60_000

export interface AdapterOptions {
  secrets: Secrets
  /** Networks where a tenant's relay may be, besides the public internet. */
  allow_private: readonly string[]
  ses: SesPlace
  /** Null where the embedded mailbox does not run. */
  mailbox_port: number | null
  max_connections: number
  max_age_seconds: number
  /** The instance's own provider, for callers that ask it without a message. */
  own?: EmailProvider
  /** The delivery by MX of this instance, whose pacing all projects share. */
  openDirect: () => EmailProvider
}

interface Entry {
  version: string
  provider: EmailProvider
  pace: ProviderRateLimit | undefined
  uses: number
  is_retired: boolean
  idle: ReturnType<typeof setTimeout> | undefined
  failures: number
  rests_until: number
}

/** One use of an adapter. `release` belongs to every one of them. */
export interface Lease {
  provider: EmailProvider
  /** Throws DeferredError where `max_per_second` is reached; who is urgent may borrow a second's. */
  pace(is_urgent?: boolean): void
  /** It was reached, or it was not: who cannot be reached again and again is asked last. */
  reached(is_reached: boolean): void
  release(): void
}

/** The opened providers of all projects: warm while they are used, new when they are changed. */
export class Adapters {
  readonly #options: AdapterOptions
  readonly #entries = new Map<string, Entry>()
  #direct: EmailProvider | undefined

  constructor(options: AdapterOptions) {
    this.#options = options
  }

  get own(): EmailProvider | undefined {
    return this.#options.own
  }

  /** Throws ProviderError where this instance has no such provider. */
  lease(row: ConfigRow): Lease {
    const entry = this.#entryFor(row)
    entry.uses++
    clearTimeout(entry.idle)
    let is_over = false
    return {
      provider: entry.provider,
      pace: (is_urgent) => entry.pace?.take(is_urgent),
      reached: (is_reached) => void note(entry, is_reached),
      release: () => {
        if (!is_over) this.#release(row.id, entry)
        is_over = true
      },
    }
  }

  /** Whether it failed so often that others should be asked first. */
  isResting({ id }: ConfigRow): boolean {
    return (this.#entries.get(id)?.rests_until ?? 0) > monotonic()
  }

  async close(): Promise<void> {
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    for (const { idle } of entries) clearTimeout(idle)
    await Promise.all(entries.map(({ provider }) => provider.close()))
    await this.#direct?.close()
  }

  #entryFor(row: ConfigRow): Entry {
    const version = `${row.credentials}|${JSON.stringify(row.settings)}`
    const known = this.#entries.get(row.id)
    if (known?.version === version) return known
    const { max_per_second } = row.settings
    const fresh: Entry = {
      version,
      provider: this.#open(row),
      pace: typeof max_per_second === "number" ? new ProviderRateLimit(max_per_second) : undefined,
      uses: 0,
      is_retired: false,
      idle: undefined,
      failures: 0,
      rests_until: 0,
    }
    if (known) this.#retire(known)
    this.#entries.set(row.id, fresh)
    return fresh
  }

  /** What is on its way goes on; the connections end with the last of it. */
  #retire(entry: Entry) {
    entry.is_retired = true
    clearTimeout(entry.idle)
    if (entry.uses === 0) void entry.provider.close()
  }

  #release(id: string, entry: Entry) {
    entry.uses--
    if (entry.uses > 0) return
    if (entry.is_retired) return void entry.provider.close()
    entry.idle = setTimeout(() => {
      if (this.#entries.get(id) === entry) this.#entries.delete(id)
      void entry.provider.close()
    }, IDLE_MS)
    entry.idle.unref()
  }

  #open(row: ConfigRow): EmailProvider {
    const { secrets, max_connections, max_age_seconds, mailbox_port, ses: place } = this.#options
    const schedule = smtpSchedule(max_age_seconds)
    const credentials = openCredentials(secrets, row)
    if (row.provider === "smtp") return this.#smtp(credentials as SmtpAccess)
    if (row.provider === "ses") return ses({ access: credentials as SesAccess, place, schedule })
    if (row.provider === "direct") return this.#sharedDirect()
    if (row.provider === "mailbox" && mailbox_port !== null) {
      return mailbox({ port: mailbox_port, max_connections })
    }
    throw new ProviderError("infrastructure", `This instance has no provider ${row.provider}.`)
  }

  #smtp(access: SmtpAccess): EmailProvider {
    const { allow_private, max_connections, max_age_seconds } = this.#options
    const { host, port } = access
    return smtp({
      ...access,
      resolveHost: () => allowedAddress(host, port, { allow_private }),
      limits: { max_connections },
      schedule: smtpSchedule(max_age_seconds),
    })
  }

  #sharedDirect(): EmailProvider {
    this.#direct ??= this.#options.openDirect()
    return { ...this.#direct, close: async () => {} }
  }
}

function note(entry: Entry, is_reached: boolean) {
  entry.failures = is_reached ? 0 : entry.failures + 1
  if (is_reached) entry.rests_until = 0
  else if (entry.failures >= FAILURES_IN_A_ROW) entry.rests_until = monotonic() + REST_MS
}
