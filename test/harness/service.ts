import type { Elysia } from "elysia"
import { createApp } from "../../src/app"
import { PROVIDERS } from "../../src/channels"
import { compose, type ServerContext } from "../../src/compose"
import { type Settings, settings } from "../../src/core/config"
import type { Disk } from "../../src/core/disk"
import { resolver } from "../../src/core/dns"
import { openSecrets, type Secrets } from "../../src/core/secrets"
import { monotonic } from "../../src/core/time"
import { openWorkers } from "../../src/core/workers"
import type { CheckParts } from "../../src/domains/check-job"
import type { RecordTargets } from "../../src/domains/expected-records"
import type { SendRules } from "../../src/emails/prepare"
import { listen } from "../../src/http/listener"
import type { SocketTimes } from "../../src/http/sockets"
import { pathOf } from "../../src/http/target"
import * as apiKeys from "../../src/identity/api-keys"
import type { SystemMail as Post } from "../../src/identity/system-mail"
import type { Store } from "../../src/store/store"
import { fillSome } from "../../src/subscribers/postings"
import type { SignUp } from "../../src/tenancy/invitations"
import { type Client, client } from "./client"
import { lateBlobs } from "./late-blobs"
import { testPauses } from "./pauses"
import { addProject } from "./project-rows"
import { type ProviderOptions, testEnvironment } from "./providers"
import { seen } from "./published"
import { testStore } from "./store"

export interface ServiceOptions {
  /** In place of the engine of this run. */
  engine?: "sqlite" | "postgres"
  rules?: Partial<SendRules>
  /** Nobody told the server its public address. */
  is_unknown?: true
  trusted_proxies?: string[]
  time_limit_ms?: number
  body_memory_mb?: number
  body_time?: () => number
  socket_times?: SocketTimes
  sign_up?: SignUp
  /** Where domains are looked up, and what their records name. */
  domains?: Partial<Omit<CheckParts, "store">>
  providers?: ProviderOptions
  /** Receivers of tests listen on the loopback, without TLS, unless this says otherwise. */
  webhooks?: Partial<Settings>
  /** In place of the list of what would have been sent. */
  mail?: (secrets: Secrets) => Post
}

export interface ProjectOptions {
  plan?: string
  /** Numbers of the operator, instead of the plan's. */
  limits?: Record<string, number | null>
  status?: "active" | "locked" | "suspended"
  scopes?: string[]
  ip_addresses?: string[]
  expires_at?: string | null
}

/** One project of one account, and a client that calls with a key of it. */
export interface TestProject extends Client {
  account_id: string
  project_id: string
  key_id: string
  key: string
  /** Another key of the same project. */
  addKey(options?: ProjectOptions): Promise<{ id: string; key: string }>
}

/** A mail of the instance itself. */
export interface SystemMail {
  to: string
  subject: string
  text: string
  kind: string
}

/** What the storage seems to be like; tests change it. */
export interface FakeDisk {
  healthy: boolean
  low: boolean
}

const RULES: Omit<
  SendRules,
  "read" | "providerOf" | "unsubscribe" | "templates" | "publicAddress"
> = {
  files: { allow_private: [] },
  sending_domains: new Set(["example.test"]),
  to_mailbox: true,
  mailbox_takes_all: true,
  has_mailbox: true,
}

/** The mailbox is said to run there, and nobody listens. */
const CLOSED_PORT = 9

/** Nobody listens there: what is looked up is not known. */
const NO_SERVER = ["127.0.0.1:9"]

export const PLACE: RecordTargets = {
  host: "mx.belfry.test",
  tracking_host: "track.belfry.test",
  mechanisms: ["a:mx.belfry.test"],
  ed25519: false,
  keeps_identities: false,
  providers: PROVIDERS,
  receives: true,
}

export const NO_NAMES = {
  net: { dns: resolver({ servers: NO_SERVER, try_ms: 50 }), servers: NO_SERVER, try_ms: 50 },
  targets: { ...PLACE, receives: false },
}

const LOOPBACK_HOOKS = {
  "webhooks.require_https": false,
  "webhooks.allow_private": ["127.0.0.0/8"],
}

/** One thread for all services of a process: to load what it runs takes longer than most tests. */
const workers = openWorkers({ size: 1 })

