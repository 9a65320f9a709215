import { existsSync } from "node:fs"
import { serverOf } from "../../cli/local/server-process"
import { probationOf, type UpgradeStep } from "../../src/operations/upgrade/journal"
import { trialFolder } from "../../src/operations/upgrade/trial-files"
import type { NextRelease } from "../harness/next-release"
import { ended, type UpgradeBox } from "./upgrade-box"

/** Who is killed at which step of an upgrade to a later version with this fault. */
export interface UpgradeKill {
  who: "command" | "old server" | "migration" | "new server"
  at: UpgradeStep
  fault: string
  is_supervised?: boolean
}

export const KILLS: UpgradeKill[] = [
  { who: "command", at: "changing", fault: "slow" },
  { who: "new server", at: "starting", fault: "slow" },
  { who: "command", at: "starting", fault: "slow" },
  { who: "command", at: "changing", fault: "slow", is_supervised: true },
  { who: "command", at: "stopping", fault: "slow" },
  { who: "command", at: "copying", fault: "slow" },
  { who: "command", at: "returning", fault: "sick-later" },
  { who: "command", at: "starting", fault: "slow", is_supervised: true },
  { who: "migration", at: "changing", fault: "slow" },
  { who: "migration", at: "changing", fault: "long-migration" },
  { who: "migration", at: "changing", fault: "long-migration", is_supervised: true },
  { who: "old server", at: "stopping", fault: "" },
  { who: "old server", at: "stopping", fault: "", is_supervised: true },
]

/** Kills at that step, under load. Answers the version that serves in the end, and the mail that is lost. */
export async function upgradeKilled(box: UpgradeBox, kill: UpgradeKill) {
  const load = box.traffic()
  const old_pid = serverOf(box.data_dir)?.pid
  const command = box.upgrade()
  await box.step(kill.at)
  process.kill(
    await victimOf(box, kill, { command: command.pid, "old server": old_pid }),
    "SIGKILL",
  )
  await ended(command)
  await box.over()
  while (box.processes("migrate").length > 0) await Bun.sleep(20) // it may begin after all is over
  const version = await box.served()
  return { version, missing: await box.missing(await load.stop()) }
}

async function victimOf(
  box: UpgradeBox,
  { who, fault }: UpgradeKill,
  known: Record<"command" | "old server", number | undefined>,
): Promise<number> {
  if (who === "command" || who === "old server") return idOf(known[who])
  const pid = await newProgram(box, who === "migration" ? "migrate" : "serve")
  if (fault === "long-migration") await box.changes()
  return pid
}

/** An id of 0 would mean the processes of this test. */
function idOf(pid: number | undefined): number {
  if (pid === undefined) throw new Error("the process does not run")
  return pid
}

/** What runs the new version. The program that migrates is noted at the same place as the server. */
async function newProgram(box: UpgradeBox, word: "migrate" | "serve"): Promise<number> {
  for (;;) {
    const pid = probationOf(box.data_dir)
    if (pid !== undefined && box.processes(word).includes(pid)) return pid
    await Bun.sleep(5)
  }
}

/** Kills the new version while it serves the copy, under load. Answers how the upgrade ended, and the mail that is lost. */
export async function killedInTrial(box: UpgradeBox) {
  const load = box.traffic()
  const folder = trialFolder(box.data_dir)
  const command = box.upgrade()
  await box.trial()
  for (const pid of box.processes(folder)) process.kill(pid, "SIGKILL")
  const done = await ended(command)
  const left = [...box.processes(folder), ...(existsSync(folder) ? [folder] : [])]
  const version = await box.served()
  return { done, left, version, missing: await box.missing(await load.stop()) }
}

/**
 * Kills the command while it makes its backup, under load, then upgrades. Answers the version that serves between,
 * what became of the upgrade, and the mail that is lost.
 */
export async function killedInBackup(box: UpgradeBox, { archive }: Pick<NextRelease, "archive">) {
  const load = box.traffic()
  const upgrade = (trial: string) => box.upgrade(archive, "--set", `upgrade.trial=${trial}`)
  do {
    const command = upgrade("60s")
    await box.backup()
    command.kill("SIGKILL")
    await ended(command)
    while (box.processes("upgrade").length > 0) await Bun.sleep(20) // what watches over it
  } while (box.drafts().length === 0) // the backup may have been over
  const between = await box.served()
  const { code } = await ended(upgrade("500ms"))
  const after = await box.served()
  const verified = await box.run("backup", "verify")
  const missing = await box.missing(await load.stop())
  return { code, between, after, missing, drafts: box.drafts(), verified: verified.code }
}

/** Kills the old server at a moment of the upgrade, under load. Answers the mail that is lost. */
export async function oldServerKilled(box: UpgradeBox, at: "backup" | "trial" = "trial") {
  const load = box.traffic()
  const command = box.upgrade()
  await box[at]()
  process.kill(idOf(serverOf(box.data_dir)?.pid), "SIGKILL")
  const between = await box.served()
  const { code } = await ended(command)
  const after = await box.served()
  return { code, between, after, missing: await box.missing(await load.stop()) }
}
