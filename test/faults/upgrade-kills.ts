import { serverOf } from "../../cli/local/server-process"
import { probationOf, type UpgradeStep } from "../../src/operations/upgrade/journal"
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
  { who: "command", at: "returning", fault: "sick" },
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
  let version = await box.restarted()
  if (kill.who === "command" && kill.at === "stopping") {
    await box.stop() // it may not have been asked to stop before, and its next start ends the upgrade
    version = await box.restarted()
  }
  await box.over()
  while (box.processes("migrate").length > 0) await Bun.sleep(20) // it may begin after all is over
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

/**
 * Kills the command while it makes its backup, under load, then upgrades. Answers the version that serves between,
 * what became of the upgrade, and the mail that is lost.
 */
export async function killedInBackup(box: UpgradeBox) {
  const load = box.traffic()
  let between: string
  do {
    const command = box.upgrade()
    await box.backup()
    command.kill("SIGKILL")
    await ended(command)
    between = await box.restarted()
  } while (box.drafts().length === 0) // the backup may have been over
  const { code } = await ended(box.upgrade())
  const after = await box.served()
  const verified = await box.run("backup", "verify")
  const missing = await box.missing(await load.stop())
  return { code, between, after, missing, drafts: box.drafts(), verified: verified.code }
}

/** Kills the old server while the command makes its backup, under load. Answers the mail that is lost. */
export async function oldServerKilled(box: UpgradeBox) {
  const load = box.traffic()
  const command = box.upgrade()
  await box.backup()
  process.kill(idOf(serverOf(box.data_dir)?.pid), "SIGKILL")
  const { code } = await ended(command)
  const after = await box.served()
  return { code, after, missing: await box.missing(await load.stop()) }
}
