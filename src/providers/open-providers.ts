import { allowedAddress } from "../core/destination"
import type { Secrets } from "../core/secrets"
import { monotonic } from "../core/time"
import { DeferredError } from "../jobs/work-item"
import type { Reader } from "../store/store"
import { callbackUrlOf } from "./callbacks"
import { openCredentials } from "./credentials"
import {
  channelOf,
  findDescriptor,
  type OwnProvider,
  type Provider,
  type ProviderDescriptor,
  type ProviderEnvironment,
  ProviderError,
  type ProviderKind,
  type ProviderOpening,
  type SenderIdentity,
} from "./provider"
import { routing } from "./routing"
import { type ConfigRow, INSTANCE } from "./tables"

/** A provider is closed when it was not used for this long. */
const IDLE_MS = 300_000

/**
 * The circuit breaker: after this many failures in a row to reach a provider, it is asked last for
 * the cool-down.
 */
const BREAKER_FAILURES = 5
const COOL_DOWN_MS = 60_000

interface Entry {
  /** As it was read last. A row that was read again may say the same. */
  row: ConfigRow
  version: string
  provider: Provider
  is_shared: boolean
  limit: ProviderRateLimit | undefined
  uses: number
  is_retired: boolean
  idle: ReturnType<typeof setTimeout> | undefined
  failures: number
  cools_until: number
}

/** One use of an opened provider. `release` belongs to every one of them. */
export interface ProviderLease {
  provider: Provider
  is_shared: boolean
  /** Throws DeferredError where `max_per_second` is reached; an urgent message may borrow a second's. */
  pace(is_urgent?: boolean): void
  /** Counts for the breaker. */
  reached(is_reached: boolean): void
  release(): void
}

/**
 * The opened providers of the instance and of all projects, by configuration: warm while they are used,
 * new when they are changed. Each has a breaker.
 */
export class OpenProviders {
  readonly environment: ProviderEnvironment
  readonly #secrets: Secrets
  readonly #entries = new Map<string, Entry>()
  readonly #shared = new Map<ProviderDescriptor, Provider>()

  constructor(environment: ProviderEnvironment, secrets: Secrets) {
    this.environment = environment
    this.#secrets = secrets
  }

  /** Throws ProviderError where this instance has no such provider. */
  lease(row: ConfigRow): ProviderLease {
    const entry = this.#entryFor(row)
    entry.uses++
    clearTimeout(entry.idle)
    let is_over = false
    return {
      provider: entry.provider,
      is_shared: entry.is_shared,
      pace: (is_urgent) => entry.limit?.take(is_urgent),
      reached: (is_reached) => note(entry, is_reached),
      release: () => {
        if (!is_over) this.#release(row.id, entry)
        is_over = true
      },
    }
  }

  /** Runs `work` with the opened provider. Throws as `lease`. */
  async use<Result>(row: ConfigRow, work: (provider: Provider) => Promise<Result>) {
    const lease = this.lease(row)
    try {
      return await work(lease.provider)
    } finally {
      lease.release()
    }
  }