/** The whole interface on an empty store, in this process. Nothing is delivered by itself. */
export async function testService(options: ServiceOptions = {}) {
  const base = await testStore(options.engine)
  const { store, folder } = base
  while (await fillSome(store)); // searches go by posting lists, as they do a moment after a start
  const secrets = openSecrets({ data_dir: folder, master_key: null })
  const disk: FakeDisk = { healthy: true, low: false }
  const base_url = () => "http://belfry.test"
  const mails: SystemMail[] = []
  const ground: ServerContext = {
    settings: {
      ...settings(),
      ...LOOPBACK_HOOKS,
      ...options.webhooks,
      database_url: base.database_url,
      data_dir: folder,
      "storage.sqlite.path": `${folder}/test.db`,
      sign_up: options.sign_up ?? "invite",
      "http.trusted_proxies": options.trusted_proxies ?? [],
      "http.body_memory_mb": options.body_memory_mb ?? 128,
    },
    mode: "serve",
    store,
    secrets,
    workers,
    blobs: lateBlobs(`${folder}/blobs`),
    inbound_blobs: lateBlobs(`${folder}/blobs/inbound`),
    disk: fakeDisk(disk),
    base_url,
    public_url: () => (options.is_unknown ? undefined : base_url()),
    mailbox_port: null,
    health: { progressedAt: monotonic, ask: async () => undefined },
  }
  const composed = await compose(ground, {
    rules: { ...RULES, ...options.rules },
    domains: { store, ...NO_NAMES, ...options.domains },
    providers: testEnvironment({ mailbox_port: CLOSED_PORT, ...options.providers }),
    mail: options.mail?.(secrets) ?? { send: async (_, mail) => void mails.push(mail) },
  })
  const parts = Object.assign(composed.parts, {
    queues: testPauses(store),
    ...(options.time_limit_ms !== undefined && { time_limit_ms: options.time_limit_ms }),
    ...(options.body_time && { body_time: options.body_time }),
    ...(options.socket_times && { socket_times: options.socket_times }),
  })
  const { health, watching, inbox_hub, open_providers } = parts
  const loop = composed.loops.at(-1)
  if (!loop) throw new Error("there is no loop of webhooks")
  const unwatch = watching.start()
  const unfollow = inbox_hub.start()
  const app = watched(createApp(parts) as unknown as Elysia)
  const stops: (() => Promise<void> | void)[] = []

  return {
    ...base,
    parts,
    /** As a running server reads them. */
    settings: ground.settings,
    app,
    disk,
    health,
    /** The loop is not started: nothing is delivered by itself. */
    webhooks: { parts: parts.webhooks, loop },
    /** What the instance itself would have sent. */
    mails,
    anybody: client(app, undefined),
    project: (chosen: ProjectOptions = {}) => testProject(store, app, chosen),
    /** The same app behind a real socket on the loopback. */
    listen() {
      const listener = listen(app, { host: "127.0.0.1", port: 0, idle_seconds: 10 })
      stops.push(() => listener.stop())
      return listener
    },
    async [Symbol.asyncDispose]() {
      for (const stop of [...stops, unwatch, unfollow]) await stop()
      for (const each of composed.loops) await each.stop(0)
      await composed.close()
      await open_providers.close()
      await base[Symbol.asyncDispose]()
    },
  }
}

export type TestService = Awaited<ReturnType<typeof testService>>

/** Every answer is held against the published description; the test that sees another one fails. */
function watched(app: Elysia): Elysia {
  const answer = app.fetch
  const value = async (request: Request) => {
    const found = await answer(request)
    // The client of Resend gets its own form of records; its tests read them as it does.
    if (request.headers.get("user-agent")?.startsWith("resend-")) return found
    return seen(request.method, pathOf(request), found)
  }
  return Object.defineProperty(app, "fetch", { value })
}

const fakeDisk = (state: FakeDisk): Disk => ({
  free_bytes: () => Number.POSITIVE_INFINITY,
  state: () => (state.low ? "low" : "ok"),
  healthy: () => state.healthy,
  failed: () => undefined,
  died: new Promise(() => {}),
  damaged: new Promise(() => {}),
  isDamaged: () => false,
  keepBallast: async () => {},
  close() {},
})

async function testProject(store: Store, app: Elysia, options: ProjectOptions) {
  const { plan = "enterprise", limits = null, status = "active" } = options
  const { account_id, project_id } = await addProject(store, { plan, limits, status })
  const addKey = (own: ProjectOptions = {}) => issueKey(store, { account_id, project_id }, own)
  const { id: key_id, key } = await addKey(options)
  const project: TestProject = {
    ...client(app, key),
    account_id,
    project_id,
    key_id,
    key,
    addKey,
  }
  return project
}

function issueKey(
  store: Store,
  owner: { account_id: string; project_id: string },
  { scopes = ["*"], ip_addresses = [], expires_at = null }: ProjectOptions,
) {
  const created_by = { type: "local" as const, id: null }
  const wanted = { name: "test", scopes, ip_addresses, expires_at }
  return store.tx((tx) => apiKeys.create(tx, { ...owner, created_by }, wanted))
}
