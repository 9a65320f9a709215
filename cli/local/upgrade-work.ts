import { realpathSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Loaded } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import type { UpgradeJournal } from "../../src/operations/upgrade/journal"
import { noteStaged, releaseFile, trialFolder } from "../../src/operations/upgrade/trial-files"
import type { Context } from "../lib/context"
import { environment, version } from "../lib/environment"
import { exits, Failure, usage } from "../lib/errors"
import {
  isAlive,
  isContainer,
  isSupervised,
  outputsOf,
  type ServerProcess,
  serverOf,
} from "./server-process"
import type { LocalOptions } from "./settings"
import { type ExchangePlan, exchange, startAgain } from "./upgrade-downtime"
import { startGuard } from "./upgrade-guard"
import { otherNodes, otherNodesServe } from "./upgrade-nodes"
import { endTrial } from "./upgrade-recovery"
import { type CheckedRelease, checkRelease, stageProgram } from "./upgrade-release"
import { pendingWith, tryRelease } from "./upgrade-trial"
import { demandSpace, prepareTrial, upgradeNeeds } from "./upgrade-trial-copy"

export interface UpgradeOptions extends LocalOptions {
  check?: boolean
  /** False for `--no-migrate`. */
  migrate?: boolean
  publicKey?: string
  guard?: boolean
}

export type UpgradeRecord = {
  from_version: string
  to_version: string
  platform: string
  key_id: string
  migrations: string[]
  done: boolean
  downtime_ms: number | null
}

interface UpgradeWork {
  context: Context
  options: UpgradeOptions
  loaded: Loaded
  /** A file or an URL. */
  source: string
}

/** The whole way from the signature to the new version. With --check it ends before anything changes. */
export async function upgradeNow(work: UpgradeWork): Promise<UpgradeRecord> {
  const { options, loaded, source, context } = work
  const { data_dir } = loaded.values
  try {
    const found = await checkRelease({
      source,
      public_key: options.publicKey,
      target: releaseFile(data_dir),
      onBytes: (bytes) => context.output.passing(`fetched ${Math.floor(bytes / 1e6)} MB`),
    })
    await note(work, `the signature of ${found.file} is right (key ${found.key_id})`)
    return await upgradeTo(work, found)
  } finally {
    await endTrial(data_dir)
  }
}

async function upgradeTo(work: UpgradeWork, found: CheckedRelease): Promise<UpgradeRecord> {
  const { options, loaded } = work
  const { data_dir } = loaded.values
  const server = serverOf(data_dir)
  const program = server?.program ?? realpathSync(process.execPath)
  demandPlace(server, program)
  await demandSpace(loaded.values, await upgradeNeeds(loaded.values, program))
  const staged = `${program}.new-${found.version}`
  noteStaged(data_dir, staged)
  await stageProgram(found, staged)
  const words = sameWords(work)
  const pending = await pendingWith(staged, words, environmentOf(server))
  const keeps_database = await demandMigrations(work, pending, server)
  if (options.check) return recordOf(found, pending)
  const journal = journalOf(work, { found, server, program, staged, keeps_database })
  const plan = planOf(work, { journal, server, words })
  // From here on a crash must leave neither a trial that goes on nor, later, nothing that serves.
  startGuard(words, server, plan.outputs)
  await rehearse(work, found, plan)
  return recordOf(found, pending, await exchange(withServerOfNow(plan)))
}

function recordOf(
  { version: to_version, platform, key_id }: CheckedRelease,
  migrations: string[],
  result?: { downtime_ms: number | null },
): UpgradeRecord {
  const downtime_ms = result?.downtime_ms ?? null
  const done = result !== undefined
  return { from_version: version, to_version, platform, key_id, migrations, done, downtime_ms }
}

/** Each step is one line on stderr, for people. */
async function note({ context }: UpgradeWork, text: string): Promise<void> {
  const { output, paint } = context
  output.passing("")
  await output.note(`${paint.dim("·")} ${text}`)
}

/** Throws where the exchange could not work, before anything is tried for a minute. */
function demandPlace(server: ServerProcess | undefined, program: string): void {
  if (server && isContainer(server)) {
    const hint = "start a container of the newer image with the same volume"
    throw usage("The server is the first process of a container, so it cannot be exchanged.", hint)
  }
  const probe = `${program}.new`
  try {
    writeFileSync(probe, "", { mode: 0o600 })
    rmSync(probe)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const message = `A file in ${dirname(program)}, the folder of the program, cannot be written: ${reason}.`
    const hint = "let the user of the server write to that folder"
    throw new Failure(exits.storage, "storage", message, { hint })
  }
}