  /** Whether its breaker is open, so that others should be asked first. */
  isCoolingDown({ id }: ConfigRow): boolean {
    return (this.#entries.get(id)?.cools_until ?? 0) > monotonic()
  }

  /** The name of the instance's own provider; undefined where a channel has none. */
  ownName = (kind: ProviderKind): string | undefined =>
    this.environment.own[channelOf(kind)]?.descriptor.name

  /** What the provider thinks of a sending domain; undefined where it keeps no identities. Rejects where it cannot be asked. */
  async identityOf(row: ConfigRow, domain: string): Promise<SenderIdentity | undefined> {
    const { descriptor, credentials } = this.#openable(row)
    return descriptor.identity?.(credentials, this.#contextOf(row), domain)
  }

  /** Whether the provider has a list of suppressed addresses; then the address is not on it any more. */
  async unsuppress(row: ConfigRow, address: string): Promise<boolean> {
    const { descriptor, credentials } = this.#openable(row)
    if (!descriptor.unsuppress) return false
    await descriptor.unsuppress(credentials, this.#contextOf(row), address)
    return true
  }

  /** The descriptor and the credentials of a configuration; undefined where this instance has no such provider. */
  find(row: ConfigRow): OwnProvider | undefined {
    if (row.project_id === INSTANCE) return this.environment.own[channelOf(row.kind)]
    const descriptor = this.#descriptorOf(row)
    return descriptor && { descriptor, credentials: openCredentials(this.#secrets, row) }
  }

  async close(): Promise<void> {
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    for (const { idle } of entries) clearTimeout(idle)
    await Promise.all(entries.map(({ provider }) => provider.close()))
    await Promise.all([...this.#shared.values()].map((provider) => provider.close()))
  }

  #entryFor(row: ConfigRow): Entry {
    const known = this.#entries.get(row.id)
    if (known?.row === row) return known
    const { refused_return_paths: _, ...chosen } = row.settings // what it told us changes nothing
    const version = `${row.credentials}|${JSON.stringify(chosen)}`
    if (known?.version === version) return Object.assign(known, { row })
    const { max_per_second } = row.settings
    const fresh: Entry = {
      row,
      version,
      provider: this.#open(row),
      is_shared: this.#descriptorOf(row)?.is_shared === true,
      limit: typeof max_per_second === "number" ? new ProviderRateLimit(max_per_second) : undefined,
      uses: 0,
      is_retired: false,
      idle: undefined,
      failures: 0,
      cools_until: 0,
    }
    if (known) this.#retire(known)
    this.#entries.set(row.id, fresh)
    return fresh
  }

  /** What is in flight goes on; the connections end with the last of it. */
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

  #open(row: ConfigRow): Provider {
    const { descriptor, credentials } = this.#openable(row)
    const context = this.#contextOf(row)
    const opening = this.#openingOf(row, descriptor)
    if (!descriptor.is_shared) return descriptor.open(credentials, context, opening)
    const shared = this.#shared.get(descriptor) ?? descriptor.open(credentials, context, opening)
    this.#shared.set(descriptor, shared)
    return { ...shared, close: async () => {} }
  }

  #openingOf(row: ConfigRow, { settings = {} }: ProviderDescriptor): ProviderOpening {
    const { allow_private, callback_base } = this.environment
    const reach = (host: string, port: number) => allowedAddress(host, port, { allow_private })
    const declared = Object.entries(row.settings).filter(([name]) => Object.hasOwn(settings, name))
    return {
      settings: Object.fromEntries(declared),
      reach: row.project_id === INSTANCE ? undefined : reach,
      callbackUrl: () => callbackUrlOf(this.#secrets, row, callback_base?.()),
    }
  }

  #openable(row: ConfigRow): OwnProvider {
    const found = this.find(row)
    if (found) return found
    throw new ProviderError("infrastructure", `This instance has no provider ${row.provider}.`)
  }

  #descriptorOf(row: ConfigRow): ProviderDescriptor | undefined {
    const { own, table } = this.environment
    return row.project_id === INSTANCE
      ? own[channelOf(row.kind)]?.descriptor
      : findDescriptor(table, row.kind, row.provider)
  }

  #contextOf = (row: ConfigRow): unknown => this.environment.contexts[channelOf(row.kind)]
}

/** What the provider that delivers a project's email first thinks of a domain. Rejects as `identityOf`. */
export const emailIdentities =
  (db: Reader, providers: OpenProviders) =>
  async (project_id: string, domain: string): Promise<SenderIdentity | undefined> => {
    const [first] = await routing(db, "email_provider", project_id)
    return first && providers.identityOf(first, domain)
  }

function note(entry: Entry, is_reached: boolean): void {
  entry.failures = is_reached ? 0 : entry.failures + 1
  if (is_reached) entry.cools_until = 0
  else if (entry.failures >= BREAKER_FAILURES) entry.cools_until = monotonic() + COOL_DOWN_MS
}

/** The longest time for which a message is deferred: meanwhile others may have given up. */
const FARTHEST_SECONDS = 600

/** Keeps the rate that a project set for a provider, in messages a second. */
export class ProviderRateLimit {
  readonly #per_second: number
  readonly #read: () => number
  #left: number
  #filled_at: number
  #promised = 0

  /** `read` gives milliseconds since some moment. */
  constructor(per_second: number, read: () => number = monotonic) {
    this.#per_second = per_second
    this.#read = read
    this.#left = this.#most
    this.#filled_at = read()
  }

  /**
   * Takes one. Throws DeferredError with a turn of its own where this second's are used up; an
   * urgent message takes one of the next second, before the waiting messages.
   */
  take(is_urgent = false): void {
    const now = this.#read()
    const earned = ((now - this.#filled_at) / 1000) * this.#per_second
    this.#left = Math.min(this.#most, this.#left + earned)
    this.#filled_at = now
    if (this.#left >= (is_urgent ? 1 - this.#most : 1)) {
      this.#left -= 1
      return
    }
    const next = Math.max(this.#promised, now) + 1000 / this.#per_second
    this.#promised = Math.min(next, now + FARTHEST_SECONDS * 1000)
    const text = `This provider gets at most ${this.#per_second} messages a second.`
    throw new DeferredError(text, (this.#promised - now) / 1000)
  }

  /** A slow one still sends one at a time. */
  get #most() {
    return Math.max(1, this.#per_second)
  }
}
