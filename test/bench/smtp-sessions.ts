import { readFileSync } from "node:fs"
import { join } from "node:path"
import { readLines } from "../harness/lines"
import type { SmtpLoad, SmtpLoadResult } from "./smtp-load"

export interface SmtpSessions extends AsyncDisposable {
  /** Offers mail for so many seconds in all sessions. */
  offer(seconds: number): Promise<SmtpLoadResult>
}

/** The load generator with all its sessions open. It is the same program for every server. */
export async function openSessions(load: SmtpLoad): Promise<SmtpSessions> {
  const cmd = [process.execPath, join(import.meta.dir, "smtp-load.ts")]
  const child = Bun.spawn({ cmd, stdin: "pipe", stdout: "pipe", stderr: "inherit" })
  let answer = Promise.withResolvers<string>()
  readLines(child.stdout, (line) => answer.resolve(line))
  child.exited.then((code) => answer.reject(new Error(`the load ended with ${code}`)))
  const say = async (text: string) => {
    answer = Promise.withResolvers<string>()
    child.stdin.write(`${text}\n`)
    await child.stdin.flush()
    return answer.promise
  }
  const end = async () => {
    answer.promise.catch(() => {})
    child.kill("SIGKILL")
    await child.exited
  }
  await say(JSON.stringify(load))
  return {
    offer: async (seconds) => JSON.parse(await say(String(seconds))) as SmtpLoadResult,
    [Symbol.asyncDispose]: end,
  }
}

/** Milliseconds of processor time that a process used since its start, all threads together. */
export function processorMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10 // utime and stime, a hundredth of a second each
}