const environmentOf = (server: ServerProcess | undefined) => server?.environment ?? environment

/**
 * Whether the database of before is to be kept. Throws where migrations are unwanted, and where other nodes
 * would serve a database that changes under them.
 */
async function demandMigrations(
  { options, loaded }: UpgradeWork,
  pending: string[],
  server: ServerProcess | undefined,
): Promise<boolean> {
  if (options.migrate === false && pending.length > 0) {
    const message = `The new version needs migrations: ${pending.join(", ")}.`
    throw new Failure(exits.conflict, "migrations_needed", message, {
      hint: "upgrade without --no-migrate",
    })
  }
  const others = await otherNodes(loaded.values, server ? 1 : 0)
  if (others === 0) return true
  if (pending.length === 0) return false // a database that stays as it is need not be kept
  throw otherNodesServe(others, `, and the new version needs migrations: ${pending.join(", ")}`)
}

/** What leads another command to the same data: the flags of this one. */
const sameWords = ({ context, options, loaded }: UpgradeWork): string[] => [
  ...(context.flags.config === undefined ? [] : ["--config", context.flags.config]),
  ...(options.set ?? []).flatMap((pair) => ["--set", pair]),
  ...["--data-dir", loaded.values.data_dir],
]

interface JournalFacts {
  found: CheckedRelease
  server: ServerProcess | undefined
  program: string
  staged: string
  keeps_database: boolean
}

function journalOf({ loaded }: UpgradeWork, facts: JournalFacts): UpgradeJournal {
  const { found, server, program, staged, keeps_database } = facts
  const { "upgrade.supervisor": supervisor } = loaded.values
  const id = newId()
  return {
    format: 1,
    id,
    step: "stopping",
    from_version: version,
    to_version: found.version,
    program,
    staged,
    kept: `${program}.before-${id}`,
    keeps_database,
    server: server ? { pid: server.pid, words: server.words, cwd: server.cwd } : null,
    is_supervised:
      server !== undefined && (supervisor === "auto" ? isSupervised(server) : supervisor === "yes"),
  }
}

function planOf(
  work: UpgradeWork,
  facts: { journal: UpgradeJournal; server: ServerProcess | undefined; words: string[] },
): ExchangePlan {
  const { values: settings } = work.loaded
  const { journal, server, words } = facts
  const outputs = server && outputsOf(server.pid, join(settings.data_dir, "server.log"))
  return {
    settings,
    journal,
    server,
    outputs,
    words,
    environment: environmentOf(server),
    ready_ms: settings["upgrade.ready"],
    onStep: (text) => note(work, text),
  }
}

/**
 * The plan with the server that runs now: it may have ended in the trial, and been started again by another
 * program. Throws where there was none before.
 */
function withServerOfNow(plan: ExchangePlan): ExchangePlan {
  const { settings, server, journal } = plan
  const pid = serverOf(settings.data_dir)?.pid
  if (pid === undefined) return plan
  if (!server || !journal.server) {
    const message = "A server was started on the data while the new version was tried."
    const hint = "run the command again"
    throw new Failure(exits.conflict, "server_started", message, { hint })
  }
  const known = { ...journal.server, pid }
  return { ...plan, server: { ...server, pid }, journal: { ...journal, server: known } }
}

/** A backup, then the new version on a copy of it, while the old one serves. */
async function rehearse(work: UpgradeWork, found: CheckedRelease, plan: ExchangePlan) {
  const { loaded, context } = work
  const { values: settings } = loaded
  const folder = trialFolder(settings.data_dir)
  const backup = await prepareTrial(settings, folder, (text) => context.output.passing(text))
  await note(work, `backup ${backup.path}`)
  const { "upgrade.trial": trial_ms, "upgrade.ready": ready_ms } = settings
  await note(work, `trying ${found.version} for ${trial_ms / 1000} s on a copy of the data`)
  await tryRelease({
    program: plan.journal.staged,
    version: found.version,
    folder,
    data_dir: settings.data_dir,
    words: plan.words.slice(0, -2),
    environment: plan.environment,
    trial_ms,
    ready_ms,
    onProgress: async (elapsed_ms) => {
      context.output.passing(`${Math.floor(elapsed_ms / 1000)} of ${trial_ms / 1000} s`)
      keepServing(plan)
    },
  })
}

/** Where nothing else starts a server again that died meanwhile, this command does. */
function keepServing(plan: ExchangePlan): void {
  const { server, settings } = plan
  if (!server || isAlive(server.pid) || serverOf(settings.data_dir)) return
  server.pid = startAgain(plan) ?? server.pid
}
